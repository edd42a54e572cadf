"""Protocol section 3: save, load, list and delete, and every kind of session file (B10, B14)."""

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask, at_rest, result, stored, use, view, words
from tiro.stores.names import file_stem

BAD_PARAMS = -32602
OWN_FIELDS = {
    "schema_version", "id", "title", "agent", "model", "created_at", "updated_at", "timestamp",
    "max_history", "next_seq", "journal_n", "turns", "last_resize_turn", "memo_cursor", "memo",
    "summary", "state", "metadata", "pins", "rules", "usage", "settings", "ttl_seconds", "undo",
    "messages", "archive",
}  # fmt: skip


def save(server: Server, **params: Any) -> dict[str, Any]:
    done: dict[str, Any] = server.request("tiro/session/save", params)
    return done


def load(server: Server, **params: Any) -> dict[str, Any]:
    shown: dict[str, Any] = server.request("tiro/session/load", params)
    return shown


def rows(server: Server, **params: Any) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = server.request("tiro/session/list", params)["sessions"]
    return listed


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def put(home: Home, name: str, content: Any) -> Path:
    """Put a session file in place, bytes as they are and anything else as JSON."""
    home.sessions.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = home.sessions / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


# save


def test_save_writes_the_own_format_into_the_sessions_directory(server: Server) -> None:
    """M4.1, U7.1"""
    add(server, "user", "héllo")
    add(server, "assistant", [{"type": "text", "text": "x"}, use("c1", path="p")])
    add(server, "tool", result("c1"))
    done = save(server)
    shown = view(server)
    path = Path(done["path"])
    assert path == server.home.sessions / f"{done['id']}.json"
    assert done["bytes"] == path.stat().st_size
    assert (shown["path"], shown["id"]) == (str(path), done["id"])
    assert shown["savedAt"] is not None
    kept = stored(path)
    assert set(kept) >= OWN_FIELDS
    assert re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}$", kept["timestamp"])
    assert [m["role"] for m in kept["messages"]] == ["user", "assistant", "tool"]
    assert [m["seq"] for m in kept["messages"]] == [1, 2, 3]
    assert kept["messages"][2]["content"] == result("c1")
    assert (kept["id"], kept["next_seq"]) == (done["id"], 4)
    assert "héllo" in path.read_text("utf-8")
    assert mode(path) == 0o600
    assert mode(path.parent) == 0o700
    assert [p.name for p in path.parent.glob(".*") if p.name.endswith(".tmp")] == []


def test_save_of_an_empty_session_claims_an_id(server: Server) -> None:
    done = save(server)
    assert Path(done["path"]).exists()
    assert load(server, id=done["id"])["total"] == 0


def test_save_with_a_path_writes_a_copy_and_the_session_stays(
    server: Server, tmp_path: Path
) -> None:
    add(server, "user", "one")
    home_path = save(server)["path"]
    copy = tmp_path / "new dir" / "ünïcode" / "copy.json"
    done = save(server, path=str(copy))
    assert done == {"path": str(copy), "id": view(server)["id"], "bytes": copy.stat().st_size}
    assert view(server)["path"] == home_path
    assert mode(copy) == 0o600
    add(server, "user", "two")
    assert len(stored(copy)["messages"]) == 1
    save(server, path=copy.as_uri())
    assert len(stored(copy)["messages"]) == 2
    assert load(server, path=copy.as_uri())["path"] == str(copy)


def below_a_file(at: Path) -> Path:
    """A path whose parent is a file."""
    (at / "file").write_text("x")
    return at / "file" / "x.json"


def a_directory(at: Path) -> Path:
    """A path that is a directory already."""
    (at / "dir.json").mkdir()
    return at / "dir.json"


