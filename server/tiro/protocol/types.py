"""What goes over the wire: every method, its params and its result, every event, every error code.

The one place for these facts. `tiro schema` prints them as JSON Schema, the editors' types are
generated from that, and a test compares the names with PROTOCOL.md. Field names are camelCase on
the wire; the content of a message is the user's data and keeps its own spelling. In params a
`None` default means that null and a missing field are the same.
"""

from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from tiro import errors

PROTOCOL_VERSION = 1

MAX_INTEGER = 2**63 - 1

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]
"""A number of things, or a position counted from 0."""

Seq = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]
"""A message's number in its session, from 1; 0 stands before the first."""

Content: TypeAlias = str | list[Any] | dict[str, Any]
"""A string, a list of blocks, or one block, each kept as it came."""

Effect = Literal["read", "write", "execute", "network"]
StopReason = Literal["end_turn", "max_tokens", "max_steps", "refusal", "cancelled"]
ToolStatus = Literal["proposed", "running", "done", "rejected", "failed", "cancelled"]
ChangeReason = Literal[
    "summary", "saveFailed", "saveResumed", "changedOnDisk", "renamed", "expired", "titled"
]


class Wire(msgspec.Struct, frozen=True, rename="camel"):
    """The root of all wire types: frozen, camelCase, unknown fields ignored."""


# --- shapes ---------------------------------------------------------------------------------------


class Breakdown(Wire, frozen=True):
    """Where the tokens of a request go."""

    system: int = 0
    tools: int = 0
    memo: int = 0
    summary: int = 0
    user: int = 0
    assistant: int = 0
    tool_use: int = 0
    tool_result: int = 0
    attachments: int = 0


class ContextSize(Wire, frozen=True, kw_only=True):
    """An estimate of the next request; `tokens` is the sum of the breakdown."""

    tokens: int
    error_percent: float | None = None
    context_window: int | None = None
    ratio: float | None = None
    breakdown: Breakdown


class Usage(Wire, frozen=True):
    """Tokens that the provider reported; `inputTokens` never contain the cached ones."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None


class Agent(Wire, frozen=True):
    """Who answers, and with which tools."""

    name: str
    description: str = ""
    mode: Literal["primary", "subagent", "all"] = "primary"
    hidden: bool = False
    native: bool = False
    model: str | None = None
    color: str | None = None
    tools: list[str] = []


class Decision(Wire, frozen=True, omit_defaults=True):
    """Whether and how to resize, and why."""

    type: str
    reason: str | None = None
    severity: int | None = None
    meta: Any = None


class Busy(Wire, frozen=True):
    """The turn that is running in the session."""

    turn_id: str


class SessionView(Wire, frozen=True):
    """The session as a client sees it; `messages` is the window or a page, oldest first."""

    id: str | None
    title: str | None
    agent: str | None
    model: str | None
    messages: list[Any]
    total: int
    archived: int
    max_history: int | None
    turns: int
    memo: Any
    summary: str
    state: dict[str, Any]
    pins: list[int]
    metadata: dict[str, Any]
    created_at: str
    updated_at: str
    saved_at: str | None
    path: str | None
    context_size: ContextSize
    busy: Busy | None


class Position(Wire, frozen=True):
    """A place in a document, in the negotiated position encoding."""

    line: Count
    character: Count


class Range(Wire, frozen=True):
    """A piece of a document; the end is exclusive."""

    start: Position
    end: Position


class Attachment(Wire, frozen=True):
    """What an editor adds to a prompt."""

    kind: Literal["file", "selection", "buffer", "diagnostics", "text"]
    path: str | None = None
    range: Range | None = None
    text: str | None = None


# --- params and results ---------------------------------------------------------------------------


class Empty(Wire, frozen=True):
    """Nothing to say."""


class GetParams(Wire, frozen=True):
    """Which messages; without `limit` and `beforeSeq` the window."""

    limit: Count | None = None
    before_seq: Seq | None = None
    all: bool | None = None


class ContentParams(Wire, frozen=True):
    """Which piece of which block, in characters."""

    seq: Seq
    block: Count | None = None
    offset: Count | None = None
    limit: Count | None = None


class ContentResult(Wire, frozen=True):
    """A piece of a long block."""

    text: str
    total_chars: int


class Statistics(Wire, frozen=True):
    """Counts over the window; `usage` over the session."""

    user: int = 0
    assistant: int = 0
    tool: int = 0
    system: int = 0
    tool_uses: dict[str, int] = {}
    turns: int = 0
    tokens: int = 0
    usage: Usage = Usage()


class ShowResult(Wire, frozen=True):
    """The session as text, null when it is empty."""

    text: str | None
    statistics: Statistics


class NewParams(Wire, frozen=True):
    """What the new session starts with."""

    id: str | None = None
    title: str | None = None
    agent: str | None = None
    max_history: Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)] | None = None


class ClearResult(Wire, frozen=True):
    """How many messages the old session had, and where it was saved."""

    cleared: int
    saved_as: str | None


class AddMessageParams(Wire, frozen=True):
    """A message; its other fields are kept as they come."""

    role: str
    content: Content


class AddToolResultParams(Wire, frozen=True):
    """The answer to a tool use."""

    tool_use_id: str
    content: str | list[Any]
    is_error: bool | None = None


class AddResult(Wire, frozen=True):
    """`pruned` were evicted by this call; `stored` means it survives a kill -9 from now on."""

    seq: int
    total: int
    pruned: int
    stored: bool


class GetIdResult(Wire, frozen=True):
    """The session's id, made now if it had none."""

    id: str


