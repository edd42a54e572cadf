"""Which store holds the sessions that several servers share: its place names it."""

from collections.abc import Callable
from pathlib import Path

from tiro.stores.notices import Notice
from tiro.stores.shelf_manager import ShelfManager

ANSWER_SECONDS = 1.0
"""How long a Redis server is waited for while somebody waits for an answer of ours."""
DEFAULT_URL = "redis://127.0.0.1:6379/0"


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

    server = Server(place or DEFAULT_URL, answer_seconds=ANSWER_SECONDS, tries=1)
    directory = Path("/redis") / server.address.lstrip("/")
    return ShelfManager(server, directory, on_notice=on_notice, cache_directory=cache_directory)
