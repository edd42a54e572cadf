"""Options in every form that programs take, and commands within others: none gets past the gate.

B48, B49. Each line is attempted for real, and the user says no to every question.
"""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.agents.test_escapes import AGENTS, SECRET, TOOLS, attempt, base, beside, repository
from tests.agents.test_hidden_commands import decided
from tests.fakes import RecordingEditor
from tiro.agents.gate import Gate
from tiro.agents.permissions import OPEN_SET, STRICT_SET, Rules
from tiro.tools.command_line import word_set
from tiro.tools.command_risks import risk_of
from tiro.tools.given_options import Option
from tiro.tools.workspace import Workspace

__all__ = ["base", "repository"]

NAMES = word_set(
    "rg ag ack ugrep ug grep egrep cp mv ln link install gcp gln gmv ginstall tar bsdtar touch tee"
    " cat git npm black ruff clang g++ cc"
)
RULES = Rules(
    config={
        "bash": {"<read-only>": "allow", **dict.fromkeys(NAMES, "allow")},
        "edit": "allow",
        "write": "allow",
    },
    default=STRICT_SET,
)

BELOW = """
rg SECRET
rg SECRET .
rg -g '*' SECRET
rg -g '!x' SECRET
rg --glob '*' SECRET .
rg --iglob '!x' SECRET
rg -t py SECRET
rg -e SECRET
rg -e SECRET -- .
rg -A1 -e SECRET
rg -g -e SECRET
rg -m 1 SECRET
rg SECRET -g a.txt
rg -r X SECRET
rg -E utf-8 SECRET
rg -nil SECRET
rg -- -e
ag SECRET
ack SECRET
ugrep SECRET
ug SECRET .
ag -f SECRET in
ack --follow SECRET in
grep --rec SECRET .
grep --r SECRET
grep --der SECRET in
grep --dereference-r SECRET sub
grep --di=recurse SECRET .
grep --dir recurse SECRET .
grep -1r SECRET .
grep -n1r SECRET
grep -r -A 1 SECRET
grep -rm1 -e SECRET
cp --rec . here
cp --re . here
cp --arc . here
cp --a . here
cp -r --der sub here
cp -rT --de sub here
cp --ta=in pay/k
cp --t in pay/k
cp pay/k -R
cp pay/k -- -R
cp -- pay/k -R
mv pay/k -R
install pay/k -- -R
gcp pay/k in
gmv pay/k in
ginstall pay/k in
link pay/k in/k
touch -- -n
touch a.txt -n
tee -- -n
cat -- -k
cat a.txt -k
tar chf b.tar in
tar -c --der -f b.tar in
tar -cLf b.tar in
tar --ge -f a.tar
tar --extr -f a.tar
tar --ex -f a.tar
bsdtar xf a.tar
""".strip().split("\n")
"""What lies below folders, is led to by a link in one, or is named like an option."""

BEHIND = """
ln far/link l && cat l/outside/k
ln -P far/link l; cat l/outside/k
ln -L far/link l && cat l/outside/k
ln -t . far/link && cat link/outside/k
ln -t. far/link ; cat link/outside/k
ln --target-directory=. far/link && cat link/outside/k
ln --ta=. far/link && cat link/outside/k
ln far/link . && head -1 link/outside/k
ln -f far/link l; sed -n p l/outside/k
ln -- far/link l && grep -h . l/outside/k
timeout 9 ln far/link l && cat l/outside/k
nice -n 5 ln far/link l && nice cat l/outside/k
gln far/link l && cat l/outside/k
link far/link l && cat l/outside/k
ln far/link l && touch l/outside/X
ln far/link l && cp a.txt l/outside/X
ln far/link l | cat l/outside/k
cp -l far/link l && cat l/outside/k
cp --link far/link l && cat l/outside/k
cp --li far/link l && cat l/outside/k
cp --no-de far/link l && cat l/outside/k
cp --no-d far/link l && cat l/outside/k
cp --arc far here && cat here/link/outside/k
cp --a far here; cat here/link/outside/k
cp --rec far here && cat here/link/outside/k
cp --re far here && cat here/link/outside/k
cp -1r far here && cat here/link/outside/k
cp -dt . far/link && cat link/outside/k
cp -t. -P far/link && cat link/outside/k
cp --ta=. -P far/link && cat link/outside/k
cp --sym a.txt b && cat b
cp --s a.txt b && cat b
cp -P far/link --t=. && cat link/outside/k
gcp -P far/link . && cat link/outside/k
mv --ta=. far/link && cat link/outside/k
mv --t=. far/link && cat link/outside/k
gmv far/link . && cat link/outside/k
tar --ge -f a.tar && cat q/k
tar --extr --file a.tar; cat q/k
git checkout -q topic && clang -E q/k
git checkout -q topic && cc -E q/k
git checkout -q topic && g++ -fsyntax-only q/k
git checkout -q topic && black q/k
git checkout -q topic && ruff check --fix q/k
git checkout -q topic && bsdtar tf q/k
git checkout -q topic && black -q --diff q/k
git checkout -q topic && git hash-object -w q/k
""".strip().split("\n")
"""What an earlier command of the line makes of a path."""

