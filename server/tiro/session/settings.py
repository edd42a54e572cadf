"""The settings of a session: dotted keys, defaults, and a parent that the session's own shadow."""

import math
from collections.abc import Mapping
from typing import Any

DEFAULTS: dict[str, Any] = {
    "session.mode": "lite",
    "session.limit": {},
    "session.resize.every_n_turns": 8,
    "session.resize.max_messages_text_length": 12000,
    "session.resize.max_keep_messages_count": None,
    "session.memo.enabled": None,
    "session.memo.instruct": [
        "Bring the memo up to date from the given messages.",
        "Keep lasting preferences, constraints and facts that will be of use later.",
        "Add keys or change them as needed.",
        "Return the new memo as one JSON object.",
    ],
    "session.record.input.paths": [],
    "session.record.input.mode": "all",
    "session.record.output.paths": [],
    "session.record.output.mode": "all",
    "session.summary.enabled": True,
    "session.summary.message_buffer_limit": 50,
    "session.summary.message_buffer_min": 10,
    "session.summary.model": None,
}
"""The library's defaults (A2); the shipped server gives others through a parent."""

MODES = ("lite", "memo")


class SessionSettings:
    """Read as `settings["session.mode"]`: own values first, then the parent's, then defaults.

    `own` is the session's part of it, as the session file stores it; it is never changed in place.
    """

    def __init__(
        self, own: Mapping[str, Any], parent: "SessionSettings | Mapping[str, Any] | None" = None
    ) -> None:
        self.own = dict(own)
        self.parent = parent

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a dotted key; nested dicts are read along the dots too."""
        for source in (self.own, self.parent):
            if isinstance(source, SessionSettings):
                found = source.get(key, _MISSING)
            else:
                found = _look_up(source, key) if source else _MISSING
            if found is not _MISSING:
                return found
        return DEFAULTS.get(key, default)

    def __getitem__(self, key: str) -> Any:
        value = self.get(key, _MISSING)
        if value is _MISSING:
            raise KeyError(key)
        return value

    def integer(self, key: str) -> int | None:
        """The value as an int; None means off, what cannot be read as an int is the default."""
        number = _read_integer(self[key])
        if number is _MISSING:
            number = DEFAULTS[key]
        return number  # type: ignore[no-any-return]  # the defaults of numbers are numbers

    def limit(self, name: str) -> int | None:
        """The limit `chars` or `messages` (A2.9); None, 0 or less means off.

        An entry of `session.limit` that cannot be read is as if it were not there (A2.12).
        """
        value = _read_integer(self._limits().get(name, _MISSING))
        if value is _MISSING:
            value = self.integer(f"session.resize.{_LIMIT_KEYS[name]}")
        return value if value is not None and value > 0 else None

    def _limits(self) -> dict[str, Any]:
        """`session.limit` with the parent's entries below the session's own."""
        merged: dict[str, Any] = {}
        for source in (self.parent, self.own):
            if isinstance(source, SessionSettings):
                merged |= source._limits()
            elif source and isinstance(found := _look_up(source, "session.limit"), Mapping):
                merged |= found
        return merged

    def memo_is_enabled(self) -> bool:
        """Whether resizes update the memo: as the user set it, else by the mode (A2.10)."""
        explicit = self["session.memo.enabled"]
        return bool(self["session.mode"] == "memo" if explicit is None else explicit)

    def instructions(self) -> list[str]:
        """What the model is told about the memo, as a list of sentences (A2.4)."""
        value = self["session.memo.instruct"]
        if isinstance(value, str):
            return [value]
        return [str(item) for item in value if item is not None]


def configured(
    own: Mapping[str, Any],
    mode: str | None = None,
    limit: Mapping[str, int | None] | None = None,
    every_n_turns: int | None = None,
) -> dict[str, Any]:
    """Own settings with only what is given changed; limits merge, a mode frees the memo (A2.13)."""
    new = dict(own)
    if mode is not None:
        if mode not in MODES:
            raise ValueError(f"The mode must be one of {', '.join(MODES)}, not {mode!r}")
        new["session.mode"] = mode
        new.pop("session.memo.enabled", None)
    if limit:
        before = new.get("session.limit")
        new["session.limit"] = {**(before if isinstance(before, Mapping) else {}), **limit}
    if every_n_turns is not None:
        new["session.resize.every_n_turns"] = every_n_turns
    return new


def positive_or_none(max_history: int | None) -> int | None:
    """A max_history as it may be: None (off) or at least 1; ValueError otherwise (U1.8)."""
    if max_history is not None and max_history < 1:
        raise ValueError(f"max_history must be at least 1, or None for no limit, not {max_history}")
    return max_history


def is_plain(value: Any) -> bool:
    """Whether JSON holds this value as it is; what is nested too deeply counts as none."""
    try:
        return _is_plain(value)
    except RecursionError:
        return False


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _read_integer(value: Any) -> Any:
    """The value as an int, None as it is, `_MISSING` for what is neither."""
    if value is None:
        return None
    try:
        return _MISSING if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return _MISSING


def _look_up(source: Mapping[str, Any], key: str) -> Any:
    if key in source:
        return source[key]
    value: Any = source
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _MISSING
        value = value[part]
    return value


_MISSING = object()
_LIMIT_KEYS = {"chars": "max_messages_text_length", "messages": "max_keep_messages_count"}
