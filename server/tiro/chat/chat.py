"""`tiro chat`: reads lines, asks, shows, and starts the server again when it has died."""

import asyncio
import contextlib
import io
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tiro import __version__
from tiro.chat import slash
from tiro.chat.keyboard import Keyboard
from tiro.chat.lines import PipedLines
from tiro.chat.link import Link
from tiro.chat.past_lines import PastLines, usual_file
from tiro.chat.screen import Screen
from tiro.chat.talk import EndError, StoppedError, Talk
from tiro.config.files import load
from tiro.errors import TiroError
from tiro.exits import Ending
from tiro.protocol.client import RemoteError, ServerGoneError
from tiro.terminal import load_latest, raised_there

STOPPED = "{error} (stopped at line {number}; nothing after it was read)"
NOT_ASKED = "Your question was not asked; /retry asks it again, the Up key brings it back"

HEAR_SECONDS = 0.01
"""How long the loop runs each time to hear what a server has said meanwhile."""


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """One `tiro chat`; `session` is an id, a path or "latest", "" a new one, None as is set."""

    files: Sequence[str] = ()
    agent: str | None = None
    model: str | None = None
    session: str | None = None
    settings: Mapping[str, Any] = {}
    """Settings that go before those of the files, as an editor sends them."""


def chat(wishes: Wishes) -> TiroError | None:
    """Talk until the end; the error that ended a pipe's lines, None when a person was told.

    Raises KeyboardInterrupt when Ctrl-C ended it, and the TiroError that kept it from starting.
    """
    if not sys.stdin:  # whoever started us has closed it
        sys.stdin = io.StringIO()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a real stream has it
    with asyncio.Runner() as runner:
        return Chat(wishes, runner).run()


