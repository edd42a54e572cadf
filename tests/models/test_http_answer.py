"""Bodies that are too large, broken, or never end."""

import asyncio

import httpx
import pytest

from tests.models.wire import (
    SECRET,
    Body,
    fails,
    refuses,
    streams,
    text,
)
from tiro.models import http_answer


def test_an_error_tells_the_first_2_kb_of_the_body() -> None:
    body = (SECRET + "漢" * 5000).encode()
    error, _ = fails(refuses(400, body))
    told = error.data["body"]
    assert 2046 <= len(told.encode()) <= 2048
    assert told.startswith("[secret]漢")


def test_a_body_that_never_ends_does_not_hold_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_answer, "REFUSAL_SECONDS", 0.01)
    error, _ = fails(httpx.Response(400, stream=Body(b"so far", asyncio.Event())))
    assert error.data["body"] == "so far"


def test_a_document_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_answer, "MAX_DOCUMENT_BYTES", 100)
    error, _ = fails(httpx.Response(200, stream=Body(b'{"choices":' + b" " * 101)))
    assert "too large" in str(error)


def test_an_event_that_is_too_large() -> None:
    large = b"data: " + b"x" * 9_000_000
    error, _ = fails(httpx.Response(200, stream=Body(text("a"), large, large)))
    assert "cannot be read: An event is larger than" in str(error)


def test_a_stream_whose_compression_is_broken() -> None:
    answers = [streams(b"no gzip", **{"content-encoding": "gzip"}) for _ in range(4)]
    error, _ = fails(*answers)
    assert "compression is broken" in str(error)