class AgentResult(Wire, frozen=True):
    """The session's agent."""

    agent: Agent | None


class SetAgentParams(Wire, frozen=True):
    """The agent's name; null to select none."""

    name: str | None


class LimitParams(Wire, frozen=True):
    """Limits of the window; null switches one off."""

    chars: Count | UnsetType | None = UNSET
    messages: Count | UnsetType | None = UNSET


class ConfigureParams(Wire, frozen=True):
    """Missing means unchanged, null off (limits) or unset."""

    max_history: Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)] | UnsetType | None = UNSET
    title: str | UnsetType | None = UNSET
    mode: Literal["lite", "memo"] | UnsetType = UNSET
    limit: LimitParams | UnsetType | None = UNSET
    every_n_turns: Count | UnsetType | None = UNSET
    memo_enabled: bool | UnsetType | None = UNSET
    summary_enabled: bool | UnsetType | None = UNSET


class ContextSizeParams(Wire, frozen=True):
    """A draft that counts as if it were sent."""

    draft: str | None = None


class ExplainParams(Wire, frozen=True):
    """What would be sent; all as in `turn/start`, and a blank draft is none."""

    draft: str | list[Any] | None = None
    attachments: list[Attachment] | None = None
    agent: str | None = None
    model: str | None = None


class LeftOut(Wire, frozen=True):
    """A message of the session that is not in the request, and why."""

    seq: int
    reason: str


class Repair(Wire, frozen=True):
    """Where the request differs from the message with this seq."""

    seq: int
    rule: str


class ExplainResult(Wire, frozen=True, kw_only=True):
    """The next request in the form of its provider, without sending it."""

    model: str | None
    system: Any
    messages: list[Any]
    tools: list[Any]
    parameters: dict[str, Any]
    tokens: ContextSize
    left: list[LeftOut]
    repairs: list[Repair]


class SaveParams(Wire, frozen=True):
    """Where to write a copy; without a path the session's own file."""

    path: str | None = None


class SaveResult(Wire, frozen=True):
    """The file that was written."""

    path: str
    id: str
    bytes: int


class LoadParams(Wire, frozen=True):
    """Exactly one of `path`, `id` and `latest`."""

    path: str | None = None
    id: str | None = None
    latest: bool | None = None
    limit: Count | None = None
    """How many messages the answer has, the newest; without it the window."""


class ListParams(Wire, frozen=True):
    """Which saved sessions, newest first."""

    query: str | None = None
    limit: Count | None = None
    offset: Count | None = None


