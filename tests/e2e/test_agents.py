"""Agents through the real server: listed, selected, restored, in files, and at work for another."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import MODEL, Provider
from tests.e2e.replies import Hold
from tests.e2e.talk import ask, begin_ask, view, window
from tests.e2e.test_commands import run
from tests.e2e.test_resume import notices, problems
from tests.e2e.turns import events
from tests.sizes import PATIENCE

READING = {"read_file", "list_files", "glob", "grep"}
WRITING = {"write_file", "edit_file", "multi_edit"}


def answering(server: Server, decision: str) -> list[dict[str, Any]]:
    """Give every question this answer, and give what was asked."""
    asked: list[dict[str, Any]] = []

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {"decision": decision}

    server.on_request("tiro/permission/request", answer)
    return asked


def test_all_agents_are_listed_with_what_they_are_offered(server: Server) -> None:
    """M5.2, M5.5, M5.8 to M5.10: plan may write plans, explore only reads, writers have nothing."""
    found = {
        agent["name"]: agent
        for agent in server.request("tiro/agents/list", {"all": True})["agents"]
    }
    assert {name: (a["mode"], a["hidden"], a["native"]) for name, a in found.items()} == {
        "build": ("primary", False, True),
        "plan": ("primary", False, True),
        "general": ("subagent", True, True),
        "explore": ("subagent", False, True),
        "compaction": ("primary", True, True),
        "title": ("primary", True, True),
        "summary": ("primary", True, True),
    }
    tools = {name: set(agent["tools"]) for name, agent in found.items()}
    every = READING | WRITING | {"run_command"}
    assert tools["build"] == tools["plan"] == every | {"delegate"}
    assert tools["general"] == every
    assert tools["explore"] == READING | {"run_command"}
    assert tools["compaction"] == tools["title"] == tools["summary"] == set()
    shown = server.request("tiro/agents/list")
    assert [agent["name"] for agent in shown["agents"]] == ["build", "plan"]
    assert shown["default"] == "build"


def test_the_first_prompt_gives_the_default_agent_and_no_other_changes_it(
    start: StartServer, home: Home
) -> None:
    """M5.4: it stays until it is changed, and is restored."""
    server = start()
    assert view(server)["agent"] is None
    ask(server)
    assert view(server)["agent"] == "build"
    ask(server, agent="plan")
    assert view(server)["agent"] == "build", "another one for a turn is for this turn"
    run(server, "tiro.selectAgent", "plan")
    run(server, "tiro.saveSession")
    server.shutdown()
    home.write_config(agent="build")
    server = start()
    server.request("tiro/session/load", {"latest": True})
    assert run(server, "tiro.showCurrentAgent")["agent"]["name"] == "plan"
    ask(server)
    assert view(server)["agent"] == "plan"


MINE = """---
description: Mine
mode: primary
temperature: 0.25
top_p: 0.5
model: fake/mine
steps: 2
color: teal
options: {seed: 7, max_tokens: 99, stream: false}
tools: [read, glob]
---
You are mine.
"""
THEIRS = """---
description: Theirs
options: {seed: 8, service_tier: priority}
permission: {write: allow, bash: deny}
---
You are theirs.
"""


def test_agents_in_files_are_selected_obeyed_and_restored(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """M5.3, M5.5, M5.11: what a file says reaches the provider; a workspace's allow asks."""
    (home.config_dir / "agents").mkdir()
    (home.config_dir / "agents" / "mine.md").write_text(MINE)
    (home.config_dir / "agents" / "hidden.md").write_text("---\nhidden: true\n---\nUnseen.")
    home.write(".tiro/agents/theirs.md", THEIRS)
    home.write(".tiro/agents/plain.md", "No front matter.")
    server = start()
    listed = {agent["name"]: agent for agent in server.request("tiro/agents/list")["agents"]}
    assert list(listed) == ["build", "plan", "mine", "theirs"]
    assert [agent["color"] for agent in listed.values()] == [None, None, "teal", None]
    told = "\n".join(server.request("tiro/status")["problems"])
    assert "options.stream is Tiro's own to say" in told
    assert "options.service_tier must be a number in an agent of a workspace" in told
    assert run(server, "tiro.selectAgent", "mine")["agent"]["tools"] == [
        "read_file", "list_files", "glob",
    ]  # fmt: skip
    provider.script(*[replies.tools((f"c{n}", "glob", {"pattern": "*"})) for n in range(3)])
    assert ask(server)["stopReason"] == "max_steps"
    assert len(provider.chats) == 2
    body = provider.last.body
    assert (body["temperature"], body["top_p"], body["model"]) == (0.25, 0.5, "mine")
    assert (body["seed"], body["max_tokens"], body["stream"]) == (7, 99, True)
    assert "You are mine." in provider.last.system
    assert provider.last.tool_names == ["read_file", "list_files", "glob"]
    run(server, "tiro.saveSession")
    server.shutdown()

    server = start()
    server.request("tiro/session/load", {"latest": True})
    provider.reset()
    ask(server)
    assert view(server)["agent"] == "mine"
    assert (provider.last.body["temperature"], provider.last.body["model"]) == (0.25, "mine")
    run(server, "tiro.selectAgent", "theirs")
    asked = answering(server, "reject")
    provider.script(replies.tools(("d1", "write_file", {"path": "x", "content": "x"})))
    ask(server)
    assert [(a["agent"], a["toolUse"]["name"]) for a in asked] == [("theirs", "write_file")]
    assert "run_command" not in provider.last.tool_names
    assert (provider.last.body["model"], provider.last.body["seed"]) == (MODEL, 8)
    assert "service_tier" not in provider.last.body
    assert not (home.workspace / "x").exists()


