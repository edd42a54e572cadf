"""Who may do what, over the wire: permissions/explain, and a session whose agent is missing."""

import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.provider import Provider
from tests.e2e.talk import ask, begin_ask
from tests.sizes import PATIENCE


def explained(server: Server, tool: str, given: dict[str, Any], **more: Any) -> tuple[str, ...]:
    params = {"tool": tool, "input": given, **more}
    found = server.request("tiro/permissions/explain", params)
    return found["decision"], found["rule"], found["source"]


def test_explain_says_what_would_be_decided_and_why(server: Server) -> None:
    """M5.6: the decision names its rule, and whose rule it is."""
    write = {"path": "a.py", "content": "x"}
    assert explained(server, "read_file", {"path": ".env"}) == (
        "deny",
        "read: *.env deny",
        "default",
    )
    assert explained(server, "write_file", write) == ("ask", "write: * ask", "default")
    assert explained(server, "write_file", write, agent="plan") == (
        "deny",
        "write: * deny",
        "agent plan",
    )
    assert explained(server, "run_command", {"command": "ls"}, agent="explore") == (
        "allow",
        "bash: <read-only> allow",
        "agent explore",
    )
    assert explained(server, "run_command", {"command": "ls; x"}, agent="plan")[0] == "deny"
    kind, rule, _ = explained(server, "read_file", {"path": "../../x"})
    assert (kind, rule.startswith("external_directory: ask (/")) == ("ask", True)


def test_explain_names_all_rules_that_decide_together(server: Server) -> None:
    given = {"tool": "run_command", "input": {"command": "make; touch ../x"}}
    found = server.request("tiro/permissions/explain", given)
    outside = str(server.home.workspace.parent / "x")
    assert (found["decision"], found["rule"]) == ("ask", "bash: ask")
    assert found["rules"] == [
        {"rule": "bash: ask", "source": "default", "about": "make"},
        {"rule": "bash: ask", "source": "default", "about": "touch ../x"},
        {
            "rule": f"external_directory: ask ({outside})",
            "source": "default",
            "about": outside,
        },
    ]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"tool": "nothing", "input": {}}, -32602),
        ({"tool": "read_file", "input": {"path": 5}}, -32602),
        ({"tool": "read_file", "input": {"path": "a\0"}}, -32602),
        ({"tool": "read_file", "input": {"path": "a"}, "agent": "nobody"}, -32030),
        ({"tool": "read_file"}, -32602),
    ],
)
def test_explain_refuses_what_there_is_not(server: Server, params: Any, code: int) -> None:
    assert server.error("tiro/permissions/explain", params).code == code


def test_lost_agent_asks_until_the_user_selects_one(server: Server, provider: Provider) -> None:
    """M4.3, B63: for everything but reading, over turns, whatever has been answered "always"."""
    server.request("tiro/session/addMessage", {"role": "user", "content": "hello"})
    copy = server.home.workspace.parent / "copy.json"
    server.request("tiro/session/save", {"path": str(copy)})
    stored = json.loads(copy.read_text(encoding="utf-8"))
    stored["agent"] = "gone"
    copy.write_text(json.dumps(stored), encoding="utf-8")
    server.request("tiro/session/load", {"path": str(copy)})
    rules: list[str] = []

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        rules.append(params["rule"])
        return {"decision": "always"}

    server.on_request("tiro/permission/request", answer)
    server.home.write("a.txt", "a\n")
    for at in (1, 2):
        provider.script(
            replies.tools((f"r{at}", "read_file", {"path": "a.txt"})),
            replies.tools((f"w{at}", "run_command", {"command": "true"})),
        )
        ask(server, "go on")
    assert rules == ["bash: ask", "the agent 'gone' is missing: ask"]
    assert server.request("tiro/session/getAgent")["agent"] is None
    server.request("tiro/session/setAgent", {"name": "build"})
    provider.script(replies.tools(("w3", "run_command", {"command": "true"})))
    ask(server, "go on")
    assert len(rules) == 2


@pytest.mark.parametrize(("name", "is_written"), [("plan", False), ("build", True)])
def test_an_answer_holds_under_the_agent_that_is_selected_by_then(
    server: Server, provider: Provider, name: str, is_written: bool
) -> None:
    """M5.8: who changes to `plan` while a question is open lets nothing be written by a "yes"."""

    answer = replies.Hold()

    def late(_: Any) -> dict[str, Any]:
        answer.reached.set()
        answer.released.wait(PATIENCE)
        return {"decision": "once"}

    server.on_request("tiro/permission/request", late)
    provider.script(
        replies.tools(("w1", "write_file", {"path": "new.txt", "content": "x"})),
        replies.text("ok"),
    )
    turn = begin_ask(server, "go on")
    answer.wait()
    server.request("tiro/session/setAgent", {"name": name})
    answer.release()
    assert turn.result()["stopReason"] == "end_turn"
    assert (server.home.workspace / "new.txt").exists() == is_written
    server.request("tiro/session/setAgent", {"name": "build"})


@pytest.mark.parametrize("name", ["build", "general", "explore"])
def test_a_session_file_from_elsewhere_brings_no_rights(
    server: Server, provider: Provider, name: str
) -> None:
    """Its rules and its agent are nobody's answers, whoever wrote the file."""
    root = server.home.workspace
    server.request("tiro/session/addMessage", {"role": "user", "content": "hello"})
    file = root / f"{name}.json"
    server.request("tiro/session/save", {"path": str(file)})
    rule = {"key": "bash", "exactly": [str(root), "touch pwned"], "decision": "allow"}
    foreign = {**json.loads(file.read_text(encoding="utf-8")), "rules": [rule], "agent": name}
    file.write_text(json.dumps(foreign), encoding="utf-8")
    server.request("tiro/session/load", {"path": str(file)})
    asked: list[str] = []

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["rule"])
        return {"decision": "reject"}

    server.on_request("tiro/permission/request", answer)
    provider.script(replies.tools(("c1", "run_command", {"command": "touch pwned"})))
    ask(server, "go on")
    assert not (root / "pwned").exists()
    assert asked == ["bash: ask"]
    found = server.request("tiro/session/getAgent")["agent"]
    assert (found and found["name"]) == (name if name == "build" else None)