class SessionRow(Wire, frozen=True):
    """A saved session; a damaged file has an `error`."""

    id: str
    path: str
    title: str | None = None
    agent: str | None = None
    messages: int = 0
    """Those in the window; `archived` have left it."""
    archived: int = 0
    saved_at: str | None = None
    bytes: int = 0
    error: str | None = None
    expires_at: str | UnsetType = UNSET
    """After that it is deleted; told of one that has such a time (`session.ttl_seconds`)."""


class ListResult(Wire, frozen=True):
    """A page of the saved sessions, and how many there are."""

    sessions: list[SessionRow]
    total: int


class DeleteParams(Wire, frozen=True):
    """The id of the session to delete."""

    id: str
    for_good: bool | None = None
    """Not to the trash, and out of it; nothing brings it back."""


class DeletedResult(Wire, frozen=True):
    """Whether there was something to delete."""

    deleted: bool


class RenameParams(Wire, frozen=True):
    """A saved session's new title; null: the first line of its first prompt."""

    id: str
    title: str | None


class PruneParams(Wire, frozen=True):
    """Which sessions go to the trash; without a limit those of the settings hold."""

    older_than_days: Annotated[float, msgspec.Meta(gt=0, le=MAX_INTEGER)] | None = None
    keep_under_bytes: Count | None = None
    dry_run: bool | None = None
    """Only say what would go."""


class PrunedRow(SessionRow, frozen=True, kw_only=True):
    """A session that went, or would go, and by which limit."""

    reason: Literal["age", "size"]


class PruneResult(Wire, frozen=True):
    """What went, or would go, newest first."""

    sessions: list[PrunedRow]
    bytes: int
    """What is free once the trash is emptied."""
    kept: int
    """How many sessions stay."""
    left: int
    """How many of these were to go: somebody was at them, or they could not be moved."""


class TrashListParams(Wire, frozen=True):
    """Which of the deleted sessions; 100 by default."""

    limit: Count | None = None
    offset: Count | None = None


class TrashRow(SessionRow, frozen=True, kw_only=True):
    """A session in the trash."""

    deleted_at: str


class TrashListResult(Wire, frozen=True):
    """A page of the trash, and how many sessions are in it."""

    sessions: list[TrashRow]
    total: int


class RestoreParams(Wire, frozen=True):
    """The id of a session in the trash; of several the one deleted last."""

    id: str


class RestoreResult(Wire, frozen=True):
    """The session that came back; `renamed`: another one had its id by then."""

    id: str
    path: str
    renamed: bool


class EmptyTrashParams(Wire, frozen=True):
    """Everything in the trash, or only what has this id."""

    id: str | None = None


class EmptyTrashResult(Wire, frozen=True):
    """How many sessions are gone for good."""

    removed: int


class SearchParams(Wire, frozen=True):
    """Words and "quoted phrases" that all have to be in a message; `word*` may go on."""

    query: str
    limit: Count | None = None


class SearchHit(Wire, frozen=True):
    """A message that was found; `id` and `path` are null while the session has none."""

    id: str | None
    path: str | None
    seq: int
    role: str
    saved_at: str | None
    snippet: str
    taken_back: bool | UnsetType = UNSET
    """Told where it is true: the user has taken this wording or message back."""


class SearchResult(Wire, frozen=True):
    """What was found, the newest message first."""

    hits: list[SearchHit]


class ExportParams(Wire, frozen=True):
    """Which session, as what and where to; without an id the current one, without a path as text.

    `redact` false leaves in what looks like a key.
    """

    format: str
    id: str | None = None
    path: str | None = None
    redact: bool | None = None


class ExportResult(Wire, frozen=True):
    """The file that was written, or the text."""

    path: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    redacted: bool | UnsetType = UNSET
    """Told where it is true: something that looks like a key was left out."""
    notes: list[str] | UnsetType = UNSET
    """What of the session the format has no place for, if anything."""


class ImportParams(Wire, frozen=True):
    """A file or a text; its format is found by looking where it is not given."""

    path: str | None = None
    text: str | None = None
    format: str | None = None
    limit: Count | None = None
    """How many messages the answer has, the newest; without it the window."""
    once: bool = False
    """Whether one that is here already is taken instead of a second one."""


class ImportResult(SessionView, frozen=True, kw_only=True):
    """The session as it is now; `notes` say what was not taken over as it stood, if anything."""

    notes: list[str] | UnsetType = UNSET


