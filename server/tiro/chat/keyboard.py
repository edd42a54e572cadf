"""A person at the keyboard: lines edited at the prompt, kept for later during an answer.

At the prompt readline edits the line, where there is one. During an answer the terminal echoes
nothing: what is typed waits and comes at the next prompt. A question of ours is never answered by
it, since it was typed before the question was seen.
"""

import asyncio
import codecs
import contextlib
import os
import re
import select
import shutil
import signal
import sys
from collections.abc import Callable, Generator
from types import ModuleType, TracebackType
from typing import Any, Self

from tiro import output
from tiro.chat.lines import PROMPT, OnSteer, joined, unheard
from tiro.chat.past_lines import PastLines
from tiro.permission_text import ANSWER_KEYS
from tiro.screen_text import width

try:
    import readline as _readline
    import termios as _termios
except ImportError:  # Windows: lines without editing
    readline: ModuleType | None = None
    termios: ModuleType | None = None
else:
    readline, termios = _readline, _termios

LOOK_SECONDS = 0.5
"""How often somebody who types is looked after: whether there is something to be told."""

ROOM = "\x1bD\x1b[A\x1b7\x1b[L\r"
"""An empty line above the cursor's, which keeps its column; the cursor is at its beginning."""

BACK = "\x1b8\x1b[B"
"""From there to where the cursor was in its line."""

Complete = Callable[[str], list[str]]
"""From a line up to the cursor to the words that its last word may become."""

DROPPED = "· A lone key that answers a permission question was typed where none stood: dropped\n"

STEER = "/steer "
"""What begins a line that does not wait for the end of the answer."""

_KEYS = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|O.|.)?")


