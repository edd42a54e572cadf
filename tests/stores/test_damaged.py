"""Files that are no session: refused with a reason, listed, never changed by a load (B10, B14)."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.stores.conftest import Make, Notices
from tests.stores.look import names, texts
from tiro.errors import SessionFormatError, StorageError
from tiro.stores import disk, reading
from tiro.stores.manager import SessionManager


def message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text, "seq": int(text)}


WHOLE = json.dumps({"id": "x", "messages": [message(str(n)) for n in range(1, 6)]}).encode()
FULL = {"id": "x", "schema_version": 1, "messages": [message("1"), message("2")]}

DAMAGED: dict[str, tuple[bytes, int]] = {
    "empty": (b"", 0),
    "blank": (b" \n", 0),
    "half": (WHOLE[: len(WHOLE) * 7 // 10], 3),
    "cut after the first message": (WHOLE[: WHOLE.index(b'"2"')], 1),
    "NULs behind it": (WHOLE + b"\x00" * 8192, 5),
    "NULs only": (b"\x00" * 8192, 0),
    "a list": (b"[1, 2]", 0),
    "null": (b"null", 0),
    "a number": (b"7", 0),
    "a string": (b'"session"', 0),
    "an object without messages": (b'{"id": "x"}', 0),
    "messages that are no list": (b'{"id": "x", "messages": {"role": "user"}}', 0),
    "a message without a role": (b'{"id": "x", "messages": [{"content": "a"}]}', 0),
    "a newer schema": (json.dumps({**FULL, "schema_version": 2}).encode(), 0),
    "a schema that is no number": (json.dumps({**FULL, "schema_version": "x"}).encode(), 0),
    "no UTF-8": (b'{"id": "x", "messages": [' + b"\xff\xfe", 0),
    "deep": (b'{"id":"x","messages":' + b"[" * 50_000, 0),
}


@pytest.fixture(params=DAMAGED)
def damaged(request: pytest.FixtureRequest, directory: Path) -> tuple[Path, bytes, int]:
    """A damaged file in the directory, its bytes, and how many messages are still readable."""
    data, recovered = DAMAGED[request.param]
    directory.mkdir(parents=True)
    path = directory / "x.json"
    path.write_bytes(data)
    return path, data, recovered


def test_a_damaged_file_is_refused_and_stays(
    manager: SessionManager, damaged: tuple[Path, bytes, int]
) -> None:
    """`sessionFileInvalid` with path, reason and what a repair could read; U7.3."""
    path, data, recovered = damaged
    for name in (path, "x"):
        with pytest.raises(SessionFormatError) as caught:
            manager.load_id(name) if isinstance(name, str) else manager.load(name)
        assert caught.value.data["path"] == str(path)
        assert caught.value.data["reason"]
        assert caught.value.data["recovered"] == recovered
        assert str(path) in str(caught.value)
    manager.close()
    assert path.read_bytes() == data
    assert names(path.parent) == ["x.json"]


def test_a_damaged_file_is_listed_and_costs_the_others_nothing(
    manager: SessionManager, damaged: tuple[Path, bytes, int]
) -> None:
    """B10 (iii): LIST marks it; start, prompt and save work beside it."""
    path, data, _ = damaged
    session = manager.get()
    session.add_message("user", "hello")
    manager.save(session)
    rows, total = manager.list()
    assert total == 2
    assert [(row.id, row.error is None) for row in rows] == [(session.id, True), ("x", False)]
    assert rows[1].bytes == len(data)
    latest = manager.latest()
    assert latest is not None
    assert latest.id == session.id
    assert path.read_bytes() == data


def test_a_session_with_that_id_takes_another_name(
    manager: SessionManager, damaged: tuple[Path, bytes, int], notices: Notices
) -> None:
    """Nothing is overwritten: an id whose file is damaged counts as taken."""
    path, data, _ = damaged
    session = manager.get_or_create("y")
    session.change(id="x")
    session.add_message("user", "hello")
    assert session.id == "x-01"
    assert notices.reasons == ["renamed"]
    assert path.read_bytes() == data


def test_the_journal_counts_for_a_repair_too(manager: SessionManager, directory: Path) -> None:
    session = manager.create(id="x")
    for number in range(5):
        session.add_message("user", str(number))
    path = directory / "x.json"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(SessionFormatError) as caught:
        manager.load(path)
    assert caught.value.data["recovered"] >= 4


def test_a_bad_line_in_the_journal_costs_only_itself(
    make_manager: Make, directory: Path, notices: Notices
) -> None:
    """U9.4: the journal is copied aside once, its remaining adds are applied."""
    first = make_manager()
    session = first.create(id="x")
    for number in range(5):
        session.add_message("user", str(number))
    journal, path = directory / "x.journal", directory / "x.json"
    kept, snapshot = journal.read_bytes().split(b"\n"), path.read_bytes()
    kept[2] = kept[2][:20]
    directory = directory.parent / "copy"
    directory.mkdir()
    path, journal = directory / "x.json", directory / "x.journal"
    path.write_bytes(snapshot)
    journal.write_bytes(b"\n".join(kept))
    bad = journal.read_bytes()
    assert make_manager(directory=directory).list()[0][0].messages == 4
    assert names(directory) == ["x.journal", "x.json"], "a list changes nothing"
    manager = make_manager(directory=directory)
    again = manager.load(path)
    assert texts(again) == ["0", "1", "3", "4"]
    again.add_message("user", "5")
    manager.close()
    [aside] = [name for name in names(directory) if ".bad-" in name]
    assert aside.startswith("x.journal.bad-")
    assert (directory / aside).read_bytes() == bad
    assert texts(make_manager(directory=directory).load(path)) == ["0", "1", "3", "4", "5"]
    assert len(names(directory)) == 2


def test_the_journal_of_another_session_is_not_mixed_in(
    make_manager: Make, directory: Path
) -> None:
    """Somebody put another session's file over this one; its journal stayed."""
    manager = make_manager()
    one, two = manager.create(id="one"), manager.create(id="two")
    for session in (one, two):
        session.add_message("user", f"{session.id} a")
        session.add_message("user", f"{session.id} b")
    place = directory.parent / "mixed"
    place.mkdir()
    (place / "one.json").write_bytes((directory / "two.json").read_bytes())
    (place / "one.journal").write_bytes((directory / "one.journal").read_bytes())
    other = make_manager(directory=place)
    session = other.load(place / "one.json")
    assert texts(session) == ["two a"]
    session.add_message("user", "more")
    assert texts(make_manager(directory=place).load(place / "one.json")) == ["two a", "more"]
    other.close()
    assert [name for name in names(place) if name.startswith("one.journal.bad-")]


