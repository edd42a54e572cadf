"""Outputs too long to be held: all of each on the disk, read in part, gone with its session."""

import os
from pathlib import Path

import pytest

from tiro.assistant.window import DAMAGED, piece
from tiro.session.large import OUTPUT, PARTS, parts_of
from tiro.session.messages import Message
from tiro.session.session import Session
from tiro.stores import output_files
from tiro.stores.manager import SessionManager
from tiro.stores.output_files import PART_CHARS, OutputFiles

KEY = "a-key-9f8e7d6c5b4a"
TEXT = "漢字 line of output\n" * 150_000


def kept(manager: SessionManager, session: Session, text: str, step: int = 700_001) -> int:
    """Store a result whose whole output lies in files; the number of its message."""
    outputs = manager.outputs(session)
    assert outputs is not None
    keeper = outputs.keeper()
    assert keeper is not None
    for at in range(0, len(text), step):
        keeper.add(text[at : at + step])
    block = {"type": "tool_result", "tool_use_id": "c1", "content": "the end"}
    message = Message("tool", block).marked(**{OUTPUT: "held", PARTS: keeper.end()})
    session.add_message("user", "go")
    use = {"type": "tool_use", "id": "c1", "name": "n", "input": {}}
    session.add_message("assistant", [use])
    stored, _ = session.append(message)
    return stored.seq or 0


def files(directory: Path) -> list[str]:
    return sorted(os.listdir(directory / "blobs"))


@pytest.mark.parametrize("step", [700_001, PART_CHARS, len(TEXT)])
def test_it_is_whole_and_read_in_part(tmp_path: Path, step: int) -> None:
    with SessionManager(tmp_path) as manager:
        session = manager.create()
        with manager.writing(session):
            seq = kept(manager, session, TEXT, step)
        outputs = manager.outputs(session)
        found, read = "", Counting(manager, session)
        while page := piece(session, seq, None, len(found), 400_000, outputs).text:
            found += page
        assert found == TEXT
        assert piece(session, seq, 0, PART_CHARS - 5, 10, read).text == TEXT[PART_CHARS - 5 :][:10]
        assert read.count == 2, "no part is read but those that hold some of it"


class Counting(OutputFiles):
    def __init__(self, manager: SessionManager, session: Session) -> None:
        super().__init__(lambda: manager.directory, manager)
        self.count = 0

    def read(self, part: object) -> str | None:
        self.count += 1
        return super().read(part)  # type: ignore[arg-type]


def test_no_configured_key_is_in_it_however_it_comes(tmp_path: Path) -> None:
    text = ("x" * (PART_CHARS - 7) + KEY) * 2 + "y" * 100 + KEY
    for step in (PART_CHARS - 3, PART_CHARS, len(text)):
        with SessionManager(tmp_path / str(step), secrets=[KEY]) as manager:
            session = manager.create()
            with manager.writing(session):
                seq = kept(manager, session, text, step)
            whole = piece(session, seq, None, 0, None, manager.outputs(session)).text
            assert whole == text.replace(KEY, "[secret]")


def test_nobody_removes_it_before_it_is_referred_to_and_it_goes_with_its_session(
    tmp_path: Path,
) -> None:
    with SessionManager(tmp_path) as manager, SessionManager(tmp_path) as other:
        for text in ("one", "two"):  # sessions with large values, whose removal looks for more
            session = other.create(id=text)
            session.add_message("user", text * 50_000)
            other.end(session)
        session = manager.create(id="s")
        with manager.writing(session):
            outputs = manager.outputs(session)
            assert outputs is not None
            name = outputs.write(b"a part")
            assert other.delete("one")
            assert name in files(tmp_path)
            kept(manager, session, TEXT)
        assert other.delete("two")
        assert name not in files(tmp_path), "nothing refers to it"
        parts = {part.blob for m in session.newest_first for part in parts_of(m)}
        assert {f"blobs/{name}" for name in files(tmp_path)} == parts
        manager.end(session)
        assert {f"blobs/{name}" for name in files(tmp_path)} == parts
        assert manager.delete("s")
        assert files(tmp_path) == []


def test_what_only_the_journal_names_counts_and_is_gone_for_good_too(tmp_path: Path) -> None:
    with SessionManager(tmp_path) as manager:
        session = manager.create(id="s")
        session.add_message("user", "go")
        manager.save(session)
        with manager.writing(session):
            kept(manager, session, "a long output")
        assert (tmp_path / "s.journal").stat().st_size
        [row], _ = manager.list()
        assert sum(manager.listing.values_of(row).values()) == len("a long output")
        assert manager.delete("s")
        assert files(tmp_path) == []


def test_it_survives_a_restart_and_what_is_lost_of_it_is_told(tmp_path: Path) -> None:
    with SessionManager(tmp_path) as manager:
        session = manager.create(id="s")
        with manager.writing(session):
            seq = kept(manager, session, TEXT)
    with SessionManager(tmp_path) as manager:
        session = manager.load_id("s")
        outputs = manager.outputs(session)
        assert piece(session, seq, None, len(TEXT) - 9, None, outputs).text == TEXT[-9:]
        message = next(m for m in session.newest_first if m.seq == seq)
        blob = tmp_path / parts_of(message)[0].blob
        blob.write_bytes(b"?" * blob.stat().st_size)
        shown = piece(session, seq, None, 0, None, outputs)
        assert shown.text == DAMAGED + TEXT[PART_CHARS:]
        assert shown.total_chars == len(TEXT)
        blob.unlink()
        assert piece(session, seq, None, 0, None, outputs).text == "held"


def test_outputs_of_one_turn_do_not_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_files, "MAX_TURN_BYTES", 2 * PART_CHARS)
    with SessionManager(tmp_path) as manager:
        session = manager.create()
        outputs = manager.outputs(session)
        assert outputs is not None
        with manager.writing(session):
            kept(manager, session, "a" * PART_CHARS)
            kept(manager, session, "b" * PART_CHARS)
            assert outputs.keeper() is None
        with manager.writing(session):
            assert outputs.keeper() is not None, "the next turn keeps its own"


def test_nothing_is_written_where_nothing_is_to_be_saved_unasked(tmp_path: Path) -> None:
    """M4.4."""
    with SessionManager(tmp_path, autosave=False) as manager:
        outputs = manager.outputs(manager.create())
        assert outputs is not None
        assert outputs.keeper() is None


@pytest.mark.parametrize(
    "mark", [[{"blob": "blobs/../../x", "chars": 1}], [{"blob": "/etc/passwd", "chars": 1}], "x", 7]
)
def test_a_mark_that_somebody_wrote_leads_nowhere(tmp_path: Path, mark: object) -> None:
    assert parts_of(Message("tool", "x").marked(**{PARTS: mark})) == []
