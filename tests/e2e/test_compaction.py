"""The faults of other assistants around compaction (B02, B18 to B22), on the real server."""

import json
import re
import resource
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider, Recorded
from tests.e2e.talk import add, ask, begin_ask, result, text_of, until, use, view
from tests.sizes import PATIENCE

WORDS = "some words and more of them "
TOO_LONG = replies.error(400, "prompt is too long", code="context_length_exceeded")


def in_window(home: Home, window: int | None, **session: Any) -> None:
    """Configure a model with this context window."""
    models = {"fake-model": {} if window is None else {"context_window": window}}
    home.write_config(providers={"fake": home.fake(models=models)}, session=session)


def cursor_of(server: Server) -> int:
    """How far the memo has read."""
    return int(server.request("tiro/memo/get")["memoCursor"])


def groups(server: Server) -> None:
    """40 messages with tool uses, three of them at once in the middle of each ten."""
    for n in range(4):
        add(server, "user", f"question {n}")
        ids = [f"c{n}-{i}" for i in range(3)]
        add(server, "assistant", [use(id_, path="a.txt") for id_ in ids])
        for id_ in ids:
            add(server, "user", [result(id_, f"result of {id_}")])
        add(server, "assistant", f"answer {n}")
        for i in range(2):
            add(server, "assistant", [use(f"s{n}-{i}", path="b.txt")])
            add(server, "user", [result(f"s{n}-{i}")])


@pytest.mark.parametrize("kept", range(1, 12))
def test_b02_a_resize_at_any_place_leaves_whole_groups(
    server: Server, provider: Provider, kept: int
) -> None:
    """The strict provider takes the next request, wherever the natural cut falls."""
    groups(server)
    server.request("tiro/session/configure", {"limit": {"messages": kept}})
    server.request("tiro/session/resize", {"force": "lite"})
    assert ask(server, "go on")["stopReason"] == "end_turn"


@pytest.mark.parametrize("pinned", [2, 3, 5, 8])
def test_b02_a_compaction_that_was_too_long_is_asked_again_in_pieces(
    server: Server, provider: Provider, pinned: int
) -> None:
    """The retry is smaller, holds no half group, and neither does what stays by a pin."""
    groups(server)
    server.request("tiro/session/pin", {"seq": pinned, "pinned": True})
    provider.script(TOO_LONG)
    provider.otherwise(lambda _: replies.text("So far."))
    server.request("tiro/session/compact")
    first, *others = provider.chats
    assert others
    assert all(len(r.raw) <= len(first.raw) for r in others)
    assert ask(server, "go on")["stopReason"] == "end_turn"


def test_b18_a_kill_during_a_compaction_changes_no_file(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """B18 (iv): no partial summary anywhere, and the next prompt works."""
    server = start()
    groups(server)
    path = Path(server.request("tiro/session/save")["path"])
    before = {p.name: p.read_bytes() for p in path.parent.iterdir() if p.suffix == ".json"}
    hold = replies.Hold()
    provider.script(replies.Reply([replies.ROLE, replies.text_chunk("half a summary"), hold]))
    server.begin("tiro/session/compact")
    hold.wait()
    server.kill()
    after = {p.name: p.read_bytes() for p in path.parent.iterdir() if p.suffix == ".json"}
    assert after == before
    again = start()
    again.request("tiro/session/load", {"path": str(path)})
    assert (view(again)["summary"], len(view(again)["messages"])) == ("", 40)
    assert ask(again, "go on")["stopReason"] == "end_turn"


def test_b18_a_compaction_that_no_disk_takes_loses_nothing(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """B18 (v): a kill after it leaves the history of before; a disk that works again has all."""
    server = start()
    groups(server)
    path = Path(server.request("tiro/session/save")["path"])
    before = path.read_bytes()
    _, hard = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    provider.otherwise(lambda _: replies.text("They asked four questions."))
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, hard))
    assert server.request("tiro/session/compact")["total"] == 0
    server.wait_notification("tiro/session/changed", lambda told: told["reason"] == "saveFailed")
    assert server.error("tiro/session/save").kind == "storeFailed"
    assert path.read_bytes() == before
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
    assert ask(server, "go on")["stopReason"] == "end_turn"
    server.kill()
    again = start()
    again.request("tiro/session/load", {"path": str(path)})
    assert view(again)["summary"] == "They asked four questions."
    assert [m["seq"] for m in view(again, limit=60)["messages"]] == list(range(1, 43))


