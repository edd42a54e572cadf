"""`tiro/session/explain`: the very request that the next prompt sends, and nothing is changed."""

import json
import threading
from typing import Any

import pytest

from tests.e2e import anthropic_replies, replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import ASKING, Home
from tests.e2e.provider import API_KEY, MODEL, Provider
from tests.e2e.talk import add, ask, at_rest, begin_ask, check_size, result, use, view
from tests.processes import children_of
from tests.sizes import PATIENCE


def explain(server: Server, draft: Any = None, **more: Any) -> dict[str, Any]:
    explained: dict[str, Any] = server.request("tiro/session/explain", {"draft": draft, **more})
    check_size(explained["tokens"])
    return explained


def body_of(explained: dict[str, Any]) -> dict[str, Any]:
    """The parts put together as PROTOCOL.md says."""
    system, messages = explained["system"], explained["messages"]
    if isinstance(system, str):
        body = {"messages": [{"role": "system", "content": system}, *messages]}
    else:
        body = {"system": system, "messages": messages}
    return {**explained["parameters"], **body, "tools": explained["tools"]}


def check_exact(server: Server, provider: Provider, draft: Any, **more: Any) -> dict[str, Any]:
    """Explain a draft, then send it: the provider gets what was explained."""
    explained = explain(server, draft, **more)
    count = len(provider.chats)
    ask(server, draft, **more)
    sent = provider.chats[count].body
    assert body_of(explained) == sent
    assert json.dumps(explained["messages"][-1]) == json.dumps(sent["messages"][-1])
    return explained


def test_an_empty_session_s_first_request(server: Server, provider: Provider) -> None:
    explained = check_exact(server, provider, "hello")
    assert explained["model"] == f"fake/{MODEL}"
    assert explained["messages"] == [{"role": "user", "content": "hello"}]
    assert [tool["function"]["name"] for tool in explained["tools"]]
    assert explained["parameters"]["model"] == MODEL
    assert (explained["left"], explained["repairs"]) == ([], [])


def test_the_instructions_of_the_workspace(server: Server, provider: Provider) -> None:
    """AGENTS.md is in the system prompt, is explained and counted, and changes with the file."""
    size = explain(server)["tokens"]["breakdown"]["system"]
    server.home.write("AGENTS.md", "Always answer in verse.\n")
    explained = check_exact(server, provider, "hello")
    assert explained["system"].endswith("Always answer in verse.")
    assert explained["tokens"]["breakdown"]["system"] > size
    server.home.write("AGENTS.md", "Always answer in prose.\n")
    assert check_exact(server, provider, "again")["system"].endswith("Always answer in prose.")


def test_a_conversation_with_everything_in_it(server: Server, provider: Provider) -> None:
    """Tool pairs, odd ids, attachments, thinking, instructions, a session that needs repairs."""
    server.home.write("a.py", "one\ntwo\nthree\n")
    add(server, "system", "Be kind.")
    add(server, "user", "first")
    add(server, "assistant", [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "I look"},
        use("call|with:odd characters", path="a.py"),
        use("c2", path="b.py"),
    ])  # fmt: skip
    add(server, "user", "go on")
    server.request("tiro/session/addToolResult", {"toolUseId": "c2", "content": [
        {"type": "text", "text": "found"}, {"type": "text", "text": " "}
    ]})  # fmt: skip
    add(server, "assistant", [{"type": "thinking", "thinking": "only thoughts"}])
    explained = check_exact(
        server,
        provider,
        [{"type": "text", "text": "and now?"}, {"type": "text", "text": "quickly"}],
        attachments=[
            {"kind": "file", "path": str(server.home.workspace / "a.py")},
            {
                "kind": "selection",
                "path": str(server.home.workspace / "a.py"),
                "range": {"start": {"line": 1, "character": 0}, "end": {"line": 2, "character": 0}},
            },
            {"kind": "text", "text": "a note"},
        ],
        agent="plan",
        model="fake/other-model",
    )
    assert explained["model"] == "fake/other-model"
    assert "Be kind." in explained["system"]
    assert explained["left"] == [{"seq": 6, "reason": "thinking"}]
    assert explained["repairs"] == [
        {"seq": 1, "rule": "system_prompt"},
        {"seq": 3, "rule": "missing_result"},
        {"seq": 3, "rule": "thinking"},
        {"seq": 5, "rule": "moved_result"},
    ]
    explained = check_exact(server, provider, "again")
    assert (explained["model"], view(server)["agent"]) == ("fake/other-model", "plan")


