"""What the rules of an agent say about a path: the one place, for tools and for commands.

A path is decided about by all its names: as it is written, as it really leads, and those of the
same file that rules speak of. A command that reads or writes what a rule names is held to the rule
that a tool would be held to; a rule that names no path (`write: ask`) says nothing about commands.
"""

import fnmatch
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tiro.agents.copies import copied
from tiro.agents.guarded import WRITERS, guarded_name
from tiro.agents.other_names import OtherNames
from tiro.agents.path_patterns import PathSubject, folded, last_parts
from tiro.agents.permissions import NO_RULE, Kind, PermissionDecision, Rules, strictest
from tiro.agents.walks import Budget
from tiro.tools.workspace import Workspace


class Objection(msgspec.Struct, frozen=True):
    """What a rule has against a path in a command."""

    key: str
    subject: PathSubject
    is_ban: bool = False
    """Whether it denies to read it."""
    is_named: bool = True
    """Whether the rule is about this path and few others."""
    is_guarded: bool = False
    """Whether it may be written by no rule but one that names it."""


class PathRights:
    """What rules say about paths, for all that one tool use is about. Asks the disk."""

    def __init__(self, rules: Rules, workspace: Workspace, budget: Budget | None = None) -> None:
        self.roots = workspace.roots()
        self.budget = budget or Budget()
        self._rules = rules
        patterns = sorted({*rules.narrowing_patterns()} - {"*"})
        lasts = {folded(part) for one in patterns for part in last_parts(one)}
        self._lasts = re.compile("|".join(map(fnmatch.translate, sorted(lasts))) or "(?!)")
        self._unnamed = rules.decide("read", None)
        self._is_open = self._unnamed.kind == "allow"
        self._matter: dict[str, bool] = {}
        self._others = OtherNames(patterns, self.roots, self.may_matter)

    def subject(self, path: Path, root: Path | None = None) -> PathSubject:
        """A path as the subject of rules, by this one name, within the first root that it is in."""
        root = root or next((root for root in self.roots if path.is_relative_to(root)), None)
        name = (path if root is None else path.relative_to(root)).as_posix()
        return PathSubject(name, path.as_posix(), tuple(map(str, self.roots)))

    def subjects(self, path: Path, *written: Path) -> list[PathSubject]:
        """All names of what has this real path, those in which it is written first."""
        found: list[PathSubject] = []
        for name in dict.fromkeys([*written, path, *self._others.of(path)]):
            around = [root for root in self.roots if name.is_relative_to(root)]
            found += [self.subject(name, root) for root in around] or [self.subject(name)]
        return found

    def outside(self, path: Path, *written: Path) -> list[PathSubject]:
        """The names outside the workspace of what has a real path there."""
        return [one for one in self.subjects(path, *written) if one.is_outside]

    def reading(self, path: Path) -> PermissionDecision:
        """Whether the text of the file with this real path may be shown."""
        if not self.may_name(path) and not self._others.of(path):
            return self._unnamed
        return strictest(*(self._rules.decide("read", one) for one in self.subjects(path)))

    def against(self, key: str, path: Path) -> Kind:
        """What rules that name it say under a key about what has this real path."""
        if not self.may_name(path) and not self._others.of(path):
            return "allow"
        found = (self._rules.against(key, one) for one in self.subjects(path))
        return strictest(NO_RULE, *filter(None, found)).kind

    def is_inside(self, path: Path) -> bool:
        """Whether a real path lies in the workspace."""
        return any(path.is_relative_to(root) for root in self.roots)

    def objections(
        self, path: Path, *written: Path, reads: bool = True, writes: bool, shows: bool = False
    ) -> Iterator[Objection]:
        """What rules have against a command that reads or writes what has this real path.

        `shows` is for one that does nothing but read: there each rule counts that asks.
        """
        if all(map(self._is_nothing, (path, *written))):
            return
        subjects = self.subjects(path, *written)
        for subject in subjects if reads else ():
            decision = self._rules.decide("read", subject)
            is_asked = shows and decision.kind == "ask" and os.path.isfile(path)
            if decision.kind == "deny" or is_asked or self._rules.against("read", subject):
                is_ban = decision.kind == "deny"
                yield Objection("read", subject, is_ban=is_ban, is_named=decision.by_name)
                break
        if not writes:
            return
        for subject in subjects:
            key = next((key for key in WRITERS if self._rules.against(key, subject)), None)
            if key is not None:
                yield Objection(key, subject)
                return
        inside = next((one for one in subjects if not one.is_outside), None)
        if inside is not None and guarded_name(inside.name):
            yield Objection("write", inside, is_guarded=True)

    def may_matter(self, name: str) -> bool:
        """Whether a rule that denies or asks may name a file or folder like this."""
        found = self._matter.get(name)
        if found is None:
            forms = map(folded, (name, *copied(name)))
            found = self._matter[name] = any(map(self._lasts.match, forms))
        return found

    def may_name(self, path: Path) -> bool:
        """Whether a rule may name a path, or a folder that it lies in."""
        return not self._is_open or any(map(self.may_matter, str(path).split(os.sep)))

    def may_concern(self, entry: os.DirEntry[str]) -> bool:
        """Whether a rule may be against this, while none is against the folder that it is in."""
        return (
            not self._is_open
            or self.may_matter(entry.name)
            or guarded_name(entry.name) is not None
            or self._others.may_have(entry)
        )

    def _is_nothing(self, path: Path) -> bool:
        """Whether no rule can be against what lies here, as its names say; a quick look."""
        if not self._is_open or guarded_name(self.subject(path).name):
            return False
        return not self.may_name(path) and not self._others.of(path)
