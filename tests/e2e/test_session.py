"""Protocol sections 2, 3 and 6: every session method by its row, but load and save (test_saved)."""

import re
from typing import Any

import pytest

from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.talk import add, ask, at_rest, check_size, fill, result, use, view, words

BAD_PARAMS, INVALID_MESSAGE = -32602, -32040
STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
VIEW_FIELDS = {
    "id", "title", "agent", "model", "messages", "total", "archived", "maxHistory", "turns",
    "memo", "summary", "state", "pins", "metadata", "createdAt", "updatedAt", "savedAt", "path",
    "contextSize", "busy",
}  # fmt: skip


# get, content


def check_empty(shown: dict[str, Any]) -> None:
    """A session that nothing was done with."""
    assert set(shown) >= VIEW_FIELDS
    want: dict[str, Any] = {
        "id": None, "title": None, "agent": None, "messages": [], "total": 0, "archived": 0,
        "maxHistory": 100, "turns": 0, "memo": {}, "summary": "", "state": {}, "pins": [],
        "savedAt": None, "path": None, "busy": None,
    }  # fmt: skip
    assert {key: shown[key] for key in want} == want
    assert STAMP.match(shown["createdAt"])
    assert STAMP.match(shown["updatedAt"])
    check_size(shown["contextSize"])


def test_a_new_session_is_empty(server: Server) -> None:
    check_empty(view(server))


def test_get_gives_the_window_oldest_first(server: Server) -> None:
    fill(server, "one", "two", "three")
    shown = view(server)
    assert [(m["seq"], m["content"]) for m in shown["messages"]] == [
        (1, "one"),
        (2, "two"),
        (3, "three"),
    ]
    assert all(STAMP.match(m["timestamp"]) for m in shown["messages"])
    assert shown["turns"] == 1
    assert shown["updatedAt"] > shown["createdAt"]


def test_get_pages_over_archive_and_window(server: Server) -> None:
    server.request("tiro/session/configure", {"maxHistory": 3})
    fill(server, *(f"m{n}" for n in range(1, 11)))
    shown = view(server)
    assert (shown["total"], shown["archived"]) == (3, 7)
    assert [m["seq"] for m in shown["messages"]] == [8, 9, 10]

    def page(**params: Any) -> list[int]:
        return [m["seq"] for m in view(server, **params)["messages"]]

    assert page(limit=4) == [7, 8, 9, 10]
    assert page(limit=4, beforeSeq=7) == [3, 4, 5, 6]
    assert page(limit=4, beforeSeq=3) == [1, 2]
    assert page(beforeSeq=9) == list(range(1, 9))
    assert page(beforeSeq=1) == []
    assert page(limit=100) == list(range(1, 11))
    assert view(server, limit=4)["total"] == 3


def test_get_pages_by_100_when_no_limit_is_given(server: Server) -> None:
    fill(server, *(f"m{n}" for n in range(130)))
    assert [m["seq"] for m in view(server, beforeSeq=121)["messages"]] == list(range(21, 121))
    assert len(view(server)["messages"]) == 100


@pytest.mark.parametrize("params", [{"limit": -1}, {"beforeSeq": "1"}, {"limit": 2.5}])
def test_get_refuses_odd_pages(server: Server, params: dict[str, Any]) -> None:
    assert server.error("tiro/session/get", params).code == BAD_PARAMS


def test_content_gives_a_long_block_in_pieces(server: Server) -> None:
    text = "äb\U0001f642" * 50_000
    add(server, "user", text)
    add(server, "assistant", [{"type": "text", "text": "short"}, use("c1")])
    add(server, "tool", result("c1", "0123456789"))

    def content(**params: Any) -> Any:
        return server.request("tiro/session/content", params)

    assert content(seq=1) == {"text": text, "totalChars": 150_000}
    assert content(seq=1, offset=1, limit=4) == {"text": text[1:5], "totalChars": 150_000}
    assert content(seq=1, offset=149_999, limit=10)["text"] == "\U0001f642"
    assert content(seq=1, offset=150_000) == {"text": "", "totalChars": 150_000}
    assert content(seq=2, block=0) == {"text": "short", "totalChars": 5}
    assert content(seq=3, block=0, offset=2, limit=3) == {"text": "234", "totalChars": 10}
    for params in ({"seq": 9}, {"seq": 2, "block": 7}, {}, {"seq": 1, "offset": -1}):
        assert server.error("tiro/session/content", params).code == BAD_PARAMS


