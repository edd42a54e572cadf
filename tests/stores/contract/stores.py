"""The stores that the contract is tried on, each made by name on a place of its own."""

from pathlib import Path

from tiro.session.times import Clock, utc_now
from tiro.stores.files import FileStore
from tiro.stores.hybrid import HybridStore
from tiro.stores.memory import MemoryStore
from tiro.stores.redis import RedisStore
from tiro.stores.sqlite import SQLiteStore

Stored = MemoryStore | FileStore | SQLiteStore | RedisStore | HybridStore

NEVER = 1e6
"""A clean-up in the background that does not come."""
SHARED = ("files", "sqlite", "redis")
"""Stores that several processes share."""
LASTING = (*SHARED, "hybrid")
"""Stores that outlive the process."""
KINDS = ("memory", *LASTING)


def open_store(
    kind: str, folder: Path, redis_url: str, clock: Clock = utc_now, cleanup: float = NEVER
) -> Stored:
    """A store of this kind; two with the same folder hold the same sessions."""
    match kind:
        case "memory":
            return MemoryStore(cleanup, clock)
        case "files":
            return FileStore(folder / "files", cleanup, clock)
        case "sqlite":
            return SQLiteStore(folder / "store.db", cleanup, clock)
        case "redis":
            return RedisStore(redis_url, cleanup, clock, prefix=f"{folder}:")
        case _:
            front, back = MemoryStore(cleanup, clock), SQLiteStore(folder / "h.db", cleanup, clock)
            return HybridStore(front, back, cleanup_interval_seconds=cleanup)
