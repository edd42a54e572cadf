"""Which model answers: named, or the first provider that can be used (config.md's order)."""

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.provider import API_KEY, MODEL, Provider
from tests.e2e.replies import Pause, Reply
from tests.sizes import PATIENCE
from tiro import ModelNotConfiguredError
from tiro.assistant import model_choice
from tiro.assistant.model_choice import KEPT_SECONDS, LOOK_SECONDS, Models, load_adapters
from tiro.config.settings import BUILT_IN_PROVIDERS
from tiro.models.model import ModelFacts, ProviderSettings


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """A provider on this machine."""
    with Provider() as running:
        yield running


@pytest.fixture(autouse=True)
def clean(provider: Provider) -> None:
    """What a test told the provider is forgotten."""
    provider.reset()


def built_in(**changes: dict[str, Any]) -> dict[str, ProviderSettings]:
    """The built-in providers, with other addresses that nobody answers at."""
    found = {}
    for name, fields in BUILT_IN_PROVIDERS.items():
        base_url = "http://127.0.0.1:9/v1" if fields["api"] == "openai" else ""
        given: dict[str, Any] = {"api": fields["api"], "base_url": base_url}
        given["api_key_env"] = fields.get("api_key_env")
        given |= changes.get(name, {})
        found[name] = ProviderSettings(name=name, **given)
    return found


def models(tmp_path: Path, commands: Any = None, **changes: dict[str, Any]) -> Models:
    """The models of the built-in providers with these changes."""
    return Models(built_in(**changes), commands or {}, tmp_path)


def chosen(found: Models, wanted: str | None = None) -> str:
    """The name of the model that is chosen."""

    async def choose() -> str:
        model = await found.choose(wanted)
        await found.close()
        return model.name

    return asyncio.run(choose())


def test_a_provider_with_a_key_comes_first(tmp_path: Path) -> None:
    """anthropic, openai, openrouter, whatever runs on this machine."""
    hosted = {"base_url": "https://example.invalid/v1", "api_key": "k", "default_model": "m"}
    assert chosen(models(tmp_path, openai=hosted, anthropic=hosted)) == "anthropic/m"
    assert chosen(models(tmp_path, openrouter=hosted)) == "openrouter/m"
    assert chosen(models(tmp_path, openrouter=hosted, openai=hosted)) == "openai/m"


def test_a_server_that_runs_comes_before_the_embedded_model(
    tmp_path: Path, provider: Provider
) -> None:
    """ollama, then llamacpp, if they answer."""
    running = {"base_url": provider.base_url, "api_key": API_KEY}
    assert chosen(models(tmp_path, llamacpp=running)) == f"llamacpp/{MODEL}"


SLOW = Reply(
    [Pause(LOOK_SECONDS + 0.2), json.dumps({"data": [{"id": MODEL}]}).encode()], framing="length"
)


@pytest.mark.parametrize("name", ["openai", "ollama", "mine"])
def test_a_list_may_take_a_moment(tmp_path: Path, provider: Provider, name: str) -> None:
    """Whoever took the connection is there: busy, as a gateway or a server on this machine is."""
    provider.models_answer = SLOW
    mine = ProviderSettings(name=name, api="openai", base_url=provider.base_url, api_key=API_KEY)
    assert chosen(Models(built_in() | {name: mine}, {}, tmp_path)) == f"{name}/{MODEL}"


