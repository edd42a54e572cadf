"""API keys that a command prints, such as that of a password manager."""

import contextlib
import os
import signal
import subprocess
import threading
import time

from tiro.errors import ModelNotConfiguredError

KEY_COMMAND_SECONDS = 10.0
"""How long a command that prints an API key may take."""

MAX_OUTPUT_BYTES = 8192
"""A key with some notes below it is shorter by far; what prints more prints no key."""

ENDED = "The api_key_command was not started any more; ask again"


class KeyCommand:
    """A command that prints an API key; a string goes to the shell, a list does not."""

    def __init__(self, command: str | list[str], seconds: float = KEY_COMMAND_SECONDS) -> None:
        self._command, self._seconds = command, seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_told_to_end = False

    def run(self) -> str:
        """The key that it prints; blocks.

        Raises ModelNotConfiguredError without a word of the output, which may be secret.
        """
        process = self._started()
        try:
            return self._key_from(process)
        finally:
            with self._lock:
                self._process = None  # its number may be another one's from now on

    def _key_from(self, process: "subprocess.Popen[bytes]") -> str:
        try:
            output = _output(process, self._seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise ModelNotConfiguredError(
                f"The api_key_command took longer than {self._seconds:g} seconds; unlock it first"
            ) from None  # the cause holds the command, which may be secret
        if len(output) > MAX_OUTPUT_BYTES:
            _kill(process)
            raise ModelNotConfiguredError(
                f"The api_key_command printed more than {MAX_OUTPUT_BYTES:,} bytes; "
                "let it print the key alone"
            )
        return _key_in(output, process.returncode)

    def end(self) -> None:
        """End it and all that it started, also where it has not begun yet; from any thread."""
        with self._lock:
            self._is_told_to_end = True
            if self._process is not None:
                _kill(self._process)

    def _started(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._is_told_to_end:
                raise ModelNotConfiguredError(ENDED)
            try:
                self._process = subprocess.Popen(
                    self._command,
                    shell=isinstance(self._command, str),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                raise ModelNotConfiguredError(
                    f"The api_key_command could not be started ({error.strerror}); correct it"
                ) from error
            return self._process


def _key_in(output: bytes, status: int) -> str:
    """The key in what a command printed; ModelNotConfiguredError where there is none."""
    if status != 0:
        raise ModelNotConfiguredError(
            f"The api_key_command failed with exit code {status}; try it in a terminal"
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
        try:
            with process.stdout:
                read.append(process.stdout.read(MAX_OUTPUT_BYTES + 1))
        except OSError:  # as if it had printed nothing
            read.append(b"")

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