class Keyboard:
    """A person at a terminal; a context manager, since the terminal is set up for it."""

    is_person = True
    number = 0

    def __init__(
        self, past: PastLines, complete: Complete, look: Callable[[], None] = lambda: None
    ) -> None:
        """`look` is called again and again while a line is typed."""
        self._look = look
        self._past = past
        self._complete = complete
        self._typed = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._question: asyncio.Future[str | None] | None = None
        self._usual: list[Any] | None = None
        self._on_steer: OnSteer | None = None

    def __enter__(self) -> Self:
        if termios is not None:
            self._usual = termios.tcgetattr(sys.stdin)
            self._set_quiet()
        if readline is not None:
            _set_up(readline, self._complete)
            for text in self._past.load():
                readline.add_history(text)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._set(self._usual)

    # --- at the prompt ------------------------------------------------------------------------

    def read(self) -> str | None:
        """The next text: several lines when each but the last ends in a backslash, or pasted."""
        self._take_waiting()
        self._drop_answers()
        return joined(self._read_line)

    def _drop_answers(self) -> None:
        """Drop each key for a permission question that was typed where none stood: no question."""
        lines = self._typed.split("\n")
        kept = [line for line in lines if line.strip().lower() not in ANSWER_KEYS]
        if len(kept) < len(lines):
            output.tell(DROPPED)
            self._typed = "\n".join(kept)

    def remember(self, text: str) -> None:
        """Let this be found again with the arrow keys, now and in later chats."""
        if readline is not None:
            readline.add_history(text)
        self._past.add(text)

    def _read_line(self, prompt: str) -> str:
        """One line with its end; the empty string at the end of all."""
        line, newline, rest = self._typed.partition("\n")
        if newline:  # typed during the answer: shown as if it were typed now
            self._typed = rest
            sys.stdout.write(f"{prompt}{line}\n")
            return line + newline
        self._typed = ""
        if readline is None or not sys.stdout.isatty():
            return self._read_unedited(prompt, line)
        module = readline
        module.set_startup_hook(lambda: module.insert_text(line))
        self._set(self._usual)  # readline echoes only what the terminal would
        try:
            with self._looking():
                return input(prompt) + "\n"
        except EOFError:
            sys.stdout.write("\n")
            return ""
        finally:
            self._set_quiet()
            module.set_startup_hook()

    def show_above(self, text: str) -> bool:
        """Put lines above the one that is typed, which stays; False where that is too long."""
        typed = width(PROMPT + (readline.get_line_buffer() if readline else ""))
        if typed >= shutil.get_terminal_size().columns:
            return False  # the cursor may be in another row of it than the first
        output.tell("".join(f"{ROOM}{line}{BACK}" for line in text.splitlines()))
        return True

    @contextlib.contextmanager
    def _looking(self) -> Generator[None, None, None]:
        """Within it somebody looks after what is heard; readline goes on after each signal."""
        usual = signal.signal(signal.SIGALRM, lambda *_: self._look())
        signal.setitimer(signal.ITIMER_REAL, LOOK_SECONDS, LOOK_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, usual)

    def _read_unedited(self, prompt: str, typed: str) -> str:
        output.tell(prompt + typed)
        self._set(self._usual)
        try:
            line = sys.stdin.readline()
        finally:
            self._set_quiet()
        return typed + line if line else ""

    # --- during an answer ---------------------------------------------------------------------

    @contextlib.contextmanager
    def listening(self, on_steer: OnSteer = unheard) -> Generator[None, None, None]:
        """Keep what is typed for the next prompt, and hand it to a question that is asked."""
        self._on_steer = on_steer
        if termios is None:
            yield
            return
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._take)
        loop.add_signal_handler(signal.SIGCONT, self._set_quiet)  # a shell has set it otherwise
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGCONT)
            loop.remove_reader(sys.stdin.fileno())
            self._on_steer = None
            self.stop_asking()

    async def ask(self, question: str) -> str | None:
        """One line that answers this question. What was typed before it stays for the prompt."""
        output.tell(question)
        if termios is None:
            return (await asyncio.to_thread(sys.stdin.readline)) or None
        self._take_waiting()
        self._question = asyncio.get_running_loop().create_future()
        self._set(self._usual)
        try:
            return await self._question
        finally:
            self._question = None
            self._set_quiet()

    def stop_asking(self) -> None:
        """A question that waits is answered with None; its line ends here."""
        if self._question is not None and not self._question.done():
            output.tell("\n")
            self._question.set_result(None)

    def _take(self) -> None:
        """Something was typed."""
        data = _read()
        if not data:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        if self._question is None or self._question.done():
            self._keep(data)
        elif not data:  # Ctrl-D
            self.stop_asking()
        else:
            line, newline, rest = data.partition(b"\n")
            if not newline:  # Ctrl-D behind a word
                output.tell("\n")
            self._question.set_result(line.decode("utf-8", "replace"))
            self._keep(rest)

    def _take_waiting(self) -> None:
        """What the terminal holds that nobody has read."""
        while termios is not None and select.select([sys.stdin], [], [], 0)[0]:
            if not (data := _read()):
                return
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        """Keep typed bytes for the prompt, with erased characters gone."""
        for character in _KEYS.sub("", self._decoder.decode(data)):
            line = self._typed.rpartition("\n")[2]
            if character in "\x7f\x08":
                self._typed = self._typed[:-1] if line else self._typed
            elif character == "\x15":
                self._typed = self._typed[: len(self._typed) - len(line)]
            elif character == "\n" and line.startswith(STEER) and self._on_steer is not None:
                self._typed = self._typed[: len(self._typed) - len(line)]
                self._on_steer(line.removeprefix(STEER).strip())
            elif character in "\n\t" or character.isprintable():
                self._typed += character

    # --- the terminal -------------------------------------------------------------------------

    @contextlib.contextmanager
    def lent(self) -> Generator[None, None, None]:
        """The terminal as it was before us, for another program."""
        self._set(self._usual)
        try:
            yield
        finally:
            self._set_quiet()

    def _set_quiet(self) -> None:
        """No echo, each key at once; Ctrl-C stays a signal and drops nothing that was typed."""
        if termios is None or self._usual is None:
            return
        quiet = list(self._usual)
        quiet[3] = quiet[3] & ~(termios.ICANON | termios.ECHO) | termios.NOFLSH
        self._set(quiet)

    def _set(self, modes: list[Any] | None) -> None:
        if termios is not None and modes is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)


def _read() -> bytes:
    with contextlib.suppress(OSError):  # the terminal is gone
        return os.read(sys.stdin.fileno(), 1 << 16)
    return b""


def _set_up(module: ModuleType, complete: Complete) -> None:
    found: list[str] = []

    def one(word: str, state: int) -> str | None:
        if state == 0:
            found[:] = complete(module.get_line_buffer()[: module.get_endidx()])
        return found[state] if state < len(found) else None

    module.set_auto_history(False)
    module.set_completer(one)
    module.set_completer_delims(" \t\n")
    if "libedit" in (module.__doc__ or ""):
        module.parse_and_bind("bind ^I rl_complete")
    else:
        module.parse_and_bind("tab: complete")
        module.parse_and_bind("set enable-bracketed-paste on")  # pasted lines are one text
