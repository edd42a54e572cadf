"""gptel's buffers as saved, Markdown or Org: text, and the places of answers in it. Only read.

A local variable (Markdown) or a property at the top (Org) names these places, in characters from 1
on; what stands between them was typed by the user. A tool's place holds its name, input and result.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tiro.stores.formats import json, lisp
from tiro.stores.formats.conversation import Conversation
from tiro.stores.formats.format import Format, Imported, no_dumps, no_export, refused


class _Span(NamedTuple):
    start: int
    end: int
    kind: str
    id: str


def loads(text: str) -> Imported:
    """Read the places, then what stands at them; SessionFormatError for places that are none."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    found = _bounds(text)
    if found is None:
        raise refused("It does not say where the answers in it are")
    is_org = _ORG.match(text) is not None
    at, end = (_drawer_end(text), len(text)) if is_org else (0, _variables_start(text))
    conversation = Conversation()
    for span in _with_reasoning(sorted(_spans(found)), text):
        start, stop = max(at, span.start), min(end, span.end)
        if start < stop:
            _take_prompt(conversation, text[at:start])
            _take_span(conversation, span, text[start:stop], is_org)
            at = stop
    _take_prompt(conversation, text[at:end])
    has_system = _SYSTEM.search(text) is not None
    return conversation.imported(None, notes=["Its system prompt is not taken over"] * has_system)


def looks_like(text: str) -> bool:
    """Whether it names the places of answers, and is nothing that Tiro has written."""
    is_other = json.looks_like(text) or text.startswith("<!-- tiro session ")
    return not is_other and _bounds(text) is not None


def _bounds(text: str) -> str | None:
    """The list of places, as it stands there."""
    if (found := _ORG.match(text)) is not None:
        return found[1]
    found = _VARIABLE.search(text, max(0, text.rfind("Local Variables:")))
    return found[1] if found and "Local Variables:" in text else None


def _spans(bounds: str) -> list[_Span]:
    """The places: `((kind (start end id?) …) …)`, or only answers as `((start . end) …)`."""
    try:
        groups, _ = lisp.read(bounds)
    except ValueError as error:
        raise refused("The places of its answers cannot be read") from error
    spans = []
    for group in groups if isinstance(groups, list) else []:
        match group:
            case [int(start), ".", int(end)]:
                spans.append(_Span(start - 1, end - 1, "response", ""))
            case [str(kind), *places]:
                for place in places:
                    match place:
                        case [int(start), int(end), *id]:
                            name = id[0] if id and isinstance(id[0], str) else ""
                            spans.append(_Span(start - 1, end - 1, kind, name))
    return spans


def _with_reasoning(spans: Sequence[_Span], text: str) -> Iterator[_Span]:
    """The places, those of reasoning named so: it is ignored, or stands between ignored fences."""
    is_inside = False
    for span in spans:
        passage = text[span.start : span.end].strip()
        if span.kind == "ignore" and _REASONING.match(passage):
            is_inside = "\n" not in passage  # only the fence that begins it
            yield span if is_inside else span._replace(kind="reasoning")
        elif is_inside and span.kind in ("response", "ignore"):
            is_inside = False
            yield span._replace(kind="reasoning") if span.kind == "response" else span
        else:
            yield span


def _take_prompt(conversation: Conversation, text: str) -> None:
    """What stands between the answers, without the mark that begins a prompt."""
    prompt = text.strip()
    if mark := _PREFIX.match(prompt):
        prompt = prompt[mark.end() :].strip()
    if prompt:
        conversation.add("user", prompt)


def _take_span(conversation: Conversation, span: _Span, text: str, is_org: bool) -> None:
    match span.kind:
        case "tool":
            _take_tool(conversation, span.id, text, is_org)
        case "reasoning":
            thought = _REASONING_END.sub("", _REASONING.sub("", text.strip()))
            conversation.answer([{"type": "thinking", "thinking": thought.strip()}])
        case "response" if text.strip():
            conversation.answer([{"type": "text", "text": text.strip()}])
        case "ignore" if "\n" in text.strip():  # the others are only fences
            conversation.leave_out("passages that gptel ignores")


def _take_tool(conversation: Conversation, id: str, text: str, is_org: bool) -> None:
    """A tool use with its result; as text where that cannot be read."""
    start = text.find("(:name ")
    try:
        call, end = lisp.read(text, start) if start >= 0 else (None, 0)
    except ValueError:
        call = None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        conversation.answer([{"type": "text", "text": text.strip()}])
        return
    given: Any = call.get("args")
    name, id = call["name"], id or f"gptel-{len(conversation.rows)}"
    use = {"id": id, "name": name, "input": given if isinstance(given, dict) else {}}
    conversation.answer([{"type": "tool_use", **use}])
    result = _FENCE_END.sub("", text[end:]).strip("\n")
    conversation.result(id, _ORG_ESCAPE.sub("", result) if is_org else result)


def _drawer_end(text: str) -> int:
    end = re.compile(r"^:END:[ \t]*\n?", re.MULTILINE).search(text)
    return end.end() if end else 0


def _variables_start(text: str) -> int:
    return text.rfind("\n", 0, text.rfind("Local Variables:")) + 1


_VARIABLE = re.compile(r"^\W*gptel--bounds:[ \t]*(\(\(.*\)\))", re.MULTILINE)
_ORG = re.compile(r"\ufeff?:PROPERTIES:\r?\n(?::[^\n]*\n)*?:GPTEL_BOUNDS:[ \t]*(\(\(.*\)\))")
_SYSTEM = re.compile(r"^(?::GPTEL_SYSTEM:|\W*gptel-?-system-(?:message|prompt):)", re.MULTILINE)
_PREFIX = re.compile(r"(?:###|\*\*\*)(?:[ \t]+|$)")
_REASONING = re.compile(r"(?:```+ *|#\+begin_)reasoning\b[^\n]*", re.IGNORECASE)
_REASONING_END = re.compile(r"\n(?:```+|#\+end_reasoning)[ \t]*$", re.IGNORECASE)
_FENCE_END = re.compile(r"\n(?:```|#\+end_tool)[ \t]*\n?$")
_ORG_ESCAPE = re.compile(r"^,(?=,*(?:\*|#\+))", re.MULTILINE)

FORMAT = Format("gptel", no_dumps, loads, looks_like, no_export)
