"""Agents as Markdown files: front matter says what one is, the text below is its prompt (M5.11).

    ---
    description: Reviews changes
    tools: [read, grep, glob]
    ---
    You review what somebody else wrote …

The file's name is the agent's. A file with a wrong rule or tool is not loaded: it might allow what
was meant to be forbidden; any other wrong key costs only its own value. All of it is told at once.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import msgspec

from tiro.agents.agent_info import AgentInfo, Mode
from tiro.agents.options import faults_of, usable_options
from tiro.agents.path_patterns import futile_patterns
from tiro.agents.permissions import (
    KEY_OF_TOOL,
    PERMISSION_KEYS,
    Kind,
    Patterns,
    Permission,
    problem_of,
)
from tiro.agents.settings_file import (
    UnreadableFileError,
    UnusableFileError,
    not_there,
    read_whole,
)
from tiro.agents.wording import MAX_TOLD, choice, expected, first, named, shown, unseen
from tiro.agents.yaml_tree import YamlTree, parse_yaml

MAX_FILES = 200
"""Of one folder: each is read and compared with the others."""

TOOL_KEYS = tuple(
    key for key in PERMISSION_KEYS if key not in ("external_directory", "doom_loop", "*")
)
COLOR = msgspec.Meta(
    pattern=r"^(#[0-9a-fA-F]{3}|#[0-9a-fA-F]{6}|[a-zA-Z]+)$",
    description="a name such as teal, or '#rrggbb' in quotes",
)
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


class FrontMatter(msgspec.Struct, frozen=True, kw_only=True):
    """What may stand there, besides `tools` and `permission`."""

    description: str = ""
    mode: str = "all"
    hidden: bool = False
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    color: Annotated[str, COLOR] = ""
    model: str | None = None
    steps: Annotated[int, msgspec.Meta(ge=1)] | None = None
    options: dict[str, Any] = {}


class AgentFiles(msgspec.Struct, frozen=True):
    """The agents of one folder, in the order of their names, and what is wrong with its files."""

    agents: list[AgentInfo]
    problems: list[str]
    is_whole: bool = True
    """Whether the disk gave out every file: what it did not must be read again."""


def read_agents(folder: Path, root: Path | None = None) -> AgentFiles:
    """Read `*.md` of a folder; never raises for what somebody wrote.

    `root` is the workspace that the folder belongs to: its files must lie in it, also where a link
    leads, and what their rules allow is asked about.
    """
    agents: list[AgentInfo | None] = []
    problems: list[str] = []
    files = _files(folder, problems)
    is_whole = not problems
    for path in files:
        try:
            agents.append(_read_agent(path, root, problems))
        except UnusableFileError as error:
            problems.append(f"{path}{error}; the agent is not loaded")
            is_whole = is_whole and not isinstance(error, UnreadableFileError)
    found = [agent for agent in agents if agent is not None]
    return AgentFiles(found, first(problems), is_whole)


def asking(permission: Permission) -> Permission:
    """The rules with every allow turned into ask."""
    if permission is None or isinstance(permission, str):
        return permission and _asked(permission)
    return {key: _asking(rule) for key, rule in permission.items()}


def _asking(rule: Kind | Patterns) -> Kind | Patterns:
    if isinstance(rule, str):
        return _asked(rule)
    pairs = rule.items() if isinstance(rule, Mapping) else rule
    return [(str(pattern), _asked(kind)) for pattern, kind in pairs]


def _asked(kind: Kind) -> Kind:
    return "ask" if kind == "allow" else kind


def _files(folder: Path, problems: list[str]) -> list[Path]:
    try:
        # Emacs leaves a link with `.#` beside a file that is being edited
        files = sorted(p for p in folder.iterdir() if p.suffix == ".md" and p.name[:2] != ".#")
    except (FileNotFoundError, NotADirectoryError):
        if (why := not_there(folder)) is not None:
            problems.append(f"{folder}{why}; no agent of it is loaded")
        return []
    except OSError as error:
        problems.append(f"{folder} cannot be read ({error.strerror}); no agent of it is loaded")
        return []
    if len(files) > MAX_FILES:
        problems.append(f"{folder} holds more than {MAX_FILES} agents; the others are not loaded")
    return files[:MAX_FILES]


def _read_agent(path: Path, root: Path | None, problems: list[str]) -> AgentInfo | None:
    text = read_whole(path, root)
    if text is None:
        return None
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise UnusableFileError(" has no front matter between two lines of ---")
    front = _front_matter(found[1])
    fields = _fields(path, front, problems)
    if "options" in fields:
        fields["options"] = _options(path, front, fields["options"], problems, is_own=root is None)
    permission, faults = _permission(front.tree)
    if faults:
        problems += [f"{path}{fault}; the agent is not loaded" for fault in faults]
        return None
    problems += _futile(path, permission)
    return AgentInfo(
        name=path.stem,
        mode=_mode(path, front, fields.pop("mode", "all"), problems),
        prompt=text[found.end() :].strip(),
        permission=permission if root is None else asking(permission),
        **fields,
    )


def _front_matter(text: str) -> YamlTree:
    try:
        front = parse_yaml("\n" + text)  # the line of the dashes counts too
    except ValueError as error:
        raise UnusableFileError(str(error)) from error
    if front.tree is None:
        return msgspec.structs.replace(front, tree={})
    if not isinstance(front.tree, dict):
        raise UnusableFileError(": its front matter must hold keys and values")
    twice = next((path for path in front.repeated if path[0] in _RULE_KEYS), None)
    if twice is not None:
        raise UnusableFileError(f", line {front.lines[twice]}: {'.'.join(twice)} is given twice")
    return front


def _fields(path: Path, front: YamlTree, problems: list[str]) -> dict[str, Any]:
    """The values that are usable; the others are told and left out."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(FrontMatter)}
    fields: dict[str, Any] = {}
    for key, value in front.tree.items():
        if key in _RULE_KEYS:
            continue
        where = f"{path}, line {front.lines.get((str(key),), 1)}: {named(str(key))}"
        if key not in kinds:
            is_told = len(problems) < MAX_TOLD
            meant = _meant(key, [*kinds, *_RULE_KEYS]) if is_told else ""
            problems.append(f"{where} says nothing about an agent{meant}; it is ignored")
            continue
        try:
            taken = msgspec.convert(value, kinds[key])
            if (odd := unseen(taken)) is None:
                fields[key] = taken
            else:
                problems.append(f"{where} must not hold the control character {odd}; it is ignored")
        except msgspec.ValidationError:
            told = f"must be {expected(kinds[key])}, not {shown(value)}"
            problems.append(f"{where} {told}; it is ignored")
    return fields


