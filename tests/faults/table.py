"""Which fault at which place is seen how, and what is lost: makes `server/FAULTS.md`.

python -m tests.faults.table             every case, and the table
python -m tests.faults.table WORD …      only places with one of these words, told in lines
python -m tests.faults.table --from FILE the table out of such lines
"""

import concurrent.futures
import itertools
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from tests.faults.cases import Case, Row, Theatre, cases, outcome
from tests.faults.places import asking, place_named
from tests.faults.reasons import reason_for
from tests.faults.stage import Seen
from tests.sizes import SIZE

FILE = Path(__file__).resolve().parents[2] / "server" / "FAULTS.md"
MAX_SHOWN = 220
ROW = re.compile(r"\| \d+ \| ([^|]+) \| (.+) \|$")
HEAD = """\
# Faults

What a user sees when the system refuses something, place by place, and what is lost. Made by
`python3 tests/run.py faults` (with `--fast` for new places only): each operation at each place
fails for as long as a use of the product takes; then it is looked whether work goes on, and whether
everything is there that was acknowledged. `kill` is a kill -9 right before the operation, `short` a
write that takes half; `EINTR` is not among them, since Python itself asks again.
`tests/faults/test_document.py` checks that every call in the source that asks the system for
something stands here.

A place is a file below `server/tiro`, a function, and a call in it.

## Every fault at every place

| # | place | operation | fault | seen | lost |
|--:|---|---|---|---|---|
"""
SECOND = """
## Places where no fault is made

| # | place | why not | shown by |
|--:|---|---|---|
"""


def main() -> int:
    """Try or read the cases, write the table, and complain of what must never be."""
    paths = sys.argv[2:] if sys.argv[1:2] == ["--from"] else []
    words = [] if paths else sys.argv[1:]
    known = lines_of(FILE.read_text("utf-8")) if SIZE == "fast" and not paths else {}
    if paths:
        lines = (line for path in paths for line in Path(path).read_bytes().splitlines())
        last = {}
        for row in (msgspec.json.decode(line, type=Row) for line in lines if line[:1] == b"{"):
            last[row.place, row.operation, row.fault] = row  # a later file knows better
        rows = [row for row in last.values() if place_named(row.place)]
    else:
        rows = list(tried(lambda place: chosen(place, words, known)))
    if not words:
        FILE.write_text(document(rows, known), "utf-8")
        sys.stdout.write(FILE.read_text("utf-8"))
    bad = [row for row in rows if row.lost or row.faults]
    for row in bad:
        sys.stderr.write(f"WRONG: {row}\n")
    return int(bool(bad))


def chosen(place: str, words: list[str], known: Container[str]) -> bool:
    """Whether a place is to be tried."""
    return place not in known and (not words or any(word in place for word in words))


def tried(is_chosen: Callable[[str], bool]) -> Iterator[Row]:
    """The rows of these places; each is told on stderr as it comes."""
    theatre = Theatre()
    todo, wholes = cases(theatre)
    theatre.close()
    todo = [case for case in todo if is_chosen(str(case.place))]
    sys.stderr.write(f"{len(todo)} cases\n")
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        waiting = [pool.submit(_work, case, wholes[case.use]) for case in todo]
        for done in concurrent.futures.as_completed(waiting):
            sys.stderr.write(msgspec.json.encode(done.result()).decode() + "\n")
            yield done.result()


_theatre: list[Theatre] = []


def _work(case: Case, whole: Seen) -> Row:
    if not _theatre:
        _theatre.append(Theatre())
    return outcome(_theatre[0], case, whole)


def lines_of(text: str) -> dict[str, list[str]]:
    """What a document says of each place that the source still has, without the numbers."""
    found = dict[str, list[str]]()
    for line in text.partition(SECOND)[0].splitlines():
        if match := ROW.match(line):
            found.setdefault(match[1], []).append(match[2])
    return {place: lines for place, lines in found.items() if place_named(place)}


def document(rows: Iterable[Row], known: Mapping[str, list[str]]) -> str:
    """The whole document: these rows, and what was known of other places."""
    told = {place: list(lines) for place, lines in known.items()}
    ordered = sorted(rows, key=lambda row: (row.place, row.operation, row.fault))
    for (place, operation), group in itertools.groupby(ordered, lambda r: (r.place, r.operation)):
        seen = dict[tuple[str, str], list[str]]()
        for row in group:
            seen.setdefault((_seen(row), ", ".join(row.lost) or "nothing"), []).append(row.fault)
        told.setdefault(place, []).extend(
            f"{operation} | {', '.join(faults)} | {shown} | {lost}"
            for (shown, lost), faults in seen.items()
        )
    number = itertools.count(1)
    lines = [HEAD]
    for place in sorted(told, key=lambda name: place_named(name) or ()):
        lines += [f"| {next(number)} | {place} | {line} |\n" for line in told[place]]
    lines.append(SECOND)
    for left in sorted(asking()):
        if str(left) not in told:
            why, test = reason_for(left)
            lines.append(f"| {next(number)} | {left} | {why} | {test} |\n")
    return "".join(lines)


def _seen(row: Row) -> str:
    if row.faults:
        return _cell("WRONG: " + "; ".join(row.faults))
    if not row.is_hit:
        return f"not reached again in `{row.use}`"
    if row.fault == "kill":
        return "the process ends; the next one goes on"
    if not row.told:
        return "nothing: it goes on without"
    return _cell("; ".join(f"{step}: {text}" for step, text in row.told.items()))


def _cell(text: str) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 2] + " …"


if __name__ == "__main__":
    sys.exit(main())
