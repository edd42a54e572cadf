"""The edit ledger on the disk: what was recorded is there, what was refused is not (Deliver 5)."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from tests.stores.faults import FaultyDisk
from tiro.errors import StorageError
from tiro.session.edits import Became, Made, State, hash_of
from tiro.stores import ledger as ledger_module
from tiro.stores.disk import Disk
from tiro.stores.journal import Journal
from tiro.stores.ledger import Ledger

SECRET = "api_key = sk-live-0123456789abcdef0123456789abcdef"
AT = "2026-11-28T09:30:00.000Z"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "config" / "edits"


def made(id: str, before: str | None = "a\n", after: str | None = "b\n", turn: str = "t") -> Made:
    return Made(
        id=id,
        at=AT,
        turn_id=turn,
        session_id="s",
        tool_use_id="c",
        path=f"/w/{id}.txt",
        before=None if before is None else hash_of(before),
        after=None if after is None else hash_of(after),
        added=1,
        removed=1,
        encoding="UTF-8",
    )


def add(
    ledger: Ledger, id: str, before: str | None = "a\n", after: str | None = "b\n", turn: str = "t"
) -> Made:
    edit = made(id, before, after, turn)
    ledger.add(edit, {hash_of(text): text for text in (before, after) if text is not None})
    return edit


def mark(ledger: Ledger, state: State, *ids: str) -> None:
    ledger.mark(Became([*ids], AT, state))


def listed(directory: Path) -> list[tuple[str, State]]:
    """What another process finds."""
    return [(edit.made.id, edit.state) for edit in Ledger(directory).edits()]


def test_another_process_finds_the_edits_in_their_order_and_their_texts(directory: Path) -> None:
    texts = ["", "caf\u00e9 \ud800 \0\r\n", "x" * 100_000, SECRET]
    ledger = Ledger(directory)
    edits = [add(ledger, f"e{n}", text, "after") for n, text in enumerate(texts)]
    mark(ledger, "undone", "e1", "e2")
    mark(ledger, "made", "e2")
    mark(ledger, "failed", "e3")
    assert [edit.made for edit in Ledger(directory).edits()] == edits
    assert listed(directory) == [
        ("e0", "made"), ("e1", "undone"), ("e2", "made"), ("e3", "failed"),
    ]  # fmt: skip
    other = Ledger(directory)
    assert [other.text(edit, edit.before or "") for edit in edits] == texts


def test_what_an_undo_says_of_a_deleted_file_is_found_with_the_edit(directory: Path) -> None:
    ledger = Ledger(directory)
    add(ledger, "e", None, "b\n")
    ledger.mark(Became(["e"], AT, "undone", "UTF-16-LE with a byte order mark", 0o755))
    [edit] = Ledger(directory).edits()
    assert (edit.made.encoding, edit.made.mode) == ("UTF-16-LE with a byte order mark", 0o755)


def test_only_its_owner_can_read_it_whatever_the_umask_is(directory: Path) -> None:
    """B53; and texts are kept as they are, or undo would write a mark into a file (U9.11)."""
    before = os.umask(0)
    try:
        edit = add(Ledger(directory), "e", SECRET)
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in directory.rglob("*")}
    assert {modes[path] for path in modes if path.is_file()} == {0o600}
    assert {modes[directory / "texts"], stat.S_IMODE(directory.stat().st_mode)} == {0o700}
    assert Ledger(directory).text(edit, hash_of(SECRET)) == SECRET


def test_a_large_text_takes_little_room_and_lies_there_once(directory: Path) -> None:
    ledger, text = Ledger(directory), "the same line\n" * 50_000
    add(ledger, "e1", text, "b\n")
    add(ledger, "e2", "b\n", text)
    sizes = {path.name: path.stat().st_size for path in (directory / "texts").iterdir()}
    assert sizes.keys() == {hash_of(text), hash_of("b\n")}
    assert sizes[hash_of(text)] < 10_000


def test_a_torn_last_line_is_cut_away_and_nobody_is_told(directory: Path) -> None:
    told: list[str] = []
    ledger = Ledger(directory, tell=told.append)
    add(ledger, "e1")
    with ledger.path.open("ab") as file:
        file.write(b'{"op":"made","id":"torn')
    assert listed(directory) == [("e1", "made")]
    add(ledger, "e2")
    assert listed(directory) == [("e1", "made"), ("e2", "made")]
    assert b"torn" not in ledger.path.read_bytes()
    assert told == []


def test_a_broken_line_is_skipped_and_told_once_and_kept(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    ledger = Ledger(directory, tell=told.append)
    add(ledger, "e1")
    with ledger.path.open("ab") as file:
        file.write(b'{"op":"made","id":"broken"}\n\xff\xff\n')
    for n in range(2, 5):
        add(ledger, f"e{n}")
        assert [edit.made.id for edit in ledger.edits()] == [f"e{m}" for m in range(1, n + 1)]
    assert len(told) == 1
    assert "2 lines" in told[0]
    monkeypatch.setattr(ledger_module, "MAX_EDITS", 2)
    ledger.prune()
    assert listed(directory) == [("e3", "made"), ("e4", "made")]
    assert b'"broken"}\n\xff\xff\n' in ledger.path.read_bytes()


def test_edits_of_several_processes_come_one_after_the_other(directory: Path) -> None:
    """Each ledger opens and locks the file by itself, as another process would."""

    def work(name: str) -> None:
        ledger = Ledger(directory)
        for n in range(20):
            add(ledger, f"{name}{n}", f"{name}{n}", f"{n}")
            mark(ledger, "undone", f"{name}{n}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    pruner = Ledger(directory)
    for _ in range(20):
        pruner.prune()
    for thread in threads:
        thread.join()
    found = Ledger(directory).edits()
    assert {edit.made.id for edit in found} == {f"{name}{n}" for name in "abc" for n in range(20)}
    assert {edit.state for edit in found} == {"undone"}
    for edit in found:
        assert pruner.text(edit.made, edit.made.before or "") == edit.made.id


def test_with_saving_off_nothing_is_on_the_disk_and_all_of_it_here(directory: Path) -> None:
    is_kept = [False]
    ledger = Ledger(directory, is_kept=lambda: is_kept[0])
    edit = add(ledger, "e1", "before", "after")
    mark(ledger, "undone", "e1")
    assert [(e.made.id, e.state) for e in ledger.edits()] == [("e1", "undone")]
    assert ledger.text(edit, hash_of("before")) == "before"
    assert not directory.exists()
    is_kept[0] = True
    add(ledger, "e2")
    mark(ledger, "undone", "e1", "e2")
    assert listed(directory) == [("e2", "undone")]
    assert [e.made.id for e in ledger.edits()] == ["e1", "e2"]


def test_edits_stand_in_the_order_in_which_they_came_wherever_they_are_kept(
    directory: Path,
) -> None:
    """Saving is switched off and on between them: an undo takes the newest first."""
    is_kept = [True]
    ledger, other = Ledger(directory, is_kept=lambda: is_kept[0]), Ledger(directory)
    for number in range(9):
        is_kept[0] = number % 3 == 1
        add(ledger, f"e{number}")
    add(other, "e9")
    is_kept[0] = False
    add(ledger, "e10")
    mark(ledger, "undone", "e4", "e0")
    edits = ledger.edits()
    assert [edit.made.id for edit in edits] == [f"e{number}" for number in range(11)]
    assert {edit.made.id for edit in edits if edit.state == "undone"} == {"e4", "e0"}
    assert {edit.made.id for edit in edits if edit.moved > edits[10].moved} == {"e4", "e0"}


def test_an_undo_of_edits_on_the_disk_is_noted_there_with_saving_off(directory: Path) -> None:
    """The next process could neither redo it nor get past it to the turn before."""
    is_kept = [True]
    ledger = Ledger(directory, is_kept=lambda: is_kept[0])
    add(ledger, "stored")
    is_kept[0] = False
    add(ledger, "own")
    mark(ledger, "undone", "stored", "own")
    assert listed(directory) == [("stored", "undone")]
    assert [(e.made.id, e.state) for e in ledger.edits()] == [
        ("stored", "undone"),
        ("own", "undone"),
    ]


def test_a_mark_of_edits_here_and_on_the_disk_is_noted_in_both_once(directory: Path) -> None:
    """Saving was switched off within a turn; another process has the last word on what it moved."""
    is_kept = [True]
    ledger = Ledger(directory, is_kept=lambda: is_kept[0])
    add(ledger, "stored")
    is_kept[0] = False
    add(ledger, "own")
    is_kept[0] = True
    mark(ledger, "undone", "stored", "own")
    assert listed(directory) == [("stored", "undone")]
    mark(Ledger(directory), "made", "stored")
    assert [(e.made.id, e.state) for e in ledger.edits()] == [("stored", "made"), ("own", "undone")]
    add(ledger, "next")
    mark(ledger, "undone", "next")
    assert listed(directory) == [("stored", "made"), ("next", "undone")]


def test_memory_has_an_end_and_the_newest_edits_can_be_undone(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With saving off: the oldest edits go, which is told, and an undo of the others works."""
    told: list[str] = []
    ledger = Ledger(directory, is_kept=lambda: False, tell=told.append)
    texts = [os.urandom(1000).hex() for _ in range(30)]
    monkeypatch.setattr(ledger_module, "MAX_MEMORY_BYTES", 12_000)
    edits = [add(ledger, f"e{n}", text, "after\n") for n, text in enumerate(texts)]
    mark(ledger, "undone", "e28", "e29")
    kept = [edit.made.id for edit in ledger.edits()]
    assert 5 < len(kept) < 12
    assert kept == [f"e{n}" for n in range(30 - len(kept), 30)]
    for edit, text in list(zip(edits, texts, strict=True))[-len(kept) :]:
        assert ledger.text(edit, hash_of(text)) == text
    assert sum(map(len, ledger._unkept_texts.values())) <= 12_000
    assert {"oldest can no longer be undone" in text for text in told} == {True}
    with pytest.raises(StorageError):
        ledger.text(edits[0], hash_of(texts[0]))


