"""Which processes are alive, as far as one can know: those of this start of this machine."""

import hashlib
import os
import sys
import time
from pathlib import Path

LEFT_SECONDS = 86_400.0
"""What another machine made, or this one before its last start, is left behind after a day."""


def is_alive(pid: int) -> bool:
    """Whether a process with this number runs on this machine."""
    if sys.platform == "win32":
        return True  # asking there would end the process; stale files stay until a Unix sees them
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def machine() -> str | None:
    """What tells this start of this machine from others, and containers on it from each other."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return None  # the numbers there are not ours
        spaces = [os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "time")]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        return None
    return "/".join([boot, *spaces])


def mark() -> str:
    """The same in few letters for the name of a file; empty where that is not known."""
    found = machine()
    return f"m{hashlib.blake2s(found.encode(), digest_size=4).hexdigest()}" if found else ""


def is_left(path: Path) -> bool:
    """Whether nobody has touched a file for a day; False where it is gone."""
    try:
        return time.time() - os.stat(path).st_mtime > LEFT_SECONDS
    except OSError:
        return False
