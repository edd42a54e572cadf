"""What a person sees of a turn: the answer on stdout, a line for everything about it on stderr."""

import contextlib
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

from tiro import output
from tiro.chat.markdown import Markdown
from tiro.errors import StorageError
from tiro.permission_text import COMMAND, failure_of, lasting, named, question
from tiro.screen_text import counted, one_line, width, wrapped
from tiro.session.hidden import harmless, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

CLEAR_LINE, CLEAR_ALL = "\r\x1b[K", "\x1b[2J\x1b[3J\x1b[H"
DIM, BAD, RESET = "\x1b[2m", "\x1b[31m", "\x1b[0m"
MARK = "· "
MAX_PREVIEW_LINES = 500
FIRST_LINES, LAST_LINES = 3, 7
"""What is shown of a command's output when it has ended."""

CHANGES = {
    "saveFailed": "The session cannot be saved: {why}. It goes on in memory; see `tiro doctor`",
    "saveResumed": "The session is saved again",
    "changedOnDisk": "The session's file was changed outside; that is the state now",
    "renamed": "Another process took the session's name; it is now {id}",
    "expired": "The session was too old; a new one has begun",
}
ENDS = {
    "max_tokens": "The answer reached its length limit; ask to go on",
    "max_steps": 'The turn reached its limit of steps; say "continue" to go on',
    "refusal": "The model refused",
    "cancelled": "Cancelled; what had come is kept",
}


