"""A person in a real terminal Emacs, before the real server and the scripted provider.

Emacs runs in tmux on a socket of its own; keys go in as typed, and what the screen shows is what is
asserted. Waits poll the screen.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e import replies
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold, Pause
from tests.e2e.talk import ask, until
from tests.e2e.tmux import Tmux
from tests.processes import wait_over
from tests.sizes import PATIENCE

CLIENT = Path(__file__).resolve().parents[2] / "editor-clients" / "emacs"

INIT = """
(setq native-comp-deferred-compilation nil)
(setq inhibit-startup-screen t ring-bell-function #'ignore make-backup-files nil)
(add-to-list 'load-path %s)
(require 'tiro)
(global-set-key (kbd "C-c o") 'tiro-command-map)
(setq tiro-server-command '(%s "-m" "tiro" "serve"))
(defvar presses 0)
(global-set-key (kbd "<f9>")
  (lambda () (interactive)
    (let ((server (tiro-rpc-process (tiro-session-connection tiro-session))))
      (write-region (format "%%s %%s" (process-id server) (process-status server))
                    nil %s nil 'silent)
      (message "noted %%d" (setq presses (1+ presses))))))
(find-file %s)
"""

COMPILE = """
(when (and (fboundp 'native-comp-available-p) (native-comp-available-p))
  (setq native-comp-eln-load-path (list %s))
  (native-compile (locate-library "term/xterm.el")))
"""


def lisp(value: str | Path) -> str:
    """Give a Lisp string."""
    return json.dumps(str(value), ensure_ascii=False)


class Terminal(Tmux):
    """An Emacs in a terminal of its own."""

    def __init__(self, home: Home, compiled: Path) -> None:
        super().__init__(home)
        (home.root / ".emacs.d").mkdir()
        (home.root / ".emacs.d" / "eln-cache").symlink_to(compiled)
        self._server_file = home.root / "server"
        self._presses = 0
        file = home.write("notes.txt", "first line\nsecond line\n")
        self.init = home.root / "init.el"
        given = (CLIENT, sys.executable, self._server_file, file)
        self.init.write_text(INIT % tuple(lisp(value) for value in given))
        (home.workspace / ".git").mkdir()

    def start(self) -> None:
        """Start Emacs and wait for its first file."""
        self._presses = 0
        self.run(f"emacs -Q -nw -l {self.init}")
        self.wait_for("second line")

    def open_chat(self) -> None:
        """M-x tiro, alone on the screen."""
        self.keys("M-x")
        self.type("tiro")
        self.keys("Enter")
        self.wait_for("Type a question")
        self.keys("C-x", "1")

    def ask(self, prompt: str) -> None:
        """Type a prompt in the chat when the last turn is over, and send it."""
        self.wait_for("Tiro:idle")
        self.type(prompt)
        self.wait_for(f"> {prompt}")
        self.keys("Enter")
        self.wait_gone(f"> {prompt}")  # a long answer may have moved it off the screen by now

    def server_pid(self) -> int:
        """The process id of the Tiro server, as Emacs knows it."""
        return int(self._server()[0])

    def wait_until_server_runs(self) -> None:
        """Wait until Emacs knows that it does: a stopped one is sent nothing."""
        until(lambda: self._server()[1] == "run")

    def _server(self) -> list[str]:
        self.drawn()
        return self._server_file.read_text().split()

    def drawn(self) -> str:
        """The screen when Emacs has done what all keys before ask for; this line is drawn last."""
        self._presses += 1
        self.keys("F9")
        return self.wait_for(f"noted {self._presses}")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Emacs' own library for this terminal, compiled: each Emacs in a new home would do it anew."""
    assert shutil.which("emacs"), "install emacs: apt-get install emacs-nox"
    folder = tmp_path_factory.mktemp("compiled")
    compiling = ["emacs", "-Q", "--batch", "--eval", COMPILE % lisp(folder)]
    subprocess.run(compiling, check=True, capture_output=True, timeout=PATIENCE)
    return folder


@pytest.fixture
def terminal(home: Home, compiled: Path) -> Iterator[Terminal]:
    one = Terminal(home, compiled)
    one.start()
    yield one
    one.close()


def slow_words(count: int, seconds: float = 0.05) -> replies.Reply:
    """An answer that takes its time, ten words a line."""
    steps: list[replies.Step] = []
    for n in range(count):
        steps += [replies.text_chunk(f"word{n} " + "\n" * (n % 10 == 9)), Pause(seconds)]
    return replies.stream(*steps)


def test_b64_answer_streams_while_the_next_prompt_is_typed(
    terminal: Terminal, provider: Provider
) -> None:
    """B64: the answer grows above, typed text and the prompt stay where they are."""
    hold = Hold()
    provider.script(
        replies.stream(
            replies.text_chunk("The first half, 日本,"),
            hold,
            replies.text_chunk(" and the second."),
        )
    )
    terminal.open_chat()
    terminal.ask("tell me")
    assert "second" not in terminal.wait_for("The first half", "Tiro:busy")
    terminal.type("half typed")
    terminal.wait_for("> half typed")
    hold.release()
    terminal.wait_for("and the second.", "> half typed", "Tiro:idle")
    terminal.type(" and more")
    terminal.wait_for("> half typed and more")


def test_b64_reading_back_is_not_disturbed(terminal: Terminal, provider: Provider) -> None:
    """B64 (i): a window scrolled up stays where it is while text arrives below."""
    hold = Hold()
    lines = "".join(f"line {n}\n" for n in range(100))
    provider.script(
        replies.stream(replies.text_chunk(lines), hold, replies.text_chunk("more\n" * 60))
    )
    terminal.open_chat()
    terminal.ask("long")
    terminal.wait_for("line 99")
    terminal.keys("M-v")
    terminal.wait_gone("line 99")
    before = terminal.drawn().splitlines()[2:20]
    hold.release()
    terminal.wait_for("Tiro:idle")
    assert terminal.drawn().splitlines()[2:20] == before
    terminal.keys("M->")
    terminal.wait_for("more")


def test_refused_summary_is_told_beside_what_is_typed(
    terminal: Terminal, provider: Provider, home: Home
) -> None:
    """Issue of the memory, 5: it comes when it is known, and the draft stays."""
    home.write_config(
        providers={"fake": home.fake()},
        session={"max_history": 2, "summary": {"enabled": True}},
    )
    hold = Hold()
    refused = replies.Reply([replies.ROLE, hold, *replies.text("").steps[1:]])
    provider.script(replies.text("One."), replies.text("Two."), refused)
    terminal.open_chat()
    terminal.ask("first")
    terminal.wait_for("One.")
    terminal.ask("second")
    hold.wait()
    terminal.type("half typed")
    terminal.wait_for("> half typed")
    hold.release()
    screen = terminal.wait_for("Two.", "The summary cannot be used", "> half typed")
    assert screen.index("Two.") < screen.index("The summary cannot be used")


def test_ask_from_a_file_about_the_region(terminal: Terminal, provider: Provider) -> None:
    """A question from the minibuffer with the region; the chat shows beside the file."""
    provider.script(replies.text("It counts."))
    terminal.keys("C-Space")
    terminal.keys("C-n")
    terminal.keys("C-c", "o", "r")
    terminal.wait_for("Ask Tiro about notes.txt:1:")
    terminal.type("what is it")
    terminal.keys("Enter")
    terminal.wait_for("It counts.", "+ notes.txt:1", "second line")  # the file is still seen
    assert "first line" in str(provider.last.body)


def test_tools_and_the_session(terminal: Terminal, provider: Provider) -> None:
    """A tool's line, show-session, save, clear, and load of what was cleared."""
    provider.script(
        replies.tools(("c1", "read_file", {"path": "notes.txt"}), before="I look."),
        replies.text("Two lines."),
    )
    terminal.open_chat()
    terminal.ask("count the lines")
    terminal.wait_for("Two lines.", "* read_file notes.txt: done", "Tiro:idle")
    terminal.keys("C-c", "o", "s")
    shown = ("Session Summary:", "[USER] count the lines", "[TOOL] tool_use: read_file")
    terminal.wait_for(*shown, "[ASSISTANT] Two lines.")
    terminal.keys("q")
    terminal.wait_gone("Session Summary:")
    terminal.keys("C-c", "o", "S")
    terminal.wait_for("Tiro: saved ")
    terminal.keys("C-c", "o", "c")
    terminal.wait_for("cleared 4 messages; saved as")
    terminal.wait_gone("Two lines.")
    terminal.keys("C-c", "o", "l")
    terminal.wait_for("Load session (default count the lines")
    terminal.keys("?")
    terminal.wait_for("*Completions*", "4 messages")
    terminal.keys("Enter")
    terminal.wait_for("Two lines.", "You: count the lines", "* read_file notes.txt: done")


def test_preview_of_a_resize_from_the_menu(
    terminal: Terminal, provider: Provider, home: Home
) -> None:
    """All commands in a menu; the preview is edited, applied, shown and taken back."""
    home.write_config(
        providers={"fake": home.fake()}, session={"resize": {"max_keep_messages_count": 2}}
    )
    provider.script(replies.text("First answer."), replies.text("Second answer."))
    terminal.open_chat()
    terminal.ask("one")
    terminal.wait_for("First answer.", "Tiro:idle")
    terminal.ask("two")
    terminal.wait_for("Second answer.", "Tiro:idle")
    terminal.keys("C-c", "o", "?")
    terminal.wait_for("Preview a resize", "Tiro: build · fake", "Ask about the region")
    terminal.keys("M")
    terminal.wait_for("Summary of what left the window", "C-c C-c stores what was changed")
    terminal.type("They greeted.")
    terminal.keys("C-c", "C-c")
    terminal.wait_for("stored the summary")
    terminal.keys("C-u", "C-c", "o", "v")
    terminal.wait_for("would leave the window", "They greeted.")
    terminal.keys("C-c", "C-k")
    terminal.wait_for("dropped; nothing was changed")
    terminal.wait_gone("They greeted.")


def test_cancel_in_mid_answer(terminal: Terminal, provider: Provider) -> None:
    """B43: C-c C-k ends the answer, and the next question is answered at once."""
    provider.script(slow_words(2000), replies.text("Here I am."))
    terminal.open_chat()
    terminal.ask("go on for ever")
    terminal.wait_for("word5 ")
    terminal.keys("C-c", "C-k")
    terminal.wait_for("[cancelled]", "Tiro:idle")
    assert provider.chats[0].closed_by_client()
    terminal.ask("still there")
    terminal.wait_for("Here I am.")


def test_killed_server_goes_on(terminal: Terminal, provider: Provider) -> None:
    """B05: kill -9 in mid-answer; one line says so, the next question goes on with the session."""
    provider.script(
        replies.text("I will remember."), slow_words(2000), replies.text("Yes, it was blue.")
    )
    terminal.open_chat()
    terminal.ask("my colour is blue")
    terminal.wait_for("I will remember.")
    terminal.ask("tell me more")
    terminal.wait_for("word5 ")
    os.kill(terminal.server_pid(), signal.SIGKILL)
    terminal.wait_for("The server ended (signal 9)", "Tiro:stopped")
    terminal.type("what colour")
    terminal.keys("Enter")
    terminal.wait_for("Yes, it was blue.", "You: my colour is blue", "You: tell me more")
    assert "my colour is blue" in str(provider.last.body)


def test_killed_emacs_finds_the_session_again(terminal: Terminal, provider: Provider) -> None:
    """B05: kill -9 of Emacs in mid-answer; the next one offers the session, and all is there."""
    provider.script(replies.text("I will remember."), slow_words(2000))
    terminal.open_chat()
    terminal.ask("my colour is blue")
    terminal.wait_for("I will remember.")
    pid = terminal.server_pid()
    terminal.ask("tell me more")
    terminal.wait_for("word5 ")
    os.kill(terminal.pid(), signal.SIGKILL)
    wait_over(pid)
    with suppress(subprocess.CalledProcessError):  # it may have ended by itself
        terminal.tmux("kill-server")
    terminal.start()
    terminal.open_chat()
    terminal.wait_for("[Go on with “my colour is blue”")
    terminal.keys("BTab", "Enter")
    terminal.wait_for("You: tell me more", "I will remember.")


def test_edit_is_allowed_and_undone(terminal: Terminal, provider: Provider) -> None:
    """The diff is seen, one key allows it, the buffer shows it, and C-c o u takes it back."""
    given = {"path": "notes.txt", "old_text": "first", "new_text": "changed"}
    provider.script(
        replies.tools(("c1", "read_file", {"path": "notes.txt"})),
        replies.tools(("c2", "edit_file", given)),
        replies.text("Done so."),
    )
    terminal.keys("C-c", "o", "o")
    terminal.wait_for("Type a question")
    terminal.ask("change it")
    terminal.wait_for("[y Allow once]", "+changed line", "Tiro:approve?")
    terminal.keys("C-c", "o", "j", "y")
    terminal.wait_for("Done so.", "-> allowed once")
    terminal.wait_until(lambda shown: "\nchanged line" in shown, "the change in the buffer")
    terminal.keys("C-c", "o", "u")
    terminal.wait_for("Took back the changes of")
    terminal.wait_until(lambda shown: "\nfirst line" in shown, "the text of before")


def test_questions_are_answered_without_going_there(terminal: Terminal, provider: Provider) -> None:
    """The question says how; each is seen whole with its diff, the answer too at the end.

    Once from the prompt, once from the question itself; what is typed in between allows nothing.
    """
    texts = ["".join(f"{word} {n}\n" for n in range(12)) for word in ("alpha", "beta")]
    provider.script(
        replies.tools(("c1", "write_file", {"path": "a.txt", "content": texts[0]})),
        replies.tools(("c2", "write_file", {"path": "b.txt", "content": texts[1]})),
        replies.text("line\n" * 20, "All is written."),
    )
    terminal.open_chat()
    terminal.ask("write both")
    asked = ("From here: C-c o y allow", "asks to use write_file", "[y Allow once]")
    terminal.wait_for(*asked, "+alpha 0", "+alpha 11")
    terminal.type("y")
    terminal.wait_for("> y")
    terminal.keys("Enter")
    terminal.wait_for("Tiro waits for your answer: C-c o y allows")
    terminal.keys("C-c", "o", "j", "y")
    terminal.wait_for(*asked, "+beta 0", "+beta 11", "> y")
    terminal.keys("C-c", "o", "y")
    terminal.wait_for("All is written.", "> y")
    assert (terminal.home.workspace / "b.txt").read_text() == texts[1]


def test_hung_server_leaves_emacs_free(terminal: Terminal, provider: Provider) -> None:
    """A server that does not answer: C-g works, typing works, and all is well when it wakes."""
    provider.script(replies.text("Here I am."))
    terminal.open_chat()
    pid = terminal.server_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        terminal.keys("C-c", "o", "s")
        terminal.keys("C-g")
        terminal.wait_for("Quit")
        terminal.type("anyone there")
        terminal.wait_for("> anyone there")
    finally:
        os.kill(pid, signal.SIGCONT)
    terminal.wait_until_server_runs()
    terminal.keys("Enter")
    terminal.wait_for("Here I am.")
    terminal.keys("C-c", "o", "s")
    terminal.wait_for("[USER] anyone there")


def test_another_editor_in_turn(terminal: Terminal, provider: Provider, start: StartServer) -> None:
    """B11: asked in Emacs, gone on elsewhere, gone on in Emacs: each sees what the other said."""
    provider.script(
        replies.text("First answer."), replies.text("Second answer."), replies.text("Third answer.")
    )
    terminal.open_chat()
    terminal.ask("one")
    terminal.wait_for("First answer.", "Tiro:idle")  # until then the answer is not stored
    other = start()
    other.request("tiro/session/load", {"latest": True})
    ask(other, "two")
    terminal.type("three")
    terminal.keys("Enter")
    screen = terminal.wait_for("First answer.", "Second answer.", "Third answer.")
    places = [screen.index(text) for text in ("You: one", "You: two", "You: three")]
    assert places == sorted(places)
    assert "two" in str(provider.last.body)


def test_leaving_emacs_asks_nothing_and_leaves_no_server(
    terminal: Terminal, provider: Provider
) -> None:
    """B42: C-x C-c in mid-answer; Emacs asks nothing and the server is gone soon after."""
    provider.script(slow_words(2000))
    terminal.open_chat()
    terminal.ask("go on")
    terminal.wait_for("word5 ")
    pid = terminal.server_pid()
    terminal.keys("C-x", "C-c")
    wait_over(pid)


@pytest.mark.parametrize("what", ["folder", "tar"])
def test_installs_as_a_package(home: Home, what: str) -> None:
    """M-x package-install-file in an empty home: autoloads are there, no archive is asked."""
    source = CLIENT if what == "folder" else Path(batch(home, "-l", CLIENT / "test" / "build.el"))
    setup = f"""
    (progn (setq package-archives nil)
           (package-initialize)
           (package-install-file {lisp(source)})
           (require 'cl-lib)
           (princ (list (commandp 'tiro-attach) (commandp 'tiro-menu)
                        (cl-loop for name being the symbols
                                 for function = (symbol-function name)
                                 when (and (autoloadp function)
                                           (string-prefix-p "tiro" (symbol-name name)))
                                 always (equal "tiro" (cadr function)))
                        (keymapp 'tiro-command-map))))
    """
    assert batch(home, "-l", "package", "--eval", setup).endswith("(t t t t)")
    compiled = list((home.root / ".emacs.d" / "elpa").glob("tiro-*/*.elc"))
    assert len(compiled) >= len(list(CLIENT.glob("*.el")))


def batch(home: Home, *arguments: str | Path) -> str:
    """What a batch Emacs prints, run in an empty home."""
    done = subprocess.run(
        ["emacs", "-Q", "--batch", *arguments],
        env=home.environment(),
        cwd=home.root,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
