"""Live sessions by their keys: the same object as long as anyone holds it, the latest held here."""

from collections import OrderedDict
from weakref import WeakValueDictionary

from tiro.session.session import Session

CACHED_SESSIONS = 64


class ByKey:
    """Sessions by key; not safe for threads by itself."""

    def __init__(self) -> None:
        self._held: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._recent: OrderedDict[str, Session] = OrderedDict()

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def get(self, key: str) -> Session | None:
        """The session with this key, if it is still there."""
        return self._held.get(key)

    def put(self, key: str, session: Session) -> None:
        """Keep this session under the key, as the one that was used last."""
        self._held[key] = session
        self._recent[key] = session
        self._recent.move_to_end(key)
        while len(self._recent) > CACHED_SESSIONS:
            self._recent.popitem(last=False)

    def drop(self, key: str) -> None:
        """Forget the session with this key."""
        self._held.pop(key, None)
        self._recent.pop(key, None)
