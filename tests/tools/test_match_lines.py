"""The process that searches lines: its frames, its cuts, and what happens when it is gone."""

import asyncio
import io
import json
import re
from typing import Any

import pytest

from tiro.errors import ToolError
from tiro.tools.match_lines import MAX_LINE_CHARS, cut, search, serve
from tiro.tools.matcher import Matcher


def frame(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def served(*frames: bytes) -> list[Any]:
    """What the process answers to these bytes."""
    target = io.BytesIO()
    serve(io.BytesIO(b"".join(frames)), target)
    answers, data = [], target.getvalue()
    while data:
        size = int.from_bytes(data[:4], "big")
        answers.append(json.loads(data[4 : 4 + size]))
        data = data[4 + size :]
    return answers


def order(pattern: str, *, ignore_case: bool = False, context: int = 0) -> bytes:
    given = {"pattern": pattern, "ignore_case": ignore_case, "context": context}
    return frame(json.dumps(given).encode())


def test_each_text_gets_its_lines() -> None:
    texts = ["a\nb\n", "é", ""]
    data = [text.encode() for text in texts]
    head = frame(json.dumps([len(one) for one in data]).encode())
    assert served(order("[bé]"), head + b"".join(data), head + b"".join(data)) == [
        {},
        [[[2, True, "b"]], [[1, True, "é"]], []],
        [[[2, True, "b"]], [[1, True, "é"]], []],
    ]


def test_broken_pattern_is_answered_and_ends_it() -> None:
    (answer,) = served(order("("), frame(b"[]"))
    assert "unterminated" in answer["error"]


def test_input_that_ends_at_once_ends_it() -> None:
    assert served() == []
    assert served(b"\0\0") == []


@pytest.mark.parametrize(
    ("pattern", "text", "context", "numbers"),
    [
        ("x", "x", 0, [1]),
        ("^$", "a\n\nb\n", 0, [2]),
        ("x", "a\nx\nb\nc", 1, [1, 2, 3]),
        ("x", "x\nx\na\na\nx", 1, [1, 2, 3, 4, 5]),
        ("$", "", 0, []),
        ("a\nb", "a\nb", 0, []),
    ],
)
def test_search(pattern: str, text: str, context: int, numbers: list[int]) -> None:
    assert [row[0] for row in search(re.compile(pattern), text, context)] == numbers


@pytest.mark.parametrize("start", [0, 99, 100, 101, 5000, 9000, 9_990])
def test_cut_keeps_the_match_in_sight(start: int) -> None:
    line = "a" * start + "needle" + "b" * (10_000 - start)
    shown = cut(line, start)
    assert "needle" in shown
    assert len(shown) <= MAX_LINE_CHARS + 2


def test_process_that_is_gone_is_told() -> None:
    async def scenario() -> None:
        async with Matcher("x", ignore_case=False, context=0) as matcher:
            process = matcher._process  # the test stands for whoever kills it
            assert process is not None
            process.kill()
            await process.wait()
            await matcher.search(["x" * 100_000])

    with pytest.raises(ToolError, match="ended unexpectedly"):
        asyncio.run(scenario())


def test_process_that_cannot_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with Matcher("x", ignore_case=False, context=0):
            raise AssertionError("it must not start")

    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(ToolError, match="ended unexpectedly"):
        asyncio.run(scenario())
