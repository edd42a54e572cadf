"""The tool `diagnostics` over the wire: offered where the client can tell, and only there."""

from pathlib import Path
from typing import Any

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.provider import Provider
from tests.e2e.talk import ask


def problem(path: Path, message: str) -> dict[str, Any]:
    start, end = {"line": 0, "character": 3}, {"line": 0, "character": 5}
    where = {"path": str(path), "range": {"start": start, "end": end}}
    return {**where, "severity": "error", "source": "checker", "message": message}


def test_a_model_gets_what_the_editor_shows(start: StartServer, provider: Provider) -> None:
    server = start(features={"permissionRequest": True, "turnEvents": True, "diagnostics": True})
    path = server.home.write("a.py", "im port os\n")
    other = server.home.root / "outside.py"
    asked: list[Any] = []

    def answer(params: Any) -> Any:
        asked.append(params)
        return {"diagnostics": [problem(path, "bad name"), problem(other, "SECRET")]}

    server.on_request("tiro/editor/diagnostics", answer)
    provider.script(
        replies.tools(("c1", "diagnostics", {}), ("c2", "diagnostics", {"path": "a.py"}))
    )
    ask(server, "what is wrong?")
    told = [m["content"] for m in provider.last.messages if m["role"] == "tool"]
    assert told == ["a.py:1:4: error: bad name [checker]"] * 2
    assert {} in asked
    assert {"path": str(path)} in asked


def test_other_clients_are_not_offered_it(server: Server) -> None:
    assert "diagnostics" not in str(server.request("tiro/session/explain")["tools"])
