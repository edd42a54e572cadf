"""`tiro …` run to its end, as a person or a script runs it."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from tests.e2e.home import Home
from tests.e2e.warm import WarmProcess
from tests.sizes import PATIENCE

Tiro = Callable[..., subprocess.CompletedProcess[str]]


def run(
    home: Home,
    *words: str,
    given: str = "",
    env: Mapping[str, str] | None = None,
    stdout: IO[Any] | None = None,
    stderr: IO[Any] | None = None,
    warm: WarmProcess | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; forked from the warm process where there is one.

    With a `stdout` or `stderr` it writes there, and nothing of that is in the result.
    """
    if env is None:
        env = home.environment()
    if warm is not None:
        return _forked(home, words, given, env, stdout, stderr, warm)
    return subprocess.run(
        [sys.executable, "-m", "tiro", *words],
        cwd=home.workspace,
        env=env,
        input=given,
        stdout=subprocess.PIPE if stdout is None else stdout,
        stderr=subprocess.PIPE if stderr is None else stderr,
        text=True,
        timeout=PATIENCE,
    )


def _forked(
    home: Home,
    words: Sequence[str],
    given: str,
    env: Mapping[str, str],
    stdout: IO[Any] | None,
    stderr: IO[Any] | None,
    warm: WarmProcess,
) -> subprocess.CompletedProcess[str]:
    ours, theirs = os.pipe()
    out_to = -1 if stdout is None else stdout.fileno()
    err_to = theirs if stderr is None else stderr.fileno()
    command = warm.fork(env, home.workspace, err_to, words=words, stdout=out_to)
    os.close(theirs)
    with command.stdout, open(ours, "rb") as complaints, ThreadPoolExecutor(2) as pool:
        said = [pool.submit(stream.read) for stream in (command.stdout, complaints)]
        try:
            with contextlib.suppress(BrokenPipeError), command.stdin:
                command.stdin.write(given.encode())
            code = command.wait(PATIENCE)
        except BaseException:
            command.kill()
            raise
        out, err = (future.result().decode() for future in said)
    return subprocess.CompletedProcess(words, code, out, err)
