"""`tiro serve`: the process that an editor starts and talks to over stdio."""

import asyncio
import sys

from tiro.assistant.assistant import Assistant
from tiro.protocol.frames import keep_stdin, keep_stdout
from tiro.protocol.lifetime import Stdio, live
from tiro.protocol.service import OpenAssistant, build_server

MAX_DIGITS = 100_000
"""Integers of any sensible size are read and written; Python's own limit is 4,300 digits."""


def main() -> int:
    """Serve one client over stdin and stdout; the exit code of the process."""
    return serve(Stdio(keep_stdin(), keep_stdout()))


def serve(stdio: Stdio, open_assistant: OpenAssistant = Assistant) -> int:
    """Serve one client over these descriptors."""
    sys.set_int_max_str_digits(MAX_DIGITS)
    return asyncio.run(_serve(stdio, open_assistant))


async def _serve(stdio: Stdio, open_assistant: OpenAssistant) -> int:
    return await live(build_server(open_assistant), stdio)
