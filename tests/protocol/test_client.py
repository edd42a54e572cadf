"""The small client of our own protocol, against the real server process around a fake assistant."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.protocol.test_lifetime import ENV, ROOT
from tests.sizes import PATIENCE
from tiro.protocol import client as module
from tiro.protocol.client import (
    LIFE_SECONDS,
    Client,
    RemoteError,
    ServerGoneError,
    ServerSilentError,
)

COMMAND = [sys.executable, "-m", "tests.protocol.fake_server"]


@asynccontextmanager
async def started(how: str = "", **given: Any) -> AsyncIterator[Client]:
    command = [*COMMAND, how] if how else COMMAND
    client = await Client.start(command, env=ENV, cwd=str(ROOT), **given)
    try:
        await client.initialize(workspace_roots=["file:///w"])
        yield client
    finally:
        await client.kill()


async def test_requests_errors_and_events() -> None:
    heard: list[tuple[str, Any]] = []
    streaming = asyncio.Event()

    def hear(method: str, params: Any) -> None:
        heard.append((method, params))
        if params.get("type") == "text":
            streaming.set()

    async with started(on_notification=hear) as client:
        assert (await client.request("tiro/session/getId"))["id"]
        with pytest.raises(RemoteError) as caught:
            await client.request("tiro/session/setAgent", {"name": "none"})
        assert (caught.value.code, caught.value.kind) == (-32030, "agentNotFound")
        assert caught.value.data["available"] == ["build"]
        turn = asyncio.ensure_future(client.request("tiro/turn/start", {"prompt": "x"}))
        await streaming.wait()
        assert await client.cancel()
        assert (await turn)["stopReason"] == "cancelled"
        assert [params["type"] for _, params in heard] == ["started", "text", "finished"]
        assert not await client.cancel()


async def test_a_server_that_lives_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the model works: the turn says nothing, and signs of life are given."""
    monkeypatch.setattr(module, "MAX_SILENCES", 20)
    for seconds in (0.05, 0.2, 3.0):  # a busy machine may keep a server from giving signs
        monkeypatch.setattr(module, "LIFE_SECONDS", LIFE_SECONDS)
        with contextlib.suppress(ServerSilentError):
            async with started() as client:
                monkeypatch.setattr(module, "LIFE_SECONDS", seconds)
                await live_long(client)
                return
    pytest.fail("it counts as dead, though it lives")


async def live_long(client: Client) -> None:
    """A turn that lasts until more signs were given than may be missing."""
    turn = asyncio.ensure_future(client.request("tiro/turn/start", {"prompt": "x"}))
    first = client.signs_of_life
    while not turn.done() and client.signs_of_life < first + 25:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    if not turn.done():
        assert await client.cancel()
    assert (await turn)["stopReason"] == "cancelled"


async def test_a_stopped_server_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async with started() as client:
        monkeypatch.setattr(module, "LIFE_SECONDS", 0.02)
        client.process.send_signal(signal.SIGSTOP)
        with pytest.raises(ServerSilentError, match="no sign of life"):
            await client.request("tiro/session/getId")
        assert await client.close() == -signal.SIGKILL


async def test_cancelling_a_wait_cancels_the_request() -> None:
    streaming = asyncio.Event()
    async with started(on_notification=lambda method, params: streaming.set()) as client:
        turn = asyncio.ensure_future(client.request("tiro/turn/start", {"prompt": "x"}))
        await streaming.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        while (await client.request("tiro/session/get"))["busy"] is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # a cancel is over when it is over


async def test_the_server_may_ask() -> None:
    async def answer(method: str, params: Any) -> Any:
        if method == "window/showMessageRequest":
            return params["actions"][1]
        raise NotImplementedError(method)

    async with started(on_request=answer) as client:
        command = {"command": "tiro.selectAgent"}
        result = await client.request("workspace/executeCommand", command)
        assert result["agent"]["name"] == "plan"


async def test_a_question_that_nobody_answers_is_a_no() -> None:
    async with started() as client:
        command = {"command": "tiro.selectAgent"}
        assert await client.request("workspace/executeCommand", command) is None


async def test_close_ends_the_server_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "END_SECONDS", PATIENCE)
    async with started() as client:
        assert await client.close() == 0
        with pytest.raises(ServerGoneError):
            await client.request("tiro/session/getId")


async def test_a_server_that_dies_leaves_nobody_waiting() -> None:
    streaming = asyncio.Event()
    async with started(on_notification=lambda method, params: streaming.set()) as client:
        turn = asyncio.ensure_future(client.request("tiro/turn/start", {"prompt": "x"}))
        await streaming.wait()
        await client.kill()
        with pytest.raises(ServerGoneError):
            await turn
        assert await client.close() != 0
