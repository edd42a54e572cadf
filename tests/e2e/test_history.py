"""Protocol section 3: rewind, edit, resize, state, and what pruning never parts."""

from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask, at_rest, fill, result, use, view, window, words

BAD_PARAMS, INVALID_MESSAGE = -32602, -32040


# rewind, editMessage


def test_rewind_takes_back_what_came_later(server: Server) -> None:
    fill(server, "one", "two", "three", "four")
    shown = server.request("tiro/session/rewind", {"toSeq": 2})
    assert [m["content"] for m in shown["messages"]] == ["one", "two"]
    assert (shown["total"], shown["archived"]) == (2, 0)
    assert add(server, "user", "five")["seq"] == 5
    assert [m["seq"] for m in view(server, limit=10)["messages"]] == [1, 2, 5]
    everything = view(server, limit=10, all=True)["messages"]
    assert [m["seq"] for m in everything] == [1, 2, 3, 4, 5]
    marked = [
        m["seq"] for m in everything if m.get("metadata", {}).get("tiro", {}).get("taken_back")
    ]
    assert marked == [3, 4]
    assert server.request("tiro/session/rewind", {"toSeq": 0})["total"] == 0
    assert server.request("tiro/session/show")["text"] is None


def test_rewind_takes_back_whole_groups(server: Server) -> None:
    add(server, "user", "go")
    add(server, "assistant", [use("a"), use("b")])
    add(server, "tool", [result("a"), result("b")])
    add(server, "assistant", "done")
    assert server.request("tiro/session/rewind", {"toSeq": 3})["total"] == 1
    assert words(server) == ["go"]


@pytest.mark.parametrize("seq", [5, -1, 3])
def test_rewind_to_what_is_not_in_the_window_is_refused(server: Server, seq: int) -> None:
    fill(server, "one", "two", "three", "four")
    server.request("tiro/session/rewind", {"toSeq": 2})
    assert server.error("tiro/session/rewind", {"toSeq": seq}).code == BAD_PARAMS
    assert words(server) == ["one", "two"]


def test_a_model_never_sees_what_was_taken_back(server: Server, provider: Provider) -> None:
    fill(server, "one", "two", "SECRET PLAN", "four")
    server.request("tiro/session/rewind", {"toSeq": 2})
    server.request("tiro/session/editMessage", {"seq": 1, "content": "uno"})
    ask(server, "next")
    assert [m["content"] for m in provider.last.messages] == ["uno", "two", "next"]


def test_edit_keeps_the_seq_and_archives_the_wording(server: Server) -> None:
    fill(server, "one", "two")
    shown = server.request("tiro/session/editMessage", {"seq": 1, "content": "uno"})
    assert [(m["seq"], m["content"]) for m in shown["messages"]] == [(1, "uno"), (2, "two")]
    everything = view(server, limit=10, all=True)["messages"]
    assert sorted((m["seq"], m["content"]) for m in everything) == [
        (1, "one"),
        (1, "uno"),
        (2, "two"),
    ]
    assert view(server)["archived"] == 0
    path = server.request("tiro/session/save")["path"]
    server.request("tiro/session/load", {"path": path})
    assert words(server) == ["uno", "two"]


def test_edit_refuses_what_would_break_the_history(server: Server) -> None:
    add(server, "user", "go")
    add(server, "assistant", [{"type": "text", "text": "x"}, use("a")])
    add(server, "tool", result("a"))
    before = at_rest(server)

    def code(seq: int, content: Any) -> int:
        return server.error("tiro/session/editMessage", {"seq": seq, "content": content}).code

    assert code(9, "x") == BAD_PARAMS
    assert code(1, 5) == BAD_PARAMS
    assert code(2, "no use any more") == INVALID_MESSAGE
    assert code(2, [use("other")]) == INVALID_MESSAGE
    assert code(3, result("other")) == INVALID_MESSAGE
    assert code(1, [{"type": "text"}]) == INVALID_MESSAGE
    assert view(server) == before
    server.request("tiro/session/editMessage", {"seq": 3, "content": result("a", "better")})
    assert words(server)[-1] == "result:a:better"


# memory


def test_judge_follows_the_turns_and_force(server: Server) -> None:
    def judge(**params: Any) -> Any:
        return server.request("tiro/session/judgeResize", params)["decision"]

    fill(server, *(f"m{n}" for n in range(14)))
    assert judge() is None
    assert judge(force=False) is judge(force=None) is judge(force="") is None
    fill(server, "q", "a")
    assert judge() == {"type": "lite", "reason": "every_n_turns", "severity": 10}
    assert judge(force="lite") == {"type": "lite", "reason": "force", "severity": 1000}
    assert judge(force=True) == {"type": "deep", "reason": "force", "severity": 1000}
    assert judge(force="archive")["type"] == "archive"
    assert server.error("tiro/session/judgeResize", {"force": 5}).code == BAD_PARAMS
    assert view(server)["total"] == 16


