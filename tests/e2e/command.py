"""`tiro …` run to its end, as a person or a script runs it."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from tests.e2e.home import Home
from tests.e2e.warm import WarmProcess

SECONDS = 30

Tiro = Callable[..., subprocess.CompletedProcess[str]]


def run(
    home: Home,
    *words: str,
    given: str = "",
    env: Mapping[str, str] | None = None,
    warm: WarmProcess | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; forked from the warm process where there is one."""
    if env is None:
        env = home.environment()
    if warm is not None:
        return _forked(home, *words, given=given, env=env, warm=warm)
    return subprocess.run(
        [sys.executable, "-m", "tiro", *words],
        cwd=home.workspace,
        env=env,
        input=given,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def _forked(
    home: Home, *words: str, given: str, env: Mapping[str, str], warm: WarmProcess
) -> subprocess.CompletedProcess[str]:
    stderr, theirs = os.pipe()
    command = warm.fork(env, home.workspace, theirs, words=words)
    os.close(theirs)
    with command.stdout, open(stderr, "rb") as complaints, ThreadPoolExecutor(2) as pool:
        said = [pool.submit(stream.read) for stream in (command.stdout, complaints)]
        try:
            with contextlib.suppress(BrokenPipeError), command.stdin:
                command.stdin.write(given.encode())
            code = command.wait(SECONDS)
        except BaseException:
            command.kill()
            raise
        out, err = (future.result().decode() for future in said)
    return subprocess.CompletedProcess(words, code, out, err)