# addMessage, addToolResult


def test_add_message_numbers_counts_and_stores(server: Server) -> None:
    assert add(server, "user", "one") == {"seq": 1, "total": 1, "pruned": 0, "stored": True}
    assert add(server, "assistant", [{"type": "text", "text": "x"}])["seq"] == 2
    server.request("tiro/session/configure", {"maxHistory": 2})
    assert add(server, "user", "three") == {"seq": 3, "total": 2, "pruned": 1, "stored": True}


def test_add_message_keeps_what_it_is_given(server: Server) -> None:
    more = {
        "name": "ann", "x-y": {"b": 1, "a": [2]}, "class": None,
        "timestamp": "2001-02-03T04:05:06.789+01:00", "metadata": {"mine": 1, "tiro": {"a": 1}},
    }  # fmt: skip
    blocks = [{"type": "text", "text": "hi", "cache": True}, {"type": "novel", "a_b": [1, None]}]
    add(server, "user", blocks, **more)
    kept = view(server)["messages"][0]
    assert kept["content"] == blocks
    assert kept["timestamp"] == "2001-02-03T04:05:06.789+01:00"
    assert (kept["name"], kept["x-y"], kept["metadata"]) == ("ann", more["x-y"], {"mine": 1})
    assert list(kept["x-y"]) == ["b", "a"]
    path = server.request("tiro/session/save")["path"]
    assert server.request("tiro/session/load", {"path": path})["messages"] == [kept]


def test_seq_is_ours_whatever_a_client_gives(server: Server) -> None:
    assert add(server, "user", "one", seq=77)["seq"] == 1
    assert add(server, "user", "two", seq=1)["seq"] == 2


@pytest.mark.parametrize(
    "content",
    [
        "",
        "text",
        [],
        [{"type": "thinking", "thinking": "hm", "signature": "s"}],
        [{"type": "image", "source": {"type": "url", "media_type": "image/png", "url": "u"}}],
        [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aa"}}],
        [{"type": "attachment", "kind": "file", "path": "/a", "text": "t"}],
        [{"type": "redacted_thinking", "data": "x"}, {"type": "", "q": 1}],
        {"type": "text", "text": "one block"},
    ],
)
def test_good_content_comes_back_as_it_was(server: Server, content: Any) -> None:
    add(server, "assistant", content)
    assert view(server)["messages"][0]["content"] == content


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"role": "owner", "content": "x"}, INVALID_MESSAGE),
        ({"role": "developer", "content": "x"}, INVALID_MESSAGE),
        ({"role": "", "content": "x"}, INVALID_MESSAGE),
        ({"role": "user", "content": [{"text": "x"}]}, INVALID_MESSAGE),
        ({"role": "user", "content": [{"type": 5}]}, INVALID_MESSAGE),
        ({"role": "user", "content": {"text": "x"}}, INVALID_MESSAGE),
        ({"role": "user", "content": [{"type": "text"}]}, INVALID_MESSAGE),
        ({"role": "user", "content": [{"type": "text", "text": 5}]}, INVALID_MESSAGE),
        ({"role": "user", "content": [{"type": "image"}]}, INVALID_MESSAGE),
        ({"role": "user", "content": [{"type": "image", "source": "x"}]}, INVALID_MESSAGE),
        ({"role": "user", "content": [{"type": "attachment", "kind": "file"}]}, INVALID_MESSAGE),
        ({"role": "assistant", "content": [{"type": "thinking"}]}, INVALID_MESSAGE),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}, INVALID_MESSAGE),
        (
            {"role": "assistant", "content": [{**use("a"), "id": 5}]},
            INVALID_MESSAGE,
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "a", "name": "n", "input": "{}"}],
            },
            INVALID_MESSAGE,
        ),
        ({"role": "tool", "content": {"type": "tool_result", "content": "x"}}, INVALID_MESSAGE),
        ({"role": "tool", "content": result("nobody")}, INVALID_MESSAGE),
        ({"role": "user"}, BAD_PARAMS),
        ({"content": "x"}, BAD_PARAMS),
        ({"role": 5, "content": "x"}, BAD_PARAMS),
        ({"role": "user", "content": 5}, BAD_PARAMS),
        ({"role": "user", "content": True}, BAD_PARAMS),
        ({"role": "user", "content": None}, BAD_PARAMS),
        ({}, BAD_PARAMS),
    ],
)  # fmt: skip
def test_a_bad_message_is_refused_and_changes_nothing(
    server: Server, message: dict[str, Any], code: int
) -> None:
    before = view(server)
    error = server.error("tiro/session/addMessage", message)
    assert error.code == code
    if code == INVALID_MESSAGE:
        assert error.kind == "invalidMessage"
        assert error.data["reason"]
    assert view(server) == before


