"""Recordings made by hand, for tests that need one of exactly this shape."""

from pathlib import Path

from tiro.recording.lines import Ending
from tiro.recording.recorder import RecordedAnswer, Recorder

BASE = "http://models.test:8000/api/v1"
EVENTS = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]


def asked(
    recorder: Recorder,
    body: bytes = b'{"model": "m1"}',
    *,
    path: str = "/chat",
    method: str = "POST",
    provider: str = "acme",
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),),
) -> RecordedAnswer:
    """A request of the recorder's provider."""
    return recorder.asked(
        provider=provider,
        api="openai",
        base_url=BASE,
        method=method,
        url=BASE + path,
        headers=headers,
        body=body,
    )


def made(
    path: Path,
    *chunks: bytes,
    how: Ending = "complete",
    status: int = 200,
    headers: list[tuple[str, str]] | None = None,
    body: bytes = b'{"model": "m1"}',
    target: str = "/chat",
) -> Path:
    """A recording of one request with this answer."""
    recorder = Recorder(path, protocol=1)
    exchange = asked(recorder, body, path=target)
    if status:
        exchange.answered(status, EVENTS if headers is None else headers)
    for chunk in chunks:
        exchange.received(chunk)
    exchange.ended(how)
    recorder.close()
    return path