def test_b19_a_summary_that_never_comes_right_costs_one_request_a_turn(
    server: Server, provider: Provider
) -> None:
    """B19, N3.7: at most one attempt a turn; the earlier summary is carried on."""
    server.request("tiro/memo/set", {"summary": "KNOWN BEFORE"})
    server.request("tiro/session/configure", {"maxHistory": 4, "summaryEnabled": True})
    groups(server)
    provider.otherwise(lambda r: replies.text("ok" if r.tool_names else ""))
    for n in (1, 2):
        ask(server, f"prompt {n}")
        provider.wait_for(2 * n)
        until(lambda: not server.request("tiro/memo/get")["summaryInProgress"])
    asked = [r for r in provider.chats if not r.tool_names]
    assert len(asked) == 2
    assert all("KNOWN BEFORE" in text_of(r.messages[-1]["content"]) for r in asked)
    assert view(server)["summary"] == "KNOWN BEFORE"


# --- B20: what cannot shrink ----------------------------------------------------------------


@pytest.fixture
def full(start: StartServer, home: Home, provider: Provider) -> Server:
    """A request of 8,000 tokens at most of which 5,000 are fixed, with a trigger at 4,000."""
    in_window(home, 8_000, budget_ratio=0.5, memo={"enabled": True})
    (home.config_dir / "agents").mkdir()
    (home.config_dir / "agents" / "long.md").write_text("---\nmode: primary\n---\n" + WORDS * 600)
    server = start()
    provider.otherwise(
        lambda r: replies.text("ok" if r.tool_names else '{"memo": {"topic": "words"}}')
    )
    server.request("tiro/session/setAgent", {"name": "long"})
    fixed = server.request("tiro/session/contextSize")["breakdown"]
    assert 4_000 < sum(fixed.values()) < 6_500
    return server


def test_b20_nothing_is_tried_where_nothing_can_shrink(full: Server, provider: Provider) -> None:
    """And the user is told why so little is sent."""
    for n in range(3):
        assert ask(full, f"hi {n}")["stopReason"] == "end_turn"
    assert len(provider.chats) == 3
    (told,) = full.request("tiro/status")["problems"]
    assert "4000" in told
    full.request("tiro/session/setAgent", {"name": "build"})
    assert full.request("tiro/status")["problems"] == []


def test_b20_a_turn_with_many_steps_goes_on(full: Server, provider: Provider) -> None:
    """Its steps see what its tools found, though the trigger is passed all the time."""
    full.home.write("a.txt", "content\n")
    provider.script(*[replies.tools((f"c{n}", "read_file", {"path": "a.txt"})) for n in range(5)])
    done = ask(full, "read it")
    assert (done["steps"], done["text"]) == (6, "ok")
    assert len(provider.chats) == 6
    assert len(provider.last.messages) == 11


def test_b20_a_huge_result_in_the_last_turn(full: Server, provider: Provider) -> None:
    """It is not sent whole, one attempt at most puts it into the archive, the turn goes on."""
    full.request("tiro/session/configure", {"memoEnabled": False})
    add(full, "user", "look at it")
    add(full, "assistant", [use("c")])
    add(full, "user", [result("c", WORDS * 2_100)])
    assert 0.8 < full.request("tiro/session/contextSize")["ratio"] <= 1
    assert ask(full, "and now?")["stopReason"] == "end_turn"
    assert len(provider.chats) == 1
    assert [m["seq"] for m in view(full)["messages"]] == [4, 5]
    assert [m["seq"] for m in view(full, limit=9)["messages"]] == [1, 2, 3, 4, 5]


# --- B21: what is larger than the window ----------------------------------------------------

FACT = re.compile(r"FACT-\d+")


def bounded(limit: int, request: Recorded) -> replies.Reply:
    """A summary of just the facts, by a provider that takes so many tokens and no more."""
    said = text_of(request.messages[-1]["content"])
    if (len(said) + len(request.system)) / 4.5 > limit:
        return TOO_LONG
    return replies.text("What is known so far: " + " ".join(dict.fromkeys(FACT.findall(said))))


