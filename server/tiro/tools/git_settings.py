"""Whether the settings that lie in a repository could make a git that only reads run a program.

Law: a setting that is not listed here is not known to be harmless, and neither is a file of
settings that is written in an unusual way, nor a repository that is not where it usually lies.
What `.gitattributes` says does nothing unless a setting names the program.
"""

import os
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from tiro.tools.command_line import word_set
from tiro.tools.git_index import followed_files, submodules_of

SETS = "{file} sets {key}"
UNUSUAL = "{file} is written in an unusual way"
ELSEWHERE = "{file} leads to a repository elsewhere"
BARE = "{file} is a repository without a folder of its own"
SKIPPED = "{file} is no whole repository, so git may take one above it"
UNREADABLE = "{file} cannot be read"
HOOK = "git may run {file}"
TOO_DEEP = "the submodules of {file} are too many to look at"

LOCAL = "{word!r} may be a repository on this disk"

EXCHANGERS = word_set("push fetch pull clone ls-remote")
"""Commands that run something in the repository that they are given, where it lies on this disk."""
READING_HOOKS = ("post-index-change",)
"""The hooks of a git that only reads, where its environment does not keep it from that."""
_ELSEWHERE = re.compile(r"(https?|ssh|git)://[\w@:.-]+/|[\w.-]+@[\w.-]+:")
_REMOTE = re.compile(r"remote\..+\.url")

MAX_BYTES = 1 << 20
MAX_REPOSITORIES = 200

_HARMLESS = word_set(
    "core.repositoryformatversion core.filemode core.bare core.logallrefupdates core.ignorecase"
    " core.precomposeunicode core.symlinks core.hidedotfiles core.autocrlf core.eol core.safecrlf"
    " core.longpaths core.quotepath core.abbrev core.whitespace core.compression"
    " core.untrackedcache"
    " core.preloadindex core.trustctime core.commitgraph core.sparsecheckout"
    " core.sparsecheckoutcone extensions.worktreeconfig extensions.refstorage"
    " remote.*.url remote.*.fetch remote.*.pushurl remote.*.tagopt remote.*.prune"
    " remote.*.gh-resolved remote.pushdefault branch.*.* branch.* user.* color.*.* color.* advice.*"
    " submodule.active submodule.*.url submodule.*.active submodule.*.branch submodule.*.ignore"
    " submodule.*.path pull.* push.* fetch.prune fetch.prunetags init.defaultbranch merge.ff"
    " merge.conflictstyle rebase.autostash rebase.autosquash rebase.updaterefs rerere.enabled"
    " commit.gpgsign tag.gpgsign tag.sort log.date log.decorate log.follow status.*"
    " diff.algorithm diff.renames diff.colormoved diff.mnemonicprefix gc.* maintenance.* gui.*"
    " lfs.repositoryformatversion lfs.*.access"
)
"""Keys as git lists them, with `*` for what stands between the first dot and the last."""

_OVERRIDDEN = word_set("core.fsmonitor core.hookspath")
"""What the environment of commands sets for the repository that git is run in, and no other; the
second one only for a line that only reads, so hooks are looked for where it leads."""
_HEAD = re.compile(r"ref: refs/\S+\n?|(?:[0-9a-f]{40}|[0-9a-f]{64})\n?")
_FOLDER = re.compile(r"[\w./-]*")
_SECTION = re.compile(r'\[([A-Za-z0-9-]+)(?:[ \t]+"((?:[^"\\]|\\["\\])*)")?\]')
_VALUE = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?")


def repository_doubt(folder: Path, hooks: Collection[str] = ()) -> str | None:
    """Why git, run in a folder to read, may run something else there; None where it may not.

    The folder is a real path, and `hooks` are the names of those that it would run. Asks the disk.
    """
    found = repository_above(folder)
    waiting = [] if found is None else [found]
    seen: set[Path] = set()
    while waiting:
        tree = waiting.pop()
        if len(seen) >= MAX_REPOSITORIES:
            return TOO_DEEP.format(file=tree / ".git")
        if tree in seen:
            continue
        seen.add(tree)
        try:
            data = _git_folder(tree)
            places = _check_settings(tree, data, _OVERRIDDEN if tree == found else frozenset())
            _check_hooks(places, hooks)
            submodules = submodules_of(data)
        except _DoubtError as doubt:
            return str(doubt)
        except (OSError, ValueError) as error:
            name = getattr(error, "filename", None) or tree / ".git"
            return UNREADABLE.format(file=name)
        waiting += [tree / one for one in submodules if os.path.lexists(tree / one / ".git")]
    return None


def followed_paths(folder: Path) -> Iterator[Path]:
    """The files that the repository follows in which a folder lies; none without a repository.

    Raises OSError, and ValueError where they cannot be told.
    """
    tree = repository_above(folder)
    if tree is not None:
        yield from (tree / name for name in followed_files(_git_folder(tree)))


def local_source(words: Sequence[str], folder: Path) -> str | None:
    """Why a git command that exchanges commits may do it with a repository on this disk, or None.

    The programs that such a repository names are run. The folder is a real path. Asks the disk.
    """
    name, rest = words[1] if len(words) > 1 else "", words[2:]
    others = [word for word in rest if not word.startswith("-")]
    if name == "remote":
        others = others[2:] if others[:1] in (["add"], ["set-url"]) else []
        suspect = next((word for word in others if not _ELSEWHERE.match(word)), None)
    elif name in EXCHANGERS:
        others = [word for word in others if not word.isdecimal()]
        suspect = next((word for word in others if _is_local(folder / word)), None)
        if name == "clone":
            is_sure = any(map(_ELSEWHERE.match, others))
        else:
            is_sure = (
                not others or others[0] in _remotes(folder) or bool(_ELSEWHERE.match(others[0]))
            )
        suspect = suspect or (None if is_sure else " ".join(others[:1]))
    else:
        return None
    return None if suspect is None else LOCAL.format(word=suspect)


