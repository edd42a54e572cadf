"""What httpx raises, timeouts, and no secret anywhere (B52)."""

import asyncio
import contextlib
import inspect
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.models.wire import (
    DONE,
    SECRET,
    URL,
    Body,
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
    settings,
    streams,
    text,
)
from tiro.errors import ModelError
from tiro.models import failures, transport
from tiro.models.model import Delta, Finished, ModelFacts, RetryWait, TextDelta

# --- the table of httpx's exceptions -------------------------------------------------------

HTTPX_ERRORS = [
    value
    for name in httpx.__all__
    if inspect.isclass(value := getattr(httpx, name)) and issubclass(value, Exception)
]


def raised(kind: type[Exception]) -> Exception:
    """An instance, whatever its class wants."""
    if kind is httpx.HTTPStatusError:
        asked = httpx.Request("POST", URL)
        return kind("refused", request=asked, response=httpx.Response(500, request=asked))
    if kind in (
        httpx.StreamConsumed,
        httpx.StreamClosed,
        httpx.ResponseNotRead,
        httpx.RequestNotRead,
    ):
        return kind()
    return kind("what happened")


def test_every_exception_of_httpx_is_in_the_table() -> None:
    assert set(HTTPX_ERRORS) == set(failures.HTTPX_MEANINGS)


@pytest.mark.parametrize("kind", HTTPX_ERRORS, ids=lambda kind: kind.__name__)
def test_each_exception_of_httpx_becomes_a_model_error(kind: type[Exception]) -> None:
    cause = raised(kind)
    error, _ = fails(*(cause for _ in range(4)))
    assert error.__cause__ is cause
    assert str(error).startswith("The provider 'acme' ")
    assert not str(error).endswith(".")
    assert set(error.data) == {"provider", "status", "retryable", "retry_after_seconds", "body"}


@pytest.mark.parametrize("kind", HTTPX_ERRORS, ids=lambda kind: kind.__name__)
def test_each_exception_in_the_middle_of_an_answer_too(kind: type[Exception]) -> None:
    cause = raised(kind)
    error, wire = fails(streams(text("half"), cause))
    assert error.__cause__ is cause
    assert len(wire.requests) == 1


@pytest.mark.parametrize("by", ["aclose", "cancel", "break"])
def test_b43_stopping_to_read_closes_the_connection(by: str) -> None:
    async def scenario() -> Body:
        body = Body(text("a"), asyncio.Event())
        asked = model(Wire(httpx.Response(200, stream=body)))
        deltas = asked.stream(request())
        assert await anext(deltas) == TextDelta("a")
        if by == "cancel":
            waiting = asyncio.ensure_future(anext(deltas))
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        else:
            await deltas.aclose()
        assert body.is_closed
        await asked.close()
        return body

    asyncio.run(scenario())


# --- B52: secrets --------------------------------------------------------------------------

LEAKY = {
    "api_key": SECRET,
    "base_url": f"https://user:{SECRET}-pw@provider.test/v1?key={SECRET}-q&v=1",
    "headers": {"x-extra": f"{SECRET}-h"},
}


def everything(error: BaseException | None) -> Iterator[str]:
    """All text that a log or a frame could take from an error."""
    while error is not None:
        yield str(error)
        yield repr(error)
        yield str(getattr(error, "data", ""))
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    "answer",
    [
        refuses(401, {"error": {"message": f"Incorrect API key: {SECRET}"}}),
        refuses(400, f"{SECRET} {SECRET}-pw {SECRET}-q {SECRET}-h".encode()),
        streams(b'data: {"error": {"message": "' + SECRET.encode() + b'", "code": 400}}\n\n'),
        httpx.Response(200, stream=Body(b"<html>" + SECRET.encode())),
        httpx.Response(200, stream=Body(b"{nope " + SECRET.encode())),
    ],
)
def test_b52_no_secret_in_an_error(answer: httpx.Response) -> None:
    error, _ = fails(answer, **LEAKY)
    assert "c0ffee" not in " ".join(everything(error))
    assert "[secret]" in str(error.data["body"])


