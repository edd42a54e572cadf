"""What survives: kill -9 at many moments, damaged disks, two processes in one directory."""

import json
import random
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer, Tell
from tests.e2e.home import ASKING, Home
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold, Reply
from tests.e2e.talk import (
    add,
    ask,
    begin_ask,
    latest,
    leftovers,
    stored,
    view,
    words,
)
from tests.sizes import PATIENCE, sized

pytestmark = pytest.mark.timeout(600)  # with --long

# kill -9


def test_every_acknowledged_message_survives_a_kill(
    start: StartServer, home: Home, record_property: Tell
) -> None:
    dice = random.Random(7)
    said: list[str] = []
    unanswered: list[str] = []
    home.write_config(session={"max_history": 100_000})
    for run in range(sized(fast=3, normal=8, long=100)):
        server = start()
        if run:
            kept = latest(server)
            assert kept[: len(said)] == said
            assert kept[len(said) :] == unanswered[: len(kept) - len(said)]
            said = kept
        deadline = time.monotonic() + dice.uniform(0.0, 0.3)
        number = 0
        while not number or time.monotonic() < deadline:
            said.append(f"run {run} message {number} " + "x" * dice.randrange(2000))
            add(server, "user", said[-1])
            number += 1
            if dice.random() < 0.1:
                server.request("tiro/session/save")
        unanswered = [f"run {run} last {n}" for n in range(dice.randrange(3))]
        for text in unanswered:
            server.begin("tiro/session/addMessage", {"role": "user", "content": text})
        server.kill()
    for name in ("kills", "served_kills"):
        record_property(name, run + 1)
    assert latest(start())[: len(said)] == said
    assert [p.name for p in home.sessions.iterdir() if ".bad" in p.name] == []
    assert leftovers(home) == []


def test_b10_a_kill_during_a_save_of_5_mb_leaves_a_whole_file(
    start: StartServer, home: Home
) -> None:
    dice = random.Random(3)
    server = start()
    for _ in range(5):
        add(server, "user", "x" * 1_000_000)
    id_ = server.request("tiro/session/save")["id"]
    for run in range(sized(fast=2, normal=4, long=50)):
        add(server, "user", f"run {run}")
        server.begin("tiro/session/save")
        time.sleep(dice.uniform(0.0, 0.05))
        server.kill()
        json.loads((home.sessions / f"{id_}.json").read_bytes())
        server = start()
        assert latest(server)[-1] == f"run {run}"
        add(server, "user", "writes again")
        assert leftovers(home) == []


def test_what_is_changed_in_a_session_survives_a_kill(start: StartServer) -> None:
    server = start()
    for text in ("one", "two", "three", "four"):
        add(server, "user", text)
    server.request("tiro/session/setAgent", {"name": "plan"})
    server.request("tiro/models/set", {"name": "fake/other"})
    server.request("tiro/state/set", {"key": "k", "value": {"b": 2**70}})
    server.request("tiro/session/configure", {"title": "T", "maxHistory": 3})
    server.request("tiro/session/editMessage", {"seq": 3, "content": "tre"})
    server.request("tiro/session/rewind", {"toSeq": 3})
    before = view(server)
    everything_before = view(server, limit=100, all=True)["messages"]
    server.kill()
    again = start()
    after = again.request("tiro/session/load", {"id": before["id"]})
    same = ("id", "title", "agent", "model", "messages", "total", "archived", "maxHistory",
            "turns", "memo", "state", "createdAt", "updatedAt")  # fmt: skip
    assert {k: after[k] for k in same} == {k: before[k] for k in same}
    assert view(again, limit=100, all=True)["messages"] == everything_before
    assert add(again, "user", "five")["seq"] == 5


def tool_turn(server: Server, provider: Provider, *, third: Any) -> None:
    """Start a turn of five tool uses whose third step is special."""
    for n in range(5):
        server.home.write(f"f{n}.txt", f"RESULT {n}")
    steps = [
        replies.tools((f"c{n}", "read_file", {"path": f"f{n}.txt"}), before=f"step {n}")
        for n in range(5)
    ]
    provider.script(*steps[:2], *third, *steps[3:])
    begin_ask(server, "work on it")


def check_resumed(server: Server, provider: Provider, results: int) -> list[dict[str, Any]]:
    """After a restart: the prompt and those results are there; one more prompt passes."""
    provider.reset()
    texts = latest(server)
    assert texts[0] == "work on it"
    for n in range(results):
        assert any(f"RESULT {n}" in t and t.startswith("result:") for t in texts)
    assert ask(server, "go on")["text"] == "ok"
    sent = provider.last.messages
    assert len(provider.chats) == 1, "nothing is run again by itself"
    assert sent[-1]["content"] == "go on"
    return [m for m in sent if m["role"] == "tool"]


def test_b05_killed_while_a_tool_runs(start: StartServer, provider: Provider) -> None:
    server = start()
    server.home.write(ASKING, "TOPSECRET")
    asked, killed = threading.Event(), threading.Event()

    def never(_: Any) -> dict[str, Any]:
        asked.set()
        killed.wait(PATIENCE)
        return {}

    server.on_request("tiro/permission/request", never)
    tool_turn(server, provider, third=[replies.tools(("c2", "read_file", {"path": ASKING}))])
    assert asked.wait(PATIENCE)
    server.kill()
    killed.set()
    told = check_resumed(start(), provider, results=2)
    assert [m["tool_call_id"] for m in told] == ["c0", "c1", "c2"]
    assert "interrupt" in told[-1]["content"].lower()
    assert "unknown" in told[-1]["content"].lower()


