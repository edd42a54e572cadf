#!/usr/bin/env python3
"""Try Tiro from a fresh clone: nothing to install first, no account, no key.

    python3 server/try.py                                 talk in the terminal
    python3 server/try.py "What is this?" --file NOTES    one question, then the session
    python3 server/try.py --kill "Tell me a story"        kill -9 in mid-answer, then ask again

It makes a private Python environment in your cache directory, installs Tiro with its embedded
model there, starts the real `tiro serve` and talks to it over stdio, as an editor does. Needs
Python 3.11 or newer and its standard library, and a package index to install from.
"""

import argparse
import contextlib
import hashlib
import importlib
import itertools
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tiro" / "try"
DEFAULT_QUESTION = "What is the capital of France?"
EMBEDDED = {"model": "local", "turn": {"max_output_tokens": 200}}  # it repeats itself after that
A_STORY = "Tell me a long story about a secretary."
KILL_AFTER_CHARS = 40

ABOUT_THE_MODEL = """\
The model is SmolLM2 135M, which comes from the package index: small enough for any laptop, and of
demo quality. It knows simple facts, is wrong about most other things and cannot read a file that
you show it. Tiro is the same with a good one: set OPENAI_API_KEY or OPENROUTER_API_KEY, or start
Ollama or a llama.cpp server, and ask with --model, e.g. --model openai/gpt-4.1. The README tells
how to install `tiro` for good."""

HELP = """\
Type a question and press Enter; Ctrl-C stops an answer.
  /show            the session as text         /save             write it now, and say where
  /clear           save it and start afresh    /load             go back to the newest saved one
  /file PATH       add a file to the next question
  /kill [WORDS]    ask, kill -9 the server in mid-answer, start it again and ask again
  /quit            leave (so does Ctrl-D)"""


