"""What Linux tells of processes in /proc. Any of them may end at any moment, also while it is told.

One that has ended and was not waited for runs no more, though it still has a number, a parent and
no memory.
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from tests.sizes import PATIENCE

PROC = Path("/proc")
CAN_LOOK = (PROC / "self" / "stat").exists()
"""Whether there is a /proc to look into."""


def is_running(pid: int) -> bool:
    """Whether it runs: it is there and has not ended."""
    fields = _fields(pid)
    return bool(fields) and fields[0] not in ("Z", "X")


def is_known(pid: int) -> bool:
    """Whether its number is still taken: it runs, or nobody has noticed its end."""
    return bool(_fields(pid))


def parent_of(pid: int) -> int | None:
    """The process that started it, or what took its place; None when nothing is known of it."""
    fields = _fields(pid)
    return int(fields[1]) if fields else None


def children_of(pid: int) -> list[int]:
    """Those that it started and has not waited for, ended ones among them.

    All processes are asked for their parent: a list of children, as Linux makes it, leaves some
    out when another one ends meanwhile.
    """
    return sorted(child for child in _pids() if parent_of(child) == pid)


def only_child(pid: int) -> int:
    """The one running process that it has started; it may be about to start it."""
    end = time.monotonic() + PATIENCE
    while len(found := [child for child in children_of(pid) if is_running(child)]) != 1:
        assert time.monotonic() < end, f"{pid} has these children: {found}"
        time.sleep(0.01)
    return found[0]


def wait_over(*pids: int) -> None:
    """Wait until none of them runs: on a busy machine the end of what was killed is to come."""
    end = time.monotonic() + PATIENCE
    while found := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < end, f"{found} still run"
        time.sleep(0.01)


def wait_noticed(pid: int) -> None:
    """Wait until it has ended and its parent has noticed."""
    end = time.monotonic() + PATIENCE
    while is_known(pid):
        assert time.monotonic() < end, f"nobody notices the end of {pid}"
        time.sleep(0.01)


def open_files(pid: int | None = None) -> list[str]:
    """What it, or this process, has open: files by their path."""
    found = []
    folder = PROC / str(pid or "self") / "fd"
    for number in os.listdir(folder):
        try:
            found.append(os.readlink(folder / number))
        except FileNotFoundError:
            continue  # it was closed meanwhile, or was that of the listing
    return found


def command_line(pid: int) -> list[str]:
    """Its words, which every user of this machine can read; none when it has ended."""
    try:
        raw = (PROC / str(pid) / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [os.fsdecode(word) for word in raw.removesuffix(b"\0").split(b"\0")]


def memory_bytes(pid: int) -> int:
    """What it holds in memory."""
    return _status_bytes(pid, "VmRSS")


def peak_memory_bytes(pid: int) -> int:
    """The most that it has held in memory so far."""
    return _status_bytes(pid, "VmHWM")


def processor_ticks(pid: int) -> int:
    """How much it has used of the processor."""
    fields = _fields(pid)
    assert fields, f"{pid} has ended"
    return int(fields[11]) + int(fields[12])


def _status_bytes(pid: int, name: str) -> int:
    status = (PROC / str(pid) / "status").read_text()
    found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found, f"{pid} has ended"
    return int(found[1]) * 1024


def _fields(pid: int) -> list[str]:
    """The fields of its `stat` from its state on; none when it is gone."""
    try:
        stat = (PROC / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return os.fsdecode(stat).rpartition(")")[2].split()


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir(PROC) if name.isdigit())
