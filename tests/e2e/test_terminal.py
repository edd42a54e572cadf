"""What a person in a terminal sees that a pipe does not: headings, one line that changes."""

import fcntl
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e import replies
from tests.e2e.command import Tiro
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold
from tests.e2e.tmux import Tmux
from tests.e2e.warm import Forked, WarmProcess
from tests.sizes import PATIENCE

CLEAR = "\r\x1b[K"
COLUMNS = 80


InTerminal = Callable[..., list[str]]


@pytest.fixture
def in_terminal(home: Home, warmth: WarmProcess | None) -> InTerminal:
    """The lines as a command writes them to a terminal; `watch` sees all that is there yet."""

    def run(*words: str, watch: Callable[[str], None] = lambda written: None) -> list[str]:
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        command = begin(home, words, theirs, warmth)
        os.close(theirs)
        written = b""
        while data := _read(ours):
            written += data
            watch(written.decode("utf-8", "replace"))
        command.wait(PATIENCE)
        os.close(ours)
        return written.decode().replace("\r\n", "\n").removesuffix("\n").split("\n")

    return run


def begin(
    home: Home, words: Sequence[str], terminal: int, warm: WarmProcess | None
) -> Forked | subprocess.Popen[bytes]:
    """Start a command that writes to this terminal and is given nothing."""
    env, cwd = home.environment(), home.workspace
    with open(os.devnull, "rb") as nothing:
        if warm is not None:
            return Forked(warm.begin(words, env, cwd, (nothing.fileno(), terminal, terminal)))
        return subprocess.Popen(
            [sys.executable, "-m", "tiro", *words],
            cwd=cwd,
            env=env,
            stdin=nothing,
            stdout=terminal,
            stderr=terminal,
        )


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the last one who could write has closed it
        return b""


def shown(line: str) -> str:
    """What is left of a line after all that was taken back."""
    return line.rpartition(CLEAR)[2]


@pytest.fixture
def terminal(home: Home) -> Iterator[Tmux]:
    one = Tmux(home)
    yield one
    one.close()


def test_delete_for_good_asks_and_means_no_by_default(
    terminal: Tmux, home: Home, tiro: Tiro, provider: Provider
) -> None:
    tiro("ask", "Which colour?")
    (saved,) = home.session_files()
    delete = ["-m", "tiro", "sessions", "delete", "--for-good"]
    command = shlex.join([sys.executable, *delete, saved.stem])
    terminal.run(f"{command}; echo first $?; {command}")
    screen = terminal.wait_for("Delete for good? Nothing brings it back. [y/N]")
    assert f"{saved.stem}  2 messages  Which colour?" in screen
    terminal.keys("Enter")
    terminal.wait_for("Nothing was deleted\nfirst 1")
    assert saved.exists()
    terminal.wait_until(lambda screen: screen.count("[y/N]") == 2, "the second question")
    terminal.keys("y", "Enter")
    assert terminal.exit_code() == 0
    assert f"{saved.stem} is deleted for good" in terminal.screen()
    assert not saved.exists()


def test_permission_is_asked_with_its_scope_and_ctrl_c_is_no(
    terminal: Tmux, home: Home, provider: Provider
) -> None:
    """P8: what "always" would store stands there before the key is pressed."""
    home.write("ask-first.txt", "xylophone")
    provider.script(replies.tools(("c1", "read_file", {"path": "ask-first.txt"})))
    terminal.run(shlex.join([sys.executable, "-m", "tiro", "ask", "Read it"]))
    screen = terminal.wait_for("[N]o:")
    assert "[a]lways adds to this session: read: ask-first.txt allow (in the workspace)" in screen
    terminal.keys("C-c")
    assert terminal.exit_code() == 130
    assert len(provider.chats) == 1