def main() -> int:
    """Set up, start the server, then talk or ask the one question."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("question", nargs="*", help="ask this and end; without it: a conversation")
    parser.add_argument("--file", action="append", default=[], help="a file that goes along")
    parser.add_argument("--model", default=None, help="provider/name; default: the embedded model")
    parser.add_argument(
        "--kill", action="store_true", help="kill the server in mid-answer, ask again"
    )
    parser.add_argument("--config-dir", default=None, help="default: one of its own")
    given = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036  (here it is a word to people with an older one)
        print("Tiro needs Python 3.11 or newer", file=sys.stderr)
        return 1
    config_dir = given.config_dir or os.environ.get("TIRO_CONFIG_DIR") or str(CACHE / "config")
    try:
        python = environment()
        if given.model is None:
            pull_model(python, config_dir)
        talk = Talk(python, config_dir, given.model)
        question = " ".join(given.question)
        try:
            if question or given.kill or not sys.stdin.isatty():
                return once(talk, question, given.file, kill=given.kill)
            return converse(talk, given.file)
        finally:
            talk.server.stop()
    except TryError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


class TryError(Exception):
    """Something that ends the program, in a sentence for the user."""


# --- what happens on the screen ------------------------------------------------------------


def once(talk: "Talk", question: str, files: list[str], *, kill: bool) -> int:
    """One question (and, with kill, a dead server in the middle), the session, the file."""
    if not question:
        question = DEFAULT_QUESTION
    talk.files = files
    print(f"\n> {question}" + "".join(f"  [{name}]" for name in files))
    if kill:
        talk.ask_and_kill(question)
    else:
        talk.ask(question)
    print(f"\n{talk.shown()}\n\nSaved in {talk.saved()}")
    return 0


def converse(talk: "Talk", files: list[str]) -> int:
    """Read lines until the end; a line is a question or one of the commands in HELP."""
    with contextlib.suppress(ImportError):  # arrow keys, where the system has them
        importlib.import_module("readline")
    print(f"\n{HELP}\n")
    talk.files = list(files)
    with typing_ahead():
        while True:
            try:
                line = input("> ").strip()
            except EOFError:
                line = "/quit"
            except KeyboardInterrupt:
                print()
                continue
            if line == "/quit":
                print(f"Saved in {talk.saved()}")
                return 0
            try:
                act(talk, line)
            except AnswerError as error:
                print(f"\n{talk.as_typed_here(str(error))}", file=sys.stderr)


def act(talk: "Talk", line: str) -> None:
    """Do what a line says."""
    word, _, rest = line.partition(" ")
    if word in COMMANDS:
        print(COMMANDS[word](talk, rest.strip()))
    elif line.startswith("/"):
        print(HELP)
    elif line:
        talk.ask(line)


@contextlib.contextmanager
def typing_ahead() -> Iterator[None]:
    """Keep the lines typed during an answer when Ctrl-C stops it; a terminal drops them."""
    if os.name == "nt" or not sys.stdin.isatty():
        yield
        return
    termios: Any = importlib.import_module("termios")
    before = termios.tcgetattr(sys.stdin)
    flags = [*before[:3], before[3] | termios.NOFLSH, *before[4:]]
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, flags)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


COMMANDS: dict[str, Callable[["Talk", str], str]] = {
    "/show": lambda talk, _rest: talk.shown(),
    "/save": lambda talk, _rest: f"Saved in {talk.saved()}",
    "/clear": lambda talk, _rest: talk.cleared(),
    "/load": lambda talk, _rest: talk.loaded(),
    "/file": lambda talk, rest: talk.with_file(rest),
    "/kill": lambda talk, rest: talk.ask_and_kill(rest or A_STORY),
}


def existing(name: str) -> str:
    """The absolute path of a file that is there; else AnswerError."""
    if Path(name).is_dir():
        raise AnswerError(f"{name!r} is a directory; name a file in it")
    if not Path(name).is_file():
        raise AnswerError(f"There is no file {name!r}")
    return str(Path(name).resolve())


class Talk:
    """One user talking to one server at a time; it starts the next when one has died."""

    def __init__(self, python: Path, config_dir: str, model: str | None) -> None:
        self._python, self._config_dir, self._model = python, config_dir, model
        self.server = Server(python, config_dir, model)
        self.files: list[str] = []
        self._answer, self._note = Answer(), Note()

    def ask(self, question: Any) -> None:
        """Ask and show the answer as it comes; Ctrl-C stops it."""
        turn = self._send_turn(question)
        while True:
            try:
                message = self.server.receive()
                if message.get("id") == turn:
                    break
                self._show(message)
            except KeyboardInterrupt:
                self.server.send("tiro/turn/cancel", {})
        self._end_answer()
        result = _result(message)
        tokens = result["usage"].get("outputTokens")  # a provider tells it at the very end, if ever
        count = f", {tokens} tokens" if tokens else ""
        print(f"[{result['stopReason']}{count}]", file=sys.stderr)

    def ask_and_kill(self, question: str) -> str:
        """Ask, kill the server when some of the answer is there, and let the next one answer.

        A piece of an answer goes with its server; the question was stored before it was sent.
        """
        turn, printed, is_whole = self._send_turn(question), 0, False
        while printed < KILL_AFTER_CHARS and not is_whole:
            message = self.server.receive()
            if is_whole := message.get("id") == turn:
                _result(message)
            printed += self._show(message)
        self.server.kill()
        self._end_answer()
        print("\n[kill -9: the server is gone. Starting another, loading what it had stored.]")
        self.server = Server(self._python, self._config_dir, self._model)
        print(self.loaded())
        if is_whole:
            print("[The answer was whole before the kill, and is kept.]")
        else:
            print("[Your question is kept; the piece of its answer is lost. It is asked again.]\n")
            self._ask_again()
        return self.shown()

    def _ask_again(self) -> None:
        """Take the last question back, which has no answer, and ask it once more."""
        window = self.server.request("tiro/session/get", {})["messages"]
        place = max(n for n, message in enumerate(window) if message["role"] == "user")
        asked, to = window[place], window[place - 1]["seq"] if place else 0
        self.server.request("tiro/session/rewind", {"toSeq": to})
        self.ask(asked["content"])

    def with_file(self, name: str) -> str:
        """Let a file go along with the next question."""
        existing(name)
        self.files.append(name)
        return f"{name} goes along with your next question"

    def _send_turn(self, question: Any) -> int:
        """Start a turn with the files that wait."""
        files, self.files = self.files, []
        attachments = [{"kind": "file", "path": existing(name)} for name in files]
        params = {"prompt": question, "attachments": attachments}
        return self.server.send("tiro/turn/start", params)

    def _show(self, message: dict[str, Any]) -> int:
        """Print what a notification has to show; returns how much of the answer was in it."""
        event = message.get("params") or {}
        if message.get("method") == "$/progress" and not self._answer.is_begun:
            self._note.show(self.as_typed_here(event["value"].get("message") or ""))
        if message.get("method") != "tiro/turn/event":
            return 0
        if event["type"] == "text":
            self._note.clear()
            self._answer.write(event["delta"])
            return len(event["delta"])
        if event["type"] == "toolUse" and event["status"] == "running":
            self._end_answer()
            use = event["toolUse"]
            print(f"[{use['name']} {json.dumps(use['input'])}]", file=sys.stderr)
        return 0

    def _end_answer(self) -> None:
        self._note.clear()
        self._answer.end()

    def as_typed_here(self, text: str) -> str:
        """The server's words with a command that works: `tiro` is not on the PATH here."""
        return text.replace("tiro local ", f"{self._python.with_name('tiro')} local ")

    def shown(self) -> str:
        """The session, by the server's own show."""
        text = self.server.request("tiro/session/show", {})["text"]
        return str(text or "The session is empty.")

    def saved(self) -> str:
        """Save, and say where."""
        return str(self.server.request("tiro/session/save", {})["path"])

    def cleared(self) -> str:
        """Start afresh; the old session is kept."""
        result = self.server.request("tiro/session/clear", {})
        return f"{_messages(result['cleared'])} put away in {result['savedAs'] or 'no file'}"

    def loaded(self) -> str:
        """Go back to the newest saved session."""
        view = self.server.request("tiro/session/load", {"latest": True})
        return f"Loaded {view['path']}: {_messages(view['total'])}\n{self.shown()}"


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


