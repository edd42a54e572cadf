"""What other programs of the same user get to see of the server's process."""

import os
import subprocess
import sys

import pytest

from tests.sizes import PATIENCE

PROGRAM = """
import ctypes, os, subprocess, sys
from tiro.protocol import server

if not os.getuid():
    os.setuid(65534)  # root may look into every process
    ctypes.CDLL(None).prctl(4, 1)  # as for any other user
def look(*_):
    subprocess.run(["cat", f"/proc/{os.getpid()}/environ"])
    subprocess.run(["sh", "-c", f"echo forged > /proc/{os.getpid()}/fd/1"])
    subprocess.run(["sh", "-c", "cat /proc/$$/environ > /dev/null && echo children are as always"])
    return 0
server.serve = look
sys.exit(server.main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can close a process to others")
def test_b52_no_program_of_the_user_looks_into_the_server() -> None:
    """Neither its environment, where keys may be, nor the pipe that its frames go through."""
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "SOME_API_KEY": "s3cret-key-of-ours"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert told.returncode == 0, told.stderr
    assert "s3cret" not in told.stdout + told.stderr
    assert "forged" not in told.stdout + told.stderr.replace("forged >", "")
    assert told.stderr.count("denied") == 2
    assert "children are as always" in told.stdout + told.stderr
