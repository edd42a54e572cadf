"""What tests of turns share: events in order, failures, buffers, ways out of the workspace."""

from typing import Any

from tests.e2e.client import Server
from tests.e2e.talk import begin_ask


def events(server: Server, done: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a finished turn, checked for what holds for every turn."""
    found = server.events(done["turnId"])
    assert [e["n"] for e in found] == list(range(1, len(found) + 1))
    assert found[0]["type"] == "started"
    assert [e["type"] for e in found].count("finished") == 1
    assert found[-1]["type"] == "finished"
    assert len({e["sessionId"] for e in found}) == 1
    return found


def shape(found: list[dict[str, Any]]) -> list[str]:
    """The types of events in order, text joined, usage left out."""
    short: list[str] = []
    for event in found:
        name = event["type"]
        if name == "toolUse":
            name = f"toolUse:{event['toolUse']['id']}:{event['status']}"
        elif name == "stored":
            name = f"stored:{event['role']}"
        if name != "usage" and not (name == "text" and short[-1:] == ["text"]):
            short.append(name)
    return short


def joined(found: list[dict[str, Any]], type_: str = "text") -> str:
    return "".join(e["delta"] for e in found if e["type"] == type_)


def failed_turn(server: Server, prompt: str = "go") -> tuple[Any, list[dict[str, Any]]]:
    """A turn that must fail with modelFailed: its error and its events."""
    mark = len(server.events())
    error = begin_ask(server, prompt).error()
    assert (error.code, error.kind) == (-32032, "modelFailed")
    assert error.data["provider"] == "fake"
    found = server.events()[mark:]
    assert found[-1]["type"] == "finished"
    assert found[-1]["stopReason"] == "error"
    assert found[-1]["error"]
    return error, found


def open_buffer(server: Server, uri: str, text: str, version: int = 1) -> None:
    document = {"uri": uri, "languageId": "text", "version": version, "text": text}
    server.notify("textDocument/didOpen", {"textDocument": document})


def change_buffer(server: Server, uri: str, version: int, *changes: dict[str, Any]) -> None:
    server.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)},
    )


def close_buffer(server: Server, uri: str) -> None:
    server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


def outside(server: Server) -> list[tuple[str, dict[str, Any]]]:
    """Every way out of the workspace that a read tool could be talked into."""
    root, workspace = server.home.root, server.home.workspace
    (root / "workspace-secret").mkdir(exist_ok=True)
    (root / "workspace-secret" / "k.txt").write_text("TOPSECRET sibling")
    (root / "secret.txt").write_text("TOPSECRET above")
    for link, target in (("link", root / "workspace-secret"), ("file", root / "secret.txt")):
        if not (workspace / link).is_symlink():
            (workspace / link).symlink_to(target)
    return [
        ("read_file", {"path": "../secret.txt"}),
        ("read_file", {"path": str(root / "secret.txt")}),
        ("read_file", {"path": (root / "secret.txt").as_uri()}),
        ("read_file", {"path": "x/../../secret.txt"}),
        ("read_file", {"path": "../workspace-secret/k.txt"}),
        ("read_file", {"path": "link/k.txt"}),
        ("read_file", {"path": "file"}),
        ("read_file", {"path": "/proc/self/environ"}),
        ("read_file", {"path": "secret\x00.txt"}),
        ("list_files", {"path": ".."}),
        ("list_files", {"path": "link"}),
        ("glob", {"pattern": "../**/*.txt"}),
        ("glob", {"pattern": "**/k.txt"}),
        ("grep", {"pattern": "TOPSECRET"}),
        ("grep", {"pattern": "TOPSECRET", "path": ".."}),
        ("grep", {"pattern": "TOPSECRET", "path": "link"}),
    ]
