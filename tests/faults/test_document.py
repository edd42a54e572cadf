"""`server/FAULTS.md` speaks of every call that asks the system for something, and of nothing else.

A new call is made to fail by `python3 tests/run.py faults`, or `reasons.py` says why it is not.
"""

import re
from collections.abc import Callable

import pytest

from tests.faults.cases import Theatre, cases, outcome
from tests.faults.places import asking, place_named
from tests.faults.reasons import REASONS
from tests.faults.table import FILE
from tests.sizes import SIZE, sized

TOLD = "run `python3 tests/run.py faults --fast`, which writes server/FAULTS.md"
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| (.+) \|$", re.MULTILINE)
FIRST, _, SECOND = FILE.read_text("utf-8").partition("\n## Places where no fault is made")
TRIED = {place.strip() for _, place, _ in ROW.findall(FIRST)}
LEFT_OUT = {place.strip() for _, place, _ in ROW.findall(SECOND)}
EVERY = sized(fast=40, normal=40, long=1)
"""Of so many cases one is tried here; the command tries them all."""


def test_every_call_that_asks_the_system_stands_there() -> None:
    missing = {str(place) for place in asking()} - TRIED - LEFT_OUT
    assert not missing, f"{TOLD}: {sorted(missing)}"


def test_nothing_stands_there_that_the_source_has_no_more() -> None:
    gone = [name for name in (*TRIED, *LEFT_OUT) if place_named(name) is None]
    assert not gone, f"{TOLD}: {gone}"


def test_whatever_is_left_out_has_a_reason_and_a_test() -> None:
    given = set[str]()
    for _, _, places in REASONS:
        given |= set(places)
    assert given >= LEFT_OUT
    assert not given & TRIED, "a reason for what is tried"


def test_no_row_tells_of_a_loss_or_of_an_end() -> None:
    rows = [row.rpartition(" | ") for _, _, row in ROW.findall(FIRST)]
    assert len(rows) > 300
    assert {lost for _, _, lost in rows} == {"nothing"}
    assert not [told for told, _, _ in rows if "WRONG" in told]
    numbers = [int(number) for number, _, _ in ROW.findall(FIRST + SECOND)]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.timeout(7200)
def test_a_fault_at_some_places_is_told_and_costs_nothing(
    record_property: Callable[[str, object], None],
) -> None:
    """U9.5: nothing that was acknowledged is lost, no server hangs or ends, work goes on."""
    theatre = Theatre()
    try:
        todo, wholes = cases(theatre, ["start"] if SIZE != "long" else ["start", "sessions"])
        assert len(todo) > 60
        for case in todo[::EVERY]:
            row = outcome(theatre, case, wholes[case.use])
            assert (row.lost, row.faults) == ([], []), row
        record_property("faults", len(todo[::EVERY]))
    finally:
        theatre.close()
