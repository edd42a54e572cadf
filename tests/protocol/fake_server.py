"""`python -m tests.protocol.fake_server`: the real server process around a fake assistant."""

import asyncio
import sys

from tests.protocol.fakes import fake_assistant
from tiro.agents import events
from tiro.protocol.frames import keep_stdin, keep_stdout
from tiro.protocol.lifetime import Stdio, live
from tiro.protocol.service import build_server


async def main() -> int:
    """Every turn says "a" and then goes on for ever."""
    scripts = [[events.Text("a"), asyncio.Event()] for _ in range(10)]
    return await live(build_server(fake_assistant(*scripts)), STDIO)


STDIO = Stdio(keep_stdin(), keep_stdout())

if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
