"""At rest a session is as few files as may be, and none of them is open (U9.6, U9.8)."""

import json
from pathlib import Path

import pytest

from tests.processes import CAN_LOOK, open_files
from tests.stores.conftest import Make, Notices
from tests.stores.look import names, texts


def open_below(directory: Path) -> list[str]:
    """The files of this process that are open below a directory."""
    return [name for name in open_files() if name.startswith(str(directory))]


@pytest.mark.skipif(not CAN_LOOK, reason="asks Linux what is open")
def test_no_file_stays_open_after_the_first_message(make_manager: Make, directory: Path) -> None:
    """An editor may wait for hours after it; whoever deletes the session then loses nothing."""
    manager = make_manager()
    session = manager.get()
    with manager.changing(session):
        session.add_message("user", "one")
    assert open_below(directory) == []
    with manager.writing(session):
        session.add_message("user", "two")
    assert texts(make_manager().load(manager.end(session) or Path())) == ["one", "two"]
    assert open_below(directory) == []


def test_no_empty_journal_stays_beside_a_snapshot(make_manager: Make, directory: Path) -> None:
    manager = make_manager()
    session = manager.get()
    with manager.changing(session):
        session.add_message("user", "one")
    path = manager.path_of(session)
    assert path is not None
    assert names(directory) == [path.name]
    with manager.changing(session):
        session.add_message("user", "two")
    manager.save(session)
    assert names(directory) == [path.name]
    assert texts(make_manager().load(path)) == ["one", "two"]
    manager.copy_to(session, directory / "copy.json")
    manager.copy_to(session, directory / "copy.json")
    assert names(directory) == ["copy.json", path.name]


@pytest.mark.parametrize("damage", ["gone", "broken"])
def test_a_journal_without_its_header_undoes_nothing(
    make_manager: Make, directory: Path, notices: Notices, damage: str
) -> None:
    """U9.4: the numbers of the lines go on from the snapshot's, so every change still counts."""
    first = make_manager()
    session = first.create(id="x")
    for number in range(5):
        session.add_message("user", str(number))
    session.edit_message(2, "edited")
    session.rewind(4)
    expected = texts(session)
    path, journal = directory / "x.json", directory / "x.journal"
    header, rest = journal.read_bytes().split(b"\n", 1)
    assert json.loads(header)["journal"] == 1
    copy = directory.parent / "copy"
    copy.mkdir()
    (copy / "x.json").write_bytes(path.read_bytes())
    (copy / "x.journal").write_bytes(rest if damage == "gone" else header[:9] + b"\n" + rest)
    again = make_manager(directory=copy).load(copy / "x.json")
    assert texts(again) == expected == ["0", "edited", "2", "3"]
    assert notices[-1].detail["bad"] == 1, "told, and kept aside before it is cut"
