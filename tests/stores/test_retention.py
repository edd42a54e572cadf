"""Which sessions go by age and size: the newest are kept first, and what is shared counts once."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from tests.sizes import sized
from tiro.session.times import rfc3339
from tiro.stores.index import SavedSession
from tiro.stores.retention import Plan, Rule, plan

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def row(id: str, age: float = 0, bytes: int = 10, error: str | None = None) -> SavedSession:
    return SavedSession(
        id=id,
        path=f"/{id}.json",
        title=None,
        agent=None,
        messages=1,
        archived=0,
        saved_at=None if error else rfc3339(NOW - timedelta(days=age)),
        bytes=bytes,
        error=error,
    )


def check(
    rows: list[SavedSession],
    rule: Rule,
    going: dict[str, str],
    freed: int,
    stays: str = "",
    values: Mapping[str, Mapping[str, int]] | None = None,
) -> None:
    found = plan(
        rows, rule, NOW, lambda one: one.id in stays, lambda one: (values or {}).get(one.id, {})
    )
    assert {one.saved.id: one.reason for one in found.going} == going
    assert (found.bytes, found.kept) == (freed, len(rows) - len(going))


def test_what_is_older_than_the_age_goes() -> None:
    rows = [row("a", 1), row("b", 90), row("c", 90.01)]
    check(rows, Rule(max_age_days=90), {"c": "age"}, 10)


def test_nothing_is_older_than_all_dates() -> None:
    check([row("a", 1), row("b", 100_000)], Rule(max_age_days=1e15), {}, 0)


def test_the_newest_are_kept_as_long_as_they_fit() -> None:
    rows = [row("a", 1, 40), row("b", 2, 70), row("c", 3, 50), row("d", 4, 20)]
    check(rows, Rule(max_total_bytes=100), {"b": "size", "d": "size"}, 90)


def test_both_limits_hold_together() -> None:
    rows = [row("a", 1, 40), row("b", 2, 70), row("c", 99, 1)]
    check(rows, Rule(90, 100), {"b": "size", "c": "age"}, 71)


def test_some_never_go_and_take_their_room_first() -> None:
    """The current one, one that is open elsewhere, a damaged one."""
    rows = [row("a", 1, 50), row("b", 400, 60), row("c", 0, 30, error="damaged")]
    check(rows, Rule(90, 100), {"a": "size"}, 50, stays="b")


def test_a_large_value_counts_once_and_with_the_first_that_is_kept() -> None:
    values = {"a": {"v": 50}, "b": {"v": 50, "w": 30}, "c": {"w": 30}}
    rows = [row("a", 1), row("b", 2), row("c", 3)]
    check(rows, Rule(max_total_bytes=100), {"c": "size"}, 10, values=values)
    check(rows, Rule(max_total_bytes=99), {"b": "size", "c": "size"}, 50, values=values)


def planned(rows: list[SavedSession], rule: Rule, values: Mapping[str, Mapping[str, int]]) -> Plan:
    return plan(rows, rule, NOW, lambda one: False, lambda one: values.get(one.id, {}))


def test_nothing_goes_without_a_limit() -> None:
    check([row("a", 9999, 10**12)], Rule(), {}, 0)
    assert Rule().is_empty()
    assert not Rule(max_total_bytes=0).is_empty()


def test_where_only_some_went_their_large_values_count() -> None:
    values = {"a": {"v": 50}, "b": {"v": 50, "w": 30}, "c": {"x": 7}}
    found = planned([row("a", 1), row("b", 99), row("c", 99)], Rule(90), values)
    assert found.bytes == 10 + 30 + 10 + 7
    some = found.with_only(found.going[:1])
    assert (some.bytes, some.kept, some.left) == (10 + 30, 2, 1)
    assert found.with_only(found.going) == found


def test_a_plan_that_was_done_has_nothing_more_to_do() -> None:
    chance = random.Random(7)
    for _ in range(sized(fast=50, normal=200, long=2000)):
        rows = [
            row(f"s{n}", chance.uniform(0, 100), chance.randrange(1, 99))
            for n in range(chance.randrange(30))
        ]
        rows.sort(key=lambda one: one.saved_at or "", reverse=True)
        values = {one.id: {f"v{chance.randrange(5)}": 40} for one in rows if chance.random() < 0.5}
        rule = Rule(chance.choice((None, 50.0)), chance.choice((None, 300)))
        first = planned(rows, rule, values)
        gone = {one.saved.id for one in first.going}
        left = [one for one in rows if one.id not in gone]
        assert planned(left, rule, values).going == []
        names = {name for one in left for name in values.get(one.id, {})}
        total = sum(one.bytes for one in left) + 40 * len(names)
        assert rule.max_total_bytes is None or total <= rule.max_total_bytes
