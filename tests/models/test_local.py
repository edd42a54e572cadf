"""The embedded model in its real process: protocol, usage, cancel, overflow, and how it ends.

It runs with one thread at temperature 0 and says few words; what it says is never tested.
"""

import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.bench import accuracy
from tests.models.wire import only, settings
from tests.processes import children_of, command_line, is_running, wait_over
from tests.sizes import sized
from tiro import Session, estimate_tokens
from tiro.agents.asking import Chat
from tiro.errors import ContextOverflowError, ModelError, ModelNotConfiguredError
from tiro.models.anthropic import AnthropicModel
from tiro.models.local import LocalModel, LocalModels
from tiro.models.local_process import LocalProcess, Wanted
from tiro.models.model import (
    Delta,
    Finished,
    Model,
    ModelRequest,
    Progress,
    ProviderSettings,
    TextDelta,
    ToolSchema,
)
from tiro.models.weights import Weights, WeightsDirectory, chat_template_of
from tiro.session.memo import SCHEMA, facts
from tiro.session.messages import Message

PROVIDER = ProviderSettings(name="local", api="local")
NAME = "smollm2-135m"
UPDATES = sized(fast=2, normal=2, long=40)
SEEDS = sized(fast=1, normal=2, long=10)

pytestmark = pytest.mark.timeout(240)


def asks(text: str, **given: Any) -> ModelRequest:
    message = Message("user", [{"type": "text", "text": text}])
    wanted = {"temperature": 0.0, "max_output_tokens": 3, **given}
    return ModelRequest(model=NAME, messages=[message], **wanted)


def with_model(cache: Path, scenario: Callable[[LocalModel], Awaitable[None]]) -> None:
    async def run() -> None:
        model = LocalModel(PROVIDER, NAME, LocalModels(cache), threads=1)
        try:
            await scenario(model)
        finally:
            await model.close()

    asyncio.run(run())


async def deltas_of(model: Model, request: ModelRequest) -> list[Delta]:
    return [delta async for delta in model.stream(request)]


def finished(deltas: list[Delta]) -> Finished:
    (last,) = only(deltas, Finished)
    assert deltas[-1] is last
    assert isinstance(last, Finished)
    return last


