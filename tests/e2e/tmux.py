"""A real terminal: a program in tmux on a socket of its own, keys pressed, the screen read."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.e2e.home import Home
from tests.processes import only_child
from tests.sizes import PATIENCE

COLUMNS, ROWS = 100, 30
TIRO_CHAT = [sys.executable, "-m", "tiro", "chat"]


class Tmux:
    """One program in a terminal. Waits poll the screen."""

    def __init__(self, home: Home) -> None:
        assert shutil.which("tmux"), "install tmux: apt-get install tmux"
        self.home = home
        # A socket's path may have 100 characters.
        self._directory = Path(tempfile.mkdtemp(prefix="tiro-"))

    def tmux(self, *arguments: str) -> str:
        """Run a tmux command on our socket."""
        done = subprocess.run(
            ["tmux", "-S", str(self._directory / "s"), "-f", "/dev/null", *arguments],
            capture_output=True,
            check=True,
            text=True,
            timeout=PATIENCE,
            env={**self.home.environment(), "LC_ALL": "C.UTF-8", "TERM": "screen-256color"},
        )
        return done.stdout

    def run(self, command: str, env: Mapping[str, str] | None = None) -> None:
        """Start the program; what it left on the screen stays when it ends."""
        size = ["-x", str(COLUMNS), "-y", str(ROWS), "-c", str(self.home.workspace)]
        given = [word for item in (env or {}).items() for word in ("-e", "=".join(item))]
        stay = "echo exit code $?; stty -isig; exec cat"  # a late Ctrl-C ends nothing
        self.tmux("new-session", "-d", *size, *given, "-s", "e", f"{command}; {stay}")

    def close(self) -> None:
        """End our tmux server, and with it the program."""
        subprocess.run(
            ["tmux", "-S", str(self._directory / "s"), "kill-server"],
            capture_output=True,
            check=False,
        )
        shutil.rmtree(self._directory)

    def pid(self) -> int:
        """The process id of the program, the only child of the terminal's shell."""
        return only_child(int(self.tmux("display-message", "-p", "-t", "e", "#{pane_pid}")))

    def exit_code(self) -> int:
        """Wait for the program's end and give its exit code."""
        found = re.compile(r"^exit code (\d+)$", re.MULTILINE)
        screen = self.wait_until(lambda screen: bool(found.search(screen)), "the exit code")
        return int(found.findall(screen)[-1])

    def keys(self, *keys: str) -> None:
        """Press keys by their tmux names."""
        self.tmux("send-keys", "-t", "e", *keys)

    def type(self, text: str) -> None:
        """Type text as it is."""
        self.tmux("send-keys", "-t", "e", "-l", "--", text)

    def screen(self) -> str:
        """What the terminal shows."""
        return self.tmux("capture-pane", "-p", "-t", "e")

    def wait_until(self, shows: Callable[[str], bool], what: str) -> str:
        """Wait until the screen is as wanted and give it."""
        end = time.monotonic() + PATIENCE
        while not shows(screen := self.screen()):
            assert time.monotonic() < end, f"never on the screen: {what}\n{screen}"
            time.sleep(0.05)
        return screen

    def wait_for(self, *texts: str) -> str:
        """Wait until the screen shows these texts at once."""
        return self.wait_until(lambda screen: all(text in screen for text in texts), str(texts))

    def wait_gone(self, text: str) -> str:
        """Wait until the screen no longer shows a text."""
        return self.wait_until(lambda screen: text not in screen, f"the end of {text}")


class Chat(Tmux):
    """A chat in a terminal of its own. What it wrote before the last line was said is no answer."""

    _before = ""
    """All that it had written when the last line was said."""

    def start(self, *words: str, ready: str = "/help lists", **env: str) -> None:
        """Start it and wait for its greeting."""
        self.run(shlex.join([*TIRO_CHAT, *words]), env)
        self.wait_for(ready)

    def keys(self, *keys: str) -> None:
        """Press keys by their tmux names; at a question not before it can be answered."""
        self._be_heard()
        super().keys(*keys)

    def type(self, text: str) -> None:
        """Type text as it is; at a question not before it can be answered."""
        self._be_heard()
        super().type(text)

    def say(self, text: str) -> None:
        """Type a line."""
        self._before = self.screen()
        self.type(text)
        self.keys("Enter")

    def ask(self, text: str, answer: str) -> str:
        """Type a line and wait for what answers it and for the next prompt."""
        assert answer not in text
        self.say(text)
        self.wait_for(answer)
        return self.wait_for_prompt()

    def wait_for(self, *texts: str) -> str:
        """Wait until these texts were written since the last line was said."""

        def are_new(screen: str) -> bool:
            before = self._before if self._goes_on(screen) else ""
            return all(screen.count(text) > before.count(text) for text in texts)

        return self.wait_until(are_new, f"{texts} anew")

    def wait_for_prompt(self) -> str:
        """Wait until the next line can be typed."""

        def is_next(screen: str) -> bool:
            return screen != self._before and screen.rstrip().endswith("\n>")

        return self.wait_until(is_next, "the prompt")

    def screen(self) -> str:
        """What the terminal shows, below all that has left it at the top."""
        return self.tmux("capture-pane", "-p", "-S", "-", "-t", "e")

    def _be_heard(self) -> None:
        """What is typed before a question is asked does not answer it: no person is so fast."""
        end = time.monotonic() + PATIENCE
        while self.screen().rstrip().endswith((":", "]")) and not self._echoes():
            assert time.monotonic() < end, "the question takes no answer"
            time.sleep(0.01)

    def _echoes(self) -> bool:
        """Whether the terminal itself shows what is typed, as it does at a question."""
        tty = os.open(
            self.tmux("display-message", "-p", "-t", "e", "#{pane_tty}").strip(), os.O_NOCTTY
        )
        try:
            return bool(termios.tcgetattr(tty)[3] & termios.ECHO)
        finally:
            os.close(tty)

    def _goes_on(self, screen: str) -> bool:
        """Whether nothing was cleared since the last line was said."""
        return screen.startswith(self._before.partition("\n")[0])

    def server_pid(self) -> int:
        """The process id of the server, the chat's only child."""
        return only_child(self.pid())
