"""Protocol section 3: export and import, as files and as text (U7, U9.11)."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import RpcError, Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold
from tests.e2e.talk import add, at_rest, begin_ask, result, stored, use, view, words

BAD_PARAMS = -32602
KEY = "sk-proj-" + "a1B2c3D4" * 6
"""A made-up key in the shape of a real one."""


def export(server: Server, format: str = "json", **more: Any) -> dict[str, Any]:
    done: dict[str, Any] = server.request("tiro/session/export", {"format": format, **more})
    return done


def import_(server: Server, **params: Any) -> dict[str, Any]:
    shown: dict[str, Any] = server.request("tiro/session/import", params)
    return shown


def refused(server: Server, method: str, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        server.request(f"tiro/session/{method}", params)
    return caught.value


def talk(server: Server) -> str:
    """A session with a little of everything; its id."""
    add(server, "user", "héllo", **{"x-y": {"b": 1, "a": 2**70}})
    add(server, "assistant", [{"type": "text", "text": "no"}, use("c1", path="p")])
    add(server, "tool", result("c1", "line\n```\ncode"))
    add(server, "user", [{"type": "hologram", "class": 1.5}])
    server.request("tiro/state/set", {"key": "k", "value": {"deep": [None, 1e3]}})
    server.request("tiro/session/rewind", {"toSeq": 3})
    add(server, "user", "instead")
    server.request("tiro/session/configure", {"maxHistory": 2})
    saved: dict[str, Any] = server.request("tiro/session/save")
    return str(saved["id"])


SAME = "the same messages; this one is a second one"


def twin(id: str) -> str:
    """What is said of an import whose messages are those of another session."""
    return f"The session {id!r} has {SAME}"


def kept(path: str) -> dict[str, Any]:
    """A session file without what is new at each save, its key order included."""
    fields = stored(Path(path))
    for name in ("id", "journal_n", "timestamp"):
        del fields[name]
    return {"text": json.dumps(fields), **fields}


@pytest.mark.parametrize("format", ["json", "yaml"])
@pytest.mark.parametrize("as_file", [True, False])
def test_an_export_comes_back_equal_under_a_free_id(
    server: Server, tmp_path: Path, format: str, as_file: bool
) -> None:
    """U7.1, U7.2: nothing is lost on the way, and the file that was there stays."""
    id_ = talk(server)
    before = view(server, all=True)
    given = {"path": str(tmp_path / "new" / "dir" / "x.out")} if as_file else {}
    done = export(server, format, **given)
    source = {"path": done["path"]} if as_file else {"text": done["text"]}
    shown = import_(server, **source)
    assert shown["id"] == f"{id_}-01"
    assert shown["path"] == str(server.home.sessions / f"{id_}-01.json")
    assert shown["notes"] == [twin(id_)]
    assert view(server, all=True)["messages"] == before["messages"]
    assert kept(shown["path"]) == kept(str(server.home.sessions / f"{id_}.json"))
    again = view(server)
    same = {k: v for k, v in before.items() if k not in ("id", "path", "savedAt", "messages")}
    assert {k: again[k] for k in same} == same
    assert add(server, "user", "goes on")["stored"]


def test_jsonl_and_markdown_are_made_to_be_read_elsewhere(server: Server) -> None:
    """N6.1."""
    talk(server)
    first, *rows = map(json.loads, export(server, "jsonl")["text"].splitlines())
    assert first["_type"] == "metadata"
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "user"]
    text = export(server, "markdown")["text"]
    assert "## User" in text
    assert "````\nline\n```\ncode\n````" in text
    assert "hologram" not in text


def test_a_saved_session_is_exported_without_being_loaded(server: Server) -> None:
    id_ = talk(server)
    server.request("tiro/session/clear")
    add(server, "user", "current")
    current = view(server)["id"]
    assert json.loads(export(server, id=id_)["text"])["id"] == id_
    assert json.loads(export(server)["text"])["id"] == current
    assert view(server)["id"] == current
    assert refused(server, "export", format="json", id="none").kind == "sessionNotFound"
    assert refused(server, "export", format="json", id="../x").code == BAD_PARAMS


def test_the_export_holds_what_only_the_journal_holds(start: StartServer, home: Home) -> None:
    """U9.2."""
    one = start()
    add(one, "user", "in the journal")
    id_ = view(one)["id"]
    one.kill()
    two = start()
    rows = json.loads(export(two, id=id_)["text"])["messages"]
    assert [row["content"] for row in rows] == ["in the journal"]


def test_large_values_are_in_every_export_and_found(server: Server, tmp_path: Path) -> None:
    """U9.10: what lies in files of its own is put back, also from a session's own file."""
    large = "beginning " + "x" * 100_000 + " haystackneedle"
    add(server, "user", large)
    id_ = server.request("tiro/session/save")["id"]
    file = server.home.sessions / f"{id_}.json"
    assert file.stat().st_size < 10_000
    server.request("tiro/session/clear")
    for format in ("json", "yaml", "jsonl", "markdown", "agently", "agently-yaml"):
        assert large in export(server, format, id=id_)["text"]
    (hit,) = server.request("tiro/session/search", {"query": "haystackneedle"})["hits"]
    assert (hit["id"], hit["snippet"][-14:]) == (id_, "haystackneedle")
    for source in ({"text": export(server, "yaml", id=id_)["text"]}, {"path": str(file)}):
        shown = import_(server, **source)
        assert [note.partition(" has ")[2] for note in shown["notes"]] == [SAME]
        assert shown["messages"][0]["content"] == large
        assert Path(shown["path"]).stat().st_size < 10_000
    alone = tmp_path / "alone.json"
    alone.write_bytes(file.read_bytes())
    assert import_(server, path=str(alone))["notes"] == [
        "Large values that lay in files of their own are missing",
        f"It is '{id_}-03' here: another session has the id '{id_}'",
    ]


