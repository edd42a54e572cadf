"""Domain values → wire values: the only place where both spellings meet."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tiro.agents import events
from tiro.agents.agent_info import AgentInfo
from tiro.errors import TiroError, refused_by_system
from tiro.protocol import types
from tiro.protocol.frames import clean_text, encode_body
from tiro.session import json_text, messages
from tiro.session.large import OUTPUT, PARTS, parts_of
from tiro.session.times import rfc3339
from tiro.stores.index import SavedSession
from tiro.stores.notices import Notice
from tiro.stores.retention import Plan
from tiro.stores.trash import Deleted
from tiro.tools.editor import Diagnostic

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant
    from tiro.assistant.explain import Explained
    from tiro.session.edits import Edit
    from tiro.tools.undo import NextTurn

MAX_RESULT_BYTES = 4096
CUT = " [… cut …]"
MAX_ERROR_CHARS = 500
"""How much of the beginning and of the end of an error's sentence is told."""
MAX_ERROR_DATA_CHARS = 4096
"""No path is longer; nor is the beginning of a provider's answer."""
MAX_ERROR_ITEMS = 1000

W = TypeVar("W")


def to_wire(kind: type[W], value: Any) -> W:
    """A domain value with the fields of a wire type, as that type; None stays None."""
    if value is None:
        return value  # type: ignore[return-value]  # where the field is optional
    return msgspec.convert(value, kind, from_attributes=True)


def to_wire_messages(rows: Iterable[messages.Message]) -> list[Any]:
    """Messages as they are sent: content and unknown fields untouched.

    What a model did not get of a tool's output is only counted: `session/content` has it.
    """
    return [messages.flat(_without_output(row)) for row in rows]


def _without_output(row: messages.Message) -> messages.Message:
    output = row.marks().get(OUTPUT)
    if not isinstance(output, str):
        return row
    chars = sum(part.chars for part in parts_of(row)) or len(output)
    return row.marked(**{OUTPUT: None, PARTS: None, "output_chars": chars})


def to_wire_view(assistant: "Assistant", rows: Iterable[messages.Message]) -> types.SessionView:
    """The current session with these of its messages."""
    session, turn_id = assistant.session, assistant.running_turn_id
    path = assistant.manager.path_of(session)
    saved_at = assistant.manager.saved_at(session)
    return types.SessionView(
        id=session.id,
        title=session.title,
        agent=session.agent,
        model=session.model,
        messages=to_wire_messages(rows),
        total=len(session.newest_first),
        archived=session.archived,
        max_history=session.max_history,
        turns=session.turns,
        memo=session.memo,
        summary=session.summary,
        state=session.state,
        pins=session.pins,
        metadata=session.metadata,
        created_at=rfc3339(session.created),
        updated_at=rfc3339(session.updated),
        saved_at=None if saved_at is None else rfc3339(saved_at),
        path=None if path is None else str(path),
        context_size=to_wire(types.ContextSize, assistant.context_size()),
        busy=None if turn_id is None else types.Busy(turn_id),
    )


def from_wire_diagnostic(path: Path, told: types.Diagnostic) -> Diagnostic:
    """A problem that an editor told of this file."""
    return Diagnostic(
        path=path,
        line=told.range.start.line,
        column=told.range.start.character,
        severity=told.severity,
        message=told.message,
        source=told.source,
        code=None if told.code is None else str(told.code),
    )


def to_wire_changed(assistant: "Assistant", notice: Notice) -> types.SessionChanged:
    """What a client is told about a change that it did not ask for."""
    spelled: Any = camel(notice.reason)
    session, is_failure = notice.session, notice.reason == "save_failed"
    return types.SessionChanged(
        reason=spelled,
        id=session.id,
        total=len(session.newest_first),
        context_size=to_wire(types.ContextSize, assistant.context_size()),
        why=notice.detail["reason"] if is_failure else msgspec.UNSET,
    )


def to_wire_row(row: Any) -> types.SessionRow:
    """A row of the list of saved sessions."""
    return types.SessionRow(**_row_fields(row))


