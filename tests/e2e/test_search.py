"""Protocol section 3: search over all saved sessions and the current one (U9.9, P12)."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import RpcError, Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import API_KEY
from tests.e2e.talk import add, result, use, view

BAD_PARAMS = -32602


def search(server: Server, query: str, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.request("tiro/session/search", {"query": query, **more})[
        "hits"
    ]
    return found


def snippets(server: Server, query: str, **more: Any) -> list[str]:
    return [hit["snippet"] for hit in search(server, query, **more)]


def put(home: Home, name: str, *texts: str, stamp: str = "2025-01-01T00:00:00.000Z") -> Path:
    """A session file with these prompts, each a second after the one before."""
    home.sessions.mkdir(parents=True, exist_ok=True, mode=0o700)
    rows = [
        {"role": "user", "content": text, "timestamp": f"{stamp[:17]}{n:02}.000Z"}
        for n, text in enumerate(texts)
    ]
    path = home.sessions / f"{name}.json"
    path.write_text(json.dumps({"id": name, "messages": rows, "updated_at": stamp}), "utf-8")
    return path


def test_a_hit_says_where_and_what(start: StartServer, home: Home) -> None:
    path = put(home, "old", "Wie funktioniert das Café?", "other")
    server = start()
    (hit,) = search(server, "cafe")
    assert hit == {
        "id": "old",
        "path": str(path),
        "seq": 1,
        "role": "user",
        "savedAt": "2025-01-01T00:00:00.000Z",
        "snippet": "Wie funktioniert das Café?",
    }


def test_the_current_session_is_searched_as_it_is(server: Server) -> None:
    """What is only in memory or in the journal, what left the window, what was taken back."""
    add(server, "user", "Zebra crossing")
    add(server, "assistant", [{"type": "text", "text": "a zebra?"}, use("c", path="zebra.py")])
    add(server, "tool", result("c", "no zebra here"))
    add(server, "user", "zebra taken back")
    server.request("tiro/session/rewind", {"toSeq": 3})
    server.request("tiro/session/configure", {"maxHistory": 1})
    hits = search(server, "ZEBRA")
    assert [(h["seq"], h["role"], "takenBack" in h) for h in hits] == [
        (4, "user", True),
        (3, "tool", False),
        (2, "assistant", False),
        (1, "user", False),
    ]
    assert {h["id"] for h in hits} == {view(server)["id"]}
    server.request("tiro/session/clear")
    assert [h["seq"] for h in search(server, "zebra")] == [4, 3, 2, 1]


def test_a_hit_leads_to_its_message_also_in_the_archive(server: Server) -> None:
    """Issue 8, U1.4: the page that ends with its seq, in one request and from any session."""
    for n in range(4):
        add(server, "user", f"puffin 漢字検索{n}")
    server.request("tiro/session/configure", {"maxHistory": 1})
    id_ = view(server)["id"]
    for query in ("puffin", "字検索2"):
        for hit in search(server, query):
            (message,) = view(server, limit=1, beforeSeq=hit["seq"] + 1)["messages"]
            assert (message["seq"], message["content"]) == (hit["seq"], hit["snippet"])
    server.request("tiro/session/clear")
    hit = search(server, "字検索0")[0]
    assert (hit["id"], hit["seq"]) == (id_, 1)
    server.request("tiro/session/load", {"path": hit["path"]})
    (message,) = view(server, limit=1, beforeSeq=hit["seq"] + 1)["messages"]
    assert message["content"] == hit["snippet"]


def test_without_autosave_the_session_in_memory_is_found(start: StartServer, home: Home) -> None:
    server = start(settings={"session": {"autosave": False}})
    add(server, "user", "nowhere on the disk")
    (hit,) = search(server, "nowhere")
    assert (hit["path"], hit["savedAt"]) == (None, None)


def test_the_newest_come_first_up_to_the_limit(start: StartServer, home: Home) -> None:
    for year in (2021, 2024, 2023):
        put(home, f"s{year}", "same word", stamp=f"{year}-01-01T00:00:00.000Z")
    server = start()
    assert [h["id"] for h in search(server, "word")] == ["s2024", "s2023", "s2021"]
    assert [h["id"] for h in search(server, "word", limit=2)] == ["s2024", "s2023"]
    assert search(server, "word", limit=0) == []


@pytest.mark.parametrize("query", ["", " \n", "\t"])
def test_a_blank_query_is_refused(server: Server, query: str) -> None:
    with pytest.raises(RpcError) as caught:
        search(server, query)
    assert caught.value.code == BAD_PARAMS


@pytest.mark.parametrize(
    "query",
    ['"', "*", "AND", "OR NOT", "(", ")", "NEAR(a b)", "a:b", "^x", "-x", "x'--", "{", "\\", "%",
     "zq*", "text: z", "🙂", "\ufffd", "z " * 5000, "y" * 10_000, '"' * 999, "a* b* c*"],
)  # fmt: skip
def test_no_query_is_an_error(server: Server, query: str) -> None:
    """It is a text of a user, not a language."""
    add(server, "user", "nothing of that")
    assert search(server, query) == []


def test_files_that_others_add_change_and_remove_are_seen(start: StartServer, home: Home) -> None:
    """U9.9."""
    server = start()
    assert search(server, "heron") == []
    put(home, "one", "a heron", "a stork")
    put(home, "two", "another heron")
    assert {h["id"] for h in search(server, "heron")} == {"one", "two"}
    put(home, "one", "a crane", "a stork")
    (home.sessions / "two.json").unlink()
    assert search(server, "heron") == []
    assert snippets(server, "crane") == ["a crane"]
    assert snippets(server, "stork") == ["a stork"]


def test_a_damaged_file_hides_no_other(start: StartServer, home: Home) -> None:
    put(home, "good", "needle")
    (home.sessions / "bad.json").write_text('{"messages": [{"role": "user", "content": "needle"')
    assert [h["id"] for h in search(start(), "needle")] == ["good"]


def test_the_search_sees_what_was_asked_before(server: Server) -> None:
    for n in range(5):
        server.begin("tiro/session/addMessage", {"role": "user", "content": f"quokka {n}"})
    assert len(search(server, "quokka")) == 5


def test_no_secret_is_in_a_snippet(start: StartServer, home: Home) -> None:
    """U9.11: the exact values of configured keys, also of a session in memory."""
    server = start(settings={"session": {"autosave": False}})
    add(server, "user", f"marker {API_KEY} end")
    (shown,) = snippets(server, "marker")
    assert API_KEY not in shown
    assert shown.startswith("marker ")
    for filler in range(0, 60, 4):  # also where the end of the snippet cuts it
        add(server, "user", f"cut{filler} {'hay ' * 30}{'.' * filler}{API_KEY}")
        (shown,) = snippets(server, f"cut{filler}")
        assert API_KEY[:6] not in shown
    assert search(server, API_KEY) == []


def test_the_end_of_the_server_does_not_wait_for_a_search(start: StartServer, home: Home) -> None:
    """Protocol section 1: two seconds, whatever it was doing."""
    for n in range(300):
        put(home, f"s{n}", *[f"needle {n} " + "some hay of many kinds " * 90] * 10)
    server = start()
    searching = server.begin("tiro/session/search", {"query": "needle"})
    add(server, "user", "is answered meanwhile")
    assert server.shutdown() == 0
    assert searching.done


@pytest.mark.parametrize("harm", ["locked", "garbage", "a folder", "gone"])
def test_no_index_keeps_a_session_from_opening(start: StartServer, home: Home, harm: str) -> None:
    """Issue 8: it is a cache (U9.9); whatever became of it, sessions open, go on and are found."""
    put(home, "old", "needle")
    assert len(search(start(), "needle")) == 1
    (index,) = (home.root / "cache" / "tiro").glob("search-*.db")
    other = sqlite3.connect(index, isolation_level=None)
    if harm == "locked":
        other.execute("BEGIN EXCLUSIVE")
    elif harm == "garbage":
        index.write_bytes(b"\xff" * 9_999)
    else:
        index.unlink()
        if harm == "a folder":
            (index / "full").mkdir(parents=True)
    server = start()
    server.request("tiro/session/load", {"id": "old"})
    assert add(server, "user", "needle again")["stored"]
    assert [m["content"] for m in view(server)["messages"]] == ["needle", "needle again"]
    assert len(server.request("tiro/session/list", {})["sessions"]) == 1
    other.close()  # and its lock ends
    assert [hit["seq"] for hit in search(server, "needle")] == [2, 1]


def test_a_new_server_finds_with_what_the_last_one_read(start: StartServer, home: Home) -> None:
    for n in range(5):
        put(home, f"s{n}", f"needle {n}")
    assert len(search(start(), "needle")) == 5
    (index,) = (home.root / "cache" / "tiro").glob("search-*.db")
    server = start()
    assert len(search(server, "needle")) == 5
    index.write_bytes(b"damaged" * 1000)
    assert len(search(server, "needle")) == 5
    assert len(search(start(), "needle")) == 5
