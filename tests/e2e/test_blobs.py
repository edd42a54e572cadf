"""Large values over the wire and in files (U9.10): stored once, read in pieces, gone at last."""

import hashlib
import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import MODEL, Provider
from tests.e2e.talk import add, ask, result, until, use

TEXT = "ä line of output\n" * 20_000
DATA = "iVBORw0K" * 40_000
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}}
ATTACHMENT = {"type": "attachment", "kind": "file", "path": "/w/long.txt", "text": TEXT + "!"}


def blobs(server: Server) -> set[str]:
    return {path.name for path in server.home.sessions.joinpath("blobs").iterdir()}


def named(*values: str) -> set[str]:
    return {hashlib.sha256(value.encode()).hexdigest() for value in values}


def filled(server: Server) -> list[Any]:
    """Add a prompt with an image and an attachment, a tool use and its long result."""
    contents = [
        [{"type": "text", "text": "see"}, IMAGE, ATTACHMENT],
        [use("c1", path="/w/long.txt")],
        result("c1", TEXT),
        [use("c2", path="/w/picture.png")],
        result("c2", [{"type": "text", "text": "a picture"}, IMAGE]),
    ]
    roles = ("user", "assistant", "tool", "assistant", "tool")
    for role, content in zip(roles, contents, strict=True):
        assert add(server, role, content)["stored"]
    return contents


def test_large_values_survive_kill_save_and_restart_value_for_value(
    start: StartServer, provider: Provider, home: Home
) -> None:
    """U9.10, B63: in memory they are whole, also for the next request, where there is room."""
    home.write_config(providers={"fake": home.fake(models={MODEL: {"context_window": 1_000_000}})})
    server = start()
    contents = filled(server)
    id_ = server.request("tiro/session/getId")["id"]
    server.kill()
    server = start()
    shown = server.request("tiro/session/load", {"id": id_})
    assert [m["content"] for m in shown["messages"]] == contents
    saved = server.request("tiro/session/save")
    assert saved["bytes"] < 10_000
    assert blobs(server) == named(TEXT, DATA, TEXT + "!")
    server.shutdown()
    server = start()
    shown = server.request("tiro/session/load", {"id": id_})
    assert [m["content"] for m in shown["messages"]] == contents
    assert all("metadata" not in message for message in shown["messages"])
    provider.script(replies.text("seen"))
    ask(server, "go on")
    sent = json.dumps(provider.last.messages, ensure_ascii=False)
    assert sent.count(DATA) == 2
    assert sent.count(json.dumps(TEXT, ensure_ascii=False)[1:-1]) == 2


@pytest.mark.parametrize(
    ("seq", "block", "whole"),
    [(3, 0, TEXT), (1, 2, TEXT + "!"), (1, 1, None), (5, 0, "a picture\n[image]")],
)
def test_a_long_block_comes_in_pieces(
    server: Server, seq: int, block: int, whole: str | None
) -> None:
    """Protocol `session/content`: tool results, attachments, images."""
    filled(server)
    text, params = "", {"seq": seq, "block": block, "limit": 100_000}
    while True:
        piece = server.request("tiro/session/content", {**params, "offset": len(text)})
        assert len(piece["text"]) <= 100_000
        text += piece["text"]
        if len(text) >= piece["totalChars"]:
            break
    if whole is None:
        assert json.loads(text) == IMAGE["source"]
    else:
        assert text == whole


def test_a_copy_and_an_export_are_whole_and_deleting_leaves_nothing(start: StartServer) -> None:
    """U9.10."""
    server = start()
    contents = filled(server)
    id_ = server.request("tiro/session/save")["id"]
    copy = server.home.root / "copy.json"
    server.request("tiro/session/save", {"path": str(copy)})
    assert [m["content"] for m in json.loads(copy.read_text())["messages"]] == contents
    server.request("tiro/session/clear")
    text = server.request("tiro/session/export", {"id": id_, "format": "json"})["text"]
    assert [m["content"] for m in json.loads(text)["messages"]] == contents
    assert server.request("tiro/session/delete", {"id": id_})["deleted"]
    assert blobs(server) == set()


def test_a_missing_value_is_told_and_the_session_goes_on(
    start: StartServer, provider: Provider
) -> None:
    """The provider accepts what is left; the reference survives the next save."""
    server = start()
    contents = filled(server)
    id_ = server.request("tiro/session/save")["id"]
    server.request("tiro/session/clear")
    moved = server.home.sessions.joinpath("blobs").rename(server.home.root / "moved")
    shown = server.request("tiro/session/load", {"id": id_})
    assert len(shown["messages"]) == 5
    assert shown["messages"][2]["content"]["content"].startswith("ä line of output\n")
    told = server.wait_notification(
        "window/showMessage", lambda params: "blobs" in params["message"]
    )
    assert "missing" in told["message"]
    provider.script(replies.text("ok"))
    assert ask(server, "go on")["stopReason"] == "end_turn"
    server.request("tiro/session/save")
    server.request("tiro/session/clear")
    moved.rename(server.home.sessions / "blobs")
    shown = server.request("tiro/session/load", {"id": id_})
    assert [m["content"] for m in shown["messages"]][:5] == contents


@pytest.mark.parametrize("by", ["id", "path", "latest"])
def test_a_load_says_what_is_damaged(start: StartServer, by: str) -> None:
    """U9.10: whichever way a session is loaded, also by a server that just started."""
    server = start()
    filled(server)
    saved = server.request("tiro/session/save")
    server.shutdown()
    for blob in server.home.sessions.joinpath("blobs").iterdir():
        blob.write_bytes(blob.read_bytes()[:100])
    server = start()
    given = {"id": saved["id"], "path": saved["path"], "latest": True}
    server.request("tiro/session/load", {by: given[by]})
    server.wait_notification("window/showMessage", lambda params: "blobs" in params["message"])


@pytest.mark.parametrize("is_fresh", [True, False])
def test_loading_what_is_open_keeps_what_only_memory_has(
    start: StartServer, is_fresh: bool
) -> None:
    """Somebody removed the files of values: they are written again, and nothing is told missing."""
    server = start()
    contents = filled(server)
    id_ = server.request("tiro/session/save")["id"]
    if not is_fresh:
        server.shutdown()
        server = start()
        server.request("tiro/session/load", {"id": id_})
    wanted = blobs(server)
    for blob in server.home.sessions.joinpath("blobs").iterdir():
        blob.unlink()
    shown = server.request("tiro/session/load", {"id": id_})
    assert [m["content"] for m in shown["messages"]] == contents
    until(lambda: blobs(server) == wanted)
    server.kill()
    server = start()
    shown = server.request("tiro/session/load", {"id": id_})
    assert [m["content"] for m in shown["messages"]] == contents


def test_a_session_that_ends_leaves_no_value_missing(start: StartServer) -> None:
    server = start()
    contents = filled(server)
    id_ = server.request("tiro/session/save")["id"]
    for blob in server.home.sessions.joinpath("blobs").iterdir():
        blob.unlink()
    server.request("tiro/session/clear")
    shown = server.request("tiro/session/load", {"id": id_})
    assert [m["content"] for m in shown["messages"]] == contents
