"""B63: a session goes on after a restart as it was, or says what of it is missing (M4.3)."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import MODEL, Provider
from tests.e2e.talk import add, ask, result, stored, use, view
from tests.tools.images import png

OTHER = "second-model"
PLAIN_MODEL, M2 = f"fake/{MODEL}", f"work/{OTHER}"
EVERYTHING = {"*": "allow"}


def with_m2(home: Home) -> None:
    home.write_config(providers={"work": home.fake(models={OTHER: {"context_window": 90_000}})})


def fill(server: Server) -> None:
    """30 messages, tool groups and one image among them; memo and summary."""
    image = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png()).decode()}
    add(server, "user", [{"type": "text", "text": "see"}, {"type": "image", "source": image}])
    add(server, "assistant", "I see")
    for n in range(7):
        add(server, "user", f"question {n}")
        add(server, "assistant", [{"type": "text", "text": "look"}, use(f"c{n}", path=f"{n}.txt")])
        add(server, "tool", result(f"c{n}", f"text {n}"))
        add(server, "assistant", f"answer {n}")
    server.request("tiro/memo/set", {"memo": {"name": "Ann", "n": 2**70}, "summary": "All of it."})


def explained(server: Server, draft: str) -> dict[str, Any]:
    shown: dict[str, Any] = server.request("tiro/session/explain", {"draft": draft})
    return shown


def notices(server: Server, part: str) -> list[str]:
    told = [p["message"] for p in server.named("window/showMessage")]
    return [text for text in told if part in text]


def problems(server: Server, part: str) -> list[str]:
    return [text for text in server.request("tiro/status")["problems"] if part in text]


def test_b63_the_next_request_is_byte_for_byte_what_it_was(
    start: StartServer, home: Home, provider: Provider
) -> None:
    with_m2(home)
    server = start()
    fill(server)
    server.request("tiro/session/setAgent", {"name": "plan"})
    server.request("tiro/models/set", {"name": M2})
    before, shown = explained(server, "go on"), view(server)
    assert shown["total"] == 30
    copy = server.request("tiro/session/save", {"path": str(home.root / "copy.json")})
    server.request("tiro/session/save")
    ask(server, "go on")
    sent = provider.last.raw
    server.kill()

    again = start()
    loaded = again.request("tiro/session/load", {"path": copy["path"]})
    same = ("title", "agent", "model", "messages", "total", "memo", "summary", "turns")
    assert {key: loaded[key] for key in same} == {key: shown[key] for key in same}
    assert json.dumps(explained(again, "go on")) == json.dumps(before)
    ask(again, "go on")
    assert provider.last.raw == sent, "memo, agent's rules, tools, model and image as before"
    assert provider.last.body["model"] == OTHER
    assert "All of it." in provider.last.system
    assert "Ann" in provider.last.system
    assert notices(again, "not there any more") == []


def test_b63_a_client_rebuilds_its_view_page_by_page(start: StartServer, home: Home) -> None:
    """In order, without a gap or a message twice, over archive and window, and it is an answer."""
    server = start()
    fill(server)
    server.request("tiro/session/configure", {"maxHistory": 11})
    whole = view(server, limit=1000)["messages"]
    assert [m["seq"] for m in whole] == list(range(1, 31))
    server.request("tiro/session/save")
    server.shutdown()
    again = start()
    again.request("tiro/session/load", {"latest": True})
    pages: list[Any] = []
    page = view(again, limit=7)["messages"]
    while page:
        pages = page + pages
        page = view(again, limit=7, beforeSeq=pages[0]["seq"])["messages"]
    assert pages == whole
    assert again.events() == [], "a replay is no turn"


def lost_agent(start: StartServer, home: Home) -> Server:
    """A server with a session whose agent is not there any more; everything is allowed."""
    home.write_config(permission_set="open", permission=EVERYTHING)
    file = home.config_dir / "agents" / "mine.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\npermission: {edit: deny, write: deny, bash: deny}\n---\nYou are mine.")
    server = start()
    server.request("tiro/session/setAgent", {"name": "mine"})
    add(server, "user", "hello")
    server.request("tiro/session/save")
    server.shutdown()
    file.unlink()
    server = start()
    server.request("tiro/session/load", {"latest": True})
    return server


def run(server: Server, provider: Provider, *uses: tuple[str, str, Any]) -> list[str]:
    """A turn with these tool uses, all of them answered with no: which ones were asked about."""
    asked: list[str] = []

    def refuse(params: Any) -> dict[str, Any]:
        asked.append(params["toolUse"]["name"])
        return {"decision": "reject"}

    server.on_request("tiro/permission/request", refuse)
    provider.script(replies.tools(*uses))
    ask(server, "work")
    return sorted(asked)


def test_b63_a_lost_agent_is_told_and_widens_no_rights(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """M4.3: until an agent is selected all but reading asks, whatever the configuration allows."""
    server = lost_agent(start, home)
    home.write("a.txt", "as it was")
    assert view(server)["agent"] is None
    assert len(problems(server, "'mine'")) == 1
    assert len(notices(server, "'mine'")) == 1
    work = [
        ("c1", "write_file", {"path": "new.txt", "content": "written"}),
        ("c2", "run_command", {"command": "rm a.txt"}),
        ("c3", "run_command", {"command": "ls"}),
        ("c4", "read_file", {"path": "a.txt"}),
    ]
    assert run(server, provider, *work) == ["run_command", "run_command", "write_file"]
    assert [path.name for path in home.workspace.iterdir()] == ["a.txt"]
    told = [m["content"] for m in provider.last.messages if m["role"] == "tool"]
    assert "as it was" in told[-1]
    assert len(notices(server, "'mine'")) == 1, "told once"
    path = Path(server.request("tiro/session/save")["path"])
    assert stored(path)["agent"] == "mine", "the name stays, also after a turn"
    server.request("tiro/session/setAgent", {"name": "build"})
    assert problems(server, "'mine'") == []
    assert run(server, provider, ("d1", "run_command", {"command": "ls"})) == []
    server.request("tiro/session/save")
    assert (view(server)["agent"], stored(path)["agent"]) == ("build", "build")


def gone(start: StartServer, home: Home) -> Server:
    """A server with a session whose model's provider is not configured any more."""
    with_m2(home)
    server = start()
    server.request("tiro/models/set", {"name": M2})
    add(server, "user", "hello")
    server.request("tiro/session/save")
    server.shutdown()
    home.write_config()
    server = start()
    server.request("tiro/session/load", {"latest": True})
    return server