def to_wire_trash_row(row: Deleted) -> types.TrashRow:
    """A row of the list of deleted sessions."""
    return types.TrashRow(**_row_fields(row.saved), deleted_at=rfc3339(row.deleted_at))


def to_wire_pruned(plan: Plan) -> types.PruneResult:
    """The sessions that go by a rule."""
    rows = [types.PrunedRow(**_row_fields(one.saved), reason=one.reason) for one in plan.going]
    return types.PruneResult(rows, plan.bytes, plan.kept, plan.left)


def to_wire_hit(hit: Any) -> types.SearchHit:
    """A message that a search found."""
    return types.SearchHit(
        id=hit.id,
        path=hit.path,
        seq=hit.seq,
        role=hit.role,
        saved_at=hit.saved_at,
        snippet=hit.snippet,
        taken_back=hit.taken_back or msgspec.UNSET,
    )


def to_wire_edit(edit: "Edit") -> types.Edit:
    """A recorded edit, as it stands now."""
    made = edit.made
    return types.Edit(
        id=made.id,
        turn_id=made.turn_id,
        session_id=made.session_id,
        path=made.path,
        at=made.at,
        undone=edit.state == "undone",
        added=made.added,
        removed=made.removed,
    )


def to_wire_edits_turn(turn: "NextTurn | None") -> types.EditsTurn | None:
    """The turn that an undo or a redo would be about."""
    if turn is None:
        return None
    return types.EditsTurn(turn.turn_id, turn.session_id, turn.at, list(map(str, turn.paths)))


def to_wire_agent(assistant: "Assistant", agent: AgentInfo | None) -> types.Agent | None:
    """An agent with the names of its tools."""
    if agent is None:
        return None
    return types.Agent(
        name=agent.name,
        description=agent.description,
        mode=agent.mode,
        hidden=agent.hidden,
        native=agent.native,
        model=agent.model,
        color=agent.color,
        tools=[tool.name for tool in assistant.setup.tools_of(agent)],
    )


def to_wire_explained(explained: "Explained") -> types.ExplainResult:
    """The next request with its parts side by side."""
    parts = explained.parts
    return types.ExplainResult(
        model=explained.model,
        system=parts.system,
        messages=parts.messages,
        tools=parts.tools,
        parameters=parts.parameters,
        tokens=to_wire(types.ContextSize, explained.tokens),
        left=[to_wire(types.LeftOut, left) for left in explained.left],
        repairs=[to_wire(types.Repair, repair) for repair in explained.repairs],
    )


def to_wire_event(
    event: events.TurnEvent, session_id: str | None, turn_id: str, n: int
) -> types.Event:
    """One event as it is sent."""
    kind = WIRE_EVENTS[type(event)]
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    if isinstance(event, events.ToolUse):
        shown = event.tool_use
        fields["tool_use"] = types.ToolUse(shown.id, shown.name, displayed(shown.input))
        fields["preview"] = event.preview or msgspec.UNSET
        fields["parent_tool_use_id"] = event.parent_tool_use_id or msgspec.UNSET
    elif isinstance(event, events.ToolResult):
        fields["content"], is_cut = cut_text(event.content)
        fields["truncated"] = event.truncated or is_cut
        fields["end"] = event.end or msgspec.UNSET
        fields["left_out"] = event.left_out if event.end else msgspec.UNSET
    elif isinstance(event, events.Resized):
        fields["decision"] = to_wire(types.Decision, displayed(event.decision))
    elif isinstance(event, events.UsageSoFar):
        fields["usage"] = to_wire(types.Usage, event.usage)
        fields["context_size"] = to_wire(types.ContextSize, event.context_size)
    elif isinstance(event, events.Finished):
        error = None if event.error is None else to_wire_error(event.error)
        fields = {"stop_reason": event.outcome.stop_reason, "error": error}
    return kind(session_id=session_id, turn_id=turn_id, n=n, **fields)