def test_what_is_imported_again_is_told(server: Server) -> None:
    """Also where it has no id, and where the first of the two has left its window."""
    array = json.dumps([{"role": "user", "content": f"heron {n}"} for n in range(4)])
    first = import_(server, text=array)
    server.request("tiro/session/configure", {"maxHistory": 1})
    assert "notes" not in first
    second = import_(server, text=array)
    assert second["notes"] == [twin(first["id"])]
    named = {"id": "heron", "messages": [{"role": "user", "content": "heron"}]}
    assert "notes" not in import_(server, text=json.dumps(named))
    add(server, "user", "goes on")
    assert import_(server, text=json.dumps(named))["notes"] == [
        "It is 'heron-01' here: another session has the id 'heron'"
    ]


@pytest.mark.parametrize("format", ["agently", "agently-yaml"])
def test_the_agently_form_goes_out_and_comes_back(server: Server, format: str) -> None:
    """U7.4, answer 4: both histories, without what was taken back, under an id of its own."""
    id_ = talk(server)
    text = export(server, format)["text"]
    shown = import_(server, text=text)
    assert shown["id"] != id_
    assert shown["messages"][-1]["content"] == "instead"
    again = export(server, format)["text"]
    assert again.replace(shown["id"], id_) == text


def test_a_session_file_is_imported_with_its_journal(start: StartServer, home: Home) -> None:
    one = start()
    add(one, "user", "in the journal")
    file = Path(view(one)["path"])
    one.kill()
    shown = import_(start(), path=str(file))
    assert [m["content"] for m in shown["messages"]] == ["in the journal"]
    assert shown["path"] != str(file)


@pytest.mark.parametrize("format", ["entries", "xml", "", "JSON"])
def test_a_format_that_is_not_there_names_those_that_are(server: Server, format: str) -> None:
    error = refused(server, "export", format=format)
    assert error.code == BAD_PARAMS
    assert "json, jsonl, " in error.message
    assert refused(server, "import", text="{}", format=format).code == BAD_PARAMS


def test_what_looks_like_a_key_is_left_out_unless_that_is_switched_off(
    server: Server, start: StartServer
) -> None:
    """U9.11: only in exports, never in the session itself; nothing is lost for who says so."""
    text = f"use {KEY} please"
    add(server, "user", text)
    for format in ("json", "yaml", "jsonl", "markdown"):
        done = export(server, format)
        assert done["redacted"] is True
        assert KEY not in done["text"]
        assert "use [secret] please" in done["text"]
        full = export(server, format, redact=False)
        assert "redacted" not in full
        assert text in full["text"]
    assert view(server)["messages"][0]["content"] == text
    other = start(settings={"session": {"redact": False}})
    add(other, "user", text)
    assert text in export(other)["text"]
    assert text not in export(other, redact=True)["text"]


