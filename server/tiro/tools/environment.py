"""The environment of a command: nothing in it waits for a person, and no key of ours is in it."""

import os
from collections.abc import Collection, Mapping

from tiro.session.secrets import KnownSecrets

NOT_INTERACTIVE = {
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "never",
    "SUDO_ASKPASS": "false",
    "GCM_INTERACTIVE": "never",
    "PIP_NO_INPUT": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PYTHONUNBUFFERED": "1",  # so that what was printed before a timeout is there
}
"""An editor that changes nothing, a pager that shows all, and no to every question for a secret."""

GIT_CONFIG = {"safe.bareRepository": "explicit", "core.fsmonitor": "false"}
"""A repository inside of another one could name programs that the mildest git command runs."""

READING = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
"""With these git writes no index, and brings nothing from elsewhere."""
ELSEWHERE = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"}
)
"""By these git would take another repository; who was started by git has them."""
READING_CONFIG = {
    "core.hooksPath": os.devnull,
    "diff.autoRefreshIndex": "false",
    "log.showSignature": "false",
    "diff.submodule": "short",
    "submodule.recurse": "false",
}
"""Without these what only reads would run hooks, write, check signatures, or run git elsewhere."""


def absolute_path(environment: Mapping[str, str]) -> str:
    """Where programs are looked for, without what depends on the folder that a command runs in."""
    path = environment.get("PATH", os.defpath)
    return os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep)))


def reading_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment that a command got, for one that only reads.

    git runs no hook in it and takes the repository of its folder, which was looked at, and no `ls`
    of a folder runs for `ls`.
    """
    count = environment.get("GIT_CONFIG_COUNT", "0")
    kept = {name: value for name, value in environment.items() if name not in ELSEWHERE}
    path = {"PATH": absolute_path(environment)}
    return kept | path | READING | _git_config(READING_CONFIG, count)


def command_environment(
    given: Mapping[str, str],
    secrets: KnownSecrets,
    keys: Collection[str] = (),
    allowed: Collection[str] = (),
) -> dict[str, str]:
    """The environment that a command gets: the given one without these secrets.

    The variables `keys` are secret whatever is in them, those in `allowed` are not.
    """
    kept = {
        name: value
        for name, value in given.items()
        if name in allowed or not (name in keys or secrets.are_in(value))
    }
    for name in ("CDPATH", "PWD", "OLDPWD", "GLOBIGNORE", "BASHOPTS", "RIPGREP_CONFIG_PATH"):
        kept.pop(name, None)  # a `cd` leads, a `*` fits, and `rg` searches, as it says
    return kept | NOT_INTERACTIVE | _git_config(GIT_CONFIG, kept.get("GIT_CONFIG_COUNT", "0"))


def _git_config(settings: Mapping[str, str], count: str) -> dict[str, str]:
    """Settings of git as environment variables, behind so many that are there already."""
    first = int(count) if count.isdecimal() else 0
    found = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (key, value) in enumerate(settings.items(), first):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found
