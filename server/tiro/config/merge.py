"""Sources of settings merged, the lowest first; every wrong key and value is told with its place.

Each leaf is converted by itself, so that one wrong key costs only its own value: it is reported
with file, line and path, and what stands below it in the order holds. A workspace is not trusted:
its file may set only what `WORKSPACE_MAY_SET` names, and its permission rules only narrow.
"""

import os
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin
from urllib.parse import urlsplit

import msgspec

from tiro.agents.path_patterns import futile_patterns
from tiro.agents.permissions import (
    KEY_OF_TOOL,
    PERMISSION_KEYS,
    PermissionDecision,
    narrowing,
    problem_of,
    understood,
)
from tiro.agents.wording import MAX_TOLD, expected, named, shown, unseen
from tiro.config.misspelt import closest, did_you_mean, hint, meant_path
from tiro.config.settings import Document, Doubts, ProviderConfig, Settings
from tiro.models.address import EXAMPLE, problem_of_address
from tiro.models.model import ProviderSettings

WORKSPACE_MAY_SET = (
    *("agent", "model", "session.max_history", "session.mode", "session.limit", "session.resize"),
    *("turn.max_steps", "permission"),
)
_SECRET_KEYS = frozenset({"api_key", "api_key_command", "headers", "proxy", "base_url", "url"})
"""Values under these keys may hold a secret and are never shown."""


ADDRESSES: dict[str, tuple[str, ...]] = {
    "base_url": ("http", "https"),
    "proxy": ("http", "https", "socks5", "socks5h"),
}
"""The settings of a provider that are addresses, and how they may begin."""

REDIS_EXAMPLE = "redis://host:6379/0"

HIDDEN = "must not hold the control character {}"

COUNTS_AS_DENY = "it counts as deny"


class Source(msgspec.Struct, frozen=True):
    """Settings from one place, in the form of the file."""

    name: str
    tree: Mapping[Any, Any]
    lines: Mapping[tuple[str, ...], int] = {}
    is_workspace: bool = False

    def __repr__(self) -> str:
        return f"Source({self.name!r})"

    def where(self, path: tuple[str, ...]) -> str:
        """The place of a key, for people."""
        line = next(filter(None, (self.lines.get(path[:n]) for n in range(len(path), 0, -1))), None)
        return self.name if line is None else f"{self.name}, line {line}"


UNTIL_CORRECTED = "no model is asked until it is corrected"


class Unclear(msgspec.Struct, frozen=True):
    """What stands where a model should be named."""

    why: str


def in_environment(variable: str) -> str:
    """What a variable of the environment holds, without the quotes that `--env-file` leaves."""
    value = os.environ.get(variable, "").strip()
    for quote in ("'", '"'):
        if len(value) > 1 and value[0] == value[-1] == quote:
            return value[1:-1].strip()
    return value