def test_failed_edits_are_forgotten_without_a_word(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(ledger_module, "MAX_EDITS", 3)
    ledger = Ledger(directory, is_kept=lambda: False, tell=told.append)
    for n in range(10):
        add(ledger, f"e{n}")
        mark(ledger, "failed", f"e{n}")
    assert (len(ledger.edits()) <= 4, told) == (True, [])


def test_one_undoes_or_redoes_at_a_time(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Ledger(directory), Ledger(directory)
    first.claim()()  # nothing was ever recorded
    assert not directory.exists()
    add(first, "e1")
    release = first.claim()
    monkeypatch.setattr(ledger_module, "LOCK_SECONDS", 0.0)
    with pytest.raises(StorageError, match="Another process is undoing"):
        second.claim()
    release()
    second.claim()()


def test_a_lock_that_cannot_be_asked_for_is_an_error_of_the_store_and_keeps_nothing_open(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, asked = Ledger(directory), list[int]()
    add(ledger, "e1")

    def broken(descriptor: int) -> bool:
        asked.append(descriptor)
        raise OSError(errno.EIO, "the disk is broken")

    with monkeypatch.context() as patched:
        patched.setattr(ledger_module, "try_lock", broken)
        with pytest.raises(StorageError, match="disk is broken"):
            ledger.claim()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(asked[0])
    ledger.claim()()


# --- what fails -----------------------------------------------------------------------------------


def life_of_a_ledger(ledger: Ledger) -> tuple[list[str], list[str]]:
    """Everything that a ledger does; the edits that it took, and what it refused."""
    taken, refused = ["e0"], []
    with ledger.path.open("ab") as torn:
        torn.write(b'{"op":"made"')
    for n in range(1, 4):
        try:
            add(ledger, f"e{n}", f"before {n}", f"after {n}")
            taken.append(f"e{n}")
        except StorageError:
            refused.append(f"e{n}")
    mark(ledger, "undone", *taken)
    (ledger.path.parent / "texts" / hash_of("no line names this")).touch()
    ledger.prune()
    return taken, refused


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_every_operation_fails_once_and_only_what_was_refused_is_missing(
    tmp_path: Path, code: int
) -> None:
    counting = FaultyDisk()
    add(Ledger(tmp_path / "count"), "e0")
    life_of_a_ledger(Ledger(tmp_path / "count", counting))
    assert len(counting.calls) > 20
    for number in range(len(counting.calls)):
        directory, disk = tmp_path / str(number), FaultyDisk()
        add(Ledger(directory), "e0")
        disk.fail(code, first=number, count=1, short=7)
        told: list[str] = []
        ledger = Ledger(directory, disk, tell=told.append)
        taken, refused = life_of_a_ledger(ledger)
        where = (number, counting.calls[number])
        assert len(refused) <= 1, where
        assert [edit.made.id for edit in ledger.edits()] == taken, where
        assert {edit.state for edit in ledger.edits()} == {"undone"}, where
        mark(ledger, "made", "e0")
        found = Ledger(directory).edits()
        assert [(e.made.id, e.state) for e in found] == [
            ("e0", "made"), *((id, "undone") for id in taken[1:]),
        ], where  # fmt: skip
        for edit in found[1:]:
            assert ledger.text(edit.made, edit.made.before or "").startswith("before"), where


def test_a_mark_that_cannot_be_stored_counts_here_and_is_stored_with_the_next(
    directory: Path,
) -> None:
    disk, told = FaultyDisk(), list[str]()
    ledger = Ledger(directory, disk, tell=told.append)
    add(ledger, "e1")
    add(ledger, "e2")
    disk.fail(errno.ENOSPC)
    mark(ledger, "undone", "e1")
    assert [edit.state for edit in ledger.edits()] == ["undone", "made"]
    assert listed(directory) == [("e1", "made"), ("e2", "made")]
    assert len(told) == 1
    assert "ENOSPC" in told[0]
    disk.heal()
    mark(ledger, "undone", "e2")
    assert listed(directory) == [("e1", "undone"), ("e2", "undone")]


def test_a_ledger_that_another_process_holds_refuses_after_a_while(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "LOCK_SECONDS", 0.0)
    add(Ledger(directory), "e1")
    other = Journal(directory / "ledger.jsonl", Disk())
    assert other.try_lock()
    with pytest.raises(StorageError, match="Another process"):
        add(Ledger(directory), "e2")
    other.close()
    assert listed(directory) == [("e1", "made")]


@pytest.mark.parametrize("damage", [b"", b"rubbish", None])
def test_a_text_that_is_lost_is_no_text(directory: Path, damage: bytes | None) -> None:
    ledger = Ledger(directory)
    edit = add(ledger, "e1", "before")
    path = directory / "texts" / hash_of("before")
    if damage is None:
        path.write_bytes((directory / "texts" / hash_of("b\n")).read_bytes())
    else:
        path.write_bytes(damage)
    with pytest.raises(StorageError, match="missing or damaged"):
        ledger.text(edit, hash_of("before"))


# --- what is kept ---------------------------------------------------------------------------------


def texts_of(directory: Path) -> set[str]:
    return {path.name for path in (directory / "texts").iterdir()}


def test_the_newest_edits_are_kept_and_their_texts(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(directory)
    for n in range(6):
        add(ledger, f"e{n}", f"{n}", f"{n + 1}")
    mark(ledger, "undone", "e0", "e4")
    mark(ledger, "failed", "e5")
    monkeypatch.setattr(ledger_module, "MAX_EDITS", 3)
    ledger.prune()
    assert listed(directory) == [("e2", "made"), ("e3", "made"), ("e4", "undone")]
    assert [edit.made.id for edit in ledger.edits()] == ["e2", "e3", "e4"]
    assert texts_of(directory) == {hash_of(str(n)) for n in range(2, 6)}
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_the_texts_take_no_more_than_their_limit(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(directory)
    for n in range(6):
        add(ledger, f"e{n}", os.urandom(3000).hex(), "small")
    monkeypatch.setattr(ledger_module, "MAX_TEXT_BYTES", 12_000)
    ledger.prune()
    assert sum(path.stat().st_size for path in (directory / "texts").iterdir()) <= 12_000
    assert [id for id, _ in listed(directory)] == ["e3", "e4", "e5"]


def test_pruning_leaves_what_is_within_the_limits_and_makes_nothing(directory: Path) -> None:
    Ledger(directory).prune()
    assert not directory.exists()
    ledger = Ledger(directory)
    add(ledger, "e1")
    (directory / "texts" / hash_of("no line names this")).write_bytes(b"x")
    (directory / "texts" / "notes of the user").write_bytes(b"x")
    before = ledger.path.read_bytes()
    ledger.prune()
    assert ledger.path.read_bytes() == before
    assert texts_of(directory) == {hash_of("a\n"), hash_of("b\n"), "notes of the user"}
