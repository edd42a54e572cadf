"""Odd frames by the thousand, from a raw client: each id is answered once, in few words (B41).

Every frame is made from a seed and none is valid by design: unknown and known methods with params
of any shape, envelopes that are none, bodies that are no JSON, headers in every legal spelling, cut
into pieces anywhere. The server may end only where the protocol says so.
"""

import collections
import json
import random
from typing import Any

import pytest

from tests.e2e.client import Server
from tests.e2e.conftest import StartServer, Tell
from tests.e2e.talk import ask
from tests.sizes import sized

FRAMES = sized(fast=2000, normal=20_000, long=100_000)
BURST = 500
LONG = "n" * 5_000_000

ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 2**70, 1e308, "", "x", "\0", "\ud83d", "\U0001f642", [], {},
    [1, [2, [3]]], {"jsonrpc": "2.0"}, {"a": {"b": None}}, "tiro/status",
]  # fmt: skip
KEYS = [
    "role", "content", "seq", "toSeq", "id", "key", "value", "name", "limit", "beforeSeq", "path",
    "prompt", "attachments", "force", "turnId", "title", "mode", "command", "arguments", "jsonrpc",
    "textDocument", "contentChanges", "token", "settings", "range", "context", "maxHistory",
    "agent", "model", "latest", "toolUseId", "isError", "query", "offset", "all",
]  # fmt: skip
LSP = [
    "initialize", "initialized", "$/cancelRequest", "$/setTrace", "$/x", "workspace/executeCommand",
    "textDocument/codeAction", "textDocument/didOpen", "textDocument/didChange",
    "textDocument/didClose", "textDocument/didSave", "textDocument/hover",
    "notebookDocument/didOpen", "workspace/didChangeConfiguration",
    "workspace/didChangeWorkspaceFolders", "window/workDoneProgress/cancel", "tiro/none", "",
]  # fmt: skip
NO_JSON = [
    b"",
    b"{",
    b"[" * 300 + b"]" * 300,
    b"nope",
    b'"\xff"',
    b"\x00",
    b"\xef\xbb\xbf{",
    b"{'a'}",
]
NO_MESSAGE = [b"[]", b"7", b"{}", b"null", b'"x"', b'[{"jsonrpc":"2.0","id":1,"method":"x"}]']


class Fuzzer:
    """Makes frames and remembers which answers they call for."""

    def __init__(self, seed: int, methods: list[str]) -> None:
        self.dice = random.Random(seed)
        self.expected: collections.Counter[str] = collections.Counter()
        self.without_id = 0
        self.methods = [*methods, *LSP]

    def frame(self, number: int) -> bytes:
        """One frame; its header in any spelling that the protocol takes."""
        body = self._body(number)
        if self.dice.random() < 0.9:
            return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        name = self.dice.choice([b"content-length", b"CONTENT-LENGTH", b"Content-length"])
        kind = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n"
        more = self.dice.choice([b"", kind])
        return b"%b%b:  %d \r\n\r\n%b" % (more, name, len(body), body)

    def _body(self, number: int) -> bytes:
        kind = self.dice.random()
        if kind < 0.04:
            self.without_id += 1
            return self.dice.choice(NO_JSON)
        if kind < 0.06:
            self.without_id += 1
            return self.dice.choice(NO_MESSAGE)
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": self.dice.choice(self.methods)}
        if self.dice.random() < 0.9:
            message["params"] = self._params()
        if kind < 0.2:
            return json.dumps(message).encode()  # a notification: never answered
        id_ = self.dice.choice([number, f"s{number}", -number - 1, 10**30 + number])
        message["id"] = id_
        if kind < 0.26:
            message["jsonrpc"] = self.dice.choice(["1.0", 2.0, None, {}])
        elif kind < 0.32:
            message["method"] = self.dice.choice([None, 5, [], {}])
        elif kind < 0.36:
            del message["method"]
            if self.dice.random() < 0.5:
                message["result"] = message["error"] = None
                return json.dumps(message).encode()  # an answer to nothing: ignored
        self.expected[json.dumps(id_)] += 1
        return json.dumps(message).encode()

    def _params(self) -> Any:
        if self.dice.random() < 0.2:
            return self.dice.choice(ODD)
        return {self.dice.choice(KEYS): self._value() for _ in range(self.dice.randrange(5))}

    def _value(self, depth: int = 0) -> Any:
        if depth < 3 and self.dice.random() < 0.2:
            return {self.dice.choice(KEYS): self._value(depth + 1) for _ in range(3)}
        return self.dice.choice(ODD)


@pytest.mark.timeout(600)  # with --long
def test_every_id_is_answered_once_whatever_comes(
    start: StartServer, record_property: Tell
) -> None:
    """In bursts cut anywhere; afterwards a prompt is still answered. 100,000 frames with --long."""
    server = start()
    tiro = server.initialize_result["capabilities"]["experimental"]["tiro"]
    fuzzer = Fuzzer(20250221, tiro["methods"])
    before = server.answered
    for first in range(0, FRAMES, BURST):
        raw = b"".join(fuzzer.frame(number) for number in range(first, first + BURST))
        cut = fuzzer.dice.randrange(len(raw))
        server.send_raw(raw[:cut])
        server.send_raw(raw[cut:])
        server.wait_until(
            lambda: (
                server.answered - before >= len(fuzzer.expected)
                and len(server.orphans) >= fuzzer.without_id
            ),
            "an answer to every frame",
        )
    assert len(server.orphans) == fuzzer.without_id
    codes: collections.Counter[int | None] = collections.Counter()
    for id_, times in fuzzer.expected.items():
        answers = server.answers_to(json.loads(id_))
        assert len(answers) == times == 1, id_
        codes[answers[0].get("error", {}).get("code")] += 1
    record_property("frames", FRAMES)
    assert -32603 not in codes, "an internal error is a fault of ours"
    assert server.process.poll() is None
    server.notify("workspace/didChangeConfiguration", {"settings": {}})
    server.request("tiro/session/clear")
    assert ask(server)["text"] == "ok"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (LONG, {}),
        ("tiro/session/setAgent", {"name": LONG}),
        ("tiro/session/new", {"id": LONG}),
        ("tiro/session/load", {"id": LONG}),
        ("tiro/session/load", {"path": f"/{LONG}"}),
        ("tiro/session/save", {"path": f"/{LONG}"}),
        ("tiro/session/delete", {"id": LONG}),
        ("tiro/session/configure", {"mode": LONG}),
        ("tiro/session/configure", {"limit": {"chars": LONG}}),
        ("tiro/session/addMessage", {"role": LONG, "content": ""}),
        ("tiro/session/addMessage", {"role": "user", "content": [{"type": "text", LONG: 1}]}),
        ("tiro/session/addToolResult", {"toolUseId": LONG, "content": ""}),
        ("tiro/turn/cancel", {"turnId": LONG}),
        ("tiro/turn/start", {"prompt": "x", "model": LONG}),
        ("tiro/turn/start", {"prompt": "x", "agent": LONG}),
        ("tiro/models/set", {"name": LONG}),
        ("workspace/executeCommand", {"command": LONG}),
    ],
)
def test_an_error_quotes_no_more_than_a_person_reads(
    server: Server, method: str, params: dict[str, Any]
) -> None:
    """Who sends 5 MB where a name belongs gets a sentence, not the 5 MB back."""
    answer = server.begin(method, params).message()
    assert "error" in answer, "5 MB are no name"
    assert len(json.dumps(answer)) < 10_000
    assert len(answer["error"]["message"]) > 20
    assert len(server.stderr_text()) < 5_000_000