def test_a_new_session_is_not_given_a_deleted_ones_journal(
    make_manager: Make, directory: Path
) -> None:
    """Somebody removed the file by hand and left the journal."""
    first = make_manager()
    session = first.create(id="x")
    session.add_message("user", "old 1")
    session.add_message("user", "old 2")
    journal = (directory / "x.journal").read_bytes()
    first.delete("x")
    (directory / "x.journal").write_bytes(journal)
    manager = make_manager()
    again = manager.create(id="x")
    again.add_message("user", "new")
    again.add_message("user", "newer")
    assert texts(make_manager().load_id("x")) == ["new", "newer"]
    manager.close()
    assert [name.split(".bad-")[0] for name in names(directory)] == ["x.journal", "x.json"]


def test_a_file_with_a_number_of_many_digits_is_read(
    manager: SessionManager, directory: Path
) -> None:
    """A running server reads and writes such numbers; Python by itself reads 4,300 digits."""
    block = '{"type": "tool_use", "id": "a", "name": "n", "input": {"x": %s}}' % ("9" * 5000)
    text = '{"schema_version": 1, "id": "a", "messages": [{"role": "assistant", "content": [%s]}]}'
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "a.json"
    path.write_text(text % block)
    assert "9" * 5000 in str(manager.load(path).oldest_first())


def test_a_file_that_goes_out_of_reach_while_it_is_read_is_told(
    manager: SessionManager, make_manager: Make, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its row of the list; the others stand there as ever."""
    for id in ("x", "y"):
        manager.create(id=id).add_message("user", "hello")
    reached = disk.signature_at

    def refuse(path: Path) -> Any:
        if path.name == "x.json":
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
        return reached(path)

    monkeypatch.setattr(reading, "signature_at", refuse)
    with pytest.raises(StorageError, match="could not be read: Stale file handle"):
        reading.read_session(directory / "x.json")
    rows, _ = make_manager().list()
    assert {row.id: row.error is None for row in rows} == {"x": False, "y": True}
