"""`tiro/edits/…` and `tiro.undoEdits`: params, results and errors, over the real ledger."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.fakes import Client
from tests.protocol.test_editor import answering
from tests.tools.rooms import put
from tiro.assistant.file_edits import FileEdits
from tiro.errors import ToolError
from tiro.tools.silent_disk import Patience
from tiro.tools.workspace import Workspace
from tiro.tools.writing import current, put_text


class Desk:
    """A client with a folder open, whose files are edited as tools do it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.client = Client()

    async def open(self) -> "Desk":
        uri = self.root.as_uri()
        await self.client.initialize(workspaceFolders=[{"uri": uri, "name": "work"}])
        self.client.outlet.bodies.clear()
        return self.another_process()

    def another_process(self) -> "Desk":
        """The same ledger, opened anew."""
        editor, directory = self.client.service.editor, self.root.parent / "edits"
        edits = FileEdits(Workspace(editor), directory, is_kept=lambda: True, patience=Patience())
        edits.tell = editor.say_once
        self.client.assistant.edits = edits
        return self

    async def edit(self, name: str, text: str, turn: str = "t", session: str = "s") -> str:
        """The id of the edit."""
        workspace = Workspace(self.client.service.editor)
        place = workspace.locate(str(self.root / name))
        recorder = self.client.assistant.edits.recorder_of(turn, session)("c")
        seen = await current(workspace, place)
        edit = await recorder.record(place.path, seen, text)
        await put_text(workspace, place, seen, text)
        return edit.id

    async def command(self, deed: str, *arguments: str) -> Any:
        """The answer to `tiro.undoEdits` or `tiro.redoEdits`, in the session "s"."""
        self.client.assistant.session.id = "s"
        params = {"command": f"tiro.{deed}Edits", "arguments": list(arguments)}
        return await self.client.answer(self.client.request("workspace/executeCommand", params))

    async def listed(self, **params: Any) -> list[Any]:
        result = await self.client.call("tiro/edits/list", params)
        return list(result["edits"])


async def a_desk(folder: Path) -> Desk:
    (folder / "work").mkdir()
    return await Desk(folder / "work").open()


async def test_edits_are_listed_newest_first_and_say_what_they_are(tmp_path: Path) -> None:
    desk = await a_desk(tmp_path)
    path = put(desk.root, "a", "1\n2\n")
    first = await desk.edit("a", "1\n2\n3\n", "t1")
    second = await desk.edit("a", "1\n", "t2")
    edits = await desk.another_process().listed()
    assert [edit["id"] for edit in edits] == [second, first]
    at = edits[0].pop("at")
    assert at.endswith("Z")
    assert len(at) == len("2026-11-28T09:30:00.000Z")
    assert edits[0] == {
        "id": second, "turnId": "t2", "sessionId": "s", "path": str(path),
        "undone": False, "added": 0, "removed": 2,
    }  # fmt: skip
    assert [edit["id"] for edit in await desk.listed(limit=1)] == [second]
    assert [edit["id"] for edit in await desk.listed(turnId="t1")] == [first]
    assert await desk.listed(limit=0) == await desk.listed(turnId="t3") == []


async def test_undo_and_redo_answer_with_the_files(tmp_path: Path) -> None:
    desk = await a_desk(tmp_path)
    path = put(desk.root, "a", "a\n")
    edit_id = await desk.edit("a", "b\n")
    call = desk.another_process().client.call
    done = {"paths": [str(path)], "commands": []}
    assert await call("tiro/edits/undo", {"turnId": "t"}) == done
    assert path.read_bytes() == b"a\n"
    assert [edit["undone"] for edit in await desk.listed()] == [True]
    assert await call("tiro/edits/undo", {"turnId": "t"}) == {"paths": [], "commands": []}
    assert await call("tiro/edits/redo", {"id": edit_id, "turnId": None}) == done
    assert path.read_bytes() == b"b\n"


@pytest.mark.parametrize(
    "params", [{"turnId": "a"}, {"id": "a", "turnId": "t"}, {"id": "a"}, {"id": 1}]
)
async def test_what_is_not_said_or_not_known_is_invalid(tmp_path: Path, params: Any) -> None:
    desk = await a_desk(tmp_path)
    for method in ("tiro/edits/undo", "tiro/edits/redo"):
        error = await desk.client.error(method, params)
        assert error["code"] == -32602
        assert "edit" in error["message"] or "$.id" in error["message"]


async def test_a_conflict_names_the_files_and_our_later_edits(tmp_path: Path) -> None:
    desk = await a_desk(tmp_path)
    path = put(desk.root, "a", "a\n")
    first = await desk.edit("a", "b\n", "t1")
    later = await desk.edit("a", "c\n", "t2")
    error = await desk.client.error("tiro/edits/undo", {"id": first})
    assert error["code"] == -32050
    assert error["data"] == {
        "kind": "editConflict",
        "paths": [str(path)],
        "lines": {str(path): [[1, 1]]},
        "later": [later],
        "done": [],
    }
    assert path.read_bytes() == b"c\n"