class Answer:
    """An answer that comes in pieces, broken between words where the terminal's line ends."""

    def __init__(self) -> None:
        self.is_begun = False
        self._column, self._gap, self._word = 0, "", ""

    def write(self, text: str) -> None:
        """Show a piece; its last word waits until the rest of it has come."""
        self.is_begun = True
        *words, self._word = re.split(r"(?<=\s)", self._word + text)
        for word in words:
            self._put(word)

    def end(self) -> None:
        """Show what waits and end the line."""
        self._put(self._word)
        if self.is_begun:
            print(flush=True)
        self.is_begun, self._column, self._gap, self._word = False, 0, "", ""

    def _put(self, word: str) -> None:
        text = word.rstrip()
        if self._column and self._column + len(self._gap) + len(text) > width(sys.stdout):
            print()
            self._column, self._gap = 0, ""
        print(f"{self._gap}{text}", end="", flush=True)
        self._column += len(self._gap) + len(text)
        self._gap = word[len(text) :]
        if "\n" in self._gap:
            print(self._gap, end="", flush=True)
            self._column, self._gap = 0, ""


class Note:
    """What goes on before an answer: in a terminal one line that changes."""

    def __init__(self) -> None:
        self._doing = ""
        self._is_shown = False

    def show(self, text: str) -> None:
        """Show this instead of what was shown; what needs more than a line stays."""
        self.clear()
        doing = text.partition(",")[0]
        if sys.stderr.isatty() and 0 < len(text) + 2 < width(sys.stderr):
            print(f"[{text}]", end="", file=sys.stderr, flush=True)
            self._is_shown = True
        elif text and doing != self._doing:
            print(filled(f"[{text}]"), file=sys.stderr)
        self._doing = doing

    def clear(self) -> None:
        """Take the line away."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_shown = False


def width(stream: Any) -> int:
    """How many columns a line has; a file takes what comes."""
    return shutil.get_terminal_size().columns if stream.isatty() else sys.maxsize


def filled(text: str) -> str:
    """A paragraph in lines that fit."""
    fits = min(width(sys.stderr), 100)
    return textwrap.fill(text, fits, break_long_words=False, break_on_hyphens=False)


# --- JSON-RPC over stdio, as an editor speaks it --------------------------------------------


class AnswerError(TryError):
    """The server answered with an error; the conversation can go on."""


class Server:
    """A real `tiro serve` as a child: frames out, frames in, its log kept for when it dies."""

    def __init__(self, python: Path, config_dir: str, model: str | None) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the child)
        self._child = subprocess.Popen(
            [str(python), "-m", "tiro", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is for us: it cancels the answer, not the server
            env={**os.environ, "TIRO_CONFIG_DIR": config_dir},
        )
        self._to_server: Any = self._child.stdin
        self._from_server: Any = self._child.stdout
        self._ids = itertools.count(1)
        self._arrived: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        settings: dict[str, Any] = {"model": model} if model else EMBEDDED
        params = {
            "processId": os.getpid(),
            "rootUri": Path.cwd().as_uri(),
            "workspaceFolders": [{"uri": Path.cwd().as_uri(), "name": Path.cwd().name}],
            "capabilities": {"window": {"workDoneProgress": True}},
            "initializationOptions": {"settings": settings, "features": {"turnEvents": True}},
        }
        self.request("initialize", params)
        self._write({"method": "initialized", "params": {}})

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask and wait for the answer, whatever else arrives before it."""
        number = self.send(method, params)
        while True:
            message = self.receive()
            if message.get("id") == number:
                return _result(message)

    def send(self, method: str, params: dict[str, Any]) -> int:
        """Ask without waiting; the request's id."""
        number = next(self._ids)
        self._write({"id": number, "method": method, "params": params})
        return number

    def receive(self) -> dict[str, Any]:
        """The next message that is for us; the server's own questions are answered on the way."""
        while True:
            message = self._arrived.get()
            if message is None:
                self._log.seek(0)
                log = self._log.read()[-2000:].decode("utf-8", "replace")
                raise TryError(f"The server ended by itself:\n{log}")
            if "method" in message and "id" in message:
                self._write({"id": message["id"], "result": _reply(message)})
            else:
                return message

    def kill(self) -> None:
        """What a crash or an impatient user does."""
        self._child.kill()
        self._child.wait()
        self._reader.join()
        for stream in (self._to_server, self._from_server, self._log):
            with contextlib.suppress(OSError):
                stream.close()

    def stop(self) -> None:
        """The orderly end."""
        if self._child.poll() is None:
            with contextlib.suppress(TryError, OSError):
                self.request("shutdown", {})
                self._write({"method": "exit"})
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(5)
        self.kill()

    def _write(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._to_server.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._to_server.flush()

    def _read(self) -> None:
        with contextlib.suppress(ValueError, OSError):
            while header := self._from_server.readline():
                size = int(header.split(b":")[1])
                while self._from_server.readline().strip():
                    pass
                self._arrived.put(json.loads(self._from_server.read(size)))
        self._arrived.put(None)


def _reply(message: dict[str, Any]) -> Any:
    """A rather deaf editor: it lets nothing be done that needs a yes."""
    return {"decision": "reject"} if message["method"] == "tiro/permission/request" else None


def _result(message: dict[str, Any]) -> dict[str, Any]:
    if "error" in message:
        raise AnswerError(message["error"]["message"])
    return message["result"] or {}


# --- the private environment ----------------------------------------------------------------


def environment() -> Path:
    """Make the environment when it is not there yet; its Python is returned."""
    project = (ROOT / "pyproject.toml").read_bytes()
    parts = (project, str(ROOT).encode(), sys.version.encode())
    venv = CACHE / f"venv-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:12]}"
    python = venv / ("Scripts" if os.name == "nt" else "bin") / "python"
    if (venv / ".ok").exists():
        return python
    print(f"Making a private environment in {venv} (once, about a minute)", file=sys.stderr)
    shutil.rmtree(venv, ignore_errors=True)
    _run(sys.executable, "-m", "venv", str(venv))
    _run(str(python), "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[local]")
    (venv / ".ok").touch()
    return python


def pull_model(python: Path, config_dir: str) -> None:
    """Bring the embedded model, by the command that users type."""
    print(filled(ABOUT_THE_MODEL), file=sys.stderr)
    command = [str(python), "-m", "tiro", "local", "pull"]
    env = {**os.environ, "TIRO_CONFIG_DIR": config_dir}
    if subprocess.run(command, env=env, stdin=subprocess.DEVNULL).returncode:
        raise TryError("The embedded model could not be brought; the reason stands above")


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        output = (done.stdout + done.stderr)[-3000:]
        raise TryError(f"`{' '.join(command)}` failed:\n{output}")


if __name__ == "__main__":
    sys.exit(main())
