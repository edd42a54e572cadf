"""Rows about the real process: start, memory, version, and requests over stdio."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.messages import COUNT, message
from tests.bench.row import Row, medians, ratio_row, timed
from tests.processes import memory_bytes

STARTS = 15
GETS = 100
SMALL_ROUNDS = 40
SMALL_REQUESTS = 50
MEMORY_BAR_MB = 60

TIRO = [sys.executable, "-m", "tiro", "serve"]
BARE = [sys.executable, "-m", "tests.bench.bare_server"]
INITIALIZE: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}


class Server:
    """A child that speaks JSON-RPC; what comes back is read as bytes and not decoded."""

    def __init__(self, command: list[str], home: Path) -> None:
        env = {**os.environ, "HOME": str(home), "TIRO_CONFIG_DIR": str(home / "tiro")}
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        self._n = 0
        self.request("initialize", INITIALIZE)

    def initialized(self) -> None:
        """Say that the handshake is over."""
        self._write({"method": "initialized", "params": {}})

    def request(self, method: str, params: dict[str, Any]) -> bytes:
        """The body of the answer to this request; notifications before it are passed over."""
        self.send(method, params)
        return self.answer()

    def send(self, method: str, params: dict[str, Any]) -> None:
        """Ask, and do not wait."""
        self._n += 1
        self._write({"id": self._n, "method": method, "params": params})

    def answer(self) -> bytes:
        """The body of the next answer; notifications before it are passed over."""
        while True:
            body = self.read()
            if b'"method"' not in body[:4000]:
                return body

    def resident_mb(self) -> float:
        """What the process holds in memory."""
        return memory_bytes(self._child.pid) / 2**20

    def end(self) -> None:
        """Kill and wait."""
        self._child.kill()
        self._child.communicate()

    def _write(self, fields: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
        assert self._child.stdin
        self._child.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._child.stdin.flush()

    def read(self) -> bytes:
        """The body of the next frame."""
        assert self._child.stdout
        size = 0
        while line := self._child.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        return self._child.stdout.read(size)


def rows() -> list[Row]:
    """All rows of this module."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        return [start(home), memory(home), version(), *requests(home)]


def start(home: Path) -> Row:
    """Process start to the `initialize` answer."""

    def begin(command: list[str]) -> float:
        servers: list[Server] = []
        seconds = timed(lambda: servers.append(Server(command, home)))
        servers[0].end()
        return seconds

    pairs = [(begin(TIRO), begin(BARE)) for _ in range(STARTS)]
    ours, bare = (statistics.median(times) for times in zip(*pairs, strict=True))
    return ratio_row("start to the `initialize` answer", ours, bare, 1.25, "bare pygls")


def memory(home: Path) -> Row:
    """Resident memory after start and one session request."""
    servers = [Server(TIRO, home), Server(BARE, home)]
    for server, method in zip(servers, ("tiro/session/getId", "bare/echo"), strict=True):
        server.initialized()
        server.request(method, {})
    ours, bare = (server.resident_mb() for server in servers)
    for server in servers:
        server.end()
    text = f"{bare:.0f} MB (bare pygls)"
    figure = f"{ours:.0f} MB"
    return Row("resident memory after start", figure, text, figure, f"under {MEMORY_BAR_MB} MB")


def version() -> Row:
    """`tiro --version` against a Python that does nothing."""
    tiro = str(Path(sys.executable).with_name("tiro"))
    ours, bare = medians(
        lambda: subprocess.run([tiro, "--version"], capture_output=True, check=True),
        lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
        STARTS,
    )
    return ratio_row("`tiro --version`", ours, bare, 3, "`python -c pass`")


def requests(home: Path) -> list[Row]:
    """A large answer and a small one."""
    tiro, bare = Server(TIRO, home), Server(BARE, home)
    for server in (tiro, bare):
        server.initialized()
    tiro.request("tiro/session/configure", {"maxHistory": 2 * COUNT})
    for n in range(COUNT):
        tiro.request("tiro/session/addMessage", message(n))
    answer = json.loads(tiro.request("tiro/session/get", {}))
    assert len(answer["result"]["messages"]) == COUNT
    large = medians(
        lambda: tiro.request("tiro/session/get", {}), lambda: bare.request("bare/get", {}), GETS
    )
    small = medians(
        lambda: [tiro.request("tiro/session/getId", {}) for _ in range(SMALL_REQUESTS)],
        lambda: [bare.request("bare/echo", {}) for _ in range(SMALL_REQUESTS)],
        SMALL_ROUNDS,
    )
    tiro.end()
    bare.end()
    small_each = (small[0] / SMALL_REQUESTS, small[1] / SMALL_REQUESTS)
    return [
        ratio_row("`session/get`, 1,000 messages of 1 kB", *large, 0.5, "bare pygls"),
        ratio_row("`session/getId`", *small_each, 1.0, "bare pygls echo"),
    ]
