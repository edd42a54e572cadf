"""`verify`: every file read, what is damaged said in words, repaired without deleting (U4, U9)."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stores.conftest import Make
from tests.stores.look import names
from tiro import Session
from tiro.session.core import Core
from tiro.stores.disk import Disk
from tiro.stores.journal import Journal
from tiro.stores.reading import read_session
from tiro.stores.salvage import salvaged
from tiro.stores.session_files import encode_snapshot
from tiro.stores.verify import Verified, verify
from tiro.stores.verify import repair as mend

NOW = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)
SAID = ["eins", "zwei", "drei ü"]


def look(directory: Path, *, repair: bool = False) -> Verified:
    return (mend if repair else verify)(directory, now=NOW)


def saved(make_manager: Make, *, journaled: int = 0, large: bool = False) -> Path:
    """A session in its files: some messages in the snapshot, so many more in the journal."""
    manager = make_manager()
    session = manager.create(id="mine")
    for text in SAID:
        session.add_message("user", text)
    if large:
        session.add_message("user", "x" * 100_000)
    session.set("k", 1)
    path = manager.save(session)
    for n in range(journaled):
        session.add_message("user", f"later {n}")
    return path


def read(path: Path) -> Core:
    core = Session()
    read_session(path).restore(core)
    return core


def said(path: Path) -> list[Any]:
    return [message.content for message in read(path).oldest_first()]


def kept(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in names(directory) if ".bad-" in name}


def test_what_is_sound_is_left_as_it_is(make_manager: Make, directory: Path) -> None:
    """U9: also a journal that goes on, and one that was torn by a kill (U9.4)."""
    path = saved(make_manager, journaled=2, large=True)
    with path.with_suffix(".journal").open("ab") as journal:
        journal.write(b'{"n":9,"op":"ad')
    before = {name: (directory / name).stat().st_mtime_ns for name in names(directory)}
    for repair in (False, True):
        found = look(directory, repair=repair)
        assert (found.sessions, found.findings, found.is_sound()) == (1, [], True)
    assert {name: (directory / name).stat().st_mtime_ns for name in names(directory)} == before
    assert look(directory / "nowhere") == Verified(0, [])


def test_damage_in_a_snapshot_costs_the_line_it_hits(make_manager: Make, directory: Path) -> None:
    """U4, U9.7: all other messages and fields stay, the journal's too; the file is kept aside."""
    path = saved(make_manager, journaled=2)
    damaged = path.read_bytes().replace(b'"zwei"', b'"zw\xff\x00')
    path.write_bytes(damaged)
    (finding,) = look(directory).findings
    assert (finding.path, finding.is_repaired) == (str(path), False)
    assert finding.problem
    assert path.read_bytes() == damaged, "a look changes nothing"
    (mended,) = look(directory, repair=True).findings
    assert (mended.problem, mended.is_repaired) == (finding.problem, True)
    told = "the session has 4 messages; gone: message 2; what was there is kept"
    assert told in (mended.remedy or "")
    core = read(path)
    assert said(path) == ["eins", "drei ü", "later 0", "later 1"]
    assert (core.id, core.state, core.next_seq) == ("mine", {"k": 1}, 6)
    assert damaged in kept(directory).values()
    assert look(directory).findings == []


def test_a_repair_says_which_fields_and_messages_are_gone(
    make_manager: Make, directory: Path
) -> None:
    path = saved(make_manager)
    data = path.read_bytes().replace(b'"state":{', b'"state":\xff{')
    path.write_bytes(data[: data.index(b'"drei')])
    (mended,) = look(directory, repair=True).findings
    assert "2 messages; gone: message 3, the state; what" in (mended.remedy or "")
    assert said(path) == ["eins", "zwei"]


