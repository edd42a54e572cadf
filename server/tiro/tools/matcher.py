"""Searching lines for a pattern in a process of its own, which can be killed at any moment."""

import asyncio
import json
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from tiro.errors import ToolError
from tiro.tools.text import plain_lines

MATCH_SECONDS = 10.0
"""How long a pattern may take for one batch of texts."""

BAD_EXPRESSION = "{pattern!r} is no usable regular expression ({why}); nothing was searched"
TOO_SLOW = (
    "The pattern {pattern!r} takes too long on these files; the search was given up. Use a simpler"
    " one, without repetitions inside repetitions"
)
GONE = "The search process ended unexpectedly; try again"

_PROGRAM = str(Path(__file__).with_name("match_lines.py"))


class Matcher:
    """One pattern and the process that searches for it; use it with `async with`."""

    def __init__(
        self, pattern: str, *, ignore_case: bool, context: int, seconds: float = MATCH_SECONDS
    ) -> None:
        self._pattern = pattern
        self._order = {"pattern": pattern, "ignore_case": ignore_case, "context": context}
        self._seconds = seconds
        self._process: asyncio.subprocess.Process | None = None

    async def search(self, texts: list[str]) -> list[list[list[Any]]]:
        """For each text the lines to show, as [line number, is match, line]."""
        data = [plain_lines(text).encode("utf-8", "surrogatepass") for text in texts]
        found: list[list[list[Any]]] = await self._ask(list(map(len, data)), b"".join(data))
        return found

    async def __aenter__(self) -> "Matcher":
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-I", "-S", "-X", "utf8", _PROGRAM),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            answer = await self._ask(self._order)
        except OSError as error:
            raise ToolError(GONE) from error
        except BaseException:
            await self._end()
            raise
        if "error" in answer:
            await self._end()
            raise ToolError(BAD_EXPRESSION.format(pattern=self._pattern, why=answer["error"]))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end()

    async def _ask(self, head: Any, data: bytes = b"") -> Any:
        try:
            return await asyncio.wait_for(self._exchange(head, data), self._seconds)
        except TimeoutError as error:
            raise ToolError(TOO_SLOW.format(pattern=self._pattern)) from error
        except (asyncio.IncompleteReadError, OSError) as error:
            raise ToolError(GONE) from error

    async def _exchange(self, head: Any, data: bytes) -> Any:
        process = self._process
        assert process is not None, "used outside of `async with`"
        assert process.stdin is not None, "it was started with pipes"
        assert process.stdout is not None, "it was started with pipes"
        frame = json.dumps(head).encode()
        process.stdin.write(len(frame).to_bytes(4, "big") + frame + data)
        await process.stdin.drain()
        length = int.from_bytes(await process.stdout.readexactly(4), "big")
        return json.loads(await process.stdout.readexactly(length))

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        if process.returncode is None:
            process.kill()
        await process.wait()