def test_the_other_style_with_thinking_of_two_models(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """B61: signed thinking goes back to the model that wrote it, and to no other."""
    server = start()
    add(server, "user", "first")
    add(server, "assistant", [{"type": "thinking", "thinking": "hm", "signature": "foreign"}])
    add(server, "user", "second")
    claude = f"claude/{MODEL}"
    explained = check_exact(server, provider, "look", model=claude)
    assert explained["system"][0]["type"] == "text"
    assert explained["left"] == [{"seq": 2, "reason": "thinking"}]
    provider.script(
        anthropic_replies.answer(
            anthropic_replies.thinking_block(0, "own thoughts", signature="Eq+/aa=="),
            anthropic_replies.text_block(1, "an answer"),
        )
    )
    ask(server, "think", model=claude)
    explained = check_exact(server, provider, "and so?", model=claude)
    assert "own thoughts" in json.dumps(explained["messages"])
    assert (explained["left"], explained["repairs"]) == ([{"seq": 2, "reason": "thinking"}], [])
    explained = check_exact(server, provider, "and now?", model=f"fake/{MODEL}")
    assert "own thoughts" not in json.dumps(explained["messages"])
    assert explained["repairs"] == [{"seq": 7, "rule": "thinking"}]


@pytest.mark.parametrize("limit", ["max_history", "budget"])
def test_what_the_limits_would_do_before_the_request(
    start: StartServer, home: Home, provider: Provider, limit: str
) -> None:
    """U8.2: the request after the resize, and which messages it costs."""
    if limit == "max_history":
        home.write_config(session={"max_history": 5})
    else:
        models = {MODEL: {"context_window": 6000}}
        home.write_config(providers={"fake": home.fake(models=models)})
    server = start()
    text = "word " * 250
    for _ in range(3 if limit == "max_history" else 8):
        add(server, "user", text)
        add(server, "assistant", text)
    before = at_rest(server)
    explained = explain(server, "and so on")
    reasons = [left["reason"] for left in explained["left"]]
    assert reasons[-1] == "over_limit"
    assert reasons == (
        ["evicted", "over_limit"] if limit == "max_history" else ["over_limit"] * len(reasons)
    )
    assert view(server) == before
    check_exact(server, provider, "and so on")
    evicted = [left["seq"] for left in explain(server)["left"]]
    assert evicted[: len(explained["left"])] == [left["seq"] for left in explained["left"]]


def test_it_changes_stores_and_asks_nothing(server: Server, provider: Provider) -> None:
    mark = len(server.notifications)
    explain(server, "hello", attachments=[{"kind": "text", "text": "x"}])
    explain(server)
    assert view(server)["id"] is None
    assert view(server)["total"] == 0
    assert not [path for path in server.home.sessions.glob("*") if view(server)["id"]]
    assert (provider.requests, server.notifications[mark:]) == ([], [])
    ask(server, "hello")
    before, files = at_rest(server), server.home.contents(server.home.sessions)
    explain(server, "again", agent="plan", model="fake/other")
    assert view(server) == before
    assert server.home.contents(server.home.sessions) == files


@pytest.mark.parametrize("draft", [None, "", "  \n", []])
def test_without_a_draft_it_is_the_conversation_so_far(
    server: Server, provider: Provider, draft: Any
) -> None:
    add(server, "user", "hi")
    assert explain(server, draft)["messages"] == [{"role": "user", "content": "hi"}]
    assert explain(server, "x")["tokens"] == server.request(
        "tiro/session/contextSize", {"draft": "x"}
    )


def test_what_a_turn_refuses_it_refuses_too(server: Server) -> None:
    method = "tiro/session/explain"
    assert server.error(method, {"draft": "x", "agent": "nobody"}).kind == "agentNotFound"
    assert server.error(method, {"draft": "x", "model": "no/m"}).kind == "modelNotConfigured"
    assert server.error(method, {"draft": [{"type": "text"}]}).kind == "invalidMessage"
    assert server.error(method, {"draft": 5}).code == -32602
    attached = [{"kind": "file", "path": str(server.home.workspace / "none.txt")}]
    assert server.error(method, {"draft": "x", "attachments": attached}).code == -32602
    assert server.error(method, {"attachments": [{"kind": "text", "text": "x"}]}).code == -32602


def test_while_a_turn_runs_with_what_was_said_to_it(server: Server, provider: Provider) -> None:
    """A tool use that still runs has the made-up result that a kill would leave it with."""
    server.home.write(ASKING, "A")
    asked, answer = threading.Event(), threading.Event()

    def wait(_: Any) -> dict[str, Any]:
        asked.set()
        assert answer.wait(PATIENCE)
        return {"decision": "once"}

    server.on_request("tiro/permission/request", wait)
    provider.script(replies.tools(("c1", "read_file", {"path": ASKING})), replies.text("done"))
    turn = begin_ask(server, "go")
    assert asked.wait(PATIENCE)
    server.request("tiro/turn/steer", {"text": "use tabs"})
    explained = explain(server, "and then?")
    said = [m.get("content") for m in explained["messages"]]
    assert said[-2:] == ["use tabs", "and then?"]
    assert {"seq": 2, "rule": "missing_result"} in explained["repairs"]
    answer.set()
    assert turn.result()["text"] == "done"
    assert [m["content"] for m in provider.last.messages][-1] == "use tabs"


def test_no_key_is_in_it(server: Server, provider: Provider) -> None:
    add(server, "user", f"my key is {API_KEY}")
    add(server, "assistant", [use("c1", pattern=API_KEY)])
    add(server, "tool", result("c1", f"found {API_KEY}"))
    add(server, "system", f"The key: {API_KEY}")
    explained = explain(server, f"what is {API_KEY}?")
    assert API_KEY not in json.dumps(explained)
    assert json.dumps(explained).count("[secret]") == 5


def test_without_a_known_model_it_has_no_provider_s_form(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """Which model answers is known after the first prompt; finding out would ask providers."""
    home.write_config(model=None)
    server = start()
    explained = explain(server, "hello")
    assert explained["model"] is None
    assert explained["tokens"]["contextWindow"] is None
    assert explained["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    ]
    assert set(explained["tools"][0]) == {"name", "description", "input_schema"}
    assert explained["parameters"] == {}
    assert provider.requests == []
    ask(server, "hello")
    assert explain(server)["model"] == f"fake/{MODEL}"
    check_exact(server, provider, "more")


def test_a_local_model_is_not_started(start: StartServer, home: Home) -> None:
    home.write_config(model="local/some-model")
    server = start()
    explained = explain(server, "hello")
    assert explained["model"] == "local/some-model"
    assert explained["messages"] == [{"role": "user", "content": "hello"}]
    assert children_of(server.process.pid) == []
    assert not list((home.root / "cache").rglob("*.gguf"))


def test_a_request_that_is_too_large_to_send_is_explained(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """Whoever gets contextOverflow wants to see what it is that does not fit."""
    home.write_config(providers={"fake": home.fake(models={MODEL: {"context_window": 2000}})})
    server = start()
    draft = "word " * 10_000
    assert explain(server, draft)["tokens"]["ratio"] > 1.2
    assert begin_ask(server, draft).error().kind == "contextOverflow"
    assert provider.requests == []
