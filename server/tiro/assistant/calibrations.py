"""What each model's provider has taught about the size of requests, kept for the next process."""

import logging
import threading
from pathlib import Path

import msgspec

from tiro.session.meter import Calibration, Learned
from tiro.stores.disk import Disk, make_directories, remove_stale, replace_file

FILE_NAME = "calibrations.json"
MAX_MODELS = 200
"""How many models are kept; those used longest ago go first."""

log = logging.getLogger(__name__)


class Calibrations:
    """One calibration a model for the whole process, and a small cache of them on the disk.

    The file may be missing, damaged or deleted at any time: that costs a few reports.
    """

    def __init__(self, directory: Path, disk: Disk | None = None) -> None:
        self._path = directory / FILE_NAME
        self._disk = disk or Disk()
        self._lock = threading.Lock()
        self._kept: dict[str, Learned] | None = None
        self._used: dict[str, Calibration] = {}

    def of(self, model: str) -> Calibration:
        """The calibration of `provider/name`; always the same one."""
        with self._lock:
            if model not in self._used:
                self._used[model] = Calibration(self._read().get(model))
            return self._used[model]

    def save(self) -> None:
        """Keep what was learned, if it is news; never raises for a disk that refuses."""
        with self._lock:
            before = self._read()
            known = {name: used.learned() for name, used in self._used.items()}
            news = {name: learned for name, learned in known.items() if learned is not None}
            if all(before.get(name) == learned for name, learned in news.items()):
                return
            others = {name: learned for name, learned in before.items() if name not in news}
            self._kept = dict([*others.items(), *news.items()][-MAX_MODELS:])
            try:
                make_directories(self._disk, self._path.parent)
                remove_stale(self._path)
                replace_file(self._disk, self._path, msgspec.json.encode(self._kept))
            except OSError as error:
                log.info("What was learned about token counts could not be kept: %s", error)

    def _read(self) -> dict[str, Learned]:
        """What the file holds, read once."""
        if self._kept is None:
            self._kept = {}
            try:
                found = msgspec.json.decode(self._path.read_bytes(), type=dict[str, Learned])
            except (OSError, ValueError):
                return self._kept
            self._kept = {name: learned for name, learned in found.items() if learned.is_sound()}
        return self._kept
