"""Lines of earlier chats: private, bounded, without secrets, never in the way."""

import os
import stat
from pathlib import Path

from tiro.chat.past_lines import MAX_CHARS, MAX_LINES, PastLines


def test_lines_come_back_in_order_with_their_line_breaks(tmp_path: Path) -> None:
    file = tmp_path / "state" / "history"
    PastLines(file).add("one")
    PastLines(file).add("two\nlines 日本")
    assert PastLines(file).load() == ["one", "two\nlines 日本"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "history"
    past = PastLines(file, ["sk-very-secret"])
    past.add("why is sk-very-secret refused?")
    assert past.load() == ["why is [secret] refused?"]


def test_file_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "history"
    past = PastLines(file)
    past.add("x" * (MAX_CHARS + 1))
    assert not file.exists()
    for n in range(2 * MAX_LINES + 1):
        past.add(str(n))
    assert past.load()[-1] == str(2 * MAX_LINES)
    assert len(past.load()) == MAX_LINES
    assert len(file.read_bytes().splitlines()) == MAX_LINES
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["history"]


def test_broken_file_costs_its_broken_lines_only(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b'"good"\n{"half\n\xff\n3\n"also good"\n')
    assert PastLines(file).load() == ["good", "also good"]


def test_directory_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    past = PastLines(tmp_path / "file" / "history")
    past.add("one")
    assert past.load() == []
