"""Random paths and patterns: no way out, and never anything but an answer or a ToolError (B48)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sizes import sized
from tests.tools.rooms import a_workspace, answer, put

PIECES = [
    *("..", ".", "", "in.txt", "sub", "deep.txt", "l", "f", "up", "good", "gooddir", "loop"),
    *("app", "app-secret", "k", "outside.txt", "%2e%2e", "%00", "~", "~root", "etc", "passwd"),
    *("\0", "\ud83d", "\udce9", "\ufffd", "é", " ", "*", "[", "{a,b}", "C:", "n" * 300, "new"),
]
STARTS = ["", "/", "//", "./", "file://", "file:///", "FILE:", "file://localhost/", "http://", "~/"]


@pytest.fixture(scope="module")
def room() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        root = top / "app"
        put(root, "in.txt", "inside")
        put(root, "sub/deep.txt", "deep")
        put(top, "app-secret/k", "SECRET")
        put(top, "outside.txt", "SECRET")
        for name, target in [
            ("l", "/etc"),
            ("f", "/etc/passwd"),
            ("up", ".."),
            ("good", "in.txt"),
            ("gooddir", "sub"),
            ("loop", "loop"),
            ("sub/l2", "../../app-secret"),
        ]:
            (root / name).symlink_to(target)
        yield root


paths = st.builds(
    lambda start, pieces, inside: (
        start + (inside if start.endswith("//") else "") + "/".join(pieces)
    ),
    st.sampled_from(STARTS),
    st.lists(st.sampled_from(PIECES), max_size=6),
    st.sampled_from(["", "{root}/", "{root}/../"]),
)


@given(paths)
def test_no_path_leads_out(room: Path, path: str) -> None:
    given = path.replace("{root}", str(room))
    workspace = a_workspace(room, buffers={room / "new": "buffer"})
    tools: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {}),
        ("list_files", {"depth": 3}),
        ("glob", {"pattern": "**"}),
    ]
    for tool, more in tools:
        told = answer(workspace, tool, path=given, **more)
        assert "SECRET" not in told
        assert "root:x:" not in told
        listed = [line for line in told.split("\n") if "->" not in line]
        assert not any("app-secret" in line or "shadow" in line for line in listed[1:])


@settings(max_examples=sized(fast=5, normal=20, long=300))  # each starts a process
@given(st.text(max_size=8), st.text(max_size=8), st.integers(0, 10))
def test_any_pattern_is_answered(room: Path, pattern: str, glob: str, context: int) -> None:
    told = answer(a_workspace(room), "glob", pattern=pattern or "*")
    assert isinstance(told, str)
    told = answer(
        a_workspace(room), "grep", pattern=pattern or "x", glob=glob or "*", context=context
    )
    assert "SECRET" not in told
    assert "ended unexpectedly" not in told
