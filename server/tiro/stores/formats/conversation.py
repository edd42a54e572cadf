"""A conversation that another program kept, on its way to be a session: for formats only read.

Tool results become messages of their own (M1.4), blocks of providers become ours, and what one
answer said in several pieces becomes one message.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from tiro.session.json_text import encode
from tiro.session.snapshot import SCHEMA_VERSION
from tiro.session.times import rfc3339
from tiro.stores.formats import json
from tiro.stores.formats.format import Imported, refused


class Conversation:
    """Messages as they are read, oldest first, and what was left out of them."""

    def __init__(self, left_out: dict[str, int] | None = None) -> None:
        """`left_out` counts for several conversations of one text together."""
        self.rows: list[dict[str, Any]] = []
        self._left_out = {} if left_out is None else left_out

    def add(self, role: str, content: Any, timestamp: Any = None) -> None:
        """The next message; its tool results stand apart, before what else it says."""
        blocks = content if isinstance(content, list) else [content]
        results = [block for block in blocks if _is_result(block)]
        for block in results:
            self._append("tool", own_block(block), timestamp)
        if not results or len(results) < len(blocks):
            said = [own_block(block) for block in blocks if not _is_result(block)]
            self._append(role, said if isinstance(content, list) else content, timestamp)

    def answer(self, blocks: Iterable[dict[str, Any]], timestamp: Any = None) -> None:
        """More of what the assistant says: it joins the message before if that is an answer."""
        last = self.rows[-1] if self.rows else {"role": ""}
        if last["role"] != "assistant" or not isinstance(last["content"], list):
            self._append("assistant", [], timestamp)
        self.rows[-1]["content"] += map(own_block, blocks)

    def result(self, id: str, content: Any, timestamp: Any = None, is_error: bool = False) -> None:
        """What a tool answered."""
        block = {"type": "tool_result", "tool_use_id": id, "content": content}
        self._append("tool", {**block, "is_error": True} if is_error else block, timestamp)

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count something that is not taken over, by what it is."""
        self._left_out[what] = self._left_out.get(what, 0) + count

    def imported(self, id: Any, title: Any = None, notes: Iterable[str] = ()) -> Imported:
        """All of it as a session; SessionFormatError where there is no message."""
        rows = [row for row in self.rows if row["content"] != []]
        if not rows:
            raise refused("It has no message")
        times = [row["timestamp"] for row in rows if row.get("timestamp")]
        fields = {
            "schema_version": SCHEMA_VERSION,  # so that nobody doubts their order
            "id": id if isinstance(id, str) else None,
            "title": title if isinstance(title, str) and title.strip() else None,
            "created_at": times[0] if times else None,
            "updated_at": times[-1] if times else None,
            "messages": rows,
        }
        imported = json.read(encode(fields), None)
        imported.notes += [*notes, *self._left_out_note()]
        return imported

    def _append(self, role: str, content: Any, timestamp: Any) -> None:
        row = {"role": role, "content": content}
        if isinstance(timestamp, str):
            row["timestamp"] = timestamp
        self.rows.append(row)

    def _left_out_note(self) -> Iterator[str]:
        if self._left_out:
            counts = ", ".join(f"{what}: {count}" for what, count in self._left_out.items())
            yield f"Not taken over: {counts}"


def own_block(block: Any) -> Any:
    """A provider's block as ours; what Tiro does not know stays as it is (U1.1)."""
    if not isinstance(block, dict):
        return {"type": "text", "text": block} if isinstance(block, str) else block
    kind, text, url = block.get("type"), block.get("text"), block.get("image_url")
    if kind in ("input_text", "output_text") and isinstance(text, str):
        return {"type": "text", "text": text}
    if kind in ("image_url", "input_image"):
        address = url.get("url") if isinstance(url, dict) else url
        return _image(address) if isinstance(address, str) else block
    if kind == "refusal" and isinstance(block.get("refusal"), str):
        return {"type": "text", "text": block["refusal"]}
    if kind == "tool_use" and not isinstance(block.get("input"), dict):
        return {**block, "input": {}}
    return _result(block) if kind == "tool_result" else block


def named(kind: Any) -> str:
    """What a record of this type is counted as."""
    return kind[:40] if isinstance(kind, str) else "items of no type"


def moment(seconds: Any) -> str | None:
    """A time in seconds since 1970 as text; None for what is none."""
    try:
        return rfc3339(datetime.fromtimestamp(float(seconds), UTC))
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _result(block: dict[str, Any]) -> dict[str, Any]:
    """A tool result with what one of ours needs: providers take it without content too."""
    content, is_error = block.get("content"), block.get("is_error")
    kept = {k: v for k, v in block.items() if k != "is_error" or isinstance(is_error, bool)}
    if isinstance(content, dict):
        return {**kept, "content": [own_block(content)]}
    if isinstance(content, list):
        return {**kept, "content": [own_block(item) for item in content]}
    return {**kept, "content": content if isinstance(content, str) else ""}


def _image(url: str) -> dict[str, Any]:
    head, comma, data = url.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64") and comma):
        return {"type": "image", "source": {"type": "url", "url": url}}
    media_type = head.removeprefix("data:").removesuffix(";base64")
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"
