"""`tiro serve`: the process that an editor starts and talks to over stdio."""

import asyncio
import ctypes
import functools
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tiro.assistant.assistant import Assistant
from tiro.protocol.frames import Stdio, keep_stdio
from tiro.protocol.lifetime import Listener, live
from tiro.protocol.log import ProcessLog
from tiro.protocol.service import OpenAssistant, build_server

if TYPE_CHECKING:
    from tiro.protocol.recorded import RecordedConnection

PR_SET_DUMPABLE = 4
MAX_DIGITS = 100_000
"""Integers of any sensible size are read and written; Python's own limit is 4,300 digits."""


def main(stdio: Stdio | None = None, recorded: "RecordedConnection | None" = None) -> int:
    """Serve one client over stdin and stdout; the exit code of the process.

    Whoever has kept the two for frames before importing this module hands them over.
    """
    _close_to_other_programs()
    stdio, log = stdio or keep_stdio(), ProcessLog()
    recorder = recorded.recorder if recorded else None

    def keep_out(secrets: Iterable[str]) -> None:
        known = list(secrets)
        log.keep_out(known)
        if recorder is not None:
            recorder.keep_out(known)

    try:
        open_assistant = functools.partial(Assistant, observer=recorder, keep_out=keep_out)
        return serve(stdio, open_assistant, recorded, log)
    finally:
        if recorder is not None:
            recorder.close()
        log.close()


def serve(
    stdio: Stdio,
    open_assistant: OpenAssistant,
    listener: Listener | None = None,
    log: ProcessLog | None = None,
) -> int:
    """Serve one client over these descriptors; a log that is given follows the settings."""
    sys.set_int_max_str_digits(MAX_DIGITS)
    return asyncio.run(_serve(stdio, open_assistant, listener, log))


async def _serve(
    stdio: Stdio,
    open_assistant: OpenAssistant,
    listener: Listener | None,
    log: ProcessLog | None,
) -> int:
    service = build_server(open_assistant)
    if log is not None:
        log.follow(service.assistant.setup.settings.log)
        service.greeting.on_settings = lambda settings: log.follow(settings.log)
    return await live(service, stdio, listener)


def _close_to_other_programs() -> None:
    """Let no program of the same user look into this process: its keys, frames and memory.

    Where the kernel can do that; root may look all the same. There is no core dump either.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)
