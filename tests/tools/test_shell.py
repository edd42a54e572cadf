"""`run_command` with real processes: its end, its environment, its output (B50, B51)."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.processes import CAN_LOOK, is_running, parent_of, wait_noticed, wait_over
from tests.sizes import LIMITS
from tests.tools.rooms import a_workspace, put
from tiro.errors import ToolError
from tiro.session.hidden import visible
from tiro.session.secrets import KnownSecrets
from tiro.tools.shell import shell_tools
from tiro.tools.tool import ToolOutput, ToolRun

(TOOL,) = shell_tools(keys=["A_PROVIDERS_KEY", "PASSED_KEY"], allowed=["PASSED_KEY"])

pytestmark = pytest.mark.skipif(os.name != "posix", reason="commands need a POSIX system")


def a_run(root: Path, buffers: dict[Path, str] | None = None) -> ToolRun:
    return ToolRun(
        tool_use_id="c1",
        workspace=a_workspace(root, buffers=buffers),
        may_read=lambda _: True,
        on_output=lambda _: None,
        cancelled=threading.Event(),
        secrets=KnownSecrets(["s3cret-key-of-ours"]),
    )


async def use(run: ToolRun, **given: Any) -> ToolOutput:
    return await TOOL.run(given, run)


async def preview(run: ToolRun, **given: Any) -> str | None:
    assert TOOL.preview is not None
    return await TOOL.preview(given, run)


def run(root: Path, command: str, **given: Any) -> ToolOutput:
    """What the model gets."""
    return asyncio.run(use(a_run(root), command=command, **given))


def test_a_command_tells_both_streams_in_order_and_its_exit_code(tmp_path: Path) -> None:
    put(tmp_path, "sub/x.txt")
    told = run(tmp_path, "echo one; echo two >&2; echo three; exit 3")
    assert told == ToolOutput("one\ntwo\nthree\n[exit code 3]", is_error=False)
    assert run(tmp_path, "pwd").content == f"{os.path.realpath(tmp_path)}\n[exit code 0]"
    assert run(tmp_path, "ls", cwd="sub").content == "x.txt\n[exit code 0]"
    assert run(tmp_path, "printf 'no line end'").content == "no line end\n[exit code 0]"
    assert run(tmp_path, "printf 'caf\\351'").content == "café\n[exit code 0]"
    assert run(tmp_path, "kill -SEGV $$").content == "[ended by the signal SIGSEGV]"


def test_b49_a_repository_within_another_runs_nothing(tmp_path: Path) -> None:
    """A clone can bring a bare repository whose settings name programs."""
    run(tmp_path, "git init -q . && git init -q --bare lib && touch lib/k")
    for key, value in (
        ("core.bare", "false"),
        ("core.worktree", ".."),
        ("core.fsmonitor", "touch X;"),
    ):
        run(tmp_path, f"git config -f lib/config {key} {value!r}")
    for line in ("git status", "git diff --stat", "git describe --dirty"):
        run(tmp_path, line, cwd="lib")
        run(tmp_path, f"cd lib && {line}")
    assert not list(tmp_path.rglob("X"))


@pytest.mark.parametrize(
    "line",
    [
        "kill -STOP $PPID; sleep 30",
        "kill $PPID; sleep 30",
        "kill -9 $PPID; wait",
    ],
)
@pytest.mark.skipif(not CAN_LOOK, reason="needs /proc")
def test_a_command_that_turns_on_its_keeper_ends_all_the_same(tmp_path: Path, line: str) -> None:
    """And all that it has started with it."""
    told = tmp_path / "pid"
    for seconds in LIMITS:
        with contextlib.suppress(ToolError):  # that the keeper is gone, which is true
            run(tmp_path, f"sleep 321 & echo $! > pid; {line}", timeout_seconds=seconds)
        if told.exists() and told.read_text():
            break
    wait_over(int(told.read_text()))


@pytest.mark.skipif(not CAN_LOOK, reason="needs /proc")
def test_a_command_cannot_speak_for_its_keeper(tmp_path: Path) -> None:
    """Not even as root: no descriptor of the keeper can be opened and written to."""
    line = """for fd in /proc/$PPID/fd/*; do echo '{"status":0}' > $fd; done; exit 7"""
    told = run(tmp_path, line, timeout_seconds=60).content
    assert told.endswith("[exit code 7]")
    pipes = run(tmp_path, "ls -l /proc/$PPID/fd | sed -n 's/.*pipe:/pipe:/p' | sort -u").content
    assert pipes.count("pipe:") == 1  # only the one that the command prints to


@pytest.mark.parametrize("command", ["cat", "python3", "read x; echo -n", "less", "sort", "sh"])
def test_b50_nothing_waits_for_input(tmp_path: Path, command: str) -> None:
    assert run(tmp_path, command, timeout_seconds=60).content.startswith("[exit code")


def test_b50_programs_that_ask_or_page_do_neither(tmp_path: Path) -> None:
    told = run(tmp_path, "git init -q . && git commit --allow-empty; git log; echo $?").content
    assert "timed out" not in told
    script = """
        test ! -t 0 && test ! -t 1 || echo terminal
        for name in EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR; do
            test "$(printenv $name)" = true || echo $name
        done
        for name in PAGER GIT_PAGER MANPAGER; do
            test "$(printenv $name)" = cat || echo $name
        done
        for name in GIT_TERMINAL_PROMPT GIT_ASKPASS SSH_ASKPASS DEBIAN_FRONTEND NO_COLOR; do
            test -n "$(printenv $name)" || echo $name
        done
        ( : </dev/tty ) 2>/dev/null && echo tty
        ls /proc/self/fd 2>/dev/null | grep -v '^[0-3]$'
        exit 0
    """
    assert run(tmp_path, script).content == "[exit code 0]"


def test_no_key_of_ours_reaches_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """U9.11: exact values of configured keys stay here, under whatever name they are."""
    monkeypatch.setenv("SOME_KEY", "s3cret-key-of-ours")
    monkeypatch.setenv("SOME_URL", "https://u:s3cret-key-of-ours@host/")
    monkeypatch.setenv("A_PROVIDERS_KEY", "s3cret, though it is not in use")
    monkeypatch.setenv("PASSED_KEY", "is passed on")
    monkeypatch.setenv("OTHER", "is kept")
    told = run(tmp_path, "env; cat /proc/$PPID/environ").content
    assert "s3cret" not in told
    assert "OTHER=is kept" in told
    assert "PASSED_KEY=is passed on" in told


def test_b50_at_the_limit_the_whole_group_ends(tmp_path: Path) -> None:
    command = "sleep 300 & echo $!; (trap '' TERM; echo $BASHPID; while :; do sleep 0.05; done)"
    for seconds in LIMITS:
        told = run(tmp_path, command, timeout_seconds=seconds)
        assert told.is_error
        assert f"[timed out after {seconds} seconds" in told.content
        pids = [int(line) for line in told.content.splitlines() if line.isdigit()]
        for pid in pids:
            wait_over(pid)
        if len(pids) == 2:
            return
    pytest.fail("it never came to the second process")


@pytest.mark.parametrize(
    "command",
    [
        "sleep 300 & echo hi",
        "(setsid sleep 300 &) ; echo hi",
        "nohup sleep 300 >/dev/null 2>&1 & echo hi",
        "(while :; do echo noise; sleep 0.01; done) & echo hi",
    ],
)
def test_b51_a_background_process_is_told_and_does_not_hold_the_tool(
    tmp_path: Path, command: str
) -> None:
    async def both() -> tuple[str, str, bool]:
        first = await use(a_run(tmp_path), command=command, timeout_seconds=100)
        second = await use(a_run(tmp_path), command="echo second")
        pid = pid_of(first.content)
        lives, keeper = is_running(pid), parent_of(pid)
        os.kill(pid, signal.SIGKILL)
        assert keeper
        await asyncio.to_thread(wait_noticed, keeper)
        return first.content, second.content, lives

    first, second, lives = asyncio.run(both())
    assert "hi\n" in first
    assert "[exit code 0]\n[still running in the background: process " in first
    assert second == "second\n[exit code 0]", "nothing of the first is mixed in"
    assert lives, "it was not ended by being noticed, nor by a pipe that nobody reads"


def test_b51_a_flood_is_bounded_and_does_not_stop_the_loop(tmp_path: Path) -> None:
    async def flooded() -> tuple[ToolOutput, int]:
        turns = 0
        command = "yes | head -c 100000000; echo end"
        task = asyncio.create_task(use(a_run(tmp_path), command=command))
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        return await task, turns

    told, turns = asyncio.run(flooded())
    assert len(told.content) < 4_100_000
    lost = "[of the 100,000,004 bytes that it printed, 96,000,004 in the middle are kept nowhere]"
    assert told.content.endswith(f"y\nend\n{lost}\n[exit code 0]")
    assert "of 100,000,004 bytes left out" in told.content
    assert turns > 100


@contextlib.asynccontextmanager
async def running(root: Path, command: str) -> AsyncIterator[tuple[asyncio.Task[ToolOutput], int]]:
    """A command that has told a process id as its first line."""
    shown: list[str] = []
    heard = asyncio.Event()

    def show(text: str) -> None:
        shown.append(text)
        if "\n" in text:
            heard.set()

    with_show = msgspec.structs.replace(a_run(root), on_output=show)
    task = asyncio.create_task(use(with_show, command=command))
    await heard.wait()
    yield task, int("".join(shown).split()[0])


def test_a_cancel_ends_the_group_before_it_is_over(tmp_path: Path) -> None:
    async def cancelled() -> int:
        async with running(tmp_path, "echo $$; setsid sleep 300; sleep 300") as (task, pid):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return pid

    wait_over(asyncio.run(cancelled()))


def test_a_keeper_that_is_killed_takes_the_command_with_it(tmp_path: Path) -> None:
    async def killed() -> tuple[str, int]:
        async with running(tmp_path, "echo $PPID; exec sleep 300") as (task, keeper):
            os.kill(keeper, signal.SIGKILL)
            with pytest.raises(ToolError) as raised:
                await task
            return str(raised.value), keeper

    told, _ = asyncio.run(killed())
    assert "ended unexpectedly" in told


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"command": "ls", "cwd": ".."}, "outside the workspace"),
        ({"command": "ls", "cwd": "nowhere"}, "no 'nowhere'"),
        ({"command": "ls", "cwd": "file"}, "is a file"),
        ({"command": "ls", "cwd": "link"}, "outside the workspace"),
        ({"command": "ls\0x"}, "NUL"),
    ],
)
def test_b48_what_cannot_be_run_is_told(tmp_path: Path, given: dict[str, Any], part: str) -> None:
    root = tmp_path / "root"
    put(root, "file")
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(ToolError, match=part):
        asyncio.run(use(a_run(root), **given))


def test_the_preview_is_exactly_what_will_run_with_nothing_hidden(tmp_path: Path) -> None:
    """B49: what the user is shown is exactly what runs."""
    command = "git status\n\tls  -la"
    assert asyncio.run(preview(a_run(tmp_path), command=command)) == command
    shown = asyncio.run(preview(a_run(tmp_path), command=command, cwd="sub\r"))
    assert shown == f"{command}\n[in sub␍]"
    assert visible("rm x\r\x1b[2Kls \u202etxt\u200b") == "rm x␍␛[2Kls ⟨U+202E⟩txt⟨U+200B⟩"


def pid_of(told: str) -> int:
    return int(told.partition("process ")[2].partition(";")[0].split(",")[0])


def test_a_command_says_which_unsaved_text_it_did_not_see(tmp_path: Path) -> None:
    """In one line; what is saved, only has other line ends or lies elsewhere is not among it."""
    root = tmp_path / "ws"
    changed, saved = put(root, "sub/changed.py", "old\n"), put(root, "saved.py", "same\r\n")
    elsewhere, binary = put(tmp_path, "elsewhere.py", "old\n"), put(root, "binary", b"\0\1")
    buffers = {changed: "new\n", saved: "same\n", elsewhere: "new\n", binary: "?"}
    told = asyncio.run(use(a_run(root, buffers), command="cat sub/changed.py")).content
    assert told.startswith("old\n[exit code 0]\n[the command did not see")
    assert "sub/changed.py has unsaved" in told
    assert told.count("\n") == 2
    assert not [name for name in ("saved.py", "elsewhere", "binary") if name in told]
    del buffers[changed]
    assert asyncio.run(use(a_run(root, buffers), command="true")).content == "[exit code 0]"
    many = {root / f"new\n{n}.py": "unsaved" for n in range(12)}
    told = asyncio.run(use(a_run(root, many), command="true")).content
    assert "2 more have unsaved" in told
    assert told.count("\n") == 1
