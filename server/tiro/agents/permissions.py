"""Which tool use may run: rules, and the decision that names the rule behind it.

A permission set (M5.6) is one decision, or a table from a key (`read`, `grep`, `*`, …) to a
decision or to a list of (pattern, decision). Within one table the key beats `*`, and of a list the
first pattern that matches counts (for paths see `path_patterns`), `*` last. What a pattern denies
of a file it denies of the copies that editors leave of it (see `copies`), unless one before it
names them. Where other commands may hide in one, a `*` that allows beside other patterns asks, and
so does whatever allows any command where one may hide that some table denies. What allows to write
asks about a guarded file (see `guarded`) that it does not name. Precedence across tables:

1. a deny of any table; of a path that is written, also a pattern under the other key for that;
2. the session's own "always" rules;
3. the agent;
4. the configuration;
5. the default set;
6. nobody has an opinion: allow.

What may only narrow comes last: the table of a checked-out repository, and the doubt about rules
that cannot be read. It can turn an allow into ask or deny and never the other way round.
"""

import itertools
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from tiro.agents.command_rules import CommandSubject, subjects_of
from tiro.agents.copies import copied
from tiro.agents.guarded import ASKS, WRITERS, guarded_name, speaks_for
from tiro.agents.path_patterns import PATH_KEYS, PathSubject, fits_exactly, is_meant, too_many
from tiro.agents.wording import choice, shown
from tiro.tools.command_line import parse_command_line
from tiro.tools.patterns import MAX_ALTERNATIVES
from tiro.tools.tool import Tool

Kind: TypeAlias = Literal["allow", "ask", "deny"]
Patterns: TypeAlias = Sequence[tuple[str, Kind]] | Mapping[str, Kind]
Permission: TypeAlias = Kind | Mapping[str, Kind | Patterns] | None
Subject: TypeAlias = str | PathSubject | CommandSubject | None
"""What patterns are tested on: a path, a command, or nothing, which only `*` fits."""

KINDS: tuple[Kind, ...] = ("allow", "ask", "deny")
AGENT = "agent"
"""How the source of a decision begins that is an agent's own rule."""

KEY_OF_TOOL = {
    "read_file": "read",
    "list_files": "read",
    "diagnostics": "read",
    "edit_file": "edit",
    "multi_edit": "edit",
    "write_file": "write",
    "run_command": "bash",
}
"""The key that governs a tool; every other tool's key is its name."""

PERMISSION_KEYS = (
    "read",
    "glob",
    "grep",
    "edit",
    "write",
    "bash",
    "delegate",
    "external_directory",
    "doom_loop",
    "*",
)
"""The keys that a configuration may use."""

SECRET_FILES: tuple[tuple[str, Kind], ...] = (
    ("*.env.example", "allow"),
    ("*.env", "deny"),
    ("*.env.*", "deny"),
    ("*.envrc", "deny"),
    ("*", "allow"),
)
"""Files that hold secrets by custom are neither read nor changed, whatever a rule allows (M5.7)."""

OPEN_SET: dict[str, Any] = {
    "read": SECRET_FILES,
    "edit": SECRET_FILES,
    "write": SECRET_FILES,
    "external_directory": "ask",
    "doom_loop": "ask",
    "*": "allow",
}
STRICT_SET: dict[str, Any] = {
    **OPEN_SET,
    "edit": tuple((p, "ask" if k == "allow" else k) for p, k in SECRET_FILES),
    "write": tuple((p, "ask" if k == "allow" else k) for p, k in SECRET_FILES),
    "bash": "ask",
    "*": "allow",
}
PERMISSION_SETS = {"strict": STRICT_SET, "open": OPEN_SET}


class PermissionDecision(msgspec.Struct, frozen=True):
    """May it run, and which rule says so."""

    kind: Kind
    rule: str
    """For people: key, pattern and decision, such as `read: *.env deny`."""
    source: str = "default"
    """Whose rule it is: session, agent with its name, config, workspace or default."""
    by_name: bool = False
    """Whether a pattern of it names what it is about, other than `*`."""

    def is_of_agent(self) -> bool:
        """Whether another agent's rules may decide otherwise."""
        return self.source.partition(" ")[0] == AGENT