def test_a_list_of_results_becomes_one_message_each(server: Server) -> None:
    add(server, "user", "go")
    add(server, "assistant", [use("a"), use("b")])
    added = add(server, "tool", [result("a", "A"), result("b", "B", is_error=True)])
    assert (added["seq"], added["total"]) == (4, 4)
    assert [m["content"] for m in view(server)["messages"][2:]] == [
        result("a", "A"),
        result("b", "B", is_error=True),
    ]


def test_a_list_with_one_bad_result_adds_none(server: Server) -> None:
    add(server, "user", "go")
    add(server, "assistant", [use("a")])
    error = server.error(
        "tiro/session/addMessage", {"role": "tool", "content": [result("a"), result("zzz")]}
    )
    assert (error.code, error.data["toolUseId"]) == (INVALID_MESSAGE, "zzz")
    assert view(server)["total"] == 2


def test_results_answer_known_open_uses_only(server: Server) -> None:
    add(server, "user", "go")
    add(server, "assistant", [use("a"), use("b")])

    def give(id_: Any, content: Any = "x", **more: Any) -> dict[str, Any]:
        return {"toolUseId": id_, "content": content, **more}

    error = server.error("tiro/session/addToolResult", give("c"))
    assert (error.code, error.kind) == (INVALID_MESSAGE, "invalidMessage")
    assert error.data["toolUseId"] == "c"
    assert server.request("tiro/session/addToolResult", give("a", isError=True)) == {
        "seq": 3,
        "total": 3,
        "pruned": 0,
        "stored": True,
    }
    assert server.error("tiro/session/addToolResult", give("a")).code == INVALID_MESSAGE
    assert server.error(
        "tiro/session/addMessage", {"role": "tool", "content": result("a")}
    ).code == INVALID_MESSAGE  # fmt: skip
    blocks = [{"type": "text", "text": "y"}]
    server.request("tiro/session/addToolResult", give("b", blocks))
    kept = [m["content"] for m in view(server)["messages"][2:]]
    assert kept[0]["is_error"] is True
    assert kept[0]["content"] == "x"
    assert (kept[1]["tool_use_id"], kept[1]["content"]) == ("b", blocks)
    for bad in ({}, {"toolUseId": "a"}, {"content": "x"}, give(5), give("a", 5)):
        assert server.error("tiro/session/addToolResult", bad).code == BAD_PARAMS


# ids, agents


def test_get_id_makes_an_id_once_and_no_file(server: Server) -> None:
    before = server.home.session_files()
    id_ = server.request("tiro/session/getId")["id"]
    assert re.match(r"^session-\d{8}-\d{6}(-\d\d)?$", id_)
    assert server.request("tiro/session/getId")["id"] == id_
    assert view(server)["id"] == id_
    assert server.home.session_files() == before
    add(server, "user", "x")
    assert view(server)["id"] == id_
    assert server.home.sessions / f"{id_}.json" in server.home.session_files()


def test_b13_ids_of_one_second_never_collide(server: Server) -> None:
    ids = []
    for number in range(4):
        ids.append(server.request("tiro/session/getId")["id"])
        add(server, "user", f"text {number}")
        server.request("tiro/session/clear")
    assert len(set(ids)) == 4
    assert all(":" not in id_ for id_ in ids)
    texts = [
        server.request("tiro/session/load", {"id": id_})["messages"][0]["content"] for id_ in ids
    ]
    assert texts == [f"text {n}" for n in range(4)]


def test_b13_the_order_of_the_list_is_the_order_of_saving_in_every_zone(
    start: StartServer, home: Home
) -> None:
    seen = []
    for zone in ("Asia/Kathmandu", "America/New_York", "UTC"):
        server = start(env={"TZ": zone})
        add(server, "user", zone)
        server.request("tiro/session/save")
        seen.append(view(server)["id"])
        assert server.shutdown() == 0
    for zone in ("Asia/Kathmandu", "America/New_York"):
        rows = start(env={"TZ": zone}).request("tiro/session/list")["sessions"]
        assert [row["id"] for row in rows] == seen[::-1]


