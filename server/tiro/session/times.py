"""Times as sessions keep them: in UTC, as RFC 3339 text."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)


def rfc3339(time: datetime) -> str:
    """A time as RFC 3339 in UTC with milliseconds, such as `2026-11-28T09:30:00.000Z`."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def from_rfc3339(text: str | None) -> datetime | None:
    """The time that `text` names; None where it names none. A time without offset is local."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):  # the latter for the first and last day of all
        return None


def exact_rfc3339(time: datetime) -> str:
    """The same with microseconds where the time has any, so that it is equal when read again."""
    utc = time.astimezone(UTC)
    return rfc3339(utc) if utc.microsecond % 1000 == 0 else utc.isoformat()[:-6] + "Z"
