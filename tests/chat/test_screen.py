"""What the terminal chat tells besides the talk itself."""

import re
from typing import Any

import pytest

from tiro.agents.events import shown_result
from tiro.chat.screen import Screen, tokens_of
from tiro.screen_text import width, wrapped
from tiro.shown_turn import Screen as OneTurn


@pytest.mark.parametrize(
    ("usage", "ratio", "told"),
    [
        ({}, None, ""),
        ({}, 0.5, "50% of the window"),
        ({"inputTokens": 5, "cacheReadTokens": 1000, "outputTokens": 2, "costUsd": 0.5}, None,
         "1,005 tokens in (1,000 cached), 2 out, $0.5000"),
    ],
)  # fmt: skip
def test_what_a_turn_took(usage: dict[str, Any], ratio: float | None, told: str) -> None:
    """A turn that was stopped before its provider reported anything took nothing that is known."""
    nothing = {"inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 0, "costUsd": None}
    result = {"usage": {**nothing, **usage}, "contextSize": {"ratio": ratio}}
    assert tokens_of(result) == told


@pytest.mark.parametrize(
    ("evicted", "refused", "told"),
    [
        (3, None, "· 3 older messages left the window: 1,900 → 400 tokens\n"),
        (0, "The memo cannot be used: it is empty", "· The memo cannot be used: it is empty\n"),
    ],
)
def test_what_a_resize_tells(
    capsys: pytest.CaptureFixture[str], evicted: int, refused: str | None, told: str
) -> None:
    """Why the memo was not brought up to date is said, and nothing about no messages."""
    sizes = {"tokensBefore": 1900, "tokensAfter": 400}
    event = {"type": "resize", "evicted": evicted, "memoRefused": refused, **sizes}
    Screen().hear("tiro/turn/event", {"sessionId": "s", **event})
    assert capsys.readouterr().err == told


def test_nothing_hides_in_a_question_nor_forges_a_line_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    preview = "--- a\u202e.py\n+pay\u200bpal\r\u2028+x\x0b\x1b[2K\n"
    use = {"name": "edit_file", "input": {"path": "a"}}
    asked = {"agent": "build\u200b", "effect": "write", "rule": "edit: *\x07 ask", "toolUse": use}
    Screen().question({**asked, "preview": preview, "always": ["edit: a\u2066"]})
    assert capsys.readouterr().err.splitlines() == [
        "· build⟨U+200B⟩: edit_file – write, asked because of edit: *␇ ask",
        "  --- a⟨U+202E⟩.py",
        "  +pay⟨U+200B⟩pal␍⟨U+2028⟩+x␋␛[2K",
        "· [a]lways adds to this session: edit: a⟨U+2066⟩",
    ]


@pytest.mark.parametrize("cells", [1, 5, 12, 40])
def test_lines_break_between_words_and_lose_none(cells: int) -> None:
    """A wide word counts twice; one that is too wide by itself stays whole."""
    text = "· the 日本語 help lists\n  two   columns and/a/path/that/is/long\n\nend "
    shown = wrapped(text, cells, 2)
    assert shown.split() == text.split()
    for line in shown.split("\n"):
        assert width(line) <= cells or len(line.split()) == 1
    assert wrapped("one two", 5, 4) == "one\n  two", "the indent leaves room for words"
    assert wrapped(text, 200, 2) == text


def test_of_a_long_output_both_ends_are_shown_and_how_much_lies_between(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is the middle is not shown as its end, and a failure is none that is done."""
    screen = Screen()
    content = "".join(f"{n}\n" for n in range(100_000)) + "[exit code 2]"
    shown = shown_result("c1", content, is_error=False, seq=7)
    use = {"id": "c1", "name": "run_command", "input": {"command": "count"}}
    for status in ("proposed", "running", "done"):
        event = {"type": "toolUse", "status": status, "toolUse": use, "sessionId": "s"}
        screen.hear("tiro/turn/event", event)
    result = {"toolUseId": "c1", "isError": False, "content": shown.content, "seq": 7}
    result |= {"end": shown.end, "leftOut": shown.left_out}
    screen.hear("tiro/turn/event", {"type": "toolResult", "sessionId": "s", **result})
    lines = capsys.readouterr().err.splitlines()
    assert lines[:4] == ["· run_command count: failed, exit code 2", "  0", "  1", "  2"]
    told = re.fullmatch(r"  … ([\d,]+) characters between; .*", lines[4])
    assert told is not None
    assert lines[5:] == [*(f"  {n}" for n in range(99_994, 100_000)), "  [exit code 2]"]
    assert screen.output_seq == 7
    assert int(told[1].replace(",", "")) > 580_000


def test_a_failed_command_is_told_where_one_question_is_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    content = "no\n[ended by the signal SIGTERM]\n[still running in the background: process 7; x]"
    for name, told in (("run_command", "·   ended by the signal SIGTERM\n"), ("read_file", "")):
        screen = OneTurn()
        use = {"id": "c1", "name": name, "input": {}}
        screen.show({"type": "toolUse", "status": "running", "toolUse": use})
        result = {"type": "toolResult", "toolUseId": "c1", "isError": False, "content": content}
        screen.show(result)
        assert capsys.readouterr().err == f"· {name}\n{told}"