@pytest.mark.parametrize(
    ("make", "errnos"),
    [
        (
            lambda at: (at / "file").write_text("x") and at / "file" / "x.json",
            ("ENOTDIR", "EEXIST"),
        ),
        (lambda at: (at / "dir.json").mkdir() or at / "dir.json", ("EISDIR",)),
        (lambda at: at / ("x" * 300 + ".json"), ("ENAMETOOLONG",)),
    ],
)
def test_save_tells_why_it_could_not_write(
    server: Server, tmp_path: Path, make: Any, errnos: tuple[str, ...]
) -> None:
    add(server, "user", "one")
    before = at_rest(server)
    path = make(tmp_path)
    error = server.error("tiro/session/save", {"path": str(path)})
    assert (error.code, error.kind) == (-32012, "storeFailed")
    assert error.data["path"] == str(path)
    assert error.data["errno"] in errnos
    assert view(server) == before


def test_save_refuses_what_is_no_path(server: Server) -> None:
    for path in ("", "relative/x.json", "http://example.com/x.json", "/tmp/a\x00b.json", 5):
        assert server.error("tiro/session/save", {"path": path}).code == BAD_PARAMS


def test_save_never_overwrites_a_file_that_holds_another_id(server: Server, tmp_path: Path) -> None:
    add(server, "user", "mine")
    mine = save(server)["id"]
    server.request("tiro/session/clear")
    add(server, "user", "other")
    error = server.error("tiro/session/save", {"path": str(server.home.sessions / f"{mine}.json")})
    assert error.code in (-32012, -32013, BAD_PARAMS)
    assert load(server, id=mine)["messages"][0]["content"] == "mine"


# load


def test_load_with_a_limit_answers_with_the_newest_messages(server: Server) -> None:
    """A long session is shown at once: the answer has the page that `get` would have."""
    for n in range(6):
        add(server, "user", f"message {n}")
    path = save(server)["path"]
    shown = load(server, path=path, limit=2)
    assert [message["content"] for message in shown["messages"]] == ["message 4", "message 5"]
    assert shown["total"] == 6
    assert shown["messages"] == server.request("tiro/session/get", {"limit": 2})["messages"]


def test_load_by_id_path_and_latest(server: Server) -> None:
    add(server, "user", "first")
    first = save(server)
    server.request("tiro/session/clear")
    add(server, "user", "second")
    second = save(server)
    server.request("tiro/session/clear")
    assert load(server, id=first["id"])["messages"][0]["content"] == "first"
    assert load(server, path=second["path"])["messages"][0]["content"] == "second"
    assert load(server, id=first["id"])["id"] == first["id"]
    add(server, "user", "newest change")
    save(server)
    server.request("tiro/session/clear")
    assert load(server, latest=True)["id"] == first["id"]


def test_load_ends_and_saves_the_old_session(server: Server, provider: Provider) -> None:
    add(server, "user", "old")
    old = view(server)["id"]
    server.request("tiro/session/new", {})
    add(server, "user", "current")
    current = view(server)["id"]
    shown = load(server, id=old)
    assert (shown["id"], shown["messages"][0]["content"]) == (old, "old")
    assert shown == view(server)
    add(server, "user", "goes on")
    ask(server, "and now")
    assert [m["content"] for m in provider.last.messages] == ["old", "goes on", "and now"]
    assert load(server, id=current)["messages"][0]["content"] == "current"


def test_a_session_lives_where_it_was_loaded_from(server: Server, tmp_path: Path) -> None:
    add(server, "user", "one")
    copy = tmp_path / "elsewhere" / "mine.json"
    save(server, path=str(copy))
    server.request("tiro/session/clear")
    before = {path: path.read_bytes() for path in server.home.session_files()}
    assert load(server, path=str(copy))["path"] == str(copy)
    add(server, "user", "two")
    assert save(server)["path"] == str(copy)
    assert [m["content"] for m in stored(copy)["messages"]] == ["one", "two"]
    assert {path: path.read_bytes() for path in server.home.session_files()} == before


