"""Sessions as property: deleted ones come back, titles change, and nothing is gone by accident."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.command import Tiro
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold
from tests.e2e.talk import add, ask, begin_ask, view, words
from tiro.exits import Exit


def kept(server: Server, text: str) -> str:
    """A saved session that is not the current one; its id."""
    add(server, "user", text)
    id_: str = server.request("tiro/session/save")["id"]
    server.request("tiro/session/clear")
    return id_


def titles(server: Server) -> dict[str, str]:
    return {row["id"]: row["title"] for row in server.request("tiro/session/list")["sessions"]}


def in_trash(server: Server) -> list[str]:
    return [row["id"] for row in server.request("tiro/trash/list")["sessions"]]


def test_a_deleted_session_comes_back_also_after_a_restart(start: StartServer) -> None:
    server = start()
    id_ = kept(server, "precious words")
    assert server.request("tiro/session/search", {"query": "precious"})["hits"]
    assert server.request("tiro/session/delete", {"id": id_}) == {"deleted": True}
    assert server.request("tiro/session/delete", {"id": id_}) == {"deleted": False}
    assert server.error("tiro/session/load", {"id": id_}).kind == "sessionNotFound"
    assert server.request("tiro/session/search", {"query": "precious"})["hits"] == []
    server.kill()
    server = start()
    listed = server.request("tiro/trash/list")
    assert listed["total"] == 1
    assert (listed["sessions"][0]["title"], listed["sessions"][0]["messages"]) == (
        "precious words", 1,
    )  # fmt: skip
    restored = server.request("tiro/trash/restore", {"id": id_})
    path = str(server.home.sessions / f"{id_}.json")
    assert restored == {"id": id_, "path": path, "renamed": False}
    server.request("tiro/session/load", {"id": id_})
    assert words(server) == ["precious words"]
    assert server.error("tiro/trash/restore", {"id": id_}).kind == "sessionNotFound"


def test_what_is_deleted_leaves_the_search_index_at_once(start: StartServer) -> None:
    """A secret must not wait there for the next search."""
    server = start()
    id_ = kept(server, "xylophone")
    assert server.request("tiro/session/search", {"query": "xylophone"})["hits"]
    (cache,) = server.home.root.rglob("search-*.db")
    assert b"xylophone" in cache.read_bytes()
    server.request("tiro/session/delete", {"id": id_, "forGood": True})
    server.kill()
    assert b"xylophone" not in cache.read_bytes()
    assert server.home.sessions.exists()
    assert not [p for p in server.home.sessions.rglob("*") if p.is_file() and p.suffix == ".json"]


def test_for_good_is_for_good(start: StartServer) -> None:
    """Also what waits in the trash under that id; the rest of the trash stays."""
    server = start()
    first, second = kept(server, "one"), kept(server, "two")
    for id_ in (first, second):
        server.request("tiro/session/delete", {"id": id_})
    assert server.request("tiro/session/delete", {"id": first, "forGood": True})["deleted"]
    assert in_trash(server) == [second]
    assert server.error("tiro/trash/restore", {"id": first}).kind == "sessionNotFound"
    assert server.request("tiro/trash/empty", {"id": "nobody"}) == {"removed": 0}
    assert server.request("tiro/trash/empty") == {"removed": 1}
    assert in_trash(server) == []


def test_the_current_session_is_deleted_and_restored(server: Server, provider: Provider) -> None:
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    turn = begin_ask(server, "question")
    hold.wait()
    id_ = view(server)["id"]
    assert server.error("tiro/session/delete", {"id": id_}).kind == "turnInProgress"
    hold.release()
    turn.result()
    before = view(server)
    server.request("tiro/session/delete", {"id": id_})
    assert (view(server)["id"], view(server)["total"]) == (None, 0)
    server.request("tiro/trash/restore", {"id": id_})
    assert view(server)["id"] is None, "the current session stays the current one"
    after = server.request("tiro/session/load", {"id": id_})
    assert after["messages"] == before["messages"]


@pytest.mark.parametrize("is_current", [True, False])
def test_any_session_may_be_renamed(start: StartServer, is_current: bool) -> None:
    server = start()
    id_ = kept(server, "first words")
    if is_current:
        server.request("tiro/session/load", {"id": id_})
    assert server.request("tiro/session/rename", {"id": id_, "title": "Mine"}) == {}
    assert titles(server) == {id_: "Mine"}
    assert (view(server)["title"] == "Mine") is is_current
    server.kill()
    server = start()
    assert titles(server) == {id_: "Mine"}
    server.request("tiro/session/rename", {"id": id_, "title": None})
    assert titles(server) == {id_: "first words"}
    assert server.error("tiro/session/rename", {"id": "no", "title": "x"}).kind == "sessionNotFound"


def test_a_session_that_is_open_elsewhere_is_renamed_unless_it_is_answered_in(
    start: StartServer, provider: Provider
) -> None:
    """U9.8: the other editor hears of it and loses nothing; during a turn it is refused."""
    one, other = start(), start()
    ask(one, "question")
    id_ = view(one)["id"]
    other.request("tiro/session/rename", {"id": id_, "title": "Named"})
    one.wait_notification("tiro/session/changed", lambda p: p["reason"] == "changedOnDisk")
    assert view(one)["title"] == "Named"
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("second"), hold))
    turn = begin_ask(one, "second question")
    hold.wait()
    for method, params in (("session/rename", {"title": "No"}), ("session/delete", {})):
        refused = other.error(f"tiro/{method}", {"id": id_, **params})
        assert (refused.kind, refused.data["pid"]) == ("sessionInUse", one.process.pid)
    hold.release()
    turn.result()
    assert len(words(one)) == 4
    assert view(one)["title"] == "Named"


def test_the_command_line_deletes_restores_and_renames(tiro: Tiro, home: Home) -> None:
    home.write_config()
    tiro("ask", "Which colour?")
    (saved,) = home.session_files()
    id_ = saved.stem
    before = saved.read_bytes()
    deleted = tiro("sessions", "delete", id_)
    assert deleted.stdout == f"{id_} is in the trash; `tiro sessions restore {id_}` takes it back\n"
    listed = tiro("sessions", "trash").stdout.split()
    assert (listed[0], listed[-2:]) == (id_, ["Which", "colour?"])
    assert tiro("sessions", "restore", id_).stdout == f"{id_} is back\n"
    assert saved.read_bytes() == before
    assert tiro("sessions", "rename", "latest", "Blue").stdout == f"{id_} is called Blue\n"
    assert "Blue" in tiro("sessions", "list").stdout
    unasked = tiro("sessions", "delete", "--for-good", id_)
    assert (unasked.returncode, "say --yes" in unasked.stderr) == (Exit.WRONG_USE, True)
    gone = tiro("sessions", "delete", "--for-good", "--yes", id_)
    assert gone.stdout == f"{id_} is deleted for good\n"
    assert json.loads(tiro("sessions", "trash", "--json").stdout)["total"] == 0
    assert tiro("sessions", "restore", id_).returncode == Exit.FAILED
    assert tiro("sessions", "trash", "--empty", "--yes").stdout == "0 sessions deleted for good\n"


# By age and size


def aged(home: Home, id: str, days: float, text: str = "hi") -> Path:
    """A session file that was saved so many days ago."""
    saved = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S+0000")
    messages = [{"role": "user", "content": text}]
    home.sessions.mkdir(parents=True, exist_ok=True)
    path = home.sessions / f"{id}.json"
    path.write_text(json.dumps({"id": id, "messages": messages, "timestamp": saved}))
    return path


def test_one_that_cannot_be_restored_or_deleted_stops_no_other(tiro: Tiro, home: Home) -> None:
    for id in ("one", "two"):
        aged(home, id, 1, "some words")
    for command, told in (("delete", "is in the trash"), ("restore", "is back")):
        done = tiro("sessions", command, "one", "none", "two")
        assert done.returncode == Exit.FAILED
        assert [line.split()[0] for line in done.stdout.splitlines()] == ["one", "two"]
        assert done.stdout.count(told) == 2
        assert "'none'" in done.stderr
    held = tiro("sessions", "delete", "one", "../x")
    assert (held.returncode, held.stdout[:3]) == (Exit.FAILED, "one")
    assert tiro("sessions", "delete", "../x").returncode == Exit.WRONG_USE


def test_a_dry_run_says_exactly_what_then_goes(start: StartServer) -> None:
    server = start()
    for id_, days in (("new", 1), ("old", 91), ("older", 400)):
        aged(server.home, id_, days)
    mine = kept(server, "just now")
    server.request("tiro/session/load", {"id": "older"})
    by_age = {"olderThanDays": 90}
    planned = server.request("tiro/session/prune", {**by_age, "dryRun": True})
    assert [(row["id"], row["reason"]) for row in planned["sessions"]] == [("old", "age")]
    assert planned["kept"] == 3, "the current one stays, however old"
    assert planned["bytes"] == planned["sessions"][0]["bytes"]
    assert in_trash(server) == []
    assert server.request("tiro/session/prune", by_age) == planned
    assert in_trash(server) == ["old"]
    rest = server.request("tiro/session/prune", {"keepUnderBytes": 1})
    assert {row["id"] for row in rest["sessions"]} == {"new", mine}
    assert list(titles(server)) == ["older"]
    nothing = server.error("tiro/session/prune", {"dryRun": True})
    assert (nothing.code, "retention" in str(nothing)) == (-32602, True)
    for id_ in ("old", "new", mine):
        assert not server.request("tiro/trash/restore", {"id": id_})["renamed"]


def test_what_another_process_has_changed_and_not_left_stays(start: StartServer) -> None:
    one, other = start(), start()
    aged(one.home, "open", 400)
    one.request("tiro/session/load", {"id": "open"})
    one.request("tiro/state/set", {"key": "k", "value": 1})
    by_size = {"keepUnderBytes": 0}
    assert other.request("tiro/session/prune", by_size)["sessions"] == []
    one.request("tiro/session/clear")
    assert [row["id"] for row in other.request("tiro/session/prune", by_size)["sessions"]] == [
        "open"
    ]


def test_a_copy_with_the_id_of_another_session_takes_nothing_along(server: Server) -> None:
    """Two files may hold one id; the id leads to the newer one, which nobody wants to lose."""
    path = aged(server.home, "x", 1)
    old = aged(server.home, "y", 400)
    old.write_text(old.read_text().replace('"y"', '"x"'))
    assert server.request("tiro/session/prune", {"olderThanDays": 90})["sessions"] == []
    assert path.exists()
    assert old.exists()


def test_the_command_line_prunes(tiro: Tiro, home: Home) -> None:
    home.write_config()
    path = aged(home, "old", 91, "ancient words")
    nothing = tiro("sessions", "prune", "--older-than", "99d")
    assert (nothing.stdout, nothing.stderr) == ("", "Nothing went to the trash; 1 stay\n")
    dry = tiro("sessions", "prune", "--older-than", "90d", "--dry-run")
    assert dry.stdout.split()[0] == "old"
    size = f"{path.stat().st_size} B"
    assert f"1 session would go to the trash, {size} in all" in dry.stderr
    assert path.exists()
    done = tiro("sessions", "prune", "--older-than", "12w", "--keep-under", "1GB")
    assert (done.stdout, "1 session went" in done.stderr) == (dry.stdout, True)
    assert not path.exists()
    assert tiro("sessions", "prune").returncode == Exit.WRONG_USE
    path = aged(home, "next", 91, "more of them")
    shutil.rmtree(home.sessions / "trash")
    home.sessions.joinpath("trash").write_text("in the way")
    failed = tiro("sessions", "prune", "--older-than", "90d")
    assert (failed.returncode, path.exists()) == (Exit.FAILED, True)
    assert "tiro: 1 session could not go" in failed.stderr
    assert json.loads(tiro("sessions", "prune", "--older-than", "90d", "--json").stdout) == {
        "sessions": [], "bytes": 0, "kept": 1, "left": 1,
    }  # fmt: skip
    assert tiro("sessions", "prune", "--older-than", "soon").returncode == Exit.WRONG_USE