@pytest.mark.parametrize("window", [10_000, None])
def test_b21_a_session_larger_than_the_window_is_compacted_in_pieces(
    start: StartServer, home: Home, provider: Provider, window: int | None
) -> None:
    """Each piece is bounded, also where the window is not known; the facts keep their order."""
    in_window(home, window)
    server = start()
    for n in range(25):
        long = WORDS * (2_500 if n == 12 else 100)
        add(server, "user", f"FACT-{n} {long} FACT-{n + 100}")
    add(server, "assistant", [use("c")])
    add(server, "user", [result("c", f"FACT-98 {WORDS * 500} FACT-99")])
    provider.otherwise(lambda r: bounded(10_000, r))
    server.request("tiro/session/compact")
    wanted = [f for n in range(25) for f in (f"FACT-{n}", f"FACT-{n + 100}")]
    assert FACT.findall(view(server)["summary"]) == [*wanted, "FACT-98", "FACT-99"]
    assert len(provider.chats) < 30
    assert view(server)["messages"] == []


def test_b21_a_model_that_takes_nothing_ends_it(server: Server, provider: Provider) -> None:
    """Never an endless retry, and nothing has changed."""
    groups(server)
    provider.otherwise(lambda _: TOO_LONG)
    assert server.error("tiro/session/compact").kind == "contextOverflow"
    assert len(provider.chats) < 12
    assert len(view(server)["messages"]) == 40


# --- B22: in the middle of a turn -----------------------------------------------------------


