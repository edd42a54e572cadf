"""A model that goes round in circles is noticed, however it spells it (M5.6: `doom_loop`)."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.agents.every_tool import tools_by_name
from tests.agents.turns import a_turn, finished, run, statuses
from tests.fakes import RecordingEditor, fake_tool, says, uses
from tiro.agents.calls import MOST_IN_TURN, Call, call_of, in_vain
from tiro.agents.permissions import STRICT_SET, Rules
from tiro.errors import ToolError
from tiro.tools.editor import PermissionAnswer, PermissionRequest
from tiro.tools.workspace import Workspace

TOOLS = tools_by_name()
RULES = Rules(default=STRICT_SET)

Given = tuple[str, dict[str, Any]]
READ = ("read_file", {"path": "a"})
RUN = ("run_command", {"command": "ls src"})
EDIT = ("multi_edit", {"path": "a", "edits": [{"old_text": "x", "new_text": "y"}]})

SAME: list[tuple[Given, Given]] = [
    (READ, ("read_file", {"path": "./a"})),
    (READ, ("read_file", {"path": "b/../a"})),
    (READ, ("read_file", {"path": "b/.././/a"})),
    (READ, ("read_file", {"path": "{ws}/a"})),
    (READ, ("read_file", {"path": "/{ws}/./a"})),
    (READ, ("read_file", {"path": "file://{ws}/a"})),
    (READ, ("read_file", {"path": "a", "start_line": 1})),
    (READ, ("read_file", {"start_line": 1, "path": "a"})),
    (READ, ("read_file", {"path": "a", "end_line": None})),
    (("list_files", {}), ("list_files", {"path": "."})),
    (("list_files", {}), ("list_files", {"path": "./", "depth": 1})),
    (("list_files", {}), ("list_files", {"path": "{ws}"})),
    (("glob", {"pattern": "*"}), ("glob", {"path": "b/..", "pattern": "*"})),
    (
        ("grep", {"pattern": "x"}),
        ("grep", {"ignore_case": False, "context": 0, "max_matches": 100, "pattern": "x"}),
    ),
    (RUN, ("run_command", {"command": " ls   src "})),
    (RUN, ("run_command", {"command": "ls 'src'"})),
    (RUN, ("run_command", {"command": "ls ./src"})),
    (RUN, ("run_command", {"command": "ls src/"})),
    (RUN, ("run_command", {"command": "ls src", "timeout_seconds": 120})),
    (RUN, ("run_command", {"cwd": ".", "command": "ls src"})),
    (
        ("run_command", {"command": "ls * | wc"}),
        ("run_command", {"command": "  ls * | wc\n"}),
    ),
    (EDIT, (EDIT[0], {**EDIT[1], "edits": [{"new_text": "y", "count": 1, "old_text": "x"}]})),
    (EDIT, (EDIT[0], {**EDIT[1], "path": "./a"})),
]
OTHER: list[tuple[Given, Given]] = [
    (READ, ("read_file", {"path": "b"})),
    (READ, ("read_file", {"path": "a", "start_line": 2})),
    (READ, ("list_files", {"path": "a"})),
    (READ, ("read_file", {"path": "A"})),
    (READ, ("read_file", {"path": "sub/a"})),
    (("grep", {"pattern": "./x"}), ("grep", {"pattern": "x"})),
    (RUN, ("run_command", {"command": "ls -a src"})),
    (RUN, ("run_command", {"command": "ls src", "cwd": "sub"})),
    (("run_command", {"command": "./ls"}), ("run_command", {"command": "ls"})),
    (("run_command", {"command": "a; b"}), ("run_command", {"command": "a && b"})),
    (EDIT, (EDIT[0], {**EDIT[1], "edits": [{"old_text": "x ", "new_text": "y"}]})),
]


def as_call(given: Given, root: Path) -> Call:
    name, fields = given
    known = {
        key: value.replace("{ws}", str(root)) if isinstance(value, str) else value
        for key, value in fields.items()
    }
    return call_of(TOOLS[name], name, known, Workspace(RecordingEditor(root)).spelled)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_however_it_is_spelt_it_is_the_same(tmp_path: Path, one: Given, other: Given) -> None:
    assert as_call(one, tmp_path).is_same(as_call(other, tmp_path))
    assert as_call(one, tmp_path).digest == as_call(other, tmp_path).digest


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_what_does_another_thing_is_another_call(tmp_path: Path, one: Given, other: Given) -> None:
    assert not as_call(one, tmp_path).is_same(as_call(other, tmp_path))


def test_every_default_that_a_description_tells_is_known() -> None:
    """A default that is written out is no other call."""
    for tool in TOOLS.values():
        for name, field in tool.input_schema.get("properties", {}).items():
            told = str(field.get("description", "")).lower()
            if "default" in told and (tool.name, name) not in {
                ("read_file", "end_line"),  # it follows from the start
                ("diagnostics", "path"),  # no path is all files
            }:
                assert "default" in field, (tool.name, name)
            assert "default" not in tool.shown["properties"][name]


def rounds(word: str, results: str = "") -> int:
    """At which call of this row the first alarm comes; -1 for none."""
    row = [
        Call("t", letter, result) for letter, result in itertools.zip_longest(word, results or "")
    ]
    alarms = (at for at, call in enumerate(row) if in_vain(call, row[:at]))
    return next(alarms, -1)


@pytest.mark.parametrize(
    ("word", "alarm"),
    [
        ("aaa", 2),
        ("aabaa", -1),
        ("ababab", 5),
        ("xyababab", 7),
        ("abcabcabc", 8),
        ("abcdabcdabcd", 11),
        ("abababa", 5),
        ("abcabdabeabf", -1),
        ("aabaabaab", 8),
        ("abcdefghij" * 3, -1),
        ("abcab", -1),
    ],
)
def test_a_round_of_calls_is_noticed_at_its_third_end(word: str, alarm: int) -> None:
    assert rounds(word) == alarm


@pytest.mark.parametrize(
    ("word", "results", "alarm"),
    [
        ("aaaaaa", "123456", -1),
        ("aaaaaa", "112233", -1),
        ("aaaa", "111", 2),
        ("aaaaa", "1222", 3),
        ("abababab", "12131415", -1),
        ("abababab", "12121212", 5),
        ("ababababab", "1213141414", 9),
    ],
)
def test_results_that_change_are_not_in_vain(word: str, results: str, alarm: int) -> None:
    """Whoever waits for something, and looks at it again and again, sees it change."""
    assert rounds(word, results) == alarm


def in_a_turn(*used: tuple[str, dict[str, Any]], **given: Any) -> list[str]:
    """How each of these calls ended, which came one after the other; the user says no."""

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        assert "for the third time in a row" in request.rule
        return PermissionAnswer("reject")

    steps = [uses((f"c{at}", name, value)) for at, (name, value) in enumerate(used)]
    tools = given.pop("tools", [fake_tool("fake"), fake_tool("other")])
    turn = a_turn(*steps, says("x"), tools=tools, rules=RULES, ask=ask)
    events = run(turn)
    assert finished(events).outcome.stop_reason == given.pop("stop", "end_turn")
    return [found[-1] for at in range(len(used)) if (found := statuses(events, f"c{at}"))]


def test_calls_that_take_turns_are_asked_about() -> None:
    a, b = ("fake", {"x": 1}), ("other", {"x": 1})
    assert in_a_turn(a, b, a, b, a, b, a) == ["done"] * 5 + ["rejected"] * 2
    assert in_a_turn(*[a, b] * 2, ("fake", {"x": 2}), *[a, b] * 2) == ["done"] * 9


def test_what_was_refused_is_refused_when_it_comes_again() -> None:
    """A refusal is no result that has changed."""
    assert in_a_turn(*[("fake", {"x": 1})] * 6) == ["done"] * 2 + ["rejected"] * 4


def test_waiting_for_something_that_changes_is_not_asked_about() -> None:
    count = itertools.count()
    clock = fake_tool("clock", lambda given: f"{next(count)} %")
    assert in_a_turn(*[("clock", {})] * 9, tools=[clock]) == ["done"] * 9
    both: list[Given] = [("clock", {}), ("fake", {})] * 5
    assert in_a_turn(*both, tools=[clock, fake_tool("fake")]) == ["done"] * 10


def test_steps_that_fail_in_turn_end_the_turn() -> None:
    """B32: also where the model goes to and fro between calls that do not work."""
    none, more = ("no_such", {"path": "a"}), ("nor_this", {"path": "a"})
    row = [none if at % 2 else more for at in range(30)]
    assert len(in_a_turn(*row, stop="error")) == 10
    spelt = [("no_such", {"b": 1, "a": 2} if at % 2 else {"a": 2, "b": 1}) for at in range(30)]
    assert len(in_a_turn(*spelt, stop="error")) == 5


def test_longer_rounds_are_left_to_the_limit_of_steps() -> None:
    row = "".join(chr(97 + at) for at in range(MOST_IN_TURN + 1)) * 5
    assert rounds(row) == -1


def counted(answer: Any, times: int) -> Any:
    """How a turn ends whose model calls the same with another number in each step."""
    given = [{"path": f"part-{at}.md", "at": at} for at in range(times)]
    scripts = [uses((f"c{at}", "fake", one)) for at, one in enumerate(given)]
    tool = fake_tool(answer=answer)
    turn = a_turn(*scripts, says("done"), tools=[tool], rules=Rules(config="allow"))
    return finished(run(turn))


def failing(text: str) -> Any:
    def answer(given: dict[str, Any]) -> str:
        raise ToolError(text.format(**given))

    return answer


def test_failures_that_differ_in_a_number_alone_end_a_turn() -> None:
    """M5.6: a model that counts on without end is stuck, too."""
    last = counted(failing("There is no {path!r}"), 20)
    assert last.outcome.stop_reason == "error"
    assert "with other numbers" in str(last.error)


@pytest.mark.parametrize(
    "answer",
    [
        lambda given: f"text of {given['path']}",
        lambda given: "nothing found",
        failing("{path}: other words each time" + "{at:>{at}}"),
    ],
)
def test_work_in_parts_ends_none(answer: Any) -> None:
    """What works, and what fails in another way, goes on."""
    assert counted(answer, 20).outcome.stop_reason == "end_turn"