def test_progress_changes_in_place_and_goes_before_the_answer(
    in_terminal: InTerminal, provider: Provider
) -> None:
    hold = Hold()
    reading = [
        replies.chunk(prompt_progress={"total": 100, "processed": done}) for done in (10, 60, 100)
    ]
    answer = (replies.text_chunk("Bl"), reading[2], replies.text_chunk("ue."))
    provider.script(replies.stream(*reading[:2], hold, *answer))

    def go_on(written: str) -> None:
        if "60 %" in written:
            hold.release()

    (line,) = in_terminal("ask", "Which colour?", watch=go_on)
    assert shown(line) == "Blue."
    assert f"{CLEAR}· Reading the prompt, 10 %" in line
    assert f"{CLEAR}· Reading the prompt, 60 %" in line


def test_a_file_that_is_copied_counts_in_one_line(in_terminal: InTerminal, tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(b"GGUF" + bytes(4_000_000))
    (line,) = in_terminal("local", "pull", f"{tmp_path}/mine.gguf")
    assert shown(line) == "mine is ready"
    assert f"{CLEAR}· Copying, 4.0 MB of 4.0 MB, 100 %" in line


def test_lists_have_headings_in_a_terminal_only(
    in_terminal: InTerminal, provider: Provider
) -> None:
    provider.script(replies.text("Blue."))
    in_terminal("ask", "Which colour?")
    heading, row = in_terminal("sessions", "list")
    assert heading.split() == ["ID", "SAVED", "(UTC)", "MESSAGES", "TITLE"]
    assert heading.index("SAVED") == row.index(" 20") + 1
    assert heading.index("TITLE") == row.index("Which")
    heading, *rows = in_terminal("local", "list")
    assert heading.split() == ["NAME", "SIZE", "STATE", "ABOUT"]
    assert rows[0].startswith("* smollm2-135m")
    assert heading.index("ABOUT") == rows[0].index("SmolLM2")


def test_escape_sequences_of_a_model_do_not_act(
    in_terminal: InTerminal, provider: Provider
) -> None:
    """In a pipe the answer is what the model said, in a terminal it is harmless."""
    provider.script(
        replies.tools(("c1", "read_file", {"path": "\x1b[2Jx"}), before="Look. "),
        replies.text("Red: \x1b[31m."),
    )
    lines = in_terminal("ask", "Which colour?")
    assert lines[-1] == "Red: ␛[31m."
    assert "\x1b[2J" not in "".join(lines)


def test_saved_sessions_do_not_act_and_forge_no_row(in_terminal: InTerminal, home: Home) -> None:
    """A title and a text with OSC 52 (the clipboard), OSC 0, CSI, C1 and line breaks."""
    acting = "a\x1b]52;c;eA==\x07\x1b]0;t\x07\x1b[2J\x9b2J\u202eb"
    home.sessions.mkdir(parents=True)
    messages = [{"role": "user", "content": f"{acting}\nsecond line"}]
    made = {"title": f"{acting}\nforged row\r\nagain", "messages": messages}
    source = home.workspace / "in\x1b[2J.json"
    source.write_text(json.dumps(made))
    imported = in_terminal("sessions", "import", str(source))
    listed = in_terminal("sessions", "list")
    assert len(listed) == 2
    commands = [["show", "latest"], ["show", "latest", "--json"], ["show", "latest", "--summary"]]
    commands += [["export", "latest"], ["export", "latest", "--format", "json"]]
    commands += [["list", "--json"], ["delete", "no\x1b[2J"]]
    seen = [in_terminal("sessions", *words) for words in commands]
    assert "␛]52;c;eA==" in "".join(seen[0])
    for lines in (imported, listed, *seen):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", "".join(lines))


def test_doctor_keeps_a_file_name_on_its_line(in_terminal: InTerminal, home: Home) -> None:
    home.sessions.mkdir(parents=True)
    (home.sessions / "half\nModel forged\x1b[2J.json").write_text("{")
    lines = in_terminal("doctor")
    assert not any(line.startswith("Model forged") for line in lines)
    assert "\x1b[2J" not in "".join(lines)
