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
import asyncio
import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiro.chat.talk import Talk

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tiro" / "try"
DEFAULT_QUESTION = "What is the capital of France?"
EMBEDDED = {"model": "local", "turn": {"max_output_tokens": 200}}  # it repeats itself after that
KILL_AFTER_CHARS = 40

ABOUT_THE_MODEL = """\
The model is SmolLM2 135M, which comes from the package index: small enough for any laptop, and of
demo quality. It knows simple facts, is wrong about most other things and cannot read a file that
you show it. Tiro is the same with a good one: set ANTHROPIC_API_KEY, OPENAI_API_KEY or
OPENROUTER_API_KEY, or start Ollama or a llama.cpp server, and ask with --model, e.g. --model
openai/gpt-4.1. The README tells how to install `tiro` for good."""


def main() -> int:
    """Set up, then go on as the Python that has Tiro: talk, or ask the one question."""
    if sys.version_info < (3, 11):  # noqa: UP036  (here it is a word to people with an older one)
        print("Tiro needs Python 3.11 or newer", file=sys.stderr)
        return 1
    given = arguments()
    environment = place()
    if environment.is_dir() and environment.samefile(sys.prefix):
        return trial(given)
    try:
        return start_again(made(environment))
    except SetUpError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def arguments() -> argparse.Namespace:
    """What the command line says."""
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
    return parser.parse_args()


# --- the private environment ----------------------------------------------------------------


class SetUpError(Exception):
    """Why there is no environment, in a sentence for the user."""


def place() -> Path:
    """Where the environment for this clone and this Python is, or will be."""
    project = (ROOT / "pyproject.toml").read_bytes()
    parts = (project, str(ROOT).encode(), sys.version.encode())
    return CACHE / f"venv-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:12]}"


def made(environment: Path) -> Path:
    """Make the environment when it is not there yet; its Python."""
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (environment / ".ok").exists():
        told = f"Making a private environment in {environment} (once, about a minute)"
        print(told, file=sys.stderr)
        shutil.rmtree(environment, ignore_errors=True)
        run(sys.executable, "-m", "venv", str(environment))
        run(str(python), "-m", "pip", "install", "--editable", f"{ROOT}[local]")
        (environment / ".ok").touch()
    return python


def run(*command: str) -> None:
    """Run a command to its end, in a terminal with its newest line for a sign of life.

    Raises SetUpError with the end of what it said when it fails.
    """
    said: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:
        for line in child.stdout or ():
            said.append(line)
            show_instead(line.strip())
    show_instead("")
    if child.returncode:
        raise SetUpError(f"`{shlex.join(command)}` failed:\n{''.join(said)[-3000:]}")


def show_instead(line: str) -> None:
    """Show this in place of what was shown, in a terminal only."""
    if sys.stderr.isatty():
        fits = line[: shutil.get_terminal_size().columns - 1]
        print(f"\r\x1b[K{fits}", end="", file=sys.stderr, flush=True)


def start_again(python: Path) -> int:
    """Run this program as another Python."""
    command = [str(python), __file__, *sys.argv[1:]]
    if os.name != "nt":
        os.execv(python, command)
    child = subprocess.Popen(command)  # after Windows' exec the shell would not wait
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # the child has heard it too
            return child.wait()


# --- in the environment: what Tiro is made of can be imported -------------------------------


def trial(given: argparse.Namespace) -> int:
    """Bring the model, then talk or ask the one question; the exit code."""
    from tiro import cli, exits, output
    from tiro.chat.chat import Wishes, chat
    from tiro.errors import TiroError

    config_dir = given.config_dir or os.environ.get("TIRO_CONFIG_DIR") or str(CACHE / "config")
    os.environ["TIRO_CONFIG_DIR"] = config_dir
    settings: Mapping[str, Any] = {"model": given.model} if given.model else EMBEDDED
    if not given.model:
        output.note(ABOUT_THE_MODEL)
        if code := cli.main(["local", "pull"]):
            return code
    question, code = " ".join(given.question), exits.Exit.DONE
    try:
        if question or given.kill or not sys.stdin.isatty():
            asyncio.run(once(question or DEFAULT_QUESTION, given.file, settings, kill=given.kill))
        else:
            chat(Wishes(files=given.file, settings=settings))
    except KeyboardInterrupt:
        code = exits.Exit.CANCELLED
    except TiroError as error:
        output.note(f"tiro: {error}")
        return exits.exit_of(error)
    tiro = shlex.quote(str(Path(sys.executable).with_name("tiro")))
    here = f"TIRO_CONFIG_DIR={shlex.quote(config_dir)} {tiro}"
    output.note(f"\nTo see it again: {here} sessions show latest")
    return code