def test_b22_a_resize_in_a_turn_keeps_what_its_user_said(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """The prompt, what was steered, and the open group are in every request, word for word."""
    in_window(home, 8_000)
    for n in range(20):
        home.write(f"big{n}.txt", WORDS * 300)
    server = start()
    add(server, "user", "say ALPHA")
    for n in range(10):
        add(server, "assistant", f"answer {n}")
        add(server, "user", f"question {n} {WORDS * 20}")
    uses = [(f"c{n}", "read_file", {"path": f"big{n}.txt"}) for n in range(20)]
    first, *others = [replies.tools(one) for one in uses]
    hold = replies.Hold()
    held = replies.Reply([replies.ROLE, hold, *first.steps[1:]])
    provider.script(held, *others, replies.text("done"))
    pending = begin_ask(server, "now fix BETA")
    hold.wait()
    server.request("tiro/turn/steer", {"text": "and GAMMA"})
    hold.release()
    done = pending.result()
    assert (done["stopReason"], done["steps"], done["text"]) == ("end_turn", 21, "done")
    assert sum(event["type"] == "resize" for event in server.events(done["turnId"])) > 1
    for request in provider.chats[1:]:
        said = [text_of(m["content"]) for m in request.messages if m["role"] == "user"]
        assert said[-2:] == ["now fix BETA", "and GAMMA"]
        assert request.system == provider.chats[0].system
    assert "c19" in json.dumps(provider.last.messages)
    assert not any("ALPHA" in text_of(m["content"] or "") for m in provider.last.messages)


# --- U4.2: a memo that failed ---------------------------------------------------------------


def test_what_a_failed_memo_has_not_read_is_read_by_the_next(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U4.2: neither cursor nor marks move, though the turn goes on."""
    in_window(home, 4_000, memo={"enabled": True})
    server = start()
    broken = [True, False]
    seen: list[str] = []

    def answer(request: Recorded) -> replies.Reply:
        if request.tool_names:
            return replies.text("ok")
        if broken.pop(0) if broken else False:
            return replies.error(400, "no")
        seen.append(text_of(request.messages[-1]["content"]))
        return replies.text('{"memo": {"topic": "words"}}')

    def fill(name: str) -> None:
        for n in range(8):
            add(server, "user", f"{name}-{n} {WORDS * 60}")

    provider.otherwise(answer)
    broken[:] = [False] * 20
    fill("FIRST")
    ask(server, "one")
    until(lambda: cursor_of(server) == 9)  # all there was before the reply
    broken[:] = [True]
    fill("SECOND")
    done = ask(server, "two")
    assert cursor_of(server) == 9
    (told,) = [event for event in server.events(done["turnId"]) if event["type"] == "resize"]
    assert "memo was not brought up to date" in told["memoRefused"]
    broken[:] = []
    seen.clear()
    fill("THIRD")
    ask(server, "three")
    until(lambda: cursor_of(server) == 29)
    read = " ".join(seen)
    assert [n for n in range(8) if f"SECOND-{n}" not in read] == []
    assert "FIRST-0" not in read


def test_a_reply_waits_for_one_memo_at_most(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """N4.6, A4.8: a memo that is new to a long history reads on after the turn, all of it once."""
    in_window(home, 4_000, memo={"enabled": True}, max_history=None)
    server, seen = start(), list[str]()

    def answer(request: Recorded) -> replies.Reply:
        if request.tool_names:
            return replies.text("ok")
        given = json.loads(text_of(request.messages[-1]["content"]))
        seen.extend(re.findall(r"OLD-\d+", json.dumps(given["messages"])))
        return replies.text(json.dumps({"memo": {"read": len(seen)}}))

    provider.otherwise(answer)
    for n in range(60):
        add(server, "user", f"OLD-{n} {WORDS * 30}")
    ask(server, "one")
    until(lambda: cursor_of(server) == 61)
    asked = ["turn" if request.tool_names else "memo" for request in provider.chats]
    assert asked[:2] == ["memo", "turn"]
    assert asked.count("memo") > 3
    assert seen == [f"OLD-{n}" for n in range(60)]
    memo = server.request("tiro/memo/get")
    assert memo["memo"]["read"] == 60
    assert memo["lastResize"]["type"] == "deep"


@pytest.mark.parametrize("first", [[], [replies.ROLE], [replies.ROLE, replies.text_chunk("{")]])
def test_a_turn_that_waits_for_a_memo_is_cancelled_at_once(
    start: StartServer, home: Home, provider: Provider, first: list[bytes]
) -> None:
    """U4.2: silent before its headers, before its text or within it; the next turn has a memo."""
    in_window(home, 4_000, memo={"enabled": True}, max_history=None)
    server, hold = start(), replies.Hold()
    for n in range(20):
        add(server, "user", f"OLD-{n} {WORDS * 30}")
    provider.script(replies.Reply([*first, hold]))
    turn = begin_ask(server, "one")
    hold.wait()
    server.request("tiro/turn/cancel")
    assert turn.result()["stopReason"] == "cancelled"
    provider.script(replies.text('{"memo": {"topic": "words"}}'))
    assert ask(server, "two")["stopReason"] == "end_turn"
    assert server.request("tiro/memo/get")["memo"]["topic"] == "words"


def test_a_memo_that_its_user_writes_while_it_is_read_on_stays(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U4.4: the piece that was being read is dropped, and nothing counts as read by it."""
    in_window(home, 4_000, memo={"enabled": True}, max_history=None)
    server, hold = start(), replies.Hold()
    first = replies.text('{"memo": {"a": 1}}')
    late = replies.text('{"memo": {"b": 2}}')
    provider.script(first, replies.text("ok"))
    provider.script(replies.Reply([replies.ROLE, hold, *late.steps[1:]]))
    for n in range(60):
        add(server, "user", f"OLD-{n} {WORDS * 30}")
    ask(server, "one")
    hold.wait()
    cursor = cursor_of(server)
    server.request("tiro/memo/set", {"memo": {"mine": 1}})
    hold.release()
    provider.chats[2].answered.wait(PATIENCE)
    ask(server, "two")
    assert server.request("tiro/memo/get")["memo"].get("mine") == 1
    assert cursor_of(server) == cursor


def test_a_long_history_is_not_read_again_after_a_restart(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """The first reply after a restart waits for what is new only."""
    in_window(home, 4_000, memo={"enabled": True})
    provider.otherwise(
        lambda r: replies.text("ok" if r.tool_names else '{"memo": {"topic": "words"}}')
    )
    server = start()
    for n in range(60):
        add(server, "user", f"OLD-{n} {WORDS * 30}")
    ask(server, "one")
    server.shutdown()
    server = start()
    server.request("tiro/session/load", {"latest": True})
    count = len(provider.chats)
    for n in range(12):
        add(server, "user", f"NEW-{n} {WORDS * 40}")
    ask(server, "two")
    memos = [r for r in provider.chats[count:] if not r.tool_names]
    assert memos
    assert not any("OLD-0 " in text_of(r.messages[-1]["content"]) for r in memos)
