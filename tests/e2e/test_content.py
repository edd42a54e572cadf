"""`tiro/session/content`: every block can be read in pieces, and whatever was cut for display."""

import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import ASKING, Home
from tests.e2e.provider import MODEL, Provider
from tests.e2e.talk import add, ask, result, use
from tests.e2e.turns import events

IMAGE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" * 50_000}
LONG = "é漢\U0001f642\n" * 30_000


def whole(server: Server, seq: int, block: int | None = None, step: int = 40_000) -> str:
    """A block put together from its pieces."""
    text = ""
    while True:
        given = {"seq": seq, "block": block, "offset": len(text), "limit": step}
        piece = server.request("tiro/session/content", given)
        if not piece["text"]:
            assert len(text) == piece["totalChars"]
            return text
        assert len(piece["text"]) <= step
        text += piece["text"]


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"type": "text", "text": LONG}, LONG),
        ({"type": "thinking", "thinking": LONG, "signature": "s"}, LONG),
        ({"type": "attachment", "kind": "file", "path": "a", "text": LONG}, LONG),
        ({"type": "image", "source": IMAGE}, IMAGE),
        (use("c1", pattern=LONG, number=2**70), {"pattern": LONG, "number": 2**70}),
        ({"type": "odd", "data": LONG}, {"type": "odd", "data": LONG}),
    ],
)
def test_every_kind_of_block(server: Server, block: dict[str, Any], said: Any) -> None:
    role = "assistant" if block["type"] in ("thinking", "tool_use") else "user"
    add(server, role, [{"type": "text", "text": "first"}, block])
    found = whole(server, 1, 1)
    assert (found if isinstance(said, str) else json.loads(found)) == said
    assert whole(server, 1) == f"first\n{found}"


@pytest.mark.parametrize("blocks", [False, True])
def test_a_tool_result(server: Server, blocks: bool) -> None:
    add(server, "user", "go")
    add(server, "assistant", [use("c1")])
    parts = [{"type": "text", "text": LONG}, {"type": "image", "source": IMAGE}]
    add(server, "tool", result("c1", parts if blocks else LONG))
    assert whole(server, 3, 0) == whole(server, 3) == (f"{LONG}\n[image]" if blocks else LONG)


def test_it_finds_what_left_the_window(server: Server) -> None:
    for text in ("one", "two", "three"):
        add(server, "user", text)
    server.request("tiro/session/editMessage", {"seq": 3, "content": "drei"})
    assert whole(server, 3) == "drei"
    server.request("tiro/session/rewind", {"toSeq": 1})
    assert whole(server, 2) == "two"
    assert whole(server, 3) == "drei"


def test_all_that_a_turn_s_events_cut(start: StartServer, home: Home, provider: Provider) -> None:
    """A result over 4 kB, an input over 1 MB, in the event and in the question."""
    models = {MODEL: {"context_window": 1_000_000}}
    home.write_config(providers={"fake": home.fake(models=models)})
    server = start()
    server.home.write("han.txt", ("漢" * 30 + "\n") * 100)
    server.home.write(ASKING, "a")
    asked: list[Any] = []

    def answer(params: Any) -> dict[str, Any]:
        asked.append(params)
        return {"decision": "once"}

    server.on_request("tiro/permission/request", answer)
    pattern = "x" * 1_200_000
    provider.script(
        replies.tools(
            ("c1", "read_file", {"path": "han.txt"}),
            ("c2", "read_file", {"path": "han.txt"}),
            ("c3", "grep", {"pattern": pattern, "path": ASKING}),
        )
    )
    found = events(server, ask(server, "go"))
    shown = next(e for e in found if e["type"] == "toolUse" and e["toolUse"]["id"] == "c3")
    assert len(shown["toolUse"]["input"]["pattern"]) < len(pattern)
    assert all(len(params["toolUse"]["input"]["pattern"]) < len(pattern) for params in asked)
    seq = next(e["seq"] for e in found if e["type"] == "stored" and e["role"] == "assistant")
    assert json.loads(whole(server, seq, 2, step=500_000))["pattern"] == pattern
    results = {e["toolUseId"]: e for e in found if e["type"] == "toolResult"}
    for tool_use_id in ("c1", "c2"):
        cut = results[tool_use_id]
        assert cut["truncated"]
        text = whole(server, cut["seq"], 0)
        assert text.startswith(cut["content"])
        assert text.count("漢") == 3000
    stored = [e["seq"] for e in found if e["type"] == "stored" and e["role"] == "tool"]
    assert stored == sorted(found["seq"] for found in results.values())
