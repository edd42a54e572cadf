"""The house's own rules, where a machine can check them: names, documents, versions, sizes."""

import ast
import inspect
import json
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest

import tiro
from tiro import errors
from tiro.protocol import types
from tiro.session.core import Core
from tiro.session.session import Session

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "server" / "tiro"
MODULES = sorted(PACKAGE.rglob("*.py"))
PROTOCOL = (ROOT / "server" / "PROTOCOL.md").read_text("utf-8")
ARCHITECTURE = (ROOT / "server" / "ARCHITECTURE.md").read_text("utf-8")
SECURITY = (ROOT / "server" / "SECURITY.md").read_text("utf-8")
CHANGELOG = (ROOT / "server" / "CHANGELOG.md").read_text("utf-8")
VSCODE = ROOT / "editor-clients" / "vscode"
EMACS = ROOT / "editor-clients" / "emacs"

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 40
CATALOGUES = {"protocol/types.py"}
"""Modules that are one list without logic: all of the wire in one place."""
AT_THE_KEYBOARD = {"chat/keyboard.py"}
"""Modules that read what a person types, by the only function that lets them edit it."""
OPEN_PARTS = {"stores/formats/__init__.py"}
"""Parts whose own name programs import from."""
MAX_ARCHITECTURE_LINES = 120
MAX_FILES_IN_A_ROW = 8
TOP_LEVEL = {"LICENSE", "README.md", "editor-clients", "pyproject.toml", "server", "tests"}
ERROR_CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.TiroError)
]
WIRE_NAMES = {*types.METHODS, *types.NOTIFICATIONS, *types.SERVER_REQUESTS}
FAULTS_OF_OTHERS = (
    *range(1, 6), *range(10, 16), *range(18, 25), *range(28, 37), *range(41, 46),
    *range(48, 56), *range(61, 65),
)  # fmt: skip
"""Faults that users of comparable tools met: `pytest -k b23` shows that one is not ours."""


def name_of(path: pathlib.Path) -> str:
    return str(path.relative_to(PACKAGE))


# --- exports and errors --------------------------------------------------------------------


def test_exports_are_sorted_and_complete() -> None:
    public = {
        name
        for name, value in vars(tiro).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("tiro")
    }
    assert list(tiro.__all__) == sorted(tiro.__all__)
    assert public <= set(tiro.__all__)
    assert all(getattr(tiro, name) is not None for name in tiro.__all__)


def test_exports_are_the_documented_names() -> None:
    table = {cls.__name__ for cls in ERROR_CLASSES} - {"ToolError"}
    names = {"Session", "Message", "Entry", "provider_view", "estimate_tokens", "__version__"}
    assert set(tiro.__all__) - {"ToolError"} == table | names


@pytest.mark.parametrize("error", ERROR_CLASSES, ids=lambda error: error.__name__)
def test_error_prints_its_sentence(error: type[errors.TiroError]) -> None:
    raised = error("this is wrong", path="/p")
    assert str(raised) == "this is wrong"
    assert raised.data == {"path": "/p"}
    assert inspect.getdoc(error)


@pytest.mark.parametrize("error", ERROR_CLASSES, ids=lambda error: error.__name__)
def test_error_has_a_place_on_the_wire(error: type[errors.TiroError]) -> None:
    assert error is errors.TiroError or error in types.ERRORS


def test_error_codes_are_the_documented_ones() -> None:
    documented = dict(re.findall(r"^\| (-320\d\d) \| `(\w+)` \|", PROTOCOL, re.MULTILINE))
    ours = {str(code): kind for code, kind in types.ERRORS.values() if kind}
    assert ours == documented


# --- the wire, its document and its clients ------------------------------------------------


def test_protocol_document_names_exactly_our_methods() -> None:
    documented = set(re.findall(r"`(tiro/[a-z]+(?:/[a-zA-Z]+)?)[ `]", PROTOCOL))
    assert documented == WIRE_NAMES


@pytest.mark.parametrize("method", sorted(types.METHODS))
def test_protocol_document_names_every_param(method: str) -> None:
    told = "\n".join(line for line in PROTOCOL.splitlines() if f"`{method}" in line)
    if method == "tiro/session/addMessage":
        told = "role content"  # its params are a Message, and that is what the document says
    missing = [
        name
        for name in types.METHODS[method].params.__struct_encode_fields__
        if not re.search(rf"\b{name}\b", told)
    ]
    assert not missing


@pytest.mark.parametrize("event", types.EVENTS, ids=lambda event: event.__name__)
def test_protocol_document_names_every_event_field(event: type[types.Event]) -> None:
    tag = event.__struct_config__.tag
    row = next(line for line in PROTOCOL.splitlines() if re.match(rf"\|.*`{tag}`.* \| ", line))
    own = set(event.__struct_encode_fields__) - set(types.Event.__struct_encode_fields__)
    assert not {name for name in own if not re.search(rf"\b{name}\b", row)}


def test_security_document_names_tests_that_are_there() -> None:
    named = re.findall(r"`([a-z0-9_/]+\.py)(?:::(\w+))?`", SECURITY)
    texts = {file: (ROOT / "tests" / file).read_text("utf-8") for file, _ in named}
    missing = [f"{file}::{name}" for file, name in named if f"def {name}" not in texts[file]]
    titled = re.findall(r"`(unit/\w+\.test\.ts)` \"([^\"]+)\"", SECURITY)
    sources = {file: (VSCODE / "test" / file).read_text("utf-8") for file, _ in titled}
    missing += [f"{file}: {title}" for file, title in titled if title not in sources[file]]
    assert len(named) > 50
    assert not missing