def test_agents_follow_their_files_while_the_server_runs(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """M5.11, M4.3: added, changed, broken, removed and back again; rights get no wider."""
    home.write_config(permission={"bash": "allow"})
    server = start()
    asked = answering(server, "reject")
    run_it = replies.tools(("b1", "run_command", {"command": "touch new"}))
    server.request("tiro/session/configure", {"title": "t"})
    assert server.error("tiro/session/setAgent", {"name": "mine"}).code == -32030
    file = home.config_dir / "agents" / "mine.md"
    file.parent.mkdir()
    file.write_text("---\npermission: {bash: deny}\n---\nFirst.")
    assert "mine" in [agent["name"] for agent in server.request("tiro/agents/list")["agents"]]
    server.request("tiro/session/setAgent", {"name": "mine"})
    provider.script(run_it)
    ask(server)
    assert provider.last.system == "First."
    assert "run_command" not in provider.last.tool_names
    file.write_text("---\npermission: {bash: deny}\n---\nSecond, as of now.")
    ask(server)
    assert provider.last.system == "Second, as of now."
    for broken in ("---\npermission: {bash: dney}\n---\nThird.", None):
        file.unlink() if broken is None else file.write_text(broken)
        provider.script(run_it)
        ask(server)
        assert provider.last.system != "Second, as of now."
        assert asked.pop()["rule"] == "the agent 'mine' is missing: ask"
        told = problems(server, "mine.md") + problems(server, "'mine'")
        assert len(told) == 1 + (broken is not None)
        assert notices(server, "'mine' is not there any more")
    assert len(notices(server, "dney")) == 1, "what is wrong with it is told when it is found"
    file.write_text("---\npermission: {bash: deny}\n---\nBack.")
    ask(server)
    assert provider.last.system == "Back."
    assert not problems(server, "mine")
    assert not asked
    assert not (home.workspace / "new").exists()


# One works for another


def task(agent: str = "general") -> replies.Reply:
    return replies.tools(("d1", "delegate", {"agent": agent, "task": "write it"}))


def test_work_of_a_sub_agent_is_seen_asked_about_and_undone_with_its_caller_s_turn(
    server: Server, provider: Provider
) -> None:
    """M5.9: the question is in its name, under its own id; the ledger has its edits as the turn's.

    The caller's window gets its last answer alone.
    """
    old = server.home.write("old.txt", "old\n")
    asked = answering(server, "once")
    provider.script(
        task(),
        replies.tools(
            ("w1", "write_file", {"path": "new.txt", "content": "new\n"}),
            ("r1", "read_file", {"path": "old.txt"}),
        ),
        replies.tools(("w2", "write_file", {"path": "old.txt", "content": "changed\n"})),
        replies.text("I wrote it."),
        replies.tools(("w1", "write_file", {"path": "own.txt", "content": "own\n"})),
        replies.text("All done."),
    )
    done = ask(server, "let it be written")
    assert done["text"] == "All done."
    seen = [(a["agent"], a["toolUse"]["id"], a["turnId"]) for a in asked]
    turn = done["turnId"]
    assert seen == [
        ("general", "d1/w1", turn), ("general", "d1/w2", turn), ("build", "w1", turn),
    ]  # fmt: skip
    uses = [e for e in events(server, done) if e["type"] == "toolUse"]
    under = {e["toolUse"]["id"]: e.get("parentToolUseId") for e in uses}
    assert under == {"d1": None, "d1/w1": "d1", "d1/r1": "d1", "d1/w2": "d1", "w1": None}
    last = {e["toolUse"]["id"]: e["status"] for e in uses}
    assert set(last.values()) == {"done"}
    results = [e["toolUseId"] for e in events(server, done) if e["type"] == "toolResult"]
    assert sorted(results) == ["d1", "d1/r1", "d1/w1", "d1/w2", "w1"]
    assert [role for role, _ in window(server)] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip
    assert window(server)[2][1]["content"] == "I wrote it."

    edits = server.request("tiro/edits/list")["edits"]
    mine = [(Path(e["path"]).name, e["undone"]) for e in edits if e["turnId"] == turn]
    assert sorted(mine) == [("new.txt", False), ("old.txt", False), ("own.txt", False)]
    undone = server.request("tiro/edits/undo", {"turnId": turn})["paths"]
    assert sorted(Path(path).name for path in undone) == ["new.txt", "old.txt", "own.txt"]
    assert old.read_text() == "old\n"
    assert not [name for name in ("new.txt", "own.txt") if (server.home.workspace / name).exists()]


@pytest.mark.parametrize("when", ["it asks", "it speaks"])
def test_a_cancel_while_a_sub_agent_works(server: Server, provider: Provider, when: str) -> None:
    """Its work ends, nothing is written, and each tool use has one result."""
    hold = Hold()
    write = replies.tools(("w1", "write_file", {"path": f"{when}.txt", "content": "x"}))
    speaks = replies.stream(replies.text_chunk("half"), hold)
    provider.script(task(), write if when == "it asks" else speaks)
    server.on_request("tiro/permission/request", lambda _: hold.released.wait(PATIENCE) and None)
    turn = begin_ask(server, "go")
    if when == "it asks":
        server.wait_until(
            lambda: any(r["method"] == "tiro/permission/request" for r in server.requests),
            "the question",
        )
    else:
        server.wait_event("toolOutput", toolUseId="d1")
    assert server.request("tiro/turn/cancel") == {"cancelled": True}
    done = turn.result()
    hold.release()
    assert done["stopReason"] == "cancelled"
    last = {e["toolUse"]["id"]: e["status"] for e in events(server, done) if e["type"] == "toolUse"}
    assert last == {"d1": "cancelled"} | ({"d1/w1": "cancelled"} if when == "it asks" else {})
    assert [role for role, _ in window(server)] == ["user", "assistant", "tool"]
    assert window(server)[2][1]["tool_use_id"] == "d1"
    assert not (server.home.workspace / f"{when}.txt").exists()
    assert ask(server, "go on")["text"] == "ok"


def test_a_sub_agent_may_do_nothing_that_its_caller_may_not(
    server: Server, provider: Provider
) -> None:
    """M5.9: for plan it writes plans and nothing else, and nobody is asked about the rest."""
    server.request("tiro/session/setAgent", {"name": "plan"})
    asked = answering(server, "once")
    provider.script(
        task(),
        replies.tools(
            ("w1", "write_file", {"path": "code.py", "content": "x"}),
            ("w2", "write_file", {"path": ".tiro/plan/idea.md", "content": "x"}),
            ("b1", "run_command", {"command": "touch code.py"}),
        ),
    )
    done = ask(server)
    last = {e["toolUse"]["id"]: e["status"] for e in events(server, done) if e["type"] == "toolUse"}
    assert last == {"d1": "done", "d1/w1": "rejected", "d1/w2": "done", "d1/b1": "rejected"}
    assert {a["toolUse"]["id"] for a in asked} <= {"d1/w2"}
    assert not (server.home.workspace / "code.py").exists()
    assert (server.home.workspace / ".tiro/plan/idea.md").read_text() == "x"
