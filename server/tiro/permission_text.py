"""A tool use in words: what it is, what "always" would add, and which rule would allow it."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from tiro.screen_text import one_line
from tiro.tools.command_line import parse_command_line

MAX_CELLS = 300
NOBODY = (
    "Nobody is here to be asked, so it was not run; `tiro chat` in a terminal asks. {otherwise}"
)
NO_RULE = "No rule in config.yaml allows just this"
BY_RULE = "To allow it always, put in config.yaml: permission: {{{key}: {patterns}}}"


def named(use: Mapping[str, Any]) -> str:
    """A tool use in a few words."""
    given = use["input"]
    values: list[Any] = list(given.values()) if isinstance(given, dict) else [given]
    words = [v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
    return one_line(" ".join([use["name"], *words]), MAX_CELLS)


def lasting(params: Mapping[str, Any]) -> list[str]:
    """What the answer "always" to a permission request would add, a line each."""
    added = [f"[a]lways adds to this session: {rule}" for rule in params["always"]]
    return added or ["No answer lasts: it is asked about each time"]


def nobody_asked(params: Mapping[str, Any]) -> str:
    """Why it was not run where nobody could be asked, and what can be done about it."""
    found = _patterns(params) if params["always"] else None
    if found is None:
        return NOBODY.format(otherwise=NO_RULE)
    key, patterns = found
    listed = ", ".join(f"{json.dumps(one, ensure_ascii=False)}: allow" for one in patterns)
    shown = f"{{{listed}}}" if patterns else "allow"
    return NOBODY.format(otherwise=BY_RULE.format(key=key, patterns=shown))


def _patterns(params: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """The key and the patterns that allow just this; none where the key has no patterns."""
    key, _, rest = params["rule"].partition(": ")
    given = params["toolUse"]["input"]
    if rest.endswith("(named in a command)"):  # a deny, which no rule lifts
        return None
    if key == "external_directory":
        return key, [rest.partition("(")[2].removesuffix(")")]
    if key == "*":
        key = params["always"][0].partition(":")[0]
    if key == "bash":
        line = parse_command_line(given.get("command", ""))
        is_plain = line.unplain is None and "|" not in line.joints
        return (key, [shlex.join(words) for words in line.commands]) if is_plain else None
    return key, [given["path"]] if isinstance(given.get("path"), str) else []