def test_agents_are_assigned_by_name(server: Server) -> None:
    assert server.request("tiro/session/getAgent") == {"agent": None}
    agent = server.request("tiro/session/setAgent", {"name": "plan"})["agent"]
    assert set(agent) >= {"name", "description", "mode", "hidden", "native", "model", "tools"}
    assert (agent["name"], agent["mode"], agent["hidden"], agent["native"]) == (
        "plan",
        "primary",
        False,
        True,
    )
    assert server.request("tiro/session/getAgent") == {"agent": agent}
    assert view(server)["agent"] == "plan"
    error = server.error("tiro/session/setAgent", {"name": "nobody"})
    assert (error.code, error.kind, error.data["name"]) == (-32030, "agentNotFound", "nobody")
    assert {"build", "plan"} <= set(error.data["available"])
    assert view(server)["agent"] == "plan"
    assert server.request("tiro/session/setAgent", {"name": None}) == {"agent": None}
    assert view(server)["agent"] is None


def test_agents_list_tells_whom_a_user_may_select(server: Server) -> None:
    listed = server.request("tiro/agents/list")
    assert listed["default"] == "build"
    names = {agent["name"] for agent in listed["agents"]}
    assert {"build", "plan"} <= names
    assert all(not a["hidden"] and a["mode"] in ("primary", "all") for a in listed["agents"])
    everyone = server.request("tiro/agents/list", {"all": True})["agents"]
    assert {"build", "plan", "explore"} <= {agent["name"] for agent in everyone}


def test_models_are_listed_and_set(server: Server) -> None:
    listed = server.request("tiro/models/list")
    assert listed["current"] == "fake/fake-model"
    row = next(m for m in listed["models"] if m["name"] == "fake/fake-model")
    assert (row["provider"], row["contextWindow"], row["available"]) == ("fake", 100_000, True)
    assert server.request("tiro/models/set", {"name": "fake/other"}) == {"model": "fake/other"}
    assert view(server)["model"] == "fake/other"
    ask(server)
    assert server.home.provider is not None
    assert server.home.provider.last.body["model"] == "other"
    assert server.error("tiro/models/set", {}).code == BAD_PARAMS


def test_status_tells_where_things_are(server: Server) -> None:
    status = server.request("tiro/status")
    assert status["protocolVersion"] == 1
    tiro = server.initialize_result["capabilities"]["experimental"]["tiro"]
    assert status["version"] == tiro["serverVersion"]
    assert status["configFiles"] == [str(server.home.config_dir / "config.yaml")]
    assert status["sessionsDirectory"] == str(server.home.sessions)
    assert (status["model"], status["provider"]) == ("fake/fake-model", "fake")
    assert status["problems"] == []
    assert status["python"].startswith("3.")


# configure


def test_configure_prunes_at_once_and_leaves_the_rest(server: Server) -> None:
    fill(server, *(f"m{n}" for n in range(6)))
    shown = server.request("tiro/session/configure", {"maxHistory": 4, "title": "T"})
    assert (shown["maxHistory"], shown["title"], shown["total"], shown["archived"]) == (
        4,
        "T",
        4,
        2,
    )
    shown = server.request("tiro/session/configure", {})
    assert (shown["maxHistory"], shown["title"]) == (4, "T")
    shown = server.request("tiro/session/configure", {"maxHistory": None})
    assert (shown["maxHistory"], shown["title"], shown["total"]) == (None, "T", 4)
    fill(server, *(f"n{n}" for n in range(120)))
    assert view(server)["total"] == 124


@pytest.mark.parametrize(
    "params",
    [
        {"maxHistory": 0}, {"maxHistory": -1}, {"maxHistory": True}, {"maxHistory": 2.5},
        {"maxHistory": "3"}, {"mode": "other"}, {"mode": 5}, {"title": 5}, {"everyNTurns": "x"},
        {"limit": 5}, {"limit": {"chars": "x"}}, {"memoEnabled": "yes"}, {"summaryEnabled": 1},
        {"title": "changed", "maxHistory": 0}, {"everyNTurns": -1}, {"limit": {"chars": -1}},
        {"limit": {"messages": -1}},
    ],
)  # fmt: skip
def test_configure_refuses_what_it_cannot_read(server: Server, params: dict[str, Any]) -> None:
    fill(server, "a", "b")
    before = at_rest(server)
    assert server.error("tiro/session/configure", params).code == BAD_PARAMS
    assert view(server) == before


