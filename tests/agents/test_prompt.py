"""The system prompt (U5, N5) and the request around it."""

from typing import Any

import pytest

from tests.fakes import ScriptedModel, fake_tool
from tiro.agents.agent_info import AgentInfo
from tiro.agents.prompt import (
    build_request,
    build_system_prompt,
    request_size,
    session_prompt,
)
from tiro.agents.turn_input import schemas_of
from tiro.session.core import Core
from tiro.session.front import MOST_TOKENS
from tiro.session.messages import Message
from tiro.session.shown import SUMMARY_SENTENCE

MEMO = '## Session Memo\n\n{\n  "k": "é"\n}'
SUMMARY = f"## Conversation Summary\n\n{SUMMARY_SENTENCE}\n\nEarlier."


@pytest.mark.parametrize("prompt", ["", "Be brief.", " odd \n\n\n", "\ufeffx"])
@pytest.mark.parametrize("memo", [None, {}, {"last_resize": {"type": "lite"}}])
@pytest.mark.parametrize("summary", [None, ""])
def test_nothing_to_add_leaves_the_prompt_byte_for_byte(
    prompt: str, memo: Any, summary: str | None
) -> None:
    """N5.2, U5.1."""
    assert build_system_prompt(prompt, memo, summary) == prompt


@pytest.mark.parametrize(
    ("memo", "summary", "expected"),
    [
        ({"k": "é"}, None, f"P\n\n{MEMO}"),
        ({"k": "é", "last_resize": {"turn": 3}}, None, f"P\n\n{MEMO}"),
        (None, "Earlier.", f"P\n\n{SUMMARY}"),
        ({"k": "é"}, "Earlier.", f"P\n\n{MEMO}\n\n{SUMMARY}"),
    ],
)
def test_memo_and_summary_follow_the_prompt(memo: Any, summary: Any, expected: str) -> None:
    """U5.1, U5.2, N5.1: the summary at the very end."""
    assert build_system_prompt("P", memo, summary) == expected


def test_equal_memos_read_the_same() -> None:
    """U5.1: deterministic; N5.3: so that prompt caches hold."""
    one = build_system_prompt("P", {"a": 1, "b": {"x": 1, "y": 2}})
    assert one == build_system_prompt("P", {"b": {"y": 2, "x": 1}, "a": 1})


@pytest.mark.parametrize("memo", [{1: "a", "b": 2}, {"t": object()}, ["a list"], "text"])
def test_memo_of_any_kind_is_shown(memo: Any) -> None:
    assert "## Session Memo" in build_system_prompt("P", memo)


def test_standing_instructions_stand_between_prompt_and_memo() -> None:
    """U3.9, U2.8: read from the full history, so that evicting never drops them."""
    session = Core()
    session.max_history = 1
    session.append(Message("system", "Rule one."))
    session.append(Message("developer", "Rule two."))
    session.append(Message("user", "hi"))
    session.memo, session.summary = {"k": "é"}, "Earlier."
    expected = f"P\n\nRule one.\n\nRule two.\n\n{MEMO}\n\n{SUMMARY}"
    assert session_prompt(session, "P") == expected


def test_size_counts_each_part_and_system_messages_once() -> None:
    session = Core()
    session.append(Message("system", "Rule " * 50))
    session.append(Message("user", "hello"))
    session.memo, session.summary = {"k": "v"}, "Earlier."
    size = request_size(session, "P", schemas_of([fake_tool()]), draft="x" * 99, context_window=999)
    parts = size.breakdown
    assert size.tokens == sum(getattr(parts, name) for name in parts.__struct_fields__)
    assert 40 < parts.system < 100
    assert min(parts.tools, parts.memo, parts.summary, parts.user) > 0
    assert size.context_window == 999
    assert size.tokens > request_size(session, "P").tokens


def test_what_the_view_puts_in_front_is_counted() -> None:
    """U3.2: of the oldest answer's prompt a part is sent from the archive; a later one came."""
    session = Core()
    session.max_history = 2
    for role, text in (("user", "word " * 500), ("assistant", "yes"), ("user", "go on")):
        session.append(Message(role, text))
    request = build_request(session, ScriptedModel(name="p/a"), AgentInfo(name="x"), "P")
    assert len(request.messages) == 3
    assert 250 < request_size(session, "P").tokens <= MOST_TOKENS + 20


def test_request_is_a_view_and_changes_nothing() -> None:
    session = Core()
    session.append(Message("user", "hi"))
    before = session.snapshot()
    request = build_request(session, ScriptedModel(name="p/a/b"), AgentInfo(name="x"), "P")
    assert request.model == "a/b"
    assert request.messages[0].content == [{"type": "text", "text": "hi"}]
    assert session.snapshot() == before
