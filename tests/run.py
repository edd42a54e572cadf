#!/usr/bin/env python3
"""The one command for people, hooks and CI: checks and tests, and all that they need first.

    python3 tests/run.py                everything: check, test, e2e, Emacs, VS Code
    python3 tests/run.py --fast         check and the pure tests, with few random cases
    python3 tests/run.py --long         everything, with many random cases
    python3 tests/run.py fix            let Ruff sort, repair and format
    python3 tests/run.py check          Ruff and mypy
    python3 tests/run.py test           the pure tests
    python3 tests/run.py e2e            real processes: the server, Emacs, VS Code
    python3 tests/run.py bench [--growth] [--long] [--write]
                                        print the table of ratios and the growth curves, or only
                                        those (never fails by time); --long searches 1 GB,
                                        --write puts them into server/PERFORMANCE.md
    python3 tests/run.py trust [--long] print how often each kind of disaster was tried
    python3 tests/run.py faults         print what a fault at each place costs: server/FAULTS.md
    python3 tests/run.py fuzz --minutes 60
                                        try random inputs of every kind for so long

It needs Python 3.11 and, for the VS Code client, Node.js 20 with npm; what else is missing it
installs (Debian packages only as root). A step's output is shown when it fails. The last line is
`N passed, N failed`, over all steps; the exit code is 1 when something failed or nothing ran.
"""

import argparse
import contextlib
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests import machine  # noqa: E402  (found only through the line above)