def test_a_file_of_another_layout_gives_what_stands_before_the_damage(directory: Path) -> None:
    """U7.2: a foreign program's, in one line."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = [{"role": "user", "content": text} for text in SAID]
    path = directory / "other.json"
    path.write_text(json.dumps({"id": "other", "messages": rows})[:-25], "utf-8")
    assert not look(directory).is_sound()
    assert look(directory, repair=True).is_sound()
    assert said(path) == SAID[:2]


@pytest.mark.parametrize("indent", [0, 2])
def test_an_indented_file_keeps_its_own_fields(
    make_manager: Make, directory: Path, indent: int
) -> None:
    """U7.2, U9.7: what a tool was given is no field of the session; its journal stays its own."""
    path = saved(make_manager, journaled=2)
    whole = json.loads(path.read_bytes())
    whole["title"] = "colours"
    given = {"id": "inner", "title": "inner", "memo": "inner", "state": {"inner": True}}
    use = {"type": "tool_use", "id": "toolu_1", "name": "t", "input": given}
    whole["messages"].insert(1, {"role": "assistant", "content": [use], "seq": 9})
    text = json.dumps(whole, indent=indent)
    path.write_text(text.replace('"drei', "drei", 1), "utf-8")
    assert look(directory, repair=True).is_sound()
    core = read(path)
    assert (core.id, core.title, core.state) == ("mine", "colours", {"k": 1})
    assert said(path) == ["eins", [use], "zwei", "later 0", "later 1"]


def test_a_session_without_messages_keeps_what_was_noted(
    make_manager: Make, directory: Path
) -> None:
    """U4, U9.7: only what holds nothing that could be read is set aside."""
    manager = make_manager()
    session = manager.create(id="mine")
    session.memo = {"colour": "blue"}
    session.add_message("user", "eins")
    path = manager.save(session)
    path.write_bytes(path.read_bytes().replace(b'"eins"', b'"eins'))
    assert look(directory, repair=True).is_sound()
    assert (read(path).id, read(path).memo, said(path)) == ("mine", {"colour": "blue"}, [])


def test_a_damaged_file_is_never_given_another_ones_id(directory: Path) -> None:
    """U9.7: an id that neither the file's name nor its journal confirms is not taken."""
    directory.mkdir(parents=True, exist_ok=True)
    row = {"role": "user", "content": "eins"}
    path = directory / "mine.json"
    path.write_text(json.dumps({"id": "theirs", "messages": [row, row]})[:-25], "utf-8")
    assert look(directory, repair=True).is_sound()
    assert (read(path).id, said(path)) == ("mine", ["eins"])


@pytest.mark.parametrize("data", [b"", b"\x00" * 50, b'{"no": "session"}', b"text"])
def test_what_holds_nothing_is_set_aside(directory: Path, data: bytes) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "empty.json"
    path.write_bytes(data)
    assert not look(directory).is_sound()
    assert look(directory, repair=True).is_sound()
    assert list(kept(directory).values()) == [data]
    assert not path.exists()


def test_a_session_of_a_newer_tiro_is_told_and_not_touched(directory: Path) -> None:
    """U7.3."""
    directory.mkdir(parents=True, exist_ok=True)
    data = b'{"schema_version": 99, "messages": []}'
    (directory / "new.json").write_bytes(data)
    (finding,) = look(directory, repair=True).findings
    assert ("newer Tiro" in finding.problem, finding.remedy, finding.is_repaired) == (
        True, None, False,
    )  # fmt: skip
    assert (directory / "new.json").read_bytes() == data


def test_a_bad_line_in_a_journal_costs_itself(make_manager: Make, directory: Path) -> None:
    """U9.4: the journal is kept aside, the rest becomes the snapshot."""
    path = saved(make_manager, journaled=3)
    journal = path.with_suffix(".journal")
    damaged = journal.read_bytes().replace(b'"later 1"', b'"later', 1)
    journal.write_bytes(damaged)
    (finding,) = look(directory).findings
    assert (finding.path, "1 line" in finding.problem) == (str(journal), True)
    (mended,) = look(directory, repair=True).findings
    assert "5 messages; gone: message 5; what" in (mended.remedy or "")
    assert said(path) == [*SAID, "later 0", "later 2"]
    assert list(kept(directory).values()) == [damaged]
    assert journal.stat().st_size == 0
    assert look(directory).findings == []


