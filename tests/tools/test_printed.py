"""What a command prints: bounded in memory, shown as it comes, and always text (B51)."""

import asyncio
import errno
import tracemalloc
from typing import Any

import pytest

from tiro.tools.long_output import PIECE_CHARS, LongOutput
from tiro.tools.printed import MAX_KEPT_BYTES, MAX_SHOWN_CHARS, Printed, as_text


def collect(*pieces: bytes) -> tuple[Printed, list[str]]:
    """What was printed in these pieces, and what was shown of it; the clock stands still."""
    shown: list[str] = []
    printed = Printed(shown.append, now=lambda: 0.0)
    for piece in pieces:
        printed.add(piece)
    return printed, shown


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_character_may_come_in_pieces(size: int) -> None:
    data = "aé漢\U0001f642\n".encode()
    printed, shown = collect(*(data[i : i + size] for i in range(0, len(data), size)))
    assert printed.text() == "".join(shown) == data.decode()


def test_bytes_that_are_no_utf8_are_latin_1_or_visible_marks() -> None:
    assert as_text("café £".encode("latin-1")) == "café £"
    assert as_text(b"a\x80\xff\x9d" + "漢".encode()) == "a\ufffdÿ\ufffd漢"


def test_a_flood_keeps_its_beginning_and_its_end_and_tells_the_rest() -> None:
    line = "漢字 %07d\n"
    whole = "".join(line % number for number in range(500_000))
    data = whole.encode()
    printed, shown = collect(*(data[i : i + 65536] for i in range(0, len(data), 65536)))
    text = printed.text()
    assert len(text.encode()) < MAX_KEPT_BYTES + 100
    head, _, tail = text.partition("\n[…")
    assert whole.startswith(head)
    assert whole.endswith(tail.partition("…]\n")[2])
    assert f"{len(data):,} bytes" in text
    assert "\ufffd" not in text, "no character was cut through"
    assert len("".join(shown)) < MAX_SHOWN_CHARS + 2000


def test_after_the_shown_part_only_samples_are_shown() -> None:
    shown: list[str] = []
    times = iter([0.0, 0.0, 0.1, 0.2, 1.5, 1.5])
    printed = Printed(shown.append, now=lambda: next(times))
    printed.add(b"x" * MAX_SHOWN_CHARS)
    for name in (b"one ", b"two ", b"three ", b"four "):
        printed.add(name)
    assert [text.strip() for text in shown[1:]] == ["[…]\none", "[…]\nfour"]


class Collector:
    """Keeps an output in memory; `broken` is the piece at which the disk refuses."""

    def __init__(self, broken: int | None = None) -> None:
        self.pieces: list[str] = []
        self._broken = broken

    def add(self, text: str) -> None:
        if len(self.pieces) == self._broken:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.pieces.append(text)

    def end(self) -> list[dict[str, Any]]:
        return [{"chars": sum(map(len, self.pieces))}]


def printed_whole(data: bytes, keeper: Collector | None, step: int = 65_521) -> tuple[str, Any]:
    """What is held of data that is printed in pieces, and where all of it is."""

    async def end() -> tuple[str, Any]:
        printed = Printed(lambda text: None, whole=LongOutput(lambda: keeper, MAX_BYTES))
        for at in range(0, len(data), step):
            behind = printed.add(data[at : at + step])
            if behind is not None:
                await behind
        return await printed.end(["[exit code 0]"])

    return asyncio.run(end())


MAX_BYTES = 6_000_000
UNIT = "漢字 é\n".encode()  # of 10 bytes
BOUND = MAX_BYTES // 10
HALF = MAX_KEPT_BYTES // 20


@pytest.mark.parametrize(
    ("units", "lost"),
    [
        (MAX_KEPT_BYTES // 10, None),
        (MAX_KEPT_BYTES // 10 + 1, 0),
        (BOUND, 0),
        (BOUND + 1, 0),
        (BOUND + HALF, 0),
        (BOUND + HALF + 1, 10),
    ],
)
def test_more_than_is_held_is_put_away_whole_up_to_a_bound(units: int, lost: int | None) -> None:
    """U9.10: to the byte, and what is lost beyond it is told."""
    keeper = Collector()
    data = UNIT * units
    held, whole = printed_whole(data, keeper)
    kept = "".join(keeper.pieces)
    assert held.endswith("\n[exit code 0]")
    assert len(held) < MAX_KEPT_BYTES
    assert ("kept nowhere" in held) == bool(lost)
    assert bool(whole) == (lost is not None)
    if lost is None:
        assert (kept, held) == ("", data.decode() + "[exit code 0]")
    elif not lost:
        assert kept == data.decode() + "[exit code 0]"
    else:
        assert kept.startswith((UNIT * BOUND).decode() + f"\n[… {lost} of ")
        assert kept.count("漢") == units - 1
        assert kept.endswith(f"{lost} in the middle are kept nowhere]\n[exit code 0]")


@pytest.mark.parametrize("keeper", [None, Collector(0), Collector(1)])
def test_what_nobody_can_keep_is_told(keeper: Collector | None) -> None:
    held, whole = printed_whole(b"y\n" * 3_000_000, keeper)
    assert whole == ()
    assert "[of the 6,000,000 bytes that it printed, 2,000,000 in the middle are kept now" in held


def test_what_is_put_away_is_not_held() -> None:
    """However much it is: a slow disk slows the command down."""
    piece = b"y\n" * 32_768

    class Slow(Collector):
        def add(self, text: str) -> None:
            self.pieces.append("")
            assert len(text) < 6 * PIECE_CHARS

    async def printed(count: int) -> int:
        flood = Printed(lambda text: None, whole=LongOutput(Slow))
        tracemalloc.start()
        try:
            for _ in range(count):
                if (behind := flood.add(piece)) is not None:
                    await behind
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert asyncio.run(printed(900)) < asyncio.run(printed(200)) * 1.5
