"""Thousands of odd frames in a row: every id is answered exactly once, and the server lives on."""

import asyncio
import collections
import json
import random
from typing import Any

from tests.protocol.fakes import Client, Script
from tests.sizes import sized
from tiro.agents import events
from tiro.protocol import types
from tiro.protocol.frames import FrameParser, decode_body, frame

ODD: list[Any] = [
    None, True, False, 0, -1, 1.5, 2**70, "", "x", "\0", "\ud83d", [], {}, [1, [2, [3]]],
    {"jsonrpc": "2.0"}, {"a": {"b": None}}, "tiro/status", float("inf"),
]  # fmt: skip
KEYS = [
    "role", "content", "seq", "toSeq", "id", "key", "value", "name", "limit", "beforeSeq", "path",
    "prompt", "attachments", "force", "turnId", "title", "mode", "command", "arguments", "jsonrpc",
    "textDocument", "contentChanges", "token", "settings", "range", "context",
]  # fmt: skip
METHODS = [
    *types.METHODS, *types.METHODS, "tiro/none", "", "workspace/executeCommand",
    "textDocument/codeAction", "textDocument/didOpen", "textDocument/didChange", "$/cancelRequest",
    "$/setTrace", "initialized", "initialize", "window/workDoneProgress/cancel",
    "workspace/didChangeConfiguration", "workspace/didChangeWorkspaceFolders", "textDocument/hover",
    "notebookDocument/didOpen",
]  # fmt: skip


class Fuzzer:
    """Makes messages and remembers which answers they call for."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.expected: collections.Counter[str] = collections.Counter()
        self.without_id = 0

    def value(self, depth: int = 0) -> Any:
        if depth < 3 and self.dice.random() < 0.3:
            return {self.dice.choice(KEYS): self.value(depth + 1) for _ in range(3)}
        return self.dice.choice(ODD)

    def params(self) -> Any:
        if self.dice.random() < 0.2:
            return self.dice.choice(ODD)
        return {self.dice.choice(KEYS): self.value() for _ in range(self.dice.randrange(5))}

    def body(self, number: int) -> bytes:
        kind = self.dice.random()
        if kind < 0.06:
            self.without_id += 1
            return self.dice.choice(
                [b"", b"{", b"[" * 300 + b"]" * 300, b"nope", b'"\xff"', b"[]", b"7", b"{}"]
            )
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": self.dice.choice(METHODS)}
        if self.dice.random() < 0.9:
            message["params"] = self.params()
        if kind < 0.2:
            return json.dumps(message).encode()  # a notification: never answered
        id_ = self.dice.choice([number, f"s{number}", -number, 10**30 + number])
        message["id"] = id_
        if kind < 0.3:
            message["jsonrpc"] = self.dice.choice(["1.0", 2.0, None, {}])
        elif kind < 0.35:
            message["method"] = self.dice.choice([None, 5, [], {}])
        elif kind < 0.4:
            del message["method"]
            message["result"] = message["error"] = None
            if self.dice.random() < 0.5:
                return json.dumps(message).encode()  # an answer to nothing: ignored
            del message["result"], message["error"]
        self.expected[repr(id_)] += 1
        return json.dumps(message).encode()


async def test_every_id_is_answered_exactly_once() -> None:
    for seed in range(sized(fast=2, normal=5, long=200)):
        fuzzer = Fuzzer(seed)
        script: Script = [events.Text("a"), 0.001]
        client = Client(*[script] * 2000)
        await client.initialize()
        client.outlet.bodies.clear()
        parser = FrameParser()
        for number in range(1, 1001):
            for body in parser.feed(frame(fuzzer.body(number))):
                try:
                    message = decode_body(body)
                except ValueError:
                    error = types.ErrorObject(-32700, "The message is not valid JSON")
                    client.protocol.send_error(None, error)
                else:
                    client.send(message)
            if number % 50 == 0:
                await asyncio.sleep(0)
                dismiss(client)
        await settle(client, fuzzer)
        got = collections.Counter(
            repr(m["id"]) for m in client.outlet.messages() if "method" not in m
        )
        without_id = got.pop("None", 0)
        assert got == fuzzer.expected
        assert without_id == fuzzer.without_id
        for answer in client.outlet.messages():
            if "method" not in answer:
                assert ("result" in answer) != ("error" in answer)
                assert set(answer) <= {"jsonrpc", "id", "result", "error"}
        client.service.editor.close()


def dismiss(client: Client) -> None:
    """Close every question that the server has asked so far."""
    for key in tuple(client.protocol._asked):
        client.send({"jsonrpc": "2.0", "id": key, "result": None})


async def settle(client: Client, fuzzer: Fuzzer) -> None:
    """Wait until nothing runs any more."""
    for _ in range(2000):
        dismiss(client)
        answered = sum(1 for m in client.outlet.messages() if "method" not in m)
        if answered >= fuzzer.expected.total() + fuzzer.without_id:
            return
        await asyncio.sleep(0.005)
