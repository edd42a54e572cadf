"""`python -m tests.protocol.fake_server [how]`: the real server process around a fake assistant.

Every turn says "a" and then goes on for ever; or it does what the first argument says.
"""

import asyncio
import atexit
import logging
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from tests.protocol.fakes import FakeAssistant, Script, fake_assistant
from tests.sizes import PATIENCE
from tiro.agents import events
from tiro.protocol import closing, lifetime
from tiro.protocol.frames import Stdio, keep_stdio
from tiro.protocol.lifetime import live
from tiro.protocol.service import Service, build_server


def block(service: Service) -> Callable[[str], Any]:
    """Start a child that ignores signals, tell its id, and never give the loop back."""

    async def before(name: str) -> None:
        if name == "start_turn":
            code = "import signal, time; signal.signal(15, lambda *_: 0); time.sleep(300)"
            child = subprocess.Popen([sys.executable, "-c", code])  # noqa: ASYNC220  # it must block
            params = {"type": 4, "message": str(child.pid)}
            service.server.protocol.notify("window/logMessage", params)
            time.sleep(300)  # noqa: ASYNC251  # this is what is tested

    return before


def noisy(service: Service) -> Callable[[str], Any]:
    """Write to stdout in every way there is."""

    async def before(name: str) -> None:
        if name == "start_turn":
            print("printed", flush=True)  # noqa: T201
            sys.stdout.write("printed too\n")
            os.write(1, b"written\n")
            warnings.warn("warned", stacklevel=1)
            logging.basicConfig()
            logging.warning("logged")
            os.system("echo from a child; cat")  # noqa: ASYNC221  # it inherits what it can
            atexit.register(lambda: os.write(1, b"at exit\n"))
            raise RuntimeError("on purpose")

    return before


HURRIED = ("hurried", "block")
"""How it ends as fast as for a user; else it may take its time: a busy machine loses no answer."""

HOW: dict[str, Callable[[Service], Callable[[str], Any]]] = {"block": block, "noisy": noisy}


async def serve(stdio: Stdio, how: str) -> int:
    """Serve one client."""
    if how not in HURRIED:
        closing.ANSWER_SECONDS = lifetime.WRITE_SECONDS = PATIENCE
        lifetime.LAST_SECONDS = lifetime.ORDER_SECONDS = PATIENCE
    script: Script = [events.Text("a"), asyncio.Event()]
    if how == "flood":
        script = [events.Text("x" * 1000), 0.0001] * 20_000
    service = build_server(fake_assistant(*[script] * 10))
    if how in HOW:
        assistant: Any = service.assistant
        assert isinstance(assistant, FakeAssistant)
        assistant.before = HOW[how](service)
    return await live(service, stdio)


if __name__ == "__main__":
    sys.exit(asyncio.run(serve(keep_stdio(), sys.argv[1] if len(sys.argv) > 1 else "")))
