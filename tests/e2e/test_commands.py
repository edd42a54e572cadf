"""Protocol section 7: the commands of any LSP client."""

import re
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold
from tests.e2e.talk import add, ask, begin_ask, view, words

BAD_PARAMS = -32602


def run(server: Server, command: str, *arguments: Any) -> Any:
    return server.request(
        "workspace/executeCommand", {"command": command, "arguments": list(arguments)}
    )


def fails(server: Server, command: str, *arguments: Any) -> int:
    params = {"command": command, "arguments": list(arguments)}
    return server.error("workspace/executeCommand", params).code


@pytest.fixture
def questions(server: Server) -> list[Any]:
    """Every `window/showMessageRequest`; all are dismissed."""
    asked: list[Any] = []

    def dismiss(params: Any) -> None:
        asked.append(params)

    server.on_request("window/showMessageRequest", dismiss)
    return asked


def test_show_session_gives_the_text_or_null(server: Server) -> None:
    assert run(server, "tiro.showSession") is None
    add(server, "user", "hello")
    assert run(server, "tiro.showSession") == "Session Summary:\n\n[USER] hello"
    assert server.request("workspace/executeCommand", {"command": "tiro.showSession"}) == (
        "Session Summary:\n\n[USER] hello"
    )


def test_clear_new_and_save_give_the_results_of_their_methods(server: Server) -> None:
    add(server, "user", "hello")
    saved = run(server, "tiro.saveSession")
    assert set(saved) >= {"path", "id", "bytes"}
    assert run(server, "tiro.clearSession") == {"cleared": 1, "savedAs": saved["path"]}
    add(server, "user", "again")
    shown = run(server, "tiro.newSession")
    assert (shown["total"], shown["id"]) == (0, None)
    assert run(server, "tiro.clearSession") == {"cleared": 0, "savedAs": None}


def test_load_takes_an_id_or_a_path(server: Server) -> None:
    add(server, "user", "hello")
    saved = run(server, "tiro.saveSession")
    for given in (saved["id"], saved["path"]):
        run(server, "tiro.clearSession")
        assert run(server, "tiro.loadSession", given)["messages"][0]["content"] == "hello"
    assert fails(server, "tiro.loadSession", "no-such-session") == -32014
    assert saved["id"] in [r["id"] for r in run(server, "tiro.listSessions")["sessions"]]


def test_load_without_a_name_asks_for_one_of_the_newest_five(
    server: Server, questions: list[Any]
) -> None:
    for number in range(7):
        add(server, "user", f"talk {number}")
        server.request("tiro/session/configure", {"title": f"Talk {number}"})
        run(server, "tiro.clearSession")
    assert run(server, "tiro.loadSession") is None
    titles = [action["title"] for action in questions[0]["actions"]]
    assert len(titles) == 5
    assert all(re.search(f"Talk {6 - n}", title) for n, title in enumerate(titles))
    server.on_request("window/showMessageRequest", lambda params: params["actions"][2])
    assert run(server, "tiro.loadSession")["messages"][0]["content"] == "talk 4"
    assert words(server) == ["talk 4"]


def test_agents_are_shown_and_selected(server: Server, questions: list[Any]) -> None:
    assert run(server, "tiro.showCurrentAgent") == {"agent": None}
    assert run(server, "tiro.selectAgent", "plan")["agent"]["name"] == "plan"
    assert run(server, "tiro.showCurrentAgent")["agent"]["name"] == "plan"
    assert fails(server, "tiro.selectAgent", "nobody") == -32030
    assert run(server, "tiro.selectAgent") is None
    titles = [action["title"] for action in questions[0]["actions"]]
    assert len(titles) == len(server.request("tiro/agents/list")["agents"])
    pick = next(a for a in questions[0]["actions"] if "build" in a["title"])
    server.on_request("window/showMessageRequest", lambda _: pick)
    assert run(server, "tiro.selectAgent")["agent"]["name"] == "build"
    assert view(server)["agent"] == "build"


def test_ask_runs_a_turn(server: Server, provider: Provider) -> None:
    provider.script(replies.text("the answer"))
    done = run(server, "tiro.ask", "the question")
    assert (done["text"], done["stopReason"]) == ("the answer", "end_turn")
    assert words(server) == ["the question", "the answer"]


@pytest.mark.parametrize("arguments", [[], [""], ["  "], [None], [5], [{}]])
def test_ask_without_a_prompt_is_refused(server: Server, arguments: list[Any]) -> None:
    assert fails(server, "tiro.ask", *arguments) == BAD_PARAMS


def test_cancel_stops_a_turn(server: Server, provider: Provider) -> None:
    assert run(server, "tiro.cancel") == {"cancelled": False}
    provider.script(replies.stream(replies.text_chunk("half"), Hold()))
    turn = begin_ask(server, "go")
    server.wait_event("text")
    assert run(server, "tiro.cancel") == {"cancelled": True}
    assert turn.result()["stopReason"] == "cancelled"


def test_resize_and_context_size(server: Server) -> None:
    ask(server)
    size = run(server, "tiro.contextSize")
    assert size["tokens"] == sum(size["breakdown"].values())
    assert set(run(server, "tiro.resizeSession")) >= {"decision", "evicted", "total"}


@pytest.mark.parametrize("command", ["tiro.nothing", "", "other.command", "tiro/session/get"])
def test_an_unknown_command_is_refused(server: Server, command: str) -> None:
    assert fails(server, command) == BAD_PARAMS


@pytest.mark.parametrize("params", [{}, {"command": 5}, {"command": None}, [], "tiro.ask"])
def test_odd_params_are_refused(server: Server, params: Any) -> None:
    assert server.error("workspace/executeCommand", params).code == BAD_PARAMS


@pytest.mark.parametrize("arguments", [{}, "x", 5])
def test_odd_arguments_are_refused(server: Server, arguments: Any) -> None:
    params = {"command": "tiro.clearSession", "arguments": arguments}
    assert server.error("workspace/executeCommand", params).code == BAD_PARAMS


@pytest.mark.parametrize("arguments", [None, [], [None]])
def test_missing_arguments_are_none(server: Server, arguments: Any) -> None:
    params = {"command": "tiro.clearSession", "arguments": arguments}
    assert server.request("workspace/executeCommand", params)["cleared"] == 0


def test_a_failing_question_gives_null(server: Server) -> None:
    add(server, "user", "x")
    run(server, "tiro.saveSession")
    assert run(server, "tiro.loadSession") is None  # the driver answers -32601
    assert words(server) == ["x"]