class RewindParams(Wire, frozen=True):
    """The last message that stays; 0 takes back all."""

    to_seq: Seq


class EditMessageParams(Wire, frozen=True):
    """The new wording of a message."""

    seq: Seq
    content: Content


class ForceParams(Wire, frozen=True):
    """true for a deep resize, a string for a resize of that type."""

    force: bool | str | None = None


class JudgeResult(Wire, frozen=True):
    """What a resize would do, null for nothing."""

    decision: Decision | None


class ResizeResult(Wire, frozen=True):
    """What a resize has done."""

    decision: Decision | None
    evicted: int
    total: int
    tokens_before: int
    tokens_after: int
    memo: Any
    summary: str
    memo_refused: str | None
    """Why the memo was not brought up to date, as a sentence."""


class PreviewResult(Wire, frozen=True):
    """What a resize would do; `draftId` is null where it would do nothing."""

    decision: Decision | None
    evict: list[int]
    keep: list[int]
    memo: Any
    memo_text: str
    summary: str
    tokens_before: int
    tokens_after: int
    draft_id: str | None
    memo_refused: str | None
    """Why the memo would not be brought up to date, as a sentence."""


class ApplyResizeParams(Wire, frozen=True):
    """Which draft, and the user's own memo or summary in place of the draft's."""

    draft_id: str
    memo: Any = None
    summary: str | None = None


class PinParams(Wire, frozen=True):
    """Which message, and whether to hold it."""

    seq: int
    pinned: bool


class PinResult(Wire, frozen=True):
    """The seqs that are pinned now."""

    pins: list[int]


class MemoSetParams(Wire, frozen=True):
    """What to write; what is missing stays as it is."""

    memo: Any = None
    summary: str | None = None


class MemoResult(Wire, frozen=True):
    """Memo and summary, and how far they have come."""

    memo: Any
    memo_text: str
    """The memo as indented JSON, for clients that cannot tell `{}` from null."""
    summary: str
    memo_cursor: int
    last_resize: Any
    summary_in_progress: bool


class StateGetParams(Wire, frozen=True):
    """Which key; without one the whole state."""

    key: str | None = None


class StateGetResult(Wire, frozen=True):
    """With a key `found` and `value` (a stored null is found), without one `state`."""

    found: bool | UnsetType = UNSET
    value: Any = UNSET
    state: dict[str, Any] | UnsetType = UNSET


class StateSetParams(Wire, frozen=True):
    """A key and any value."""

    key: str
    value: Any


class StateDeleteParams(Wire, frozen=True):
    """The key to delete."""

    key: str


class TurnStartParams(Wire, frozen=True):
    """What the user says; `agent` and `model` hold for this turn."""

    prompt: str | list[Any]
    attachments: list[Attachment] | None = None
    agent: str | None = None
    model: str | None = None


class TurnResult(Wire, frozen=True):
    """How the turn ended; `firstSeq` to `lastSeq` are the messages it added."""

    turn_id: str
    stop_reason: StopReason
    text: str
    first_seq: int
    last_seq: int
    steps: int
    usage: Usage
    context_size: ContextSize


class TurnCancelParams(Wire, frozen=True):
    """Which turn; without an id the one that runs."""

    turn_id: str | None = None


class TurnCancelResult(Wire, frozen=True):
    """False when nothing was running."""

    cancelled: bool


class TurnSteerParams(Wire, frozen=True):
    """What the running turn should take into account; with an id only that turn."""

    text: str
    turn_id: str | None = None


class TurnSteerResult(Wire, frozen=True):
    """The text will be part of the conversation; `stored` is false where the disk refused it."""

    queued: bool
    stored: bool | UnsetType = UNSET


class AgentsListParams(Wire, frozen=True):
    """`all` also shows those that a user cannot select."""

    all: bool | None = None


class AgentsListResult(Wire, frozen=True):
    """The agents, and the one that answers where none is selected."""

    agents: list[Agent]
    default: str | None


class ModelRow(Wire, frozen=True):
    """A model, and why it cannot be used where it cannot."""

    name: str
    provider: str
    context_window: int | None = None
    available: bool = True
    reason: str | None = None