class Merge:
    """Takes sources, the lowest first, and keeps of each key the last value that was usable."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.broken: list[str] = []
        """The problems of files that cannot be read at all."""
        self.unread: PermissionDecision | None = None
        self._values: dict[str, Any] = {}
        self._workspace_permission: dict[str, Any] = {}
        self._models: list[tuple[Source, str | Unclear | None]] = []
        self._doubts: dict[str, str] = {}
        self._doubt: str | None = None
        self._certain: set[str] = set()
        """Providers that a source above the doubt defines as a whole."""
        self._named_in: dict[str, Source] = {}
        self.named_providers: set[str] = set()

    def take(self, source: Source) -> None:
        """Merge a source over what there is."""
        named = source.tree.get("providers")
        for name, entry in named.items() if isinstance(named, dict) else ():
            if isinstance(entry, dict) and (
                entry.get("api") == "local" or {"api", "base_url"} <= entry.keys()
            ):
                self._certain.add(name)
                self._doubts.pop(name, None)
        self._struct(Document, source.tree, (), source, self._values)
        if "model" in self._values:
            self._models.append((source, self._values.pop("model")))
        self.named_providers |= set(named) if isinstance(named, dict) else set()
        for name in self._values.get("providers", ()):
            self._named_in.setdefault(name, source)

    def settings(self) -> Settings:
        """The merged settings."""
        model = self._model()
        self._values["model"] = None if isinstance(model, Unclear) else model
        document = _build(Document, self._values)
        providers, commands = {}, {}
        for name, entry in document.providers.items():
            provider = self._provider(name, entry)
            if provider is not None:
                providers[name] = provider
            if entry.api_key is None and entry.api_key_command is not None:
                commands[name] = entry.api_key_command
        return Settings(
            providers=providers,
            key_commands=commands,
            workspace_permission=self._workspace_permission,
            unread=self.unread,
            doubts=Doubts(
                everyone=self._doubt,
                certain=frozenset(self._certain if self._doubt else ()),
                model=model.why if isinstance(model, Unclear) else None,
                providers=self._doubts,
            ),
            **{
                field: getattr(document, field)
                for field in Document.__struct_fields__
                if field != "providers"
            },
        )

    def _struct(
        self,
        kind: type[msgspec.Struct],
        given: Any,
        path: tuple[str, ...],
        source: Source,
        into: dict[str, Any],
    ) -> bool:
        """Take every key of a section; False when it is none."""
        if given is not None and not isinstance(given, Mapping):
            self._tell(source, path, f"must be a section with keys, not {_shown(path, given)}")
            return False
        types = {field.name: field.type for field in msgspec.structs.fields(kind)}
        for key, value in (given or {}).items():
            here = (*path, str(key))
            if str(key) not in types:
                is_told = len(self.problems) < MAX_TOLD
                self._tell(source, here, f"is no setting{hint(str(key), types) if is_told else ''}")
            elif source.is_workspace and not _workspace_may_set(here):
                self._tell(source, here, "may not be set by a workspace, only by you")
            else:
                self._value(types[str(key)], value, here, source, into)
        return True

    def _value(
        self, kind: Any, value: Any, here: tuple[str, ...], source: Source, into: dict[str, Any]
    ) -> None:
        """Take one key: a section, a table of sections, a permission table or a leaf."""
        key = here[-1]
        if here == ("permission",):
            self._permission(value, source)
        elif (section := _section_of(kind)) is not None:
            self._struct(section, value, here, source, into.setdefault(key, {}))
        elif (section := _table_of(kind)) is not None:
            table = into.setdefault(key, {})
            if value is not None and not isinstance(value, Mapping):
                self._tell(source, here, f"must be a table of names, not {_shown(here, value)}")
                return
            for name, entry in (value or {}).items():
                if (odd := unseen(str(name))) is not None:
                    self._tell(source, (*here, str(name)), HIDDEN.format(odd))
                    continue
                into_entry = table.get(str(name), {})
                if self._struct(section, entry, (*here, str(name)), source, into_entry):
                    table[str(name)] = into_entry
        elif value is not None or type(None) in get_args(kind):
            self._leaf(kind, value, here, source, into)

    def _leaf(
        self, kind: Any, value: Any, here: tuple[str, ...], source: Source, into: dict[str, Any]
    ) -> None:
        """Take one value, or tell what it must be."""
        key = here[-1]
        if here[0] == "providers" and key in ADDRESSES and value is not None:
            self._address(value, here, source, into)
            return
        if here == ("store", "url") and value is not None:
            into[key] = str(value) or "?"  # no other store is taken instead
            if not _is_redis(into[key]):
                so = "nothing is stored there until it is corrected"
                self._tell(source, here, f"must be an address such as {REDIS_EXAMPLE}", so)
            return
        try:
            taken = msgspec.convert(value, kind)
        except msgspec.ValidationError:
            self._tell(source, here, f"must be {expected(kind)}, not {_shown(here, value)}")
            return
        if (odd := unseen(taken)) is not None:
            self._tell(source, here, HIDDEN.format(odd))
            return
        into[key] = taken

    def _address(
        self, value: Any, here: tuple[str, ...], source: Source, into: dict[str, Any]
    ) -> None:
        """Take an address, also a wrong one: what stands below it is not what was meant."""
        key = here[-1]
        into[key] = value if isinstance(value, str) else "?"  # it is refused when it is asked
        if isinstance(value, str):
            problem = problem_of_address(value, ADDRESSES[key])
        else:
            given = shown(value) if isinstance(value, int | float) else "what is there"
            problem = f"must be an address such as {EXAMPLE}, not {given}"
        if problem is not None:
            self._tell(source, here, problem, "nothing is sent there until it is corrected")

    def _permission(self, given: Any, source: Source) -> None:
        """Take permission rules, key by key; those of a workspace go into a table of their own.

        A denial must not be lost by a typing error: what is no decision counts as deny.
        """
        here: tuple[str, ...] = ("permission",)
        if not isinstance(given, Mapping) and (problem := problem_of(given)) is not None:
            self._tell(source, here, problem, COUNTS_AS_DENY)
            given = "deny"
        table = {"*": given} if isinstance(given, str) else given or {}
        for name, rule in table.items():
            key, here = str(name), ("permission", str(name))
            if (problem := problem_of({key: rule})) is not None:
                self._tell(source, here, problem.partition(": ")[2], COUNTS_AS_DENY)
            rule = understood(rule)
            for pattern, why in futile_patterns(key, rule):
                told = f"has a pattern that can cover nothing: {shown(pattern)} {why}"
                self._tell(source, here, told, "it has no effect")
            if key not in PERMISSION_KEYS:
                self._unknown_key(key, rule, table, source)
            elif not source.is_workspace:
                self._values.setdefault("permission", {})[key] = rule
            else:
                if (narrowed := narrowing(rule)) != rule:
                    self._tell(source, here, "may not allow anything in a workspace, only narrow")
                if narrowed:
                    self._workspace_permission[key] = narrowed

    def _unknown_key(self, key: str, rule: Any, table: Mapping[Any, Any], source: Source) -> None:
        """Tell of a key that there is not; what it forbids holds for the one that was meant."""
        meant = KEY_OF_TOOL.get(key) or closest(key, PERMISSION_KEYS)
        told = f"is no permission key{did_you_mean(meant)}; there are {', '.join(PERMISSION_KEYS)}"
        narrowed = narrowing(rule)
        if meant is None or meant in table or not narrowed:
            self._tell(source, ("permission", key), told)
            return
        self._tell(source, ("permission", key), told, f"what it forbids holds for {meant}")
        self._permission({meant: narrowed}, source)

    def _provider(self, name: str, entry: ProviderConfig) -> ProviderSettings | None:
        """The provider as models are opened with; None, and told, when something is missing."""
        if entry.api is None or (entry.base_url is None and entry.api != "local"):
            missing = "api" if entry.api is None else "base_url"
            self._tell(self._named_in[name], ("providers", name), f"has no {missing}")
            return None
        named = None if entry.api_key or entry.api_key_command else entry.api_key_env
        key = entry.api_key or (in_environment(named) if named else None)
        return ProviderSettings(
            name=name,
            api=entry.api,
            base_url=entry.base_url or "",
            api_key=key or None,
            api_key_env=named,
            headers=entry.headers,
            proxy=entry.proxy,
            timeout_seconds=entry.timeout_seconds,
            default_model=entry.default_model,
            models=entry.models,
        )

    def _model(self) -> str | Unclear | None:
        """The model of the highest source; a workspace may only name a configured provider.

        An unknown one of the user's own stays, so that nothing is sent to another provider
        than they meant.
        """
        for source, model in reversed(self._models):
            if model is None or isinstance(model, Unclear):
                return model
            if model.partition("/")[0] in self._values["providers"]:
                return model
            names = ", ".join(self._values["providers"])
            self.problems.append(
                f"{source.where(('model',))}: model names no configured provider with"
                f" {shown(model)}; write provider/name with one of {names}"
            )
            if not source.is_workspace:
                return model
        return None

    def cannot_read(self, name: str, is_workspace: bool) -> None:
        """Note that rules may be lost: whatever they forbid, nothing is allowed unasked."""
        rule = f"*: ask, since {name} cannot be used"
        source = "workspace" if is_workspace else "config"
        self.unread = self.unread or PermissionDecision("ask", rule, source)

    def doubt(self, source: Source, path: tuple[str, ...], told: str) -> str | None:
        """Note a fault that may change who hears a prompt; what follows, None where it does not."""
        match meant_path(path):
            case ("model",):
                self._models.append((source, Unclear(told)))
                return UNTIL_CORRECTED
            case ("providers", *_) if source.is_workspace:
                return None  # it could not have said so
            case ("providers",):
                self._doubt, self._certain = told, set()
                return UNTIL_CORRECTED
            case ("providers", name) | ("providers", name, "api"):
                self._doubts.setdefault(name, told)
                return f"nothing is sent to {name} until it is corrected"
        return None

    def _tell(
        self, source: Source, path: tuple[str, ...], what: str, so: str = "it is ignored"
    ) -> None:
        """Note one problem as one sentence."""
        told = f"{source.where(path)}: {'.'.join(map(named, path))} {what}"
        self.problems.append(f"{told}; {self.doubt(source, path, told) or so}")


def _build(kind: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """A Struct of values that were converted leaf by leaf."""
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}  # type: ignore[arg-type]
    done = {}
    for key, value in values.items():
        if (section := _section_of(types[key])) is not None:
            done[key] = _build(section, value)
        elif (section := _table_of(types[key])) is not None:
            done[key] = {name: _build(section, entry) for name, entry in value.items()}
        else:
            done[key] = value
    return kind(**done)


def _section_of(kind: Any) -> Any:
    """The Struct that a field is or may be, or None."""
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return next((o for o in options if isinstance(o, type) and issubclass(o, msgspec.Struct)), None)


def _table_of(kind: Any) -> Any:
    """The Struct of a field that is a table from names to sections, or None."""
    return _section_of(get_args(kind)[1]) if get_origin(kind) is dict else None


def _workspace_may_set(path: tuple[str, ...]) -> bool:
    """Whether a key, something in it or the section around it is among WORKSPACE_MAY_SET."""
    key = ".".join(path) + "."
    return any(key.startswith(f"{one}.") or f"{one}.".startswith(key) for one in WORKSPACE_MAY_SET)


def _is_redis(text: str) -> bool:
    """Whether this is the address of a Redis server; a port of 0 is none."""
    try:
        parts = urlsplit(text)
        has_place = bool(parts.path) if parts.scheme == "unix" else parts.port != 0
    except ValueError:
        return False
    return (
        has_place and parts.scheme in ("redis", "rediss", "unix") and text == "".join(text.split())
    )


def _shown(path: tuple[str, ...], value: Any) -> str:
    """A value for people, short; what may hold a secret is not shown."""
    if _SECRET_KEYS & set(path):
        return "what is there"
    return shown(value)
