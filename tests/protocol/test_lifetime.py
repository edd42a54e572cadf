"""The real process: what ends it, with which code, and that nothing but frames reaches stdout.

Where its start matters it is started; elsewhere it is a fork of a warm one.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.warm import Forked, WarmProcess, is_possible
from tests.processes import memory_bytes, wait_over
from tests.sizes import PATIENCE
from tiro.protocol.frames import FrameParser, frame
from tiro.protocol.watch import descendants

ROOT = Path(__file__).parents[2]
ENV = {**os.environ, "PYTHONPATH": f"{ROOT / 'server'}:{ROOT}"}
FAKE_SERVER = ["-m", "tests.protocol.fake_server"]

TURN = {"jsonrpc": "2.0", "id": 7, "method": "tiro/turn/start", "params": {"prompt": "x"}}


class Child:
    """A server process and its pipes, forked from the warm one unless a command is given."""

    def __init__(
        self, warm: WarmProcess | None, *how: str, command: Sequence[str] | None = None
    ) -> None:
        self.process: subprocess.Popen[bytes] | Forked
        reading, writing = os.pipe()
        self.stderr = os.fdopen(reading, "rb", buffering=0)
        if warm and not command:
            self.process = warm.fork(ENV, ROOT, writing, words=[*FAKE_SERVER, *how])
        else:
            self.process = subprocess.Popen(
                command or [sys.executable, *FAKE_SERVER, *how],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=writing,
                env=ENV,
                cwd=ROOT,
                bufsize=0,
            )
        os.close(writing)
        self.parser = FrameParser()
        self.raw = b""
        self.messages: list[Any] = []

    def send(self, *messages: Any) -> None:
        assert self.process.stdin
        for message in messages:
            self.process.stdin.write(frame(json.dumps(message).encode()))

    def send_raw(self, raw: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(raw)

    def read(self, condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
        """Read until something holds or the stream ends."""
        assert self.process.stdout
        until = time.monotonic() + seconds
        while not condition():
            ready, _, _ = select.select([self.process.stdout], [], [], until - time.monotonic())
            assert ready, f"nothing came: {self.messages[-3:]}"
            if not (data := os.read(self.process.stdout.fileno(), 1 << 16)):
                return
            self.raw += data
            self.messages += [json.loads(body) for body in self.parser.feed(data)]

    def answer(self, id_: Any) -> Any:
        def found() -> list[Any]:
            return [m for m in self.messages if m.get("id", ...) == id_ and "method" not in m]

        self.read(found)
        [answer] = found()
        return answer

    def initialize(self, process_id: int | None = None) -> None:
        params: dict[str, Any] = {"processId": process_id, "rootUri": None, "capabilities": {}}
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.answer(0)
        self.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})

    def start_turn(self) -> None:
        """A turn that goes on for ever."""
        self.send(TURN)
        self.read(lambda: any(m.get("params", {}).get("type") == "text" for m in self.messages))

    def ended(self) -> int:
        """The exit code."""
        code = self.process.wait(PATIENCE)
        self.read(lambda: False)
        return code

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.stderr):
            if pipe:
                pipe.close()


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmProcess | None]:
    """What most servers are forked from: a start takes half a second."""
    process = WarmProcess(ENV["PYTHONPATH"]) if is_possible() else None
    yield process
    if process:
        process.close()


@pytest.fixture
def child(warm: WarmProcess | None) -> Iterator[Child]:
    child = Child(warm)
    yield child
    child.close()


SHUTDOWN = {"jsonrpc": "2.0", "id": 8, "method": "shutdown"}
EXIT = {"jsonrpc": "2.0", "method": "exit"}


def test_shutdown_and_exit_is_code_0(child: Child) -> None:
    child.initialize()
    child.send(SHUTDOWN)
    assert child.answer(8)["result"] is None
    child.send(EXIT)
    assert child.ended() == 0


def test_shutdown_exit_and_a_closed_pipe_in_one_go(child: Child) -> None:
    child.initialize()
    child.start_turn()
    child.send(SHUTDOWN, EXIT)
    assert child.process.stdin
    child.process.stdin.close()
    assert child.ended() == 0
    answers = [m for m in child.messages if "id" in m and "method" not in m]
    assert [m["id"] for m in answers] == [0, 7, 8]
    assert answers[1]["result"]["stopReason"] == "cancelled"


@pytest.mark.parametrize("in_turn", [True, False])
def test_exit_alone_is_code_1(child: Child, in_turn: bool) -> None:
    child.initialize()
    if in_turn:
        child.start_turn()
    child.send(EXIT)
    assert child.ended() == 1


@pytest.mark.parametrize("state", ["new", "idle", "turn", "shut_down"])
def test_a_closed_stdin_ends_it_with_code_1(child: Child, state: str) -> None:
    """B42: whatever it was doing."""
    if state != "new":
        child.initialize()
    if state == "turn":
        child.start_turn()
    if state == "shut_down":
        child.send(SHUTDOWN)
        child.answer(8)
    assert child.process.stdin
    child.process.stdin.close()
    assert child.ended() == 1
    if state == "turn":
        assert child.messages[-1]["result"]["stopReason"] == "cancelled"


def test_what_was_sent_before_the_pipe_was_closed_is_answered(child: Child) -> None:
    child.initialize()
    child.send(
        *[{"jsonrpc": "2.0", "id": n, "method": "tiro/session/getId"} for n in range(100, 150)]
    )
    assert child.process.stdin
    child.process.stdin.close()
    child.ended()
    assert [m["id"] for m in child.messages if m.get("id", 0) >= 100] == list(range(100, 150))


@pytest.mark.parametrize("in_turn", [True, False])
def test_a_stdout_that_nobody_reads_any_more_ends_it(child: Child, in_turn: bool) -> None:
    """B42, EPIPE: also when nothing is being written at that moment."""
    child.initialize()
    if in_turn:
        child.start_turn()
    assert child.process.stdout
    child.process.stdout.close()
    assert child.process.wait(PATIENCE) == 1


def test_the_death_of_the_editor_ends_it(child: Child) -> None:
    """B42: its pipes may be held open by somebody else."""
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    child.initialize(editor.pid)
    child.start_turn()
    editor.kill()  # not waited for: it stays there as a zombie
    try:
        assert child.ended() == 1
    finally:
        editor.communicate()


def test_a_dead_process_id_ends_it_after_the_answer(child: Child) -> None:
    editor = subprocess.Popen([sys.executable, "-c", ""])
    editor.wait()
    child.initialize(editor.pid)
    assert child.ended() == 1
    assert child.messages[0]["result"]["serverInfo"]["name"] == "tiro"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_in_order(child: Child, number: signal.Signals) -> None:
    child.initialize()
    child.start_turn()
    child.process.send_signal(number)
    assert child.ended() == 1
    assert child.answer(7)["result"]["stopReason"] == "cancelled"


@pytest.mark.parametrize(
    "broken", [b"Content-Length: x\r\n\r\n", b"\r\n", b"Content-Length: 99999999999\r\n\r\n"]
)
def test_a_broken_header_block_is_answered_and_ends_it(child: Child, broken: bytes) -> None:
    child.initialize()
    child.start_turn()
    child.send_raw(broken)
    assert child.ended() == 1
    assert [m["error"]["code"] for m in child.messages if m.get("id", 0) is None] == [-32700]
    assert child.answer(7)["result"]["stopReason"] == "cancelled"


def test_it_serves_without_a_stderr() -> None:
    command = f"exec {sys.executable} -m tests.protocol.fake_server 2>&-"
    child = Child(None, command=["/bin/sh", "-c", command])
    try:
        child.initialize()
        child.send(SHUTDOWN, EXIT)
        assert child.ended() == 0
    finally:
        child.close()


def test_unreadable_bodies_are_answered_and_do_not_end_it(child: Child) -> None:
    child.initialize()
    for body in (b"", b"{", b'"\xff"', b"[" * 300 + b"]" * 300):
        child.send_raw(frame(body))
    child.send({"jsonrpc": "2.0", "id": 1, "method": "tiro/session/getId"})
    assert child.answer(1)["result"]["id"]
    assert [m["error"]["code"] for m in child.messages if m.get("id", 0) is None] == [-32700] * 4


def test_a_blocked_loop_and_its_children_end_too(warm: WarmProcess | None) -> None:
    """A turn that never gives the loop back, with a child that outlives its parent's death."""
    child = Child(warm, "block")
    try:
        child.initialize()
        child.send(TURN)
        child.read(lambda: any(m.get("method") == "window/logMessage" for m in child.messages))
        [told] = [m for m in child.messages if m.get("method") == "window/logMessage"]
        sleeper = int(told["params"]["message"])
        assert sleeper in descendants(child.process.pid)
        assert child.process.stdin
        child.process.stdin.close()
        assert child.process.wait(PATIENCE) == 1
        wait_over(sleeper)
    finally:
        child.close()


