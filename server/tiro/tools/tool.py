"""What a tool is: its name, its input schema, its effect, and the function that runs it.

Law: a tool is only ever run with an input that `check_input` has accepted, and what it gives back
passes through `limit_output` before a model or an editor sees it. Whatever goes wrong on purpose is
a ToolError, whose text tells the model what to do next.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec, Protocol, TypeVar

import msgspec

from tiro.errors import ToolError
from tiro.session.secrets import KnownSecrets
from tiro.tools.file_text import FileText
from tiro.tools.long_output import OutputKeeper
from tiro.tools.merge import count_changes
from tiro.tools.seen import SeenTexts
from tiro.tools.silent_disk import Patience, SilentDiskError, in_thread, watched
from tiro.tools.workspace import Workspace

Effect = Literal["read", "write", "execute", "network"]
P = ParamSpec("P")
T = TypeVar("T")

MAX_OUTPUT_CHARS = 50_000
"""What a model gets to see of one tool result at most; about 12,000 tokens."""

ROOM_FOR_MARKS = 600
"""So many characters of its limit a tool keeps for headings and for saying that there is more."""

OUTPUT_CUT = "\n\n[… {left_out:,} of {total:,} characters are left out here. {advice} …]\n\n"
NO_ANSWER = (
    "The disk of {path!r} does not answer, so this was given up and its outcome is not known. Go on"
    " without that disk, or tell the user"
)
OUTPUT_ADVICE = "Ask for a smaller part, or filter the output, to see them."


class Recorded(NamedTuple):
    """An edit that is recorded."""

    id: str
    added: int
    removed: int
    """How many lines."""


class EditRecorder(Protocol):
    """Where a tool use records each change of a file, so that it can be undone later.

    A tool holds `changing` while it records and writes, calls `record` right before it writes, and
    `failed` when the write did not happen. What it read before is compared when it writes.
    """

    def changing(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Nobody else of this process changes the file with this real path in the meantime."""
        ...

    async def record(self, path: Path, before: FileText | None, after: str | None) -> Recorded:
        """Record that the text of the file with this real path is about to change.

        None stands for no file. It is safe on the disk when this returns; raises ToolError where
        it could not be recorded, and then nothing may be changed.
        """
        ...

    async def failed(self, edit_id: str) -> None:
        """What was recorded did not happen: the file is as it was. Never raises."""
        ...


