"""Histories of any length for the growth curves: prose, and tool uses with their results."""

from pathlib import Path
from typing import Any

from tests.bench.messages import message
from tiro.session.json_text import encode

STAMP = "2025-01-01T12:00:00.000Z"
WINDOW = 100
"""How many messages a bounded window holds: the server's own default."""

CYCLE = 6
"""After so many messages a tool is used again."""


def talk(n: int, characters: int = 1_000) -> dict[str, Any]:
    """The n-th message of a history, with seq and time; every sixth one uses a tool."""
    turn, step = divmod(n, CYCLE)
    row: dict[str, Any] = message(n, characters)
    if step == 3:
        use = {"type": "tool_use", "id": f"call_{turn}", "name": "read_file"}
        row = {"role": "assistant", "content": [{**use, "input": {"path": f"src/{turn}.py"}}]}
    elif step == 4:
        result = {"type": "tool_result", "tool_use_id": f"call_{turn}", "content": row["content"]}
        row = {"role": "tool", "content": result}
    return {**row, "seq": n + 1, "timestamp": STAMP}


def write_session(
    path: Path, rows: list[dict[str, Any]], window: int | None = None, **fields: Any
) -> Path:
    """A session file; with `window` only so many of the newest messages are not in its archive."""
    cut = 0 if window is None else max(0, len(rows) - window)
    while cut and rows[cut]["role"] == "tool":
        cut -= 1
    head = {"schema_version": 1, "id": path.stem, "title": "Talk", "summary": "Earlier talk."}
    stamps = {"created_at": STAMP, "updated_at": STAMP, "timestamp": STAMP}
    lists = {"messages": rows[cut:], "archive": rows[:cut]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode({**head, **stamps, "max_history": window, **fields, **lists}))
    return path