@pytest.mark.parametrize(
    "given",
    [
        {"base_url": f"https://user:{SECRET}@provider.test:port/v1"},
        {"base_url": f"user:{SECRET}@provider.test/v1"},
        {"base_url": f"ftp://user:{SECRET}@provider.test/v1"},
        {"api_key": f"{SECRET}\u2026"},
        {"api_key": f"{SECRET}\nx: y"},
        {"headers": {"x-extra": f"{SECRET}\r\n"}},
        {"proxy": f"nonsense://user:{SECRET}@proxy.test"},
    ],
)
def test_b52_no_secret_in_the_error_of_a_wrong_setting(given: dict[str, Any]) -> None:
    asked = model(None, **given)
    with pytest.raises(ModelError) as caught:
        asyncio.run(ask(asked))
    assert "c0ffee" not in " ".join(everything(caught.value))
    assert not caught.value.data["retryable"]


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://127.0.0.1:99999/v1", "no address"),
        ("http://127.0.0.1:-1/v1", "no address"),
        ("http://127.0.0.1:0/v1", "no address"),
        ("http://127.0.0.1:port/v1", "no address"),
        ("http://[", "no address"),
        ("http://[::1", "no address"),
        ("http://xn--/v1", "no address"),
        ("http://\0/v1", "no address"),
        ("http://" + "a" * 70_000, "no address"),
        ("", "begins with http"),
        ("http:///v1", "begins with http"),
        ("127.0.0.1:1/v1", "begins with http"),
        ("ftp://provider.test/v1", "begins with http"),
    ],
)
def test_an_address_that_is_none_is_told_in_a_sentence(url: str, told: str) -> None:
    """Whatever is wrong with a base_url, the user reads that it is to be corrected."""
    with pytest.raises(ModelError, match=told) as caught:
        asyncio.run(ask(model(None, base_url=url)))
    assert "base_url" in caught.value.message
    assert not caught.value.data["retryable"]


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:99999", "http://[::1", "http://[", "x"])
def test_a_proxy_that_is_no_address_is_told_in_a_sentence(proxy: str) -> None:
    with pytest.raises(ModelError, match="check its proxy setting"):
        asyncio.run(ask(model(None, proxy=proxy)))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired (_ssl.c:1)", "SSL_CERT_FILE"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1)", "http://"),
        ("[SSL: RECORD_LAYER_FAILURE] record layer failure (_ssl.c:1)", "http://"),
    ],
)
def test_what_is_wrong_with_tls_is_told_and_not_tried_again(text: str, told: str) -> None:
    error, wire = fails(httpx.ConnectError(text))
    assert told in error.message
    assert text in error.message
    assert len(wire.requests) == 1


@pytest.mark.parametrize("text", ["Temporary failure in name resolution", "Network is unreachable"])
def test_no_network_is_called_that(text: str) -> None:
    error = failures.from_httpx(httpx.ConnectError(f"[Errno -3] {text}"), settings())
    assert "there seems to be no network" in error.message
    assert "base_url" not in error.message


def test_a_socks_proxy_of_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(ModelError, match="SOCKS proxy"):
        asyncio.run(ask(model(None)))


def test_b52_no_secret_in_a_repr() -> None:
    provider = settings(**LEAKY, proxy=f"http://user:{SECRET}@proxy.test")
    assert "c0ffee" not in repr(provider)
    assert "c0ffee" not in str(provider)
    assert "https://provider.test/v1" in repr(provider)


