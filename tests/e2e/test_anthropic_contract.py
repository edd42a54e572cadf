"""The strict checks of the Anthropic style: each rule refuses what breaks it, and no more."""

import json
from typing import Any

import pytest

from tests.e2e import anthropic_replies
from tests.e2e.anthropic_contract import Given, anthropic_faults, given_in

USER = {"role": "user", "content": "hi"}
CACHED = {"cache_control": {"type": "ephemeral"}}
IMAGE = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
REDACTED = {"type": "redacted_thinking", "data": "d"}
GIVEN = [Given("m", [THOUGHT, REDACTED], is_whole=True), Given("other", [THOUGHT])]


def text(said: Any, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def use(id_: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "glob", "input": {}, **more}


def result(id_: str, content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def says(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def faults(*messages: Any, **more: Any) -> list[str]:
    body = {"model": "m", "max_tokens": 9, "messages": list(messages), **more}
    body = {key: value for key, value in body.items() if value is not None}
    return anthropic_faults(json.dumps(body).encode(), GIVEN)


def tool(**changed: Any) -> dict[str, Any]:
    return {"name": "glob", "description": "x", "input_schema": {"type": "object"}, **changed}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [USER, says(text("a")), USER],
        [USER, says(text("a"), use("1"), use("2")), user(result("1"), result("2"), text("go"))],
        [USER, says(THOUGHT, REDACTED, text("a"), use("1")), user(result("1", is_error=True))],
        [user({"type": "image", "source": IMAGE}, text("a", **CACHED))],
        [USER, says(use("1")), user(result("1", [text("a"), {"type": "image", "source": IMAGE}]))],
    ],
)
def test_a_good_request_has_no_faults(messages: list[Any]) -> None:
    assert faults(*messages, stream=True, tools=[tool()], system=[text("s", **CACHED)]) == []


@pytest.mark.parametrize(
    ("messages", "part"),
    [
        ([], "at least one message"),
        ([says(text("a")), USER], "first message must use the user role"),
        ([USER, says(text("a"))], "end with a user message"),
        ([USER, USER], "alternate"),
        ([{"role": "system", "content": "x"}], "role"),
        ([{**USER, "name": "x"}], "Extra inputs"),
        ([user()], "non-empty content"),
        ([{"role": "user", "content": " "}], "non-empty content"),
        ([user(text(" \n"))], "non-whitespace"),
        ([user(text("a", seq=1))], "Extra inputs"),
        ([user(use("1"))], "does not match any of the expected tags"),
        ([user({"type": "attachment", "text": "x"})], "does not match any of the expected tags"),
        ([user({"type": "image", "source": {**IMAGE, "media_type": "image/bmp"}})], "media_type"),
        ([user({"type": "image", "source": {**IMAGE, "data": "?"}})], "invalid base64"),
        ([user({"type": "image", "source": {**IMAGE, "data": ""}})], "image cannot be empty"),
        ([user({"type": "image", "source": {"type": "url", "url": "data:x"}})], "HTTP"),
        ([USER, says(use("1"))], "without `tool_result`"),
        ([USER, says(use("1")), USER], "immediately after"),
        ([USER, says(use("1"), use("2")), user(result("1"))], "immediately after"),
        ([USER, says(use("1")), user(text("a"), result("1"))], "must come first"),
        ([USER, says(use("1"), use("2")), user(result("2"), result("1"))], "order"),
        ([USER, says(use("1")), user(result("1"), result("1"))], "single result"),
        ([user(result("1"))], "unexpected `tool_use_id`"),
        ([USER, says(use("1")), user(result("1")), says(use("1")), user(result("1"))], "unique"),
        ([USER, says(use("a|b")), user(result("a|b"))], "should match pattern"),
        ([USER, says(use("x" * 65)), user(result("x" * 65))], "should match pattern"),
        ([USER, says(use("1", name="a b")), user(result("1"))], "name"),
        ([USER, says(use("1", input="x")), user(result("1"))], "object"),
        ([USER, says(use("1")), user(result("1", ""))], "non-empty content"),
        ([USER, says(use("1")), user(result("1", [text("")]))], "non-whitespace"),
        ([user(*(text("a", **CACHED) for _ in range(5)))], "maximum of 4"),
        ([USER, says(text("a"), {**THOUGHT, **CACHED}, REDACTED), USER], "Extra inputs"),
        ([USER, says({**THOUGHT, "signature": "t"}, text("a")), USER], "Invalid `signature`"),
        ([USER, says({**THOUGHT, "thinking": "x"}, text("a")), USER], "Invalid `signature`"),
        ([USER, says({"type": "thinking", "thinking": "hm"}, text("a")), USER], "Invalid"),
        ([USER, says(REDACTED, THOUGHT, text("a")), USER], "in the order"),
        ([USER, says(THOUGHT, text("a")), USER], "cannot be modified"),
        ([USER, says(use("1"), THOUGHT, REDACTED), user(result("1"))], "ahead of tool_use"),
    ],
)
def test_a_broken_history_is_refused(messages: list[Any], part: str) -> None:
    assert any(part in fault for fault in faults(*messages)), faults(*messages)


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"model": ""}, "model"),
        ({"stream_options": {}}, "Extra inputs"),
        ({"temperature": 2}, "temperature"),
        ({"system": " "}, "non-whitespace"),
        ({"system": []}, "system"),
        ({"tools": [tool(), tool()]}, "unique"),
        ({"tools": [tool(name="a b")]}, "name"),
        ({"tools": [tool(parameters={})]}, "Extra inputs"),
        ({"tools": [tool(input_schema={"type": "string"})]}, "input_schema"),
        ({"model": "x", "messages": [USER, says(THOUGHT, REDACTED, text("a")), USER]}, "Invalid"),
    ],
)
def test_a_broken_request_is_refused(more: dict[str, Any], part: str) -> None:
    found = faults(*more.pop("messages", [USER]), **more)
    assert any(part in fault for fault in found), found


@pytest.mark.parametrize("raw", [b'{"a": "\\ud83d"}', b'{"a": NaN}', b"{", b"\xff", b"[]"])
def test_what_is_no_strict_json_is_refused(raw: bytes) -> None:
    assert len(anthropic_faults(raw)) == 1


def test_what_was_signed_is_remembered_up_to_where_it_broke() -> None:
    blocks = [
        anthropic_replies.thinking_block(0, "h", "m", signature="s"),
        anthropic_replies.redacted_block(1, "d"),
    ]
    steps = anthropic_replies.answer(*blocks).steps
    raw = b"".join(step for step in steps if isinstance(step, bytes))
    assert given_in("m", raw) == Given("m", [THOUGHT, REDACTED], is_whole=True)
    cut = raw.replace(anthropic_replies.closed(1), b"").replace(anthropic_replies.STOP, b"")
    assert given_in("m", cut) == Given("m", [THOUGHT])
