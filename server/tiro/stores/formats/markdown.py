"""Markdown: a conversation for people to read; it goes out and never comes back.

What was said stands as it is, code fences and all; what tools were given and answered is folded.
"""

import json
import re
from typing import Any

from tiro.session.json_text import encode
from tiro.session.messages import (
    AttachmentBlock,
    Block,
    ImageBlock,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    blocks_of,
    result_text,
    tool_uses_of,
)
from tiro.stores.formats.format import TIMES, Format, Imported, history, refused
from tiro.stores.formats.json import decode_or_none

SUMMARY_CHARACTERS = 80


def dumps(fields: dict[str, Any]) -> str:
    """All messages that were not taken back, oldest first, each under its role."""
    messages = history(fields)
    names = {use.id: use.name for message in messages for use in tool_uses_of(message)}
    parts = [
        f"{_MARK}{encode(fields['id'] or '').decode()} -->",
        f"# {_plain(fields['title'] or 'Session')}",
    ]
    parts.append(_facts(fields, len(messages)))
    for message in messages:
        parts.append(_heading(message))
        parts += [part for block in blocks_of(message) if (part := _shown(block, names))]
    return "\n\n".join(parts) + "\n"


def loads(text: str) -> Imported:
    """Refuse: Markdown does not say enough to be a session again."""
    raise refused("Markdown can only be exported; import a JSON, YAML or JSONL export instead")


def looks_like(text: str) -> bool:
    """Whether it is an export of ours, or begins with a heading."""
    return text.startswith((_MARK, "# "))


def earlier_id(text: str) -> str | None:
    """The id in the first line, which no reader shows."""
    found = _FIRST_LINE.match(text)
    if found is None:
        return None
    id = decode_or_none(found[1].encode())
    return id if isinstance(id, str) else None


def losses(fields: dict[str, Any]) -> list[str]:
    """What is only named in it: pictures, attachments and blocks of other kinds."""
    named = (ImageBlock, AttachmentBlock, OpaqueBlock)
    less = sum(any(isinstance(b, named) for b in blocks_of(m)) for m in history(fields))
    kinds = "pictures, attachments, other blocks"
    return [f"Messages of which Markdown only names a part ({kinds}): {less}"] if less else []


def _facts(fields: dict[str, Any], count: int) -> str:
    facts = {
        "Session": fields["id"],
        "Agent": fields["agent"],
        "Model": fields["model"],
        "Begun": fields["created_at"],
        "Messages": str(count),
    }
    return "\n".join(f"- {name}: {_plain(fact)}" for name, fact in facts.items() if fact)


def _heading(message: Message) -> str:
    is_result = any(isinstance(block, ToolResultBlock) for block in blocks_of(message))
    name = "Tool" if is_result else _plain(message.role[:1].upper() + message.role[1:])
    return f"## {name}" + (f" · {_plain(message.timestamp)}" if message.timestamp else "")


def _shown(block: Block, names: dict[str, str]) -> str:
    """One block as Markdown; "" for nothing to show."""
    match block:
        case TextBlock(text=text):
            return _closed(text.strip("\n"))
        case ThinkingBlock(thinking=thinking):
            return _folded("Thinking", thinking)
        case ToolUseBlock(name=name, input=given):
            return _folded(
                f"Tool use: {name} {encode(given).decode()}",
                json.dumps(given, ensure_ascii=False, indent=2),
                "json",
            )
        case ToolResultBlock(tool_use_id=id, content=content, is_error=is_error):
            kind = "Error" if is_error else "Result"
            return _folded(f"{kind} of {names.get(id, id)}", result_text(content))
        case AttachmentBlock():
            return f"*Attached {_plain(_attachment(block))}*"
        case ImageBlock(source=source):
            return f"*Image {_plain(str(source.get('media_type', '')))}*"
        case OpaqueBlock(data=data):
            return f"*{_plain(str(data.get('type', 'block')))}*"


def _attachment(block: AttachmentBlock) -> str:
    lines = ""
    if block.range is not None:
        start, end = (block.range.get(edge) for edge in ("start", "end"))
        if isinstance(start, dict) and isinstance(end, dict):
            lines = f", lines {_line(start)} to {_line(end)}"
    return f"{block.kind}: {block.path or 'text'}{lines}"


def _line(position: dict[str, Any]) -> Any:
    line = position.get("line")
    return line + 1 if isinstance(line, int) else line


def _folded(title: str, text: str, language: str = "") -> str:
    """A text behind a line that opens it, in a fence longer than any fence in it."""
    line = " ".join(title.split())
    if len(line) > SUMMARY_CHARACTERS:
        line = line[: SUMMARY_CHARACTERS - 1] + "…"
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    body = f"{fence}{language}\n{text}\n{fence}"
    return f"<details>\n<summary>{line}</summary>\n\n{body}\n\n</details>"


def _closed(text: str) -> str:
    """The text; code or a comment that it leaves open is closed, or it would swallow the rest."""
    end: re.Pattern[str] | None = None
    closing = ""
    for line in text.split("\n"):
        if end is not None:
            end = None if end.search(line) else end
        elif fence := _FENCE.match(line):
            closing = fence[1] + fence[2]
            end = re.compile(rf"^ {{0,3}}{fence[2][0]}{{{len(fence[2])},}}\s*$")
        else:
            end, closing = _html_opened_by(line)
    return text if end is None or not closing else f"{text}\n{closing}"


def _html_opened_by(line: str) -> tuple[re.Pattern[str] | None, str]:
    """Where the HTML that this line begins ends, and what ends it: "" for a blank line."""
    for start, end, closing in _HTML:
        if (found := start.match(line)) and not end.search(line, found.end()):
            return end, closing
    return None, ""


def _plain(text: str) -> str:
    """Text inside a line of ours: one line, nothing in it has a meaning."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))


_MARK = "<!-- tiro session "
_FIRST_LINE = re.compile(re.escape(_MARK) + r"(\".*\") -->")
_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*$)|~{3,})")
_HTML = [
    (re.compile(rf" {{0,3}}<{start}", re.IGNORECASE), re.compile(end, re.IGNORECASE), closing)
    for start, end, closing in (
        ("!--", "-->", "-->"),
        (r"\?", r"\?>", "?>"),
        (r"!\[CDATA\[", r"\]\]>", "]]>"),
        ("![a-z]", ">", ">"),
        (r"(?:script|pre|style|textarea)\b", "</(?:script|pre|style|textarea)>", "</pre>"),
        ("/?[a-z]", r"^\s*$", ""),
    )
]
"""Lines that begin HTML, what ends it, and how it can be ended."""
_SPECIAL = re.compile(r"[\\`*_\[\]<>#]")

FORMAT = Format(
    "markdown",
    dumps,
    loads,
    looks_like,
    earlier_id,
    frozenset(("title", "agent", "model", TIMES)),
    losses,
)
