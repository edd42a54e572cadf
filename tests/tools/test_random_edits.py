"""Any sequence of edits, undos, redos and restarts: nothing that the user wrote is lost.

The bar of the edit ledger, on real files and the real ledger. Each line that the user writes is one
of a kind. It is in its file, or in the buffer that shows it, after every step; but for those that
the user removed, and those that an edit of the assistant's took out, which its undo brings back.
"""

import itertools
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.sizes import sized
from tests.tools.editing import Editing, run
from tiro.errors import EditConflictError
from tiro.tools.writing import current

if TYPE_CHECKING:
    from tiro.tools.undo import Target

ENCODINGS = {"plain": ("utf-8", "\n"), "dos": ("latin-1", "\r\n"), "live": ("utf-8", "\n")}
NEW = "made/new"
END = {name: end for name, (_, end) in ENCODINGS.items()} | {NEW: "\n"}
NAMES = st.sampled_from([*ENCODINGS, NEW])
PLACES = st.integers(0, 12)


class Histories(RuleBasedStateMachine):
    """A user and an assistant at work in the same three files, and in one that comes and goes."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.numbers = itertools.count(1)
        self.taken: dict[str, set[str]] = {}
        """The user's lines that each edit took out."""
        self.sides: dict[str, tuple[str | None, str]] = {}
        """The texts before and after each edit."""
        self.turns: dict[str, list[str]] = {}
        self.seen: list[tuple[str, str]] = []
        (self.folder / "work").mkdir()
        self.editing = Editing(self.folder / "work", self.folder / "edits")
        for name in ENCODINGS:
            lines = [self.line() if n % 3 == 0 else f"line {n}" for n in range(9)]
            self.save(name, "".join(f"{line}{ENCODINGS[name][1]}" for line in lines))
        self.editing.open("live")

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    # --- the user ---

    @rule(name=NAMES, place=PLACES)
    def user_writes_a_line(self, name: str, place: int) -> None:
        lines = self.lines(name)
        lines[place:place] = [self.line() + self.end(name)]
        self.type(name, lines)

    @rule(name=NAMES, place=PLACES)
    def user_removes_a_line(self, name: str, place: int) -> None:
        if lines := self.lines(name):
            del lines[place % len(lines)]
            self.type(name, lines)

    @rule(name=NAMES, place=PLACES)
    def user_rewrites_a_line(self, name: str, place: int) -> None:
        if lines := self.lines(name):
            lines[place % len(lines)] = self.line() + self.end(name)
            self.type(name, lines)

    @precondition(lambda self: self.seen)
    @rule(number=st.integers(0, 100))
    def user_goes_back_to_an_earlier_text(self, number: int) -> None:
        """As by the undo of an editor, or by git."""
        name, text = self.seen[number % len(self.seen)]
        self.type(name, text.splitlines(keepends=True))

    @rule(name=NAMES)
    def user_opens_or_closes(self, name: str) -> None:
        path = self.editing.root / name
        if (text := self.editing.editor.buffers.pop(path, None)) is not None:
            self.save(name, text)
        elif path.exists():
            self.editing.editor.buffers[path] = self.editing.text(name) or ""

    @rule()
    def user_deletes_what_was_made(self) -> None:
        self.editing.editor.buffers.pop(self.editing.root / NEW, None)
        (self.editing.root / NEW).unlink(missing_ok=True)

    # --- the assistant ---

    @rule(name=NAMES, place=PLACES, span=st.integers(0, 3), count=st.integers(0, 2),
          turn=st.integers(0, 3))  # fmt: skip
    def assistant_edits(self, name: str, place: int, span: int, count: int, turn: int) -> None:
        lines = (self.editing.text(name) or "").splitlines(keepends=True)
        lines[place : place + span] = [self.own_line() + END[name] for _ in range(count)]
        self.edit(name, "".join(lines), f"t{turn}")

    @rule(name=NAMES, turn=st.integers(0, 3))
    def process_dies_before_it_writes(self, name: str, turn: int) -> None:
        """What was recorded never happened."""
        place, before = self.editing.workspace.locate(name), self.editing.text(name)
        seen, text = run(current(self.editing.workspace, place)), f"{before or ''}never{END[name]}"
        edit = run(self.editing.edits.recorder(f"t{turn}", "s", "c").record(place.path, seen, text))
        self.note(edit.id, f"t{turn}", before, text)
        self.restart()

    @rule()
    def restart(self) -> None:
        """The editor and its buffers stay; the next process knows what is on the disk."""
        buffers = self.editing.editor.buffers
        self.editing = Editing(self.folder / "work", self.folder / "edits")
        self.editing.editor.buffers = buffers

    @precondition(lambda self: self.sides)
    @rule(number=st.integers(0, 100))
    def undo_an_edit(self, number: int) -> None:
        edit_id = list(self.sides)[-1 - number % len(self.sides)]
        before, after = self.sides[edit_id]
        exact = self.texts()
        name = self.move("undo", [edit_id], id=edit_id)
        if name and exact[name[0]] == after:
            assert self.texts()[name[0]] == before, "an undo of what was not touched is exact"

    @precondition(lambda self: self.sides)
    @rule(number=st.integers(0, 100))
    def redo_an_edit(self, number: int) -> None:
        edit_id = list(self.sides)[-1 - number % len(self.sides)]
        self.move("redo", [edit_id], id=edit_id)

    @precondition(lambda self: self.turns)
    @rule(number=st.integers(0, 3))
    def undo_a_turn(self, number: int) -> None:
        turn = list(self.turns)[number % len(self.turns)]
        self.move("undo", self.turns[turn], turn=turn)

    @precondition(lambda self: self.turns)
    @rule(number=st.integers(0, 3))
    def redo_a_turn(self, number: int) -> None:
        turn = list(self.turns)[number % len(self.turns)]
        self.move("redo", self.turns[turn], turn=turn)

    @rule(what=st.sampled_from(["undo", "redo"]))
    def move_what_is_next(self, what: str) -> None:
        """And then the way back is what is next in the other direction."""
        goals: tuple[Target, Target] = ("undone", "made")
        there, back = goals if what == "undo" else goals[::-1]
        found = run(self.editing.edits.next_turn(there, "s"))
        if found is None:
            assert {edit.state for edit in self.editing.listed()} <= {there}
        elif self.move(what, self.turns[found.turn_id], turn=found.turn_id):
            returning = run(self.editing.edits.next_turn(back, "s"))
            assert returning is not None
            assert returning.turn_id == found.turn_id

    # --- what must hold ---

    def move(self, what: str, ids: list[str], **which: str) -> list[str]:
        """Undo or redo, and look at every line of every file before and after."""
        before, files = self.texts(), self.files()
        states = {edit.made.id: edit.state for edit in self.editing.listed()}
        try:
            names = getattr(self.editing, what)(**which)
        except EditConflictError:
            assert (self.texts(), self.files()) == (before, files), "a conflict touches nothing"
            return []
        after = self.texts()
        moved = [id for id in ids if states[id] == ("made" if what == "undo" else "undone")]
        taken = set().union(*(self.taken[id] for id in moved))
        for name, text in after.items():
            if name not in names:
                assert text == before[name], f"{name} was not told of"
            lost = own_lines(before[name]) - own_lines(text)
            assert lost <= (set() if what == "undo" else taken), f"{what} lost {lost}"
        if what == "undo":
            assert taken <= set().union(*map(own_lines, after.values())), "not all came back"
        for name, (encoding, end) in ENCODINGS.items():
            data = (self.editing.root / name).read_bytes().decode(encoding)
            assert set(re.findall(r"\r?\n|\r", data)) <= {end}, f"{name} has other line ends now"
        return list(names)

    def texts(self) -> dict[str, str | None]:
        """Each file as the user sees it."""
        return {name: self.editing.text(name) for name in [*ENCODINGS, NEW]}

    def files(self) -> dict[str, bytes]:
        """Everything on the disk."""
        root = self.editing.root
        return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    # --- how it is done ---

    def line(self) -> str:
        return f"user's caf\u00e9 {next(self.numbers)}"

    def own_line(self) -> str:
        return f"assistant's {next(self.numbers)}"

    def end(self, name: str) -> str:
        is_live = self.editing.root / name in self.editing.editor.buffers
        return "\n" if is_live else END[name]

    def lines(self, name: str) -> list[str]:
        live = self.editing.editor.buffers.get(self.editing.root / name)
        text = self.editing.text(name) if live is None else live
        return (text or "").splitlines(keepends=True)

    def type(self, name: str, lines: list[str]) -> None:
        """Put a text into the buffer, or where there is none into the file."""
        text, path = "".join(lines), self.editing.root / name
        if path in self.editing.editor.buffers:
            self.editing.editor.buffers[path] = text
        else:
            self.save(name, text)

    def save(self, name: str, text: str) -> None:
        encoding, end = ENCODINGS.get(name, ("utf-8", "\n"))
        path = self.editing.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(re.sub(r"\r?\n", end, text).encode(encoding))

    def edit(self, name: str, text: str, turn: str) -> None:
        before = self.editing.text(name)
        if before is not None:
            self.seen.append((name, before))
        edit_id = self.editing.edit(name, text, turn)
        self.note(edit_id, turn, before, self.editing.text(name) or "")

    def note(self, edit_id: str, turn: str, before: str | None, after: str) -> None:
        self.turns.setdefault(turn, []).append(edit_id)
        self.sides[edit_id] = before, after
        self.taken[edit_id] = own_lines(before) - own_lines(after)


def own_lines(text: str | None) -> set[str]:
    """The user's lines in a text."""
    return set(re.findall(r"user's caf\u00e9 \d+", text or ""))


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=sized(fast=10, normal=60, long=2000), stateful_step_count=30
)
