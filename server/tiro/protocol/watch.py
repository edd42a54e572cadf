"""Who ends the process when the editor is gone: threads that need neither loop nor main thread."""

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

POLL_SECONDS = 0.25


class EditorWatch:
    """A thread that notices a dead editor or a stdout that nobody reads any more, and says so once.

    `on_gone` runs in that thread. On Windows only the closed stdin tells; the reader sees that.
    """

    def __init__(self, frames_fd: int, on_gone: Callable[[], None]) -> None:
        self._frames_fd, self._on_gone = frames_fd, on_gone
        self._pid: int | None = None
        self._thread = threading.Thread(target=self._run, name="tiro-watch", daemon=True)

    def start(self) -> None:
        """Watch stdout; the editor too, once its process id is known."""
        if hasattr(select, "poll"):
            self._thread.start()

    def watch_process(self, pid: int | None) -> None:
        """Watch the editor's process."""
        self._pid = pid

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._frames_fd, 0)  # errors and hang-ups are always reported
        while not any(
            flags & (select.POLLERR | select.POLLNVAL)
            for _, flags in poll.poll(1000 * POLL_SECONDS)
        ):
            if self._pid is not None and not is_alive(self._pid):
                break
        self._on_gone()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended but was not waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # it is somebody else's
    with contextlib.suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
    return True


def end_process_after(seconds: float, exit_code: Callable[[], int]) -> None:
    """End this process and its children at that time, if they are still there then."""

    def end() -> None:
        time.sleep(seconds)
        end_children()
        os._exit(exit_code())

    threading.Thread(target=end, name="tiro-end", daemon=True).start()


def end_children() -> None:
    """Kill what this process started and did not end; only where /proc tells who that is."""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """The processes below one, deepest first."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, children.read_text(encoding="ascii").split()):
                found += [*descendants(child), child]
    return found