async def test_whose_list_does_not_come_is_used_by_name(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key is set, so nobody else answers; nothing asks for a list where a model is named."""
    monkeypatch.setattr(model_choice, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(model_choice, "LIST_SECONDS", 0.1)
    provider.models_answer = Reply([Pause(30), b"[]"], framing="length")
    found = models(tmp_path, openai={"base_url": provider.base_url, "api_key": API_KEY})
    with pytest.raises(ModelNotConfiguredError, match="name one as openai/MODEL") as caught:
        await found.choose(None)
    assert "takes connections at" in str(caught.value)
    (told,) = [one for one in await found.standings() if one.provider.name == "openai"]
    assert str(told.reason) in str(caught.value), "doctor says the same"
    assert (await found.choose(f"openai/{MODEL}")).name == f"openai/{MODEL}"
    await found.close()


async def test_who_is_chosen_is_asked_again_only_after_a_while(
    tmp_path: Path, provider: Provider
) -> None:
    """It is the same one while it is there, and no list that is slow then refuses a question."""
    now, mine = [0.0], {"base_url": provider.base_url, "api_key": API_KEY}
    found = Models(built_in(llamacpp=mine), {}, tmp_path, clock=lambda: now[0])
    assert (await found.choose(None)).name == f"llamacpp/{MODEL}"
    provider.models_answer = SLOW
    assert (await found.choose(None)).name == f"llamacpp/{MODEL}"
    assert len(provider.requests) == 1
    now[0] = KEPT_SECONDS
    provider.models_answer = Reply([Pause(30), b"[]"], framing="length")
    assert (await found.choose(None)).name == f"llamacpp/{MODEL}"
    assert len(provider.requests) == 2
    provider.models_answer = Reply([b'{"data": [{"id": "other"}]}'], framing="length")
    assert (await found.choose(None)).name == f"llamacpp/{MODEL}"
    now[0] = 2 * KEPT_SECONDS
    assert (await found.choose(None)).name == "llamacpp/other"
    await found.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_key_that_is_set_is_never_passed_over(
    tmp_path: Path, provider: Provider, scheme: str
) -> None:
    """Its provider cannot be reached: that is told, and nobody else answers in its place."""
    unreachable = {"base_url": f"{scheme}://127.0.0.1:9/v1", "api_key": "k"}
    running = {"base_url": provider.base_url, "api_key": API_KEY}
    with pytest.raises(ModelNotConfiguredError, match="openai, whose key is set") as caught:
        chosen(models(tmp_path, openai=unreachable, llamacpp=running))
    assert [row["provider"] for row in caught.value.data["tried"]] == ["anthropic", "openai"]
    assert str(caught.value).endswith("or choose another model")


def test_a_key_command_that_fails_is_never_passed_over(tmp_path: Path, provider: Provider) -> None:
    """It is a key that is configured: the reason is told, and nobody else answers in its place."""
    running = {"base_url": provider.base_url, "api_key": API_KEY}
    with pytest.raises(ModelNotConfiguredError, match=r"openai.*exit code 3") as caught:
        chosen(models(tmp_path, {"openai": "exit 3"}, llamacpp=running, openrouter=running))
    assert [row["provider"] for row in caught.value.data["tried"]] == ["anthropic", "openai"]


async def test_a_command_that_waits_for_a_thread_does_not_begin_after_the_end(
    tmp_path: Path,
) -> None:
    """B42: nothing is started that nobody would end."""
    loop, may_go_on, is_held = asyncio.get_running_loop(), threading.Event(), asyncio.Event()

    def hold() -> None:
        loop.call_soon_threadsafe(is_held.set)
        may_go_on.wait(PATIENCE)

    load_adapters()
    loop.set_default_executor(ThreadPoolExecutor(1))
    found = models(tmp_path, {"openai": ["touch", str(tmp_path / "began")]})
    choosing = asyncio.ensure_future(found.choose("openai/m"))
    await asyncio.sleep(0)  # it looks for the adapters in the thread
    held = loop.run_in_executor(None, hold)
    await is_held.wait()
    for _ in range(9):  # the command waits for the thread by now
        await asyncio.sleep(0)
    await found.close()
    may_go_on.set()
    with pytest.raises(ModelNotConfiguredError):
        await choosing
    await held
    assert not (tmp_path / "began").exists()


async def test_what_is_closed_opens_no_model_any_more(tmp_path: Path) -> None:
    found = models(tmp_path)
    choosing = asyncio.ensure_future(found.choose("ollama/m"))
    await asyncio.sleep(0)
    await found.close()
    with pytest.raises(ModelNotConfiguredError, match="has changed meanwhile"):
        await choosing


def test_an_unknown_provider_is_called_that(tmp_path: Path) -> None:
    """A name that is written provider/model is not said to be written otherwise."""
    with pytest.raises(
        ModelNotConfiguredError, match="no provider 'work'; choose another model, of"
    ):
        chosen(models(tmp_path), "work/x")


def test_nothing_usable_names_every_provider_and_its_reason(tmp_path: Path) -> None:
    """-32031: `tried`."""
    without_local = {k: v for k, v in built_in().items() if k != "local"}
    with pytest.raises(ModelNotConfiguredError) as caught:
        chosen(Models(without_local, {}, tmp_path))
    tried = caught.value.data["tried"]
    assert [row["provider"] for row in tried] == list(without_local)
    assert all(row["reason"] for row in tried)


def test_a_named_model_is_not_asked_first(tmp_path: Path) -> None:
    """Its server may be slow; the prompt itself will tell."""
    assert chosen(models(tmp_path), "ollama/qwen/coder:7b") == "ollama/qwen/coder:7b"


def test_a_named_key_that_is_not_set_needs_no_asking(tmp_path: Path) -> None:
    """-32031: nothing is stored and nobody is asked."""
    with pytest.raises(ModelNotConfiguredError, match="API key MINE") as caught:
        chosen(models(tmp_path, ollama={"api_key_env": "MINE"}), "ollama/m")
    assert caught.value.data["tried"][0]["provider"] == "ollama"


@pytest.mark.parametrize("name", ["nobody/m", "ollama/", "", "/"])
def test_a_name_of_no_provider_is_refused(tmp_path: Path, name: str) -> None:
    """provider/name, split at the first slash."""
    with pytest.raises(ModelNotConfiguredError):
        models(tmp_path).check(name)


async def test_a_key_command_runs_when_the_model_is_wanted(tmp_path: Path) -> None:
    """Once, and a failure says so without the output."""
    mark = tmp_path / "ran"
    command = f"echo x >> {mark}; echo secret-of-a-command"
    keys: list[str] = []
    found = models(tmp_path, {"openai": command}, openai={"default_model": "m"})
    found.keys.on_key = keys.append
    assert not mark.exists()
    assert [(await found.choose(f"openai/{name}")).name for name in "mn"] == [
        "openai/m",
        "openai/n",
    ]
    await found.close()
    assert mark.read_text() == "x\n"
    assert keys == ["secret-of-a-command"]
    failing = models(tmp_path, {"openai": "echo hidden; exit 3"})
    with pytest.raises(ModelNotConfiguredError, match="exit code 3") as caught:
        await failing.choose("openai/m")
    assert "hidden" not in str(caught.value.data)


def test_rows_say_what_can_be_used_and_why_not(tmp_path: Path, provider: Provider) -> None:
    """models/list."""
    running = {
        "base_url": provider.base_url,
        "api_key": API_KEY,
        "models": {"mine": ModelFacts(context_window=4096)},
    }
    rows = asyncio.run(models(tmp_path, ollama=running).rows())
    by_name = {row.name: row for row in rows}
    assert by_name["ollama/mine"].available
    assert by_name["ollama/mine"].context_window == 4096
    assert by_name["openai"].reason == "its API key OPENAI_API_KEY is not set"
    assert not by_name["llamacpp"].available
