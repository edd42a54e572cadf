"""`diagnostics`: what an editor shows as wrong, told to a model and nobody's secrets with it."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import RecordingEditor
from tests.tools.rooms import put
from tiro.errors import ToolError
from tiro.tools.diagnostics import diagnostics_tools
from tiro.tools.editor import Diagnostic
from tiro.tools.tool import ToolRun
from tiro.tools.workspace import Workspace

(TOOL,) = diagnostics_tools()


def problem(path: Path, line: int, message: str, **more: Any) -> Diagnostic:
    given = {"severity": "error", "column": 0, **more}
    return Diagnostic(path=path, line=line, message=message, **given)


def told(
    root: Path, *problems: Diagnostic, room: int = 50_000, denied: str = "", **given: Any
) -> str:
    """What the model gets when the editor shows these problems."""
    editor = RecordingEditor(root)
    editor.problems = list(problems)

    async def answer() -> str:
        run = ToolRun(
            tool_use_id="c1",
            workspace=Workspace(editor),
            may_read=lambda path: path.name != denied,
            on_output=lambda _: None,
            max_output_chars=room,
            cancelled=threading.Event(),
        )
        return (await TOOL.run(given, run)).content

    return asyncio.run(answer())


def test_the_worst_come_first_and_places_count_from_one(tmp_path: Path) -> None:
    a, b = put(tmp_path, "a.py"), put(tmp_path, "sub/b.py")
    assert told(
        tmp_path,
        problem(b, 9, "long\n  line", severity="warning", source="ruff", code="E501"),
        problem(b, 3, "undefined name", column=4, source="pyright"),
        problem(a, 0, "unused", severity="hint"),
        problem(a, 7, "syntax"),
    ).splitlines() == [
        "a.py:8:1: error: syntax",
        "sub/b.py:4:5: error: undefined name [pyright]",
        "sub/b.py:10:1: warning: long line [ruff E501]",
        "a.py:1:1: hint: unused",
    ]


def test_one_file_may_be_asked_about_by_any_of_its_names(tmp_path: Path) -> None:
    a, b = put(tmp_path, "a.py"), put(tmp_path, "b.py")
    (tmp_path / "link.py").symlink_to(a)
    problems = [problem(a, 0, "in a"), problem(tmp_path / "link.py", 1, "too"), problem(b, 0, "b")]
    for name in ("a.py", "link.py", str(a), "./x/../a.py"):
        assert told(tmp_path, *problems, path=name) == "a.py:1:1: error: in a\na.py:2:1: error: too"
    assert told(tmp_path, path="b.py") == "(no problems are shown in b.py)"
    assert told(tmp_path) == "(no problems are shown)"


def test_b48_files_outside_and_files_that_may_not_be_read_stay_out(tmp_path: Path) -> None:
    """A message quotes the text of its file."""
    root, outside = tmp_path / "root", put(tmp_path, "secret.py")
    env = put(root, ".env")
    (root / "link.py").symlink_to(outside)
    problems = [problem(path, 0, "SECRET") for path in (outside, env, root / "link.py")]
    assert told(root, *problems, denied=".env") == "(no problems are shown)"
    assert told(root, *problems, denied=".env", path=".env") == "(no problems are shown in .env)"
    with pytest.raises(ToolError, match="outside the workspace"):
        told(root, *problems, path="../secret.py")


def test_too_many_are_cut_and_counted(tmp_path: Path) -> None:
    a = put(tmp_path, "a.py")
    text = told(tmp_path, *(problem(a, n, "x" * 90) for n in range(100)), room=3000)
    assert len(text) < 3000
    assert "of 100 are shown" in text.splitlines()[-1]


def test_an_editor_that_does_not_answer_is_an_error_with_advice(tmp_path: Path) -> None:
    editor = RecordingEditor(tmp_path)
    run = ToolRun(
        tool_use_id="c1",
        workspace=Workspace(editor),
        may_read=lambda _: True,
        on_output=lambda _: None,
        cancelled=threading.Event(),
    )

    async def answer() -> None:
        await TOOL.run({}, run)

    with pytest.raises(ToolError, match="running the checks"):
        asyncio.run(answer())
