"""Whoever observes a provider hears every byte, in order, and how it ended (B52)."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from tests.models.wire import DONE, SECRET, URL, Wire, ask, model, refuses, says, streams, text
from tiro.errors import ModelError
from tiro.models.observer import Ending


class Heard:
    """An observer and exchange that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def asked(self, **given: Any) -> "Heard":
        self.told.append(("asked", given))
        return self

    def answered(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        self.told.append(("answered", status))

    def received(self, data: bytes) -> None:
        self.told.append(("received", data))

    def ended(self, how: Ending, error: str = "") -> None:
        self.told.append(("ended", how, error))


def heard(*answers: httpx.Response | Exception, **given: Any) -> list[Any]:
    observer = Heard()
    asked = model(Wire(*answers), observer=observer, **given)

    async def asking() -> None:
        with contextlib.suppress(ModelError):
            await ask(asked)
        await asked.close()

    asyncio.run(asking())
    return observer.told


def test_everything_is_told_in_its_order() -> None:
    chunks = [text("one"), text("two")[:20], text("two")[20:], DONE]
    told = heard(streams(*chunks))
    assert [name for name, *_ in told[:2]] == ["asked", "answered"]
    assert [row[1] for row in told if row[0] == "received"] == chunks
    assert told[-1][0] == "ended"


def test_addresses_are_bare_and_headers_are_those_that_are_sent() -> None:
    url = URL.replace("//", "//me:password@") + "?key=query"
    (_, given), *_ = heard(says("hi"), base_url=url)
    assert (given["base_url"], given["url"]) == (URL, f"{URL}/chat/completions")
    assert ("authorization", f"Bearer {SECRET}") in given["headers"]
    assert given["body"].startswith(b"{")


@pytest.mark.parametrize(
    ("error", "how"),
    [
        (httpx.ConnectError("no"), "unreachable"),
        (httpx.ConnectTimeout("no"), "unreachable"),
        (httpx.ReadTimeout("no"), "silent"),
        (httpx.RemoteProtocolError("no"), "cut"),
        (httpx.ReadError("no"), "reset"),
    ],
)
def test_end_says_what_went_wrong(error: httpx.HTTPError, how: str) -> None:
    before = heard(*[error] * 4)
    assert before[1] == ("ended", how, type(error).__name__)
    in_the_middle = heard(streams(text("half"), error))
    assert ("ended", how, type(error).__name__) == next(r for r in in_the_middle if r[0] == "ended")


def test_refused_body_is_told_to_its_end() -> None:
    told = heard(refuses(401, {"error": {"message": "no"}}))
    assert told[1] == ("answered", 401)
    assert told[2][0] == "received"
    assert ("ended", "complete", "") in told