class Screen:
    """The terminal, or a file and a file: then nothing but the answer's own bytes on stdout."""

    def __init__(self) -> None:
        self.is_plain = not _takes_colours()
        self._has_status = sys.stderr.isatty() and not self.is_plain
        self._markdown: Markdown | None = None if self.is_plain else Markdown(columns)
        self._last = "\n"
        self._status = ""
        self._thinking = 0
        """How many cells of the line of thinking are taken; 0: none is shown."""
        self._commands: dict[str, str] = {}
        """The uses of commands, whose output is shown; those that ended with their line."""
        self.output_seq: int | None = None
        """The message with the newest output of a command."""
        self.session_id: str | None = None
        self.has_started = False
        """Whether the server has stored the question of the last turn."""
        self.waiting: list[str] | None = None
        """While a line is typed: what is told meanwhile, as it would go to the terminal."""
        self.failure: BrokenPipeError | StorageError | None = None
        """Why nothing can be shown any more."""
        self.on_failure: Callable[[], object] = lambda: None
        """What is called, once, when that happens."""

    # --- lines of ours ------------------------------------------------------------------------

    def say(self, text: str, indent: int | None = None, end: str = "\n") -> None:
        """What a command answers, on stdout.

        With an indent a terminal gets its lines broken between words, the rest of each indented.
        """
        text = harmless(text)
        if indent is not None and not self.is_plain:
            text = wrapped(text, columns(), indent)
        self._write(text + end)

    def tell(self, text: str) -> None:
        """A line about what goes on, on stderr."""
        self._tell(text, DIM)

    def complain(self, text: str) -> None:
        """A line about what went wrong, on stderr."""
        self._tell(text, BAD)

    def doing(self, text: str) -> None:
        """What a command does meanwhile, on a line that the next one takes away."""
        self._show_status(text)

    def check(self) -> None:
        """Raise why nothing can be shown any more: BrokenPipeError or StorageError."""
        if self.failure is not None:
            raise self.failure

    def clear(self) -> None:
        """An empty screen, where it is one."""
        if not self.is_plain:
            self._write(CLEAR_ALL)

    @contextlib.contextmanager
    def while_typing(self) -> "Generator[None, None, None]":
        """Within it nothing is written into the line that is typed: it waits, at most till then."""
        self.waiting = []
        try:
            yield
        finally:
            told, self.waiting = self.waiting, None
            self._error("".join(told))

    # --- a turn -------------------------------------------------------------------------------

    def hear(self, method: str, params: Any) -> None:
        """Show what a notification has to show."""
        if method == "tiro/turn/event":
            self.session_id = params["sessionId"]
            self._show(params)
        elif method == "$/progress":
            self._show_status(_words_of(params["value"]))
        elif method == "window/showMessage":
            self.tell(params["message"])
        elif method == "tiro/session/changed":
            self.session_id = params["id"]
            if (told := CHANGES.get(params["reason"])) is not None:
                self.tell(told.format(**{"why": "", **params}))

    def end(self, result: dict[str, Any] | None) -> None:
        """Close the last line; say how the turn ended, and what it took."""
        self.end_text()
        if result is None or self.failure is not None:
            return
        if (told := ENDS.get(result["stopReason"])) is not None:
            self.tell(told)
        if not self.is_plain and (told := tokens_of(result)):
            self.tell(told)

    def end_text(self) -> None:
        """Close the answer's last line, so that something else can stand below it."""
        self._end_thinking()
        self._clear_status()
        if self._markdown is not None:
            self._write(self._markdown.end())
        if self._last != "\n":
            self._write("\n")

    def question(self, params: dict[str, Any]) -> str:
        """What a permission question is about, as text to be put before the person."""
        self.end_text()
        use, preview = params["toolUse"], params.get("preview")
        why = f"{params['effect']}, asked because of {params['rule']}"
        what = use["name"] if preview else named(use)  # the preview tells all of it
        self.tell(visible(f"{params['agent']}: {what} – {why}"))
        lines = visible(preview).rstrip("\n").split("\n") if preview else []
        for line in lines[:MAX_PREVIEW_LINES]:
            self._tell(line, "", "  ")
        if (left := len(lines) - MAX_PREVIEW_LINES) > 0:
            self.tell(f"… and {left:,} more lines that are not shown; reject what you cannot judge")
        for line in lasting(params):
            self.tell(visible(line))
        return question(params)

    def _show(self, event: dict[str, Any]) -> None:
        if event["type"] != "thinking":
            self._end_thinking()
        match event:
            case {"type": "started", "model": model}:
                self.has_started = True
                self._show_status(f"{model} …")
            case {"type": "text", "delta": delta}:
                self._write(self._markdown.feed(delta) if self._markdown else self._raw(delta))
            case {"type": "thinking", "delta": delta}:
                self._think(delta)
            case {"type": "toolUse", "status": status, "toolUse": use}:
                self._show_tool(use, status, "↳ " if event.get("parentToolUseId") else "")
            case {"type": "toolOutput", "delta": delta}:
                self._show_status(delta.rstrip().rpartition("\n")[2])
            case {"type": "toolResult"}:
                self._show_result(event)
            case {"type": "retry", "reason": reason, "waitSeconds": seconds}:
                self.end_text()
                self.tell(f"{reason}; trying again in {seconds:.0f} s")
            case {"type": "resize"}:
                self._show_resize(event)
            case _:
                pass

    def _show_resize(self, event: dict[str, Any]) -> None:
        if evicted := event["evicted"]:
            size = f"{event['tokensBefore']:,} → {event['tokensAfter']:,} tokens"
            self.tell(f"{counted(evicted, 'older message')} left the window: {size}")
        if (refused := event["memoRefused"]) is not None:
            self.tell(refused)

    def _show_tool(self, use: dict[str, Any], status: str, mark: str) -> None:
        """A tool use that goes on is the status line; when it has ended it gets a line.

        `mark` tells that of a sub-agent, which stands above the line of the use it works for.
        """
        self.end_text()
        line = one_line(mark + named(use), columns() - 16)
        if use["name"] == COMMAND and not mark:
            self._commands[use["id"]] = line if status == "done" else ""
        if status in ("proposed", "running"):
            self._show_status(f"{mark}{named(use)}: {status}")
        elif not self._commands.get(use["id"]):  # else its result says whether it failed
            self._tell(f"{line}: {status}", DIM)

    def _show_result(self, event: dict[str, Any]) -> None:
        """What a command gave and how it ended; of anything else only why it failed."""
        lines = event["content"].strip().split("\n")
        done = self._commands.pop(event["toolUseId"], None)
        if done is None:
            lines = lines[:1] if event["isError"] else []
        else:
            lines, self.output_seq = _ends_of(event), event["seq"]
        if done:
            how = failure_of(event.get("end") or event["content"])
            self._tell(f"{done}: {f'failed, {how}' if how else 'done'}", BAD if how else DIM)
        for line in lines:
            self._tell(line, DIM, "  ")

    def _think(self, delta: str) -> None:
        """As much thinking as fits one line."""
        if not self._has_status:
            return
        if not self._thinking:
            self._clear_status()
            self._thinking = width("· thinks: ")
            self._error(f"{DIM}· thinks: ")
        left = columns() - 2 - self._thinking
        if left > 0:
            flat = harmless(delta).replace("\n", " ")
            shown = one_line(f".{flat}.", left)[1:-1] if width(flat) >= left else flat
            self._error(shown + ("…" if width(flat) >= left else ""))
            self._thinking += max(width(flat), 1)

    def _end_thinking(self) -> None:
        if self._thinking:
            self._thinking = 0
            self._error(f"{RESET}\n")

    # --- writing ------------------------------------------------------------------------------

    def _raw(self, delta: str) -> str:
        return harmless(delta) if sys.stdout.isatty() else delta

    def _write(self, text: str) -> None:
        if not text or self.failure is not None:
            return
        self._clear_status()
        self._last = text[-1]
        try:
            output.show(text)
        except (BrokenPipeError, StorageError) as error:
            self.failure = error
            self.on_failure()

    def _tell(self, text: str, style: str, mark: str = MARK) -> None:
        self._end_thinking()
        self._clear_status()
        if self._last != "\n" and sys.stdout.isatty():
            self._write("\n")
        text = f"{mark}{harmless(text)}"
        if mark == MARK and self._has_status:
            text = wrapped(text, columns(), len(MARK))
        self._error(f"{text}\n" if self.is_plain or not style else f"{style}{text}{RESET}\n")

    def _show_status(self, text: str) -> None:
        """What goes on, on a line that is taken away again; nothing where that cannot be."""
        if not text or self._last != "\n" or not self._has_status or self._thinking:
            return
        if self.waiting is not None:
            return
        self._status = one_line(text, columns() - 4)
        self._error(f"{CLEAR_LINE}{DIM}{MARK}{self._status}{RESET}")

    def _clear_status(self) -> None:
        if self._status:
            self._status = ""
            self._error(CLEAR_LINE)

    def _error(self, text: str) -> None:
        if self.waiting is not None:
            self.waiting.append(text)
        else:
            output.tell(text)


