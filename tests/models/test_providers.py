"""Which provider can be used, what it offers, and what opens a model."""

import asyncio
import importlib.util
import re
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.models.wire import SECRET, settings
from tests.sizes import PATIENCE
from tiro.errors import ModelNotConfiguredError
from tiro.models.anthropic import AnthropicModel
from tiro.models.local import LocalModel
from tiro.models.openai import OpenAIModel
from tiro.models.providers import Offer, Timeouts, asks_first, names_in_order, offer, open_model
from tiro.models.weights import Weights, WeightsDirectory

NOWHERE = "http://127.0.0.1:1/v1"


class Listing(BaseHTTPRequestHandler):
    """Answers every request with the server's status and body."""

    server: "ListServer"

    def do_GET(self) -> None:  # the base class's name for it
        self.server.keys.append(self.headers.get("authorization"))
        self.server.paths.append(self.path)
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class ListServer(ThreadingHTTPServer):
    daemon_threads = True
    status = 200
    body = b'{"data": [{"id": "a"}, {"id": "b"}, {"no": "id"}]}'

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Listing)
        self.keys: list[str | None] = []
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@pytest.fixture
def server() -> Iterator[ListServer]:
    running = ListServer()
    Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def offered(cache: Path | None = None, **given: Any) -> Offer:
    return asyncio.run(offer(settings(**given), Timeouts(PATIENCE, PATIENCE), local_cache=cache))


def test_a_hosted_provider_with_a_key_is_not_asked_first(server: ListServer) -> None:
    assert not asks_first(settings())
    assert not asks_first(settings(api_key=None, headers={"x-key": "k"}))
    assert asks_first(settings(api_key=None))
    assert asks_first(settings(base_url=server.url))
    assert asks_first(settings(api="local", base_url=""))


def test_a_server_on_this_machine_needs_to_answer(server: ListServer) -> None:
    assert offered(base_url=server.url, api_key=None) == Offer(names=["a", "b"])
    assert offered(base_url=NOWHERE, api_key=None).fault == f"no server answers at {NOWHERE}"
    server.status = 401
    found = offered(base_url=server.url)
    assert "refused the API key, check it" in str(found.fault)
    assert found.is_key_refused
    assert server.keys == [None, f"Bearer {SECRET}"]


def test_a_key_is_refused_by_the_name_of_its_variable(server: ListServer) -> None:
    server.status = 403
    found = offered(base_url=server.url, api_key_env="MY_KEY")
    assert "refused the API key in MY_KEY, check it (HTTP 403)" in str(found.fault)
    server.status = 401
    found = offered(base_url=server.url, api_key=None)
    assert "wants an API key" in str(found.fault)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("key", [None, SECRET])
def test_what_stands_in_the_address_is_blamed_and_not_a_key_that_is_not_sent(
    server: ListServer, status: int, key: str | None
) -> None:
    """A user and password in `base_url` go out in the place of the key, so no key can be wrong."""
    server.status = status
    url = server.url.replace("://", "://ann:hunter2-hunter2@")
    found = offered(base_url=url, api_key=key, api_key_env="MY_KEY")
    assert "refused the user and password in its base_url" in str(found.fault)
    assert not re.search("MY_KEY|hunter2|ann", str(found.fault))
    assert not found.is_key_refused


def test_a_server_that_takes_connections_and_says_nothing_is_slow() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        found = asyncio.run(offer(settings(base_url=url), Timeouts(1.5, 0.02)))
    fault = f"it takes connections at {url}, but its models were not listed within 0.02 s"
    assert found == Offer(fault=fault, is_slow=True)


def test_the_extra_of_a_local_model_must_be_there() -> None:
    is_there = importlib.util.find_spec("xllamacpp") is not None
    assert (offered(api="local").fault is None) == is_there


def test_the_other_format_has_the_same_list(server: ListServer) -> None:
    found = offered(api="anthropic", base_url=server.url.removesuffix("/v1"))
    assert found.names == ["a", "b"]
    assert server.paths == ["/v1/models?limit=1000"]


@pytest.mark.parametrize(
    ("base_url", "rows", "first"),
    [
        ("https://api.openai.com/v1",
         ["text-embedding-9 9", "gpt-5 3", "gpt-5.2 5", "gpt-5.2-codex 7", "gpt-4o 1"], "gpt-5.2"),
        ("https://api.anthropic.com",
         ["claude-opus-9 0", "claude-sonnet-5 0", "claude-sonnet-4-5 0"], "claude-sonnet-5"),
        ("https://openrouter.ai/api/v1", ["new/one 9", "openrouter/auto 1"], "openrouter/auto"),
        ("https://e.test/v1", ["first 1", "gpt-5 2"], "first"),
        ("https://api.openai.com/v1", ["only 1"], "only"),
    ],
)  # fmt: skip
def test_who_sets_a_key_and_nothing_else_gets_a_good_model(
    base_url: str, rows: list[str], first: str
) -> None:
    listed: list[Any] = [{"id": row.split()[0], "created": int(row.split()[1])} for row in rows]
    names = names_in_order(settings(base_url=base_url), listed)
    assert names[0] == first
    assert sorted(names) == sorted(row["id"] for row in listed)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        *((200, body, "no list") for body in (b"", b"{}", b"7", b'{"data": {}}', b"\xff")),
        (200, b"<html>", "a web page"),
        (404, b"<html>", "HTTP 404"),
        (405, b"", "HTTP 405"),
        (501, b"{}", "HTTP 501"),
    ],
)
def test_a_server_without_a_list_answers_all_the_same(
    server: ListServer, status: int, body: bytes, told: str
) -> None:
    server.status, server.body = status, body
    remark = f"it answers, but lists no models: {told}"
    assert offered(base_url=server.url) == Offer(remark=remark)
    odd = offered(base_url=server.url.removesuffix("/v1")).remark
    assert odd == f"{remark}, and most base_urls end in /v1"


def test_a_server_with_a_fault_of_its_own_is_at_fault(server: ListServer) -> None:
    server.status = 503
    assert "has a fault of its own" in str(offered(base_url=server.url).fault)


def test_the_local_models_begin_with_the_one_in_use(tmp_path: Path) -> None:

    def names() -> list[str]:
        return offered(tmp_path, api="local").names

    assert names() == ["smollm2-135m"]
    directory = WeightsDirectory(tmp_path / "models")
    directory.write(Weights(name="own", bytes=4, sha256="", source="here"))
    directory.file_of("own").write_bytes(b"GGUF")
    assert names() == ["smollm2-135m", "own"]
    (directory.path / "in-use.json").write_text('{"name": "own"}')
    assert names() == ["own"]
    assert offered(api="local").names == []


def test_open_model_starts_and_sends_nothing(tmp_path: Path) -> None:
    hosted = open_model(settings(base_url=NOWHERE), "m")
    local = open_model(settings(name="local", api="local"), "own", local_cache=tmp_path)
    other = open_model(settings(api="anthropic", base_url=NOWHERE), "m")
    assert isinstance(hosted, OpenAIModel)
    assert isinstance(other, AnthropicModel)
    assert isinstance(local, LocalModel)
    assert (hosted.name, local.name) == ("acme/m", "local/own")
    asyncio.run(hosted.close())
    asyncio.run(other.close())
    asyncio.run(local.close())
    with pytest.raises(ModelNotConfiguredError):
        open_model(settings(api="local"), "own")
