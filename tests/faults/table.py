"""Which fault at which place is seen how, and what is lost: makes `server/FAULTS.md`.

python -m tests.faults.table             every case, and the table
python -m tests.faults.table WORD …      only places with one of these words, told in lines
python -m tests.faults.table --from FILE the table out of such lines
"""

import concurrent.futures
import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tests.faults.cases import Case, Row, Theatre, cases, outcome
from tests.faults.places import asking, place_named
from tests.faults.reasons import reason_for
from tests.faults.stage import Seen

FILE = Path(__file__).resolve().parents[2] / "server" / "FAULTS.md"
MAX_SHOWN = 220
HEAD = """\
# Faults

What a user sees when the system refuses something, place by place, and what is lost. Made by
`python3 tests/run.py faults`: each operation at each place fails for as long as a use of the
product takes; then it is looked whether work goes on, and whether everything is there that was
acknowledged. `kill` is a kill -9 right before the operation, `short` a write that takes half;
`EINTR` is not among them, since Python itself asks again. `tests/faults/test_document.py` checks
that every call in the source that asks the system for something stands here.

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
    """Make the rows or read them; write the table, or print them."""
    words = sys.argv[1:]
    if words[:1] == ["--from"]:
        lines = (line for path in words[1:] for line in Path(path).read_bytes().splitlines())
        rows = [msgspec.json.decode(line, type=Row) for line in lines]
    else:
        rows = list(tried(words))
    if not words or words[:1] == ["--from"]:
        FILE.write_text(document(rows), "utf-8")
        sys.stdout.write(FILE.read_text("utf-8"))
    bad = [row for row in rows if row.lost or row.faults]
    for row in bad:
        sys.stderr.write(f"WRONG: {row}\n")
    return int(bool(bad))


def tried(words: list[str]) -> Iterator[Row]:
    """The rows of all places, or of those with one of these words; each is told as it comes."""
    theatre = Theatre()
    todo, wholes = cases(theatre)
    theatre.close()
    todo = [case for case in todo if not words or any(word in str(case.place) for word in words)]
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


def document(rows: Iterable[Row]) -> str:
    """The whole document."""
    rows = sorted(rows, key=lambda row: (place_named(row.place), row.operation, row.fault))
    number = itertools.count(1)
    lines = [HEAD]
    for (place, operation), group in itertools.groupby(rows, lambda r: (r.place, r.operation)):
        seen = dict[tuple[str, str], list[str]]()
        for row in group:
            seen.setdefault((_seen(row), ", ".join(row.lost) or "nothing"), []).append(row.fault)
        for (shown, lost), faults in seen.items():
            kinds = ", ".join(faults)
            lines.append(
                f"| {next(number)} | {_cell(place)} | {operation} | {kinds} | {shown} | {lost} |\n"
            )
    lines.append(SECOND)
    there = {row.place for row in rows}
    for place_ in sorted(asking()):
        if str(place_) not in there:
            why, test = reason_for(place_)
            lines.append(f"| {next(number)} | {_cell(str(place_))} | {why} | {test} |\n")
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
