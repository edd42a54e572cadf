"""Who may write to a live session's files: its lock, held for a turn or for one write (U9.8).

Holds are counted, so that a write inside a turn takes no lock of its own. The lock follows the
session when it moves to other files. Used under the session's own lock, in one process.
"""

from collections.abc import Callable

from tiro.stores.lock import WAIT_SECONDS, remove_holder, wait_for, write_holder
from tiro.stores.session_files import SessionFiles


class Turns:
    """The lock of one live session; `makes_journal` says whether a missing journal is made."""

    def __init__(self, makes_journal: Callable[[], bool]) -> None:
        self.files: SessionFiles | None = None
        self._makes_journal = makes_journal
        self._holds = 0
        self._is_named = False
        self._was_busy = False

    @property
    def is_held(self) -> bool:
        """Whether a turn, or a change that asked for the lock, is going on."""
        return self._holds > 0

    @property
    def is_kept(self) -> bool:
        """Whether it is held, by a lock that others see."""
        return self.is_held and self._makes_journal()

    def move_to(self, files: SessionFiles | None) -> None:
        """Let the lock be that of these files; a hold goes on there."""
        self._give_back()
        if self.files is not None:
            self.files.journal.close()
        self.files = files
        if self.is_held:
            wait_for(self.try_lock)
            if self._is_named:
                self.name_holder()

    def try_hold(self) -> bool:
        """Hold the session if nobody else does; the first hold takes the lock."""
        if not self.is_held and not self.try_lock():
            return False
        self._holds += 1
        return True

    def release(self) -> None:
        """Give one hold back; the last one frees the session."""
        self._holds -= 1
        if not self.is_held:
            self._give_back()
            self._is_named = False

    def name_holder(self) -> None:
        """Say in a file beside the lock who holds it, until it is given back."""
        self._is_named = True
        if self.files is not None and self._makes_journal():
            write_holder(self.files.holder_path)

    def lock_for_one_write(self) -> bool:
        """A second's patience, but not at every change while another process has its turn."""
        if self.is_held:
            return True
        taken = wait_for(self.try_lock, 0.0 if self._was_busy else WAIT_SECONDS)
        self._was_busy = not taken
        return taken

    def unlock_after_write(self) -> None:
        """Give the lock back, unless it is held for longer."""
        if not self.is_held and self.files is not None:
            self.files.journal.unlock()

    def try_lock(self) -> bool:
        """Take the lock if it is free. Where no lock can be had, the signatures must do."""
        if self.files is None or not (self._makes_journal() or self.files.journal.exists()):
            return True
        try:
            return self.files.journal.try_lock()
        except OSError:
            return True

    def rest(self) -> None:
        """Let no file stay open, and no empty journal behind, while nothing is going on."""
        if self.files is None or self.is_held:
            return
        if self.files.journal.signature() is not None and self.try_lock():
            self.files.tidy()
        self.files.journal.close()

    def _give_back(self) -> None:
        if self.files is not None:
            if self._is_named:
                remove_holder(self.files.holder_path)
            self.files.journal.unlock()
