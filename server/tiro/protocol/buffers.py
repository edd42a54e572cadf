"""The open buffers: the live text of each document, kept up to date by incremental changes.

Lines end at LF, CRLF and CR only, as LSP says; a form feed or U+2028 inside a line is text like
any other (pygls' own documents split there and lose their place). A change that does not fit is
clipped to the text, as LSP says too.
"""

import os
import re
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from tiro.protocol import types
from tiro.tools.text_range import offset_of


class TextDocumentItem(msgspec.Struct, frozen=True, rename="camel"):
    """A document as it is opened."""

    uri: str
    text: str
    version: int | None = None


class DidOpenParams(msgspec.Struct, frozen=True, rename="camel"):
    """`textDocument/didOpen`."""

    text_document: TextDocumentItem


class DocumentId(msgspec.Struct, frozen=True, rename="camel"):
    """Which document; the version after a change."""

    uri: str
    version: int | None = None


class DocumentParams(msgspec.Struct, frozen=True, rename="camel"):
    """`textDocument/didClose`, `textDocument/didSave`."""

    text_document: DocumentId


class ContentChange(msgspec.Struct, frozen=True, rename="camel"):
    """New text for a range, or for the whole document."""

    text: str
    range: types.Range | None = None


class DidChangeParams(msgspec.Struct, frozen=True, rename="camel"):
    """`textDocument/didChange`."""

    text_document: DocumentId
    content_changes: list[ContentChange]


class Buffers:
    """All open documents; read from any thread, changed from the event loop's."""

    def __init__(self) -> None:
        self.encoding = "utf-16"
        self._texts: dict[str, str] = {}
        self._versions: dict[str, int | None] = {}
        self._lock = threading.Lock()

    def open(self, params: DidOpenParams) -> None:
        """A document is open, with this text."""
        document = params.text_document
        with self._lock:
            self._texts[document.uri] = document.text
            self._versions[document.uri] = document.version

    def change(self, params: DidChangeParams) -> None:
        """A document was edited; a change of one that is not open is ignored."""
        uri = params.text_document.uri
        with self._lock:
            if uri not in self._texts:
                return
            for change in params.content_changes:
                self._texts[uri] = changed(self._texts[uri], change, self.encoding)
            self._versions[uri] = params.text_document.version

    def close(self, params: DocumentParams) -> None:
        """A document is closed; from now on the disk has its text."""
        with self._lock:
            self._texts.pop(params.text_document.uri, None)
            self._versions.pop(params.text_document.uri, None)

    def paths(self) -> list[Path]:
        """The files that are open, as the editor names them."""
        with self._lock:
            found = [path_of(uri) for uri in self._texts]
        return [path for path in found if path is not None]

    def text(self, path: Path) -> str | None:
        """The live text of a file, or None when it is not open."""
        with self._lock:
            for uri, text in self._texts.items():
                if path_of(uri) == path:
                    return text
        return None


def path_of(uri_or_path: str) -> Path | None:
    """The path that a `file://` URI or a plain absolute path names; None for anything else."""
    if os.path.isabs(uri_or_path):
        return Path(uri_or_path)
    try:
        uri = urlsplit(uri_or_path)
        path = unquote(uri.path, errors="surrogateescape")
    except ValueError:
        return None
    if uri.scheme.lower() != "file" or "\0" in path:
        return None
    if re.match(r"/[A-Za-z]:", path) and os.name == "nt":
        path = path[1:]
    return Path(path) if os.path.isabs(path) else None


def changed(text: str, change: ContentChange, encoding: str) -> str:
    """The text after one change."""
    if change.range is None:
        return change.text
    first, last = change.range.start, change.range.end
    start = offset_of(text, first.line, first.character, encoding)
    end = max(start, offset_of(text, last.line, last.character, encoding))
    return text[:start] + change.text + text[end:]
