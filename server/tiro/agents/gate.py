"""The one gate: whether a tool use may run, and by which rule.

A tool use is first looked at (`Gate.look`, which asks the disk) and then decided about by the rules
as they are at that moment (`decide`, which asks nothing). The decision is the strictest over all
that the use is about:

* the key of its tool, and that of its effect where the tool goes by a key of its own, each with the
  path as it is written and as it really leads;
* `external_directory` for every path outside the workspace roots, also one in a command;
* each simple command of a command line;
* `doom_loop` when a call ends the third round of the same ones in vain (see `calls`).

An answer "always" is remembered for exactly what was asked about: a file by its real path, so
that it holds in no other workspace, and a command for where its paths led then. No pattern that a
session holds allows anything. The tool is held to the places that were looked at, wherever their
names lead by then.
"""

import posixpath
import shlex
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from tiro.agents.calls import Call, call_of, in_vain
from tiro.agents.command_aims import CommandAim, Rights, command_aims
from tiro.agents.command_rules import CommandSubject
from tiro.agents.other_names import inode_of
from tiro.agents.path_patterns import PathSubject, exact_pattern
from tiro.agents.path_rights import PathRights
from tiro.agents.permissions import (
    Kind,
    Permission,
    PermissionDecision,
    Rules,
    Subject,
    strictest,
    subject_of,
)
from tiro.tools.tool import Effect, Tool
from tiro.tools.workspace import Place, Workspace

EFFECT_KEYS: Mapping[Effect, str] = {"read": "read", "write": "write", "execute": "bash"}
"""The key whose rules hold for an effect."""

KEYS_OF_EFFECT: Mapping[Effect, frozenset[str]] = {
    "read": frozenset({"read", "glob", "grep", "delegate"}),
    "write": frozenset({"edit", "write"}),
    "execute": frozenset({"bash"}),
    "network": frozenset(),
}
"""The keys whose own rules are enough for an effect; whatever goes by another is held to both."""

SEARCHING = frozenset({"glob", "grep"})
"""Keys of tools that go through folders, and leave out what a rule of theirs names."""

REPEATED = "the same {calls} for the third time in a row"
NAMED = "named in a command"
ALSO = "{name} is another name of it"
UNSEEN = "it names more than can be looked at in a second: ask"
COME_UPON = "a command comes upon {name}"
MOST_REASONS = 20
MAX_ABOUT_CHARS = 200
OUTSIDE = "Outside the workspace: {path}"
LINKED = "Other names of the file (hard links) keep the old text: {path}"


class Aim(msgspec.Struct, frozen=True):
    """One thing that a tool use is about: what is decided for a key."""

    key: str
    subject: Subject = None
    exactly: tuple[str, ...] = ("*",)
    """What an answer "always" is remembered by."""
    why: str | None = None
    """What a decision by this key does not tell by itself."""
    asks: str | None = None
    """What asks whatever the rules say."""
    at_most_asks: bool = False
    """What forbids it for other tools asks here."""


class Reason(msgspec.Struct, frozen=True):
    """A decision that mattered, and the command or path that it is about, if it is about one."""

    decision: PermissionDecision
    about: str | None = None


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A tool use that was looked at."""

    tool: Tool
    aims: tuple[Aim, ...]
    places: tuple[Place, ...] = ()
    """Where the paths in its input really lead."""
    linked: tuple[Path, ...] = ()
    """Files that it writes and that have other names."""

    @property
    def path(self) -> Path | None:
        """The real path of the file or folder it is about."""
        return self.places[0].path if self.places else None

    def preview(self, preview: str | None) -> str | None:
        """What the user is shown: the tool's own preview, and what else there is to know of it."""
        told = [OUTSIDE.format(path=place.path) for place in self.places if place.root is None]
        told += [LINKED.format(path=path) for path in self.linked]
        return "\n".join([*told, *([preview] if preview else [])]) or None


