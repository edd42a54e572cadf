"""Which session a chat goes on with after its server has died."""

from typing import Any

import pytest

from tiro import output
from tiro.chat.lines import PipedLines
from tiro.chat.screen import Screen
from tiro.chat.talk import Talk


class FakeLink:
    """Answers a load with the session of that path or id."""

    def __init__(self) -> None:
        self.loaded: list[Any] = []
        self.cleared: Any = {"savedAs": None, "cleared": 0}

    async def request(self, method: str, params: Any = None) -> Any:
        if method == "tiro/session/load":
            self.loaded.append(params)
        if method == "tiro/session/clear":
            return self.cleared
        if method == "tiro/session/getAgent":
            return {"agent": None}
        if method == "tiro/agents/list":
            return {"default": "build", "agents": []}
        if method == "tiro/status":
            return {"model": None}
        return {
            "id": "one",
            "path": "/x/one.json",
            "title": None,
            "total": 1,
            "archived": 0,
            "text": None,
        }


def event(id: str) -> tuple[str, dict[str, Any]]:
    return "tiro/turn/event", {"sessionId": id, "type": "stored"}


def changed(reason: str, id: str | None) -> tuple[str, dict[str, Any]]:
    return "tiro/session/changed", {"reason": reason, "id": id}


@pytest.mark.parametrize(
    ("heard", "wanted"),
    [
        ([], {"path": "/x/one.json"}),
        ([event("one")], {"path": "/x/one.json"}),
        ([changed("summary", "one")], {"path": "/x/one.json"}),
        ([changed("renamed", "one-01")], {"id": "one-01"}),
        ([changed("renamed", "one-01"), event("one-01")], {"id": "one-01"}),
        ([changed("expired", "two"), event("two")], {"id": "two"}),
        ([changed("expired", None)], None),
    ],
)
async def test_it_is_the_one_that_it_had_last(heard: list[Any], wanted: Any) -> None:
    """The name of a loaded session may go to another process, or the session expire."""
    link: Any = FakeLink()
    talk = Talk(link, Screen(), PipedLines())
    await talk.load({"path": "/x/one.json"})
    for method, params in heard:
        talk.screen.hear(method, params)
    link.loaded.clear()
    assert await talk.find_again() == (wanted is not None)
    assert link.loaded == ([] if wanted is None else [wanted])


async def test_after_clear_it_is_a_new_one() -> None:
    link: Any = FakeLink()
    talk = Talk(link, Screen(), PipedLines())
    await talk.load({"path": "/x/one.json"})
    await talk.clear()
    assert not await talk.find_again()


@pytest.mark.parametrize(
    ("path", "count", "told"),
    [
        ("/x/one.json", 2, "2 messages are kept in /x/one.json; "),
        (None, 4, "4 messages are not saved; "),
        (None, 1, "1 message is not saved; "),
        (None, 0, "Nothing was there to keep; "),
    ],
)
async def test_clear_says_what_became_of_what_was_said(
    path: str | None, count: int, told: str
) -> None:
    link: Any = FakeLink()
    link.cleared = {"savedAs": path, "cleared": count}
    assert (await Talk(link, Screen(), PipedLines()).clear()).startswith(told)


ASKED: dict[str, Any] = {
    "agent": "build",
    "toolUse": {"id": "c1", "name": "run_command", "input": {"command": "seq 30"}},
    "effect": "execute",
    "rule": "bash: ask",
    "preview": None,
    "always": [],
}


class AskedMeanwhile(PipedLines):
    """A person who answers only after something else has come from the server."""

    is_person = True

    def __init__(self) -> None:
        self.meanwhile: Any = object

    async def ask(self, question: str) -> str | None:
        output.tell(question)
        self.meanwhile()
        output.tell("o\n")
        return "o"


async def test_nothing_is_written_over_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    """What a turn tells may come after the question that is asked for it."""
    link: Any = FakeLink()
    lines = AskedMeanwhile()
    talk = Talk(link, Screen(), lines)
    late = {"type": "toolUse", "status": "failed", "toolUse": ASKED["toolUse"]}
    lines.meanwhile = lambda: talk.screen.hear("tiro/turn/event", {"sessionId": "one", **late})
    assert (await talk.answer("tiro/permission/request", ASKED))["decision"] == "once"
    written = capsys.readouterr().err
    assert "[r]eject (and why): o\n· run_command seq 30: failed\n" in written
