"""Random damage in what lies beside sessions: large values, edits, caches (B10, U9.9).

A cache costs time only; what is no cache is refused in a sentence, and nothing else is lost.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.damage import damaged
from tests.sizes import sized
from tests.stores.look import texts
from tests.stores.script import IMAGE
from tests.stores.test_ledger import add, mark
from tiro.assistant.calibrations import Calibrations
from tiro.chat.past_lines import PastLines
from tiro.errors import StorageError, TiroError
from tiro.session.edits import hash_of
from tiro.session.provider_view import provider_view
from tiro.stores.ledger import Ledger
from tiro.stores.manager import SessionManager
from tiro.stores.search import Search
from tiro.stores.verify import repair, verify

NOW = datetime(2026, 11, 28, tzinfo=UTC)
EXAMPLES = settings(max_examples=sized(fast=8, normal=12, long=2000))


@pytest.fixture(scope="module")
def whole() -> Iterator[Path]:
    """A directory with two sessions, a large value, edits and every cache."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "whole"
        manager = open_manager(root)
        for id in ("x", "y"):
            session = manager.create(id=id)
            session.add_message("user", [{"type": "text", "text": "a tram"}, IMAGE])
            manager.save(session)
            session.add_message("user", "a second tram")
        manager.list()
        search = Search(manager)
        search.find("tram", 5)
        search.close()
        manager.close()
        ledger = Ledger(root / "edits")
        for n in range(4):
            add(ledger, f"e{n}", f"before {n}\n", f"after {n}\n")
        mark(ledger, "undone", "e3")
        yield root


def fresh(whole: Path) -> Path:
    """A copy of it in one place that is used again and again."""
    copy = whole.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(whole, copy)
    return copy


def open_manager(root: Path) -> SessionManager:
    return SessionManager(root / "sessions", cache_directory=root / "cache")


@EXAMPLES
@given(data=st.data())
def test_a_damaged_ledger_costs_its_own_edits_only(whole: Path, data: st.DataObject) -> None:
    root = fresh(whole)
    path = root / "edits" / "ledger.jsonl"
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    ledger = Ledger(root / "edits")
    try:
        before = [edit.made.id for edit in ledger.edits()]
    except StorageError:
        return
    assert len(set(before)) == len(before)
    for edit in ledger.edits():
        for name in filter(None, (edit.made.before, edit.made.after)):
            with contextlib.suppress(StorageError):
                assert hash_of(ledger.text(edit.made, name)) == name
    added = add(ledger, "new", "old text\n", "new text\n")
    again = Ledger(root / "edits")
    assert [edit.made.id for edit in again.edits()] == [*(i for i in before if i != "new"), "new"]
    assert again.text(added, hash_of("new text\n")) == "new text\n"
    again.prune()
    assert "new" in [edit.made.id for edit in Ledger(root / "edits").edits()]


@EXAMPLES
@given(data=st.data())
def test_a_damaged_text_of_an_edit_is_told_or_right(whole: Path, data: st.DataObject) -> None:
    root = fresh(whole)
    path = data.draw(st.sampled_from(sorted((root / "edits" / "texts").iterdir())))
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    ledger = Ledger(root / "edits")
    for edit in ledger.edits():
        for name in filter(None, (edit.made.before, edit.made.after)):
            try:
                assert hash_of(ledger.text(edit.made, name)) == name
            except StorageError:
                assert name == path.name


@EXAMPLES
@given(data=st.data())
def test_a_damaged_large_value_costs_itself_only(whole: Path, data: st.DataObject) -> None:
    """It is refused or marked, `verify` finds it, and both sessions are read."""
    root = fresh(whole)
    (path,) = (root / "sessions" / "blobs").iterdir()
    before = path.read_bytes()
    path.write_bytes(data.draw(damaged(before)))
    manager = open_manager(root)
    for id in ("x", "y"):
        session = manager.load_id(id)
        assert len(session.messages) == 2
        provider_view(session.oldest_first(), session.archive_rows, merge=True, thinking=True)
    found = verify(root / "sessions", now=NOW)
    assert found.is_sound() == (path.read_bytes() == before)
    manager.close()


@EXAMPLES
@given(data=st.data())
def test_damaged_caches_cost_time_only(whole: Path, data: st.DataObject) -> None:
    """The list, the search index and what was learned about sizes."""
    root = fresh(whole)
    caches = [path for path in sorted((root / "cache").rglob("*")) if path.is_file()]
    assert len(caches) >= 2
    path = data.draw(st.sampled_from(caches))
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    manager = open_manager(root)
    rows, total = manager.list()
    assert ({row.id for row in rows}, total) == ({"x", "y"}, 2)
    search = Search(manager)
    assert {hit.id for hit in search.find("tram", 9)} == {"x", "y"}
    search.close()
    for id in ("x", "y"):
        assert texts(manager.load_id(id))[1] == "a second tram"
    manager.close()


@EXAMPLES
@given(st.binary(max_size=40) | damaged(b'{"a/b": {"ratio": 1.1, "error": 0.2, "count": 3}}'))
def test_damaged_notes_of_what_was_learned_are_none(whole: Path, text: bytes) -> None:
    (whole.parent / "calibrations.json").write_bytes(text)
    learned = Calibrations(whole.parent)
    learned.of("a/b")
    learned.save()


@EXAMPLES
@given(st.binary(max_size=40) | damaged(b"first\nsecond \xc3\xa9\n"))
def test_damaged_past_lines_are_lines(whole: Path, text: bytes) -> None:
    (whole.parent / "lines").write_bytes(text)
    for line in PastLines(whole.parent / "lines").load():
        assert "\n" not in line


@EXAMPLES
@given(data=st.data())
def test_a_repair_of_random_damage_loses_nothing_and_ends(whole: Path, data: st.DataObject) -> None:
    """What a repair replaces lies beside it; the other session stays; twice mends no more."""
    root = fresh(whole)
    at = root / "sessions"
    names = [name for name in ("x.json", "x.journal") if (at / name).exists()]
    path = at / data.draw(st.sampled_from(names))
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    torn = path.read_bytes()
    with contextlib.suppress(TiroError):
        repair(at, now=NOW)
    assert any(one.read_bytes() == torn for one in at.glob("x.*") if one.is_file())
    again = verify(at, now=NOW)
    assert all(finding.remedy is None for finding in again.findings), again
    manager = open_manager(root)
    assert texts(manager.load_id("y"))[1] == "a second tram"
    manager.close()
