"""A process of its own that searches lines for a pattern; `tools/search.py` talks to it.

A regular expression that a model wrote can take for ever, and inside one process nothing can stop
it or run beside it. So it runs here, where it can be killed. Only the standard library is used: the
file is run by its path, which starts in a few milliseconds.

In: frames of 4 bytes of length and that many bytes. The first is JSON with `pattern`, `ignore_case`
and `context`; each further one is JSON with the `sizes` of the texts whose UTF-8 bytes follow it.
Out: for each frame one of JSON: an object with an `error`, or for each text a list of
[line number, is match, text of the line, cut].
"""

import json
import re
import sys
from typing import IO, Any

MAX_LINE_CHARS = 400
CHARS_BEFORE_MATCH = 100


def search(pattern: "re.Pattern[str]", text: str, context: int) -> list[list[Any]]:
    """The lines of a text that match, with `context` lines around each."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()  # a line end at the end begins no further line
    found = {}
    for index, line in enumerate(lines):
        match = pattern.search(line)
        if match is not None:
            found[index] = match.start()
    shown = sorted(
        {
            near
            for index in found
            for near in range(max(0, index - context), min(len(lines), index + context + 1))
        }
    )
    return [[i + 1, i in found, cut(lines[i], found.get(i, 0))] for i in shown]


def cut(line: str, start: int) -> str:
    """A line short enough to be shown, with the match that begins at `start` in it."""
    if len(line) <= MAX_LINE_CHARS:
        return line
    begin = max(0, min(start - CHARS_BEFORE_MATCH, len(line) - MAX_LINE_CHARS))
    end = begin + MAX_LINE_CHARS
    return ("…" if begin else "") + line[begin:end] + ("…" if end < len(line) else "")


def serve(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer frames until the input ends."""
    first = _frame(source)
    if first is None:
        return
    order = json.loads(first)
    try:
        flags = re.IGNORECASE if order["ignore_case"] else 0
        pattern = re.compile(order["pattern"], flags)
    except (re.error, OverflowError, RecursionError) as error:
        _answer(target, {"error": str(error)})
        return
    _answer(target, {})
    while (head := _frame(source)) is not None:
        texts = [source.read(size).decode("utf-8", "surrogatepass") for size in json.loads(head)]
        _answer(target, [search(pattern, text, order["context"]) for text in texts])


def _frame(source: IO[bytes]) -> bytes | None:
    length = source.read(4)
    return source.read(int.from_bytes(length, "big")) if len(length) == 4 else None


def _answer(target: IO[bytes], value: Any) -> None:
    data = json.dumps(value).encode()
    target.write(len(data).to_bytes(4, "big") + data)
    target.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
