"""`tiro sessions import`: several files, folders, stdin, a look before anything is imported."""

import json
from pathlib import Path

from tests.e2e.command import Tiro
from tests.e2e.home import Home
from tests.stores.shapes import SAMPLES

DONE, FAILED, WRONG_USE = 0, 1, 2
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
    assert again.stdout == "11111111-1111-4111-8111-111111111111-01: 14 messages\n"
    assert "has the same messages" in again.stderr
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
