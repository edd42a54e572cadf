"""An edit or a turn named by the beginning of its id."""

import pytest

from tiro.edit_text import line_of_edit, named_edits
from tiro.errors import InvalidInputError

EDITS = [
    {"id": "aa11" * 8, "turnId": "bb22" * 8, "at": "2026-11-28T09:30:00.000Z"},
    {"id": "aa33" * 8, "turnId": "bb22" * 8, "at": "2026-11-28T09:31:00.000Z"},
]


def test_any_beginning_that_only_one_id_has_names_it() -> None:
    assert named_edits(EDITS, "aa1") == {"id": "aa11" * 8}
    assert named_edits(EDITS, "bb22") == {"turnId": "bb22" * 8}, "of a turn with two edits"
    assert named_edits(EDITS, "cc") == {"turnId": "cc"}, "the server says what is not there"
    with pytest.raises(InvalidInputError, match="More than one edit or turn begins with 'aa'"):
        named_edits(EDITS, "aa")


def test_what_the_list_shows_names_the_edit() -> None:
    rest = {"undone": True, "added": 2, "removed": 1, "path": "/w/a\x1b.py"}
    line = line_of_edit({**EDITS[0], **rest})
    assert line == (
        "edit aa11aa11 of turn bb22bb22  2026-11-28 09:30  +2 -1  /w/a\u241b.py  (undone)"
    )
    assert named_edits(EDITS, line.split()[1]) == {"id": EDITS[0]["id"]}
