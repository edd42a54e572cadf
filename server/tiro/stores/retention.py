"""Which saved sessions go to the trash by their age and their size: a plan, which does nothing.

The newest are kept first. What a session refers to counts with the first one that is kept for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

import msgspec

from tiro.session.times import from_rfc3339
from tiro.stores.index import SavedSession

Values: TypeAlias = Callable[[SavedSession], Mapping[str, int]]
"""The large values that a session refers to, by name, with their sizes in bytes."""


class Rule(msgspec.Struct, frozen=True):
    """What is kept; None is no limit."""

    max_age_days: float | None = None
    max_total_bytes: int | None = None

    def is_empty(self) -> bool:
        """Whether it lets everything be."""
        return self.max_age_days is None and self.max_total_bytes is None


class Going(msgspec.Struct, frozen=True):
    """A session that is to go, and by which limit."""

    saved: SavedSession
    reason: Literal["age", "size"]
    bytes: int
    """What is free for it, large values too that neither what stays nor one before it needs."""


class Plan(msgspec.Struct, frozen=True):
    """What a rule comes to."""

    going: Sequence[Going]
    """Those that are to go, newest first."""
    bytes: int
    """What they take, large values too that no other session needs."""
    kept: int
    """How many stay."""
    left: int = 0
    """How many of these were to go."""

    def with_only(self, gone: Sequence[Going]) -> "Plan":
        """The same where only these went."""
        left = len(self.going) - len(gone)
        return Plan(gone, sum(one.bytes for one in gone), self.kept + left, left)


def plan(
    rows: Iterable[SavedSession],
    rule: Rule,
    now: datetime,
    stays: Callable[[SavedSession], bool],
    values: Values,
) -> Plan:
    """What of these sessions, newest first, goes by the rule; never one that `stays`.

    One that is too large for what is left of the room goes, and older ones that fit it are kept.
    Those that stay take their room first; a damaged one stays.
    """
    rows = list(rows)
    oldest = _days_before(now, rule.max_age_days)
    staying = {row.path for row in rows if row.error is not None or stays(row)}
    room = _Room({row.path: values(row) for row in rows})
    chosen: list[tuple[SavedSession, Literal["age", "size"]]] = []
    for row in rows:
        if row.path in staying:
            room.take(row)
    for row in rows:
        if row.path in staying:
            continue
        if oldest is not None and (from_rfc3339(row.saved_at) or now) < oldest:
            chosen.append((row, "age"))
        elif rule.max_total_bytes is not None and room.with_(row) > rule.max_total_bytes:
            chosen.append((row, "size"))
        else:
            room.take(row)
    going = [Going(row, reason, room.take(row)) for row, reason in chosen]
    return Plan(going, sum(one.bytes for one in going), len(rows) - len(going))


class _Room:
    """What sessions take together, each large value once."""

    def __init__(self, values: Mapping[str, Mapping[str, int]]) -> None:
        """`values` are the large values of each session, by its path."""
        self.bytes = 0
        self._values = values
        self._counted: set[str] = set()

    def with_(self, row: SavedSession) -> int:
        """How much it would be with this one."""
        values = self._values[row.path].items()
        return self.bytes + row.bytes + sum(n for name, n in values if name not in self._counted)

    def take(self, row: SavedSession) -> int:
        """Count this one; how much it adds."""
        before, self.bytes = self.bytes, self.with_(row)
        self._counted.update(self._values[row.path])
        return self.bytes - before


def _days_before(now: datetime, days: float | None) -> datetime | None:
    """The moment so many days before; None without a number, or before there were dates."""
    try:
        return None if days is None else now - timedelta(days=days)
    except OverflowError:
        return None
