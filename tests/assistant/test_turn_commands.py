"""The commands that an undo of a turn's edits leaves done."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from tiro.agents.tool_uses import COMMANDS, REJECTED
from tiro.assistant.turn_commands import commands_beside
from tiro.session.messages import Message
from tiro.session.times import rfc3339
from tiro.stores.manager import SessionManager

BEGIN = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)


class Talk:
    """A session in which a minute passes with every message."""

    def __init__(self, folder: Path) -> None:
        self.minutes = 0
        self.manager = SessionManager(folder, clock=self.now)
        self.session = self.manager.get()

    def now(self) -> datetime:
        return BEGIN + timedelta(minutes=self.minutes)

    def say(self, role: str, text: str) -> None:
        self.minutes += 1
        self.session.add_message(role, text)

    def run(self, command: str, result: str = "[exit code 0]", is_error: bool = False) -> str:
        """The time at which it ran; every tool use has the same id, as some models give it."""
        self.minutes += 1
        use = {"type": "tool_use", "id": "c", "name": "run_command", "input": {"command": command}}
        self.session.add_message("assistant", [use])
        at = rfc3339(self.now())
        self.minutes += 1
        self.session.add_tool_result("c", result, is_error)
        return at


def test_commands_are_those_of_the_turn_that_have_run(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.say("user", "one")
    first = talk.run("rm a")
    talk.say("assistant", "done")
    talk.say("user", "two")
    second = talk.run("make  all\nmake test")
    talk.say("user", "and the notes too")  # between two steps
    talk.run("rm notes")
    talk.run("rm b", REJECTED.format(message=""), is_error=True)
    talk.run("make dev", "stopped at its limit of time", is_error=True)
    talk.run("git status")
    talk.run("rm notes")
    talk.say("assistant", "done")
    talk.say("user", "three")
    talk.run("rm c")

    def beside(at: str, id: str | None = talk.session.id) -> list[str]:
        return commands_beside(talk.manager, id, [at])

    assert beside(first) == ["rm a"]
    assert beside(second) == ["make all make test", "rm notes", "make dev"]
    assert beside(rfc3339(BEGIN)) == []
    talk.say("assistant", "done")
    talk.say("user", "four")
    talk.minutes += 1
    use = {"type": "tool_use", "id": "d", "name": "delegate", "input": {}}
    talk.session.add_message("assistant", [use])
    fourth = talk.run("rm d")
    result = {"type": "tool_result", "tool_use_id": "d", "content": "done"}
    marks = {COMMANDS: ["rm  e", "rm d", 7]}
    talk.session.append(Message("tool", result).marked(**marks))
    assert beside(fourth) == ["rm d", "rm e"]
    talk.manager.save(talk.session)
    talk.manager.set_current(None)
    assert beside(fourth) == ["rm d", "rm e"]
    assert beside(first) == ["rm a"]
    assert beside(first, "session-that-is-gone") == []