def test_resize_evicts_by_limit_and_says_so(server: Server) -> None:
    fill(server, *(f"message {n} " + "x" * 40 for n in range(10)))
    assert server.request("tiro/session/resize")["decision"] is None
    server.request("tiro/session/configure", {"limit": {"messages": 4}})
    before = view(server)["contextSize"]["tokens"]
    done = server.request("tiro/session/resize")
    assert (done["decision"]["type"], done["evicted"], done["total"]) == ("lite", 6, 4)
    assert done["tokensAfter"] < done["tokensBefore"] == before
    assert done["memo"]["last_resize"]["type"] == "lite"
    assert done["memo"]["last_resize"]["reason"] == "max_keep_messages_count"
    assert done["summary"] == ""
    shown = view(server)
    assert (shown["total"], shown["archived"]) == (4, 6)
    assert [m["seq"] for m in view(server, limit=20)["messages"]] == list(range(1, 11))


def test_a_resize_never_parts_a_group(server: Server, provider: Provider) -> None:
    add(server, "user", "go")
    for n in range(4):
        add(server, "assistant", [use(f"a{n}"), use(f"b{n}")])
        add(server, "tool", [result(f"a{n}"), result(f"b{n}")])
    for keep in (7, 5, 4, 2, 1):
        server.request("tiro/session/configure", {"limit": {"messages": keep}})
        server.request("tiro/session/resize", {"force": "lite"})
        kept = words(server)
        assert len(kept) <= max(keep, 3)
        assert not kept[0].startswith("result:")
    ask(server, "next")
    assert provider.refused == []


def test_an_unknown_resize_type_fails_and_changes_nothing(server: Server) -> None:
    fill(server, "a", "b")
    before = at_rest(server)
    error = server.error("tiro/session/resize", {"force": "nosuch"})
    assert (error.code, error.kind) == (-32041, "resizeFailed")
    assert "nosuch" in error.message + str(error.data)
    assert view(server) == before


def test_state_is_a_map_of_the_clients_own(server: Server) -> None:
    def get(**params: Any) -> Any:
        return server.request("tiro/state/get", params)

    assert get() == {"state": {}}
    assert get(key="k") == {"found": False, "value": None}
    assert server.request("tiro/state/set", {"key": "k", "value": None}) == {}
    assert get(key="k") == {"found": True, "value": None}
    server.request("tiro/state/set", {"key": "task.current", "value": {"b": 1, "a": [2]}})
    assert list(get()["state"]) == ["k", "task.current"]
    assert server.request("tiro/state/delete", {"key": "k"}) == {"deleted": True}
    assert server.request("tiro/state/delete", {"key": "k"}) == {"deleted": False}
    assert view(server)["state"] == {"task.current": {"b": 1, "a": [2]}}
    for method, params in (("set", {"key": "k"}), ("set", {"value": 1}), ("delete", {})):
        assert server.error(f"tiro/state/{method}", params).code == BAD_PARAMS


# pruning


@pytest.mark.parametrize("limit", range(1, 13))
def test_b01_no_limit_ever_parts_a_call_from_its_result(
    server: Server, provider: Provider, limit: int
) -> None:
    server.request("tiro/session/configure", {"maxHistory": limit})
    first = result("c0")
    add(server, "user", "begin")
    add(server, "assistant", [use("c0")])
    add(server, "tool", first)
    for turn in range(1, 4):
        names = [f"t{turn}-{n}" for n in range(1 if turn % 2 else 3)]
        provider.script(replies.tools(*[(n, "read_file", {"path": "none"}) for n in names]))
        provider.script(replies.text(f"answer {turn}"))
        done = ask(server, f"prompt {turn}")
        assert done["stopReason"] == "end_turn"
        sent = provider.last.messages
        assert f"prompt {turn}" in [m["content"] for m in sent if m["role"] == "user"]
    assert provider.refused == []
    shown = view(server)
    assert shown["total"] <= max(limit, 1)
    everything = view(server, limit=100)["messages"]
    assert [m["seq"] for m in everything] == list(range(1, len(everything) + 1))
    kept = [m["content"] for m in everything]
    assert kept.count(first) == 1
    assert window(server) == [(m["role"], m["content"]) for m in everything[-shown["total"] :]]
