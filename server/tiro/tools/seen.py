"""Which texts of files the model has seen in this turn, so that no edit rests on an old one."""

from pathlib import Path

import msgspec

from tiro.tools.text import split_lines


class _Seen(msgspec.Struct, frozen=True):
    mark: int
    """Stands for the text."""
    up_to_line: int
    """So many lines from the first one on were shown, one call after the other."""


class SeenTexts:
    """The newest text that was shown of each file, by its real path; used from any thread."""

    def __init__(self) -> None:
        self._seen: dict[Path, _Seen] = {}

    def note(self, path: Path, text: str, first: int = 1, last: int | None = None) -> None:
        """The model was shown these lines of a text, or wrote all of it."""
        before = self._seen.get(path)
        up_to = before.up_to_line if before is not None and before.mark == hash(text) else 0
        if first <= up_to + 1:
            up_to = max(up_to, len(split_lines(text)) if last is None else last)
        self._seen[path] = _Seen(hash(text), up_to)

    def replace(self, path: Path, text: str, new: str) -> None:
        """The model changed a text; how much of it was seen stays what it was."""
        is_whole = self.has_all(path, text)
        self._seen[path] = _Seen(hash(new), len(split_lines(new)) if is_whole else 0)

    def has_changed(self, path: Path, text: str) -> bool:
        """Whether another text than this one was shown of the file."""
        seen = self._seen.get(path)
        return seen is not None and seen.mark != hash(text)

    def has_all(self, path: Path, text: str) -> bool:
        """Whether all lines of this very text were shown."""
        seen = self._seen.get(path, _Seen(hash(text), 0))
        return seen.mark == hash(text) and seen.up_to_line >= len(split_lines(text))
