"""Claude Code's transcripts: JSON lines, each of which names the line that it follows. Only read.

The conversation is what leads to the newest line; branches that were left by going back, what
sub-agents said beside it and what the program wrote itself are left out and counted.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tiro.stores.formats import lines
from tiro.stores.formats.conversation import Conversation
from tiro.stores.formats.format import Format, Imported, no_dumps, no_export, refused

_SAID = ("user", "assistant")
_TITLES = (("summary", "summary"), ("custom-title", "customTitle"), ("ai-title", "aiTitle"))


def loads(text: str) -> Imported:
    """Read the lines; broken ones are left out and counted."""
    values = list(lines.values(text))
    found = [value for value in values if isinstance(value, dict)]
    said = [n for n, line in enumerate(found) if _is_said(line)]
    if not said:
        raise refused("It has no line in which somebody says something")
    main = [n for n in said if not found[n].get("isSidechain")]
    kept = _with_pieces(found, _path(found, (main or said)[-1]), main or said)
    conversation, answers = Conversation(), dict[str, dict[str, Any]]()
    for number in said:
        if number not in kept:
            beside = main and found[number].get("isSidechain")
            conversation.leave_out("said by sub-agents" if beside else "in branches that were left")
        elif _is_own(found[number]):
            conversation.leave_out("written by Claude Code itself")
        else:
            _take(conversation, found[number], answers)
    spoilt = sum(line.get("type") in _SAID for line in found) - len(said)
    notes = lines.broken_note(len(values) - len(found) + spoilt)
    return conversation.imported(found[said[-1]].get("sessionId"), _title(found), notes)


def looks_like(text: str) -> bool:
    """Whether one of the first lines is one of that program's."""
    return any(
        isinstance(line.get("type"), str) and ("sessionId" in line or "leafUuid" in line)
        for line in lines.first_objects(text, 20)
    )


def _is_said(line: dict[str, Any]) -> bool:
    message = line.get("message")
    if line.get("type") not in _SAID or not isinstance(message, dict):
        return False
    return isinstance(message.get("content"), str | list) and message.get("role") in _SAID


def _is_own(line: dict[str, Any]) -> bool:
    """Whether the program said it: a caveat, a provider's error, a summary of what is here."""
    marks = ("isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")
    return any(line.get(mark) for mark in marks)


def _path(found: Sequence[dict[str, Any]], last: int) -> set[int]:
    """The lines that lead to the last one; where the chain breaks, on goes the line before."""
    places = {line["uuid"]: n for n, line in enumerate(found) if isinstance(line.get("uuid"), str)}
    path, at = set[int](), last
    while at >= 0 and at not in path:
        path.add(at)
        names = (found[at].get("parentUuid"), found[at].get("logicalParentUuid"))
        before = [places[name] for name in names if isinstance(name, str) and name in places]
        at = before[0] if before else _main_before(found, at)
    return path


def _main_before(found: Sequence[dict[str, Any]], at: int) -> int:
    """The line before this one that is none of a sub-agent, if this one is none; -1 for none."""
    beside = bool(found[at].get("isSidechain"))
    before = (n for n in range(at - 1, -1, -1) if bool(found[n].get("isSidechain")) == beside)
    return next(before, -1)


def _with_pieces(found: Sequence[dict[str, Any]], path: set[int], said: Sequence[int]) -> set[int]:
    """The path, and what belongs to its answers: their other pieces and what their tools found.

    Tools that run side by side make branches that nobody left.
    """
    answers = {_id_of(found[n]) for n in path if found[n].get("type") == "assistant"} - {None}
    kept = path | {n for n in said if _id_of(found[n]) in answers}
    uses = {id for n in kept for id in _ids(found[n], "id")}
    return kept | {n for n in said if not uses.isdisjoint(_ids(found[n], "tool_use_id"))}


def _id_of(line: dict[str, Any]) -> str | None:
    message = line.get("message")
    id = message.get("id") if isinstance(message, dict) else None
    return id if isinstance(id, str) else None


def _ids(line: dict[str, Any], name: str) -> Iterator[str]:
    """The ids of this name in the blocks of a line."""
    message = line.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and isinstance(id := block.get(name), str):
            yield id


def _take(
    conversation: Conversation, line: dict[str, Any], answers: dict[str, dict[str, Any]]
) -> None:
    """The message of a line; the pieces of one answer become one message."""
    role, content, at = line["message"]["role"], line["message"]["content"], line.get("timestamp")
    if role == "user":
        conversation.add("user", content, at)
        return
    blocks = content if isinstance(content, list) else [content]
    id = _id_of(line)
    if id in answers:
        answers[id]["content"] += blocks
        return
    conversation.add("assistant", list(blocks), at)
    if id is not None:
        answers[id] = conversation.rows[-1]


def _title(found: Sequence[dict[str, Any]]) -> str | None:
    titles = [
        line.get(name) for line in found for kind, name in _TITLES if line.get("type") == kind
    ]
    return next((title for title in reversed(titles) if isinstance(title, str)), None)


FORMAT = Format("claude-code", no_dumps, loads, looks_like, no_export)