def test_load_of_what_is_not_there(start: StartServer) -> None:
    server = start()
    add(server, "user", "kept")
    missing = server.home.root / "missing.json"
    for params, data in (
        ({"id": "nothing"}, {"id": "nothing"}),
        ({"path": str(missing)}, {"path": str(missing)}),
    ):
        error = server.error("tiro/session/load", params)
        assert (error.code, error.kind) == (-32014, "sessionNotFound")
        assert error.data.items() >= data.items()
    for bad in ({}, {"id": "a", "latest": True}, {"latest": False}, {"path": "x.json"}, {"id": 5}):
        assert server.error("tiro/session/load", bad).code == BAD_PARAMS
    assert words(server) == ["kept"]


def test_latest_with_nothing_saved_is_not_found(start: StartServer) -> None:
    error = start().error("tiro/session/load", {"latest": True})
    assert (error.code, error.kind) == (-32014, "sessionNotFound")


GOOD: dict[str, Any] = {"id": "x", "messages": [{"role": "user", "content": "hi"}],
        "timestamp": "2025-02-21T14:30:15-0800"}  # fmt: skip
WHOLE = json.dumps({**GOOD, "messages": GOOD["messages"] * 50}).encode()
NEWER = json.dumps({**GOOD, "schema_version": 9999, "future": {"a": 1}}).encode()

DAMAGED = {
    "empty": b"",
    "half": WHOLE[: len(WHOLE) // 2],
    "nul-tail": WHOLE + b"\x00" * 8192,
    "all-nul": b"\x00" * 4096,
    "list": b"[]",
    "list-of-messages": json.dumps(GOOD["messages"]).encode(),
    "null": b"null",
    "text": b"hello",
    "number": b"5",
    "latin-1": '{"id": "x", "messages": [], "title": "é"}'.encode("latin-1"),
    "messages-are-text": b'{"id": "x", "messages": "hi"}',
    "a-message-is-text": b'{"id": "x", "messages": ["hi"]}',
    "a-message-without-role": b'{"id": "x", "messages": [{"content": "hi"}]}',
    "newer": NEWER,
    "deep": b'{"id": "x", "messages": [], "state": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_b10_a_damaged_file_is_refused_listed_and_left_alone(
    server: Server, name: str, request: pytest.FixtureRequest
) -> None:
    add(server, "user", "kept")
    path = put(server.home, f"bad-{name}.json", DAMAGED[name])
    request.addfinalizer(path.unlink)
    before = at_rest(server)
    for params in ({"path": str(path)}, {"id": f"bad-{name}"}):
        error = server.error("tiro/session/load", params)
        assert (error.code, error.kind) == (-32010, "sessionFileInvalid")
        assert error.data["path"] == str(path)
        assert error.data["reason"]
        assert isinstance(error.data["recovered"], int)
    assert view(server) == before
    row = next(r for r in rows(server, limit=1000) if r["path"] == str(path))
    assert row["error"]
    ask(server, "still works")
    save(server)
    assert path.read_bytes() == DAMAGED[name]


def test_b10_a_server_starts_among_damaged_files_only(start: StartServer, home: Home) -> None:
    for name, content in DAMAGED.items():
        put(home, f"bad-{name}.json", content)
    server = start()
    assert server.error("tiro/session/load", {"latest": True}).kind == "sessionNotFound"
    assert len(rows(server)) == len(DAMAGED)
    ask(server)
    assert Path(save(server)["path"]).exists()
    for name, content in DAMAGED.items():
        assert (home.sessions / f"bad-{name}.json").read_bytes() == content


def test_b10_half_a_file_tells_how_much_could_be_read(server: Server) -> None:
    path = put(server.home, "half.json", DAMAGED["half"])
    recovered = server.error("tiro/session/load", {"path": str(path)}).data["recovered"]
    assert 10 <= recovered <= 25
    path.unlink()


def test_b14_a_newer_schema_is_refused_with_a_clear_text(server: Server) -> None:
    path = put(server.home, "newer.json", NEWER)
    error = server.error("tiro/session/load", {"path": str(path)})
    assert "9999" in error.message + str(error.data)
    assert path.read_bytes() == NEWER
    path.unlink()


def test_odd_files_are_errors_and_never_hang(server: Server, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.json")
    (tmp_path / "dir.json").mkdir()
    for path in (tmp_path / "fifo.json", tmp_path / "dir.json", Path("/dev/zero")):
        error = server.error("tiro/session/load", {"path": str(path)})
        assert (error.code, error.kind) == (-32010, "sessionFileInvalid")
        assert error.data["path"] == str(path)
    os.mkfifo(server.home.sessions / "fifo.json")
    assert server.request("tiro/session/list", {})["total"] >= 0
    (server.home.sessions / "fifo.json").unlink()


# B14: old and foreign forms of our own format


def test_b14_a_file_with_only_id_messages_and_timestamp_loads(server: Server) -> None:
    content = {
        "id": "old-1",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "text", "text": "yes"}, use("c1")]},
            {"role": "tool", "content": result("c1")},
        ],
        "timestamp": "2025-02-21T14:30:15-0800",
    }
    path = put(server.home, "old-1.json", content)
    shown = load(server, id="old-1")
    assert [(m["seq"], m["role"]) for m in shown["messages"]] == [
        (1, "user"),
        (2, "assistant"),
        (3, "tool"),
    ]
    assert (shown["memo"], shown["state"], shown["agent"]) == ({}, {}, None)
    assert shown["messages"][0]["timestamp"].startswith("2025-02-21T")
    ask(server, "go on")
    save(server)
    assert [m["role"] for m in stored(path)["messages"]] == [
        "user", "assistant", "tool", "user", "assistant",
    ]  # fmt: skip


