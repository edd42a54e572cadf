"""Which store holds the sessions that several servers share: its place names it."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tiro.session.times import Clock, utc_now
from tiro.stores.notices import Notice
from tiro.stores.shelf_manager import ShelfManager
from tiro.stores.shelf_verify import RawShelf

ANSWER_SECONDS = 1.0
"""How long a Redis server is waited for while somebody waits for an answer of ours."""
DEFAULT_URL = "redis://127.0.0.1:6379/0"


def place_of(kind: str, path: str | None, url: str | None, directory: Path) -> str | Path:
    """Where the settings of a store say that sessions are; `directory` is that of files."""
    if kind == "redis":
        return url or DEFAULT_URL
    return directory.parent / Path(path or "sessions.db").expanduser()


def manager_of(
    place: str | Path, on_notice: Callable[[Notice], None], cache_directory: Path | None
) -> ShelfManager:
    """The manager of the sessions in this SQLite file, or on the Redis server at this address.

    Opens nothing: what is out of reach is told when something is to be stored.
    """
    if isinstance(place, Path):
        from tiro.stores.sqlite import Database

        return ShelfManager(
            Database(place), place, on_notice=on_notice, cache_directory=cache_directory
        )
    from tiro.stores.redis import Server

    server = Server(place, answer_seconds=ANSWER_SECONDS, tries=1)
    directory = Path("/redis") / server.address.lstrip("/")
    return ShelfManager(server, directory, on_notice=on_notice, cache_directory=cache_directory)


@contextmanager
def raw_shelf(place: str | Path, clock: Clock = utc_now) -> Iterator[RawShelf]:
    """What lies there, unread: to be looked at for damage."""
    if isinstance(place, Path):
        from tiro.stores.sqlite import Database
        from tiro.stores.sqlite_raw import RawRows

        database = Database(place, clock)
        with closing(database):
            yield RawRows(database)
        return
    from tiro.stores.redis import Server
    from tiro.stores.redis_raw import RawKeys

    server = Server(place, clock)
    with closing(server):
        yield RawKeys(server)