def test_b52_no_secret_in_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("httpx", "httpcore", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    run(says("a"), **LEAKY)
    assert "provider.test" in caplog.text
    assert "c0ffee" not in caplog.text


def test_loading_changes_no_logger() -> None:
    """Whoever only imports us keeps the logging that they have set up."""
    code = (
        "import logging, httpx, tiro.models.transport, tiro.models.download;"
        "print(logging.getLogger('httpx').filters)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_key_is_sent_and_its_line_break_is_not() -> None:
    _, _, wire = run(says("a"), api_key=f"{SECRET}\n")
    assert wire.requests[0].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_takes_the_key_and_the_conversation_elsewhere(status: int) -> None:
    """P9, B52: the address that was configured is the only one that is asked."""
    elsewhere = httpx.Response(status, headers={"location": "https://elsewhere.test/v1"})
    error, wire = fails(elsewhere, says("a"))
    assert [request.url.host for request in wire.requests] == ["provider.test"]
    assert error.data["status"] == status


# --- addresses and timeouts ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "asked"),
    [
        ("https://provider.test/v1", "https://provider.test/v1/chat/completions"),
        ("https://provider.test/v1/", "https://provider.test/v1/chat/completions"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/chat/completions"),
        ("https://p.test/a%20b/v1?x=1", "https://p.test/a%20b/v1/chat/completions?x=1"),
    ],
)
def test_the_address_that_is_asked(base: str, asked: str) -> None:
    _, _, wire = run(says("a"), base_url=base, models=KNOWN)
    assert str(wire.requests[0].url) == asked


def timeout_of(**given: Any) -> dict[str, float]:
    _, _, wire = run(says("a"), **given, models=KNOWN)
    found: dict[str, float] = wire.requests[0].extensions["timeout"]
    return found


def test_a_model_on_this_machine_may_be_silent_for_longer() -> None:
    hosted, local = timeout_of(), timeout_of(base_url="http://127.0.0.1:1/v1")
    assert hosted["connect"] == local["connect"] == transport.CONNECT_SECONDS
    assert hosted["read"] == transport.SILENCE_SECONDS < local["read"]
    assert timeout_of(timeout_seconds=7)["read"] == 7


def test_a_proxy_of_the_environment_is_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with Server() as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        deltas = asyncio.run(ask(model(None, base_url=url, models=KNOWN)))
    assert joined(deltas) == "a"


def test_no_connection_is_kept_to_a_server_on_this_machine() -> None:
    """llama.cpp closes its end after a stream although it promises to keep it."""
    with Server() as server:
        asked = model(None, base_url=f"http://127.0.0.1:{server.port}/v1", models=KNOWN)

        async def three_times() -> list[Delta]:
            deltas = [d async for d in asked.stream(request())]
            deltas += [d async for d in asked.stream(request())]
            return deltas + await ask(asked)

        deltas = asyncio.run(three_times())
    assert joined(deltas) == "aaa"
    assert only(deltas, RetryWait) == []
    assert len(only(deltas, Finished)) == 3
    assert server.connections == 3


def test_a_reader_that_stops_at_the_end_of_an_answer_leaves_its_connection_usable() -> None:
    """Else each step of a turn would pay for a new TLS handshake."""
    body = Body(text("a", "stop"), DONE, b"")
    kind = {"content-type": "text/event-stream"}

    async def read() -> None:
        asked = model(Wire(httpx.Response(200, headers=kind, stream=body)))
        async with contextlib.aclosing(asked.stream(request())) as deltas:
            async for delta in deltas:
                if isinstance(delta, Finished):
                    assert body.is_read
                    return

    asyncio.run(read())
    assert body.is_closed


KNOWN = {"m1": ModelFacts(context_window=1000)}
"""A window that is known is not asked for."""


class Server(threading.Thread):
    """Answers each connection once, promises to keep it and closes it."""

    def __init__(self) -> None:
        super().__init__()
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.join()

    def run(self) -> None:
        body = text("a", "stop") + DONE
        head = f"HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: {len(body)}\r\n\r\n"
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                asked = b""
                while not asked.endswith(b"}"):
                    asked += connection.recv(65536)
                connection.sendall(head.encode() + body)