EMACS = ROOT / "editor-clients" / "emacs"
E2E = ROOT / "tests" / "e2e"
EMACS_TERMINAL = E2E / "test_emacs_terminal.py"
HISTORIES = E2E / "test_random_histories.py"
CHATS = sorted(E2E.glob("test_chat*.py"))
WORKERS = 4
"""Steps at once, for two cores: real processes wait for one another much of the time."""
STEP_MINUTES = 20
SHOWN_LINES = 150
BENCH_WORDS = ("--growth", "--write")
IN_CI = bool(os.environ.get("CI"))
SECRETS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")
ADDRESSES = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")
COMPILED_ANEW = "PYTHONDONTWRITEBYTECODE"
"""With it every process would compile all sources again, which is a third of a server's start."""
LAST_LINE = re.compile(r"^(\d+) passed, (\d+) failed", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What a step came to: its counts, a word about it, and its output if it must be shown."""

    passed: int = 0
    failed: int = 0
    note: str = ""
    output: str = ""
    is_missing: bool = False


@dataclass
class Run:
    """What the steps of one run share: its size, its folder, and what the setup steps made."""

    size: str
    folder: Path
    python: Path = Path(sys.executable)
    workbench: Path = Path()
    children: set[int] = field(default_factory=set)

    def environment(self, step: str) -> dict[str, str]:
        """No key, a home of its own, and `tiro` on the path."""
        home = self.folder / _file_name(step)
        (home / "tmp").mkdir(parents=True, exist_ok=True)
        left_out = (*SECRETS, *ADDRESSES, COMPILED_ANEW)
        env = {name: value for name, value in os.environ.items() if name not in left_out}
        return env | {
            "HOME": str(home),
            "PATH": f"{self.python.parent}{os.pathsep}{env['PATH']}",
            "PYTHONPATH": f"{ROOT / 'server'}{os.pathsep}{ROOT}",
            "TIRO_CONFIG_DIR": str(home / "tiro"),
            "TMPDIR": str(home / "tmp"),  # its own: pytest clears away what is older there
            "TIRO_OUT": str(home / "out"),
            "TIRO_SHOTS": "failed",  # the others are for people to look at
            "TIRO_PYTHON": str(self.python),
            "TIRO_TEST_SIZE": self.size,
            "TIRO_WORKBENCH": str(self.workbench),
            "TIRO_CHECKED": str(machine.CACHE / "checked"),
        }


@dataclass(frozen=True)
class Step:
    """One line of the summary: what it does, which setup it needs and which steps go first.

    `seconds`: about how long it and all that waits for it take; what takes longest begins first,
    after what does not say so: that is short, and what others wait for.
    """

    name: str
    act: Callable[[Run], Outcome]
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    seconds: float = math.inf


def main() -> int:
    """Parse the arguments, run the steps they name, print the sum."""
    hear_signals()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", default="all", choices=["all", *PLANS])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--fast", dest="size", action="store_const", const="fast", default="normal")
    size.add_argument("--long", dest="size", action="store_const", const="long")
    for word in BENCH_WORDS:
        parser.add_argument(word, dest="words", action="append_const", const=word, default=[])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to fuzz")
    given = parser.parse_args()
    if given.words and given.what != "bench":
        parser.error(f"{' '.join(given.words)} is for bench")
    if given.what == "fix":
        return fix()
    if given.what == "bench":
        return bench(given.size, given.words)
    if given.what == "fuzz":
        return module(MODULES["fuzz"], "long", str(given.minutes))
    if given.what in MODULES:
        return module(MODULES[given.what], given.size)
    everything = ["check", "test"] if given.size == "fast" else list(STEPS)
    names = everything if given.what == "all" else [given.what]
    steps = [step for name in names for step in STEPS[name]]
    with tempfile.TemporaryDirectory(
        prefix="tiro-", dir=machine.memory(), ignore_cleanup_errors=True
    ) as folder:
        return run_steps(with_setup(steps), Run(given.size, Path(folder)))


def hear_signals() -> None:
    """What a job started with `&` or `nohup` ignores is ignored by all that it starts: not here."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def run_steps(steps: list[Step], run: Run) -> int:
    """Run them, some at a time where nothing speaks against it, and print a line for each."""
    began, running = time.monotonic(), dict[Future[Outcome], Step]()
    waiting = sorted(steps, key=lambda step: -step.seconds)
    done: dict[str, Outcome] = {}
    with ThreadPoolExecutor(WORKERS) as pool, _children_end_with_us(run):
        while waiting or running:
            for step in [step for step in waiting if _is_ready(step, steps, done)]:
                if len(running) < WORKERS:
                    waiting.remove(step)
                    running[pool.submit(_timed, step, run, done)] = step
            if not running:
                raise RuntimeError(f"These wait for one another: {[step.name for step in waiting]}")
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                step = running.pop(future)
                done[step.name] = future.result()
                _tell(step, done[step.name])
    passed = sum(outcome.passed for outcome in done.values())
    failed = sum(outcome.failed for outcome in done.values())
    print(f"{time.monotonic() - began:.0f} seconds", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


def with_setup(steps: list[Step]) -> list[Step]:
    """Put in front what these steps need, and what that needs in turn."""
    wanted = {name for step in steps for name in step.needs + step.after}
    wanted |= {name for step in SETUP if step.name in wanted for name in step.needs}
    return [step for step in SETUP if step.name in wanted] + steps


# --- running one step ----------------------------------------------------------------------


def _is_ready(step: Step, steps: list[Step], done: dict[str, Outcome]) -> bool:
    known = {other.name for other in steps}
    return all(name in done for name in step.needs + step.after if name in known)


def _timed(step: Step, run: Run, done: dict[str, Outcome]) -> Outcome:
    lacking = [name for name in step.needs if done[name].is_missing]
    if lacking:
        note = f"not run, for want of {', '.join(lacking)}"
        return Outcome(failed=int(IN_CI), note=note, is_missing=True)
    began = time.monotonic()
    try:
        outcome = step.act(run)
    except machine.MissingError as reason:
        outcome = Outcome(failed=int(IN_CI), note=str(reason), is_missing=True)
    except Exception as error:  # a fault of a step must not hide the other steps
        outcome = Outcome(failed=1, output=f"{type(error).__name__}: {error}", is_missing=True)
    note = f"{outcome.note} " if outcome.note else ""
    seconds = f"({time.monotonic() - began:.1f} s)"
    return Outcome(
        outcome.passed, outcome.failed, note + seconds, outcome.output, outcome.is_missing
    )


def _tell(step: Step, outcome: Outcome) -> None:
    mark = "FAIL" if outcome.failed else "----" if outcome.is_missing else "ok  "
    counts = f"{outcome.passed} passed, {outcome.failed} failed "
    print(f"{mark} {step.name:<21} {counts if step not in SETUP else ''}{outcome.note}", flush=True)
    if outcome.failed and outcome.output:
        lines = outcome.output.splitlines()[-SHOWN_LINES:]
        print("\n".join(f"     | {line}" for line in lines), flush=True)


def command(
    run: Run,
    name: str,
    *argv: str | Path,
    cwd: Path = ROOT,
    junit: Path | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Outcome:
    """Run a program to its end and count: its JUnit file, its last line, or itself as one."""
    log = run.folder / f"{_file_name(name)}.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [str(word) for word in argv],
            cwd=cwd,
            env={**run.environment(name), **env},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        run.children.add(child.pid)
        try:
            code, note = child.wait(STEP_MINUTES * 60), ""
        except subprocess.TimeoutExpired:
            code, note = 1, f"ended after {STEP_MINUTES} minutes"
        _end_group(child.pid)
        child.wait()
        run.children.discard(child.pid)
    text = log.read_text("utf-8", "replace")
    passed, failed, counted = _count(text, junit) if junit or LAST_LINE.search(text) else (0, 0, "")
    if code and not failed:
        failed, note = failed + 1, note or f"exit code {code}"
    elif not code and not passed + failed:
        passed = 1
    return Outcome(passed, failed, " ".join(filter(None, (note, counted))), text)


def _count(text: str, junit: Path | None) -> tuple[int, int, str]:
    if junit is None:
        passed, failed = LAST_LINE.findall(text)[-1]
        return int(passed), int(failed), ""
    if not junit.exists():
        return 0, 1, "no test ran"
    suites = xml.etree.ElementTree.parse(junit).getroot().iter("testsuite")
    totals = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for suite in suites:
        for key in totals:
            totals[key] += int(suite.get(key, 0))
    failed = totals["failures"] + totals["errors"]
    passed = totals["tests"] - failed - totals["skipped"]
    if not passed:
        return 0, max(failed, 1), "no test passed"
    return passed, failed, f"{totals['skipped']} skipped" if totals["skipped"] else ""


@contextlib.contextmanager
def _children_end_with_us(run: Run) -> Iterator[None]:
    def end(number: int, _frame: object) -> None:
        for pid in list(run.children):
            _end_group(pid)
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _end_group(pid: int) -> None:
    """End a step's own process group, and so whatever it left running."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _file_name(step: str) -> str:
    return step.replace(" ", "-")


# --- setup ---------------------------------------------------------------------------------


def set_up_debian(run: Run) -> Outcome:
    """Debian packages that the editors' tests need."""
    machine.debian_packages()
    return Outcome()


def set_up_python(run: Run) -> Outcome:
    """The private environment in which all Python runs."""
    run.python = machine.python_environment()
    return Outcome()


def set_up_node(run: Run) -> Outcome:
    """The VS Code client's packages."""
    machine.node_modules()
    return Outcome()


def set_up_workbench(run: Run) -> Outcome:
    """A real VS Code to test in."""
    run.workbench = machine.workbench()
    return Outcome()


def set_up_model(run: Run) -> Outcome:
    """The embedded local model, by the command that users type."""
    machine.local_model(run.python)
    return Outcome()


SETUP = [
    Step("python", set_up_python),
    Step("debian", set_up_debian),
    Step("model", set_up_model, needs=("python",), after=("debian",)),
    Step("node", set_up_node),
    Step("workbench", set_up_workbench, needs=("debian",)),
]


# --- the steps -----------------------------------------------------------------------------


def ruff_check(run: Run) -> Outcome:
    """Ruff finds nothing."""
    return command(run, "ruff check", run.python, "-m", "ruff", "check", ".")


def ruff_format(run: Run) -> Outcome:
    """Ruff would change no line."""
    return command(run, "ruff format", run.python, "-m", "ruff", "format", "--check", ".")


def mypy(run: Run) -> Outcome:
    """Mypy, strict, over the server and the tests."""
    return command(run, "mypy", run.python, "-m", "mypy", "--cache-dir", machine.CACHE / "mypy")


def pytest(run: Run, name: str, *arguments: str) -> Outcome:
    """A run of pytest, counted by its JUnit file."""
    junit = run.folder / f"{_file_name(name)}.xml"
    options = ("-q", "-p", "no:cacheprovider", f"--junitxml={junit}")
    env = {"XDG_CACHE_HOME": str(machine.CACHE.parents[1])}  # where the local model lies
    pytest = (run.python, "-m", "pytest")
    return command(run, name, *pytest, *options, *arguments, junit=junit, env=env)


def pure(*folders: str) -> Callable[[Run], Outcome]:
    """The tests of these folders, which start no process of ours, or only few."""
    return lambda run: pytest(run, f"test {'+'.join(folders)}", *(f"tests/{f}" for f in folders))


def other_pure(run: Run) -> Outcome:
    """All such tests that no step of their own runs."""
    own = ("e2e", "models", "stores", "tools", "protocol", "session")
    return pytest(run, "test others", "tests", *(f"--ignore=tests/{folder}" for folder in own))


def end_to_end(first: str, last: str) -> Callable[[Run], Outcome]:
    """The files from one letter to another: the real server, over stdio, a real local provider."""
    files = sorted(set(E2E.glob("test_*.py")) - {EMACS_TERMINAL, HISTORIES, *CHATS})
    letters = [(file.name.removeprefix("test_")[0], file) for file in files]
    mine = [str(file) for letter, file in letters if first <= letter <= last]
    return lambda run: pytest(run, f"e2e {first}-{last}", *mine)


def histories(run: Run) -> Outcome:
    """Random histories against the real server."""
    return pytest(run, "e2e histories", str(HISTORIES))


def chats(run: Run) -> Outcome:
    """`tiro chat` in a real terminal, keys pressed and the screen read."""
    return pytest(run, "e2e chats", *map(str, CHATS))


def emacs_lint(run: Run) -> Outcome:
    """Byte-compile, checkdoc and package-lint without a warning."""
    sources = sorted(EMACS.glob("*.el"), key=lambda path: path.name != "tiro.el")
    return command(run, "emacs lint", *EMACS_BATCH, "-l", EMACS / "test" / "lint.el", *sources)


def emacs_ert(run: Run) -> Outcome:
    """The client's tests in a real Emacs, against the real server."""
    tests = sorted((EMACS / "test").glob("*-test.el"))
    return command(run, "emacs ert", *EMACS_BATCH, "-l", EMACS / "test" / "run-tests.el", *tests)


def emacs_terminal(run: Run) -> Outcome:
    """Emacs in a real terminal, keys pressed and the screen read."""
    return pytest(run, "emacs terminal", str(EMACS_TERMINAL))


def npm(script: str) -> Callable[[Run], Outcome]:
    """A script of the VS Code client's package.json."""
    return lambda run: command(
        run, f"vscode {script}", "npm", "run", "--silent", script, cwd=machine.VSCODE
    )


WORKBENCH = ("workbench", "node", "python")
EMACS_BATCH = ("emacs", "-Q", "--batch", "-L", EMACS, "-L", EMACS / "test")

STEPS = {
    "check": [
        Step("ruff check", ruff_check, needs=("python",)),
        Step("ruff format", ruff_format, needs=("python",)),
        Step("mypy", mypy, needs=("python",)),
    ],
    "test": [
        Step("test models", pure("models"), needs=("python",), after=("model",), seconds=130),
        Step("test stores+tools", pure("stores", "tools"), ("python",), ("debian",), 120),
        Step("test protocol+session", pure("protocol", "session"), needs=("python",), seconds=65),
        Step("test others", other_pure, needs=("python",), seconds=50),
    ],
    "e2e": [
        Step("vscode package", npm("package"), needs=("node",), seconds=280),
        Step("vscode ui", npm("ui"), WORKBENCH, ("vscode package",), 260),
        Step("vscode host", npm("host"), WORKBENCH, ("vscode package",), 180),
        Step("vscode first", npm("first"), WORKBENCH, ("vscode package",), 150),
        Step("vscode check", npm("check"), needs=("node",), seconds=40),
        Step("e2e histories", histories, ("python",), ("model", "debian"), 175),
        Step("e2e a-e", end_to_end("a", "e"), ("python",), ("model", "debian"), 140),
        Step("e2e f-q", end_to_end("f", "q"), ("python",), ("model", "debian"), 65),
        Step("e2e r-z", end_to_end("r", "z"), ("python",), ("model", "debian"), 85),
        Step("e2e chats", chats, ("python",), ("model", "debian"), 60),
        Step("emacs ert", emacs_ert, needs=("debian", "python"), seconds=115),
        Step(
            "emacs terminal",
            emacs_terminal,
            needs=("debian", "python"),
            after=("emacs ert",),
            seconds=40,
        ),
        Step("vscode unit", npm("unit"), needs=("node", "python"), seconds=10),
        Step("emacs lint", emacs_lint, needs=("debian",), seconds=3),
    ],
}


def fix() -> int:
    """Let Ruff sort, repair and format."""
    python = machine.python_environment()
    subprocess.run([python, "-m", "ruff", "check", "--fix", "."], cwd=ROOT)
    return subprocess.run([python, "-m", "ruff", "format", "."], cwd=ROOT).returncode


def bench(size: str, words: list[str]) -> int:
    """Print the table of ratios and the growth curves."""
    python = machine.python_environment(ROOT / "tests" / "bench" / "requirements.txt")
    paths = f"{ROOT / 'server'}{os.pathsep}{ROOT}"
    env = {**os.environ, "PYTHONPATH": paths, "TIRO_TEST_SIZE": size}
    env.pop(COMPILED_ANEW, None)  # an installation is compiled too
    return subprocess.run([python, "-m", "tests.bench", *words], cwd=ROOT, env=env).returncode


def module(name: str, size: str, *words: str) -> int:
    """Run a program of the tests: what it prints is for whoever has asked."""
    paths = f"{ROOT / 'server'}{os.pathsep}{ROOT}"
    env = {**os.environ, "PYTHONPATH": paths, "TIRO_TEST_SIZE": size}
    python = machine.python_environment()
    return subprocess.run([python, "-m", name, *words], cwd=ROOT, env=env).returncode


MODULES = {"trust": "tests.trust", "faults": "tests.faults.table", "fuzz": "tests.fuzz"}
PLANS = ("fix", *STEPS, "bench", *MODULES)


if __name__ == "__main__":
    sys.exit(main())