def test_a_journal_without_its_session_file_becomes_one(
    make_manager: Make, directory: Path
) -> None:
    path = saved(make_manager, journaled=2)
    journal = path.with_suffix(".journal")
    data = journal.read_bytes()
    path.unlink()
    (finding,) = look(directory).findings
    assert (finding.path, "2 messages" in finding.problem) == (str(journal), True)
    (mended,) = look(directory, repair=True).findings
    assert "2 messages; gone: messages 1-3; what" in (mended.remedy or "")
    assert (said(path), read(path).id) == (["later 0", "later 1"], "mine")
    assert list(kept(directory).values()) == [data]


def test_large_values_are_read_and_stay_where_they_lie(make_manager: Make, directory: Path) -> None:
    """U9.10: a damaged one is set aside; a repaired session refers to all of its own."""
    path = saved(make_manager, journaled=2, large=True)
    (blob,) = (directory / "blobs").iterdir()
    journal = path.with_suffix(".journal")
    journal.write_bytes(journal.read_bytes().replace(b'"later 0"', b'"later', 1))
    assert look(directory, repair=True).is_sound()
    assert blob.name.encode() in path.read_bytes()
    assert said(path)[3] == "x" * 100_000
    blob.write_bytes(b"y" * 100_000)
    value, session = sorted(look(directory).findings, key=lambda f: "blobs" not in f.path)
    assert (value.path, session.path) == (str(blob), str(path))
    assert session.remedy is None
    look(directory, repair=True)
    assert not blob.exists()
    assert [p.read_bytes() for p in (directory / "blobs").iterdir()] == [b"y" * 100_000]


def test_a_session_that_is_being_used_is_left_alone(make_manager: Make, directory: Path) -> None:
    """U9.8."""
    path = saved(make_manager, journaled=2)
    journal = path.with_suffix(".journal")
    damaged = journal.read_bytes().replace(b'"later 0"', b'"later', 1)
    journal.write_bytes(damaged)
    holder = Journal(journal, Disk())
    assert holder.try_lock()
    try:
        (finding,) = look(directory, repair=True).findings
    finally:
        holder.close()
    assert (finding.is_repaired, "not repaired" in (finding.remedy or "")) == (False, True)
    assert (journal.read_bytes(), kept(directory)) == (damaged, {})


def test_large_values_that_cannot_be_listed_are_told(directory: Path) -> None:
    """U9: beside what else was found; a repair has told what it did before it came to them."""
    directory.mkdir(parents=True)
    (directory / "blobs").symlink_to("blobs")
    (finding,) = look(directory, repair=True).findings
    assert (finding.path, finding.remedy) == (str(directory / "blobs"), None)
    assert "could not be read" in finding.problem


def test_what_cannot_be_read_at_all_is_told(directory: Path) -> None:
    """U9: its name and the system's reason; nothing is done to it."""
    (directory / "shut.json").mkdir(parents=True)
    (finding,) = look(directory, repair=True).findings
    assert (finding.path, finding.remedy) == (str(directory / "shut.json"), None)


@given(st.data())
def test_whatever_one_byte_does_no_other_message_is_lost(data: st.DataObject) -> None:
    """U4: a snapshot of ours, damaged anywhere, keeps all but the lines that were hit."""
    session = Session(id="s", max_history=4, clock=lambda: NOW)
    for number in range(6):
        session.add_message("user", f"message {number}")
    whole = encode_snapshot(session, NOW)
    at = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.binary(min_size=1, max_size=1).filter(lambda b: b != b"\n"))
    damaged = whole[:at] + byte + whole[at + 1 :]
    found = salvaged(damaged)
    count = found.count
    assert count >= (4 if whole[at : at + 1] == b"\n" else 5)
    rows = json.loads(found.encoded("s"))
    assert len(rows["messages"]) + len(rows["archive"]) == count