class Gate(msgspec.Struct, frozen=True):
    """What decides about the tool uses of one agent."""

    rules: Rules
    workspace: Workspace

    def look(self, tool: Tool, given: dict[str, Any], before: Sequence[Call] = ()) -> Use:
        """What a tool use with a checked input is about.

        `before` are the calls of the turn before this one, oldest first. Asks the disk, so it is
        run in a thread; raises ToolError for what is no path.
        """
        places = self._places(tool, given)
        if tool.permission_key == "bash" and tool.subject_field is not None:
            aims = self._command_aims(tool, given, places[-1])
        else:
            aims = self._plain_aims(tool, given, places)
        call = call_of(tool, tool.name, given, self.workspace.spelled)
        if size := in_vain(call, before):
            why = REPEATED.format(calls="call" if size == 1 else f"{size} calls")
            aims = [*aims, Aim("doom_loop", tool.name, (tool.name, call.digest), why)]
        linked = self._linked(places) if tool.effect == "write" else ()
        return Use(tool=tool, aims=tuple(aims), places=tuple(places), linked=tuple(linked))

    def decide(self, use: Use, remembered: Sequence[Any] = ()) -> PermissionDecision:
        """The strictest decision on all that a use is about.

        `remembered` are the rules of the session, from answers "always".
        """
        decisions = [decision for _, decision in self._decisions(use, remembered)]
        if use.tool.effect != "read":
            decisions += self.rules.doubts()
        found = strictest(*decisions)
        answered = (one for one in decisions if one.source == "session")
        return next(answered, found) if found.kind == "allow" else found  # what was answered counts

    def reasons(self, use: Use, remembered: Sequence[Any] = ()) -> list[Reason]:
        """All that lead to the decision, that itself first; never none, and no flood."""
        decision = self.decide(use, remembered)
        found = [Reason(one, _about(aim)) for aim, one in self._decisions(use, remembered)]
        found += [Reason(decision)] if decision not in (one.decision for one in found) else []
        mattered = [one for one in found if one.decision.kind == decision.kind]
        ordered = sorted(dict.fromkeys(mattered), key=lambda one: one.decision != decision)
        return ordered[:MOST_REASONS]

    def grants(self, use: Use, remembered: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """The rules that an answer "always" adds: just what was asked about."""
        found: list[dict[str, Any]] = []
        for aim, decision in self._decisions(use, remembered):
            if decision.kind == "allow":
                continue
            rule = _rule(use.tool, aim)
            found += [] if rule in found else [rule]
        return found

    def promises(self, use: Use, remembered: Sequence[Any] = ()) -> list[str]:
        """The same rules in words; none where they would not keep the question from coming back."""
        added = self.grants(use, remembered)
        settled = self.decide(use, [*remembered, *added])
        return [self._in_words(rule) for rule in added] if settled.kind == "allow" else []

    def readable(self, use: Use, remembered: Sequence[Any] = ()) -> Callable[[Path], bool]:
        """Whether the file with a real path may be shown by this use; asks the disk.

        `glob` shows no more than its name, which a rule about reading does not hide.
        """
        denials, exact = _remembered(remembered)
        key = use.tool.permission_key
        approved = use.path if key == "read" else None

        @cache
        def rights() -> PathRights:
            return PathRights(self.rules.with_always(denials), self.workspace)

        @cache
        def given() -> Kind:
            return rights().against(key, use.path) if use.path else "allow"

        def may_read(path: Path) -> bool:
            if key in SEARCHING and rights().against(key, path) not in ("allow", given()):
                return False
            if key == "glob":
                return True
            kind = rights().reading(path).kind
            is_granted = path == approved or ("read", str(path)) in exact
            return kind == "allow" or (kind == "ask" and is_granted)

        return may_read

    def _decisions(
        self, use: Use, remembered: Sequence[Any]
    ) -> Iterable[tuple[Aim, PermissionDecision]]:
        denials, exact = _remembered(remembered)
        for aim in use.aims:
            decision = self.rules.with_always(denials).decide(aim.key, aim.subject)
            if aim.asks is not None:
                decision = PermissionDecision("ask", aim.asks)
            rule = _rule(use.tool, aim)
            is_settled = (rule["key"], *aim.exactly) in exact
            if is_settled and not (decision.kind == "deny" and decision.source == "session"):
                decision = self._settled(aim, rule)
            elif aim.at_most_asks and decision.kind != "allow":
                told = f"{decision.rule} ({aim.why})"
                decision = msgspec.structs.replace(decision, kind="ask", rule=told)
            elif decision.kind != "allow":
                decision = _with_why(decision, aim)
            yield aim, decision

    def _settled(self, aim: Aim, rule: Mapping[str, Any]) -> PermissionDecision:
        """The decision about what was answered "always" to, which names the session's rule."""
        always: Any = "allow"
        if isinstance(aim.subject, PathSubject) and not aim.subject.is_outside:
            always = {exact_pattern(aim.subject.name): "allow"}
        decision = self.rules.with_always({aim.key: always}).decide(aim.key, aim.subject)
        if decision.kind == "allow" or aim.at_most_asks:
            return PermissionDecision("allow", self._in_words(rule), "session")
        return _with_why(decision, aim)

    def _in_words(self, rule: Mapping[str, Any]) -> str:
        """A rule that was granted, worded as a decision words its own."""
        key = rule["key"]
        match rule["exactly"]:
            case [name, _] if key == "doom_loop":
                return f"doom_loop: {name} with this input allow"
            case [folder, line]:
                return f"{key}: {line} allow (in {folder})"
            case [folder, line, what]:
                return f"{key}: {line} allow with {_BELOW.get(what, what)} (in {folder})"
            case [path] if (
                posixpath.isabs(path) and (name := self.workspace.named(Path(path))) != path
            ):
                return f"{key}: {name} allow (in the workspace)"
            case exactly:
                return f"{key}: {exactly[0]} allow"

    def _places(self, tool: Tool, given: dict[str, Any]) -> list[Place]:
        """Where the paths of the input lead; for a command, its folder is the last one."""
        paths = [given.get("path", ".")] if tool.subject_field == "path" else []
        if tool.permission_key == "bash":
            paths.append(given.get("cwd", "."))
        return [self.workspace.locate(path) for path in paths]

    def _linked(self, places: Iterable[Place]) -> list[Path]:
        """Those files that have other names, and are replaced when they are written."""
        closed = (one.path for one in places if self.workspace.buffer_of(one.path) is None)
        return [path for path in closed if inode_of(path) is not None]

    def _plain_aims(self, tool: Tool, given: dict[str, Any], places: Sequence[Place]) -> list[Aim]:
        keys = [tool.permission_key]
        if tool.permission_key not in KEYS_OF_EFFECT[tool.effect] and tool.effect in EFFECT_KEYS:
            keys.append(EFFECT_KEYS[tool.effect])
        if not places:
            subject = subject_of(tool, given)
            exactly = ("*",) if subject is None else (subject,)
            return [Aim(key, subject, exactly) for key in keys]
        aims: list[Aim] = []
        rights = PathRights(self.rules, self.workspace)
        for place in places:
            exactly, written = (str(place.path),), self.workspace.full(place.given)
            if place.root is None:
                outside = rights.outside(place.path, written)
                aims += [Aim("external_directory", name, exactly) for name in outside]
            for name in rights.subjects(place.path, written):
                is_other = Path(name.full) not in (place.path, written)
                why = ALSO.format(name=name.name) if is_other else None
                aims += [Aim(key, name, exactly, why) for key in keys]
        return aims

    def _command_aims(self, tool: Tool, given: dict[str, Any], folder: Place) -> list[Aim]:
        """Those of a command line, and of the folder it runs in."""
        aims: list[Aim] = []
        rights = PathRights(self.rules, self.workspace)
        if folder.root is None:
            outside = rights.outside(folder.path)
            aims += [Aim("external_directory", name, (str(folder.path),)) for name in outside]
        command = given[tool.subject_field or ""]
        found = command_aims(command, folder.path, Rights(rights, self._forbids))
        return [*aims, *(self._aim_of(one, folder.path) for one in found)]

    def _aim_of(self, found: CommandAim, folder: Path) -> Aim:
        exactly: tuple[str, ...] = (str(folder), found.line)
        if found.command is not None:
            return Aim("bash", found.command, exactly)
        assert found.path is not None, "an aim is a command or a path"
        exactly = (*exactly, found.bound_to)
        if found.about == "unseen":
            return Aim("bash", None, exactly, asks=UNSEEN)
        if found.objection is None:
            return Aim("external_directory", found.outside, exactly)
        key, subject = found.objection.key, found.objection.subject
        is_met = found.bound_to == found.about
        why = COME_UPON.format(name=subject.name) if is_met else NAMED
        return Aim(key, subject, exactly, why, at_most_asks=True)

    def _forbids(self, command: CommandSubject) -> bool:
        return self.rules.decide("bash", command).kind == "deny"


def _about(aim: Aim) -> str | None:
    """What a decision is about, for people."""
    if isinstance(aim.subject, CommandSubject):
        subject = aim.subject
        words = shlex.join([*subject.wishes, *subject.words]) if subject.is_plain else None
        return words and textwrap.shorten(words, MAX_ABOUT_CHARS, placeholder=" …")
    return aim.subject.name if isinstance(aim.subject, PathSubject) else aim.subject


def _why(aim: Aim) -> str | None:
    """What a decision by this aim's key does not tell by itself."""
    if isinstance(aim.subject, CommandSubject):
        return aim.subject.doubt
    if aim.why is not None:
        return aim.why
    return _about(aim) if aim.key == "external_directory" else None


def _with_why(decision: PermissionDecision, aim: Aim) -> PermissionDecision:
    why = _why(aim)
    return msgspec.structs.replace(decision, rule=f"{decision.rule} ({why})") if why else decision


def _rule(tool: Tool, aim: Aim) -> dict[str, Any]:
    """What a session remembers: it holds for what was asked about and no other tool."""
    key = aim.key if aim.key == "doom_loop" else tool.permission_key
    return {"key": key, "exactly": [*aim.exactly], "decision": "allow"}


def _remembered(rules: Sequence[Any]) -> tuple[Permission, set[tuple[str, ...]]]:
    """What the rules of a session deny, by patterns, and what they allow: exactly what it is."""
    denials: dict[str, dict[str, Any]] = {}
    exact: set[tuple[str, ...]] = set()
    for rule in rules:
        match rule:
            case {"key": key, "exactly": [*exactly], "decision": "allow"}:
                exact.add((str(key), *map(str, exactly)))
            case {"key": key, "decision": "deny"} if "exactly" not in rule:
                denials.setdefault(str(key), {})[str(rule.get("pattern"))] = "deny"
    return denials or None, exact


_BELOW = {
    "outside": "paths outside the workspace",
    "banned": "files that rules are against",
    "unseen": "what could not be looked at",
    "guarded": "guarded files",
}
"""What a command comes upon in folders, in words."""