def _options(
    path: Path, front: YamlTree, given: dict[str, Any], problems: list[str], *, is_own: bool
) -> dict[str, Any]:
    """The parameters that are sent; the others are told and left out."""
    for name, fault in faults_of(given, is_own=is_own):
        line = front.lines.get(("options", name), 1)
        problems.append(f"{path}, line {line}: options.{name} {fault}; it is ignored")
    return usable_options(given, is_own=is_own)


def _mode(path: Path, front: YamlTree, given: str, problems: list[str]) -> Mode:
    """Who may ask it; what is no mode is told, and taken for all."""
    for mode in get_args(Mode):
        if given.strip().lower() == mode:
            return cast("Mode", mode)
    told = f"must be {choice(get_args(Mode))}, not {shown(given)}"
    problems.append(
        f"{path}, line {front.lines.get(('mode',), 1)}: mode {told}; it is taken for all"
    )
    return "all"


_RULE_KEYS = ("permission", "permissions", "tools")


def _permission(tree: Mapping[str, Any]) -> tuple[Permission, list[str]]:
    """The rules, less every tool that is not named where tools are; what is wrong with them."""
    given = [key for key in _RULE_KEYS[:2] if tree.get(key) is not None]
    permission = tree[given[0]] if given else None
    denied, faults = _denied(tree.get("tools"))
    faults = [*(fault for key in given for fault in _faults(key, tree[key])), *faults]
    if len(given) == 2:
        faults.insert(0, " has both permission and permissions")
    if faults or not denied:
        return permission, faults
    table = {"*": permission} if isinstance(permission, str) else permission or {}
    return {**table, **dict.fromkeys(denied, "deny")}, []


def _faults(name: str, permission: Any) -> Iterator[str]:
    """What is wrong with the rules that stand under this name."""
    rules = permission.items() if isinstance(permission, Mapping) else [(None, permission)]
    for key, rule in rules:
        if key is not None and key not in PERMISSION_KEYS:
            yield f": {name}: {key} is no permission key{_meant(key, PERMISSION_KEYS)}"
        elif (problem := problem_of(rule if key is None else {key: rule})) is not None:
            yield f": {name}: {problem}"


def _futile(path: Path, permission: Permission) -> Iterator[str]:
    """What is said of patterns that can cover nothing."""
    for key, rule in permission.items() if isinstance(permission, Mapping) else ():
        for pattern, why in futile_patterns(key, rule):
            told = f"a pattern can cover nothing: {shown(pattern)} {why}; it has no effect"
            yield f"{path}: permission: {key}: {told}"


def _denied(tools: Any) -> tuple[Sequence[str], list[str]]:
    """The keys that a list of tools leaves out, or a table of them sets to false; what is wrong."""
    if tools is None:
        return [], []
    if isinstance(tools, str):
        tools = [name.strip() for name in tools.split(",")]
    if isinstance(tools, list):
        chosen = {str(name): True for name in tools}
    elif isinstance(tools, Mapping) and all(isinstance(on, bool) for on in tools.values()):
        chosen = {"*": True} | {str(name): on for name, on in tools.items()}
    else:
        return [], [": tools must be a list of tools, or a table of true and false"]
    others = chosen.pop("*", False)
    unknown = [name for name in chosen if KEY_OF_TOOL.get(name, name) not in TOOL_KEYS]
    if unknown:
        return [], [f": there is no tool {name!r}{_meant_tool(name)}" for name in unknown]
    off = {KEY_OF_TOOL.get(name, name) for name, on in chosen.items() if not on}
    on = {KEY_OF_TOOL.get(name, name) for name in chosen} - off
    return [key for key in TOOL_KEYS if key in off or not (others or key in on)], []


def _meant_tool(name: str) -> str:
    return _meant(name, [*TOOL_KEYS, *KEY_OF_TOOL]) or f"; name {choice(TOOL_KEYS)}"


def _meant(word: Any, words: Iterable[str]) -> str:
    """The nearest of these words, as a part of a sentence; empty where none is near."""
    near = difflib.get_close_matches(str(word), words, n=1)
    return f" (did you mean {near[0]}?)" if near else ""