DENIED = {
    "rm *": """
npm explore p -- rm x
npm explore p rm x
npm --prefix d explore p -- rm x
pnpm --recursive exec rm x
pnpm -r exec rm x
pnpm -C d exec rm x
pnpm --filter p exec rm x
pnpm dlx rm x
npm --silent exec rm x
npm -s x rm x
npm -C d exec -- rm x
npm -- exec rm x
npm -w p exec -- rm x
npm.cmd exec rm x
yarn --silent exec rm x
yarn -C d exec rm x
yarn --cwd d exec rm x
yarn workspace p exec rm x
yarn workspaces foreach -A exec rm x
uv tool run rm x
uv --quiet tool run rm x
hatch env run rm x
rustup run stable rm x
mise exec node@20 -- rm x
cargo watch -- rm x
bundle exec rm x
rm.exe x
/bin/RM.EXE x
timeout 5 rm.exe x
npx rm.cmd x
grm x
/opt/bin/grm -f x
timeout 5 grm x
xvfb-run rm x
xvfb-run -a rm x
mpirun -n 1 rm x
gosu user rm x
ssh-agent rm x
/lib64/ld-linux-x86-64.so.2 /bin/rm x
xcrun rm x
""",
    "pip install": """
python3 -mpip install x
python -Bmpip install x
python -I -mpip install x
python -W ignore -mpip install x
python -Ximporttime -mpip install x
python -Wmodule -m pip install x
python3 -m pip.__main__ install x
python3 -mpip.__main__ install x
python.exe -mpip install x
python3.11.exe -m pip install x
pip.exe install x
PIP3.EXE install x
pip3.11.exe -q install x
pypy3 -mpip install x
py -3 -mpip install x
uv run python -mpip install x
python -m runpy pip install x
python -m pdb -m pip install x
python -mcProfile -mpip install x
python -m coverage run -m pip install x
timeout 5 python3 -mpip install x
""",
    "python -mpip *": """
python -m pip install x
python3 -Bmpip list
python.exe -m pip list
""",
    "shred *": """
pnpm shred x
pnpm --silent shred x
yarn shred x
pnpm -r shred x
""",
    "git push": """
git.exe push
GIT.EXE -C d push
pnpm -r exec git push
npm explore p -- git -C d push
""",
}
"""By what is denied: the same within other commands, and by other names."""

EASY = """
git status
npm i @scope/pkg
npm install --save-dev @types/node@20
npm -v
git diff --cached
find . -name "*.py" -exec grep -n foo {} +
pytest tests/x.py::test
ls
ls -la sub
rg foo src
rg -n foo src
rg -t py foo src
rg -e foo src
rg -nie foo src
rg --ignore-case foo src
rg -g '*.py' foo src
grep -rn foo src
grep -nr foo src
grep -rn -A 2 foo src
grep -rne foo src
grep -rn --include='*.py' foo src
grep foo a.txt
cp a.txt src
cp -r src copy
cp -t src a.txt
cp --recursive src copy && ls copy
mv a.txt src && cat src/a.txt
touch b && cat b
tar cf a.tar src
git add src && git commit -qm x
git checkout -q - && git status
pytest -q
make -j4 all
npm test
npm run build
python3 -m pytest -q
python3 -mpytest -q
uniq -c a.txt
uniq -f1 a.txt
xxd -l16 a.txt
""".strip().split("\n")
"""Everyday lines, none of which may ask by the rules that are there for it."""


@pytest.fixture
def changed(base: Path) -> Path:
    """Ignore files that call for hidden ones, files named like options, links that wait."""
    ws = base / "ws"
    (ws / ".ignore").write_text("!.env\n")
    (ws / "sub/.rgignore").write_text("!.env\n")
    for name, target in {
        "-n": "../outside/X",
        "-R": "in",
        "-k": ".env",
        "far/link": "../..",
    }.items():
        (ws / name).parent.mkdir(exist_ok=True)
        (ws / name).symlink_to(target)
    (ws / "far/link").unlink()
    (ws / "far/link").symlink_to("..")  # leads out as soon as it lies one folder higher
    with tarfile.open(ws / "a.tar", "w") as archive:
        link = tarfile.TarInfo("q")
        link.type, link.linkname = tarfile.SYMTYPE, "../outside"
        archive.addfile(link)
    for line in ("checkout -q -b topic", "add q", "commit -qm q", "checkout -q -"):
        if line == "add q":
            (ws / "q").symlink_to("../outside")
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *line.split()]
        subprocess.run(git, cwd=ws, check=True, timeout=60)
    return base


