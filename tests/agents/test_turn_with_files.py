"""A turn with the real reading tools: the rules, the questions and the live text in one piece."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.agents.turns import a_turn, events_of, finished, run, statuses, told
from tests.fakes import RecordingEditor, ScriptedModel, fake_tool, says, uses
from tiro.agents.events import ToolUse
from tiro.agents.permissions import STRICT_SET, Rules
from tiro.agents.turn_input import Turn
from tiro.models.model import ModelFacts
from tiro.session.core import Core
from tiro.tools.editor import PermissionAnswer, PermissionRequest
from tiro.tools.files import FILE_TOOLS
from tiro.tools.tool import EditRecorder, ToolOutput, ToolRun, Unrecorded
from tiro.tools.workspace import Workspace


class Asker:
    """Answers every question the same way and remembers what was asked."""

    def __init__(self, answer: PermissionAnswer) -> None:
        self.answer = answer
        self.asked: list[PermissionRequest] = []

    async def __call__(self, request: PermissionRequest) -> PermissionAnswer:
        self.asked.append(request)
        await asyncio.sleep(0)
        return self.answer


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("needle in a")
    (tmp_path / "b.pem").write_text("needle in b")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/b.pem").write_text("needle in sub")
    (tmp_path / "[x].pem").write_text("needle in brackets")
    (tmp_path / "x.pem").write_text("needle in x")
    (tmp_path / ".env").write_text("needle=SECRET")
    (tmp_path / "link").symlink_to("b.pem")
    return tmp_path


def a_reading_turn(room: Path, *used: tuple[str, dict[str, Any]], **given: Any) -> Turn:
    """A turn in which the model uses these tools at once, then ends."""
    calls = [(f"c{n}", name, value) for n, (name, value) in enumerate(used, 1)]
    fields = {
        "tools": FILE_TOOLS,
        "workspace": Workspace(RecordingEditor(room)),
        "rules": Rules(default=STRICT_SET),
    }
    return a_turn(uses(*calls), says("done"), **{**fields, **given})


def results(session: Core) -> dict[str, str]:
    """The newest result of each tool use, by its id."""
    return {content[0]: content[1] for role, content in told(session) if role == "tool"}


ASK = Rules(config={"read": {"*.pem": "ask"}}, default=STRICT_SET)


def test_reads_are_allowed_and_secrets_banned_by_the_shipped_rules(room: Path) -> None:
    """U8.5, M5.7."""
    turn = a_reading_turn(
        room,
        ("read_file", {"path": "a.txt"}),
        ("read_file", {"path": ".env"}),
        ("grep", {"pattern": "needle"}),
        ("grep", {"pattern": "needle", "path": ".env"}),
    )
    events = run(turn)
    assert statuses(events, "c1") == ["proposed", "running", "done"]
    assert statuses(events, "c2") == ["proposed", "rejected"]
    assert "SECRET" not in str(results(turn.session))
    assert "needle in a" in results(turn.session)["c3"]


def test_path_outside_is_asked_about_with_the_real_path(room: Path) -> None:
    """M5.6: a path outside is asked about, with the path that it really is."""
    ask = Asker(PermissionAnswer("reject"))
    turn = a_reading_turn(room, ("read_file", {"path": "../x"}), ask=ask)
    assert statuses(run(turn), "c1") == ["proposed", "rejected"]
    assert str(room.parent / "x") in str(ask.asked[0].preview)
    assert str(room.parent / "x") in ask.asked[0].rule


def test_once_is_for_this_time_only(room: Path) -> None:
    ask = Asker(PermissionAnswer("once"))
    used = ("read_file", {"path": "b.pem"})
    turn = a_reading_turn(room, used, used, rules=ASK, ask=ask)
    run(turn)
    assert results(turn.session)["c1"].endswith("needle in b")
    assert [request.rule for request in ask.asked] == ["read: *.pem ask"] * 2


def test_always_settles_the_questions_that_wait_behind_it(room: Path) -> None:
    """B04: two reads of one file at the same time are one question."""
    ask = Asker(PermissionAnswer("always"))
    used = ("read_file", {"path": "b.pem"})
    turn = a_reading_turn(room, used, ("read_file", {"path": "./b.pem"}), rules=ASK, ask=ask)
    run(turn)
    assert len(ask.asked) == 1
    assert all(text.endswith("needle in b") for text in results(turn.session).values())


@pytest.mark.parametrize(
    ("first", "then", "questions"),
    [
        ("b.pem", "b.pem", 1),
        ("b.pem", "sub/b.pem", 2),
        ("sub/b.pem", "b.pem", 2),
        ("b.pem", "./sub/../b.pem", 1),
        ("[x].pem", "[x].pem", 1),
        ("[x].pem", "x.pem", 2),
        ("link", "b.pem", 1),
        ("link", "link", 1),
    ],
)
def test_always_is_as_narrow_as_the_question(
    room: Path, first: str, then: str, questions: int
) -> None:
    session, ask = Core(), Asker(PermissionAnswer("always"))
    for path in (first, then):
        used = ("read_file", {"path": path})
        run(a_reading_turn(room, used, rules=ASK, ask=ask, session=session))
    assert len(ask.asked) == questions


def test_always_survives_in_the_session(room: Path) -> None:
    """U7.1: `rules` holds this session's "always"."""
    session = Core()
    used = ("read_file", {"path": "sub/b.pem"})
    ask = Asker(PermissionAnswer("always"))
    run(a_reading_turn(room, used, rules=ASK, ask=ask, session=session))
    rule = {"key": "read", "exactly": [str(room / "sub/b.pem")], "decision": "allow"}
    assert session.snapshot()["rules"] == [rule]