class ModelsListResult(Wire, frozen=True):
    """All models, and the session's."""

    models: list[ModelRow]
    current: str | None


class ModelsSetParams(Wire, frozen=True):
    """`provider/name`."""

    name: str


class ModelsSetResult(Wire, frozen=True):
    """The session's model from the next turn on."""

    model: str


class EditsListParams(Wire, frozen=True):
    """How many edits, and of which turn; without them all."""

    limit: Count | None = None
    turn_id: str | None = None


class Edit(Wire, frozen=True, kw_only=True):
    """A recorded change of one of the user's files."""

    id: str
    turn_id: str
    session_id: str | None
    path: str
    at: str
    undone: bool
    added: int
    removed: int


class EditsListResult(Wire, frozen=True):
    """The edits that can be undone or redone, newest first."""

    edits: list[Edit]


class EditsTurn(Wire, frozen=True):
    """A turn whose edits would be undone or redone, and the files that would change."""

    turn_id: str
    session_id: str | None
    at: str
    paths: list[str]


class EditsNextResult(Wire, frozen=True):
    """What an undo and a redo without an id would be about; null where there is nothing to do."""

    undo: EditsTurn | None
    redo: EditsTurn | None


class EditParams(Wire, frozen=True):
    """One edit or one turn, not both; with neither the turn that `tiro/edits/next` tells."""

    id: str | None = None
    turn_id: str | None = None


class EditResult(Wire, frozen=True):
    """The files of the edits that were undone or redone; what the turn ran besides stays done."""

    paths: list[str]
    commands: list[str]


class PermissionsExplainParams(Wire, frozen=True):
    """A tool use of this agent; without one, of the agent that would answer next."""

    tool: str
    input: dict[str, Any]
    agent: str | None = None


class PermissionRule(Wire, frozen=True):
    """A rule, whose it is, and the command or path of a tool use that it decides about."""

    rule: str
    source: str
    about: str | None


class PermissionsExplainResult(Wire, frozen=True):
    """What would be decided about it, the rule that decides, and whose rule it is.

    `rules` are all that decide so, that one first: 20 at most.
    """

    decision: Literal["allow", "ask", "deny"]
    rule: str
    source: str
    rules: list[PermissionRule]


class StatusResult(Wire, frozen=True, kw_only=True):
    """What this server is and how it is set up."""

    version: str
    protocol_version: int = PROTOCOL_VERSION
    python: str
    config_files: list[str]
    sessions_directory: str
    model: str | None
    provider: str | None
    problems: list[str]


# --- initialize -----------------------------------------------------------------------------------


class Features(Wire, frozen=True):
    """What the client can do beyond LSP."""

    permission_request: bool | None = None
    turn_events: bool | None = None
    diagnostics: bool | None = None
    """It answers `tiro/editor/diagnostics`."""


class InitializationOptions(Wire, frozen=True):
    """`settings` has the shape of the config file and beats it."""

    settings: dict[str, Any] | None = None
    features: Features | None = None
    workspace_trusted: bool | None = None


class LatestSession(Wire, frozen=True):
    """The session that a client may offer to go on with."""

    id: str
    title: str | None
    saved_at: str | None


class Resume(Wire, frozen=True):
    """What a fresh start offers; the server loads by itself only for `latest`."""

    setting: Literal["latest", "new", "ask"]
    latest: LatestSession | None


class Experimental(Wire, frozen=True, kw_only=True):
    """`capabilities.experimental.tiro` of the initialize result."""

    protocol_version: int = PROTOCOL_VERSION
    server_version: str
    methods: list[str]
    resume: Resume


# --- events and the editor's side -----------------------------------------------------------------


class ToolUse(Wire, frozen=True):
    """What the model wants to run; the input is for display and may be cut."""

    id: str
    name: str
    input: Any


class ErrorObject(Wire, frozen=True):
    """A JSON-RPC error."""

    code: int
    message: str
    data: dict[str, Any] | UnsetType = UNSET


class Event(Wire, frozen=True, tag_field="type"):
    """One notification `tiro/turn/event`; `n` counts from 1 within the turn."""

    session_id: str | None
    turn_id: str
    n: int


