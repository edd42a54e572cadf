"""The live sessions of a manager, each with what keeps it stored, while anyone holds it.

Once a session is deleted, no change to an object of it is stored any more, whoever still has one:
it comes back by an explicit save alone.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from weakref import WeakKeyDictionary

from tiro.session.core import Core
from tiro.session.session import Session
from tiro.stores.by_key import ByKey
from tiro.stores.upkeep import Upkeep


class Live:
    """Sessions and their upkeeps; `new_upkeep` makes one for a session that has none yet."""

    def __init__(self, new_upkeep: Callable[[Core], Upkeep]) -> None:
        self.lock = threading.RLock()
        self.by_key = ByKey()
        self._new_upkeep = new_upkeep
        self._upkeeps: WeakKeyDictionary[Core, Upkeep] = WeakKeyDictionary()
        self._deleted: WeakKeyDictionary[Core, Upkeep] = WeakKeyDictionary()
        """Those of deleted sessions, which store nothing."""

    def upkeep_of(self, session: Core) -> Upkeep:
        """What keeps this session stored."""
        with self.lock:
            upkeep = self._upkeeps.get(session) or self._deleted.get(session)
            if upkeep is None:
                upkeep = self._upkeeps[session] = self._new_upkeep(session)
            return upkeep

    def brought_back(self, session: Core) -> Upkeep:
        """The same, also of a session that was deleted."""
        with self.lock:
            self._deleted.pop(session, None)
            return self.upkeep_of(session)

    def is_deleted(self, session: Core) -> bool:
        """Whether it was deleted, here or by another process; waits for the disk."""
        return session in self._deleted or self.upkeep_of(session).is_gone()

    def held_back(self) -> Sequence[Core]:
        """Those in which something was said and that hold more than is stored."""
        return [session for session in self.said() if self.is_held_back(session)]

    def said(self, seconds: float = -1) -> Sequence[Core]:
        """Those in which something was said.

        After so long, where that is given, they are looked for also while another thread has the
        lock: it may wait for a disk that never answers.
        """
        has_lock = self.lock.acquire(timeout=seconds)
        try:
            refs = self._upkeeps.keyrefs()
            sessions = [session for ref in refs if (session := ref()) is not None]
            return [s for s in sessions if s.newest_first or s.archive_rows]
        finally:
            if has_lock:
                self.lock.release()

    def is_held_back(self, session: Core) -> bool:
        """Whether it holds more than is stored, and is to be stored still."""
        upkeep = self.find(session)
        return upkeep is not None and not upkeep.is_stored(session)

    def find(self, session: Core) -> Upkeep | None:
        """The same, where it has one already."""
        return self._upkeeps.get(session)

    def put(self, session: Core, upkeep: Upkeep) -> None:
        """Have this upkeep keep the session stored."""
        with self.lock:
            self._upkeeps[session] = upkeep

    def of_id(self, id: str) -> Sequence[Session]:
        """The live sessions with this id."""
        with self.lock:
            return [s for s in self._upkeeps if isinstance(s, Session) and s.id == id]

    def all(self) -> Sequence[tuple[Core, Upkeep]]:
        """All of them."""
        with self.lock:
            return list(self._upkeeps.items())

    def drop_key(self, key: str) -> None:
        """Forget which session has this key."""
        with self.lock:
            self.by_key.drop(key)

    def forget(self, id: str) -> None:
        """Stop storing live objects of this session."""
        self.drop_key(id)
        for session in self.of_id(id):
            with self.lock:
                upkeep = self._deleted[session] = self._upkeeps.pop(session)
            upkeep.detach(session)

    @contextmanager
    def letting_go(self, id: str) -> Iterator[None]:
        """Live objects wait for what is removed inside; only then are they no longer stored."""
        with ExitStack() as waiting:
            for session in self.of_id(id):
                waiting.enter_context(session.lock)
            yield
            self.forget(id)