# files


def test_an_export_is_private_and_replaces_only_an_earlier_one(
    server: Server, tmp_path: Path
) -> None:
    """M7.3: nothing else is ever overwritten."""
    talk(server)
    path = tmp_path / "out.md"
    assert export(server, "markdown", path=path.as_uri())["path"] == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    add(server, "user", "more")
    export(server, "markdown", path=str(path))
    assert "more" in path.read_text("utf-8")
    export(server, "yaml", path=str(path))  # of the same session, in another format
    other = tmp_path / "notes.md"
    for content in ("# My notes\n", json.dumps({"id": "other", "messages": []}), "id: x\n"):
        other.write_text(content, "utf-8")
        error = refused(server, "export", format="markdown", path=str(other))
        assert (error.kind, error.data["errno"]) == ("storeFailed", "EEXIST")
        assert error.data["path"] == str(other)
        assert other.read_text("utf-8") == content
    other.write_text("")
    export(server, "json", path=str(other))
    assert sorted(p.name for p in tmp_path.glob("*.*")) == ["notes.md", "out.md"]


def test_no_export_takes_the_place_of_a_session_file(server: Server, tmp_path: Path) -> None:
    """A redacted copy must not become the session."""
    id_ = talk(server)
    home = server.home.sessions
    for path in (home / f"{id_}.json", home / "free.json"):
        error = refused(server, "export", format="json", path=str(path))
        assert error.data["errno"] == "EEXIST"
    moved = tmp_path / "elsewhere.json"
    server.request("tiro/session/save", {"path": str(moved)})
    server.request("tiro/session/load", {"path": str(moved)})
    before = moved.read_bytes()
    assert refused(server, "export", format="json", path=str(moved)).data["errno"] == "EEXIST"
    assert moved.read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a right there")
def test_an_export_through_a_link_goes_to_its_target(server: Server, tmp_path: Path) -> None:
    talk(server)
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    link.symlink_to(target)
    assert export(server, path=str(link))["path"] == str(target)
    assert link.is_symlink()
    assert target.is_file()


def test_where_nothing_can_be_written_the_reason_is_told(server: Server, tmp_path: Path) -> None:
    talk(server)
    file = tmp_path / "file"
    file.write_text("")
    error = refused(server, "export", format="json", path=str(file / "x.json"))
    assert (error.kind, error.data["path"]) == ("storeFailed", str(file / "x.json"))
    assert error.data["errno"] in ("ENOTDIR", "EEXIST")
    error = refused(server, "export", format="json", path=str(tmp_path))
    assert (error.kind, error.data["errno"]) == ("storeFailed", "EISDIR")


# import


@pytest.mark.parametrize(
    "text",
    ["", "hello", "{", "[]", '{"messages": [', '[{"role": "user", "content": 1}]', "{}",
     '{"messages": [{"role": "user"}]}', "messages: [", "messages:\n- !!python/name:os.x\n",
     "# Session\n\n## User\n\nhi\n", '{"schema_version": 99, "messages": []}'],
)  # fmt: skip
def test_what_is_no_session_changes_nothing(server: Server, tmp_path: Path, text: str) -> None:
    add(server, "user", "mine")
    before, files = at_rest(server), sorted(server.home.sessions.iterdir())
    path = tmp_path / "bad.txt"
    path.write_text(text, "utf-8")
    for params in ({"text": text}, {"path": str(path)}):
        error = refused(server, "import", **params)
        assert (error.code, error.kind) == (-32010, "sessionFileInvalid")
        assert error.data["reason"]
        assert error.data.get("path") == params.get("path")
    assert path.read_text("utf-8") == text
    assert view(server) == before
    assert sorted(server.home.sessions.iterdir()) == files