def test_b14_unknown_keys_and_blocks_survive(server: Server) -> None:
    blocks = [{"type": "novel", "z": 1, "a": {"y": None}}, {"type": "text", "text": "x", "q": 2}]
    content = {
        "id": "keeps", "schema_version": 1, "future": {"b": 2**70, "a": [1.5]},
        "messages": [{"role": "user", "content": blocks, "extra": {"k": 1}},
                     {"role": "reviewer", "content": "odd role"}],
        "archive": [], "timestamp": "2025-02-21T14:30:15-0800",
    }  # fmt: skip
    path = put(server.home, "keeps.json", content)
    load(server, path=str(path))
    add(server, "user", "more")
    save(server)
    kept = stored(path)
    assert json.dumps(kept["future"]) == json.dumps(content["future"])
    assert json.dumps(kept["messages"][0]["content"]) == json.dumps(blocks)
    assert kept["messages"][0]["extra"] == {"k": 1}
    assert kept["messages"][1]["role"] == "reviewer"


@pytest.mark.parametrize(
    "odd",
    [
        {"usage": None}, {"memo": None}, {"state": None}, {"pins": None}, {"settings": None},
        {"turns": "many"}, {"memo_cursor": -5}, {"next_seq": 1}, {"next_seq": None},
        {"max_history": 0}, {"max_history": "x"}, {"summary": 5}, {"title": 5}, {"agent": 5},
        {"archive": None}, {"metadata": None}, {"created_at": "yesterday"}, {"timestamp": 5},
        {"journal_n": None}, {"undo": 5}, {"rules": {}}, {"model": ["x"]},
    ],
)  # fmt: skip
def test_b14_one_odd_field_never_hides_the_messages(server: Server, odd: dict[str, Any]) -> None:
    path = put(server.home, "odd.json", {**GOOD, "id": "odd", **odd})
    shown = load(server, path=str(path))
    assert words(server) == ["hi"]
    assert add(server, "user", "more")["seq"] == shown["messages"][-1]["seq"] + 1
    ask(server)
    server.request("tiro/session/delete", {"id": "odd"})