@pytest.mark.parametrize(("in_ci", "outcome"), [("", "1 skipped"), ("1", "1 error")])
def test_missing_model_is_no_success_in_ci(tmp_path: Path, in_ci: str, outcome: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        [*command, "-k", "test_it_answers_with_usage"],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "CI": in_ci, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert outcome in done.stdout


@pytest.mark.local
def test_it_answers_with_usage_and_the_same_at_temperature_0(real_cache: Path) -> None:
    async def scenario(model: LocalModel) -> None:
        first = await deltas_of(model, asks("Say hello."))
        assert isinstance(first[0], Progress)
        assert "Loading" in first[0].message
        assert only(first, TextDelta)
        last = finished(first)
        assert last.stop_reason == "max_tokens"
        assert last.usage is not None
        assert last.usage.output_tokens == 3
        tokens = last.usage.input_tokens + last.usage.cache_read_tokens
        assert 5 < tokens < 100
        again = await deltas_of(model, asks("Say hello."))
        assert not any("Loading" in d.message for d in again if isinstance(d, Progress))
        assert only(again, TextDelta) == only(first, TextDelta)
        usage = finished(again).usage
        assert usage is not None
        assert usage.input_tokens + usage.cache_read_tokens == tokens

    with_model(real_cache, scenario)


@pytest.mark.local
def test_a_request_that_does_not_fit_tells_both_numbers_and_two_are_answered_at_once(
    real_cache: Path,
) -> None:
    async def scenario(model: LocalModel) -> None:
        with pytest.raises(ContextOverflowError) as caught:
            await deltas_of(model, asks("word " * 9000))
        assert caught.value.data["tokens"] > caught.value.data["context_window"] == 8192
        both = await asyncio.gather(*(deltas_of(model, asks(t)) for t in ("Hi", "Hello")))
        assert [finished(deltas).stop_reason for deltas in both] == ["max_tokens"] * 2

    with_model(real_cache, scenario)


@pytest.mark.local
def test_its_server_speaks_the_anthropic_style_too(real_cache: Path) -> None:
    """A second server of that format than the scripted one: text, usage, history, refusals."""
    weights = str(LocalModels(real_cache).file_of(NAME))
    process = LocalProcess(
        Wanted(weights=weights, alias=NAME, context_window=2048, threads=1, chat_template="")
    )
    tool = ToolSchema("glob", "Find files.", {"type": "object", "properties": {}})
    use = {"type": "tool_use", "id": "call|1", "name": "glob", "input": {"pattern": "*"}}
    result = {"type": "tool_result", "tool_use_id": "call|1", "content": "a.txt"}
    history = [
        Message("user", [{"type": "text", "text": "Which files are there?"}]),
        Message("assistant", [use]),
        Message("tool", result),
    ]

    def at(key: str) -> AnthropicModel:
        found = ProviderSettings(
            name="near", api="anthropic", base_url=process.url, api_key=key, timeout_seconds=100
        )
        return AnthropicModel(found, NAME)

    async def scenario() -> None:
        model = at(process.api_key)
        first = await deltas_of(model, asks("Say hello.", system="Be brief."))
        assert "".join(d.text for d in first if isinstance(d, TextDelta)).strip()
        last = finished(first)
        assert last.stop_reason == "max_tokens"
        assert last.usage is not None
        assert last.usage.output_tokens == 3
        assert 5 < last.usage.input_tokens + last.usage.cache_read_tokens < 100
        assert model.facts.context_window == 2048
        finished(await deltas_of(model, replace(asks(""), messages=history, tools=[tool])))
        with pytest.raises(ContextOverflowError) as caught:
            await deltas_of(model, asks("word " * 3000))
        assert caught.value.data["tokens"] > caught.value.data["context_window"] == 2048
        stranger = at("wrong")
        with pytest.raises(ModelError, match="refused the API key"):
            await deltas_of(stranger, asks("Hi"))
        await model.close()
        await stranger.close()

    async def run() -> None:
        await process.start()
        try:
            await scenario()
        finally:
            await process.close()

    asyncio.run(run())


@pytest.mark.local
def test_a_cancel_while_it_reads_the_prompt_or_writes(real_cache: Path) -> None:
    async def scenario(model: LocalModel) -> None:
        for wanted, kind in ((asks("word " * 6000), Progress), (asks("Hi"), TextDelta)):
            stream = model.stream(wanted)
            async for delta in stream:
                if isinstance(delta, kind) and getattr(delta, "fraction", 1) not in (None, 0.0):
                    break
            await stream.aclose()
        # It would take minutes to come to this one had the long prompt not been given up.
        finished(await deltas_of(model, asks("Hi", max_output_tokens=1)))

    with_model(real_cache, scenario)


@pytest.mark.local
def test_a_process_that_died_is_started_again(real_cache: Path) -> None:
    async def scenario(model: LocalModel) -> None:
        await deltas_of(model, asks("Hi"))
        (child,) = children()
        os.kill(child, signal.SIGKILL)
        finished(await deltas_of(model, asks("Hi")))
        await model.close()
        assert children() == []
        finished(await deltas_of(model, asks("Hi")))

    with_model(real_cache, scenario)
    assert children() == []


@pytest.mark.local
def test_a_cancel_while_it_loads_ends_the_process(real_cache: Path) -> None:
    async def scenario(model: LocalModel) -> None:
        stream = model.stream(asks("Hi"))
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        while not children():  # noqa: ASYNC110  # nothing tells that a process has appeared
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert children() == []

    with_model(real_cache, scenario)


@pytest.mark.local
def test_it_keeps_its_output_and_its_key_to_itself(
    real_cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """B41, B52: nothing on our stdout or stderr, and no key on a command line."""

    async def scenario(model: LocalModel) -> None:
        await deltas_of(model, asks("Hi"))
        (child,) = children()
        assert len(command_line(child)) == 3

    with_model(real_cache, scenario)
    assert capfd.readouterr() == ("", "")


FACTS = (
    "Please use two spaces, never tabs.",  # first: to this one it answers in few words
    "We deploy on Fridays only.",
    "The server listens on port 8417.",
    "My name is Ann and I write Emacs Lisp.",
)


@pytest.mark.local
def test_a_memo_is_valid_json_every_time(real_cache: Path) -> None:
    """A5.3: the schema holds even a model to it that would write anything; truth is not tested."""

    async def scenario(model: LocalModel) -> None:
        said: list[str] = []
        chat = Chat(AtZero(model), response_schema=SCHEMA)

        async def asked(messages: Any) -> str:
            reply = await chat.chat(messages=messages)
            said.append(reply.text)
            return reply.text

        session = Session({"session.memo.model": asked}).use_memo()
        for n in range(UPDATES):
            session.add_message("user", f"{FACTS[n % len(FACTS)]} ({n})")
            await session.async_resize("lite")
            value = json.loads(said[n])
            assert value.keys() == {"memo"}
            assert isinstance(value["memo"], dict)
            assert not value["memo"] or facts(session.memo) == value["memo"]
        assert len(said) == UPDATES

    with_model(real_cache, scenario)


@pytest.mark.local
def test_the_meter_knows_its_tokenizer(real_cache: Path) -> None:
    """Bars of the estimate: before any report, after three, and when the language changes."""
    file = str(LocalModels(real_cache).file_of(NAME))
    process = LocalProcess(Wanted(weights=file, alias=NAME, context_window=512, threads=1))

    async def run() -> None:
        await process.start()
        with httpx.Client(base_url=process.url) as client:
            check_estimates(lambda text: counted(client, process.api_key, text))
        await process.close()

    asyncio.run(run())


def counted(client: httpx.Client, api_key: str, text: str) -> int:
    """How many tokens a text is, as the process itself says."""
    headers = {"Authorization": f"Bearer {api_key}", "Connection": "close"}
    reply = client.post("/tokenize", json={"content": text}, headers=headers)
    return len(reply.json()["tokens"])


def check_estimates(count: Callable[[str], int]) -> None:
    """The mean errors over the benchmarks' texts and talks are within their bars."""
    first = [
        abs(estimate_tokens(text, f"local/{NAME}") / count(text) - 1) * 100
        for text in accuracy.TEXTS.values()
    ]
    later = {
        bar: [
            ours
            for talk in talks
            for seed in range(SEEDS)
            for ours, _ in accuracy.errors(NAME, count, talk, random.Random(seed))
        ]
        for bar, talks in (("same mix", [accuracy.MIXED]), ("changing", accuracy.CHANGING))
    }
    means = {bar: statistics.mean(off) for bar, off in {"no report": first, **later}.items()}
    assert all(mean <= accuracy.BARS[bar] for bar, mean in means.items()), means


class AtZero:
    """A model that is asked at temperature 0, where it says the same each time."""

    def __init__(self, model: LocalModel) -> None:
        self.name, self.facts = model.name, model.facts
        self.close, self.wire_request = model.close, model.wire_request
        self._model = model

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        return self._model.stream(replace(request, temperature=0.0))


OWNER = """
import asyncio, sys
from pathlib import Path
from tests.models.test_local import LocalModel, LocalModels, NAME, PROVIDER, asks, children

async def main():
    model = LocalModel(PROVIDER, NAME, LocalModels(Path(sys.argv[1])), threads=1)
    async for delta in model.stream(asks("Hi")):
        pass
    print(*children(), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.local
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_dies_with_its_owner_however_that_dies(real_cache: Path, number: int) -> None:
    """B42: no process is left behind."""
    command = [sys.executable, "-c", OWNER, str(real_cache)]
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    ) as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        owner.send_signal(number)
        owner.wait()
    wait_over(child)


def children() -> list[int]:
    """The processes of local models that this one has started and that still run."""
    return [pid for pid in children_of(os.getpid()) if is_running(pid) and is_local_model(pid)]


def is_local_model(pid: int) -> bool:
    return any(word.endswith("/local_server.py") for word in command_line(pid))


# --- what cannot be started ----------------------------------------------------------------


def test_its_request_can_be_seen_without_starting_it(tmp_path: Path) -> None:
    wanted = ModelRequest(model=NAME, messages=[Message("user", [{"type": "text", "text": "Hi"}])])
    wire = LocalModel(PROVIDER, NAME, LocalModels(tmp_path)).wire_request(wanted)
    assert wire["messages"] == [{"role": "user", "content": "Hi"}]
    assert wire["max_tokens"] == 1024
    assert wire["return_progress"] is True
    assert not any(tmp_path.iterdir())


def test_a_model_that_was_not_pulled(tmp_path: Path) -> None:
    model = LocalModel(PROVIDER, "qwen2.5-coder-0.5b", LocalModels(tmp_path))
    with pytest.raises(ModelNotConfiguredError, match="tiro local pull"):
        asyncio.run(deltas_of(model, asks("Hi")))


def test_a_file_that_is_no_model_says_so(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    directory = WeightsDirectory(tmp_path / "models")
    directory.path.mkdir()
    content = b"GGUF" + bytes(100)
    directory.file_of("broken").write_bytes(content)
    directory.write(Weights(name="broken", bytes=len(content), sha256="", source="here"))
    model = LocalModel(PROVIDER, "broken", LocalModels(tmp_path))
    with pytest.raises(ModelError, match="'broken' cannot be loaded: ") as caught:
        asyncio.run(deltas_of(model, asks("Hi")))
    assert not caught.value.data["retryable"]
    assert "gguf" in caught.value.data["body"]


def test_without_the_extra_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python").write_text(
        "#!/bin/sh\nread order\necho \"ModuleNotFoundError: No module named 'xllamacpp'\" >&2\n"
    )
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    directory = WeightsDirectory(tmp_path / "models")
    directory.write(Weights(name="own", bytes=4, sha256="", source="here"))
    directory.file_of("own").write_bytes(b"GGUF")
    model = LocalModel(settings(name="local", api="local"), "own", LocalModels(tmp_path))
    with pytest.raises(ModelError, match=r"pip install .*xllamacpp"):
        asyncio.run(deltas_of(model, asks("Hi")))


# --- the chat format of Qwen2.5-Coder ------------------------------------------------------

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Read a and b."},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "read", "arguments": '{"p":"a"}'}},
            {"id": "2", "type": "function", "function": {"name": "read", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "1", "content": "A"},
    {"role": "tool", "tool_call_id": "2", "content": "B"},
    {"role": "assistant", "content": "Done."},
    {"role": "user", "content": "Thanks"},
]
TOOL = {"type": "function", "function": {"name": "read", "description": "R", "parameters": {}}}
START, END = "<|im_start|>", "<|im_end|>\n"


async def rendered(cache: Path, *requests: dict[str, Any]) -> list[str]:
    """What the real server makes of chats with our format; the small model has the same tokens."""
    process = LocalProcess(
        Wanted(
            weights=str(LocalModels(cache).file_of(NAME)),
            alias="x",
            context_window=512,
            threads=1,
            chat_template=chat_template_of("qwen2.5-coder-1.5b"),
        )
    )
    await process.start()
    try:
        async with httpx.AsyncClient(verify=False, trust_env=False, timeout=60) as client:
            key, url = {"authorization": f"Bearer {process.api_key}"}, process.url
            answers = [
                await client.post(f"{url}/apply-template", json=request, headers=key)
                for request in requests
            ]
        return [answer.json()["prompt"] for answer in answers]
    finally:
        await process.close()


@pytest.mark.local
def test_qwens_tools_and_calls_stand_in_the_tags_it_knows(real_cache: Path) -> None:
    """And a plain chat has nothing about tools."""
    hi = [{"role": "user", "content": "Hi"}]
    with_tools, plain = asyncio.run(
        rendered(real_cache, {"messages": CHAT, "tools": [TOOL]}, {"messages": hi})
    )
    system, *turns = with_tools.removeprefix(START).split(START)
    assert system.startswith("system\nBe brief.\n\n# Tools\n")
    assert '<tools>\n{"type": "function", "function": {"name": "read"' in system
    assert turns == [
        f"user\nRead a and b.{END}",
        "assistant\nI look.\n"
        '<tool_call>\n{"name": "read", "arguments": {"p": "a"}}\n</tool_call>\n'
        f'<tool_call>\n{{"name": "read", "arguments": {{}}}}\n</tool_call>{END}',
        f"user\n<tool_response>\nA\n</tool_response>\n<tool_response>\nB\n</tool_response>{END}",
        f"assistant\nDone.{END}",
        f"user\nThanks{END}",
        "assistant\n",
    ]
    assert plain == f"{START}user\nHi{END}{START}assistant\n"


def test_only_qwen_has_another_chat_format() -> None:
    assert chat_template_of("qwen2.5-coder-7b-instruct-q4_k_m")
    assert chat_template_of(NAME) == chat_template_of("own") == ""