@pytest.mark.parametrize("odd", [[5], [{"key": "read"}], [{"decision": "deny", "key": "read"}]])
def test_odd_rules_of_a_session_file_allow_nothing(room: Path, odd: list[Any]) -> None:
    session = Core()
    session.rules = odd
    turn = a_reading_turn(room, ("read_file", {"path": "b.pem"}), rules=ASK, session=session)
    assert statuses(run(turn), "c1") == ["proposed", "rejected"]


def test_grep_shows_nothing_that_would_have_to_be_asked_for(room: Path) -> None:
    """M5.6: the question about `read` is not passed by another tool, wherever it looks."""
    ask = Asker(PermissionAnswer("once"))
    turn = a_reading_turn(
        room,
        ("grep", {"pattern": "needle"}),
        ("grep", {"pattern": "needle", "path": "b.pem"}),
        rules=ASK,
        ask=ask,
    )
    run(turn)
    assert ask.asked == []
    assert "needle in a" in results(turn.session)["c1"]
    for text in results(turn.session).values():
        assert "needle in b" not in text
        assert "the rules do not allow to read them" in text


def test_live_text_reaches_the_model(room: Path) -> None:
    """B55."""
    editor = RecordingEditor(room, buffers={room / "a.txt": "haystack"})
    turn = a_reading_turn(
        room,
        ("read_file", {"path": "a.txt"}),
        ("grep", {"pattern": "haystack"}),
        workspace=Workspace(editor),
    )
    run(turn)
    assert "unsaved text" in results(turn.session)["c1"]
    assert "1: haystack" in results(turn.session)["c2"]


@pytest.mark.parametrize(("window", "most"), [(4096, 4096), (100, 3000), (None, 50_000)])
def test_result_leaves_room_in_a_small_window(room: Path, window: int | None, most: int) -> None:
    """A model with a small window gets a part, and is told how to get the rest."""
    (room / "long.txt").write_text(("some words in a line, " * 4 + "\n") * 20_000)
    script = uses(
        ("c1", "read_file", {"path": "long.txt"}),
        ("c2", "grep", {"pattern": "w", "max_matches": 1000}),
    )
    model = ScriptedModel(script, says("done"), facts=ModelFacts(window))
    turn = a_reading_turn(room, model=model)
    run(turn)
    for text in results(turn.session).values():
        assert most * 0.6 < len(text) <= most
        assert text.split("\n")[-1].startswith("[More: ")
    assert "Go on with start_line" in results(turn.session)["c1"]


def test_cancel_in_a_search_ends_it_at_once(room: Path) -> None:
    """B43: a pattern that would run for years."""
    (room / "slow.txt").write_text("a" * 60 + "b")
    turn = a_reading_turn(room, ("grep", {"pattern": "(a+)+$"}))

    async def scenario() -> list[Any]:
        asyncio.get_running_loop().call_later(0.3, turn.cancel.set)
        return await events_of(turn)

    events = asyncio.run(scenario())
    assert finished(events).outcome.stop_reason == "cancelled"
    assert [e.status for e in events if isinstance(e, ToolUse)][-1] == "cancelled"


def test_each_tool_use_records_its_edits_under_its_own_id() -> None:
    """Deliver 5: an edit is known by the tool use that made it."""
    asked: list[str] = []
    recorders: dict[str, EditRecorder] = {}

    def recorder_of(tool_use_id: str) -> EditRecorder:
        asked.append(tool_use_id)
        return recorders.setdefault(tool_use_id, Unrecorded())

    seen: list[EditRecorder] = []

    async def look(_: dict[str, Any], tool_run: ToolRun) -> ToolOutput:
        seen.append(tool_run.edits)
        return ToolOutput("seen")

    tool = msgspec.structs.replace(fake_tool(), run=look)
    run(a_turn(uses(("c1", "fake", {}), ("c2", "fake", {})), tools=[tool], edits=recorder_of))
    assert asked == ["c1", "c2"]
    assert seen == [recorders["c1"], recorders["c2"]]
