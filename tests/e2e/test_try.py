"""`server/try.py`, the first thing a newcomer runs: its talk with a real server."""

import contextlib
import fcntl
import importlib.util
import io
import os
import select
import subprocess
import sys
import termios
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.e2e import replies
from tests.e2e.home import Home
from tests.e2e.provider import MODEL, Provider
from tests.e2e.replies import Hold, Reply
from tests.sizes import PATIENCE

SCRIPT = Path(__file__).resolve().parents[2] / "server" / "try.py"


@cache
def load() -> ModuleType:
    """The script as a module; its file name is no name that can be imported."""
    spec = importlib.util.spec_from_file_location("try_tiro", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def program() -> ModuleType:
    """The script."""
    return load()


@pytest.fixture
def talk(program: ModuleType, home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A talk with a server that asks the scripted provider."""
    for name, value in home.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(home.workspace)
    talk = program.Talk(Path(sys.executable), str(home.config_dir), f"fake/{MODEL}")
    yield talk
    talk.server.stop()


def converse(program: ModuleType, talk: Any, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """Type these lines, then Ctrl-D."""
    typed = iter(lines)

    def read(prompt: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)
    assert program.converse(talk, []) == 0


def test_one_question_shows_answer_session_and_file(
    program: ModuleType,
    talk: Any,
    provider: Provider,
    home: Home,
    capsys: pytest.CaptureFixture[str],
) -> None:
    notes = home.write("notes.txt", "xylophone")
    provider.script(replies.text("It is ", "a xylophone."))
    assert program.once(talk, "What is it?", [str(notes)], kill=False) == 0
    said = capsys.readouterr().out
    (saved,) = home.session_files()
    assert "It is a xylophone.\n" in said
    assert "Session Summary:\n\n[USER] What is it?" in said
    assert said.endswith(f"Saved in {saved}\n")
    assert "xylophone" in str(provider.chats[0].messages)


def test_killed_server_loses_nothing_acknowledged(
    program: ModuleType, talk: Any, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    """kill -9 in mid-answer: the question is asked again, and what was lost is said."""
    hold = Hold()
    provider.script(
        replies.stream(replies.text_chunk("word " * 20), hold), replies.text("Going on.")
    )
    first = talk.server
    assert program.once(talk, "A long story", [], kill=True) == 0
    hold.release()
    said = capsys.readouterr().out
    assert talk.server is not first
    assert "[kill -9: the server is gone" in said
    assert "[USER] A long story" in said
    assert [message["content"] for message in provider.last.messages] == ["A long story"]
    assert "the piece of its answer is lost. It is asked again.]\n\nGoing on." in said
    assert said.count("[USER] A long story") == 2, "as it was loaded, and at the end"


def test_commands_of_the_conversation(
    program: ModuleType,
    talk: Any,
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    converse(
        program, talk, monkeypatch, "/show", "hello", "/clear", "/show", "/load", "/fly", "/quit"
    )
    said = capsys.readouterr().out
    (saved,) = home.session_files()
    assert said.count("The session is empty.") == 2
    assert f"2 messages put away in {saved}" in said
    assert f"Loaded {saved}: 2 messages" in said
    assert said.count("/quit") == 2, "the help comes at the start and after an unknown command"
    assert said.endswith(f"Saved in {saved}\n")


def test_missing_file_and_failing_model_do_not_end_the_conversation(
    program: ModuleType,
    talk: Any,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    provider.script(replies.error(400, "bad weather"), replies.text("Better."))
    converse(program, talk, monkeypatch, "/file /nowhere", "look", "and?", "again?")
    said = capsys.readouterr()
    assert "There is no file '/nowhere'" in said.err
    assert "bad weather" in said.err
    assert "Better." in said.out
    assert len(provider.chats) == 3, "the question after a wrong name is asked"


def test_file_that_is_a_directory_is_called_one(
    program: ModuleType, talk: Any, home: Home, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    converse(program, talk, monkeypatch, f"/file {home.workspace}", "look")
    assert f"'{home.workspace}' is a directory" in capfd.readouterr().err


def test_no_count_where_no_provider_told_one(
    program: ModuleType, talk: Any, provider: Provider, capfd: Any
) -> None:
    """A cancelled answer has had tokens, and nobody knows how many."""
    provider.script(Reply([*replies.text("Blue.").steps[:-2], replies.DONE]))
    assert program.once(talk, "Which colour?", [], kill=False) == 0
    assert "[end_turn]\n" in capfd.readouterr().err


@given(st.lists(st.text("ab \n", max_size=9)), st.integers(3, 20))
def test_answer_is_broken_between_words(pieces: list[str], columns: int) -> None:
    """Line breaks take the place of blanks, and no word that fits in a line is cut."""
    program = load()
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(program, "width", lambda stream: columns)
        answer = program.Answer()
        for piece in pieces:
            answer.write(piece)
        answer.end()
    assert out.getvalue().split() == "".join(pieces).split()
    for line in out.getvalue().split("\n"):
        assert len(line) <= columns or not line.strip() or " " not in line.strip()


def test_commands_that_are_told_work_here(program: ModuleType, talk: Any) -> None:
    """`tiro` is in the private environment and not on the PATH."""
    told = talk.as_typed_here("better is: tiro local pull qwen2.5-coder-1.5b")
    assert (
        told == f"better is: {Path(sys.executable).with_name('tiro')} local pull qwen2.5-coder-1.5b"
    )


TALK = """
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("try_tiro", sys.argv[1])
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
talk = program.Talk(pathlib.Path(sys.executable), sys.argv[2], sys.argv[3])
program.converse(talk, [])
talk.server.stop()
"""


def test_line_typed_during_an_answer_outlives_ctrl_c(home: Home, provider: Provider) -> None:
    """A terminal throws away what waits when Ctrl-C is pressed; it is the next question here."""
    hold = Hold()
    provider.script(
        replies.stream(replies.text_chunk("First answer "), hold), replies.text("Second answer.")
    )
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", TALK, SCRIPT, home.config_dir, f"fake/{MODEL}"],
        cwd=home.workspace,
        env={**home.environment(), "TERM": "dumb"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as talking:
        os.close(theirs)
        for awaited, typed in [
            ("> ", "one\n"),
            ("First answer", "two\n\x03"),
            ("[cancelled]", ""),
            ("Second answer.", "/quit\n"),
            ("Saved in", ""),
        ]:
            read_until(ours, awaited)
            os.write(ours, typed.encode())
        hold.release()
        assert talking.wait(PATIENCE) == 0
    os.close(ours)
    assert [chat.messages[-1]["content"] for chat in provider.chats] == ["one", "two"]


def read_until(terminal: int, awaited: str) -> None:
    """Read what a terminal shows until that is there."""
    seen = b""
    while awaited.encode() not in seen:
        assert select.select([terminal], [], [], 30)[0], f"{awaited!r} never came after {seen!r}"
        seen += os.read(terminal, 1)


def test_help_needs_nothing_but_python() -> None:
    """With -S and -I there is no site package, ours or another's."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "python3 server/try.py" in done.stdout
