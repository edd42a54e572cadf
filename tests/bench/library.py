"""Rows about the library and the files: add, load, list."""

import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from agents import SQLiteSession

from tests.bench.messages import message
from tests.bench.row import Row, in_words, medians, ratio_row, timed
from tiro import Session
from tiro.stores.manager import SessionManager

ADDS = 1_500
FEW, MANY = 100, 100_000
FLAT_SAMPLE = 2_000
LOADED_MESSAGES = 10_000
LISTED_SESSIONS = 10_000
RESIZED_MESSAGES = 10_000


def rows() -> list[Row]:
    """All rows of this module."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        return [*adds(root), flat(root), load(root), listing(root), resizing()]


def adds(root: Path) -> list[Row]:
    """One message of 1 kB added and in the journal, with and without fsync."""
    plain, synced, sqlite = asyncio.run(_add_seconds(root))
    against = "SQLiteSession.add_items"
    return [
        ratio_row("add one message, survives kill -9", plain, sqlite, 0.25, against),
        ratio_row("add one message, with fsync", synced, sqlite, 1.0, against),
    ]


def flat(root: Path) -> Row:
    """Whether an add costs the same late as early: to two sessions in turn."""
    with _filled(root / "late", MANY) as late, _filled(root / "early", FEW) as early:
        seconds = medians(late, early, FLAT_SAMPLE)
    return ratio_row(f"add at {MANY:,} messages", *seconds, 1.2, f"add at {FEW} messages")


@contextmanager
def _filled(directory: Path, count: int) -> Iterator[Callable[[], object]]:
    """A call that adds to a session which has so many messages."""
    manager, session = _new(directory, "turn")
    append = _appender(session)
    for _ in range(count):
        append()
    yield append
    manager.close()


def load(root: Path) -> Row:
    """A session with many messages against `json.loads` of the same bytes."""
    manager, session = _new(root / "load", "never")
    for n in range(LOADED_MESSAGES):
        session.append_message(message(n))
    path = Path(manager.save(session))
    manager.close()

    def load_only() -> float:
        reader = SessionManager(path.parent)
        seconds = timed(lambda: reader.load(path))
        reader.close()
        return seconds

    load_only()
    pairs = [(load_only(), timed(lambda: json.loads(path.read_bytes()))) for _ in range(7)]
    mine, plain = (statistics.median(times) for times in zip(*pairs, strict=True))
    return ratio_row(f"load {LOADED_MESSAGES:,} messages", mine, plain, 1.0, "json.loads")


def listing(root: Path) -> Row:
    """The second list of many saved sessions against opening and reading each file."""
    directory = root / "list"
    directory.mkdir()
    for n in range(LISTED_SESSIONS):
        (directory / f"session-{n:05}.json").write_text(_small_session(n))
    manager = SessionManager(directory)
    first = timed(lambda: manager.list(limit=100))
    _, total = manager.list(limit=100)
    assert total == LISTED_SESSIONS
    ours, plain = medians(
        lambda: manager.list(limit=100),
        lambda: [path.read_bytes() for path in directory.glob("*.json")],
        7,
    )
    manager.close()
    row = ratio_row(
        f"list {LISTED_SESSIONS:,} sessions, 2nd call", ours, plain, 0.5, "reading each"
    )
    return Row(row.what, f"{row.ours} (1st: {in_words(first)})", row.baseline, row.figure, row.bar)


def resizing() -> Row:
    """A lite resize of a long session against writing its messages as JSON."""
    messages = [message(n) for n in range(RESIZED_MESSAGES)]

    def resize() -> float:
        session = Session(max_history=RESIZED_MESSAGES)
        for each in messages:
            session.append_message(each)
        session.set_limit(messages=RESIZED_MESSAGES // 2, chars=0)
        seconds = timed(lambda: session.resize("lite"))
        assert len(session.messages) == RESIZED_MESSAGES // 2
        return seconds

    pairs = [(resize(), timed(lambda: json.dumps(messages))) for _ in range(5)]
    mine, plain = (statistics.median(times) for times in zip(*pairs, strict=True))
    return ratio_row(f"lite resize of {RESIZED_MESSAGES:,} messages", mine, plain, 10, "json.dumps")


Fsync = Literal["message", "turn", "never"]


async def _add_seconds(root: Path) -> tuple[float, float, float]:
    """Medians of our adds (plain, with fsync) and of the baseline's, measured in turn."""
    baseline = SQLiteSession("bench", root / "baseline.sqlite")
    ours = [_new(root / "plain", "turn"), _new(root / "synced", "message")]
    appenders = [_appender(session) for _, session in ours]
    seconds: tuple[list[float], list[float], list[float]] = ([], [], [])
    for n in range(ADDS):
        for append, times in zip(appenders, seconds, strict=False):
            times.append(timed(append))
        items: list[Any] = [message(n)]
        began = time.perf_counter()
        await baseline.add_items(items)
        seconds[2].append(time.perf_counter() - began)
    for manager, session in ours:
        assert manager.is_stored(session)
        manager.close()
    baseline.close()
    plain, synced, sqlite = (statistics.median(times) for times in seconds)
    return plain, synced, sqlite


def _new(directory: Path, fsync: Fsync) -> tuple[SessionManager, Session]:
    manager = SessionManager(directory, fsync=fsync)
    return manager, manager.create(max_history=10 * MANY)


def _appender(session: Session) -> Callable[[], object]:
    """A call that adds the next message; making it is not timed, for it is no part of an add."""
    ready = [message(n) for n in range(100)]
    count = iter(range(10 * MANY))
    return lambda: session.append_message(ready[next(count) % 100])


def _small_session(n: int) -> str:
    stamp = f"2025-01-{n % 28 + 1:02}T12:{n // 60 % 60:02}:{n % 60:02}.000Z"
    messages = [{**message(i, 200), "seq": i + 1} for i in range(10)]
    fields = {"schema_version": 1, "id": f"session-{n:05}", "title": f"Talk {n}"}
    return json.dumps({**fields, "updated_at": stamp, "timestamp": stamp, "messages": messages})
