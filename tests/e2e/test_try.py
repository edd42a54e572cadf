"""`server/try.py`, the first thing a newcomer runs: its talk with a real server."""

import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.e2e import replies
from tests.e2e.home import SERVER, Home
from tests.e2e.provider import MODEL, Provider
from tests.e2e.replies import Hold
from tests.e2e.tmux import Chat
from tests.sizes import PATIENCE

SCRIPT = SERVER / "try.py"
INSTALLED = os.pathsep.join([str(SERVER), sysconfig.get_paths()["purelib"]])
"""What is brought from an index elsewhere."""

Try = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(home: Home, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the program is started with: its private environment is made, without an index."""
    monkeypatch.setenv("XDG_CACHE_HOME", home.environment()["XDG_CACHE_HOME"])
    spec = importlib.util.spec_from_file_location("try_tiro", SCRIPT)
    assert spec
    assert spec.loader
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    venv.create(program.place(), symlinks=True)
    (program.place() / ".ok").touch()
    return {**home.environment(), "PYTHONPATH": INSTALLED}


def words_of(*words: object) -> Sequence[str]:
    """The program's command line, with the scripted provider's model."""
    return [sys.executable, str(SCRIPT), "--model", f"fake/{MODEL}", *map(str, words)]


@pytest.fixture
def attempt(home: Home, environment: dict[str, str]) -> Try:
    """The program run to its end where nobody types."""

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words_of(*words),
            cwd=home.workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    return run


def test_one_question_shows_all_that_came_of_it(
    attempt: Try, provider: Provider, home: Home
) -> None:
    """The question, the tools that were used, the answer, its tokens, the session, its file."""
    home.write("notes.txt", "xylophone")
    provider.script(
        replies.tools(("t1", "read_file", {"path": "notes.txt"})),
        replies.text("It is ", "a xylophone.", usage=replies.usage_chunk(1234, 56)),
    )
    done = attempt("What is", "it?", "--file", "notes.txt")
    assert done.returncode == 0, done.stderr
    (saved,) = home.session_files()
    assert "\n> What is it?  [notes.txt]\nIt is a xylophone.\n" in done.stdout
    assert "Session Summary:\n\n[USER] What is it?" in done.stdout
    assert done.stdout.endswith(f"\nSaved in {saved}\n")
    assert "read_file notes.txt: done" in done.stderr
    assert "1,244 tokens in, 61 out" in done.stderr, "of both requests"
    assert "xylophone" in str(provider.chats[0].messages), "the file went along"


def test_killed_server_loses_nothing_acknowledged(
    attempt: Try, provider: Provider, home: Home
) -> None:
    """kill -9 in mid-answer: the question is asked again, and what was lost is said."""
    hold = Hold()
    provider.script(
        replies.stream(replies.text_chunk("word " * 20), hold), replies.text("Going on.")
    )
    done = attempt("A long story", "--kill")
    hold.release()
    assert done.returncode == 0, done.stderr
    assert "kill -9: the server is gone" in done.stderr
    assert "the piece of its answer is lost. It is asked again" in done.stderr
    assert [message["content"] for message in provider.last.messages] == ["A long story"]
    assert done.stdout.count("[USER] A long story") == 2, "as it was loaded, and at the end"
    assert "[ASSISTANT] Going on." in done.stdout
    assert len(home.session_files()) == 1


def test_answer_that_was_whole_before_the_kill_is_kept(attempt: Try, provider: Provider) -> None:
    provider.script(replies.text("Blue."))
    done = attempt("Which colour?", "--kill")
    assert "The answer was whole before the kill, and is kept" in done.stderr
    assert "[ASSISTANT] Blue." in done.stdout
    assert len(provider.chats) == 1


def test_interrupted_answer_is_shown_and_saved(
    home: Home, environment: dict[str, str], provider: Provider
) -> None:
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("It begins\n"), hold))
    with subprocess.Popen(
        words_of("Tell me"),
        cwd=home.workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as asking:
        assert asking.stdout
        assert "It begins\n" in iter(asking.stdout.readline, "")
        asking.send_signal(signal.SIGINT)
        said = asking.stdout.read()
        hold.release()
    assert "[ASSISTANT] It begins" in said
    assert f"Saved in {home.session_files()[0]}" in said


@pytest.mark.parametrize(
    ("words", "reason"),
    [((), "bad weather"), (("--file", "nowhere"), "There is no file 'nowhere'")],
)
def test_failure_is_one_sentence(
    attempt: Try, provider: Provider, words: Sequence[str], reason: str
) -> None:
    provider.otherwise(lambda request: replies.error(400, "bad weather"))
    done = attempt("hello", *words)
    assert done.returncode
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_conversation_is_that_of_tiro_chat(
    chat: Chat, environment: dict[str, str], provider: Provider, home: Home
) -> None:
    """In a terminal; at its end stands a command that works here, where no `tiro` is found."""
    home.write("notes.txt", "xylophone")
    home.write_config(model="fake/another")
    provider.script(replies.text("A xylophone."))
    chat.run(shlex.join(words_of("--file", "notes.txt")), environment)
    chat.wait_for(f"answers with fake/{MODEL}. /help lists")
    chat.ask("what is it", "A xylophone.")
    chat.say("/quit")
    assert chat.exit_code() == 0
    screen = chat.screen().replace("\n", "")  # the command is longer than a line
    assert f"To see it again: TIRO_CONFIG_DIR={home.config_dir} {home.root}" in screen
    assert "/bin/tiro sessions show latest" in screen
    assert "xylophone" in str(provider.last.messages), "the file went along"
    assert len(home.session_files()) == 1


def test_environment_that_cannot_be_made_is_told(home: Home, tmp_path: Path) -> None:
    no_directory = tmp_path / "file"
    no_directory.touch()
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "hello"],
        env={**home.environment(), "XDG_CACHE_HOME": str(no_directory)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert f"-m venv {no_directory}" in done.stderr
    assert "Not a directory" in done.stderr


def test_help_needs_nothing_but_python() -> None:
    """With -S and -I there is no site package, ours or another's."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "python3 server/try.py" in done.stdout
