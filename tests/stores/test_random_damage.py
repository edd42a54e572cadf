"""Session files with random damage: refused with a reason or read, never changed (B10)."""

import random
from pathlib import Path

import pytest

from tests.sizes import sized
from tests.stores.conftest import Make, Tell
from tests.stores.script import LIFE, MAX_HISTORY
from tiro.errors import SessionFormatError
from tiro.session.provider_view import provider_view
from tiro.session.session import Session

ROUNDS = sized(fast=300, normal=1500, long=30_000)
ODD = [b"\x00" * 8, b"\xff", b'"', b"\\ud83d", b"\n", b"null", b"-1", b"1e999", b"[" * 300, b"{}"]


def some_files(make: Make, directory: Path) -> tuple[bytes, bytes]:
    """Snapshot and journal in the middle of a life, as a kill would leave them."""
    manager = make(directory=directory)
    session = manager.create(id="x", max_history=MAX_HISTORY)
    for step in LIFE[:14]:
        step(manager, session)
    return (directory / "x.json").read_bytes(), (directory / "x.journal").read_bytes()


def damaged(dice: random.Random, data: bytes) -> bytes:
    """The bytes with one to three pieces changed, lost, doubled or put elsewhere."""
    for _ in range(dice.randint(1, 3)):
        first, last = sorted(dice.randrange(len(data) + 1) for _ in range(2))
        last = min(last, first + dice.choice([0, 1, 4, 40, 4000]))
        piece, rest = data[first:last], data[:first] + data[last:]
        at = dice.randrange(len(rest) + 1)
        data = dice.choice([
            data[:first],
            rest,
            data[:last] + data[first:],
            rest[:at] + piece + rest[at:],
            data[:first] + dice.choice(ODD) + data[last:],
            data[:first] + bytes(dice.randrange(256) for _ in piece[:40]) + data[last:],
        ])  # fmt: skip
        data = data or b"{"
    return data


def check_usable(session: Session) -> None:
    """It can be read in every way and takes a message."""
    session.summarize()
    session.statistics()
    provider_view(session.oldest_first(), session.archive_rows, merge=True, thinking=True)
    session.add_message("user", "afterwards")
    assert session.oldest_first()[-1].content == "afterwards"


@pytest.mark.timeout(600)  # with --long
@pytest.mark.parametrize("which", ["snapshot", "journal", "both"])
def test_a_damaged_file_is_refused_or_usable(
    make_manager: Make, tmp_path: Path, which: str, record_property: Tell
) -> None:
    record_property("damaged", ROUNDS // 3)
    dice = random.Random(which)
    snapshot, journal = some_files(make_manager, tmp_path / "whole")
    path = tmp_path / "damaged" / "x.json"
    path.parent.mkdir()
    reader = make_manager(directory=path.parent, autosave=False)
    read = 0
    for _ in range(ROUNDS // 3):
        one = damaged(dice, snapshot) if which != "journal" else snapshot
        two = damaged(dice, journal) if which != "snapshot" else journal
        path.write_bytes(one)
        path.with_suffix(".journal").write_bytes(two)
        [row], _ = reader.list()
        if row.error is None:
            read += 1
            check_usable(reader.load(path))
        else:
            with pytest.raises(SessionFormatError) as caught:
                reader.load(path)
            assert caught.value.data["reason"]
        assert path.read_bytes() == one
        assert path.with_suffix(".journal").read_bytes() == two
    assert read > (0 if which != "journal" else ROUNDS // 4)