def _ends_of(event: dict[str, Any]) -> list[str]:
    """The first and the last lines, and between them how much there is, and where."""
    content: str = event["content"].strip()
    end: str = event["end"].strip() if "end" in event else content
    lines, last = content.split("\n"), end.split("\n")[-LAST_LINES:]
    if "end" not in event and len(lines) < FIRST_LINES + LAST_LINES + 2:
        return lines
    first = lines[:FIRST_LINES]
    if "end" in event:
        shown = len("".join(first)) + len("".join(last))
        between = counted(len(content) + event["leftOut"] + len(end) - shown, "character")
    else:
        between = counted(len(lines) - FIRST_LINES - LAST_LINES, "line")
    return [*first, f"… {between} between; /output shows all …", *last]


def columns() -> int:
    """The terminal's width in cells."""
    return shutil.get_terminal_size().columns


def tokens_of(result: dict[str, Any]) -> str:
    """What a turn took (tokens in and out, money), if it is known, and how full the window is."""
    usage, size = result["usage"], result["contextSize"]
    cached, parts = usage["cacheReadTokens"], list[str]()
    read = usage["inputTokens"] + cached
    if read or usage["outputTokens"]:  # a turn that was stopped early has no report
        parts += [f"{read:,} tokens in" + (f" ({cached:,} cached)" if cached else "")]
        parts += [f"{usage['outputTokens']:,} out"]
    if usage["costUsd"]:
        parts.append(f"${usage['costUsd']:.4f}")
    if size["ratio"] is not None:
        parts.append(f"{size['ratio']:.0%} of the window")
    return ", ".join(parts)


def _words_of(progress: dict[str, Any]) -> str:
    message, percentage = progress.get("message") or "", progress.get("percentage")
    return message if percentage is None else f"{message}, {percentage} %"


def _takes_colours() -> bool:
    """Whether stdout is a terminal that wants more than text."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return sys.stdout.isatty()
