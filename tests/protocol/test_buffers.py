"""The live text of open buffers: incremental changes in all three position encodings."""

from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from tiro.protocol import types
from tiro.protocol.buffers import (
    Buffers,
    ContentChange,
    DidChangeParams,
    DidOpenParams,
    DocumentId,
    DocumentParams,
    TextDocumentItem,
    changed,
    path_of,
)
from tiro.tools.text_range import offset_of

URI = "file:///w/a.py"


def position(line: int, character: int) -> types.Position:
    return types.Position(line, character)


def edit(line: int, character: int, end_line: int, end_character: int, text: str) -> ContentChange:
    span = types.Range(position(line, character), position(end_line, end_character))
    return ContentChange(text, span)


def opened(text: str, encoding: str = "utf-16") -> Buffers:
    buffers = Buffers()
    buffers.encoding = encoding
    buffers.open(DidOpenParams(TextDocumentItem(URI, text, 1)))
    return buffers


def change(buffers: Buffers, *changes: ContentChange, uri: str = URI) -> str | None:
    buffers.change(DidChangeParams(DocumentId(uri, 2), list(changes)))
    return buffers.text(Path("/w/a.py"))


def test_changes_apply_in_order() -> None:
    buffers = opened("one\ntwo\n")
    assert change(buffers, edit(0, 0, 0, 3, "1"), edit(1, 0, 1, 0, "2 ")) == "1\n2 two\n"
    assert change(buffers, ContentChange("all new")) == "all new"


def test_only_lf_crlf_and_cr_end_a_line() -> None:
    """A form feed (Emacs sources are full of them) and U+2028 are text; pygls splits there."""
    text = "a\x0cb\u2028c\x85d\x0be\nsecond\rthird\r\nfourth"
    assert change(opened(text), edit(1, 0, 1, 6, "2")) == text.replace("second", "2")
    assert change(opened(text), edit(2, 0, 2, 5, "3")) == text.replace("third", "3")
    assert change(opened(text), edit(3, 0, 3, 6, "4")) == text.replace("fourth", "4")


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 10), ("utf-16", 5), ("utf-32", 4)])
def test_columns_count_in_the_negotiated_encoding(encoding: str, column: int) -> None:
    text = "é🙂漢x = 1"  # 2 + 4 + 3 bytes before the x
    column -= 1 if encoding == "utf-8" else 0
    column -= 1 if encoding != "utf-8" else 0
    buffers = opened(text, encoding)
    assert change(buffers, edit(0, column, 0, column + 1, "y")) == "é🙂漢y = 1"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (edit(0, 99, 0, 99, "!"), "abc!\ndef"),
        (edit(1, 99, 9, 0, "!"), "abc\ndef!"),
        (edit(9, 0, 9, 9, "!"), "abc\ndef!"),
        (edit(1, 1, 0, 1, "!"), "abc\nd!ef"),
    ],
)
def test_what_lies_outside_is_clipped(given: ContentChange, text: str) -> None:
    assert changed("abc\ndef", given, "utf-16") == text


@hypothesis.given(
    st.text(st.sampled_from("ab\n\r\u2028\x0cé漢🙂"), max_size=30),
    st.data(),
    st.sampled_from(["utf-8", "utf-16", "utf-32"]),
)
def test_every_place_is_found_again(text: str, data: st.DataObject, encoding: str) -> None:
    """Against the plain way: walk to the offset, count lines and code units."""
    offset = data.draw(st.integers(0, len(text)))
    if text[offset - 1 : offset + 1] == "\r\n":
        offset -= 1  # nobody can stand inside a line end
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    line, _, rest = before.count("\n"), "", before.rpartition("\n")[2]
    units = {
        "utf-8": len(rest.encode()),
        "utf-16": len(rest.encode("utf-16-le")) // 2,
        "utf-32": len(rest),
    }[encoding]
    assert offset_of(text, line, units, encoding) == offset


def test_a_closed_or_unknown_document_has_no_live_text() -> None:
    buffers = opened("text")
    assert change(buffers, ContentChange("x"), uri="file:///w/other.py") == "text"
    assert buffers.paths() == [Path("/w/a.py")]
    buffers.close(DocumentParams(DocumentId(URI)))
    buffers.close(DocumentParams(DocumentId(URI)))
    assert buffers.text(Path("/w/a.py")) is None
    assert buffers.paths() == []


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///w/a%20b%23.py", "/w/a b#.py"),
        ("file://localhost/w/a.py", "/w/a.py"),
        ("FILE:///w/%C3%A9.py", "/w/é.py"),
        ("/w/a%20b", "/w/a%20b"),
        ("/w/with?mark", "/w/with?mark"),
        ("untitled:Untitled-1", None),
        ("relative/a.py", None),
        ("https://example.com/a", None),
        ("file:relative", None),
        ("file:///a%00b", None),
        ("file://[::bad", None),
        ("", None),
    ],
)
def test_uris_and_absolute_paths_name_files(uri: str, path: str | None) -> None:
    assert path_of(uri) == (None if path is None else Path(path))
