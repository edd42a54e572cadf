"""API keys that a command prints, such as that of a password manager."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable

from tiro.errors import ModelNotConfiguredError

KEY_COMMAND_SECONDS = 10.0
"""How long a command that prints an API key may take."""

MAX_OUTPUT_BYTES = 8192
"""A key with some notes below it is shorter by far; what prints more prints no key."""


def run_key_command(
    command: str | list[str],
    seconds: float = KEY_COMMAND_SECONDS,
    on_start: Callable[[Callable[[], None]], None] = lambda kill: None,
) -> str:
    """The API key that a command prints; a string goes to the shell, a list does not.

    Blocks; `on_start` hears how to end it early. Raises ModelNotConfiguredError without a word of
    the output, which may be secret.
    """
    try:
        process = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise ModelNotConfiguredError(
            f"The api_key_command could not be started ({error.strerror}); correct it"
        ) from error
    on_start(lambda: _kill(process))
    try:
        output = _output(process, seconds)
    except subprocess.TimeoutExpired:
        _kill(process)
        raise ModelNotConfiguredError(
            f"The api_key_command took longer than {seconds:g} seconds; unlock it first"
        ) from None  # the cause holds the command, which may be secret
    if len(output) > MAX_OUTPUT_BYTES:
        _kill(process)
        raise ModelNotConfiguredError(
            f"The api_key_command printed more than {MAX_OUTPUT_BYTES:,} bytes; "
            "let it print the key alone"
        )
    if process.returncode != 0:
        raise ModelNotConfiguredError(
            f"The api_key_command failed with exit code {process.returncode}; try it in a terminal"
        )
    key = output.decode("utf-8", "replace").strip()
    if not key:
        raise ModelNotConfiguredError("The api_key_command printed nothing; try it in a terminal")
    return key.splitlines()[0].strip()


def _output(process: "subprocess.Popen[bytes]", seconds: float) -> bytes:
    """All that it prints until it ends, or one byte more than it may; raises TimeoutExpired."""
    deadline = time.monotonic() + seconds
    read: list[bytes] = []

    def keep() -> None:
        assert process.stdout is not None
        with process.stdout:
            read.append(process.stdout.read(MAX_OUTPUT_BYTES + 1))

    reader = threading.Thread(target=keep, daemon=True)  # a pipe has no timeout on Windows
    reader.start()
    reader.join(seconds)
    if not read:
        raise subprocess.TimeoutExpired("", seconds)
    if len(read[0]) <= MAX_OUTPUT_BYTES:
        process.wait(max(0.0, deadline - time.monotonic()))
    return read[0]


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End a command and all that it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
