"""Where a tool use records its edits: each one is kept before its file is touched."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol
from uuid import uuid4
from weakref import WeakValueDictionary

from tiro.errors import StorageError, ToolError
from tiro.session.edits import Became, Edit, Made, hash_of, hash_of_bytes
from tiro.session.finished import finished
from tiro.tools.file_text import FileText
from tiro.tools.merge import count_changes
from tiro.tools.silent_disk import in_thread
from tiro.tools.text import UTF_8, encode_text
from tiro.tools.tool import Recorded

UNRECORDED = (
    "This change could not be recorded, so it could not be undone later; nothing was changed."
    " Tell the user: {why}"
)


class EditStore(Protocol):
    """Where edits are kept; called from threads."""

    def add(self, made: Made, texts: Mapping[str, str]) -> None:
        """Have an edit and its texts, by their hashes, safe on the disk; raises StorageError."""
        ...

    def mark(self, mark: Became) -> None:
        """Record what became of edits of one file; never raises."""
        ...

    def edits(self) -> list[Edit]:
        """All edits, oldest first, and the same list while nothing changes; raises StorageError."""
        ...

    def claim(self) -> Callable[[], None]:
        """Let no other process undo or redo until the answer is called; raises StorageError."""
        ...

    def text(self, made: Made, name: str) -> str:
        """The text of an edit with this hash; raises StorageError."""
        ...


class FileLocks:
    """Who changes a file in this process holds its lock."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    @contextlib.asynccontextmanager
    async def changing(self, *paths: Path) -> AsyncIterator[None]:
        """Nobody else here changes these files meanwhile."""
        locks = [self._locks.setdefault(path, asyncio.Lock()) for path in sorted(set(paths))]
        async with contextlib.AsyncExitStack() as stack:
            for lock in locks:  # always in the same order, so that nobody waits in a circle
                await stack.enter_async_context(lock)
            yield

    def changed_now(self, paths: Iterable[Path]) -> list[Path]:
        """Those of these files that somebody here is changing."""
        return [path for path in paths if (lock := self._locks.get(path)) and lock.locked()]


class Recorder:
    """Records the edits of one tool use; an `EditRecorder`."""

    def __init__(
        self,
        store: EditStore,
        locks: FileLocks,
        now: Callable[[], str],
        ids: tuple[str, str | None, str],
    ) -> None:
        """`ids` are those of the turn, the session and the tool use."""
        self._store, self._locks, self._now = store, locks, now
        self._turn_id, self._session_id, self._tool_use_id = ids

    def changing(self, path: Path) -> contextlib.AbstractAsyncContextManager[None]:
        """Nobody else of this process changes the file with this real path in the meantime."""
        return self._locks.changing(path)

    async def record(self, path: Path, before: FileText | None, after: str | None) -> Recorded:
        """Record an edit that is about to be made; raises ToolError where that cannot be.

        An edit whose wait is cancelled is recorded to its end, as one that failed.
        """
        work = asyncio.ensure_future(in_thread(self._add, path, before, after))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            with contextlib.suppress(StorageError):
                await finished(self.failed((await finished(work)).id))
            raise
        except StorageError as error:
            raise ToolError(UNRECORDED.format(why=error)) from error

    async def failed(self, edit_id: str) -> None:
        """The edit did not happen."""
        mark = Became([edit_id], self._now(), "failed")
        await in_thread(self._store.mark, mark)

    def _add(self, path: Path, before: FileText | None, after: str | None) -> Recorded:
        old = None if before is None else before.text
        status = None if before is None else before.status
        encoding = UTF_8 if before is None else before.encoding
        is_closed = before is None or before.live is None
        added, removed = count_changes(old or "", after or "")
        name = os.fsencode(path)
        shown = name.decode("utf-8", "replace")
        made = Made(
            id=uuid4().hex,
            at=self._now(),
            turn_id=self._turn_id,
            session_id=self._session_id,
            tool_use_id=self._tool_use_id,
            path=shown,
            raw_path=None if shown.encode() == name else name,
            before=None if old is None else hash_of(old),
            after=None if after is None else hash_of(after),
            before_bytes=bytes_hash(old, encoding) if is_closed else None,
            after_bytes=bytes_hash(after, encoding) if is_closed else None,
            added=added,
            removed=removed,
            encoding=encoding,
            mode=None if status is None else status.st_mode & 0o7777,
            new_folders=sum(not folder.exists() for folder in path.parents),
        )
        self._store.add(made, {hash_of(text): text for text in (old, after) if text is not None})
        return Recorded(made.id, added, removed)


class LastEdits:
    """Finds the newest edit of a file that is not UTF-8; called from threads."""

    def __init__(self, store: EditStore) -> None:
        self._store = store
        self._found: tuple[list[Edit], Mapping[Path, Made]] = [], {}

    def __call__(self, path: Path) -> Made | None:
        """The edit; None where there is none, or edits cannot be read."""
        try:
            edits = self._store.edits()
        except StorageError:
            return None
        if edits is not self._found[0]:
            last = {(one.made.path, one.made.raw_path): one.made for one in edits}
            made = [one for one in last.values() if one.encoding != UTF_8]
            self._found = edits, {path_of(one): one for one in made}
        return self._found[1].get(path)


def bytes_hash(text: str | None, encoding: str) -> str | None:
    """The hash of a text as its file holds it; None for one that will not be written."""
    if text is None:
        return None
    with contextlib.suppress(UnicodeEncodeError):
        return hash_of_bytes(encode_text(text, encoding))
    return None


def path_of(made: Made) -> Path:
    """The real path of an edited file."""
    return Path(made.path if made.raw_path is None else os.fsdecode(made.raw_path))
