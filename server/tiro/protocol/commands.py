"""What any LSP client can do without a client of ours: commands and code actions.

A command runs the handler of its method, so both say the same. A missing name is asked for with
`window/showMessageRequest`, outside the order of requests: nothing else waits for a user's answer.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from lsprotocol import types as lsp

from tiro.errors import InvalidInputError
from tiro.protocol import types
from tiro.protocol.buffers import path_of
from tiro.protocol.handlers import Desk
from tiro.protocol.lsp_params import CodeActionParams, ExecuteCommandParams

OFFERED_SESSIONS = 5

Run = Callable[[str, Any], Awaitable[Any]]
"""Runs a method as if it had been requested: typed params in, wire result out, in order."""

PLAIN: dict[str, str] = {
    "tiro.clearSession": "tiro/session/clear",
    "tiro.newSession": "tiro/session/new",
    "tiro.saveSession": "tiro/session/save",
    "tiro.listSessions": "tiro/session/list",
    "tiro.showCurrentAgent": "tiro/session/getAgent",
    "tiro.cancel": "tiro/turn/cancel",
    "tiro.resizeSession": "tiro/session/resize",
    "tiro.compactSession": "tiro/session/compact",
    "tiro.contextSize": "tiro/session/contextSize",
}
"""Commands without arguments of their own."""

MOVES = {"tiro.undoEdits": "undo", "tiro.redoEdits": "redo"}
"""Commands about a turn's edits, by default the next turn's."""

DEEDS = {"undo": "Take back", "redo": "Make again"}
OTHERS = "{deed} what another session did at {at} (UTC) in {files}?"

ENDINGS = {
    "markdown": "md",
    "agently": "json",
    "agently-yaml": "yaml",
    "magent": "json",
    "nanobot": "jsonl",
    "go-agent": "json",
}
"""File name endings of formats where they are not their names."""

EXPLAIN = "Explain this."
ABOUT = "What is this, and what should I know about it?"
FIX = "Fix these diagnostics:"


async def execute(desk: Desk, run: Run, params: ExecuteCommandParams) -> Any:
    """Run one command."""
    arguments = params.arguments or []
    if params.command in PLAIN:
        return await run(PLAIN[params.command], {})
    if params.command == "tiro.showSession":
        return await show_session(desk, run)
    if params.command == "tiro.loadSession":
        return await load_session(desk, run, _text(arguments))
    if params.command == "tiro.selectAgent":
        return await select_agent(desk, run, _text(arguments))
    if params.command == "tiro.searchSessions":
        return await search_sessions(desk, run, _needed(arguments, "what to search for"))
    if params.command == "tiro.exportSession":
        return await export_session(desk, run, arguments)
    if params.command == "tiro.importSession":
        return await run("tiro/session/import", {"path": _needed(arguments, "the path")})
    if params.command in MOVES:
        return await move_edits(desk, run, MOVES[params.command], _text(arguments))
    return await ask(desk, run, arguments, params.work_done_token)


async def search_sessions(desk: Desk, run: Run, query: str) -> Any:
    """Search all sessions, and show what was found, a line each."""
    found: types.SearchResult = await run("tiro/session/search", {"query": query})
    lines = [f"{hit.id} #{hit.seq} [{hit.role}] {hit.snippet}" for hit in found.hits]
    await desk.connection.editor.show_text("search.txt", "\n".join(lines))
    return found


async def export_session(desk: Desk, run: Run, arguments: list[Any]) -> Any:
    """Export the session; `[format?, path?]`, by default Markdown that is shown."""
    format = _text(arguments) or "markdown"
    path = _text(arguments[1:])
    done: types.ExportResult = await run("tiro/session/export", {"format": format, "path": path})
    if isinstance(done.text, str):
        await desk.connection.editor.show_text(f"session.{ENDINGS.get(format, format)}", done.text)
    return done


async def show_session(desk: Desk, run: Run) -> str | None:
    """The session as text, in a window of its own where the editor can open one."""
    shown: types.ShowResult = await run("tiro/session/show", {})
    if shown.text is not None:
        await desk.connection.editor.show_text("session.txt", shown.text)
    return shown.text


async def load_session(desk: Desk, run: Run, name: str | None) -> Any:
    """Load a session by id or path, or let the user choose one of the newest."""
    if name is None:
        listed: types.ListResult = await run("tiro/session/list", {"limit": OFFERED_SESSIONS})
        ids = {_label(row): row.id for row in listed.sessions if row.error is None}
        choice = await desk.connection.editor.choose("Which session?", list(ids)) if ids else None
        name = ids.get(choice or "")
    if name is None:
        return None
    return await run("tiro/session/load", {"path" if path_of(name) else "id": name})


async def select_agent(desk: Desk, run: Run, name: str | None) -> Any:
    """Select an agent by name, or let the user choose one."""
    if name is None:
        names = [agent.name for agent in await desk.assistant.list_agents(False)]
        name = await desk.connection.editor.choose("Which agent?", names)
    return None if name is None else await run("tiro/session/setAgent", {"name": name})


async def move_edits(desk: Desk, run: Run, what: str, turn_id: str | None) -> Any:
    """Undo or redo a turn's edits; asks first about another session's that nobody named."""
    if turn_id is None:
        next_: types.EditsNextResult = await run("tiro/edits/next", {})
        turn = next_.undo if what == "undo" else next_.redo
        if turn is not None and turn.session_id != desk.assistant.session.id:
            files = ", ".join(map(os.path.basename, turn.paths))
            at = turn.at[:16].replace("T", " ")
            question = OTHERS.format(deed=DEEDS[what], at=at, files=files)
            if await desk.connection.editor.choose(question, [DEEDS[what]]) is None:
                return None
        turn_id = None if turn is None else turn.turn_id
    return await run(f"tiro/edits/{what}", {"turnId": turn_id})


async def ask(desk: Desk, run: Run, arguments: list[Any], token: int | str | None) -> Any:
    """Ask, and show a long answer in a window of its own; `[prompt, attachments?]`."""
    prompt = _needed(arguments, "the prompt")
    attachments = arguments[1] if len(arguments) > 1 else None
    editor = desk.connection.editor
    async with editor.progress("Tiro is answering", token):
        result = await run("tiro/turn/start", {"prompt": prompt, "attachments": attachments})
    await editor.show_text("answer.md", result.text)
    return result


def code_actions(desk: Desk, params: CodeActionParams) -> list[dict[str, Any]]:
    """What Tiro can do with a selection, or about the diagnostics at a place."""
    path = path_of(params.text_document.uri)
    span = msgspec.to_builtins(params.range)
    selection = {"kind": "selection", "path": str(path) if path else None, "range": span}
    live = None if path is None else desk.connection.buffers.text(path)
    actions = []
    if params.range.start != params.range.end and path is not None:
        actions.append(_action("Ask Tiro about this", "tiro.ask", ABOUT, [selection]))
        actions.append(_action("Explain", "tiro.explain", EXPLAIN, [selection]))
    if params.context.diagnostics and path is not None:
        prompt = "\n".join([FIX, *map(_diagnostic, params.context.diagnostics)])
        buffer = {"kind": "buffer" if live is not None else "file", "path": str(path)}
        title = "Fix this diagnostic"
        actions.append(_action(title, lsp.CodeActionKind.QuickFix.value, prompt, [buffer]))
    only = params.context.only
    if only is None:
        return actions
    return [action for action in actions if any(_is_kind(action["kind"], kind) for kind in only)]


CODE_ACTION_KINDS = ["tiro.ask", "tiro.explain", lsp.CodeActionKind.QuickFix.value]


def _action(title: str, kind: str, prompt: str, attachments: list[Any]) -> dict[str, Any]:
    command = {"title": title, "command": "tiro.ask", "arguments": [prompt, attachments]}
    return {"title": title, "kind": kind, "command": command}


def _is_kind(kind: str, wanted: str) -> bool:
    return not wanted or kind == wanted or kind.startswith(wanted + ".")


def _diagnostic(diagnostic: dict[str, Any]) -> str:
    start = diagnostic.get("range", {}).get("start", {})
    line = start.get("line") if isinstance(start, dict) else None
    where = f"line {line + 1}: " if isinstance(line, int) else ""
    return f"- {where}{diagnostic.get('message', '')}"


def _label(row: types.SessionRow) -> str:
    """What the user chooses from; the id makes it unique."""
    return f"{row.title} ({row.id})" if row.title else row.id


def _needed(arguments: list[Any], what: str) -> str:
    text = _text(arguments)
    if text is None or not text.strip():
        raise InvalidInputError(f"Give {what} as the first argument - at `$.arguments[0]`")
    return text


def _text(arguments: list[Any]) -> str | None:
    """The first argument, when there is one."""
    if not arguments or arguments[0] is None:
        return None
    if not isinstance(arguments[0], str):
        raise InvalidInputError("The first argument must be a string - at `$.arguments[0]`")
    return arguments[0]
