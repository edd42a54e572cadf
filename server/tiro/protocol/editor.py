"""All that we ever ask of or tell an editor: the `Editor` interface over JSON-RPC, and more.

Law: a question never raises and never hangs for good; no answer, an error or a client that is gone
means no. What the client did not say it can do is not asked of it.
"""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from tiro.protocol import types
from tiro.protocol.buffer_edits import change_buffer
from tiro.protocol.buffers import Buffers, path_of
from tiro.protocol.rpc import ClientRefusedError, TiroProtocol, UnreadableAnswerError
from tiro.protocol.shown_texts import ShownTexts
from tiro.protocol.wire import displayed, from_wire_diagnostic
from tiro.tools.editor import Diagnostic, PermissionAnswer, PermissionRequest

logger = logging.getLogger(__name__)

ONCE, ALWAYS, REJECT = "Allow once", "Always allow in this session", "Reject"
ANSWERS: dict[str, Literal["once", "always", "reject"]] = {
    ONCE: "once",
    ALWAYS: "always",
    REJECT: "reject",
}
MESSAGE_TYPES = {"error": 1, "warning": 2, "info": 3}
LONG_TEXT_CHARS = 400
QUESTION_CHARS = 1000
QUESTION_CUT = " … [{more:,} more characters]"
UNREADABLE = "The answer about {} cannot be read; it counts as a refusal, and nothing was run"
ANSWER_SECONDS = 3.0
DIAGNOSTICS_SECONDS = 10.0


