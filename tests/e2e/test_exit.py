"""How the server ends, and that nothing but frames comes out of it (B41, B42)."""

import os
import signal
import subprocess
import sys
import time

from tests.e2e import replies
from tests.e2e.client import Pending, Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold
from tests.e2e.talk import ask, begin_ask, everything
from tests.e2e.warm import WarmProcess
from tests.processes import processor_ticks
from tests.sizes import PATIENCE, sized

REAL_PROCESSES = True


def hanging_turn(server: Server, provider: Provider) -> tuple[Pending, Hold]:
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("half "), hold))
    turn = begin_ask(server, "go")
    server.wait_event("text")
    return turn, hold


def test_b42_a_closed_stdin_ends_an_idle_server(start: StartServer) -> None:
    server = start()
    server.close_stdin()
    assert server.wait_exit() == 1


def test_b42_a_closed_stdin_ends_a_streaming_server(start: StartServer, provider: Provider) -> None:
    server = start()
    hanging_turn(server, provider)
    server.close_stdin()
    assert server.wait_exit() == 1
    assert provider.last.closed_by_client()
    again = start()
    assert again.request("tiro/session/load", {"latest": True})["messages"][0]["content"] == "go"


def test_b42_a_frame_cut_in_half_by_the_end_is_no_hang(start: StartServer) -> None:
    server = start()
    server.send_raw(b'Content-Length: 500\r\n\r\n{"jsonrpc"')
    server.close_stdin()
    assert server.wait_exit() == 1


def test_b42_a_dead_parent_ends_the_server(start: StartServer, provider: Provider) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent:
        server = start(initialize=False)
        server.initialize(process_id=parent.pid)
        hanging_turn(server, provider)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert server.wait_exit() == 1


def test_b42_a_parent_that_is_dead_at_the_start_ends_the_server(start: StartServer) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as parent:
        parent.wait()
    server = start(initialize=False)
    server.send({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                 "params": server.hello(process_id=parent.pid)})  # fmt: skip
    assert server.wait_exit() == 1


def test_b42_a_closed_stdout_ends_the_server(start: StartServer, provider: Provider) -> None:
    server = start()
    hanging_turn(server, provider)
    os.dup2(os.open(os.devnull, os.O_RDONLY), server.process.stdout.fileno())  # type: ignore[union-attr]
    for _ in range(20):
        if server.process.poll() is not None:
            break
        try:
            server.notify("tiro/none")
            server.begin("tiro/session/getAgent")
        except BrokenPipeError:
            break
        time.sleep(0.05)
    assert server.process.wait(PATIENCE) == 1


def test_b42_shutdown_during_a_turn_answers_the_turn_first(
    start: StartServer, provider: Provider
) -> None:
    server = start()
    turn, _ = hanging_turn(server, provider)
    shutdown = server.begin("shutdown")
    assert shutdown.result() is None
    assert turn.done, "turn/start is answered before shutdown"
    assert turn.result()["stopReason"] == "cancelled"
    server.notify("exit")
    assert server.wait_exit() == 0
    assert provider.last.closed_by_client()


def test_b42_a_termination_signal_ends_it_cleanly(
    home: Home, provider: Provider, warm_process: WarmProcess | None
) -> None:
    """At no moment of a turn is it lost or taken for a fault of the turn."""
    for number in range(sized(fast=5, normal=15, long=200)):
        provider.reset()
        with Server(home, warm=warm_process) as server:
            server.initialize()
            hanging_turn(server, provider)
            server.process.send_signal((signal.SIGTERM, signal.SIGHUP)[number % 2])
            assert server.wait_exit() == 1, f"round {number}"
            assert provider.last.closed_by_client()
            server.check()
    assert "half " in everything(home, warm_process)


def test_b42_an_idle_server_does_not_burn_the_processor(server: Server) -> None:
    ask(server)
    until = time.monotonic() + PATIENCE
    while True:  # snapshots and fsyncs in the background may still run
        before = processor_ticks(server.process.pid)
        time.sleep(1.0)
        if processor_ticks(server.process.pid) - before <= 5:  # 5 % of one second
            break
        assert time.monotonic() < until, "it is never idle"


def test_b41_nothing_but_frames_even_when_python_is_loud(home: Home, start: StartServer) -> None:
    server = start(
        command=[sys.executable, "-X", "dev", "-v", "-m", "tiro", "serve"],
        env={"PYTHONWARNINGS": "always", "PYTHONFAULTHANDLER": "1"},
    )
    home.write("a.txt", "text")
    ask(server)
    server.request("tiro/session/save")
    assert server.shutdown() == 0
    assert server.violations == []


def test_b41_a_print_in_the_process_goes_to_stderr(home: Home, start: StartServer) -> None:
    program = """
import os, subprocess, sys, threading, time, warnings
def shout():
    while not os.path.exists("shout"):
        time.sleep(0.01)
    for _ in range(10):
        print("LOUD print", flush=True)
        os.write(1, b"LOUD write\\n")
        subprocess.run(["echo", "LOUD child"])
        warnings.warn("LOUD warning")
    os.remove("shout")
threading.Thread(target=shout, daemon=True).start()
from tiro.cli import main
sys.argv = ["tiro", "serve"]
sys.exit(main())
"""
    server = start(command=[sys.executable, "-c", program])
    trigger = home.write("shout", "")
    until = time.monotonic() + PATIENCE
    while trigger.exists() and time.monotonic() < until:
        server.request("tiro/session/get")
    assert "LOUD write" in server.stderr_text()
    assert "LOUD child" in server.stderr_text()
    assert "LOUD print" in server.stderr_text()
    assert server.violations == []