def test_b12_a_file_with_a_lone_surrogate_loads_and_is_usable(
    server: Server, provider: Provider
) -> None:
    raw = b'{"id": "b12", "messages": [{"role": "user", "content": "a\\ud83db"}], "n": NaN}'
    path = put(server.home, "b12.json", raw)
    assert load(server, path=str(path))["messages"][0]["content"] == "a\ufffdb"
    ask(server)
    assert provider.last.messages[0]["content"] == "a\ufffdb"
    save(server)
    assert stored(path)["messages"][0]["content"] == "a\ufffdb"


def test_b14_a_file_with_more_than_its_limit_is_pruned_at_load(server: Server) -> None:
    messages = [{"role": "user", "content": f"m{n}"} for n in range(8)]
    path = put(server.home, "long.json", {"id": "long", "messages": messages, "max_history": 3})
    shown = load(server, path=str(path))
    assert (shown["total"], shown["archived"]) == (3, 5)
    assert [m["content"] for m in view(server, limit=20)["messages"]] == [f"m{n}" for n in range(8)]


def test_an_unknown_agent_in_a_file_is_told_and_kept(server: Server) -> None:
    path = put(server.home, "lost.json", {**GOOD, "id": "lost", "agent": "gone"})
    assert load(server, path=str(path))["agent"] is None
    assert "gone" in " ".join(server.request("tiro/status")["problems"])
    add(server, "user", "more")
    save(server)
    assert stored(path)["agent"] == "gone"


# list


@pytest.fixture
def listed(start: StartServer) -> Server:
    server = start()
    for n in range(5):
        add(server, "user", f"question {n} about {'apples' if n % 2 else 'pears'}")
        add(server, "assistant", "yes")
        server.request("tiro/session/configure", {"title": f"Title {n}"})
        server.request("tiro/session/clear")
    return server


def test_list_is_newest_first_with_everything_a_chooser_needs(listed: Server) -> None:
    found = rows(listed)
    assert [row["title"] for row in found] == [f"Title {n}" for n in (4, 3, 2, 1, 0)]
    for row in found:
        assert set(row) >= {"id", "path", "title", "agent", "messages", "savedAt", "bytes", "error"}
        assert row["path"] == str(listed.home.sessions / f"{row['id']}.json")
        assert (row["messages"], row["error"]) == (2, None)
        assert row["bytes"] >= Path(row["path"]).stat().st_size


def test_list_pages_and_filters(listed: Server) -> None:
    def titles(**params: Any) -> tuple[list[str], int]:
        found = listed.request("tiro/session/list", params)
        return [row["title"] for row in found["sessions"]], found["total"]

    assert titles(limit=2) == (["Title 4", "Title 3"], 5)
    assert titles(limit=2, offset=3) == (["Title 1", "Title 0"], 5)
    assert titles(offset=9) == ([], 5)
    assert titles(query="title 3") == (["Title 3"], 1)
    assert titles(query="nothing like it") == ([], 0)
    for bad in ({"limit": -1}, {"offset": -1}, {"limit": "2"}, {"query": 5}):
        assert listed.error("tiro/session/list", bad).code == BAD_PARAMS


def test_list_counts_what_only_the_journal_holds(start: StartServer) -> None:
    server = start()
    for n in range(4):
        add(server, "user", f"m{n}")
    assert rows(start())[0]["messages"] == 4
    assert rows(server)[0]["messages"] == 4


def test_list_sees_what_others_do(listed: Server) -> None:
    put(listed.home, "by-hand.json", {**GOOD, "id": "by-hand", "title": "By hand"})
    assert "By hand" in [row["title"] for row in rows(listed)]
    put(listed.home, "by-hand.json", {**GOOD, "id": "by-hand", "title": "Renamed by hand"})
    assert "Renamed by hand" in [row["title"] for row in rows(listed)]
    (listed.home.sessions / "by-hand.json").unlink()
    assert len(rows(listed)) == 5
    put(listed.home, "notes.txt", b"no session")
    assert len(rows(listed)) == 5