async def test_undo_and_redo_without_an_id_go_from_turn_to_turn(tmp_path: Path) -> None:
    """In the order in which edits were made, taken back and made again; each is told before."""
    desk = await a_desk(tmp_path)
    path = put(desk.root, "a", "0\n")
    for turn, text in (("t1", "1\n"), ("t2", "2\n"), ("t2", "22\n"), ("t3", "3\n")):
        await desk.edit("a", text, turn)
    deeds = [("undo", "22", "t3"), ("undo", "1", "t2"), ("redo", "22", "t2"), ("undo", "1", "t2"),
             ("undo", "0", "t1"), ("redo", "1", "t1"), ("redo", "22", "t2"), ("redo", "3", "t3"),
             ("undo", "22", "t3")]  # fmt: skip
    for deed, text, turn in deeds:
        told = (await desk.client.call("tiro/edits/next", {}))[deed]
        assert (told["turnId"], told["sessionId"], told["paths"]) == (turn, "s", [str(path)])
        assert (await desk.command(deed))["result"] == {"paths": [str(path)], "commands": []}
        assert path.read_text() == f"{text}\n", (deed, turn)
        desk.another_process()


@pytest.mark.parametrize("answer", [{"title": "Take back"}, None, "error"])
async def test_any_client_is_asked_before_another_session_s_turn_is_taken_back(
    tmp_path: Path, answer: Any
) -> None:
    """By the command too: its user may not know that another editor worked here meanwhile."""
    desk = await a_desk(tmp_path)
    path = put(desk.root, "a", "0\n")
    await desk.edit("a", "1\n", "t1", session="other")
    undoing = asyncio.create_task(desk.command("undo"))
    refused = {"error": {"code": -32601, "message": "no"}}
    reply = refused if answer == "error" else {"result": answer}
    asked = await answering(desk.client, "window/showMessageRequest", lambda _: reply)
    assert asked["message"].startswith("Take back what another session did at 20")
    assert asked["message"].endswith(" (UTC) in a?")
    is_wanted = isinstance(answer, dict)
    assert (await undoing)["result"] == (
        {"paths": [str(path)], "commands": []} if is_wanted else None
    )
    assert path.read_text() == ("0\n" if is_wanted else "1\n")
    assert (await desk.command("undo" if not is_wanted else "redo", "t1"))["result"]["paths"]


async def test_without_an_id_and_without_edits_it_is_said_that_there_are_none(
    tmp_path: Path,
) -> None:
    desk = await a_desk(tmp_path)
    put(desk.root, "a", "a\n")
    assert await desk.client.call("tiro/edits/next", {}) == {"undo": None, "redo": None}
    await desk.edit("a", "b\n", "t1")
    redo = await desk.client.error("tiro/edits/redo", {})
    assert (redo["code"], "Nothing was taken back" in redo["message"]) == (-32602, True)
    assert (await desk.command("undo"))["result"]["paths"]
    undo = (await desk.command("undo"))["error"]
    assert (undo["code"], "no edits" in undo["message"]) == (-32602, True)
    assert (await desk.command("undo", "t1"))["result"] == {"paths": [], "commands": []}


async def test_the_edits_of_other_folders_and_sessions_are_left_alone(tmp_path: Path) -> None:
    """They are another editor's, which has them open."""
    desk = await a_desk(tmp_path)
    for turn, session in (("t1", "mine"), ("t2", "theirs")):
        recorder = desk.client.assistant.edits.recorder_of(turn, session)("c")
        await recorder.record(tmp_path / "elsewhere" / "a", None, "text\n")
    edits = desk.client.assistant.edits
    for session, turn in (("mine", "t1"), ("theirs", "t2")):
        found = await edits.next("undone", session)
        assert found is not None
        assert (found.turn_id, found.session_id) == (turn, session)
    assert await edits.next("undone", None) is None


async def test_the_user_hears_once_that_edits_cannot_be_recorded(tmp_path: Path) -> None:
    desk = await a_desk(tmp_path)
    put(tmp_path, "edits", "a file where the folder should be")
    for _ in range(3):
        with pytest.raises(ToolError, match="nothing was changed"):
            await desk.edit("a", "b\n")
    assert not (desk.root / "a").exists()
    [told] = await desk.client.until(lambda: desk.client.sent("window/showMessage"))
    assert "cannot be recorded" in told["message"]


async def test_the_next_start_removes_what_a_killed_write_left(tmp_path: Path) -> None:
    desk = await a_desk(tmp_path)
    await desk.edit("sub/a", "a\n")
    left = put(desk.root, "sub/.tiro-0123456789abcdef.tmp", "half of it")
    os.utime(left, (0, 0))
    await asyncio.to_thread(desk.another_process().client.assistant.edits.prune)
    assert [path.name for path in left.parent.iterdir()] == ["a"]