class StartedEvent(Event, frozen=True, tag="started"):
    """Always the first; `seq` is the user's message."""

    agent: str
    model: str
    seq: int


class TextEvent(Event, frozen=True, tag="text"):
    """More of the answer."""

    delta: str


class ThinkingEvent(Event, frozen=True, tag="thinking"):
    """More of what the model thinks before it answers."""

    delta: str


class ToolUseEvent(Event, frozen=True, tag="toolUse"):
    """A step in the life of a tool use; `rule` decided about it."""

    tool_use: ToolUse
    status: ToolStatus
    rule: str | None
    preview: str | UnsetType = UNSET
    parent_tool_use_id: str | UnsetType = UNSET


class ToolOutputEvent(Event, frozen=True, tag="toolOutput"):
    """More output of a running tool."""

    tool_use_id: str
    delta: str


class ToolResultEvent(Event, frozen=True, tag="toolResult"):
    """A tool's result, cut to 4,096 bytes; `session/content` with its seq gives all of it.

    `end`: how a longer one ends, in 2,048 bytes; `left_out`: how many characters lie between.
    """

    tool_use_id: str
    is_error: bool
    content: str
    truncated: bool
    seq: int | None
    end: str | UnsetType = UNSET
    left_out: int | UnsetType = UNSET


class StoredEvent(Event, frozen=True, tag="stored"):
    """A finished message is part of the session."""

    seq: int
    role: str


class RetryEvent(Event, frozen=True, tag="retry"):
    """The request will be sent again after a wait."""

    attempt: int
    wait_seconds: float
    reason: str


class ResizeEvent(Event, frozen=True, tag="resize"):
    """The window was brought under its limits before a request."""

    decision: Decision | None
    evicted: int
    tokens_before: int
    tokens_after: int
    memo_refused: str | None
    """Why the memo was not brought up to date, as a sentence."""


class UsageEvent(Event, frozen=True, tag="usage"):
    """The usage of the turn so far."""

    usage: Usage
    context_size: ContextSize


class FinishedEvent(Event, frozen=True, tag="finished", omit_defaults=True):
    """Always the last."""

    stop_reason: StopReason | Literal["error"]
    error: ErrorObject | None = None


EVENTS: tuple[type[Event], ...] = (
    StartedEvent,
    TextEvent,
    ThinkingEvent,
    ToolUseEvent,
    ToolOutputEvent,
    ToolResultEvent,
    StoredEvent,
    RetryEvent,
    ResizeEvent,
    UsageEvent,
    FinishedEvent,
)


class SessionChanged(Wire, frozen=True):
    """A change of the session that the client did not ask for; `why` it cannot be saved."""

    reason: ChangeReason
    id: str | None
    total: int
    context_size: ContextSize
    why: str | UnsetType = UNSET


class PermissionParams(Wire, frozen=True):
    """May this tool run? `rule` led to the question, `always` is what that answer would add."""

    turn_id: str
    tool_use: ToolUse
    agent: str | None
    rule: str
    effect: Effect
    always: list[str]
    preview: str | UnsetType = UNSET


class PermissionResult(Wire, frozen=True):
    """`always` adds a rule for the rest of the session; a rejection's message goes to the model."""

    decision: Literal["once", "always", "reject"]
    message: str | None = None


class DiagnosticsParams(Wire, frozen=True):
    """The question which problems the editor shows in this file, or in all that it knows of."""

    path: str | UnsetType = UNSET


class Diagnostic(Wire, frozen=True, kw_only=True):
    """A problem that the editor shows; `code` is a language server's own name for it."""

    path: str
    range: Range
    severity: Literal["error", "warning", "information", "hint"]
    source: str | None = None
    code: str | int | None = None
    message: str


class DiagnosticsResult(Wire, frozen=True):
    """All of them, in any order."""

    diagnostics: list[Diagnostic]


# --- the tables -----------------------------------------------------------------------------------


class Method(NamedTuple):
    """A method's params and result, and how it is run beside the others."""

    params: type[Wire]
    result: Any
    is_ordered: bool = True
    """Waits for the requests before it: it changes the session, or reads what they changed."""
    is_cancellable: bool = False
    """Leaves everything as it was when it is cancelled half way; the others are finished."""
    asks_a_model: bool = False
    """Ordered and cancellable, but from the first question to a model on nobody waits for it."""


