"""What a manager asks of whatever keeps one of its live sessions, in files or on a shelf."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from tiro.session.changes import Change, Set
from tiro.session.core import Core
from tiro.stores.output_files import OutputFiles


class Upkeep(Protocol):
    """Stores one live session after every change, and takes turns with other processes in it."""

    directory: Path
    saved_at: datetime | None

    @property
    def outputs(self) -> OutputFiles | None:
        """Where outputs go that are too long to be held; None for nowhere."""
        ...

    @property
    def path(self) -> Path | None:
        """Where the session lives; None until something of it is stored."""
        ...

    def is_stored(self, session: Core) -> bool:
        """Whether everything in the session survives a kill of this process."""
        ...

    def is_gone(self) -> bool:
        """Whether it was stored and is not there any more: somebody deleted it."""
        ...

    def stored_bytes(self) -> int:
        """The size of what is stored of it."""
        ...

    def enter(self, session: Core, is_given_up: Callable[[], bool] = ...) -> None:
        """Wait up to a second for the session's lock, then see what others wrote meanwhile.

        Raises SessionInUseError (with `pid` and `host`) while another process holds it.
        """
        ...

    def leave(self, session: Core) -> None:
        """Give the lock back."""
        ...

    def name_holder(self, session: Core) -> None:
        """Say who holds the lock, until it is given back."""
        ...

    def sync(self, session: Core) -> None:
        """Wait until everything stored is on the disk itself; never raises."""
        ...

    def save(self, session: Core) -> Path:
        """Store all of the session now; raises StorageError, SessionInUseError."""
        ...

    def finish(self, session: Core) -> None:
        """Store what a session at rest should have stored; never raises."""
        ...

    def detach(self, session: Core) -> None:
        """Let go for good: whatever happens to the session is no longer stored."""
        ...

    def silent(self) -> AbstractContextManager[None]:
        """Changes made inside are not stored: they come from where the session is stored."""
        ...

    def read_news(self, session: Core) -> Any:
        """What others wrote while nothing goes on here, or None; raises OSError."""
        ...

    def take_news(self, session: Core, news: Any) -> None:
        """Take that in, if it is still what stands there; raises OSError."""
        ...

    def due(self) -> float | None:
        """When `run` has something to do, by the monotonic clock; None for nothing."""
        ...

    def run(self, session: Core, now: float) -> None:
        """Do what is due."""
        ...


class Due:
    """A session's upkeep as work of the background thread; keeps the session alive meanwhile."""

    def __init__(self, upkeep: Upkeep, session: Core) -> None:
        self._upkeep = upkeep
        self._session = session

    def due(self) -> float | None:
        """When it is due, by the monotonic clock; None when nothing is left to do."""
        return self._upkeep.due()

    def run(self, now: float) -> None:
        """Do what is due by `now`."""
        self._upkeep.run(self._session, now)


class Agents(Protocol):
    """What the manager asks of the agent registry."""

    def get(self, name: str) -> object | None:
        """The agent with this name, or None."""
        ...


def lose_agent(session: Core, agents: Agents | None) -> None:
    """An agent that does not exist any more becomes None; its name stays in the file (M4.3).

    It stays until somebody selects another agent.
    """
    name = session.agent
    if agents is None or name is None or agents.get(name) is not None:
        return
    session.agent = None
    session.unknown["agent"] = name  # fields kept verbatim win when the file is written


def forget_lost_agent(session: Core, changes: tuple[Change, ...]) -> None:
    """Once somebody selects an agent, the name of the one that is gone is kept no more (M4.3)."""
    if "agent" in session.unknown and any(
        isinstance(change, Set) and "agent" in change.fields for change in changes
    ):
        del session.unknown["agent"]