def test_b41_nothing_but_frames_reaches_stdout() -> None:
    """B41: print, a warning, logging, a C-level write, a child, an exception at exit."""
    child = Child(None, "noisy")
    try:
        child.initialize()
        child.send(TURN)
        child.answer(7)
        child.send(SHUTDOWN)
        child.answer(8)
        child.send(EXIT)
        assert child.ended() == 0
        rebuilt = b"".join(frame(body) for body in FrameParser().feed(child.raw))
        assert rebuilt == child.raw, "every byte belongs to a frame"
        noise = child.stderr.read().decode()
        for word in ("printed", "written", "from a child", "at exit"):
            assert word in noise
    finally:
        child.close()


def test_house_6_8_a_client_that_does_not_read_does_not_stop_a_cancel(
    warm: WarmProcess | None,
) -> None:
    child = Child(warm, "flood")
    try:
        child.initialize()
        child.send(TURN)
        child.read(lambda: any(m.get("params", {}).get("type") == "text" for m in child.messages))
        time.sleep(0.5)  # the pipe is full by now, and the turn goes on
        before = memory_bytes(child.process.pid)
        child.send({"jsonrpc": "2.0", "id": 9, "method": "tiro/turn/cancel"})
        time.sleep(0.5)
        assert memory_bytes(child.process.pid) - before < 100_000_000
        assert child.answer(7)["result"]["stopReason"] == "cancelled"
        assert child.answer(9)["result"] == {"cancelled": True}
        told = [m["params"] for m in child.messages if m.get("method") == "tiro/turn/event"]
        assert [event["n"] for event in told] == list(range(1, len(told) + 1))
        text = "".join(event.get("delta", "") for event in told)
        assert text == child.answer(7)["result"]["text"]
    finally:
        child.close()


