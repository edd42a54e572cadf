"""`tiro serve`: the process that an editor starts and talks to over stdio."""

import asyncio
import sys

from tiro.assistant.assistant import Assistant
from tiro.protocol.frames import Stdio, keep_stdio
from tiro.protocol.lifetime import live
from tiro.protocol.service import OpenAssistant, build_server

MAX_DIGITS = 100_000
"""Integers of any sensible size are read and written; Python's own limit is 4,300 digits."""


def main(stdio: Stdio | None = None) -> int:
    """Serve one client over stdin and stdout; the exit code of the process.

    Whoever has kept the two for frames before importing this module hands them over.
    """
    return serve(stdio or keep_stdio(), Assistant)


def serve(stdio: Stdio, open_assistant: OpenAssistant) -> int:
    """Serve one client over these descriptors."""
    sys.set_int_max_str_digits(MAX_DIGITS)
    return asyncio.run(_serve(stdio, open_assistant))


async def _serve(stdio: Stdio, open_assistant: OpenAssistant) -> int:
    return await live(build_server(open_assistant), stdio)
