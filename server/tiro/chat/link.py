"""The server of a chat: when it dies, the next one goes on with the same session."""

import contextlib
import signal
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

from tiro.protocol.client import Client, OnNotification, OnRequest, ServerGoneError

CAPABILITIES = {"window": {"workDoneProgress": True}}
MAX_LAST_WORDS_BYTES = 2000
MAX_LAST_WORDS_LINES = 5


class Link:
    """One server at a time, its stderr kept for when it dies."""

    def __init__(
        self,
        on_notification: OnNotification,
        on_request: OnRequest,
        settings: Mapping[str, Any],
        workspace_roots: Sequence[str],
    ) -> None:
        self._hear, self._answer = on_notification, on_request
        self._settings, self._roots = settings, workspace_roots
        self._client: Client | None = None
        self._log: IO[bytes] | None = None
        self.hello: dict[str, Any] = {}
        """What the server said of itself: `capabilities.experimental.tiro`."""

    async def start(self) -> None:
        """Start a server and greet it. Raises ServerGoneError when it ends at once."""
        self._drop_log()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (it lives as long as the server)
        self._client = await Client.start(
            stderr=self._log.fileno(), on_notification=self._hear, on_request=self._answer
        )
        greeting = await self._client.initialize(
            settings=self._settings, workspace_roots=self._roots, capabilities=CAPABILITIES
        )
        self.hello = greeting["capabilities"]["experimental"]["tiro"]

    async def request(self, method: str, params: Any = None) -> Any:
        """Ask the server. Raises RemoteError for its refusal, ServerGoneError when it has ended."""
        if self._client is None:
            raise ServerGoneError("No server was started")
        return await self._client.request(method, params)

    async def close(self) -> None:
        """End the server in order: a turn that runs is cancelled, everything is saved."""
        if self._client is not None:
            with contextlib.suppress(ServerGoneError):
                await self._client.close()
        self._drop_log()

    async def kill(self) -> None:
        """End the server as a crash would."""
        if self._client is not None:
            await self._client.kill()

    async def last_words(self) -> tuple[str, list[str]]:
        """How a server that is gone ended, and the end of what it said."""
        if self._client is None:
            return "it was not started", []
        code = await self._client.close()
        reason = f"exit code {code}"
        if self._client.is_silent:
            reason = "it gave no sign of life any more"
        elif code < 0:
            with contextlib.suppress(ValueError):
                reason = f"signal {-code}, {signal.Signals(-code).name}"
        return reason, self._end_of_log()

    def _end_of_log(self) -> list[str]:
        if self._log is None:
            return []
        size = self._log.seek(0, 2)
        self._log.seek(max(0, size - MAX_LAST_WORDS_BYTES))
        lines = self._log.read().decode("utf-8", "replace").splitlines()
        return [line for line in lines if line.strip()][-MAX_LAST_WORDS_LINES:]

    def _drop_log(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None