METHODS: dict[str, Method] = {
    "tiro/session/get": Method(GetParams, SessionView),
    "tiro/session/content": Method(ContentParams, ContentResult),
    "tiro/session/show": Method(Empty, ShowResult),
    "tiro/session/statistics": Method(Empty, Statistics),
    "tiro/session/new": Method(NewParams, SessionView),
    "tiro/session/clear": Method(Empty, ClearResult),
    "tiro/session/addMessage": Method(AddMessageParams, AddResult),
    "tiro/session/addToolResult": Method(AddToolResultParams, AddResult),
    "tiro/session/getId": Method(Empty, GetIdResult),
    "tiro/session/getAgent": Method(Empty, AgentResult),
    "tiro/session/setAgent": Method(SetAgentParams, AgentResult),
    "tiro/session/configure": Method(ConfigureParams, SessionView),
    "tiro/session/contextSize": Method(ContextSizeParams, ContextSize),
    "tiro/session/explain": Method(ExplainParams, ExplainResult, is_cancellable=True),
    "tiro/session/save": Method(SaveParams, SaveResult),
    "tiro/session/load": Method(LoadParams, SessionView),
    "tiro/session/list": Method(ListParams, ListResult, is_cancellable=True),
    "tiro/session/delete": Method(DeleteParams, DeletedResult),
    "tiro/session/rename": Method(RenameParams, Empty),
    "tiro/session/prune": Method(PruneParams, PruneResult),
    "tiro/trash/list": Method(TrashListParams, TrashListResult, is_cancellable=True),
    "tiro/trash/restore": Method(RestoreParams, RestoreResult),
    "tiro/trash/empty": Method(EmptyTrashParams, EmptyTrashResult),
    "tiro/session/search": Method(SearchParams, SearchResult, is_ordered=False),
    "tiro/session/export": Method(ExportParams, ExportResult),
    "tiro/session/import": Method(ImportParams, ImportResult),
    "tiro/session/rewind": Method(RewindParams, SessionView),
    "tiro/session/editMessage": Method(EditMessageParams, SessionView),
    "tiro/session/judgeResize": Method(ForceParams, JudgeResult, is_cancellable=True),
    "tiro/session/resize": Method(ForceParams, ResizeResult, asks_a_model=True),
    "tiro/session/compact": Method(Empty, ResizeResult, asks_a_model=True),
    "tiro/session/previewResize": Method(ForceParams, PreviewResult, asks_a_model=True),
    "tiro/session/applyResize": Method(ApplyResizeParams, ResizeResult),
    "tiro/session/undoResize": Method(Empty, SessionView),
    "tiro/session/pin": Method(PinParams, PinResult),
    "tiro/memo/get": Method(Empty, MemoResult),
    "tiro/memo/set": Method(MemoSetParams, MemoResult),
    "tiro/state/get": Method(StateGetParams, StateGetResult),
    "tiro/state/set": Method(StateSetParams, Empty),
    "tiro/state/delete": Method(StateDeleteParams, DeletedResult),
    "tiro/turn/start": Method(TurnStartParams, TurnResult, is_ordered=False),
    "tiro/turn/steer": Method(TurnSteerParams, TurnSteerResult, is_ordered=False),
    "tiro/turn/cancel": Method(TurnCancelParams, TurnCancelResult, is_ordered=False),
    "tiro/agents/list": Method(AgentsListParams, AgentsListResult, is_ordered=False),
    "tiro/models/list": Method(Empty, ModelsListResult, is_ordered=False),
    "tiro/models/set": Method(ModelsSetParams, ModelsSetResult),
    "tiro/edits/list": Method(EditsListParams, EditsListResult, is_ordered=False),
    "tiro/edits/next": Method(Empty, EditsNextResult, is_ordered=False),
    "tiro/edits/undo": Method(EditParams, EditResult, is_ordered=False),
    "tiro/edits/redo": Method(EditParams, EditResult, is_ordered=False),
    "tiro/permissions/explain": Method(
        PermissionsExplainParams, PermissionsExplainResult, is_ordered=False
    ),
    "tiro/status": Method(Empty, StatusResult, is_ordered=False),
}
"""Client → server. `turn/start` and `search` are in order until they have begun.

`turn/steer` waits for the turns before it to start.
"""

