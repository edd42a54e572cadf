"""Asking a provider again (B34), and a wait that is cancelled (B43)."""

import asyncio
import re
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.models.wire import (
    Waits,
    Wire,
    ask,
    fails,
    joined,
    model,
    only,
    refuses,
    request,
    run,
    says,
)
from tiro.models import failures
from tiro.models.model import Delta, RetryWait, TextDelta

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "cause",
    [httpx.ConnectError("refused"), httpx.ConnectTimeout("slow"), httpx.ReadError("reset")],
)
def test_a_connection_that_fails_is_tried_again(cause: Exception) -> None:
    deltas, waits, _ = run(cause, cause, says("a"))
    assert joined(deltas) == "a"
    assert waits.seconds == [0.5, 1.0]


def test_a_long_silence_is_not_waited_for_again() -> None:
    error, wire = fails(httpx.ReadTimeout("silent"))
    assert len(wire.requests) == 1
    assert error.data["retryable"]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_b34_a_busy_provider_is_asked_again(status: int) -> None:
    deltas, waits, wire = run(*(refuses(status) for _ in range(3)), says("a"))
    assert waits.seconds == [0.5, 1.0, 2.0]
    assert only(deltas, TextDelta) == [TextDelta("a")]
    told = [delta for delta in deltas if isinstance(delta, RetryWait)]
    assert [(t.attempt, t.wait_seconds) for t in told] == [(1, 0.5), (2, 1.0), (3, 2.0)]
    assert all(str(status) in t.reason for t in told)
    assert len({request.content for request in wire.requests}) == 1


def test_b34_at_most_three_times() -> None:
    error, wire = fails(*(refuses(503) for _ in range(9)))
    assert len(wire.requests) == 4
    assert error.data["status"] == 503
    assert error.data["retryable"]


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 405, 413, 418, 422])
def test_b34_a_refusal_is_not_asked_again(status: int) -> None:
    error, wire = fails(refuses(status, {"error": {"message": "No, because."}}))
    assert len(wire.requests) == 1
    assert not error.data["retryable"]
    assert str(error).endswith("No, because")


@pytest.mark.parametrize(
    ("value", "waited"),
    [("2", 2.0), ("0", 0.0), ("1.5", 1.5), ("60", 60.0), ("soon", 0.5), ("", 0.5), ("-1", 0.5)],
)
def test_b34_retry_after_is_told_and_waited(value: str, waited: float) -> None:
    deltas, waits, _ = run(refuses(429, retry_after=value), says("a"))
    assert waits.seconds == [waited]
    assert isinstance(deltas[0], RetryWait)
    assert deltas[0].wait_seconds == waited


def http_date(at: datetime) -> str:
    return at.strftime("%a, %d %b %Y %H:%M:%S GMT")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (http_date(NOW + timedelta(seconds=7)), 7.0),
        (http_date(NOW - timedelta(seconds=7)), 0.0),
        (http_date(NOW + timedelta(hours=1)).replace("GMT", "+0100"), 0.0),
        (" 3 ", 3.0),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("Fri, 99 Foo 2026 12:00:00 GMT", None),
        ("28 Nov", None),
        (None, None),
    ],
)
def test_b34_retry_after_as_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert failures.retry_after_seconds(value, lambda: NOW) == seconds


@pytest.mark.parametrize("value", ["61", "3600", http_date(datetime(2999, 1, 1, tzinfo=UTC))])
def test_b34_too_long_a_wait_is_told_instead(value: str) -> None:
    error, wire = fails(refuses(429, retry_after=value))
    assert len(wire.requests) == 1
    assert error.data["retryable"]
    assert re.search(r"ask again in \d+ seconds", str(error))


def test_no_credit_is_not_asked_again() -> None:
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    error, wire = fails(refuses(429, body))
    assert len(wire.requests) == 1
    assert "no credit" in str(error)


def test_backoff_has_jitter() -> None:
    waits, numbers = Waits(), iter([0.0, 0.5, 1.0])
    wire = Wire(*(refuses(503) for _ in range(3)), says("a"))
    asyncio.run(ask(model(wire, waits=waits, jitter=lambda: next(numbers))))
    assert waits.seconds == [0.5, 1.5, 4.0]


def test_b43_a_wait_can_be_cancelled() -> None:
    """The wait is told before it begins, and a cancel during it ends at once."""

    async def scenario() -> list[Delta]:
        deltas: list[Delta] = []
        is_waiting = asyncio.Event()

        async def wait(seconds: float) -> None:
            is_waiting.set()
            await asyncio.sleep(seconds)

        asked = model(Wire(refuses(429, retry_after="50")), waits=wait)

        async def read() -> None:
            async for delta in asked.stream(request()):
                deltas.append(delta)

        reading = asyncio.create_task(read())
        await is_waiting.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asked.close()
        return deltas

    assert [type(delta) for delta in asyncio.run(scenario())] == [RetryWait]
