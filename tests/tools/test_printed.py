"""What a command prints: bounded in memory, shown as it comes, and always text (B51)."""

import pytest

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
