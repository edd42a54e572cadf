"""Claude Code's transcripts: JSON lines, each of which names the line that it follows. Only read.

The conversation is what leads to the newest line. Branches that were left by going back, what
sub-agents said beside it and the records that the program keeps for itself are left out, counted.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tiro.stores.formats import lines
from tiro.stores.formats.conversation import Conversation, named, own_block
from tiro.stores.formats.format import Format, Imported, no_dumps, no_export, refused

_SAID = ("user", "assistant")
_TITLES = (("summary", "summary"), ("custom-title", "customTitle"), ("ai-title", "aiTitle"))
_FIELDS = ("sessionId", "parentUuid", "isSidechain", "leafUuid", "parent_tool_use_id")
_BARE = ("file-history-snapshot", "queue-operation", "summary")
"""Types of lines that may have none of these fields."""


def loads(text: str) -> Imported:
    """Read the lines; broken ones are left out and counted."""
    values = list(lines.values(text))
    found = list(_once(value for value in values if isinstance(value, dict)))
    said = [n for n, line in enumerate(found) if _message(line)]
    if not said:
        raise refused("It has no line in which somebody says something")
    main = [n for n in said if not _is_beside(found[n])]
    kept = _with_pieces(found, _path(found, (main or said)[-1]), main or said)
    conversation, answers = Conversation(), dict[str, dict[str, Any]]()
    for number, line in enumerate(found):
        if (message := _message(line)) is None:
            _leave_out(conversation, line)
        elif number not in kept:
            beside = main and _is_beside(line)
            conversation.leave_out("said by sub-agents" if beside else "in branches that were left")
        elif _is_own(line) and not (line.get("isCompactSummary") and not conversation.rows):
            conversation.leave_out("written by Claude Code itself")
        else:
            _take(conversation, message, line.get("timestamp"), answers)
    spoilt = sum(line.get("type") in _SAID and not _message(line) for line in found)
    notes = lines.broken_note(sum(not isinstance(value, dict) for value in values) + spoilt)
    last = found[said[-1]]
    return conversation.imported(
        last.get("sessionId", last.get("session_id")), _title(found), notes
    )


def looks_like(text: str) -> bool:
    """Whether one of the first lines is one of that program's."""
    return any(
        line["type"] in _BARE
        or any(name in line for name in _FIELDS)
        or (line["type"] in _SAID and isinstance(line.get("message"), dict))
        for line in lines.first_objects(text, 20)
        if isinstance(line.get("type"), str)
    )


def _once(found: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines without those that came before: a session that is resumed may repeat them."""
    seen = set[str]()
    for line in found:
        id = line.get("uuid")
        if not isinstance(id, str) or id not in seen:
            yield line
        if isinstance(id, str):
            seen.add(id)


def _message(line: dict[str, Any]) -> dict[str, Any] | None:
    """The message of a line, with its role; None where nobody says anything in it."""
    kind, message, attached = line.get("type"), line.get("message"), line.get("attachment")
    if kind == "attachment" and isinstance(attached, dict):  # typed while the turn ran
        message = {"content": attached.get("prompt")}
        kind = "user" if attached.get("type") == "queued_command" else None
    if kind not in _SAID or not isinstance(message, dict):
        return None
    role, content = message.get("role", kind), message.get("content")
    return {**message, "role": role} if role in _SAID and isinstance(content, str | list) else None


def _leave_out(conversation: Conversation, line: dict[str, Any]) -> None:
    """Count a record of the program's own, by its type; titles are taken over."""
    kind, attached = line.get("type"), line.get("attachment")
    if kind in _SAID or any(kind == title for title, _ in _TITLES):
        return
    more = attached.get("type") if isinstance(attached, dict) else line.get("subtype")
    conversation.leave_out(f"{named(kind)} ({named(more)})" if more else named(kind))


def _is_own(line: dict[str, Any]) -> bool:
    """Whether the program said it: a caveat, a provider's error, a summary of what is here."""
    marks = ("isMeta", "isCompactSummary", "isApiErrorMessage", "isVisibleInTranscriptOnly")
    message = line.get("message")
    is_made_up = isinstance(message, dict) and message.get("model") == "<synthetic>"
    return is_made_up or any(line.get(mark) for mark in marks)


def _is_beside(line: dict[str, Any]) -> bool:
    """Whether a sub-agent said it, in a transcript or in what the program prints as JSON."""
    return bool(line.get("isSidechain") or line.get("parent_tool_use_id"))


def _path(found: Sequence[dict[str, Any]], last: int) -> set[int]:
    """The lines that lead to the last one; where the chain breaks, on goes the line before.

    So it does where the chain leads back to itself: what a compaction kept follows its summary.
    """
    places = {line["uuid"]: n for n, line in enumerate(found) if isinstance(line.get("uuid"), str)}
    path, at = set[int](), last
    while at >= 0 and at not in path:
        path.add(at)
        names = (found[at].get("parentUuid"), found[at].get("logicalParentUuid"))
        before = [places[name] for name in names if isinstance(name, str) and name in places]
        before = [place for place in before if place not in path]
        at = before[0] if before else _main_before(found, at)
    return path


def _main_before(found: Sequence[dict[str, Any]], at: int) -> int:
    """The line before this one that is none of a sub-agent, if this one is none; -1 for none."""
    beside = _is_beside(found[at])
    before = (n for n in range(at - 1, -1, -1) if _is_beside(found[n]) == beside)
    return next(before, -1)


def _with_pieces(found: Sequence[dict[str, Any]], path: set[int], said: Sequence[int]) -> set[int]:
    """The path, and what belongs to its answers: their other pieces and what their tools found.

    Tools that run side by side make branches that nobody left; a prompt may follow on one.
    """
    answers = {_id_of(found[n]) for n in path if found[n].get("type") == "assistant"} - {None}
    kept = path | {n for n in said if _id_of(found[n]) in answers}
    uses = {id for n in kept for id in _ids(found[n], "id")}
    results = {n for n in said if not uses.isdisjoint(_ids(found[n], "tool_use_id"))} - kept
    before = {found[n].get("uuid") for n in results}
    typed = (n for n in said if found[n].get("type") == "attachment")
    return kept | results | {n for n in typed if found[n].get("parentUuid") in before}


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
    conversation: Conversation, message: dict[str, Any], at: Any, answers: dict[str, dict[str, Any]]
) -> None:
    """The message of a line; the pieces of one answer become one message."""
    content, id = message["content"], message.get("id")
    if message["role"] == "user":
        conversation.add("user", content, at)
    elif isinstance(id, str) and id in answers:
        answers[id]["content"] += map(
            own_block, content if isinstance(content, list) else [content]
        )
    else:
        conversation.add("assistant", list(content) if isinstance(content, list) else [content], at)
        if isinstance(id, str):
            answers[id] = conversation.rows[-1]


def _title(found: Sequence[dict[str, Any]]) -> str | None:
    titles = [
        line.get(name) for line in found for kind, name in _TITLES if line.get("type") == kind
    ]
    return next((title for title in reversed(titles) if isinstance(title, str)), None)


FORMAT = Format("claude-code", no_dumps, loads, looks_like, no_export)
