"""What a user sends as the content of a message (protocol section 4)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import RecordingEditor
from tiro import InvalidInputError, InvalidMessageError
from tiro.assistant.prompt import MAX_ATTACHED_BYTES, Attachment, content_of
from tiro.session.messages import Content
from tiro.tools.silent_disk import Patience
from tiro.tools.workspace import Workspace


def content(prompt: Content, *attachments: Attachment, editor: Any = None) -> Content:
    """The content of the user's message."""
    workspace = Workspace(editor or RecordingEditor())
    return asyncio.run(content_of(prompt, attachments, workspace, Patience()))


def attached(path: Path, editor: Any = None, **fields: Any) -> Any:
    """The text of a file that is attached."""
    blocks: Any = content("see", Attachment(kind="file", path=str(path), **fields), editor=editor)
    return blocks[1]["text"]


def lines(first: int, last: int, before: int = 0, after: int = 0) -> dict[str, Any]:
    """An LSP range."""
    return {
        "start": {"line": first, "character": before},
        "end": {"line": last, "character": after},
    }


@pytest.mark.parametrize("prompt", ["", "  \n\t", [], [{"type": "text", "text": " "}]])
def test_an_empty_prompt_is_refused(prompt: Content) -> None:
    """G5.5: an empty or blank prompt."""
    with pytest.raises(InvalidInputError, match="empty"):
        content(prompt)


@pytest.mark.parametrize("prompt", [[{"type": "text"}], ["x"], [{"text": "x"}]])
def test_a_broken_block_is_refused(prompt: Content) -> None:
    """Protocol section 2."""
    with pytest.raises(InvalidMessageError):
        content(prompt)


def test_only_the_users_own_words_are_stored_without_attachments() -> None:
    """Hints: store what the user typed."""
    assert content("hi") == "hi"


def test_attachments_follow_the_users_words() -> None:
    """Protocol section 4: as `attachment` blocks after the user's own text."""
    given = Attachment(kind="selection", path="/w/a.py", range=lines(1, 2), text="x = 1")
    assert content("why?", given) == [
        {"type": "text", "text": "why?"},
        {
            "type": "attachment",
            "kind": "selection",
            "path": "/w/a.py",
            "range": lines(1, 2),
            "text": "x = 1",
        },
    ]


def test_a_file_is_read_and_an_open_buffer_comes_first(tmp_path: Path) -> None:
    """Protocol section 5: the editor's text of a file that is open."""
    file = tmp_path / "a.txt"
    file.write_text("on disk")
    assert attached(file) == "on disk"
    editor = RecordingEditor(tmp_path, buffers={file: "in the buffer"})
    assert attached(file, editor) == "in the buffer"


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (lines(0, 0, 0, 2), "on"),
        (lines(1, 1, 1, 3), "wo"),
        (lines(0, 1, 2, 1), "e\nt"),
        (lines(1, 2), "two\n"),
        (lines(7, 9), ""),
        (lines(2, 99), "three"),
    ],
)
def test_a_range_is_cut_out(tmp_path: Path, span: dict[str, Any], text: str) -> None:
    """Protocol, Attachment."""
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\nthree")
    assert attached(file, range=span) == text


@pytest.mark.parametrize(
    ("content", "span", "encoding", "text"),
    [
        ("a\fb\u2028c\nsecond\n", lines(1, 1, 0, 6), "utf-16", "second"),
        ("🙂x\n", lines(0, 0, 2, 3), "utf-16", "x"),
        ("🙂x\n", lines(0, 0, 1, 2), "utf-32", "x"),
        ("one\ntwo\n", lines(1, 0, 1, 1), "utf-16", ""),
    ],
)
def test_a_range_counts_as_the_protocol_does(
    tmp_path: Path, content: str, span: dict[str, Any], encoding: str, text: str
) -> None:
    """LSP's line ends and code units, of a closed file as of an open one, and no fault."""
    file = tmp_path / "a.txt"
    file.write_text(content)
    assert attached(file, range=span, encoding=encoding) == text
    editor = RecordingEditor(tmp_path, buffers={file: content})
    assert attached(file, editor, range=span, encoding=encoding) == text


def test_an_open_buffer_outside_the_workspace_is_read_live_too(tmp_path: Path) -> None:
    """The user named the file; what they see is what is sent."""
    file = tmp_path / "elsewhere" / "a.txt"
    root = tmp_path / "root"
    root.mkdir()
    editor = RecordingEditor(root, buffers={file: "not yet saved"})
    assert attached(file, editor) == "not yet saved"


def test_what_cannot_be_attached_is_told(tmp_path: Path) -> None:
    """One sentence that names the file; nothing is sent."""
    (tmp_path / "binary").write_bytes(b"a\0b")
    (tmp_path / "large").write_bytes(b"x" * (MAX_ATTACHED_BYTES + 1))
    for name in ("missing", "binary", "large", "."):
        with pytest.raises(InvalidInputError) as caught:
            attached(tmp_path / name)
        assert str(tmp_path) in str(caught.value)
    with pytest.raises(InvalidInputError):
        content("see", Attachment(kind="file"))
    with pytest.raises(InvalidInputError):
        attached(tmp_path / "large", range={"start": 1})