COPY = "{rule} (which holds for a copy of {name} too)"
HIDES = "{rule} (but {pattern} may hide in it)"
NO_RULE = PermissionDecision("allow", "no rule: allow")


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """All tables that hold for one agent in one session, by source."""

    always: Permission = None
    agent: Permission = None
    agent_name: str = ""
    config: Permission = None
    default: Permission = None
    workspace: Permission = None
    """Only narrows."""
    unread: PermissionDecision | None = None
    """What holds at least while rules that somebody wrote cannot be read."""
    caller: "Rules | None" = None
    """The rules of the agent it works for: it may do nothing that these do not allow (M5.9)."""
    lost: PermissionDecision | None = None
    """What holds at least for all but reading while the session's own agent is missing (M4.3)."""

    def decide(self, key: str, subject: Subject) -> PermissionDecision:
        """The decision for a key and the path or command its patterns are tested on."""
        subject = PathSubject(subject) if isinstance(subject, str) else subject
        opinions = self._opinions(key, subject)
        denials = [decision for decision in opinions if decision.kind == "deny"]
        winner = next(iter([*denials, *opinions]), NO_RULE)
        if winner.kind == "allow" and isinstance(subject, CommandSubject):
            winner = self._unless_hidden(winner, key, subject)
        narrower = _in_table(self.workspace, key, subject, "workspace")
        above = None if self.caller is None else self.caller.decide(key, subject)
        others = self._denials_of_other_writers(key, subject)
        return strictest(winner, *filter(None, (narrower, self.unread, above)), *others)

    def against(self, key: str, path: PathSubject) -> PermissionDecision | None:
        """What a rule that names a path says against it; None where none does.

        What asks by default asks about all that is not written by a command.
        """
        opinions = self._opinions(key, path)
        found = [one for one in opinions if one.kind == "deny" and one.by_name]
        found += [one for one in opinions[:1] if one.source != "default"]
        narrower = _in_table(self.workspace, key, path, "workspace")
        above = None if self.caller is None else self.caller.against(key, path)
        found += filter(None, (narrower, above))
        named = [one for one in found if one.by_name and one.kind != "allow"]
        return strictest(*named) if named else None

    def _denials_of_other_writers(self, key: str, subject: Subject) -> Iterator[PermissionDecision]:
        """What the other keys about writing deny of a path by a pattern: it may not be written."""
        if key not in WRITERS or not isinstance(subject, PathSubject):
            return
        for other in (one for one in WRITERS if one != key):
            for table, source in zip(self._tables(), self._sources, strict=True):
                rule = _as_table(table).get(other)
                found = _in_table({other: rule}, other, subject, source) if rule else None
                if found is not None and found.kind == "deny" and found.by_name:
                    yield found

    def narrowing_patterns(self) -> Iterator[str]:
        """The patterns with which some table denies or asks about paths, some more than once."""
        for table in map(_as_table, self._tables()):
            for value in (table.get(key) for key in (*PATH_KEYS, "*")):
                pairs = () if value is None or isinstance(value, str) else _pairs(value)
                yield from (pattern for pattern, kind in pairs if kind != "allow")
        yield from self.caller.narrowing_patterns() if self.caller else ()

    def _opinions(self, key: str, subject: Subject) -> list[PermissionDecision]:
        """What the tables say that may allow, in the order of precedence."""
        tables = zip(self._tables()[:-1], self._sources, strict=False)
        found = (_in_table(table, key, subject, source) for table, source in tables)
        return [decision for decision in found if decision is not None]

    def _tables(self) -> tuple[Permission, ...]:
        return self.always, self.agent, self.config, self.default, self.workspace

    def _unless_hidden(
        self, allowed: PermissionDecision, key: str, subject: CommandSubject
    ) -> PermissionDecision:
        """What allows any command asks where one may hide that another rule denies.

        An answer "always", which is a plain decision, was about this very command.
        """
        if allowed.source == "session" and isinstance(_as_table(self.always).get(key), str):
            return allowed
        tables = self._tables()
        each = zip(tables, self._sources, strict=True)
        of_any = [_in_table(one, key, None, name) for one, name in each]
        if allowed not in (NO_RULE, *of_any):
            return allowed
        denied = next(filter(subject.may_hide, _denied_patterns(tables, key)), None)
        if denied is None:
            return allowed
        rule = HIDES.format(rule=allowed.rule, pattern=denied)
        return msgspec.structs.replace(allowed, kind="ask", rule=rule)

    @property
    def _sources(self) -> tuple[str, ...]:
        """The names of all tables."""
        agent = f"{AGENT} {self.agent_name}".rstrip()
        return "session", agent, "config", "default", "workspace"

    def with_always(self, always: Permission) -> "Rules":
        """The same rules, with these as the session's own "always" rules."""
        caller = self.caller and self.caller.with_always(always)
        return msgspec.structs.replace(self, always=always, caller=caller)

    def doubts(self) -> list[PermissionDecision]:
        """What holds at least for every use that does more than read."""
        above = self.caller.doubts() if self.caller else []
        return [*above, *([self.lost] if self.lost else [])]

    def offers(self, tool: Tool) -> bool:
        """Whether the tool is offered to the model at all: some use of it may run (M5.10)."""
        if any(_denies_all(table, tool.permission_key) for table in self._tables()):
            return False
        return self.caller is None or self.caller.offers(tool)


