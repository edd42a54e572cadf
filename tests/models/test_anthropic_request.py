"""Requests in Anthropic's format, checked by the strict provider's own rules too."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.e2e.anthropic_contract import Given, anthropic_faults
from tests.models.test_openai_request import (
    MESSAGES,
    assistant,
    result,
    use,
    user,
)
from tests.models.wire import request
from tiro.models.anthropic_request import output_limit, to_wire_messages, to_wire_request
from tiro.models.model import ModelFacts, ModelRequest, ToolSchema
from tiro.models.request_parts import IMAGE_LEFT_OUT
from tiro.session.json_text import encode
from tiro.session.messages import Message
from tiro.session.provider_view import provider_view

OWN = "acme/m1"
TOOL = ToolSchema("read_file", "Read a file.", {"type": "object", "properties": {}})
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
CACHED = {"type": "ephemeral"}
THOUGHT = {"type": "thinking", "thinking": "hm \u2028é", "signature": "Eq+/=="}
REDACTED = {"type": "redacted_thinking", "data": "+/=="}


def wire(*messages: Message, own: str = OWN) -> list[dict[str, Any]]:
    return to_wire_messages(messages, own)


def body(asked: ModelRequest, **given: Any) -> dict[str, Any]:
    return to_wire_request(asked, OWN, 1000, **given)


def check_strict(asked: ModelRequest, *blocks: dict[str, Any]) -> None:
    faults = anthropic_faults(encode(body(asked)), [Given("m1", list(blocks))])
    assert faults == []


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def test_a_whole_request() -> None:
    asked = request(user("hi"), system="Be brief.", tools=[TOOL, TOOL], temperature=0.0, top_p=0.5)
    tool = {
        "name": "read_file",
        "description": "Read a file.",
        "input_schema": {"type": "object", "properties": {}},
    }
    assert body(asked) == {
        "model": "m1",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": CACHED}],
        "tools": [tool, tool],
        "messages": [{"role": "user", "content": [{**text("hi"), "cache_control": CACHED}]}],
        "stream": True,
        "temperature": 0.0,
        "top_p": 0.5,
    }


def test_options_are_sent_by_their_own_names_and_change_nothing_of_ours() -> None:
    """M5.3."""
    options = {"seed": 7, "messages": [], "stream": False, "temperature": 0.5, "max_tokens": 1}
    asked = request(user("hi"), temperature=1.0, options=options)
    assert body(asked) == {**body(request(user("hi"))), "seed": 7, "temperature": 0.5}


def test_what_is_refused_or_empty_is_not_sent() -> None:
    parts = {"top_p", "temperature", "cache_control", "tools"}
    asked = request(user("hi"), system=" \n", tools=[TOOL], temperature=0.5, top_p=0.5)
    assert body(asked, refused=parts) == {
        "model": "m1",
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": [text("hi")]}],
        "stream": True,
    }


def test_the_prefix_that_stays_is_marked_for_the_cache_and_nothing_else() -> None:
    """The marks of one step are inside the prefix of the next one."""
    history = [user("a"), assistant("b", use("1"), use("2")), result("1", "A"), result("2", "B")]
    asked = body(request(*history, system="S", tools=[TOOL]))
    marked = json.dumps(asked).count("cache_control")
    assert marked == 2
    assert asked["system"][-1]["cache_control"] == CACHED
    assert asked["messages"][-1]["content"][-1]["cache_control"] == CACHED
    assert body(request(user("a"), tools=[TOOL]))["tools"][-1]["cache_control"] == CACHED
    later = body(request(*history, assistant("c"), user("d"), system="S", tools=[TOOL]))
    for sent in (asked, later):
        for message in sent["messages"]:
            message["content"][-1].pop("cache_control", None)
    assert later["messages"][:3] == asked["messages"]


@pytest.mark.parametrize(
    ("asked", "facts", "limit"),
    [
        (7, ModelFacts(100, 50), 7),
        (None, ModelFacts(200_000, 32_000), 32_000),
        (None, ModelFacts(200_000, 64_000), 50_000),
        (None, ModelFacts(None, 64_000), 64_000),
        (None, ModelFacts(), 8192),
        (None, ModelFacts(4096, None), 1024),
        (None, ModelFacts(1, None), 1),
    ],
)
def test_the_output_limit_is_always_there(asked: int | None, facts: ModelFacts, limit: int) -> None:
    """What a request may take of the window and what an answer may take fit together."""
    assert output_limit(request(max_output_tokens=asked), facts) == limit


def test_results_come_first_in_the_one_message_after_their_uses() -> None:
    history = [
        user("go"),
        assistant("I look.", use("1"), use("2")),
        result("1", "A"),
        result("2", " ", is_error=True),
        user("and?"),
        assistant("x"),
        assistant("y"),
        user("b"),
        user("c"),
    ]
    answers = [
        {"type": "tool_result", "tool_use_id": "1", "content": "A"},
        {"type": "tool_result", "tool_use_id": "2", "content": "(no output)", "is_error": True},
        text("and?"),
    ]
    assert wire(*history) == [
        {"role": "user", "content": [text("go")]},
        {"role": "assistant", "content": [text("I look."), use("1"), use("2")]},
        {"role": "user", "content": answers},
        {"role": "assistant", "content": [text("x"), text("y")]},
        {"role": "user", "content": [text("b"), text("c")]},
    ]
    check_strict(request(*history))


def test_pictures_attachments_and_results_of_blocks() -> None:
    url = {"type": "url", "url": "https://e.test/a.png"}
    data = {"type": "url", "url": "data:image/jpeg;base64,iVBO"}
    odd = {"type": "base64", "media_type": "image/x-icon", "data": "iVBO"}
    pictures = [{"type": "image", "source": source} for source in (PNG, url, data, odd, {})]
    attachment = {"type": "attachment", "kind": "file", "path": "a.py", "text": "x"}
    shown = [text("see"), {"type": "image", "source": PNG}, {"type": "novel"}]
    history = [user(*pictures, attachment), assistant(use("1")), result("1", shown)]
    sent = wire(*history)
    assert sent[0]["content"] == [
        {"type": "image", "source": PNG},
        {"type": "image", "source": url},
        {"type": "image", "source": {**PNG, "media_type": "image/jpeg"}},
        text("[image]"),
        text("[image]"),
        text("[file a.py]\n```\nx\n```"),
    ]
    assert sent[2]["content"][0]["content"] == [
        text("see"), {"type": "image", "source": PNG}, text("[novel]"),
    ]  # fmt: skip
    check_strict(request(*history))
    without = json.dumps(body(request(*history), refused={"images"}))
    assert without.count(IMAGE_LEFT_OUT) == 6
    assert '"image"' not in without


# --- B35 and B61: thinking -----------------------------------------------------------------


def thought(*blocks: dict[str, Any], model: str | None = OWN) -> Message:
    return Message("assistant", list(blocks)).marked(model=model)


def test_b35_own_thinking_goes_back_byte_for_byte_in_its_order() -> None:
    blocks = [THOUGHT, REDACTED, {**THOUGHT, "signature": "b", "thinking": ""}, text("x"), use("1")]
    asked = request(user("a"), thought(*blocks), result("1", "A"))
    sent = body(asked)["messages"][1]["content"]
    assert sent == blocks
    check_strict(asked, *blocks[:3])


def test_b35_keys_in_another_order_are_the_same_block() -> None:
    turned = {key: THOUGHT[key] for key in reversed(THOUGHT)}
    sent = wire(user("a"), thought(turned, text("x")))[1]["content"][0]
    assert list(sent.items()) == list(THOUGHT.items())


@pytest.mark.parametrize("model", [None, "acme/m2", "other/m1", ""])
def test_b61_foreign_thinking_is_left_out_whole(model: str | None) -> None:
    history = [user("a"), thought(THOUGHT, REDACTED, text("x"), model=model), user("b")]
    before = copy.deepcopy([message.to_dict() for message in history])
    assert wire(*history)[1]["content"] == [text("x")]
    assert wire(user("a"), thought(THOUGHT, model=model), user("b")) == [
        {"role": "user", "content": [text("a"), text("b")]}
    ]
    assert [message.to_dict() for message in history] == before


@pytest.mark.parametrize("block", [
    {"type": "thinking", "thinking": "cut"},
    {"type": "thinking", "thinking": "cut", "signature": ""},
    {"type": "thinking", "thinking": "cut", "signature": None},
])  # fmt: skip
def test_b35_thinking_without_a_signature_is_never_sent(block: dict[str, Any]) -> None:
    assert wire(user("a"), thought(block, text("x")))[1]["content"] == [text("x")]


def test_thinking_that_was_refused_is_not_sent_again() -> None:
    asked = request(user("a"), thought(THOUGHT, REDACTED, text("x")), user("b"))
    assert body(asked, refused={"thinking"})["messages"][1]["content"] == [text("x")]


# --- any history ---------------------------------------------------------------------------

THOUGHTS = st.lists(st.sampled_from([THOUGHT, REDACTED]), max_size=2, unique_by=str)
ANY = st.one_of(
    MESSAGES,
    st.builds(
        lambda blocks, model: thought(*blocks, text("x"), use("t"), model=model),
        THOUGHTS,
        st.sampled_from([OWN, "acme/m2", None]),
    ),
)


@given(st.lists(ANY, max_size=12))
def test_the_view_of_any_history_passes_the_strict_provider(history: list[Message]) -> None:
    """B36, B61: ids, blank texts, pairs and order, whatever came before."""
    numbered = [
        Message(message.role, message.content, seq=seq, metadata=message.metadata)
        for seq, message in enumerate(history, 1)
    ]
    prompt = Message("user", "go on", seq=len(history) + 1)
    view = provider_view([*numbered, prompt], thinking=True)
    raw = encode(body(request(*view)))
    given = [Given("m1", [THOUGHT]), Given("m1", [REDACTED])] * (len(history) + 1)
    faults = anthropic_faults(raw, given)
    assert [fault for fault in faults if "in the order" not in fault] == []