class Unrecorded:
    """Records nothing: for whoever has no user that may want to undo an edit."""

    def changing(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Waits for nobody."""
        return nullcontext()

    async def record(self, path: Path, before: FileText | None, after: str | None) -> Recorded:
        """Only counts what changes."""
        old = "" if before is None else before.text
        return Recorded("", *await in_thread(count_changes, old, after or ""))

    async def failed(self, edit_id: str) -> None:
        """Has nothing to take back."""


class ToolRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one running tool use may use."""

    tool_use_id: str
    workspace: Workspace
    may_read: Callable[[Path], bool]
    """Whether the agent's rules allow to show the text of this file (its real path)."""
    edits: EditRecorder = Unrecorded()
    """Where the tool use records each change of a file."""
    seen: SeenTexts = msgspec.field(default_factory=SeenTexts)
    """Which texts of files the model has seen in this turn."""
    patience: Patience = msgspec.field(default_factory=Patience)
    """With the disks that are asked."""
    secrets: KnownSecrets = msgspec.field(default_factory=KnownSecrets)
    """What no command gets to see, and what is taken out of all that a tool gives back."""
    on_output: Callable[[str], None]
    """Shows a piece of output while the tool is still running; may be called from any thread."""
    on_event: Callable[[Any], None] = lambda event: None
    """Passes on what happens in a turn that the tool runs."""
    max_output_chars: int = MAX_OUTPUT_CHARS
    """What the model gets to see at most; a tool that can give a part of its answer keeps to it."""
    keep_output: Callable[[], OutputKeeper | None] = lambda: None
    """Finds who keeps an output that is too long to be held; None where nobody does."""
    tell_so_far: Callable[[Callable[[], str]], None] = lambda _: None
    """Takes what gives the output so far: a use that is cancelled tells it in its result."""
    cancelled: threading.Event
    """Set when nobody waits for the result any more; work in threads looks at it and ends."""
    notes: dict[str, Any] = msgspec.field(default_factory=dict)
    """What the tool's preview leaves for its run, such as the text that was seen."""


class ToolOutput(msgspec.Struct, frozen=True):
    """What a tool answers."""

    content: str
    is_error: bool = False
    images: tuple[dict[str, Any], ...] = ()
    """Image blocks that the model sees after the text."""
    whole: tuple[dict[str, Any], ...] = ()
    """Where all of it is kept, when `content` is only its beginning and its end."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that can be offered to a model."""

    name: str
    description: str
    input_schema: dict[str, Any]
    effect: Effect
    permission_key: str
    """The key of the permission rules that govern it, such as `read`."""
    run: Callable[[dict[str, Any], ToolRun], Awaitable[ToolOutput]]
    subject_field: str | None = None
    """The field of the input that the patterns of the permission rules are tested on."""
    preview: Callable[[dict[str, Any], ToolRun], Awaitable[str | None]] | None = None
    """What would be done, for the user: a diff or a command line; changes nothing.

    It is called before `run`, with the same ToolRun; a ToolError ends the tool use unasked.
    """
    shown: dict[str, Any] = {}
    """The schema of the input as a model is shown it, which follows from `input_schema`."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "shown", shown_schema(self.input_schema))


def object_schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """The JSON Schema of an object with these fields and no others."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return {**schema, "additionalProperties": False}


async def run_in_thread(
    run: ToolRun, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Run blocking work in a thread, and tell it to end when the wait for it is cancelled."""
    try:
        return await in_thread(function, *args, **kwargs)
    except asyncio.CancelledError:
        run.cancelled.set()
        raise


async def while_disks_answer(
    work: Awaitable[T], workspace: Workspace, patience: Patience, *given: str
) -> T:
    """The result of work for a tool; ToolError where a disk does not answer.

    Those are asked that have to do with the workspace, as it is held, and with the paths given.
    """
    try:
        return await watched(work, partial(workspace.disks, *given), patience)
    except SilentDiskError as error:
        raise ToolError(NO_ANSWER.format(path=error.place)) from error


def check_input(schema: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The input as the tool may use it; null for an optional field counts as not given.

    Knows the part of JSON Schema that our tools use: type, properties, required,
    additionalProperties, items, enum, minimum, maximum, minLength, maxLength, maxItems.
    Raises ToolError with every fault, named by its path.
    """
    required = schema.get("required", ())
    value = {key: item for key, item in given.items() if item is not None or key in required}
    faults = list(_faults(schema, value, ""))
    if faults:
        raise ToolError("The input is not usable: " + "; ".join(faults) + ". Nothing was run")
    return value


def shown_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as a model is shown it, without the bounds that a sensible input keeps anyway.

    `check_input` holds them all the same and says what is wrong; shown, they would be in every
    request. Nor are defaults shown, which descriptions tell.
    """
    shown = {key: value for key, value in schema.items() if key not in UNSHOWN}
    if isinstance(items := shown.get("items"), dict):
        shown["items"] = shown_schema(items)
    if "properties" in shown:
        fields = shown["properties"].items()
        shown["properties"] = {name: shown_schema(field) for name, field in fields}
    return shown


def limit_output(
    text: str,
    *,
    max_chars: int = MAX_OUTPUT_CHARS,
    advice: str = OUTPUT_ADVICE,
    total_chars: int = 0,
) -> str:
    """The text, without its middle and with a clear mark when it is longer than a model should get.

    Two thirds of what is left are the end: that is where a program says how it went. `total_chars`
    is how long it was where its middle is gone already.
    """
    if len(text) <= max_chars:
        return text
    head, left_out = max_chars // 3, len(text) - max_chars
    total = max(total_chars, len(text))
    mark = OUTPUT_CUT.format(left_out=total - max_chars, total=total, advice=advice)
    return text[:head] + mark + text[head + left_out :]


UNSHOWN = {"minimum", "minLength", "maxLength", "maxItems", "default"}

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _faults(schema: dict[str, Any], value: Any, path: str) -> list[str]:
    """Every fault of a value, as "`path` must be …"."""
    name = f"`{path}`" if path else "the input"
    kind = schema.get("type")
    if kind is not None and not _is_of_type(value, kind):
        return [f"{name} must be of type {kind}, not {_type_name(value)}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{name} must be one of {', '.join(map(repr, schema['enum']))}"]
    if isinstance(value, dict):
        return _object_faults(schema, value, path)
    if isinstance(value, list):
        return _array_faults(schema, value, path, name)
    return _range_faults(schema, value, name)


def _object_faults(schema: dict[str, Any], value: dict[str, Any], path: str) -> list[str]:
    properties = schema.get("properties", {})
    start = f"{path}." if path else ""
    missing = [key for key in schema.get("required", ()) if key not in value]
    faults = [f"`{start}{key}` is missing" for key in missing]
    for key, item in value.items():
        if key in properties:
            faults += _faults(properties[key], item, f"{start}{key}")
        elif schema.get("additionalProperties") is False:
            faults.append(f"`{start}{key}` is unknown (known: {', '.join(properties)})")
    return faults


def _array_faults(schema: dict[str, Any], value: list[Any], path: str, name: str) -> list[str]:
    if len(value) > schema.get("maxItems", len(value)):
        return [f"{name} must have at most {schema['maxItems']} items"]
    faults = []
    for index, item in enumerate(value):
        faults += _faults(schema.get("items", {}), item, f"{path}[{index}]")
    return faults


def _range_faults(schema: dict[str, Any], value: Any, name: str) -> list[str]:
    faults = []
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            faults.append(f"{name} must not be empty")
        if len(value) > schema.get("maxLength", len(value)):
            faults.append(f"{name} must have at most {schema['maxLength']} characters")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            faults.append(f"{name} must be at least {schema['minimum']}")
        if value > schema.get("maximum", value):
            faults.append(f"{name} must be at most {schema['maximum']}")
    return faults


def _is_of_type(value: Any, kind: str | list[str]) -> bool:
    if isinstance(kind, list):
        return any(_is_of_type(value, one) for one in kind)
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _type_name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return next(name for name, types in _TYPES.items() if isinstance(value, types))
