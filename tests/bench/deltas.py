"""The row about the first delta: from a provider's first byte to the editor's first event.

The provider is a real HTTP server, the editor reads the real server's stdout. Baseline: the same
way through a bare pygls server that reads the stream with httpx and sends each line on.
"""

import json
import re
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path

from tests.bench.row import Row, in_words
from tests.bench.wire import BARE, TIRO, Server

TURNS = 60
BAR_MS = 3
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


class Provider:
    """Answers each request with one word, and says when it was asked and when it said it."""

    def __init__(self) -> None:
        self.asked = self.told = 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Take no more requests."""
        self._listener.close()

    def _serve(self) -> None:
        rest = chunk({}, "stop") + b"data: [DONE]\n\n"
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                read_request(connection)
                self.asked = time.perf_counter()
                connection.sendall(HEAD)
                time.sleep(0.02)  # whoever reads is at rest when the first byte comes
                self.told = time.perf_counter()
                connection.sendall(chunk({"content": "word"}))
                time.sleep(0.02)
                connection.sendall(rest)


def rows() -> list[Row]:
    """The row of this module."""
    provider = Provider()
    with tempfile.TemporaryDirectory() as folder:
        tiro, bare = configured(Path(folder), provider.url), Server(BARE, Path(folder))
        bare.initialized()
        pairs = [(ask(tiro, provider), _ask_bare(bare, provider)) for _ in range(TURNS)]
        for server in (tiro, bare):
            server.end()
    provider.close()
    ours, plain = (statistics.median(times) for times in zip(*pairs, strict=True))
    told = in_words(ours)
    baseline = f"{in_words(plain)} (bare pygls and httpx)"
    what = "first delta: provider's first byte to the editor's first event, median"
    return [Row(what, told, baseline, told, f"under {BAR_MS} ms")]


def configured(home: Path, url: str) -> Server:
    """A running server that asks the provider at this address, and nobody for a summary."""
    config = home / "tiro" / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    models = {"m": {"context_window": 100_000}}
    provider = {"api": "openai", "base_url": url, "api_key": "none", "models": models}
    session = {"summary": {"enabled": False}, "max_history": 100}
    settings = {"model": "bench/m", "providers": {"bench": provider}, "session": session}
    config.write_text(json.dumps(settings))  # which is YAML too
    server = Server(TIRO, home)
    server.initialized()
    return server


def ask(server: Server, provider: Provider) -> float:
    """The seconds from the provider's first byte to the first event with text."""
    server.send("tiro/turn/start", {"prompt": "Say a word."})
    while True:
        body = server.read()
        if b'"word"' in body and b"tiro/turn/event" in body:
            break
    heard = time.perf_counter()
    server.answer()
    return heard - provider.told


def _ask_bare(server: Server, provider: Provider) -> float:
    server.send("bare/prompt", {"url": f"{provider.url}/chat/completions"})
    while b"word" not in server.read():
        pass
    heard = time.perf_counter()
    server.answer()
    return heard - provider.told


def read_request(connection: socket.socket) -> None:
    """Read an HTTP request to its end."""
    asked = b""
    while b"\r\n\r\n" not in asked:
        asked += connection.recv(65536)
    head, _, rest = asked.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head.lower())
    missing = (int(found[1]) if found else 0) - len(rest)
    while missing > 0:
        missing -= len(connection.recv(1 << 20))


def chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    """An event of a stream of chat completions."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    fields = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + json.dumps({**fields, "choices": [choice]}).encode() + b"\n\n"
