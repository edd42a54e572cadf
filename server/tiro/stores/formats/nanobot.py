"""nanobot's session files: a line of facts, then one message a line, and no key of Tiro's (N6).

What is read beside N6.1's facts goes out again as it came. `jsonl` is the same with more facts.
"""

from functools import partial
from typing import Any

from tiro.session.foreign import given_back, taken
from tiro.session.json_text import encode
from tiro.session.times import from_rfc3339
from tiro.stores.formats import jsonl, lines
from tiro.stores.formats.format import OTHERS, TIMES, Format, Imported, history, others_of


def dumps(fields: dict[str, Any]) -> str:
    """The lines; times are local ones without an offset, as that program reads them."""
    first = {
        "_type": "metadata",
        "key": fields["id"],
        "created_at": _local(fields["created_at"]),
        "updated_at": _local(fields["updated_at"]),
        "metadata": fields["metadata"],
        "last_consolidated": jsonl.consolidated(fields),
        "summary": fields["summary"],
    }
    messages = [given_back(message, has_times=True) for message in history(fields)]
    rows = [{**others_of(fields), **first}, *messages]
    return "".join(encode(row).decode() + "\n" for row in rows)


def loads(text: str) -> Imported:
    """Read the lines; broken ones are left out and counted (N6.5)."""
    return jsonl.read(text, partial(taken, has_times=True))


def looks_like(text: str) -> bool:
    """Whether it begins with a line of facts that is not one of Tiro's own export."""
    first = lines.first_objects(text, 1)
    return bool(first) and first[0].get("_type") == "metadata" and "schema_version" not in first[0]


def _local(text: str | None) -> str | None:
    """A time as nanobot writes it; what is no time stays."""
    time = from_rfc3339(text)
    return text if time is None else time.astimezone().replace(tzinfo=None).isoformat()


FORMAT = Format(
    "nanobot",
    dumps,
    loads,
    looks_like,
    jsonl.earlier_id,
    frozenset(("metadata", "summary", "archive", TIMES, OTHERS)),
)
