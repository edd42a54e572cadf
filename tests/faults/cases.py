"""Every fault at every place, each tried in the use of the product that comes there first."""

import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tests.e2e.home import SERVER, Home
from tests.e2e.provider import Provider
from tests.e2e.warm import WarmProcess
from tests.faults import uses
from tests.faults.places import Place, place_at
from tests.faults.stage import Seen, Stage, answer

FAULTS: dict[str, tuple[str, ...]] = {
    "open": ("EACCES", "EMFILE"),
    "read": ("EIO",),
    "write": ("ENOSPC", "EIO", "short", "kill"),
    "fsync": ("EIO", "kill"),
    "fdatasync": ("EIO", "kill"),
    "ftruncate": ("EIO", "kill"),
    "replace": ("ENOSPC", "kill"),
    "rename": ("ENOSPC", "kill"),
    "link": ("ENOSPC", "kill"),
    "unlink": ("EACCES", "kill"),
    "mkdir": ("EROFS", "kill"),
    "rmdir": ("EIO", "kill"),
    "execute": ("ENOSPC", "EBUSY", "kill"),
    "connect": ("EACCES", "EBUSY"),
    "start": ("EAGAIN",),
    "flock": ("ENOLCK",),
    "lstat": ("EIO",),
    "scandir": ("EIO",),
    "socketpair": (),
    "pipe": ("EMFILE",),
    "chmod": ("EPERM",),
    "utime": ("EPERM",),
    "fchmod": ("EPERM",),
    "recv": ("ECONNRESET", "ETIMEDOUT"),
    "send": ("EPIPE", "ECONNRESET"),
}
"""By operation; others, which only look, fail with those of `LOOKS`."""
LOOKS = ("EACCES",)
TO_THE_NETWORK = ("ECONNREFUSED", "ENETUNREACH", "ETIMEDOUT", "EMFILE")


@dataclass(frozen=True)
class Case:
    """One fault of one operation at one place, and the use that comes there."""

    place: Place
    at: tuple[str, int, int]
    operation: str
    fault: str
    use: str


class Row(msgspec.Struct, frozen=True):
    """What became of a case."""

    place: str
    operation: str
    fault: str
    use: str
    told: dict[str, str]
    """By step: what was seen that is not seen without the fault."""
    lost: list[str]
    """What had been acknowledged and was not there afterwards."""
    faults: list[str]
    """An end, a hang, a traceback: what must never be."""
    is_hit: bool


class Theatre:
    """One provider, one warm process and two homes, for many stages one after the other."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tiro-faults-"))
        self.provider = Provider().__enter__()
        self.warm = WarmProcess(f"{SERVER}{os.pathsep}{SERVER.parent}")
        root = self.folder / "stage"
        self.home = home = Home(root / "home", self.provider)
        self.provider.otherwise(answer)
        uses.furnish(home)
        shutil.copytree(root, self.folder / "new", symlinks=True)
        uses.live(root, home, self.warm)
        shutil.copytree(root, self.folder / "lived in", symlinks=True)

    def play(self, use: str, fault: dict[str, Any] | None = None) -> tuple[Seen, list[list[Any]]]:
        """A use on a stage of its own; what was seen, and the places that were met."""
        root = self.folder / "stage"
        shutil.rmtree(root)
        kind = "lived in" if use in uses.LIVED_IN else "new"
        shutil.copytree(self.folder / kind, root, symlinks=True)
        self.provider.reset()
        self.provider.otherwise(answer)
        stage = Stage(root, self.home, self.warm, fault)
        uses.run(use, stage)
        return stage.finish(), stage.reached

    def close(self) -> None:
        """End what was started, and leave nothing behind."""
        self.provider.__exit__(None, None, None)
        self.warm.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def cases(theatre: Theatre, names: Iterable[str] = uses.USES) -> tuple[list[Case], dict[str, Seen]]:
    """Every fault at every place that these uses come to, and each use without one."""
    found, wholes = dict[tuple[Place, str], list[Case]](), dict[str, Seen]()
    for use in names:
        wholes[use], met = theatre.play(use)
        for file, line, column, operation in met:
            place = place_at(file, line, column)
            if (place, operation) not in found:
                kinds = FAULTS.get(operation, LOOKS)
                if operation == "fstat" and place.call.endswith("run"):
                    kinds = ()  # of the event loop, about a pipe that it has just made
                if operation == "connect" and not line:
                    kinds = TO_THE_NETWORK
                at = (file, line, column)
                found[place, operation] = [Case(place, at, operation, kind, use) for kind in kinds]
    return [case for key in sorted(found) for case in found[key]], wholes


def outcome(theatre: Theatre, case: Case, whole: Seen) -> Row:
    """What became of a case, beside the same use without a fault."""
    fault = {"place": case.at, "operation": case.operation, "fault": case.fault}
    seen, reached = theatre.play(case.use, fault)
    told = {} if case.fault == "kill" else seen.told
    return Row(
        place=str(case.place),
        operation=case.operation,
        fault=case.fault,
        use=case.use,
        told={step: text for step, text in told.items() if text != whole.told.get(step)},
        lost=sorted(seen.lost),
        faults=seen.faults,
        is_hit=["hit"] in reached,
    )
