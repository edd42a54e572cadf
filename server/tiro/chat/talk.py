"""One conversation: questions asked, answers shown, Ctrl-C heard, a session found again."""

import asyncio
import contextlib
import signal
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from tiro.chat.lines import Lines
from tiro.chat.link import Link
from tiro.chat.screen import Screen
from tiro.errors import InvalidInputError
from tiro.permission_text import decision, nobody_asked, possible
from tiro.protocol.client import RemoteError, ServerGoneError
from tiro.protocol.types import INVALID_PARAMS
from tiro.screen_text import counted

FIRST_MODEL = "the first model that can be used"

AGAIN_SECONDS = 1.0
"""A second Ctrl-C within this ends the chat."""

MAX_FILE_BYTES = 1_000_000
"""A larger file is refused by the server."""

QUIT = "/quit"
NOBODY = {"decision": "reject", "message": "Nobody was there to be asked"}

Content = str | list[dict[str, Any]] | dict[str, Any]


class StoppedError(Exception):
    """Ctrl-C ended the chat."""


class EndError(Exception):
    """The person wants to leave."""


class Talk:
    """What a chat knows; its server is reached through `link`."""

    def __init__(self, link: Link, screen: Screen, lines: Lines) -> None:
        self.link, self.screen, self.lines = link, screen, lines
        self.files: list[str] = []
        """Paths of files that go along with the next question."""
        self.unanswered: Content | None = None
        """The question that was refused, or that a server took away, before it was stored."""
        self.agent: str | None = None
        self.model: str | None = None
        """Who answers in each new session, if not as configured."""
        self.interrupted_at = -AGAIN_SECONDS
        """When Ctrl-C was last pressed during an answer, in seconds of the monotonic clock."""
        self._path_by_id: dict[str, str] = {}
        """Where the session of the last load lives; no other one, and not under another name."""
        self._is_model_known = True
        """Whether they were told which model answers, where it is the first that can be used."""
        self._wants_out = False
        self._is_leaving = False
        """Whether they want to leave, and said so when they were asked something."""
        self._asking = asyncio.Lock()
        self._steering: set[asyncio.Future[None]] = set()

    # --- asking -------------------------------------------------------------------------------

    async def ask(self, prompt: Content) -> None:
        """Ask, and show the answer as it comes.

        Raises StoppedError at the second Ctrl-C; at the first where nobody can type another line;
        EndError where the person leaves.
        """
        attachments = [{"kind": "file", "path": path} for path in self.files]
        params = {"prompt": prompt, "attachments": attachments}
        self.screen.has_started, self.unanswered, self._wants_out = False, prompt, False
        turn = asyncio.ensure_future(self.link.request("tiro/turn/start", params))
        result: dict[str, Any] | None = None
        try:
            with self.lines.listening(self._steer), self._interrupts(turn):
                result = await turn
        except asyncio.CancelledError:
            raise StoppedError from None
        except RemoteError as error:
            if error.code == INVALID_PARAMS:  # a file may be why: the next question has none of it
                self._drop_files()
            raise
        finally:
            self.screen.end(result)
            if self.screen.has_started:
                self.files, self.unanswered = [], None
        if self.screen.failure is not None:  # the chat ends with that
            return
        if not self._is_model_known:
            await self._tell_model()
        if self._is_leaving:
            raise EndError
        if self._wants_out or (result["stopReason"] == "cancelled" and not self.lines.is_person):
            raise StoppedError

    def is_interrupted_again(self) -> bool:
        """Whether a Ctrl-C now is the second one soon after another."""
        return time.monotonic() - self.interrupted_at < AGAIN_SECONDS

    async def ask_again(self) -> None:
        """Ask the question that was refused, else the last one, taken back with its answer."""
        if self.unanswered is not None:
            await self.ask(self.unanswered)
            return
        window = (await self.link.request("tiro/session/get"))["messages"]
        asked = next((m for m in reversed(window) if m["role"] == "user"), None)
        if asked is None:
            raise InvalidInputError("No question of yours is in the window")
        await self.take_back(window, asked["seq"])
        await self.ask(asked["content"])

    async def take_back(self, window: list[dict[str, Any]], seq: int) -> dict[str, Any]:
        """Take this message of the window and all after it back; what the session is then.

        What was taken back or has left the window before leaves a gap in the numbers.
        """
        before = [message["seq"] for message in window if message["seq"] < seq]
        params = {"toSeq": before[-1] if before else 0}
        view: dict[str, Any] = await self.link.request("tiro/session/rewind", params)
        return view

    async def answer(self, method: str, params: Any) -> Any:
        """What the server asks: permission comes from the person, one question at a time."""
        if method != "tiro/permission/request":
            return None
        if not self.lines.is_person:
            self.screen.tell(nobody_asked(params))
            return NOBODY
        async with self._asking:
            question = self.screen.question(params)
            while (line := await self._line_for(question)) is not None:
                if line.strip() == QUIT:
                    self._is_leaving = True
                    await self._cancel()
                    break
                if (decided := decision(line, params)) is not None:
                    return decided
                self.screen.tell(possible(params))
            return {"decision": "reject"}

    async def _line_for(self, question: str) -> str | None:
        """A line for a question; what the turn tells meanwhile comes below it, not over it."""
        with self.screen.while_typing():
            return await self.lines.ask(question)

    async def choose_one(self, question: str) -> str | None:
        """A line that answers a question of ours; None when there is nobody or they ended it."""
        with self.lines.listening():
            return await self.lines.ask(question)

    @contextlib.contextmanager
    def _interrupts(self, turn: "asyncio.Future[Any]") -> Generator[None, None, None]:
        """Within it Ctrl-C cancels the turn; a second one soon after it drops the turn.

        So does a stdout that takes nothing more.
        """
        loop = asyncio.get_running_loop()
        cancels: list[asyncio.Task[Any]] = []

        def stop() -> None:
            cancels.append(loop.create_task(self._cancel()))

        def interrupted() -> None:
            if self.is_interrupted_again():
                self._wants_out = True  # the answer may have ended meanwhile
                turn.cancel()
            else:
                stop()  # before the question is answered, or the turn would go on with that
                self.lines.stop_asking()
                self.screen.end_text()
                self.screen.tell("Stopping; Ctrl-C again leaves")
            self.interrupted_at = time.monotonic()

        def heard(number: int, frame: object) -> None:
            loop.call_soon_threadsafe(interrupted)

        usual = signal.signal(signal.SIGINT, heard)
        self.screen.on_failure = stop
        try:
            yield
        finally:
            self.screen.on_failure = lambda: None
            signal.signal(signal.SIGINT, usual)
            for task in cancels:
                task.cancel()

    def _steer(self, text: str) -> None:
        """Let the running turn hear this before its next step."""
        task = asyncio.ensure_future(self._steered(text))
        self._steering.add(task)
        task.add_done_callback(self._steering.discard)

    async def _steered(self, text: str) -> None:
        self.screen.end_text()
        try:
            await self.link.request("tiro/turn/steer", {"text": text})
            self.screen.tell(f"Told before the next step: {text}")
        except (RemoteError, ServerGoneError) as error:
            self.screen.complain(f"Not told: {error}")

    async def _cancel(self) -> None:
        with contextlib.suppress(Exception):  # the turn itself tells what went wrong
            await self.link.request("tiro/turn/cancel", {})

    # --- the session --------------------------------------------------------------------------

    async def load(self, which: dict[str, Any]) -> None:
        """Go on with a saved session, and show how far it was."""
        await self.went_on(await self.link.request("tiro/session/load", which))

    async def went_on(self, view: dict[str, Any]) -> None:
        """Another session is the current one: show how far it was."""
        self._remember(view)
        self.unanswered = None
        shown = (await self.link.request("tiro/session/show"))["text"]
        self.screen.tell(f"{view['title'] or view['id']}: {_held(view, 'loaded')}")
        if shown:
            self.screen.say(shown.removeprefix("Session Summary:\n\n"))

    async def find_again(self) -> bool:
        """In a new server, go on with the session of the last one; False when none was stored."""
        if (id := self.screen.session_id) is None:
            await self.choose()
            return False
        path = self._path_by_id.get(id)
        view = await self.link.request("tiro/session/load", {"path": path} if path else {"id": id})
        self._remember(view)
        self.screen.tell(_held(view, "there again"))
        return True

    def _remember(self, view: dict[str, Any]) -> None:
        """Which session this is."""
        self.screen.session_id, self._path_by_id = view["id"], {view["id"]: view["path"]}

    async def clear(self) -> str:
        """Begin a new session; where the old one is and who answers now, in a sentence."""
        result = await self.link.request("tiro/session/clear")
        self.screen.session_id = self.unanswered = None
        await self.choose()
        self.files = []
        path, cleared = result["savedAs"], messages(result["cleared"])
        not_kept = f"{cleared} not saved" if result["cleared"] else "Nothing was there to keep"
        kept = f"{cleared} kept in {path}" if path else not_kept
        return f"{kept}; this is a new session, {await self.who()}"

    async def who(self) -> str:
        """Who answers in the session, and which model."""
        agent = (await self.link.request("tiro/session/getAgent"))["agent"]
        default = (await self.link.request("tiro/agents/list", {}))["default"]
        model = (await self.link.request("tiro/status"))["model"]
        self._is_model_known = model is not None
        return f"{agent['name'] if agent else default} answers with {model or FIRST_MODEL}"

    async def _tell_model(self) -> None:
        """Which model it was, once it is known."""
        model = (await self.link.request("tiro/status"))["model"]
        if model is not None:
            self._is_model_known = True
            self.screen.tell(f"That was {model}; /model chooses another")

    async def choose(self) -> None:
        """Let the agent and the model of this chat answer in the session."""
        if self.agent is not None:
            await self.link.request("tiro/session/setAgent", {"name": self.agent})
        if self.model is not None:
            await self.link.request("tiro/models/set", {"name": self.model})

    def take_file(self, name: str) -> None:
        """Let a file go along with the next question."""
        path = Path(name).expanduser()
        try:
            if path.is_dir():
                raise InvalidInputError(f"{name!r} is a directory; name a file in it")
            if not path.is_file():
                raise InvalidInputError(f"There is no file {name!r}")
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise InvalidInputError(f"{name!r} cannot be read: {error.strerror}") from error
        if b"\0" in data:
            raise InvalidInputError(f"{name!r} is binary; name a file of text")
        if len(data) > MAX_FILE_BYTES:
            raise InvalidInputError(f"{name!r} is larger than 1 MB; name a smaller one")
        self.files.append(str(path.absolute()))

    def _drop_files(self) -> None:
        if self.files:
            self.files = []
            self.screen.tell("No file goes along any more; /file adds one")


def messages(count: int) -> str:
    """So many messages, with their verb."""
    return f"{counted(count, 'message')} {'is' if count == 1 else 'are'}"


def _held(view: dict[str, Any], what: str) -> str:
    """How many messages a session holds, and where."""
    if not view["archived"]:
        return f"{messages(view['total'])} {what}"
    return f"{view['total']:,} messages in the window, {view['archived']:,} in the archive"