def test_protocol_document_names_every_command() -> None:
    section = PROTOCOL[PROTOCOL.index("\n## 7.") :]
    assert set(re.findall(r"`(tiro\.\w+)", section)) == set(types.COMMANDS)


def test_vscode_types_name_exactly_our_methods() -> None:
    source = (VSCODE / "src" / "protocol.ts").read_text("utf-8")
    assert set(re.findall(r"['\"](tiro/[a-zA-Z/]+)['\"]", source)) == WIRE_NAMES


def test_emacs_client_calls_only_our_methods() -> None:
    called = {
        name
        for path in EMACS.glob("*.el")
        for name in re.findall(r"[':]?(tiro/[a-zA-Z/]+)", path.read_text("utf-8"))
    }
    assert called
    assert called <= WIRE_NAMES


# --- versions ------------------------------------------------------------------------------


def test_version_is_the_newest_of_the_changelog() -> None:
    headings = re.findall(r"^## (.+)$", CHANGELOG, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert headings[1].split()[0] == tiro.__version__


def test_clients_have_our_version() -> None:
    package = json.loads((VSCODE / "package.json").read_text("utf-8"))
    assert package["version"] == tiro.__version__
    header = re.search(r"^;; Version: (\S+)$", (EMACS / "tiro.el").read_text("utf-8"), re.MULTILINE)
    assert header
    assert header[1] == tiro.__version__


# --- the shape of the source ---------------------------------------------------------------


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_has_one_purpose(path: pathlib.Path) -> None:
    source = path.read_text("utf-8")
    is_short = len(source.splitlines()) <= MAX_MODULE_LINES
    assert is_short or name_of(path) in CATALOGUES, "split it by noun"
    assert re.match(r'"""\S', source), "its first line says what it is"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_function_does_one_thing(path: pathlib.Path) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lines = [(one.name, (one.end_lineno or 0) - one.lineno + 1) for one in functions]
    assert [name for name, count in lines if count > MAX_FUNCTION_LINES] == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_prints_nothing(path: pathlib.Path) -> None:
    """Stdout is the channel: one stray word breaks every client."""
    source = path.read_text("utf-8")
    if not re.search(r"\b(print|breakpoint|input)\s*\(", source):
        return  # as nearly everywhere, and nothing need be parsed
    named = {
        node.func.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    allowed = {"input"} if name_of(path) in AT_THE_KEYBOARD else set()
    assert not named & {"print", "breakpoint", "input"} - allowed


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.name == "__init__.py" and path.parent != PACKAGE]
)
def test_part_is_only_a_docstring(path: pathlib.Path) -> None:
    """But where programs were promised names: there they are imported, and nothing is made."""
    _, *rest = ast.parse(path.read_text("utf-8")).body
    allowed = [ast.ImportFrom, ast.Assign] if name_of(path) in OPEN_PARTS else []
    assert [type(node) for node in rest] == allowed


def test_session_face_has_no_logic() -> None:
    """It is one call a method over its neighbours; what decides anything lives in them."""
    complaints = [
        f"{method.name} line {node.lineno}"
        for method in _methods_of(PACKAGE / "session" / "session.py")
        for node in ast.walk(method)
        if isinstance(node, ast.For | ast.While | ast.If | ast.Try | ast.With | ast.Match)
    ]
    complaints += [
        method.name
        for method in _methods_of(PACKAGE / "session" / "session.py")
        if method.name != "__init__" and len(_statements(method)) > 2
    ]
    assert not complaints


def test_session_face_has_no_attributes_of_its_own() -> None:
    extra = set(vars(Session())) - set(vars(Core()))
    assert not extra


def test_architecture_names_every_module() -> None:
    assert len(ARCHITECTURE.splitlines()) <= MAX_ARCHITECTURE_LINES
    rows = re.findall(r"^\| `([\w/]+)/` ?(.*) \|$", ARCHITECTURE, re.MULTILINE)
    files = [(part, re.findall(r"`(\w+\.py)`", row)) for part, row in rows]
    assert max(len(names) for _, names in files) <= MAX_FILES_IN_A_ROW, "nobody finds one in it"
    named = [f"{part}/{name}".removeprefix("tiro/") for part, names in files for name in names]
    ours = {name_of(path) for path in MODULES if path.name not in ("__init__.py", "__main__.py")}
    assert set(named) == ours
    assert len(named) == len(ours), "a module has one place"


def test_fault_of_others_has_a_test_of_its_name() -> None:
    files = (ROOT / "tests").rglob("test_*.py")
    names = [
        name for file in files for name in re.findall(r"def (test_\w+)", file.read_text("utf-8"))
    ]
    named = {number for name in names for number in re.findall(r"_b(\d\d)(?=_)", name)}
    assert set(FAULTS_OF_OTHERS) <= set(map(int, named))


@pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="no checkout")
def test_top_level_holds_only_what_belongs_there() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = {line.split("/")[0] for line in listed.stdout.splitlines()}
    assert {name for name in found if not name.startswith(".")} == TOP_LEVEL


def _methods_of(path: pathlib.Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _statements(method: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    has_docstring = ast.get_docstring(method) is not None
    return method.body[1:] if has_docstring else method.body