class ClientEditor:
    """The editor at the other end of the connection."""

    def __init__(self, protocol: TiroProtocol) -> None:
        self._protocol = protocol
        self.buffers = Buffers()
        self._roots: list[Path] = []
        self._capabilities: dict[str, Any] = {}
        self._told: set[str] = set()
        self._tokens = itertools.count(1)
        self._shown = ShownTexts()
        self.features = types.Features()
        self.turn_id: Callable[[], str | None] = lambda: None

    # --- what the client said -----------------------------------------------------------------

    def meet(self, capabilities: dict[str, Any], features: types.Features) -> None:
        """Note what the client can do."""
        self._capabilities, self.features = capabilities, features

    def set_roots(self, uris: Sequence[str]) -> None:
        """Note the workspace folders."""
        self._roots = [path for uri in uris if (path := path_of(uri)) is not None]

    @property
    def is_stranger(self) -> bool:
        """Whether the client announced none of our features: any LSP client."""
        return self.features == types.Features()

    def can(self, capability: str) -> bool:
        """Whether the client announced a capability, such as `window.showDocument.support`."""
        found: Any = self._capabilities
        for name in capability.split("."):
            found = found.get(name) if isinstance(found, dict) else None
        return bool(found)

    # --- the Editor interface -----------------------------------------------------------------

    def workspace_roots(self) -> list[Path]:
        """The folders that are open, as the editor names them."""
        return self._roots

    def open_paths(self) -> list[Path]:
        """The files that are open in the editor."""
        return self.buffers.paths()

    def open_text(self, path: Path) -> str | None:
        """The live text of an open buffer, or None when it is not open."""
        return self.buffers.text(path)

    def can_edit(self) -> bool:
        """Whether the client takes edits of open buffers."""
        return self.can("workspace.applyEdit")

    async def apply_edit(self, path: Path, old: str, new: str) -> None:
        """Change the text of an open buffer; see `change_buffer` for what it raises."""
        with_version = self.can("workspace.workspaceEdit.documentChanges")
        await change_buffer(
            self._protocol.ask, self.buffers, path, old, new, with_version=with_version
        )

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        """Ask the user whether a tool may run."""
        try:
            if self.features.permission_request:
                return await self._ask_client(request)
            if len(what := _asked_about(request)) > QUESTION_CHARS:
                await self.show_text("question.diff", what)
            choice = await self.choose(_question(request), [ONCE, ALWAYS, REJECT])
            return PermissionAnswer(ANSWERS.get(choice or REJECT, "reject"))
        except (UnreadableAnswerError, msgspec.ValidationError) as error:
            logger.warning("A permission request was answered in an unknown way: %s", error)
            self.say(UNREADABLE.format(request.name))
        except Exception as error:
            logger.warning("A permission request was not answered: %s", error)
        return PermissionAnswer("reject")

    def can_diagnose(self) -> bool:
        """Whether the client announced that it can be asked for them."""
        return bool(self.features.diagnostics)

    async def diagnostics(self, path: Path | None) -> list[Diagnostic] | None:
        """The problems that the client shows in a file, or in all; None without an answer."""
        if not self.can_diagnose():
            return None
        params = types.DiagnosticsParams(msgspec.UNSET if path is None else str(path))
        try:
            asking = self._protocol.ask("tiro/editor/diagnostics", params)
            answer = await asyncio.wait_for(asking, DIAGNOSTICS_SECONDS)
            found = msgspec.convert(answer, types.DiagnosticsResult).diagnostics
        except Exception as error:
            logger.warning("The diagnostics were not told: %s", str(error) or "no answer")
            return None
        named = ((path_of(one.path), one) for one in found)
        return [from_wire_diagnostic(name, one) for name, one in named if name is not None]

    async def _ask_client(self, request: PermissionRequest) -> PermissionAnswer:
        params = types.PermissionParams(
            turn_id=self.turn_id() or "",
            tool_use=types.ToolUse(request.tool_use_id, request.name, displayed(request.input)),
            agent=request.agent,
            rule=request.rule,
            effect=request.effect,
            always=list(request.always),
            preview=request.preview or msgspec.UNSET,
        )
        answer = await self._protocol.ask("tiro/permission/request", params)
        result = msgspec.convert(answer, types.PermissionResult)
        return PermissionAnswer(result.decision, result.message)

    # --- asking and telling -------------------------------------------------------------------

    async def choose(self, question: str, answers: Sequence[str]) -> str | None:
        """Let the user choose one of the answers; None when the question was dismissed."""
        params = {
            "type": MESSAGE_TYPES["info"],
            "message": question,
            "actions": [{"title": answer} for answer in answers],
        }
        try:
            answer = await self._protocol.ask("window/showMessageRequest", params)
        except ClientRefusedError as error:
            logger.warning("A question was not answered: %s", error)
            return None
        title = answer.get("title") if isinstance(answer, dict) else None
        return title if title in answers else None

    def say(self, text: str) -> None:
        """Show a warning to the user."""
        params = {"type": MESSAGE_TYPES["warning"], "message": text}
        self._protocol.notify("window/showMessage", params)

    def say_once(self, text: str) -> None:
        """Show a warning to the user, each text once."""
        if text not in self._told:
            self._told.add(text)
            self.say(text)

    async def show_text(self, name: str, text: str) -> None:
        """Open a long text in a window of the editor, where it can do that."""
        is_long = len(text) > LONG_TEXT_CHARS or text.count("\n") > 2
        if not is_long or not self.can("window.showDocument.support"):
            return
        try:
            path = await asyncio.to_thread(self._shown.write, name, text)
            params = {"uri": path.as_uri(), "takeFocus": False}
            await self._ask_briefly("window/showDocument", params)
        except (OSError, ClientRefusedError, TimeoutError) as error:
            logger.warning("A text could not be shown: %s", str(error) or "no answer")

    @contextlib.asynccontextmanager
    async def progress(
        self, title: str, token: int | str | None = None
    ) -> AsyncIterator[Callable[[str, float | None], None]]:
        """Show long work while the block runs; the given function reports how far it is."""
        if token is None:
            token = await self._new_token()
        if token is None:
            yield lambda message, fraction: None
            return

        def report(message: str, fraction: float | None = None, kind: str = "report") -> None:
            value: dict[str, Any] = {"kind": kind, "message": message}
            if fraction is not None:
                value["percentage"] = round(100 * min(max(fraction, 0.0), 1.0))
            self._protocol.notify("$/progress", {"token": token, "value": value})

        begin = {"kind": "begin", "title": title, "cancellable": False}
        self._protocol.notify("$/progress", {"token": token, "value": begin})
        try:
            yield report
        finally:
            self._protocol.notify("$/progress", {"token": token, "value": {"kind": "end"}})

    def close(self) -> None:
        """Remove the texts that were shown."""
        self._shown.close()

    async def _new_token(self) -> str | None:
        if not self.can("window.workDoneProgress"):
            return None
        token = f"tiro-{next(self._tokens)}"
        try:
            await self._ask_briefly("window/workDoneProgress/create", {"token": token})
        except (ClientRefusedError, TimeoutError):
            return None
        return token

    async def _ask_briefly(self, method: str, params: Any) -> None:
        """Ask what needs no person: a client that does not answer soon never will."""
        await asyncio.wait_for(self._protocol.ask(method, params), ANSWER_SECONDS)


def _asked_about(request: PermissionRequest) -> str:
    """All that would be done."""
    return request.preview or str(displayed(request.input))


def _question(request: PermissionRequest) -> str:
    """The permission request as one text for clients without a form of their own."""
    what = _asked_about(request)
    more = len(what) - QUESTION_CHARS
    shown = what if more <= 0 else what[:QUESTION_CHARS] + QUESTION_CUT.format(more=more)
    return f"May {request.agent} run {request.name} ({request.effect})?\n{shown}"
