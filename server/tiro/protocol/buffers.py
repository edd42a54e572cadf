"""The open buffers: the live text of each document, kept up to date by incremental changes.

Lines end at LF, CRLF and CR only, as LSP says; a form feed or U+2028 inside a line is text like
any other (pygls' own documents split there and lose their place). A change that does not fit is
clipped to the text, as LSP says too.
"""

import asyncio
import os
import re
import threading
from collections.abc import Callable
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


class Document(msgspec.Struct, frozen=True):
    """An open document as it is right now."""

    uri: str
    text: str
    version: int | None = None


class Buffers:
    """All open documents; read from any thread, changed from the event loop's."""

    def __init__(self) -> None:
        self.encoding = "utf-16"
        self._documents: dict[str, Document] = {}
        self._news = asyncio.Event()
        self._lock = threading.Lock()

    def open(self, params: DidOpenParams) -> None:
        """A document is open, with this text."""
        document = params.text_document
        self._put(Document(document.uri, document.text, document.version))

    def change(self, params: DidChangeParams) -> None:
        """A document was edited; a change of one that is not open is ignored."""
        uri = params.text_document.uri
        before = self._documents.get(uri)
        if before is None:
            return
        text = before.text
        for change in params.content_changes:
            text = changed(text, change, self.encoding)
        self._put(Document(uri, text, params.text_document.version))

    def close(self, params: DocumentParams) -> None:
        """A document is closed; from now on the disk has its text."""
        with self._lock:
            self._documents.pop(params.text_document.uri, None)
        self._tell()

    def paths(self) -> list[Path]:
        """The files that are open, as the editor names them."""
        with self._lock:
            found = [path_of(uri) for uri in self._documents]
        return [path for path in found if path is not None]

    def text(self, path: Path) -> str | None:
        """The live text of a file, or None when it is not open."""
        document = self.document(path)
        return None if document is None else document.text

    def document(self, path: Path) -> Document | None:
        """The open document of a file, or None."""
        with self._lock:
            found = (one for uri, one in self._documents.items() if path_of(uri) == path)
            return next(found, None)

    async def until(self, path: Path, is_met: Callable[[Document | None], bool]) -> None:
        """Wait until what the editor tells of this file is what is waited for."""
        while not is_met(self.document(path)):
            await self._news.wait()

    def _put(self, document: Document) -> None:
        with self._lock:
            self._documents[document.uri] = document
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


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
