"""Show, to the letter (protocol section 6, M2.10), and the statistics (M7.4)."""

from typing import Any

import pytest

from tests.session.histories import result, says, user, uses
from tiro import Message, Session
from tiro.session.transcript import first_line, plain_text


def check(messages: list[Message], *lines: str) -> None:
    """The session with these messages shows these lines under the heading."""
    session = Session()
    for message in messages:
        session.append_message(message)
    assert session.summarize() == "\n".join(["Session Summary:", "", *lines])


def test_an_empty_session_shows_nothing() -> None:
    """M2.10."""
    assert Session().summarize() is None


def test_the_example_of_the_protocol() -> None:
    """Section 6."""
    check(
        [
            user("Find all .el files"),
            uses("a", text="I'll search for .el files using glob."),
            result("a", "file1.el\nfile2.el\nfile3.el"),
            says("I found 3 Emacs Lisp files."),
        ],
        "[USER] Find all .el files",
        "[ASSISTANT] I'll search for .el files using glob.",
        "[TOOL] tool_use: glob",
        "[TOOL] tool_result: file1.el\\nfile2.el\\nfile3.el",
        "[ASSISTANT] I found 3 Emacs Lisp files.",
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 77 + "..."),
        ("🙂" * 81, "🙂" * 77 + "..."),
        ("a\r\nb\rc\nd", "a\\nb\\nc\\nd"),
        ("\n" * 40, "\\n" * 40),
        ("\n" * 41, ("\\n" * 41)[:77] + "..."),
    ],
)
def test_line_breaks_are_shown_before_the_cut(text: str, shown: str) -> None:
    """Section 6: up to 80 code points stay whole, longer ones are the first 77 and three dots."""
    check([user(text)], f"[USER] {shown}")


@pytest.mark.parametrize(
    ("message", "lines"),
    [
        (uses("a", "b"), ["[TOOL] tool_use: glob", "[TOOL] tool_use: glob"]),
        (Message("system", "be kind"), ["[SYSTEM] be kind"]),
        (Message("assistant", [{"type": "thinking", "thinking": "hm"}]), []),
        (says(""), []),
        (
            Message("user", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
            ["[USER] a\\nb"],
        ),
        (
            Message(
                "user",
                [
                    {"type": "text", "text": "see"},
                    {"type": "image", "source": {"type": "url", "url": "x"}},
                    {"type": "hologram"},
                    {"type": "attachment", "kind": "file", "text": "long"},
                ],
            ),
            ["[USER] see\\n[image]\\n[hologram]\\n[attachment]"],
        ),
        (
            Message("assistant", "", tool_calls=[{"id": "k", "function": {"name": "f"}}]),
            ["[TOOL] tool_use: f"],
        ),
    ],
)
def test_each_kind_of_message(message: Message, lines: list[str]) -> None:
    """Section 6."""
    check([message], *lines)


def test_only_the_newest_twenty_messages_are_shown() -> None:
    """Messages, not lines."""
    messages = [uses(str(n), text=str(n)) for n in range(25)]
    session = Session()
    for message in messages:
        session.append_message(message)
    text = session.summarize() or ""
    assert text.count("\n") == 1 + 40
    assert "[ASSISTANT] 5\n" in text
    assert "[ASSISTANT] 4\n" not in text


def test_statistics_count_roles_and_tools() -> None:
    """M7.4, protocol section 3."""
    session = Session(max_history=3)
    for message in (user("old"), uses("a", "b"), result("a"), result("b")):
        session.append_message(message)
    counted = session.statistics()
    assert (counted.user, counted.assistant, counted.tool, counted.system) == (0, 1, 2, 0)
    assert counted.tool_uses == {"glob": 2}
    assert counted.turns == 1


def test_plain_text_names_the_roles() -> None:
    """M7.5."""
    assert plain_text([user("a"), says("b")]) == "[user] a\n\n[assistant] b"


def test_plain_text_cuts_nothing() -> None:
    """Uses come with their input and attachments by their path; no line is shortened."""
    attached = {"type": "attachment", "kind": "file", "path": "/a.txt", "text": "secret"}
    long = "x" * 200 + "\n" + "y" * 200
    messages = [
        Message("user", [{"type": "text", "text": long}, attached]),
        uses("a", text="Looking."),
        result("a", long),
    ]
    assert plain_text(messages).split("\n\n") == [
        f"[user] {long}\n[attachment /a.txt]",
        '[assistant] Looking.\ntool_use: glob {"n":"a"}',
        f"[tool] tool_result: {long}",
    ]


@pytest.mark.parametrize(
    ("content", "title"),
    [("  \nHello\nworld", "Hello"), ("x" * 60, "x" * 49 + "…"), ("", None)],
)
def test_a_title_is_the_first_line_of_the_first_prompt(content: Any, title: str | None) -> None:
    """`titles: first_line`: 50 characters."""
    assert first_line([says("no"), user(content)]) == title