NOTIFICATIONS: dict[str, Any] = {
    "tiro/turn/event": EVENTS,
    "tiro/session/changed": SessionChanged,
}
"""Server → client."""

SERVER_REQUESTS: dict[str, Method] = {
    "tiro/permission/request": Method(PermissionParams, PermissionResult),
    "tiro/editor/diagnostics": Method(DiagnosticsParams, DiagnosticsResult),
}

COMMANDS: tuple[str, ...] = (
    "tiro.showSession",
    "tiro.clearSession",
    "tiro.newSession",
    "tiro.saveSession",
    "tiro.loadSession",
    "tiro.listSessions",
    "tiro.showCurrentAgent",
    "tiro.selectAgent",
    "tiro.ask",
    "tiro.cancel",
    "tiro.resizeSession",
    "tiro.compactSession",
    "tiro.contextSize",
    "tiro.searchSessions",
    "tiro.exportSession",
    "tiro.importSession",
    "tiro.undoEdits",
    "tiro.redoEdits",
)
"""What `workspace/executeCommand` takes."""

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

ERRORS: dict[type[errors.TiroError], tuple[int, str | None]] = {
    errors.InvalidInputError: (INVALID_PARAMS, None),
    errors.InvalidSessionIdError: (INVALID_PARAMS, None),
    errors.SessionFormatError: (-32010, "sessionFileInvalid"),
    errors.SessionInUseError: (-32011, "sessionInUse"),
    errors.StorageError: (-32012, "storeFailed"),
    errors.SessionExistsError: (-32013, "sessionExists"),
    errors.SessionNotFoundError: (-32014, "sessionNotFound"),
    errors.TurnInProgressError: (-32020, "turnInProgress"),
    errors.TurnNotFoundError: (-32021, "turnNotFound"),
    errors.AgentNotFoundError: (-32030, "agentNotFound"),
    errors.ModelNotConfiguredError: (-32031, "modelNotConfigured"),
    errors.ModelError: (-32032, "modelFailed"),
    errors.ContextOverflowError: (-32033, "contextOverflow"),
    errors.BudgetExceededError: (-32034, "budgetExceeded"),
    errors.InvalidMessageError: (-32040, "invalidMessage"),
    errors.ResizeError: (-32041, "resizeFailed"),
    errors.EditConflictError: (-32050, "editConflict"),
    errors.SessionChangedError: (INTERNAL_ERROR, None),
    errors.ToolError: (INTERNAL_ERROR, None),
}
"""Error class → code and kind. The last two are for programs and models; none comes this far."""


def schema() -> dict[str, Any]:
    """JSON Schema of everything on the wire, with the lists of methods that lead to it."""
    wanted: list[Any] = []
    for method in (*METHODS.values(), *SERVER_REQUESTS.values()):
        wanted += [method.params, method.result]
    wanted += [*EVENTS, SessionChanged, InitializationOptions, Experimental, ErrorObject]
    found, definitions = msgspec.json.schema_components(wanted, ref_template="#/$defs/{name}")
    left = iter(found)

    def pair() -> dict[str, Any]:
        return {"params": next(left), "result": next(left)}

    methods = {name: pair() for name in METHODS}
    server_requests = {name: pair() for name in SERVER_REQUESTS}
    events = [next(left) for _ in EVENTS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The Tiro protocol",
        "protocolVersion": PROTOCOL_VERSION,
        "methods": methods,
        "notifications": {
            "tiro/turn/event": {"params": {"oneOf": events}},
            "tiro/session/changed": {"params": next(left)},
        },
        "serverRequests": server_requests,
        "initializationOptions": next(left),
        "experimental": next(left),
        "error": next(left),
        "errors": [
            {"code": code, "kind": kind} for code, kind in ERRORS.values() if kind is not None
        ],
        "commands": list(COMMANDS),
        "$defs": definitions,
    }
