"""`tiro sessions import`: several files, folders, stdin, a look before anything is imported."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Tiro
from tests.e2e.home import Home
from tests.e2e.test_foreign import TREES
from tests.stores.shapes import SAMPLES
from tiro.session.history import time_id
from tiro.stores.manager import SessionManager
from tiro.stores.shared import manager_of

DONE, FAILED, WRONG_USE = 0, 1, 2
KINDS = ("files", "sqlite")
ARRAY = json.dumps([{"role": "user", "content": "from a pipe"}])


def folder(home: Home) -> Path:
    """A folder of transcripts as a colleague has one, a broken and a strange file among them."""
    made = home.workspace / "old"
    (made / "deep").mkdir(parents=True)
    (made / "a.jsonl").write_text(SAMPLES["codex"], "utf-8")
    (made / "deep" / "b.json").write_text(SAMPLES["chatgpt"], "utf-8")
    (made / "broken.json").write_text("[1, 2", "utf-8")
    (made / "picture.png").write_bytes(b"\x89PNG")
    return made


def test_a_look_says_what_each_file_is_and_imports_nothing(tiro: Tiro, home: Home) -> None:
    folder(home)
    seen = tiro("sessions", "import", "--look", "old")
    assert seen.returncode == FAILED
    assert seen.stdout.splitlines() == [
        "old/a.jsonl: codex, 14 messages",
        "old/deep/b.json: chatgpt, 6 messages, Weather",
    ]
    told = seen.stderr.splitlines()
    assert "old/a.jsonl: Not taken over: written by Codex itself: 3" in told[0]
    assert "broken.json' cannot be read as a session" in told[1]
    assert told[-1] == "1 file cannot be read as a session"
    assert home.session_files() == []
    one = tiro("sessions", "import", "--look", "old/deep/b.json", "--json")
    about = json.loads(one.stdout)
    assert (about["format"], about["id"], about["title"]) == ("chatgpt", "gpt-1", "Weather")


def test_several_files_are_imported_and_a_broken_one_stops_none(tiro: Tiro, home: Home) -> None:
    folder(home)
    done = tiro("sessions", "import", "-", "old", "old/a.jsonl", given=ARRAY)
    assert done.returncode == FAILED
    piped, codex, chatgpt = done.stdout.splitlines()
    assert piped.startswith("stdin: session-")
    assert piped.endswith(": 1 message")
    assert codex == "old/a.jsonl: 11111111-1111-4111-8111-111111111111: 14 messages"
    assert chatgpt == "old/deep/b.json: gpt-1: 6 messages"
    assert "broken.json' cannot be read" in done.stderr
    assert len(home.session_files()) == 3
    again = tiro("sessions", "import", "old/a.jsonl")
    assert again.stdout == "11111111-1111-4111-8111-111111111111: 14 messages\n"
    assert "It is here already" in again.stderr
    assert len(home.session_files()) == 3
    out = tiro("sessions", "export", "gpt-1", "--format", "json", "--out", "-")
    assert json.loads(out.stdout)["id"] == "gpt-1"
    assert not (home.workspace / "-").exists()


def test_a_format_can_be_named_and_what_is_wrong_is_one_sentence(tiro: Tiro, home: Home) -> None:
    home.write("talk.json", ARRAY)
    for words, told in (
        (["--format", "codex", "talk.json"], "cannot be read as a session"),
        (["--format", "word", "talk.json"], "The format 'word' is not known"),
        (["talk.json", "nowhere.json"], "There is no file 'nowhere.json'"),
        (["."], "talk.json"),
    ):
        done = tiro("sessions", "import", "--look", *words)
        assert told in (done.stdout if words == ["."] else done.stderr)
        assert (done.returncode == DONE) == (words == ["."])
        assert len(done.stderr.splitlines()) == (words != ["."])


def ids(tiro: Tiro) -> list[str]:
    """The saved sessions, in the order of their ids."""
    listed: list[dict[str, Any]] = json.loads(tiro("sessions", "list", "--json").stdout)["sessions"]
    return sorted(row["id"] for row in listed)


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_no_id_comes_once_and_has_that_of_its_own_time(
    tiro: Tiro, home: Home, kind: str
) -> None:
    """Its own date says when it was: in it, else that of its file (U7.5)."""
    home.write_config(store={"kind": kind})
    file = home.write("talk.json", ARRAY)
    os.utime(file, (1e9, 1e9))
    at = time_id(datetime.fromtimestamp(1e9, UTC))
    rows = [{"role": "user", "content": "q", "timestamp": "2020-02-03T12:00:00Z"}]
    home.write("dated.json", json.dumps(rows))
    first = tiro("sessions", "import", "talk.json", "dated.json")
    assert first.stdout.startswith(f"talk.json: {at}: 1 message\n")
    assert "session-20200203-" in first.stdout
    again = tiro("sessions", "import", "talk.json", "dated.json")
    assert again.stdout == first.stdout
    assert again.stderr.count("It is here already") == 2
    assert len(ids(tiro)) == 2
    tiro("sessions", "rename", at, "Another title")
    assert "here already" in tiro("sessions", "import", "talk.json").stderr


def test_what_is_here_already_hides_nothing_that_came_along(tiro: Tiro, home: Home) -> None:
    """Of a later export of all conversations only the new ones come, and are told."""
    home.write("one.json", json.dumps(TREES[:1] + TREES[2:]))
    home.write("all.json", json.dumps(TREES))
    tiro("sessions", "import", "one.json")
    assert ids(tiro) == ["light0", "light2"]
    done = tiro("sessions", "import", "all.json")
    assert done.stdout == "light2: 1 message\n"
    assert done.stderr.splitlines() == [
        "Older conversations that are here already: 1",
        "Older conversations in it, each a saved session now: 1",
        "It is here already",
    ]
    assert ids(tiro) == ["light0", "light1", "light2"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_here_under_an_id_of_a_channel_is_here_already(
    tiro: Tiro, home: Home, kind: str
) -> None:
    """N6.4: no client could name it."""
    home.write_config(store={"kind": kind})
    home.write("talk.json", ARRAY)
    is_files = kind == "files"
    place = SessionManager(home.sessions) if is_files else shared(home)
    with place as manager:
        manager.get_or_create("cli:1").add_message("user", "from a pipe")
    done = tiro("sessions", "import", "talk.json")
    assert (done.returncode, done.stdout) == (DONE, "cli:1: 1 message\n")
    assert done.stderr == "It is here already\n"
    assert ids(tiro) == ["cli:1"]


def shared(home: Home) -> SessionManager:
    return manager_of(home.config_dir / "sessions.db", lambda notice: None, None)


def test_an_import_is_stored_whatever_autosave_says(tiro: Tiro, home: Home) -> None:
    """M4.4: it is asked for in so many words."""
    home.write_config(session={"autosave": False})
    home.write("all.json", json.dumps(TREES))
    assert tiro("sessions", "import", "all.json").returncode == DONE
    assert ids(tiro) == ["light0", "light1", "light2"]


def test_an_import_that_could_not_be_stored_fails(tiro: Tiro, home: Home) -> None:
    """U7.6: no "1 message" of what is nowhere."""
    home.write("talk.json", ARRAY)
    home.write("taken", "no directory")
    home.write_config(store={"kind": "sqlite", "path": str(home.workspace / "taken" / "a.db")})
    done = tiro("sessions", "import", "talk.json")
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert "could not be" in done.stderr