def test_a_client_that_only_writes_is_not_read_without_bound(warm: WarmProcess | None) -> None:
    """Answers that nobody reads pile up to a limit; a closed stdin still ends the server.

    All the answers to what is written here would take 400 MB.
    """
    child = Child(warm, "hurried")
    try:
        child.initialize()
        message = {"role": "user", "content": "x" * 100_000}
        child.send(
            {"jsonrpc": "2.0", "id": 1, "method": "tiro/session/addMessage", "params": message}
        )
        child.answer(1)
        before = memory_bytes(child.process.pid)
        assert child.process.stdin
        os.set_blocking(child.process.stdin.fileno(), False)
        get = frame(b'{"jsonrpc": "2.0", "id": 2, "method": "tiro/session/get"}')
        write_while_it_reads(child, get, times=4_000)
        while not stands_still(child.process.pid):
            pass
        assert memory_bytes(child.process.pid) - before < 150_000_000
        child.process.stdin.close()
        assert child.process.wait(PATIENCE) == 1
    finally:
        child.close()


def write_while_it_reads(child: Child, raw: bytes, times: int) -> None:
    assert child.process.stdin
    for _ in range(times):
        while child.process.stdin.write(raw) is None:
            if stands_still(child.process.pid):
                return


def stands_still(pid: int) -> bool:
    """Whether a process gets no larger, though nothing keeps it from it."""
    before = memory_bytes(pid)
    time.sleep(0.1)
    return memory_bytes(pid) == before
