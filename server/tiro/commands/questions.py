"""`tiro ask` and `tiro chat`: questions to a server that is started for them."""

import argparse

from tiro.arguments import (
    ASK_EXAMPLES,
    CHAT_EXAMPLES,
    Commands,
    add_command,
    existing_file,
    from_stdin,
    waiting_on_stdin,
)
from tiro.errors import InvalidInputError
from tiro.exits import Exit, exit_of


def add_ask(commands: Commands) -> None:
    """The command `ask`."""
    one = add_command(commands, "ask", ask, "ask one question, see the answer", ASK_EXAMPLES)
    one.add_argument("question", nargs="+", help="what to ask; - reads it from stdin")
    about = "a file that goes along; - waits for stdin, which else goes along if something is in it"
    one.add_argument("--file", action="append", default=[], help=about)
    one.add_argument("--agent", help="who answers, e.g. plan")
    one.add_argument("--model", help="provider/name, for this question")
    one.add_argument(
        "--continue", dest="go_on", action="store_true", help="go on with the newest session"
    )
    one.add_argument("--json", action="store_true", help="print events and result as JSON lines")


def add_chat(commands: Commands) -> None:
    """The command `chat`."""
    one = add_command(commands, "chat", chat, "talk in the terminal", CHAT_EXAMPLES)
    one.add_argument(
        "--file", action="append", default=[], help="a file that goes along with the first question"
    )
    one.add_argument("--agent", help="who answers, e.g. plan")
    one.add_argument("--model", help="provider/name, for this chat")
    start = one.add_mutually_exclusive_group()
    for flag, value, about in (
        ("--continue", "latest", "go on with the newest session"),
        ("--new", "", "start a new session, whatever is configured"),
    ):
        start.add_argument(flag, dest="session", action="store_const", const=value, help=about)
    start.add_argument("--load", dest="session", metavar="ID", help="go on with this session")


def ask(given: argparse.Namespace) -> int:
    """Ask one question of a server started for it; the answer streams to stdout."""
    from tiro import terminal

    words = " ".join(given.question)
    text = from_stdin() if words == "-" else words
    if not text.strip():
        raise InvalidInputError("The question is empty")
    files = [existing_file(name) for name in given.file if name != "-"]
    piped = from_stdin() if words == "-" or "-" in given.file else waiting_on_stdin()
    question = terminal.Question(
        text=text,
        files=files,
        piped=piped,
        agent=given.agent,
        model=given.model,
        is_continued=given.go_on,
        as_json=given.json,
    )
    return Exit.DONE if terminal.ask(question) else Exit.CANCELLED


def chat(given: argparse.Namespace) -> int:
    """Talk in the terminal, or answer the lines of a pipe; the first failure is the exit code."""
    from tiro.chat.chat import Wishes, chat

    wishes = Wishes(
        files=[existing_file(name) for name in given.file],
        agent=given.agent,
        model=given.model,
        session=given.session,
    )
    error = chat(wishes)
    return Exit.DONE if error is None else exit_of(error)
