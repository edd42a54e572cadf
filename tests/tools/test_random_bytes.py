"""Any sequence of edits, undos, redos and restarts in any encodings: every byte is as it was.

A file may be Latin-1, UTF-8, Shift-JIS, GB18030, no text at all, or all of that by lines, with line
ends of all kinds. Each line of the user's holds a number of its own.
"""

import itertools
import re
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.sizes import sized
from tests.tools.editing import Editing
from tiro.errors import EditConflictError

WRITTEN = [
    b"",
    b"\xe9",
    b"cr\xe9\xe9e",
    "caf\u00e9 \u4f60".encode(),
    "\u65e5\u672c\u30bd".encode("shift-jis"),
    "\u4f60\u597d".encode("gb18030"),
    "\u00e3\U0001f600".encode("gb18030"),
    b"\xff\xfe\x81",
]
"""What stands in lines, by itself in its encoding."""

ENDS = [b"\n", b"\r\n", b"\r"]
NAMES = st.sampled_from(["narrow", "wide"])
PLACES = st.integers(0, 3)
NEW = st.sampled_from(["", "x\n", "\u00e9\r\n"])
LINES = st.tuples(st.sampled_from(WRITTEN), st.sampled_from(ENDS))


class Bytes(RuleBasedStateMachine):
    """A user and an assistant at work in a file of bytes, and in one in UTF-16."""

    @initialize(lines=st.lists(LINES, min_size=1, max_size=3), has_end=st.booleans())
    def begin(self, lines: list[tuple[bytes, bytes]], has_end: bool) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.numbers = itertools.count(1)
        self.sides: dict[str, tuple[str, bytes, bytes]] = {}
        """The file of each edit, and its bytes before and after it."""
        (self.folder / "work").mkdir()
        self.restart()
        for name in ("narrow", "wide"):
            pieces = [self.line(name, *line) for line in lines]
            last = pieces.pop()
            self.save(name, [*pieces, last if has_end else last.rstrip("\r\n")])

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @rule(name=NAMES, place=PLACES, line=LINES, span=st.integers(0, 2))
    def user_writes(self, name: str, place: int, line: tuple[bytes, bytes], span: int) -> None:
        lines = self.lines(name)
        lines[place : place + span] = [self.line(name, *line)]
        self.save(name, lines)

    @rule(
        name=NAMES,
        place=PLACES,
        span=PLACES,
        new=NEW,
        is_undone=st.booleans(),
    )
    def assistant_edits(self, name: str, place: int, span: int, new: str, is_undone: bool) -> None:
        before, text = self.editing.bytes(name), self.editing.text(name)
        assert text is not None
        lines = split(text)
        lines[place : place + span] = [f"assistant's {next(self.numbers)} {new}"] if new else []
        if "".join(lines) == text:
            lines = ["all of it\n"]
        edit_id = self.editing.edit(name, "".join(lines))
        after = self.editing.bytes(name)
        assert user_lines(after) <= user_lines(before), "a line of the user's has other bytes now"
        self.sides[edit_id] = name, before, after
        if is_undone:
            self.editing.undo(edit_id)
            assert self.editing.bytes(name) == before
            self.editing.redo(edit_id)
            assert self.editing.bytes(name) == after

    @rule()
    def restart(self) -> None:
        self.editing = Editing(self.folder / "work", self.folder / "edits")

    @precondition(lambda self: self.sides)
    @rule(number=st.integers(0, 100), what=st.sampled_from(["undo", "redo"]))
    def move(self, number: int, what: str) -> None:
        edit_id = list(self.sides)[-1 - number % len(self.sides)]
        name, *sides = self.sides[edit_id]
        source, goal = sides[::-1] if what == "undo" else sides
        now = self.editing.bytes(name)
        states = {edit.made.id: edit.state for edit in self.editing.listed()}
        is_moving = states[edit_id] == ("made" if what == "undo" else "undone")
        try:
            getattr(self.editing, what)(edit_id)
        except EditConflictError:
            assert self.editing.bytes(name) == now
            assert now != source, "nobody else has changed it"
            return
        after = self.editing.bytes(name)
        if not is_moving:
            assert after == now
            return
        if now == source:
            assert after == goal
        assert user_lines(now) - user_lines(after) <= user_lines(source) - user_lines(goal)
        assert user_lines(goal) - user_lines(source) <= user_lines(after)

    def line(self, name: str, written: bytes, end: bytes) -> str:
        """A line of the user's; in the file of bytes each character is one."""
        text = written.decode("latin-1") if name == "narrow" else written.decode("utf-8", "replace")
        return f"user's {next(self.numbers)} {text};{end.decode()}"

    def lines(self, name: str) -> list[str]:
        return split(self.editing.bytes(name).decode("latin-1" if name == "narrow" else "utf-16"))

    def save(self, name: str, lines: list[str]) -> None:
        codec = "latin-1" if name == "narrow" else "utf-16"
        (self.editing.root / name).write_bytes("".join(lines).encode(codec))


def split(text: str) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def user_lines(data: bytes) -> set[bytes]:
    """The user's lines in a file, by their bytes."""
    wide = b"user's ".decode().encode("utf-16-le")
    ends = {b"user's ": b";", wide: b";\0"}
    return {
        found
        for start, end in ends.items()
        for found in re.findall(re.escape(start) + b".*?" + re.escape(end), data, re.DOTALL)
    }


TestBytes = Bytes.TestCase
TestBytes.settings = settings(
    max_examples=sized(fast=15, normal=60, long=2000), stateful_step_count=30
)