async def once(
    question: str, files: Sequence[str], settings: Mapping[str, Any], *, kill: bool
) -> None:
    """One question (and, with kill, a dead server in the middle), the session, its file."""
    from tiro.chat import session_commands
    from tiro.chat.lines import PipedLines
    from tiro.chat.link import Link
    from tiro.chat.screen import Screen, tokens_of
    from tiro.chat.talk import StoppedError, Talk
    from tiro.errors import TiroError
    from tiro.protocol.client import RemoteError, ServerGoneError
    from tiro.terminal import raised_there

    screen, heard = Screen(), Heard()

    def hear(method: str, params: Any) -> None:
        screen.hear(method, params)
        if method == "tiro/turn/event":
            heard.take(params)

    async def answer(method: str, params: Any) -> Any:
        return await talk.answer(method, params)

    fresh = {**settings, "session": {"resume": "new"}}
    link = Link(hear, answer, fresh, [Path.cwd().as_uri()])
    talk = Talk(link, screen, PipedLines())
    try:
        await link.start()
        for name in files:
            talk.take_file(name)
        screen.say(f"\n> {question}" + "".join(f"  [{name}]" for name in files))
        with contextlib.suppress(StoppedError):  # by Ctrl-C; what had come is shown all the same
            await (ask_and_kill(talk, question, heard) if kill else talk.ask(question))
        if screen.is_plain and heard.usage:
            screen.tell(tokens_of(heard.usage))
        screen.say("\n" + (await link.request("tiro/session/show"))["text"] + "\n")
        await session_commands.save(talk, "")
    except RemoteError as error:
        raise raised_there(error) from error
    except ServerGoneError as error:
        reason, said = await link.last_words()
        raise TiroError("\n".join([f"The server ended ({reason})", *said])) from error
    finally:
        await link.close()


class Heard:
    """What was heard of the last answer."""

    def __init__(self) -> None:
        self.usage: dict[str, Any] | None = None
        self.enough = asyncio.Event()
        self._chars = 0

    def take(self, event: dict[str, Any]) -> None:
        """Hear an event of a turn."""
        if event["type"] == "usage":
            self.usage = event
        elif event["type"] == "text":
            self._chars += len(event["delta"])
            if self._chars >= KILL_AFTER_CHARS:
                self.enough.set()


async def ask_and_kill(talk: "Talk", question: str, heard: Heard) -> None:
    """Ask, kill the server when some of the answer is there, and let the next one answer.

    A piece of an answer goes with its server; the question was stored before it was sent.
    """
    from tiro.protocol.client import ServerGoneError

    asking = asyncio.ensure_future(talk.ask(question))
    enough = asyncio.ensure_future(heard.enough.wait())
    await asyncio.wait({asking, enough}, return_when=asyncio.FIRST_COMPLETED)
    enough.cancel()
    await talk.link.kill()
    with contextlib.suppress(ServerGoneError):
        await asking
    talk.screen.tell("kill -9: the server is gone. Starting another, loading what it had stored")
    await talk.link.start()
    await talk.find_again()
    view = await talk.link.request("tiro/session/show")
    talk.screen.say(view["text"])
    newest = (await talk.link.request("tiro/session/get", {"limit": 1}))["messages"][-1]
    if newest["role"] == "assistant":
        talk.screen.tell("The answer was whole before the kill, and is kept")
    else:
        told = "Your question is kept; the piece of its answer is lost. It is asked again"
        talk.screen.tell(told)
        await talk.ask_again()


if __name__ == "__main__":
    sys.exit(main())
