"""However a path is spelt, and however a rule names it, the rule holds (B48)."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.every_tool import tools_by_name
from tests.fakes import RecordingEditor
from tiro.agents.gate import Gate
from tiro.agents.permissions import OPEN_SET, Rules
from tiro.errors import ToolError
from tiro.tools.workspace import Workspace

TOOLS = tools_by_name()
KEYS = ("read", "edit", "write")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace and a home, each with the same folders, and links from one to the other."""
    base = tmp_path_factory.mktemp("base")
    for root in ("ws", "home", "beside"):
        for name in ("keys/k.pem", "keys/deep/k.pem", "Café/k.pem", "open/k.txt", "a/b/c/k.txt"):
            (base / root / name).parent.mkdir(parents=True, exist_ok=True)
            (base / root / name).write_text("x")
    ws = base / "ws"
    for name, target in {
        "to-keys": "keys",
        "to-k": "keys/k.pem",
        "open/up": "..",
        "to-beside": "../beside",
        "loop": "loop",
        "a/to-home": "../../home/keys",
    }.items():
        (ws / name).symlink_to(target)
    os.link(ws / "keys/k.pem", ws / "open/hard")
    os.link(base / "home/keys/k.pem", ws / "a/hard")
    return base


FORMS = (
    *("keys", "keys/", "keys/**", "**/keys/**", "./keys", "/keys/**", "k?ys/**", "[k]eys", "KEYS"),
    *("{keys,x}", "keys/*", "*.pem", "k.pem", "~/keys", "~/keys/**", "~", "{base}/home/keys/*"),
    *("{base}/*/keys/**", "../home/keys", "../beside/**", "Cafe\u0301", "caf\u00c9/", "to-keys"),
    *("to-keys/**", "a/to-home", "open/../keys", "{base}/beside", "/**", "**", "to-beside/keys"),
)

ROUTES = (
    *("keys/k.pem", "keys/deep/k.pem", "to-keys/k.pem", "to-keys/deep/k.pem", "to-k", "open/hard"),
    *("open/up/keys/k.pem", "open/up/to-k", "open/up/open/up/to-keys/deep/k.pem", "a/hard"),
    *(
        "to-beside/keys/k.pem",
        "a/to-home/k.pem",
        "a/to-home/deep/k.pem",
        "to-beside/Caf\u00e9/k.pem",
    ),
    *("Caf\u00e9/k.pem", "../home/keys/k.pem", "../beside/keys/deep/k.pem", "open/k.txt"),
    *("../ws/keys/k.pem", "a/b/c/k.txt", "../home/open/k.txt"),
)
"""Ways to files, from the workspace."""
STARTS = ("", "./", "{base}/ws/", "//{base}/ws/", "file://{base}/ws/", "/proc/self/root{base}/ws/")
TURNS = ("./", "/", "open/../", "a/b/../../", "keys/deep/../../", "open/up/", "../ws/", "")


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """A way to a file with turns on it that lead back to where they began."""
    turns = draw(st.lists(st.sampled_from(TURNS), max_size=3))
    route = draw(st.sampled_from(ROUTES)).split("/")
    dots = draw(st.lists(st.sampled_from(("/", "//", "/./")), min_size=len(route)))
    way = "".join(part + dot for part, dot in zip(route, dots, strict=False)).rstrip("/.")
    start = draw(st.sampled_from(STARTS))
    return start + "".join(turns).lstrip("/") + way


def led_to(base: Path, path: str) -> Path:
    """Where the words of a path really lead from the workspace."""
    return Path(os.path.realpath(base / "ws" / os.path.expanduser(path.removeprefix("file://"))))


def may(base: Path, rules: Rules, tool: str, given: dict[str, Any]) -> bool:
    gate = Gate(rules, Workspace(RecordingEditor(base / "ws")))
    try:
        return gate.decide(gate.look(TOOLS[tool], given)).kind == "allow"
    except ToolError:
        return False


def same_files(base: Path, path: Path) -> list[Path]:
    """All names of a file."""
    everything = (one for one in base.rglob("*") if one.is_file() and not one.is_symlink())
    return [one for one in everything if path.is_file() and one.samefile(path)] or [path]


@given(st.sampled_from(FORMS), spellings())
def test_a_denied_file_is_denied_however_it_is_spelt(base: Path, form: str, spelt: str) -> None:
    """The plainest name of the same file decides: no spelling of it gets further.

    For other names outside the workspace nobody looks but where the rule leads there.
    """
    os.environ["HOME"] = str(base / "home")
    pattern, path = form.replace("{base}", str(base)), spelt.replace("{base}", str(base))
    config: Any = {key: {pattern: "deny"} for key in KEYS}
    config |= {"bash": "allow", "external_directory": "allow"}
    rules = Rules(config=config, default=OPEN_SET)
    real = led_to(base, path)
    is_far = form.startswith(("~", "{base}", "..", "to-", "a/"))
    names = [one for one in same_files(base, real) if is_far or one.is_relative_to(base / "ws")]
    assert real.is_file()
    is_open = all(may(base, rules, "read_file", {"path": str(one)}) for one in (real, *names))
    command = path.removeprefix("file://")
    for tool, used in (
        ("read_file", {"path": path}),
        ("write_file", {"path": path, "content": ""}),
        ("run_command", {"command": f"cat '{command}'"}),
        ("run_command", {"command": f"tee '{command}'"}),
        ("run_command", {"command": f"echo x > '{command}'"}),
    ):
        assert is_open or not may(base, rules, tool, used), (tool, used)
