"""What a person in a terminal sees: answers on stdout, all about them on stderr.

Each function here starts a real server for its one purpose and is its client, as an editor is. An
error of the server becomes the `TiroError` that `cli` has an exit code for.
"""

import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tiro import output
from tiro.edit_text import named_edits
from tiro.errors import InvalidInputError, TiroError
from tiro.permission_text import LASTS, lasting, nobody_asked
from tiro.protocol import types
from tiro.protocol.client import (
    Client,
    OnNotification,
    RemoteError,
    ServerGoneError,
    ServerSilentError,
)
from tiro.screen_text import flat
from tiro.session.hidden import visible
from tiro.session.messages import Message
from tiro.session.redact import redact_shapes
from tiro.session.times import from_rfc3339
from tiro.session.transcript import plain_text
from tiro.shown_turn import JsonLines, Screen, tell

T = TypeVar("T")

ERRORS: dict[str, type[TiroError]] = {
    kind: error for error, (_, kind) in types.ERRORS.items() if kind
}
"""The kind that the server sends → the error that it was there."""

PAGE_MESSAGES = 500
"""So many messages are read at once of a session that is shown whole."""

MOST_SESSIONS = 1_000_000
"""More than any directory holds: all of them."""

DAMAGED = (
    "The newest session is damaged: {}. It stays as it is, and `tiro sessions verify --repair`"
    " mends what can be; this is a new one"
)
TOLD_OF_LATEST = {
    "sessionNotFound": "No session is saved yet; this is a new one",
    "sessionFileInvalid": DAMAGED,
}
"""What keeps nobody from asking, by its kind."""

CAPABILITIES = {"window": {"workDoneProgress": True}}
SETTINGS = {"session": {"resume": "new"}}
"""A command starts with an empty session, whatever an editor does."""
IMPORTING = {"session": {**SETTINGS["session"], "autosave": True}}
"""An import is there to be stored."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One `tiro ask`; `is_continued` goes on with the newest saved session."""

    text: str
    files: Sequence[str] = ()
    piped: str = ""
    agent: str | None = None
    model: str | None = None
    is_continued: bool = False
    as_json: bool = False


# --- asking --------------------------------------------------------------------------------


def ask(question: Question) -> bool:
    """Show the answer as it comes; False when Ctrl-C cancelled it.

    Raises BrokenPipeError when nobody reads on.
    """
    return _run(_ask(question))


async def _ask(question: Question) -> bool:
    screen = JsonLines() if question.as_json else Screen()
    async with _server(screen.hear) as client:
        if question.is_continued:
            await load_latest(client.request, tell)
        with_cancel = asyncio.create_task(_cancel_when(screen.has_enough, client))
        try:
            with _first_interrupt(screen.has_enough.set):
                result = await client.request("tiro/turn/start", _turn_params(question))
        finally:
            with_cancel.cancel()
        screen.end(result)
        if screen.failure:
            raise screen.failure
        return bool(result["stopReason"] != "cancelled")


async def load_latest(
    request: Callable[[str, Any], Awaitable[Any]], tell: Callable[[str], None]
) -> dict[str, Any] | None:
    """Go on with the newest session; its view.

    Where there is none, or it is damaged, that is told, and a new one is there for what is asked:
    an older one would be about something else.
    """
    rows = (await request("tiro/session/list", {"limit": MOST_SESSIONS}))["sessions"]
    damaged = max((row for row in rows if row["error"] and row["bytes"]), key=_mtime, default=None)
    sound = next((row for row in rows if not row["error"]), None)
    if damaged and (sound is None or _mtime(damaged) > _seconds(sound["savedAt"])):
        tell(DAMAGED.format(f"{damaged['path']!r} cannot be read: {damaged['error']}"))
        return None
    try:
        view: dict[str, Any] = await request("tiro/session/load", {"latest": True})
        return view
    except RemoteError as error:
        if error.kind not in TOLD_OF_LATEST:
            raise
        tell(TOLD_OF_LATEST[error.kind].format(error))
        return None


def _mtime(row: dict[str, Any]) -> float:
    with suppress(OSError):
        return Path(row["path"]).stat().st_mtime
    return 0.0


def _seconds(time: str | None) -> float:
    found = from_rfc3339(time or "")
    return found.timestamp() if found else 0.0


def _turn_params(question: Question) -> dict[str, Any]:
    attachments = [{"kind": "file", "path": path} for path in question.files]
    if question.piped:
        attachments.append({"kind": "text", "text": question.piped})
    return {
        "prompt": question.text,
        "attachments": attachments,
        "agent": question.agent,
        "model": question.model,
    }


