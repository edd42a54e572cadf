"""Which provider can be used, what it offers, and what opens a model."""

import asyncio
import importlib.util
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.models.wire import SECRET, settings
from tiro.errors import ModelError, ModelNotConfiguredError
from tiro.models.anthropic import AnthropicModel
from tiro.models.local import LocalModel
from tiro.models.openai import OpenAIModel
from tiro.models.providers import list_models, names_in_order, open_model, probe
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


def probed(**given: Any) -> str | None:
    return asyncio.run(probe(settings(**given)))


def test_a_hosted_provider_needs_a_key_and_is_not_asked() -> None:
    assert probed() is None
    assert probed(api_key=None) == "its API key is not set"
    assert probed(api_key=None, headers={"x-key": "k"}) is None


def test_a_server_on_this_machine_needs_to_answer(server: ListServer) -> None:
    assert probed(base_url=server.url, api_key=None) is None
    assert probed(base_url=NOWHERE, api_key=None) == "no server answers at its address"
    server.status = 401
    assert "refused the API key" in str(probed(base_url=server.url))
    assert server.keys == [None, f"Bearer {SECRET}"]


def test_the_extra_of_a_local_model_must_be_there() -> None:
    is_there = importlib.util.find_spec("xllamacpp") is not None
    assert (probed(api="local") is None) == is_there


def test_list_models_tells_the_provider_s_own_names(server: ListServer) -> None:
    assert asyncio.run(list_models(settings(base_url=server.url))) == ["a", "b"]


def test_list_models_of_the_other_format(server: ListServer) -> None:
    anthropic = settings(api="anthropic", base_url=server.url.removesuffix("/v1"))
    assert asyncio.run(list_models(anthropic)) == ["a", "b"]
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


@pytest.mark.parametrize("body", [b"", b"{}", b"7", b"<html>", b'{"data": {}}', b"\xff"])
def test_a_list_that_is_none(server: ListServer, body: bytes) -> None:
    server.body = body
    with pytest.raises(ModelError):
        asyncio.run(list_models(settings(base_url=server.url)))
    assert probed(base_url=server.url) is not None


def test_the_local_models_begin_with_the_one_in_use(tmp_path: Path) -> None:
    provider = settings(api="local")

    def names() -> list[str]:
        return asyncio.run(list_models(provider, local_cache=tmp_path))

    assert names() == ["smollm2-135m"]
    directory = WeightsDirectory(tmp_path / "models")
    directory.write(Weights(name="own", bytes=4, sha256="", source="here"))
    directory.file_of("own").write_bytes(b"GGUF")
    assert names() == ["smollm2-135m", "own"]
    (directory.path / "in-use.json").write_text('{"name": "own"}')
    assert names() == ["own"]
    assert asyncio.run(list_models(provider)) == []


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