@pytest.mark.parametrize("n", range(4))
def test_no_form_of_an_option_hides_what_is_read_or_written(changed: Path, n: int) -> None:
    before, lines = beside(changed), [*BELOW, *BEHIND][n::4]
    used = [("run_command", {"command": line, "timeout_seconds": 5}) for line in lines]
    ended, _, results = attempt(changed, *used, rules=RULES)
    passed = [line for line, end in zip(lines, ended, strict=True) if end != "rejected"]
    assert passed == []
    assert SECRET not in results
    assert beside(changed) == before


@pytest.mark.parametrize("agent", ["plan", "explore"])
def test_no_search_shows_a_hidden_file_to_who_only_reads(changed: Path, agent: str) -> None:
    rules = Rules(agent=AGENTS[agent].permission, default=STRICT_SET)
    used = [("run_command", {"command": line}) for line in BELOW if line.startswith(("rg", "grep"))]
    ended, _, results = attempt(changed, *used, rules=rules)
    assert set(ended) == {"rejected"}
    assert SECRET not in results


@pytest.mark.parametrize("denied", DENIED)
def test_what_is_denied_is_found_within_others(denied: str) -> None:
    lines = DENIED[denied].strip().split("\n")
    anything = Rules(config={"bash": {denied: "deny", "*": "allow"}}, default=OPEN_SET)
    assert [line for line in lines if decided(anything, line).kind != "deny"] == []
    names: Any = {line.split()[0]: "allow" for line in lines}
    named = Rules(config={"bash": {denied: "deny", **names}}, default=STRICT_SET)
    assert [line for line in lines if decided(named, line).kind != "deny"] == []


def test_there_are_many_attempts() -> None:
    denied = [line for lines in DENIED.values() for line in lines.strip().split("\n")]
    attempts = [*BELOW, *BEHIND, *denied]
    assert len(set(attempts)) == len(attempts) >= 160


def test_everyday_lines_are_as_easy_as_ever(tmp_path: Path) -> None:
    for name in ("src/a.py", "a.txt", "sub/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a\n")
    (tmp_path / ".env").write_text(SECRET)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True, timeout=60)
    names = [*NAMES, "pytest", "make", "xxd", "npm run *", "python3 -m pytest", "python3 -mpytest"]
    table: Any = {"bash": {"<read-only>": "allow", **dict.fromkeys(names, "allow")}}
    table |= {"edit": "allow", "write": "allow"}
    gate = Gate(Rules(config=table, default=STRICT_SET), Workspace(RecordingEditor(tmp_path)))
    uses = [gate.look(TOOLS["run_command"], {"command": line}) for line in EASY]
    asking = [
        (line, gate.decide(use).rule)
        for line, use in zip(EASY, uses, strict=True)
        if gate.decide(use).kind != "allow"
    ]
    assert asking == []


def test_no_rule_for_python_speaks_for_a_module_behind_it() -> None:
    """B49: also where it stands in the same word as the option."""
    covered = ("python3 -mpytest -q", "python3 -Bmpytest -k a", "python -mpip list")
    assert [line for line in covered if risk_of(line.split(), 2) is not None] == []
    for line in (
        *("python3 -mpytest -p evil", "python3 -mpip install --target X evil"),
        *("python3 -mrunpy evil", "python3 -mpip.__main__ install --target X evil"),
        *("python3 -Ximporttime -mevil", "python3 -Ximporttime -m evil"),
        *("git.exe -c core.pager=./evil log", "python.exe -mevil"),
    ):
        assert risk_of(line.split(), 1) is not None, line
    for line in ("python3 -mpip install --target X evil", "python3 -mpytest -q -p evil"):
        assert risk_of(line.split(), 2) is not None, line
    assert risk_of(["python3", "-Ximporttime", "-m", "pytest", "-p", "evil"], 4) is not None


@pytest.mark.parametrize(
    ("words", "is_given"),
    [
        *(("-r", True), ("-xr", True), ("-1r", True), ("-rfx", True), ("--recursive", True)),
        *(("--rec=x", True), ("--r", True), ("x --rec", True), ("-- -r", True)),
        *(("r", False), ("-x", False), ("--", False), ("--recursively", False), ("--x", False)),
        *(("-x=r", False), ("", False), ("-", False), ("--=r", False)),
    ],
)
def test_option_is_given_in_any_form(words: str, is_given: bool) -> None:
    assert Option("r", "recursive").is_given(words.split(" ")) is is_given


def test_real_programs_take_the_forms_that_are_tested(tmp_path: Path) -> None:
    """So that the attempts are none at what nobody could do."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d/link").symlink_to("k")
    (tmp_path / "d/k").write_text("here\n")
    lines = ["ln d/link a", "cp --rec d b", "cp --arc d c", "tar --extr -f t.tar -C c"]
    with tarfile.open(tmp_path / "t.tar", "w"):
        pass
    for line in lines:
        subprocess.run(line.split(), cwd=tmp_path, check=True, timeout=60)
    links = [tmp_path / name for name in ("b/link", "c/link")]
    assert all(map(os.path.islink, links)) or shutil.which("gcp"), "GNU's take shortened options"