async def _cancel_when(wanted: asyncio.Event, client: Client) -> None:
    await wanted.wait()
    with suppress(RemoteError, ServerGoneError):  # the turn itself tells what went wrong
        await client.cancel()


def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of one request to a server of its own."""
    return _run(_asked(method, params))


def requests(all_of: Sequence[tuple[str, dict[str, Any]]]) -> list[dict[str, Any] | TiroError]:
    """What came of each request to one server, in their order."""
    return _run(_asked_all(all_of))


# --- saved sessions ------------------------------------------------------------------------


def sessions(query: str | None, limit: int) -> dict[str, Any]:
    """The result of `tiro/session/list`."""
    return _run(_asked("tiro/session/list", {"query": query, "limit": limit}))


def session_text(id: str) -> str:
    """All that was said in a saved session, what has left the window too."""
    return _run(_text(id))


def session_summary(id: str) -> str:
    """A saved session as a line for each of its newest messages."""
    return _run(_loaded(id, "tiro/session/show"))["text"] or ""


def session_view(id: str) -> dict[str, Any]:
    """All that a saved session holds."""
    return _run(_loaded(id, "tiro/session/get"))


def edits(limit: int) -> list[dict[str, Any]]:
    """What tools have changed in files, the newest first."""
    listed: list[dict[str, Any]] = _run(_asked("tiro/edits/list", {"limit": limit}))["edits"]
    return listed


def next_edits(what: str) -> dict[str, Any] | None:
    """The turn of `tiro/edits/next` that an undo or redo without an id is about."""
    turn: dict[str, Any] | None = _run(_asked("tiro/edits/next", {}))[what]
    return turn


def move_edits(what: str, id: str | None) -> dict[str, list[str]]:
    """Undo or redo an edit or a turn's, else the newest that can be; the answer of the wire."""
    return _run(_moved(what, id))


def search(query: str, limit: int) -> list[dict[str, Any]]:
    """The hits of `tiro/session/search`."""
    hits: list[dict[str, Any]] = _run(
        _asked("tiro/session/search", {"query": query, "limit": limit})
    )["hits"]
    return hits


def line_of(hit: dict[str, Any]) -> str:
    """A hit on one line: the session, when it was saved, who said it, and what."""
    when = (hit["savedAt"] or "")[:16].replace("T", " ")
    return f"{flat(hit['id'])}  {when}  {hit['role']}: {flat(hit['snippet'])}\n"


def export(id: str, format: str, path: str | None) -> dict[str, Any]:
    """A saved session in another format: the file that was written, or the text."""
    return _run(_exported(id, {"format": format, "path": path}))


def rename(id: str, title: str | None) -> str:
    """Give a saved session another title; its id, also of the latest."""
    return _run(_renamed(id, title))


def import_files(
    files: Sequence[str],
    format: str | None,
    limit: int | None,
    show: Callable[[str, dict[str, Any] | TiroError], None],
) -> None:
    """Take files over as sessions of their own; `show` hears of each what became of it.

    A result has the newest `limit` messages, the window without one.
    """
    _run(_imported(files, {"format": format, "limit": limit}, show))


async def _imported(
    files: Sequence[str],
    how: dict[str, Any],
    show: Callable[[str, dict[str, Any] | TiroError], None],
) -> None:
    async with _server(settings=IMPORTING) as client:
        for file in files:
            wanted = {"path": file, "once": True, **how}
            try:
                result = await client.request("tiro/session/import", wanted)
                if result["savedAt"] is None:
                    await client.request("tiro/session/save")  # which says what is wrong
                show(file, result)
            except RemoteError as error:
                show(file, raised_there(error))


async def _renamed(id: str, title: str | None) -> str:
    async with _server() as client:
        if id == "latest":
            found = await client.request("tiro/session/load", {"latest": True, "limit": 0})
            id = found["id"]
            await client.request("tiro/session/clear")  # or one that is not saved by itself is not
        await client.request("tiro/session/rename", {"id": id, "title": title})
        return id


async def _exported(id: str, how: dict[str, Any]) -> dict[str, Any]:
    async with _server() as client:
        if id == "latest":
            await _load(client, id)
        which = {} if id == "latest" else {"id": id}
        result: dict[str, Any] = await client.request("tiro/session/export", {**which, **how})
        return result


async def _text(id: str) -> str:
    """The messages come in pages, the newest page first."""
    async with _server() as client:
        await _load(client, id)
        pages: list[list[Message]] = []
        before: int | None = None
        while not pages or pages[-1]:
            params = {"limit": PAGE_MESSAGES, "beforeSeq": before}
            page = (await client.request("tiro/session/get", params))["messages"]
            pages.append([Message.from_dict(message) for message in page])
            before = page[0]["seq"] if page else None
        return redact_shapes(plain_text(m for page in reversed(pages) for m in page))