def test_the_first_line_of_the_first_prompt_is_the_title(server: Server) -> None:
    long = "Explain this function to me, word for word and line by line, please"
    ask(server, f"{long}\nsecond line")
    title = view(server)["title"]
    assert long.startswith(title.rstrip(".…"))
    assert 20 <= len(title) <= 50
    server.request("tiro/session/configure", {"title": "Mine"})
    ask(server, "another prompt")
    assert view(server)["title"] == "Mine"


@pytest.mark.parametrize("id", ["../x", "a/b", "a\x00b", "x" * 300, "cli:1", "\u00e9"])
def test_an_unsafe_id_is_refused_though_a_file_holds_it(server: Server, id: str) -> None:
    """Protocol section 3: -32602 in new, load, export and delete; its path still serves."""
    path = put(server.home, f"{file_stem(id)}.json", {**GOOD, "id": id})
    before = path.read_bytes()
    for method, more in (("new", {}), ("load", {}), ("export", {"format": "json"}), ("delete", {})):
        error = server.error(f"tiro/session/{method}", {"id": id, **more})
        assert error.code == BAD_PARAMS, method
    assert path.read_bytes() == before
    assert [m["content"] for m in load(server, path=str(path))["messages"]] == ["hi"]


# delete


def test_delete_removes_a_saved_session(server: Server) -> None:
    add(server, "user", "gone soon")
    id_ = save(server)["id"]
    server.request("tiro/session/clear")
    assert server.request("tiro/session/delete", {"id": id_}) == {"deleted": True}
    assert server.request("tiro/session/delete", {"id": id_}) == {"deleted": False}
    assert [p for p in server.home.sessions.iterdir() if id_ in p.name] == []
    assert server.error("tiro/session/load", {"id": id_}).kind == "sessionNotFound"


def test_delete_of_the_current_one_starts_an_empty_session(start: StartServer) -> None:
    server = start()
    add(server, "user", "gone")
    id_ = view(server)["id"]
    assert server.request("tiro/session/delete", {"id": id_}) == {"deleted": True}
    shown = view(server)
    assert (shown["id"], shown["total"], shown["path"]) == (None, 0, None)
    assert server.shutdown() == 0
    assert [p for p in server.home.sessions.iterdir() if id_ in p.name] == []


# autosave off


def test_without_autosave_only_save_writes(start: StartServer, home: Home) -> None:
    home.write_config(session={"autosave": False})
    server = start()
    assert add(server, "user", "one")["stored"] is False
    ask(server, "two")
    assert home.session_files() == []
    done = save(server)
    size = Path(done["path"]).stat().st_size
    assert add(server, "user", "not on disk")["stored"] is False
    assert Path(done["path"]).stat().st_size == size
    assert server.request("tiro/session/clear")["savedAs"] is None
    assert [m["content"] for m in load(server, id=done["id"])["messages"]] == ["one", "two", "ok"]
    assert not list(home.sessions.glob("*.journal")) or all(
        p.stat().st_size == 0 for p in home.sessions.glob("*.journal")
    )


def test_the_file_a_resume_offers(start: StartServer) -> None:
    server = start()
    add(server, "user", "x")
    server.request("tiro/session/configure", {"title": "T"})
    id_ = save(server)["id"]
    assert server.shutdown() == 0
    resume = start().initialize_result["capabilities"]["experimental"]["tiro"]["resume"]
    assert resume["setting"] == "ask"
    assert (resume["latest"]["id"], resume["latest"]["title"]) == (id_, "T")
    assert resume["latest"]["savedAt"]
    latest = start(settings={"session": {"resume": "latest"}})
    assert words(latest) == ["x"]
    assert words(start(settings={"session": {"resume": "new"}})) == []
