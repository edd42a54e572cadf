"""A tool use in words: what it is, what "always" would add, and which rule would allow it."""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from tiro.screen_text import counted, one_line
from tiro.tools.command_line import parse_command_line

MAX_CELLS = 300

COMMAND = "run_command"
_ENDED = re.compile(r"\[(exit code \d+|ended by the signal \w+|timed out after \d+ seconds).*\]")

ANSWERS = {
    **dict.fromkeys(("o", "once", "y", "yes"), "once"),
    **dict.fromkeys(("a", "always"), "always"),
    **dict.fromkeys(("r", "reject", "n", "no"), "reject"),
}
"""What may be typed at a question → the decision that it is."""

ANSWER_KEYS = frozenset(word for word in ANSWERS if len(word) == 1)
"""What means an answer wherever it is typed, and never a question."""

LASTS = "[a]lways in this session"
KEEPS_ASKING = "No answer lasts: it is asked about each time"
NOBODY = (
    "Nobody is here to be asked, so it was not run; `tiro chat` in a terminal asks. {otherwise}"
)
EDIT_RULES = ("edit: * ask", "write: * ask")
ALL_EDITS = "To let all edits pass, put in config.yaml: permission: {edit: allow, write: allow}"
NO_RULE = "No rule in config.yaml allows just this"
BY_RULE = "To allow it always, put in config.yaml: permission: {{{key}: {patterns}}}"


def named(use: Mapping[str, Any]) -> str:
    """A tool use in a few words."""
    given = use["input"]
    values = given.items() if isinstance(given, dict) else [("", given)]
    words = [_in_words(name, value) for name, value in values]
    return one_line(" ".join([use["name"], *words]), MAX_CELLS)


def failure_of(content: str) -> str | None:
    """How a command failed, by the end of its result; None where it did not, or was none."""
    for line in reversed(content.rstrip().split("\n")):
        if (ended := _ENDED.fullmatch(line)) is not None:
            return None if ended[1] == "exit code 0" else ended[1]
        if not line.startswith("["):  # notes of ours follow it
            return None
    return None


def lasting(params: Mapping[str, Any]) -> list[str]:
    """What the answer "always" to a permission request would add; of an edit, what allows all."""
    added = [f"[a]lways adds to this session: {rule}" for rule in params["always"]]
    return [*(added or [KEEPS_ASKING]), *([ALL_EDITS] if params["rule"] in EDIT_RULES else [])]


def question(params: Mapping[str, Any]) -> str:
    """What a permission request may be answered with."""
    always = f"{LASTS}, " if params["always"] else ""
    return f"Allow? [o]nce, {always}[r]eject (and why): "


def decision(line: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer to a permission request that a typed line is; None where it is none."""
    word, _, reason = line.strip().partition(" ")
    decided = ANSWERS.get(word.lower().rstrip(","))
    if decided == "reject":
        return {"decision": decided, "message": reason.strip() or None}
    if decided is None or reason or (decided == "always" and not params["always"]):
        return None
    return {"decision": decided}


def possible(params: Mapping[str, Any]) -> str:
    """What may be typed, for somebody who typed something else."""
    always = "a for the rest of this session, " if params["always"] else ""
    return f"Type o to allow it once, {always}r to reject it, r and why to tell the model; or /quit"


def nobody_asked(params: Mapping[str, Any]) -> str:
    """Why it was not run where nobody could be asked, and what can be done about it."""
    found = _patterns(params) if params["always"] else None
    if found is None:
        return NOBODY.format(otherwise=NO_RULE)
    key, patterns = found
    listed = ", ".join(f"{json.dumps(one, ensure_ascii=False)}: allow" for one in patterns)
    shown = f"{{{listed}}}" if patterns else "allow"
    return NOBODY.format(otherwise=BY_RULE.format(key=key, patterns=shown))


def _in_words(name: str, value: Any) -> str:
    """A value of a tool's input; of a list of tables, such as edits, only how many there are."""
    if isinstance(value, str):
        return value
    if value and isinstance(value, list) and all(isinstance(one, dict) for one in value):
        return f"({counted(len(value), name.removesuffix('s'))})"
    return json.dumps(value, ensure_ascii=False)


def _patterns(params: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """The key and the patterns that allow just this; none where the key has no patterns."""
    key, _, rest = params["rule"].partition(": ")
    given = params["toolUse"]["input"]
    if "(named in a command)" in rest or "(a command comes upon " in rest:  # a deny: none lifts it
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