async def _loaded(id: str, method: str) -> dict[str, Any]:
    async with _server() as client:
        await _load(client, id)
        result: dict[str, Any] = await client.request(method)
        return result


async def _load(client: Client, id: str) -> None:
    which = {"latest": True} if id == "latest" else {"id": id}
    await client.request("tiro/session/load", which)


async def _moved(what: str, id: str | None) -> dict[str, Any]:
    async with _server() as client:
        which = {}
        if id is not None:
            which = named_edits((await client.request("tiro/edits/list", {}))["edits"], id)
        result: dict[str, Any] = await client.request(f"tiro/edits/{what}", which)
        return result


async def _asked(method: str, params: dict[str, Any]) -> dict[str, Any]:
    async with _server() as client:
        result: dict[str, Any] = await client.request(method, params)
        return result


async def _asked_all(
    requests: Sequence[tuple[str, dict[str, Any]]],
) -> list[dict[str, Any] | TiroError]:
    results: list[dict[str, Any] | TiroError] = []
    async with _server() as client:
        for method, params in requests:
            try:
                results.append(await client.request(method, params))
            except RemoteError as error:
                results.append(raised_there(error))
    return results


# --- one server ----------------------------------------------------------------------------


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        return asyncio.run(work)
    except RemoteError as error:
        raise raised_there(error) from error
    except ServerSilentError as error:
        raise TiroError(f"{error}; what was stored is kept, try again") from error
    except ServerGoneError as error:
        raise TiroError("The server ended unexpectedly; what it said stands above") from error


def hear_warnings(method: str, params: Any) -> None:
    """Show what is wrong with the configuration, which decides where sessions are."""
    if method == "window/showMessage":
        tell(str(params.get("message")))


def raised_there(error: RemoteError) -> TiroError:
    """The error that the server raised, with its words."""
    if error.kind in ERRORS:
        return ERRORS[error.kind](str(error), **error.data)
    if error.code != types.INVALID_PARAMS:
        return TiroError(str(error))
    return InvalidInputError(str(error).partition(" - at `$")[0])  # what follows is for programs


@asynccontextmanager
async def _server(
    hear: OnNotification | None = hear_warnings, settings: dict[str, Any] = SETTINGS
) -> AsyncGenerator[Client, None]:
    with _its_log() as log:
        client = await Client.start(stderr=log, on_notification=hear, on_request=_answer)
        async with client:
            roots = [Path.cwd().as_uri()]
            await client.initialize(
                settings=settings, workspace_roots=roots, capabilities=CAPABILITIES
            )
            yield client


@contextmanager
def _its_log() -> Generator[int, None, None]:
    """Where the server logs to; it is shown at the end, unless nobody reads on."""
    with tempfile.TemporaryFile() as log:
        try:
            yield log.fileno()
        except BrokenPipeError:
            log.truncate(0)
            raise
        finally:
            log.seek(0)
            output.tell(log.read().decode("utf-8", "replace"))


async def _answer(method: str, params: Any) -> Any:
    """Permission comes from the person at the keyboard, if there is one."""
    if method != "tiro/permission/request":
        return None
    use = params["toolUse"]
    shown = params.get("preview") or json.dumps(use["input"], ensure_ascii=False)
    tell(visible(f"{use['name']} ({params['rule']}): {shown}"))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        tell(nobody_asked(params))
        return {"decision": "reject", "message": "Nobody was there to be asked"}
    for line in lasting(params):
        tell(visible(line))
    decisions = {"y": "once", **({"a": "always"} if params["always"] else {})}
    output.tell(f"Allow this? [y]es, {f'{LASTS}, ' if params['always'] else ''}[N]o: ")
    word = (await _typed_line()).strip().lower()[:1]
    return {"decision": decisions.get(word, "reject")}


async def _typed_line() -> str:
    """A line of the keyboard; who waits for it can be cancelled, as no thread can."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()
    try:
        loop.add_reader(sys.stdin, lambda: line.set_result(sys.stdin.readline()))
    except NotImplementedError:  # Windows
        return await asyncio.to_thread(sys.stdin.readline)
    try:
        return await line
    finally:
        loop.remove_reader(sys.stdin)


@contextmanager
def _first_interrupt(act: Callable[[], None]) -> Generator[None, None, None]:
    """Within it the first Ctrl-C calls `act`; the second ends the program as usual."""
    loop = asyncio.get_running_loop()

    def first() -> None:
        loop.remove_signal_handler(signal.SIGINT)
        act()

    with suppress(NotImplementedError):  # on Windows every Ctrl-C ends the program
        loop.add_signal_handler(signal.SIGINT, first)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)