def test_b05_killed_between_a_result_and_the_next_request(
    start: StartServer, provider: Provider
) -> None:
    server = start()
    third = replies.tools(("c2", "read_file", {"path": "f2.txt"}))
    tool_turn(server, provider, third=[third, Reply([Hold()])])
    provider.wait_for(4)
    server.kill()
    told = check_resumed(start(), provider, results=3)
    assert ["RESULT" in m["content"] for m in told] == [True] * 3


def test_b05_killed_while_text_streams(start: StartServer, provider: Provider) -> None:
    server = start()
    hold = Hold()
    tool_turn(server, provider, third=[replies.stream(replies.text_chunk("half"), hold)])
    hold.wait()
    server.wait_event("text", delta="half")
    server.kill()
    told = check_resumed(start(), provider, results=2)
    assert len(told) == 2


def test_a_finished_message_is_stored_before_the_next_step(
    start: StartServer, provider: Provider
) -> None:
    server = start()
    hold = Hold()
    tool_turn(server, provider, third=[Reply([hold])])
    provider.wait_for(3)
    written = server.home.contents(server.home.sessions).values()
    assert any(b"RESULT 1" in content for content in written)
    server.kill()
    assert any("RESULT 1" in text for text in latest(start()))


# Damage


def a_journal(start: StartServer, home: Home) -> Path:
    """What a kill leaves of five messages; an idle moment between them would tidy it away."""
    for _ in range(20):
        server = start()
        for n in range(5):
            add(server, "user", f"m{n}")
        server.kill()
        for journal in home.sessions.glob("*.journal"):
            if all(b"m%d" % n in journal.read_bytes() for n in range(1, 5)):
                return journal
        shutil.rmtree(home.sessions)
    raise AssertionError("no journal holds four messages")


def test_a_torn_last_line_of_a_journal_is_cut_off(start: StartServer, home: Home) -> None:
    journal = a_journal(start, home)
    raw = journal.read_bytes()
    journal.write_bytes(raw + b'{"n": 99, "op": "add", "mess')
    server = start()
    assert latest(server) == [f"m{n}" for n in range(5)]
    add(server, "user", "m5")
    server.kill()
    assert latest(start()) == [f"m{n}" for n in range(6)]


def test_a_bad_line_in_a_journal_is_kept_aside_and_told(start: StartServer, home: Home) -> None:
    journal = a_journal(start, home)
    lines = journal.read_bytes().splitlines(keepends=True)
    bad = next(i for i, line in enumerate(lines) if b"m2" in line)
    lines[bad] = b"\x00" * 40 + b"\n"
    damaged = b"".join(lines)
    journal.write_bytes(damaged)
    server = start()
    texts = latest(server)
    assert [t for t in ("m0", "m1", "m3", "m4") if t in texts] == ["m0", "m1", "m3", "m4"]
    ask(server, "go on")
    (aside,) = home.sessions.glob("*.journal.bad-*")
    assert aside.read_bytes() == damaged


def test_an_outside_edit_is_respected(start: StartServer, home: Home) -> None:
    server = start()
    add(server, "user", "one")
    path = Path(server.request("tiro/session/save")["path"])
    content = stored(path)
    content["messages"][0]["content"] = "uno"
    content["title"] = "By hand"
    path.write_text(json.dumps(content))
    add(server, "user", "two")
    server.request("tiro/session/save")
    server.wait_notification("tiro/session/changed", lambda p: p["reason"] == "changedOnDisk")
    assert words(server) == ["uno", "two"]
    assert view(server)["title"] == "By hand"
    assert [m["content"] for m in stored(path)["messages"]] == ["uno", "two"]


def test_a_file_damaged_meanwhile_is_set_aside(start: StartServer, home: Home) -> None:
    server = start()
    add(server, "user", "one")
    path = Path(server.request("tiro/session/save")["path"])
    path.write_bytes(b"no session any more")
    add(server, "user", "two")
    server.request("tiro/session/save")
    assert [m["content"] for m in stored(path)["messages"]] == ["one", "two"]
    (aside,) = home.sessions.glob("*.bad-*")
    assert aside.read_bytes() == b"no session any more"
    assert aside.stat().st_mode & 0o777 == 0o600


def test_a_file_removed_meanwhile_is_written_again(start: StartServer, home: Home) -> None:
    server = start()
    add(server, "user", "one")
    path = Path(server.request("tiro/session/save")["path"])
    path.unlink()
    assert add(server, "user", "two")["stored"] is True
    server.request("tiro/session/save")
    assert [m["content"] for m in stored(path)["messages"]] == ["one", "two"]


def test_stale_files_of_dead_processes_are_cleared_away(start: StartServer, home: Home) -> None:
    server = start()
    add(server, "user", "one")
    path = Path(server.request("tiro/session/save")["path"])
    assert server.shutdown() == 0
    stale = path.with_name(f".{path.name}.999999.tmp")
    stale.write_bytes(b"half a snapsh")
    path.with_name("lonely.journal").write_bytes(b'{"journal": 1, "id": "lonely", "base": 0}\n')
    server = start()
    assert [row["path"] for row in server.request("tiro/session/list")["sessions"]] == [str(path)]
    assert latest(server) == ["one"]
    add(server, "user", "two")
    server.request("tiro/session/save")
    assert not stale.exists()