def _is_local(path: Path) -> bool:
    """Whether git may take this path for a repository, or for what stands for one."""
    tries = [path, Path(f"{path}.git")]
    return any(
        os.path.isfile(one) or os.path.lexists(one / ".git") or _is_repository(one) for one in tries
    )


def _remotes(folder: Path) -> set[str]:
    """The names of other repositories that the settings of this one have an address for."""
    tree = repository_above(folder)
    try:
        data = _git_folder(tree) if tree is not None else folder
        if os.path.lexists(data / "commondir"):
            data = Path(os.path.realpath(data / _text_of(data / "commondir").rstrip("\r\n")))
        keys = [key for key, _ in _settings_in(data / "config")]
    except (OSError, ValueError):
        return set()
    return {key[len("remote.") : -len(".url")] for key in keys if _REMOTE.fullmatch(key)}


def is_in_repository(folder: Path) -> bool:
    """Whether git, run in this folder, finds a repository."""
    return repository_above(folder) is not None


def repository_above(folder: Path) -> Path | None:
    """The nearest folder that holds a repository, or is one."""
    for tree in (folder, *folder.parents):
        if os.path.lexists(tree / ".git") or _is_repository(tree):
            return tree
    return None


class _DoubtError(ValueError):
    """Why a repository is not known to be harmless."""


def _is_repository(folder: Path) -> bool:
    return all(os.path.exists(folder / name) for name in ("HEAD", "objects", "refs"))


def _is_whole(data: Path) -> bool:
    """Whether git surely takes this folder for a repository, and looks no further up."""
    return (
        os.access(data / "objects", os.X_OK)
        and os.access(data / "refs", os.X_OK)
        and _HEAD.fullmatch(_text_of(data / "HEAD")) is not None
    )


def _git_folder(tree: Path) -> Path:
    """Where the repository of a working tree keeps its data, if that is where it should be."""
    entry = tree / ".git"
    if not os.path.lexists(entry):
        raise _DoubtError(BARE.format(file=tree))
    if entry.is_symlink():
        raise _DoubtError(ELSEWHERE.format(file=entry))
    if entry.is_dir():
        if os.path.lexists(entry / "commondir"):
            raise _DoubtError(ELSEWHERE.format(file=entry / "commondir"))
        if not _is_whole(entry):
            raise _DoubtError(SKIPPED.format(file=entry))
        return entry
    text = _text_of(entry)
    if not text.startswith("gitdir: "):
        raise _DoubtError(UNUSUAL.format(file=entry))
    return Path(os.path.realpath(tree / text.removeprefix("gitdir: ").rstrip("\r\n")))


def _check_settings(tree: Path, data: Path, overridden: frozenset[str]) -> list[Path]:
    """Where hooks may lie; raises _DoubtError for a setting that does harm or leads elsewhere."""
    common, leads_back = data, data == tree / ".git"
    if os.path.lexists(data / "commondir"):  # one of several working trees
        common = Path(os.path.realpath(data / _text_of(data / "commondir").rstrip("\r\n")))
        back = data / _text_of(data / "gitdir").rstrip("\r\n")
        leads_back = data.parent == common / "worktrees" and _is_same(back, tree / ".git")
    hooks = [common / "hooks"]
    for file in (common / "config", data / "config.worktree"):
        for key, value in _settings_in(file) if os.path.lexists(file) else ():
            if key == "core.worktree" and not leads_back:
                leads_back = _is_same(data / value, tree)
            elif key == "core.hookspath" and key in overridden and _FOLDER.fullmatch(value):
                hooks.append(tree / value)
            elif not (_is_harmless(key) or key in overridden - {"core.hookspath"}):
                raise _DoubtError(SETS.format(file=file, key=key))
    if not leads_back:
        raise _DoubtError(ELSEWHERE.format(file=tree / ".git"))
    return hooks


def _check_hooks(places: Sequence[Path], names: Collection[str]) -> None:
    for file in (place / name for place in places for name in names):
        if os.path.lexists(file):
            raise _DoubtError(HOOK.format(file=file))


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _is_harmless(key: str) -> bool:
    first, *between, last = key.split(".")
    forms = (f"{first}.*.{last}", f"{first}.*.*") if between else (key, f"{first}.*")
    return any(form in _HARMLESS for form in forms)


def _settings_in(file: Path) -> Iterator[tuple[str, str]]:
    """The keys in a file of settings, lower case, with their values as they are written.

    Raises _DoubtError for a line that git may read in another way.
    """
    section: str | None = None
    for line in map(str.strip, _text_of(file).replace("\r\n", "\n").split("\n")):
        if not line or line[0] in "#;":
            continue
        head, entry = _SECTION.fullmatch(line), _VALUE.fullmatch(line)
        if head:
            name = head[1].lower()
            section = name if head[2] is None else f"{name}.{head[2]}"
        elif entry and section is not None and not line.endswith("\\"):
            key = section.split(".", 1)
            yield ".".join((*key, entry[1].lower())), entry[2] or ""
        else:
            raise _DoubtError(UNUSUAL.format(file=file))


def _text_of(file: Path) -> str:
    """The text of a small regular file; no character in it is one that cannot be seen."""
    is_small = file.is_file() and file.stat().st_size <= MAX_BYTES
    text = file.read_bytes().decode("utf-8") if is_small else "\0"
    if re.search(r"[^\S \t\r\n]|\0|\r(?!\n)", text):
        raise _DoubtError(UNUSUAL.format(file=file))
    return text
