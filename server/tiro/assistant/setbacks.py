"""What fails for a session again and again: only the first failure in a row is worth telling."""

from tiro.session.core import Core


class Setbacks:
    """How often in a row one thing failed for the current session."""

    def __init__(self) -> None:
        self._session: Core | None = None
        self._count = 0

    def of(self, session: Core) -> int:
        """How many there were since it last worked; none of another session count."""
        return self._count if self._session is session else 0

    def is_first(self, session: Core) -> bool:
        """Count one more; whether it is the first in a row."""
        self._session, self._count = session, self.of(session) + 1
        return self._count == 1

    def end(self, session: Core) -> None:
        """It worked."""
        if self._session is session:
            self._count = 0