def test_configure_merges_limits_and_null_switches_them_off(server: Server) -> None:
    fill(server, *("x" * 100 for _ in range(6)))

    def judge() -> Any:
        return server.request("tiro/session/judgeResize")["decision"]

    assert judge() is None
    server.request("tiro/session/configure", {"limit": {"messages": 3}})
    assert (judge()["type"], judge()["reason"], judge()["severity"]) == (
        "lite",
        "max_keep_messages_count",
        50,
    )
    server.request("tiro/session/configure", {"limit": {"chars": 200}})
    assert (judge()["type"], judge()["reason"], judge()["severity"]) == (
        "deep",
        "max_messages_text_length",
        100,
    )
    server.request("tiro/session/configure", {"limit": {"chars": None}})
    assert judge()["reason"] == "max_keep_messages_count"
    server.request("tiro/session/configure", {"limit": {"messages": 0}})
    assert judge() is None


# new, clear


def test_clear_saves_and_starts_anew(server: Server) -> None:
    assert server.request("tiro/session/clear") == {"cleared": 0, "savedAs": None}
    fill(server, "one", "two")
    server.request("tiro/session/setAgent", {"name": "plan"})
    server.request("tiro/state/set", {"key": "k", "value": 1})
    server.request("tiro/session/configure", {"maxHistory": 50, "title": "T"})
    id_ = view(server)["id"]
    cleared = server.request("tiro/session/clear")
    assert cleared == {"cleared": 2, "savedAs": str(server.home.sessions / f"{id_}.json")}
    check_empty(view(server))
    assert add(server, "user", "x")["seq"] == 1
    assert view(server)["id"] != id_
    old = server.request("tiro/session/load", {"id": id_})
    assert [m["content"] for m in old["messages"]] == ["one", "two"]
    assert (old["agent"], old["state"], old["maxHistory"], old["title"]) == (
        "plan",
        {"k": 1},
        50,
        "T",
    )


def test_clear_counts_the_window(server: Server) -> None:
    server.request("tiro/session/configure", {"maxHistory": 2})
    fill(server, "a", "b", "c")
    assert server.request("tiro/session/clear")["cleared"] == 2


def test_new_takes_id_title_agent_and_limit(server: Server) -> None:
    fill(server, "old")
    old = view(server)["id"]
    shown = server.request(
        "tiro/session/new",
        {"id": "project-One_2.x", "title": "Mine", "agent": "plan", "maxHistory": 5},
    )
    assert (shown["id"], shown["title"], shown["agent"], shown["maxHistory"], shown["total"]) == (
        "project-One_2.x",
        "Mine",
        "plan",
        5,
        0,
    )
    assert old in [row["id"] for row in server.request("tiro/session/list")["sessions"]]
    add(server, "user", "x")
    assert view(server)["id"] == "project-One_2.x"
    server.request("tiro/session/clear")
    error = server.error("tiro/session/new", {"id": "project-One_2.x"})
    assert (error.code, error.kind, error.data["id"]) == (
        -32013,
        "sessionExists",
        "project-One_2.x",
    )
    loaded = server.request("tiro/session/load", {"id": "project-One_2.x"})
    assert (loaded["title"], loaded["maxHistory"]) == ("Mine", 5)


UNSAFE = ["", ".", "..", "../x", "a/b", "a\\b", "/abs", ".hidden", "-x", "_x", "a..b", "a" * 201,
          "a b", "a\x00b", "é", "a:b", "a\nb"]  # fmt: skip


@pytest.mark.parametrize("id_", UNSAFE)
def test_unsafe_ids_are_refused_and_write_nothing(server: Server, id_: str) -> None:
    fill(server, "kept")
    server.request("tiro/session/save")  # or it is done in the next idle moment
    files = sorted(server.home.config_dir.rglob("*"))
    for method in ("new", "load", "delete"):
        assert server.error(f"tiro/session/{method}", {"id": id_}).code == BAD_PARAMS
    assert words(server) == ["kept"]
    assert sorted(server.home.config_dir.rglob("*")) == files


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"agent": "nobody"}, -32030),
        ({"maxHistory": 0}, BAD_PARAMS),
        ({"maxHistory": "5"}, BAD_PARAMS),
        ({"title": 5}, BAD_PARAMS),
    ],
)
def test_a_refused_new_keeps_the_old_session(
    server: Server, params: dict[str, Any], code: int
) -> None:
    fill(server, "kept")
    before = at_rest(server)
    assert server.error("tiro/session/new", {"id": "fresh", **params}).code == code
    assert view(server) == before
    assert not (server.home.sessions / "fresh.json").exists()
