"""The input check and the output limit that every tool passes through."""

import json
from typing import Any

import pytest

from tiro import estimate_tokens
from tiro.errors import ToolError
from tiro.tools.files import FILE_TOOLS
from tiro.tools.tool import check_input, limit_output, shown_schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "minLength": 1, "maxLength": 3},
        "i": {"type": "integer", "minimum": 1, "maximum": 5},
        "n": {"type": "number"},
        "b": {"type": "boolean"},
        "e": {"enum": ["x", "y"]},
        "l": {"type": "array", "maxItems": 2, "items": {"type": "object", "required": ["k"]}},
        "u": {"type": ["string", "null"]},
    },
    "required": ["s"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"s": "a"}, {"s": "a"}),
        ({"s": "a", "i": None, "u": None}, {"s": "a"}),
        ({"s": "a", "i": 5, "n": 1, "b": True, "e": "x"}, None),
        ({"s": "a", "l": [{"k": 1}], "n": 1.5, "u": "x"}, None),
    ],
)
def test_input_that_fits(given: dict[str, Any], expected: dict[str, Any] | None) -> None:
    assert check_input(SCHEMA, given) == (given if expected is None else expected)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({}, "`s` is missing"),
        ({"s": None}, "`s` must be of type string, not null"),
        ({"s": ""}, "`s` must not be empty"),
        ({"s": "abcd"}, "at most 3 characters"),
        ({"s": "a", "i": "1"}, "`i` must be of type integer, not string"),
        ({"s": "a", "i": True}, "`i` must be of type integer, not boolean"),
        ({"s": "a", "i": 1.5}, "not number"),
        ({"s": "a", "i": 0}, "at least 1"),
        ({"s": "a", "i": 6}, "at most 5"),
        ({"s": "a", "b": 1}, "`b` must be of type boolean"),
        ({"s": "a", "e": "z"}, "one of 'x', 'y'"),
        ({"s": "a", "l": [{"k": 1}, {}]}, "`l[1].k` is missing"),
        ({"s": "a", "l": [1, 2, 3]}, "at most 2 items"),
        ({"s": "a", "zz": 1}, "`zz` is unknown (known: s, i,"),
        ({"i": 0}, "`s` is missing; `i` must be at least 1"),
    ],
)
def test_input_with_a_fault_names_it(given: dict[str, Any], fault: str) -> None:
    with pytest.raises(ToolError) as raised:
        check_input(SCHEMA, given)
    assert fault in str(raised.value)
    assert "Nothing was run" in str(raised.value)


def test_limit_output_leaves_short_text_alone() -> None:
    assert limit_output("x" * 10, max_chars=10) == "x" * 10


def test_limit_output_keeps_the_beginning_and_more_of_the_end() -> None:
    told = limit_output("abc" + "x" * 6 + "defghi", max_chars=9, advice="Ask again.")
    assert told == "abc\n\n[… 6 of 15 characters are left out here. Ask again. …]\n\ndefghi"


@pytest.mark.parametrize("tool", FILE_TOOLS, ids=lambda tool: tool.name)
def test_every_tool_reads_only_and_has_a_closed_schema(tool: Any) -> None:
    """Issue 2, point 5: read tools."""
    assert tool.effect == "read"
    assert tool.input_schema["additionalProperties"] is False
    assert tool.subject_field in tool.input_schema["properties"]
    assert set(tool.input_schema.get("required", ())) <= set(tool.input_schema["properties"])


def test_a_model_is_shown_all_but_bounds_that_a_sensible_input_keeps() -> None:
    """A field may have the name of a bound; what may be larger or longer than expected is told."""
    schema = {
        "type": "object",
        "properties": {
            "minimum": {"type": "integer", "minimum": 1, "maximum": 600, "description": "m"},
            "list": {"type": "array", "maxItems": 2, "items": {"type": "string", "minLength": 1}},
        },
        "required": ["minimum"],
        "additionalProperties": False,
    }
    assert shown_schema(schema) == {
        "type": "object",
        "properties": {
            "minimum": {"type": "integer", "maximum": 600, "description": "m"},
            "list": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["minimum"],
        "additionalProperties": False,
    }
    with pytest.raises(ToolError, match=r"`minimum` must be at least 1.*`list\[0\]`"):
        check_input(schema, {"minimum": 0, "list": [""]})


def test_the_tools_leave_a_window_of_4000_room() -> None:
    """P7: what is said in each request about looking at files is short."""
    shown = [(t.name, t.description, shown_schema(t.input_schema)) for t in FILE_TOOLS]
    assert estimate_tokens(json.dumps(shown), "openai/gpt-5") < 600
