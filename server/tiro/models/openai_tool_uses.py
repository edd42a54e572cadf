"""Tool uses put together from the pieces of a chat completions stream.

Servers differ in what tells the pieces of one tool use from those of the next: an index, an id,
both, neither, or an index that is always 0. The rules, in this order:

1. An id that is known continues its tool use, unless the index says it is another one.
2. An unknown id begins a tool use, or names the one at its index if that has no id yet.
3. Without an id the index continues the newest tool use at that index, or begins one.
4. With neither, the newest tool use goes on; a second piece of the same delta is the next one.
5. In 3 and 4 a piece with a name begins a new tool use once the newest has all its arguments.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from tiro.models.model import ToolUseDelta, ToolUseDone
from tiro.models.tool_input import UNNAMED, new_tool_id, read_tool_input
from tiro.session.json_text import clean, encode


class _Open(Struct, eq=False):
    """A tool use that is still being written."""

    index: int | None
    id: str = ""
    name: str = ""
    raw: list[str] = []

    @property
    def is_complete(self) -> bool:
        """Whether its arguments are a whole JSON object already; most are not by their end."""
        end = next((piece for piece in reversed(self.raw) if piece.strip()), "")
        return end.rstrip().endswith("}") and read_tool_input("".join(self.raw)) is not None


class ToolUses:
    """The tool uses of one answer, in the order in which they began."""

    def __init__(self, new_id: Callable[[], str] = new_tool_id) -> None:
        self._new_id = new_id
        self._open: list[_Open] = []

    def add(self, pieces: list[Any]) -> list[ToolUseDelta]:
        """Take the pieces of one delta."""
        deltas = []
        seen: list[_Open] = []
        for piece in pieces:
            if not isinstance(piece, dict):
                continue
            function = piece.get("function")
            fields = function if isinstance(function, dict) else {}
            name = fields.get("name") if isinstance(fields.get("name"), str) else ""
            opened = self._find(piece, bool(name), seen)
            seen.append(opened)
            if not opened.raw and name and not (opened.name == name and piece.get("id")):
                opened.name += name
            text = _argument_text(fields.get("arguments"))
            if text:
                opened.raw.append(text)
            index = self._open.index(opened)
            deltas.append(ToolUseDelta(index=index, name=opened.name, input_json=text))
        return deltas

    def done(self) -> list[ToolUseDone]:
        """All of them, complete; call it when the answer has ended well."""
        taken: set[str] = set()
        tool_uses = []
        for opened in self._open:
            raw = clean("".join(opened.raw))
            if not opened.name and not raw.strip():
                continue
            tool_id = opened.id if opened.id and opened.id not in taken else self._new_id()
            taken.add(tool_id)
            tool_uses.append(
                ToolUseDone(
                    id=tool_id, name=opened.name or UNNAMED, input=read_tool_input(raw), raw=raw
                )
            )
        return tool_uses

    def _find(self, piece: dict[str, Any], has_name: bool, seen: list[_Open]) -> _Open:
        """The tool use that this piece belongs to, by the rules above."""
        index = piece.get("index") if isinstance(piece.get("index"), int) else None
        tool_id = str(piece.get("id") or "")
        if tool_id:
            return self._with_id(tool_id, index)
        at_index = [o for o in self._open if index is None or o.index == index]
        newest = at_index[-1] if at_index else None
        if newest is None or (index is None and newest in seen):
            return self._begin(index)
        if has_name and newest.is_complete:
            return self._begin(index)
        return newest

    def _with_id(self, tool_id: str, index: int | None) -> _Open:
        for opened in reversed(self._open):
            if opened.id == tool_id and index in (None, opened.index):
                return opened
            if not opened.id and index is not None and opened.index == index:
                opened.id = tool_id
                return opened
        return self._begin(index, tool_id)

    def _begin(self, index: int | None, tool_id: str = "") -> _Open:
        opened = _Open(index=index, id=tool_id)
        self._open.append(opened)
        return opened


def _argument_text(arguments: Any) -> str:
    """A piece of the arguments as text; some servers send the whole object instead."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else encode(arguments).decode()