def test_what_is_no_file_is_told(server: Server, tmp_path: Path) -> None:
    gone = str(tmp_path / "none.json")
    assert refused(server, "import", path=gone).kind == "sessionNotFound"
    assert refused(server, "import", path=str(tmp_path)).kind == "sessionFileInvalid"
    latin = tmp_path / "latin.json"
    latin.write_bytes('{"messages": [], "title": "é"}'.encode("latin-1"))
    assert refused(server, "import", path=str(latin)).kind == "sessionFileInvalid"
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(300_000_000)
    assert "larger" in refused(server, "import", path=str(huge)).message
    for params in ({}, {"path": gone, "text": "{}"}, {"path": "relative.json"}):
        assert refused(server, "import", **params).code == BAD_PARAMS


def test_a_small_file_of_any_origin_is_imported(server: Server) -> None:
    """U7.2, M4.2; the id of a file elsewhere is kept when it is free."""
    rows = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    shown = import_(server, text=json.dumps({"id": "From-Afar", "messages": rows}))
    assert (shown["id"], words(server)) == ("From-Afar", ["q", "a"])
    assert Path(shown["path"]).parent == server.home.sessions
    lines = [{"_type": "metadata", "key": "cli:1", "summary": "s"}, *rows]
    shown = import_(server, text="\n".join(map(json.dumps, lines)) + "\n{broken\n")
    assert (shown["id"], shown["summary"]) == ("cli-1", "s")
    assert shown["notes"] == [
        "1 line is broken and was left out",
        "It is 'cli-1' here: 'cli:1' is no session id",
        twin("From-Afar"),
    ]
    assert words(server) == ["q", "a"]


def test_the_answer_to_an_import_can_be_short_and_others_are_answered_meanwhile(
    server: Server, tmp_path: Path
) -> None:
    """A file of any size: nothing else waits until it is read and weighed; P12."""
    said = "The quick brown fox jumps over the lazy dog. " * 2000
    rows = [{"role": "user", "content": f"{n} {said}"} for n in range(200)]
    big = tmp_path / "big.json"
    big.write_text(json.dumps({"id": "big", "messages": rows}))
    importing = server.begin("tiro/session/import", {"path": str(big), "limit": 1})
    between = 0
    while not importing.done:
        assert server.request("tiro/turn/cancel") == {"cancelled": False}
        between += not importing.done
    shown = importing.result()
    assert (shown["total"], [m["seq"] for m in shown["messages"]]) == (200, [200])
    assert shown["contextSize"]["tokens"] > 1_000_000
    assert between > 3


def test_rights_given_elsewhere_are_not_imported(server: Server) -> None:
    """Somebody else's "always" must not open this machine to a model."""
    rule = {"permission": "bash", "pattern": "*", "decision": "allow"}
    shown = import_(server, text=json.dumps({"id": "r", "messages": [], "rules": [rule]}))
    assert shown["notes"] == ["Permissions that were given in it hold no more"]
    server.request("tiro/session/save")
    assert stored(server.home.sessions / f"{shown['id']}.json")["rules"] == []


def test_an_import_ends_the_turn_and_saves_the_old_session(
    server: Server, provider: Provider
) -> None:
    """Section 4: as cancel does; nothing of the old turn comes after the answer."""
    provider.script(replies.stream(replies.text_chunk("half"), Hold()))
    asked = begin_ask(server, "old")
    server.wait_event("text")
    old = view(server)["id"]
    shown = import_(server, text=json.dumps({"id": "new-one", "messages": []}))
    assert shown["busy"] is None
    assert asked.result()["stopReason"] == "cancelled"
    assert stored(server.home.sessions / f"{old}.json")["messages"][0]["content"]
    assert view(server)["total"] == 0


def test_an_export_waits_for_what_was_asked_before(server: Server) -> None:
    pending = [
        server.begin("tiro/session/addMessage", {"role": "user", "content": f"{n}"})
        for n in range(20)
    ]
    done = json.loads(export(server)["text"])
    assert [row["content"] for row in done["messages"]] == [f"{n}" for n in range(20)]
    for one in pending:
        one.result()


def test_without_autosave_an_import_writes_nothing(start: StartServer, home: Home) -> None:
    """M4.4."""
    server = start(settings={"session": {"autosave": False}})
    shown = import_(server, text=json.dumps({"id": "quiet", "messages": []}))
    assert shown["path"] is None
    assert home.session_files() == []