WIRE_EVENTS: dict[type[Any], type[types.Event]] = {
    events.Started: types.StartedEvent,
    events.Text: types.TextEvent,
    events.Thinking: types.ThinkingEvent,
    events.ToolUse: types.ToolUseEvent,
    events.ToolOutput: types.ToolOutputEvent,
    events.ToolResult: types.ToolResultEvent,
    events.Stored: types.StoredEvent,
    events.Retry: types.RetryEvent,
    events.Resized: types.ResizeEvent,
    events.UsageSoFar: types.UsageEvent,
    events.Finished: types.FinishedEvent,
}
"""`Progress` is missing: it is told through `window/workDoneProgress`."""


def cut_text(text: str, max_bytes: int = MAX_RESULT_BYTES) -> tuple[str, bool]:
    """The beginning of a text as it will be on the wire, at a character; and whether it is cut."""
    if len(text) * 4 <= max_bytes:
        return text, False
    data = clean_text(json_text.clean(text)).encode()
    if len(data) <= max_bytes:
        return text, False
    return data[:max_bytes].decode("utf-8", "ignore"), True


def displayed(value: Any) -> Any:
    """A copy in which integers beyond signed 64 bit are strings: some editors cannot read them."""
    if isinstance(value, int) and not -types.MAX_INTEGER - 1 <= value <= types.MAX_INTEGER:
        return str(value)
    if isinstance(value, dict):
        return {key: displayed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [displayed(item) for item in value]
    return value


def to_wire_error(error: BaseException) -> types.ErrorObject:
    """An error as the client sees it: one plain sentence, no traceback, nothing that was not said.

    Only what Tiro raises on purpose is told in its own words, and what the system refuses in those
    of the system.
    """
    if isinstance(error, OSError) and not isinstance(error, TiroError) and error.errno is not None:
        error = refused_by_system(error)
    for kind in type(error).__mro__:
        if kind in types.ERRORS:
            code, name = types.ERRORS[kind]
            data = {"kind": name} if name else {}
            for key, value in getattr(error, "data", {}).items():
                data[camel(key)] = _code(value) if key == "reason" else value
            return bounded(types.ErrorObject(code, str(error), data or msgspec.UNSET))
    return types.ErrorObject(types.INTERNAL_ERROR, "The server failed; its log says why")


def bounded(error: types.ErrorObject) -> types.ErrorObject:
    """The same error without the middle of what it quotes at too great length."""
    message = error.message
    if len(message) > 2 * MAX_ERROR_CHARS:
        message = message[:MAX_ERROR_CHARS] + CUT + message[-MAX_ERROR_CHARS:]
    data = _cut(error.data, MAX_ERROR_DATA_CHARS, MAX_ERROR_ITEMS)
    return types.ErrorObject(error.code, message, data)


def _code(reason: Any) -> Any:
    """A reason that is a word for programs, in the wire's spelling; a sentence stays as it is."""
    return camel(reason) if isinstance(reason, str) and reason.isidentifier() else reason


def camel(name: str) -> str:
    """snake_case → camelCase."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _row_fields(saved: SavedSession) -> dict[str, Any]:
    fields = {name: getattr(saved, name) for name in types.SessionRow.__struct_fields__}
    try:
        moment = datetime.fromtimestamp(saved.expires_at, UTC) if saved.expires_at else None
    except (ValueError, OverflowError, OSError):  # a hand left it in a database
        moment = None
    return {**fields, "expires_at": rfc3339(moment) if moment else msgspec.UNSET}


def shortened(message: dict[str, Any], max_bytes: int) -> bytes:
    """A message of ours, cut for display until it is under the limit."""
    for max_chars, max_items in _CUTS:
        params = _cut(message["params"], max_chars, max_items)
        body = encode_body({**message, "params": params})
        if len(body) <= max_bytes:
            break
    return body


_CUTS = ((100_000, 10_000), (10_000, 1000), (1000, 100), (100, 20), (20, 5), (20, 1))


def _cut(value: Any, max_chars: int, max_items: int) -> Any:
    """A copy in which texts, lists and objects are no longer than this."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, str):
        return value if len(value) <= max_chars else value[:max_chars] + CUT
    if isinstance(value, dict):
        items = list(value.items())[:max_items]
        return {key[:max_chars]: _cut(item, max_chars, max_items) for key, item in items}
    if isinstance(value, list):
        return [_cut(item, max_chars, max_items) for item in value[:max_items]]
    return value
