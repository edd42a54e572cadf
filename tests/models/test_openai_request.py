"""Requests in OpenAI's format, checked by the strict provider's own rules too."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.e2e.contract import openai_faults
from tests.models.wire import request
from tiro.models.model import ModelRequest, ToolSchema, attachment_text
from tiro.models.openai_request import to_wire_messages, to_wire_request
from tiro.models.request_parts import to_wire_tool_ids
from tiro.session.json_text import encode
from tiro.session.messages import AttachmentBlock, Message, ToolUseBlock
from tiro.session.provider_view import provider_view


def user(*blocks: Any) -> Message:
    return Message("user", [_block(block) for block in blocks])


def assistant(*blocks: Any) -> Message:
    return Message("assistant", [_block(block) for block in blocks])


def use(tool_id: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": tool_id, "name": "read_file", "input": {"path": "a"}, **given}


def result(tool_id: str, content: Any, **given: Any) -> Message:
    block = {"type": "tool_result", "tool_use_id": tool_id, "content": content, **given}
    return Message("tool", [block])


def _block(block: Any) -> dict[str, Any]:
    return {"type": "text", "text": block} if isinstance(block, str) else dict(block)


def wire(*messages: Message, system: str = "") -> list[dict[str, Any]]:
    return to_wire_messages(system, messages)


def check_strict(asked: ModelRequest) -> None:
    assert openai_faults(encode(to_wire_request(asked))) == []


def test_a_whole_request() -> None:
    schema = {"type": "object", "properties": {}}
    asked = request(
        user("hi"),
        system="Be brief.",
        tools=[ToolSchema("read_file", "Read a file.", schema)],
        max_output_tokens=100,
        temperature=0.0,
        top_p=0.5,
        response_schema=schema,
    )
    assert to_wire_request(asked) == {
        "model": "m1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read_file",
                    "description": "Read a file.",
                    "parameters": schema,
                },
            }
        ],
        "max_tokens": 100,
        "temperature": 0.0,
        "top_p": 0.5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": schema},
        },
    }
    check_strict(asked)


def test_options_are_sent_by_their_own_names_and_change_nothing_of_ours() -> None:
    """M5.3."""
    options = {"seed": 7, "messages": [], "stream": False, "temperature": 0.5, "max_tokens": 1}
    asked = request(user("hi"), temperature=1.0, options=options)
    more = {"seed": 7, "temperature": 0.5}
    assert to_wire_request(asked) == {**to_wire_request(request(user("hi"))), **more}
    assert "temperature" not in to_wire_request(asked, refused={"temperature"})


def test_what_is_not_set_is_not_sent() -> None:
    assert set(to_wire_request(request(user("hi")))) == {
        "model",
        "messages",
        "stream",
        "stream_options",
    }


def test_tool_uses_and_results() -> None:
    messages = [
        user("go"),
        assistant("I look.", use("1"), use("2")),
        result("1", "A"),
        result("2", [{"type": "text", "text": "B"}], is_error=True),
        assistant(use("3")),
        result("3", ""),
    ]
    function = {"name": "read_file", "arguments": '{"path":"a"}'}
    assert wire(*messages) == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "1", "type": "function", "function": function},
                {"id": "2", "type": "function", "function": function},
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "A"},
        {"role": "tool", "tool_call_id": "2", "content": "Error: B"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "3", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "3", "content": "(no output)"},
    ]
    check_strict(request(*messages))


def test_text_is_a_string_and_images_are_parts() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
    url = {"type": "url", "url": "https://e.test/a.png"}
    messages = wire(
        user("a", "b"),
        user("see", {"type": "image", "source": source}, {"type": "image", "source": url}),
    )
    assert messages == [
        {"role": "user", "content": "a\n\nb"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
                {"type": "image_url", "image_url": {"url": "https://e.test/a.png"}},
            ],
        },
    ]


def test_images_in_results_follow_all_results_of_the_step() -> None:
    """Between a call and its result nothing may stand, and a result holds only text here."""
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"},
    }
    messages = wire(
        user("go"),
        assistant(use("1"), use("2")),
        result("1", [{"type": "text", "text": "a.png"}, image]),
        result("2", "B"),
        user("and now?"),
    )
    assert [message["role"] for message in messages] == [
        "user", "assistant", "tool", "tool", "user", "user",
    ]  # fmt: skip
    assert messages[2]["content"] == "a.png\n[image]"
    assert messages[4]["content"] == [
        {"type": "text", "text": "The image in the result of the tool call 1:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
    ]


def test_attachments_are_text() -> None:
    span = {"start": {"line": 2, "character": 0}, "end": {"line": 4, "character": 1}}
    attachment = {"type": "attachment", "kind": "selection", "path": "/w/a.py", "text": "x = 1"}
    assert wire(user("explain", {**attachment, "range": span})) == [
        {
            "role": "user",
            "content": "explain\n\n[selection /w/a.py, lines 3-5]\n```\nx = 1\n```",
        }
    ]


@pytest.mark.parametrize("text", ["plain", "```py\nx\n```", "````", "", "a`b"])
def test_the_fence_around_an_attachment_is_not_in_it(text: str) -> None:
    rendered = attachment_text(AttachmentBlock("file", text, "a.md"))
    head, fence, *lines = rendered.split("\n")
    assert head == "[file a.md]"
    assert lines[-1] == fence
    assert fence not in text
    assert "\n".join(lines[:-1]) == text


@pytest.mark.parametrize("span", [None, {}, {"start": None}, {"start": {"line": "1"}}, {"end": {}}])
def test_a_range_that_is_none_is_left_out(span: Any) -> None:
    assert attachment_text(AttachmentBlock("text", "x", None, span)).startswith("[text]\n")


def test_thinking_is_not_sent_and_unknown_blocks_are_named() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    redacted = {"type": "redacted_thinking", "data": "d"}
    assert wire(user({"type": "chart", "x": 1}), assistant(thinking, redacted, "a")) == [
        {"role": "user", "content": "[chart]"},
        {"role": "assistant", "content": "a"},
    ]


def test_lone_surrogates_are_cleaned() -> None:
    """B12: the body is valid for a strict parser."""
    asked = request(
        user("a\ud83d"), assistant(use("1", input={"p": "\udcff"})), result("1", "\ud83d")
    )
    json.loads(encode(to_wire_request(asked)).decode())
    check_strict(asked)


def test_odd_tool_names_are_sent_as_the_provider_accepts_them() -> None:
    messages = [user("a"), assistant(use("1", name="ns.read file<|x|>")), result("1", "A")]
    assert wire(*messages)[1]["tool_calls"][0]["function"]["name"] == "ns_read_file__x__"
    check_strict(request(*messages))


# --- B61: ids ------------------------------------------------------------------------------

IDS = st.one_of(
    st.text(min_size=1, max_size=60),
    st.text("abc|:_-", min_size=1, max_size=4),
    st.sampled_from(["call|x:1", "x" * 40, "x" * 41, "y" * 450, "call_\ud83d", "é"]),
)


@given(st.lists(IDS, max_size=30))
def test_b61_ids_are_mapped_one_to_one_to_what_is_accepted(ids: list[str]) -> None:
    mapped = to_wire_tool_ids(ToolUseBlock(tool_id, "t", {}) for tool_id in ids)
    assert set(mapped) == set(ids)
    assert len(set(mapped.values())) == len(mapped)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", sent) for sent in mapped.values())
    assert to_wire_tool_ids(ToolUseBlock(i, "t", {}) for i in mapped.values()) == {
        sent: sent for sent in mapped.values()
    }


def test_b61_an_id_that_looks_like_a_made_one_stays_apart() -> None:
    made = to_wire_tool_ids([ToolUseBlock("a|b", "t", {})])["a|b"]
    mapped = to_wire_tool_ids([ToolUseBlock(made, "t", {}), ToolUseBlock("a|b", "t", {})])
    assert mapped[made] == made
    assert mapped["a|b"] != made


def test_b61_a_call_and_its_result_keep_together_and_the_history_stays() -> None:
    messages = [user("go"), assistant(use("call|x:1")), result("call|x:1", "A")]
    before = [message.to_dict() for message in messages]
    sent = wire(*messages)
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"]
    assert [message.to_dict() for message in messages] == before
    check_strict(request(*messages))


# --- any history ---------------------------------------------------------------------------

TEXTS = st.sampled_from(["", " ", "a", "é漢🙂", "\ud83d", "x" * 50])
TOOL_IDS = st.sampled_from(["1", "2", "call|1", "z" * 90, ""])
BLOCKS = st.one_of(
    TEXTS.map(lambda t: {"type": "text", "text": t}),
    TOOL_IDS.map(use),
    st.tuples(TOOL_IDS, TEXTS).map(
        lambda p: {"type": "tool_result", "tool_use_id": p[0], "content": p[1]}
    ),
    st.just({"type": "thinking", "thinking": "hm"}),
    st.just({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}),
    TEXTS.map(lambda t: {"type": "attachment", "kind": "file", "path": "a", "text": t}),
    st.just({"type": "unheard_of"}),
)
MESSAGES = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "tool", "system", "developer"]),
    st.one_of(TEXTS, st.lists(BLOCKS, max_size=4)),
)


@given(st.lists(MESSAGES, max_size=12))
def test_the_view_of_any_history_passes_the_strict_provider(history: list[Message]) -> None:
    numbered = [
        Message(message.role, message.content, seq=seq) for seq, message in enumerate(history, 1)
    ]
    prompt = Message("user", "go on", seq=len(history) + 1)
    check_strict(request(*provider_view([*numbered, prompt])))