def test_b63_a_model_without_a_provider_gives_way_to_the_configured_one(
    start: StartServer, home: Home, provider: Provider
) -> None:
    server = gone(start, home)
    assert len(notices(server, M2)) == 1
    assert len(problems(server, M2)) == 1
    assert server.request("tiro/status")["model"] == PLAIN_MODEL
    assert server.request("tiro/models/list")["current"] == PLAIN_MODEL
    assert explained(server, "go on")["model"] == PLAIN_MODEL
    assert ask(server, "go on")["text"] == "ok"
    assert provider.last.body["model"] == MODEL
    assert len(notices(server, M2)) == 1, "told once"
    path = Path(server.request("tiro/session/save")["path"])
    assert stored(path)["model"] == M2, "it is the user who chooses another one"
    server.request("tiro/models/set", {"name": PLAIN_MODEL})
    assert problems(server, M2) == []
    server.request("tiro/session/save")
    assert stored(path)["model"] == PLAIN_MODEL


@pytest.mark.parametrize(
    "config",
    [
        {"model": None},
        {"providers": {"work": {"api": "openai"}}},
        {"providers": {"work": 5}},
        {"providers": {"work": {"api": "opnai", "base_url": "http://127.0.0.1:9/v1"}}},
    ],
    ids=["no model is set", "no address", "no table", "a slip"],
)
def test_b63_nobody_else_answers_where_no_model_is_set_or_the_provider_is_only_wrong(
    start: StartServer, home: Home, provider: Provider, config: Any
) -> None:
    with_m2(home)
    server = start()
    server.request("tiro/models/set", {"name": M2})
    add(server, "user", "hello")
    server.request("tiro/session/save")
    server.shutdown()
    home.write_config(**config)
    server = start()
    server.request("tiro/session/load", {"latest": True})
    error = server.error("tiro/turn/start", {"prompt": "go on"})
    assert error.kind == "modelNotConfigured"
    assert "choose another model" in error.message
    assert provider.chats == []