def decide(
    permission: Permission,
    tool: Tool | str,
    input: Mapping[str, Any],
    *,
    always: Permission = None,
    config: Permission = None,
    default: Permission = None,
) -> PermissionDecision:
    """The decision of an agent's permission set, and of the tables around it, for a tool use."""
    rules = Rules(always=always, agent=permission, config=config, default=default)
    if isinstance(tool, Tool):
        if tool.permission_key != "bash":
            return rules.decide(tool.permission_key, subject_of(tool, input))
        tool = "run_command"
    key = KEY_OF_TOOL.get(tool, tool)
    subject = input.get("command" if key == "bash" else "path")
    if not isinstance(subject, str):
        return rules.decide(key, None)
    if key != "bash":
        return rules.decide(key, subject)
    commands = subjects_of(parse_command_line(subject))
    return strictest(*(rules.decide(key, command) for command in commands))


def subject_of(tool: Tool, input: Mapping[str, Any]) -> str | None:
    """What the patterns are tested on: a field of the input, as the model wrote it."""
    value = input.get(tool.subject_field) if tool.subject_field else None
    return value if isinstance(value, str) else None


def strictest(*decisions: PermissionDecision) -> PermissionDecision:
    """The strictest decision; of equal ones the first."""
    return max(decisions, key=lambda decision: KINDS.index(decision.kind))


def merge(*tables: Permission) -> dict[str, Any]:
    """One table of several: the later wins, key by key; it has one `*`, which comes last.

    A plain decision replaces a list of patterns; in a list too there is one `*`, at its end.
    """
    merged: dict[str, Any] = {}
    for table in tables:
        for key, value in _as_table(table).items():
            merged.pop(key, None)
            merged[key] = value if isinstance(value, str) else _ordered(value)
    if "*" in merged:
        merged["*"] = merged.pop("*")
    return merged


def problem_of(permission: Any) -> str | None:
    """What is wrong with a permission set that somebody wrote, or None."""
    if permission is None or permission in KINDS:
        return None
    if not isinstance(permission, Mapping):
        return f"must be {choice([*KINDS, 'a table'])}, not {shown(permission)}"
    for key, value in permission.items():
        if value in KINDS:
            continue
        if not isinstance(value, Mapping | list | tuple):
            return f"{key}: must be {choice([*KINDS, 'a table of patterns'])}, not {shown(value)}"
        try:
            pairs = _pairs(value)
        except (TypeError, ValueError):
            return f"{key}: must be a table of patterns"
        if not all(pattern for pattern, _ in pairs):
            return f"{key}: must not have an empty pattern"
        if any(too_many(str(pattern)) for pattern, _ in pairs):
            return f"{key}: must not have a pattern with more than {MAX_ALTERNATIVES} alternatives"
        wrong = [kind for _, kind in pairs if kind not in KINDS]
        if wrong:
            return f"{key}: must be {choice([*KINDS])}, not {shown(wrong[0])}"
    return None


def understood(rule: Any) -> Any:
    """A rule of one key with everything in it that is no decision taken for a deny."""
    if rule in KINDS or not isinstance(rule, Mapping | list | tuple):
        return rule if rule in KINDS else "deny"
    try:
        pairs = _pairs(rule)
    except (TypeError, ValueError):
        return "deny"
    if not all(pattern and not too_many(str(pattern)) for pattern, _ in pairs):
        return "deny"
    return {str(pattern): kind if kind in KINDS else "deny" for pattern, kind in pairs}


def narrowing(rule: Any) -> Any:
    """What is left of a rule without what it allows."""
    if isinstance(rule, str):
        return None if rule == "allow" else rule
    pairs = rule.items() if isinstance(rule, Mapping) else rule
    return {pattern: kind for pattern, kind in pairs if kind != "allow"}


