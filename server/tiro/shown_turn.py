"""A turn as one command shows it: to a person, to a program; a line of what goes on meanwhile."""

import asyncio
import json
import shutil
import sys
from typing import Any

from tiro import output
from tiro.errors import StorageError
from tiro.permission_text import COMMAND, failure_of, named
from tiro.session.hidden import harmless

TOLD = "· "
NOT_SAVED = "The session cannot be saved: {}. It is kept in memory only; see `tiro doctor`"
CLEAR_LINE = "\r\x1b[K"


class Screen:
    """A turn as a person reads it."""

    def __init__(self) -> None:
        self.has_enough = asyncio.Event()
        """Set when nobody wants more: after Ctrl-C, or when stdout is closed or full."""
        self.failure: BrokenPipeError | StorageError | None = None
        """Why stdout could not be written, when that ended it."""
        self._last = "\n"
        self._progress = StatusLine()
        self._commands: set[str] = set()

    def hear(self, method: str, params: Any) -> None:
        """Show what a notification has to show."""
        if method == "tiro/turn/event":
            self.show(params)
        elif method == "$/progress" and self._last == "\n":  # it comes late, too
            self._progress.show(_words_of(params["value"]))
        elif method == "window/showMessage":
            self.tell(params.get("message"))
        elif method == "tiro/session/changed" and params["reason"] == "saveFailed":
            self.tell(NOT_SAVED.format(params["why"]))

    def show(self, event: dict[str, Any]) -> None:
        """The answer's text to stdout, what tools do to stderr."""
        match event:
            case {"type": "text", "delta": delta}:
                self.write(delta)
            case {"type": "toolUse", "status": "running", "toolUse": use}:
                self.tell(named(use))
                self._commands |= {use["id"]} if use["name"] == COMMAND else set()
            case {"type": "toolUse", "status": "failed" | "rejected" as status, "toolUse": use}:
                self.tell(f"{named(use)}: {status}")
            case {"type": "toolResult", "isError": True, "content": content}:
                self.tell("  " + content.strip().partition("\n")[0])
            case {"type": "toolResult", "toolUseId": id} if id in self._commands:
                if (how := failure_of(event.get("end") or event["content"])) is not None:
                    self.tell("  " + how)
            case {"type": "retry", "reason": reason, "waitSeconds": seconds}:
                self.tell(f"{reason}; trying again in {seconds:.0f} s")
            case _:
                pass

    def tell(self, text: str | None) -> None:
        """A line about the answer, to stderr."""
        self._progress.clear()
        tell(text)

    def end(self, result: dict[str, Any]) -> None:
        """Close the last line, and say why it ended if not by itself."""
        self._progress.clear()
        if self._last != "\n":
            self.write("\n")
        if result["stopReason"] not in ("end_turn", "cancelled"):
            self.tell(f"The answer ended early: {result['stopReason']}")

    def write(self, text: str) -> None:
        """Write to stdout, as long as somebody reads it."""
        if not text or self.failure is not None:
            return
        self._last = text[-1]
        self._progress.clear()
        try:
            output.write(text)
            output.flush()
        except (BrokenPipeError, StorageError) as error:
            self.failure = error
            self.has_enough.set()


class JsonLines(Screen):
    """A turn as a program reads it: the events as they were sent, then the result."""

    def show(self, event: dict[str, Any]) -> None:
        """One event, one line."""
        self.write(json.dumps(event, ensure_ascii=False) + "\n")

    def end(self, result: dict[str, Any]) -> None:
        """The result is the last line."""
        self.write(json.dumps({"type": "result", **result}, ensure_ascii=False) + "\n")


class StatusLine:
    """What goes on meanwhile, on stderr: in a terminal one line that changes in place.

    Elsewhere each thing is said once, without how far it is: the words before the first comma
    tell one thing from the next. What does not fit a terminal's line is no mere sign of life;
    it stays.
    """

    def __init__(self) -> None:
        self._doing = ""
        self._is_shown = False

    def show(self, text: str | None) -> None:
        """Show this instead of what was shown; None: nothing goes on any more."""
        doing = (text or "").partition(",")[0]
        if not sys.stderr.isatty():
            tell(text if doing != self._doing else None)
        elif text:
            fits = len(text) + len(TOLD) < shutil.get_terminal_size().columns
            output.tell(f"{CLEAR_LINE}{TOLD}{harmless(text)}" + ("" if fits else "\n"))
            self._is_shown = fits
        else:
            self.clear()
        self._doing = doing

    def clear(self) -> None:
        """Take the line away, so that something else can be written."""
        if self._is_shown:
            output.tell(CLEAR_LINE)
            self._is_shown = False


def tell(text: str | None) -> None:
    """A line of ours, on stderr; None is none."""
    if text:
        output.tell(f"{TOLD}{harmless(text)}\n")


def _words_of(progress: dict[str, Any]) -> str | None:
    message, percentage = progress.get("message"), progress.get("percentage")
    return message if not message or percentage is None else f"{message}, {percentage} %"
