"""A body taken apart is the same when it is put together again, in every style."""

from typing import Any

import msgspec
import pytest

from tiro.models.model import ModelRequest, ToolSchema
from tiro.models.openai_request import to_wire_request
from tiro.models.wire_parts import UnknownModel, parts_of, thinking_of
from tiro.session.messages import Message

REQUEST = ModelRequest(
    model="m",
    messages=[Message("user", [{"type": "text", "text": "hi"}])],
    system="be kind",
    tools=[ToolSchema("look", "looks", {"type": "object"})],
    temperature=0.5,
)


def test_openai_s_system_prompt_is_the_first_message() -> None:
    body = to_wire_request(REQUEST)
    parts = parts_of(body)
    assert parts.system == "be kind"
    again = {
        **parts.parameters,
        "messages": [{"role": "system", "content": parts.system}, *parts.messages],
        "tools": parts.tools,
    }
    assert again == body


@pytest.mark.parametrize("system", ["be kind", [{"type": "text", "text": "be kind"}]])
def test_a_system_field_is_taken_as_it_is(system: Any) -> None:
    messages = [{"role": "user", "content": "hi"}]
    parts = parts_of({"system": system, "messages": messages, "max_tokens": 5})
    assert (parts.system, parts.messages, parts.tools) == (system, messages, [])
    assert parts.parameters == {"max_tokens": 5}


def test_without_a_system_prompt_or_messages() -> None:
    parts = parts_of({"messages": [{"role": "user", "content": "hi"}]})
    assert (parts.system, len(parts.messages)) == (None, 1)
    assert parts_of({}).messages == []


def test_an_unknown_model_has_the_form_of_the_session_file() -> None:
    parts = parts_of(UnknownModel().wire_request(REQUEST))
    assert parts.system == "be kind"
    assert parts.messages == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    assert parts.tools == [
        {"name": "look", "description": "looks", "input_schema": {"type": "object"}}
    ]
    assert parts.parameters == {}


def test_reasoning_in_a_field_of_its_own_is_found() -> None:
    request = msgspec.structs.replace(
        REQUEST,
        messages=[
            *REQUEST.messages,
            Message(
                "assistant",
                [
                    {"type": "thinking", "thinking": "one"},
                    {"type": "thinking", "thinking": "two"},
                    {"type": "text", "text": "t"},
                ],
            ).marked(model="p/m"),
        ],
    )
    sent = list(thinking_of(parts_of(to_wire_request(request, own="p/m")).messages))
    assert {"one", "two"} <= set(sent)
    assert list(thinking_of(parts_of(to_wire_request(request)).messages)) == []


def test_thinking_is_found_in_both_forms() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "t"},
    ]
    messages = [{"role": "user", "content": "hm"}, {"role": "assistant", "content": blocks}]
    assert list(thinking_of(messages)) == ["hm", "x"]
    assert list(thinking_of([Message("assistant", blocks)])) == ["hm", "x"]
