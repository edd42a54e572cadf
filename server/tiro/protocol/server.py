"""`tiro serve`: the process that an editor starts and talks to over stdio."""

import asyncio
import functools
import sys
from typing import TYPE_CHECKING

from tiro.assistant.assistant import Assistant
from tiro.protocol.frames import Stdio, keep_stdio
from tiro.protocol.lifetime import Listener, live
from tiro.protocol.service import OpenAssistant, build_server

if TYPE_CHECKING:
    from tiro.protocol.recorded import RecordedConnection

MAX_DIGITS = 100_000
"""Integers of any sensible size are read and written; Python's own limit is 4,300 digits."""


def main(stdio: Stdio | None = None, recorded: "RecordedConnection | None" = None) -> int:
    """Serve one client over stdin and stdout; the exit code of the process.

    Whoever has kept the two for frames before importing this module hands them over.
    """
    stdio = stdio or keep_stdio()
    if recorded is None:
        return serve(stdio, Assistant)
    try:
        observed = functools.partial(Assistant, observer=recorded.recorder)
        return serve(stdio, observed, recorded)
    finally:
        recorded.recorder.close()


def serve(stdio: Stdio, open_assistant: OpenAssistant, listener: Listener | None = None) -> int:
    """Serve one client over these descriptors."""
    sys.set_int_max_str_digits(MAX_DIGITS)
    return asyncio.run(_serve(stdio, open_assistant, listener))


async def _serve(stdio: Stdio, open_assistant: OpenAssistant, listener: Listener | None) -> int:
    return await live(build_server(open_assistant), stdio, listener)
