"""`python -m tests.protocol.fake_server`: the real server process around a fake assistant."""

import asyncio
import sys

from tests.protocol.fakes import Script, fake_assistant
from tiro.agents import events
from tiro.protocol.frames import Stdio, keep_stdio
from tiro.protocol.lifetime import live
from tiro.protocol.service import build_server


async def serve(stdio: Stdio) -> int:
    """Every turn says "a" and then goes on for ever."""
    scripts: list[Script] = [[events.Text("a"), asyncio.Event()] for _ in range(10)]
    return await live(build_server(fake_assistant(*scripts)), stdio)


if __name__ == "__main__":
    sys.exit(asyncio.run(serve(keep_stdio())))
