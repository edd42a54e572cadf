"""The row about search: many sessions, against reading every file for the same word."""

import random
import tempfile
from pathlib import Path

from tests.bench.row import Row, in_words, medians, timed
from tests.sizes import sized
from tiro.session.json_text import encode
from tiro.stores.manager import SessionManager
from tiro.stores.search import Search

SESSIONS = sized(fast=500, normal=1_000, long=10_000)
MESSAGES = sized(fast=20, normal=20, long=100)
"""In each session, of 1 kB: 20 MB by default, 1 GB with TIRO_TEST_SIZE=long."""
WORDS = 50_000
BAR = "under 100 ms at 10,000 sessions, 1 GB"


def rows() -> list[Row]:
    """The search for words of three kinds, when the index is up to date."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "sessions"
        directory.mkdir()
        bytes_written = _write_sessions(directory)
        manager = SessionManager(directory, cache_directory=Path(folder) / "cache")
        search = Search(manager)
        first = timed(lambda: search.find("once", 20))
        what = f"search {SESSIONS:,} sessions, {bytes_written / 1e6:,.0f} MB"
        rows = [
            _row(f"{what}: {kind}", search, query, directory)
            for kind, query in (
                ("a rare word", "rareword"),
                ("common words", "w0 w1 w2"),
                ("a phrase", '"w0 w1"'),
            )
        ]
        search.close()
        manager.close()
    return [*rows, Row(f"{what}: the first time", in_words(first), "", "", "no bar")]


def _row(what: str, search: Search, query: str, directory: Path) -> Row:
    word = query.strip('"').split()[0].encode()
    ours, plain = medians(
        lambda: search.find(query, 20),
        lambda: [word in path.read_bytes() for path in directory.glob("*.json")],
        5,
    )
    baseline = f"{in_words(plain)} (reading each)"
    return Row(what, in_words(ours), baseline, f"{ours / plain:.2f} x", BAR)


def _write_sessions(directory: Path) -> int:
    """Sessions of words as common as in a language; the bytes of all."""
    chance = random.Random(1)
    shares = [1 / rank for rank in range(1, WORDS + 1)]
    words = chance.choices([f"w{n}" for n in range(WORDS)], shares, k=1_000_000)
    written = 0
    for n in range(SESSIONS):
        rows = []
        for seq in range(1, MESSAGES + 1):
            start = chance.randrange(len(words) - 250)
            text = " ".join(words[start : start + 250])
            minute, second = divmod(n * MESSAGES + seq, 60)
            day, minute = divmod(minute, 1440)
            stamp = f"2025-{day // 28 % 12 + 1:02}-{day % 28 + 1:02}T{minute // 60:02}"
            stamp += f":{minute % 60:02}:{second:02}.000Z"
            rows.append({"role": "user", "content": text, "seq": seq, "timestamp": stamp})
        if n % 1000 == 7:
            rows[0]["content"] = "rareword"
        fields = {"id": f"session-{n:05}", "updated_at": stamp, "timestamp": stamp}
        data = encode({**fields, "messages": rows})
        written += (directory / f"session-{n:05}.json").write_bytes(data)
    return written