class Chat:
    """The loop around a talk: each line runs the event loop until it is done."""

    def __init__(self, wishes: Wishes, runner: asyncio.Runner) -> None:
        self._wishes = wishes
        self._runner = runner
        self._screen = Screen()
        self._lines = self._keyboard() if sys.stdin.isatty() else PipedLines()
        fresh = {} if wishes.session is None else {"session": {"resume": "new"}}
        settings = {**wishes.settings, **fresh}
        self._link = Link(self._screen.hear, self._answer, settings, [Path.cwd().as_uri()])
        self._talk = Talk(self._link, self._screen, self._lines)
        self._error: TiroError | None = None
        self._ending = Ending()

    def run(self) -> TiroError | None:
        """Begin, go on to the end of the lines, close."""
        lines = self._lines
        with self._ending, lines if isinstance(lines, Keyboard) else contextlib.nullcontext():
            try:
                self._wait(self._begin())
                while self._go_on():
                    self._screen.check()
                self._screen.check()
            except (RemoteError, ServerGoneError) as error:
                raise self._told(error) from error
            finally:
                self._wait(self._link.close())
        return self._error

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work)

    # --- one line after the other -------------------------------------------------------------

    def _go_on(self) -> bool:
        """Read a line and do what it says; False at the end."""
        if self._ending.has_begun:  # while an answer came, which was cancelled
            raise KeyboardInterrupt
        try:
            with self._screen.while_typing():
                text = self._lines.read()
        except KeyboardInterrupt:
            if self._is_left():
                raise
            self._screen.say("")
            return True
        if text is None:
            return False
        if text.strip():
            self._lines.remember(text)
            return self._do(slash.run(self._talk, text.rstrip()) if text[0] == "/" else None, text)
        return True

    def _do(self, work: Coroutine[Any, Any, None] | None, text: str) -> bool:
        try:
            self._wait(work or self._talk.ask(text.strip()))
        except EndError:
            return False
        except StoppedError:
            raise KeyboardInterrupt from None
        except KeyboardInterrupt:
            if self._is_left():
                raise
            self._screen.tell("Stopped")
        except ServerGoneError as error:
            return self._restart(error)
        except (RemoteError, TiroError) as error:
            self._fail(error)
            if self._talk.unanswered is not None and work is None and self._lines.is_person:
                self._screen.tell(NOT_ASKED)
        return self._error is None

    def _is_left(self) -> bool:
        """Whether a Ctrl-C ends the chat."""
        is_person = self._lines.is_person and not self._ending.has_begun
        return not is_person or self._talk.is_interrupted_again()

    def _fail(self, error: RemoteError | TiroError) -> None:
        """Tell it; a pipe ends with that, since its next lines may build on this one."""
        told = self._told(error)
        if self._lines.is_person:
            self._screen.complain(str(told))
        else:
            self._error = told
            self._screen.complain(STOPPED.format(error=told, number=self._lines.number))

    def _told(self, error: Exception) -> TiroError:
        if isinstance(error, RemoteError):
            return raised_there(error)
        return error if isinstance(error, TiroError) else TiroError(str(error))

    # --- the beginning ------------------------------------------------------------------------

    async def _begin(self) -> None:
        await self._link.start()
        wishes, is_set = self._wishes, self._link.hello["resume"]["setting"]
        if (wishes.session or is_set) == "latest":
            await self._load_latest()
        elif wishes.session:
            await slash.COMMANDS["/load"].act(self._talk, wishes.session)
        self._talk.agent, self._talk.model = wishes.agent, wishes.model
        await self._talk.choose()
        for name in wishes.files:
            self._talk.take_file(name)
        if self._lines.is_person:
            await self._greet()
        self._screen.check()

    async def _load_latest(self) -> None:
        if (view := await load_latest(self._link.request, self._screen.tell)) is not None:
            await self._talk.went_on(view)

    async def _greet(self) -> None:
        who = await self._talk.who()
        self._screen.tell(f"Tiro {__version__}, {who}. /help lists what you can do here.")
        resume = self._link.hello["resume"]
        if self._wishes.session is None and resume["setting"] == "ask" and resume["latest"]:
            title = resume["latest"]["title"] or resume["latest"]["id"]
            self._screen.tell(f"/load goes on with: {title}")

    async def _answer(self, method: str, params: Any) -> Any:
        return await self._talk.answer(method, params)

    def _keyboard(self) -> Keyboard:
        secrets = load(workspace_roots=[Path.cwd()]).settings.secrets()
        return Keyboard(PastLines(usual_file(), secrets), self._complete, self._look)

    def _look(self) -> None:
        """While a line is typed: hear what the server has said, and show it above the line."""
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop()
            return  # Tab was pressed, and it is heard already
        self._wait(asyncio.sleep(HEAR_SECONDS))
        told = self._screen.waiting
        if told and not self._screen.is_plain and self._lines.show_above("".join(told)):
            told.clear()

    def _complete(self, line: str) -> list[str]:
        try:
            words: list[str] = self._wait(slash.words_for(self._talk, line))
        except (RemoteError, ServerGoneError):  # the line itself will tell
            return []
        return words

    # --- a server that died -------------------------------------------------------------------

    def _restart(self, error: ServerGoneError) -> bool:
        """Tell, ask, and go on where the last server was; False when the person has enough."""
        reason, said = self._wait(self._link.last_words())
        self._fail(TiroError(f"The server ended ({reason})"))
        for line in said:
            self._screen.tell(line)
        if not self._lines.is_person:
            return False
        if not self._wants("Start it again and go on? [Y/n] "):
            self._error = TiroError(str(error))
            self._screen.tell("What was saved is kept; `tiro chat --continue` goes on with it")
            return False
        try:
            self._wait(self._link.start())
            has_session = self._wait(self._talk.find_again())
        except ServerGoneError as again:
            return self._restart(again)
        except RemoteError as refusal:
            self._fail(refusal)
            return True
        question = self._talk.unanswered
        if question is not None:
            return self._do(self._talk.ask(question), "")
        if has_session:
            self._screen.tell("/retry asks the last question again")
        return True

    def _wants(self, question: str) -> bool:
        while (answer := self._wait(self._talk.choose_one(question))) is not None:
            if (word := answer.strip().lower()) in ("", "y", "yes", "n", "no"):
                return word not in ("n", "no")
        return False