def _as_table(permission: Permission) -> Mapping[str, Any]:
    if permission is None:
        return {}
    return {"*": permission} if isinstance(permission, str) else permission


def _pairs(patterns: Any) -> list[tuple[str, Kind]]:
    if isinstance(patterns, Mapping):
        return list(patterns.items())
    return [(str(pattern), kind) for pattern, kind in patterns]


def _ordered(patterns: Any) -> list[tuple[str, Kind]]:
    """The pairs with their first `*`, which is the fallback, at the end."""
    pairs = _pairs(patterns)
    stars = [index for index, (pattern, _) in enumerate(pairs) if pattern == "*"]
    if not stars:
        return pairs
    fallback = pairs[stars[0]]
    return [pair for pair in pairs if pair[0] != "*"] + [fallback]


def _in_table(
    permission: Permission, key: str, subject: Subject, source: str
) -> PermissionDecision | None:
    """The single decision of one table, or None when it has no opinion."""
    table = _as_table(permission)
    for name in (key, "*"):
        value = table.get(name)
        if value in KINDS:
            decision = PermissionDecision(value, f"{name}: {value}", source)
            return _guarding(decision, key, "*", subject)
        pairs = _ordered(value or ())
        earlier = list(itertools.takewhile(lambda pair: not _matches(*pair, subject), pairs))
        denied = _denied_copy(earlier, name, subject, source)
        if denied is not None:
            return denied
        if len(earlier) < len(pairs):
            pattern, kind = pairs[len(earlier)]
            if pattern == "*" and kind == "allow" and len(pairs) > 1 and _is_unclear(subject):
                kind = "ask"
            rule = f"{name}: {pattern} {kind}"
            decision = PermissionDecision(kind, rule, source, by_name=pattern != "*")
            return _guarding(decision, key, pattern, subject)
    return None


def _denied_copy(
    pairs: Sequence[tuple[str, Kind]], key: str, subject: Subject, source: str
) -> PermissionDecision | None:
    """The deny of a file of which this is a copy, by patterns that do not name the copy."""
    if not pairs or not isinstance(subject, PathSubject):
        return None
    for original in copied(subject.name):
        fitting = (pair for pair in pairs if _matches(*pair, subject.beside(original)))
        pattern, kind = next(fitting, ("", "allow"))
        if kind == "deny":
            rule = COPY.format(rule=f"{key}: {pattern} deny", name=original)
            return PermissionDecision("deny", rule, source, by_name=True)
    return None


def _guarding(
    decision: PermissionDecision, key: str, pattern: str, subject: Subject
) -> PermissionDecision:
    """The decision of a pattern, which allows to write no guarded file that it does not name."""
    if decision.kind != "allow" or key not in WRITERS or not isinstance(subject, PathSubject):
        return decision
    name = guarded_name(posixpath.normpath(subject.name))
    if name is None or speaks_for(pattern, name):
        return decision
    rule = ASKS.format(rule=decision.rule, name=name)
    return PermissionDecision("ask", rule, decision.source)


def _matches(pattern: str, kind: Kind, subject: Subject) -> bool:
    if pattern == "*":
        return True
    if isinstance(subject, CommandSubject):
        return subject.is_covered_by(pattern) if kind == "allow" else subject.may_be(pattern)
    if not isinstance(subject, PathSubject):
        return False
    return (fits_exactly if kind == "allow" else is_meant)(pattern, subject)


def _is_unclear(subject: Subject) -> bool:
    return isinstance(subject, CommandSubject) and subject.is_unclear


def _denied_patterns(tables: Sequence[Permission], key: str) -> Iterator[str]:
    """What some table denies under a key, but for all of it."""
    for table in map(_as_table, tables):
        for value in (table.get(key), table.get("*")):
            pairs = [] if value is None or isinstance(value, str) else _pairs(value)
            yield from (pattern for pattern, kind in pairs if kind == "deny" and pattern != "*")


def _denies_all(permission: Permission, key: str) -> bool:
    """Whether a table denies every use of a key."""
    if permission is None:  # as most are, and this is asked of each at every tool
        return False
    table = _as_table(permission)
    value = table.get(key, table.get("*"))
    if value is None or isinstance(value, str):
        return value == "deny"
    pairs = _ordered(value)
    return bool(pairs) and pairs[-1][0] == "*" and all(kind == "deny" for _, kind in pairs)
