"""The process that serves a local model: started on first use, ended with its owner.

Its stdin is a pipe of its own and its life line, see `local_server`; what it prints stays here.
"""

import asyncio
import contextlib
import os
import secrets
import sys
from collections import deque
from pathlib import Path

import msgspec
from msgspec import Struct

from tiro.errors import ModelError
from tiro.models.local_extra import install_command

PARALLEL = 2
"""How many requests are answered at once; more of them wait."""
END_SECONDS = 1.0
KEPT_LINES = 30

_PROGRAM = Path(__file__).with_name("local_server.py")


class Wanted(Struct, frozen=True, kw_only=True):
    """What is to be served, in the spelling of the program's first line."""

    weights: str
    alias: str
    context_window: int
    threads: int
    chat_template: str = ""
    """Empty: the one in the weights."""
    parallel: int = PARALLEL


class _Listening(Struct):
    url: str


class LocalProcess:
    """One server process; `url` and `api_key` are set while it runs."""

    def __init__(self, wanted: Wanted) -> None:
        self.url = ""
        self.api_key = ""
        self._wanted = wanted
        self._process: asyncio.subprocess.Process | None = None
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._readers: list[asyncio.Task[None]] = []
        self._lock = asyncio.Lock()

    @property
    def is_running(self) -> bool:
        """Whether it can be asked; false before the start and after a crash."""
        return self._process is not None and self._process.returncode is None and bool(self.url)

    async def start(self) -> None:
        """Start it and wait until the model is loaded; nothing happens when it runs."""
        async with self._lock:
            if self.is_running:
                return
            await self._end()
            try:
                await self._start()
            except BaseException:
                await self._end()
                raise

    async def close(self) -> None:
        """End it; it may be started again."""
        async with self._lock:
            await self._end()

    def last_words(self) -> str:
        """What it printed last, for the error of a start or an answer that failed."""
        return "\n".join(self._lines)

    async def _start(self) -> None:
        self._lines.clear()
        self.api_key = secrets.token_urlsafe(24)
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the program's neighbours are no modules of its own
            str(_PROGRAM),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # an interrupt typed in a terminal is meant for its owner only
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        stderr = asyncio.create_task(self._keep_lines(process.stderr))
        self._readers = [stderr]
        order = msgspec.structs.asdict(self._wanted)
        order |= {"api_key": self.api_key, "parent": os.getpid()}
        with contextlib.suppress(ConnectionError):
            process.stdin.write(msgspec.json.encode(order) + b"\n")
            await process.stdin.drain()
        line = await process.stdout.readline()
        if not line:
            await asyncio.wait([stderr], timeout=END_SECONDS)
            raise self._failure()
        self.url = msgspec.json.decode(line, type=_Listening).url
        self._readers.append(asyncio.create_task(self._keep_lines(process.stdout)))

    async def _end(self) -> None:
        process, self._process, self.url = self._process, None, ""
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        for reader in self._readers:
            await reader
        self._readers = []

    async def _keep_lines(self, stream: asyncio.StreamReader) -> None:
        """Read to the end, so that the process never waits for a full pipe."""
        while chunk := await stream.read(65536):
            self._lines.extend(chunk.decode("utf-8", "replace").splitlines())

    def _failure(self) -> ModelError:
        words = self.last_words()
        if "No module named 'xllamacpp'" in words:
            sentence = f"The local model needs a program, install it with: {install_command()}"
        else:
            reason = next((line for line in self._lines if " E " in line), "")
            reason = reason.partition(" E ")[2] or (self._lines[-1] if self._lines else "")
            sentence = f"The local model {self._wanted.alias!r} cannot be loaded: {reason.strip()}"
        return ModelError(
            sentence,
            provider="local",
            status=None,
            retryable=False,
            retry_after_seconds=None,
            body=words[-2048:] or None,
        )
