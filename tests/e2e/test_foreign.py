"""A colleague's data opens in Tiro and goes back unchanged, over the wire (U7.4, issue 8)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.styles import Style, both_styles
from tests.e2e.talk import add, ask, view
from tests.stores.shapes import PIXEL
from tests.stores.shapes import SAMPLES as TODAY
from tests.stores.test_foreign import HEADER, STAMP, lines
from tests.stores.test_transcripts import SAMPLES, node, root, tree


def import_(server: Server, **params: Any) -> dict[str, Any]:
    shown: dict[str, Any] = server.request("tiro/session/import", params)
    return shown


def export(server: Server, format: str) -> dict[str, Any]:
    done: dict[str, Any] = server.request("tiro/session/export", {"format": format})
    return done


def rows(count: int) -> list[dict[str, Any]]:
    """More messages than the window holds, as nanobot writes them."""
    return [
        {
            "role": ("user", "assistant")[n % 2],
            "content": f"{n}",
            "timestamp": "2025-10-29T01:00:00",
        }
        for n in range(count)
    ]


def test_a_nanobot_file_goes_through_a_server_unchanged(server: Server, tmp_path: Path) -> None:
    """N6.1, U7.4: also what is longer than the window, after its session was saved and loaded."""
    said = rows(130)
    file = tmp_path / "telegram_42.txt"
    file.write_text(lines(HEADER, *said), "utf-8")
    shown = import_(server, path=str(file))
    assert (shown["id"], shown["total"]) == ("telegram-42", 130)
    server.request("tiro/session/configure", {"maxHistory": 100})
    server.request("tiro/session/clear")
    server.request("tiro/session/load", {"id": "telegram-42"})
    done = export(server, "nanobot")
    first, *again = map(json.loads, done["text"].splitlines())
    assert again == said
    assert {**first, "key": HEADER["key"], "updated_at": ""} == {**HEADER, "updated_at": ""}
    assert "notes" not in done


def test_a_magent_file_goes_through_a_server_unchanged(server: Server) -> None:
    """M4.2, U7.4."""
    said = [{"role": row["role"], "content": row["content"]} for row in rows(130)]
    import_(server, text=json.dumps({"id": "m", "messages": said, "timestamp": STAMP}))
    server.request("tiro/session/configure", {"maxHistory": 100})
    done = export(server, "magent")
    assert json.loads(done["text"])["messages"] == said
    assert done["notes"] == ["What magent has no place for: where the window begins"]


def test_entries_of_go_agent_go_through_a_server_unchanged(server: Server) -> None:
    """G3, U6.3: with its calls, and with what Tiro does not know."""
    stamps = [f"2025-10-29T00:59:38.{n}23456789+02:00" for n in range(3)]
    entries = [
        {"type": "message", "content": {"role": "user", "text": "look"}, "metadata": {"k": "v"}},
        {"type": "tool_call", "content": {"tool": "ls", "parameters": {"p": 1}}, "metadata": {}},
        {"type": "tool_result", "metadata": {}, "content": {
            "tool": "ls", "success": False, "result": None, "error": "no"}},
    ]  # fmt: skip
    given = [{"id": f"{n}", "timestamp": at, **entry, "x": n}
             for n, (at, entry) in enumerate(zip(stamps, entries, strict=True))]  # fmt: skip
    import_(server, text=json.dumps(given))
    done = export(server, "go-agent")
    assert json.loads(done["text"]) == given
    assert "notes" not in done


def test_an_export_says_what_it_loses(server: Server) -> None:
    """Issue 8: in the result, and only where something is lost."""
    add(server, "user", "q")
    server.request("tiro/session/configure", {"title": "Talk"})
    assert export(server, "nanobot")["notes"] == ["What nanobot has no place for: the title"]
    assert "notes" not in export(server, "json")


def test_every_transcript_is_found_by_what_is_in_it(server: Server, tmp_path: Path) -> None:
    """U7.4: the file's name says nothing; notes tell what is not in the session."""
    for name, text in SAMPLES.items():
        file = tmp_path / f"{name}.bin"
        file.write_text(text, "utf-8")
        shown = import_(server, path=str(file))
        assert shown["messages"][-1]["role"] in ("assistant", "user")
        told = "\n".join(shown.get("notes", []))
        assert ("Not taken over" in told) == (name in ("claude-code", "codex"))
        assert file.read_text("utf-8") == text


@both_styles
@pytest.mark.parametrize("name", TODAY)
def test_an_imported_talk_goes_on(
    server: Server, provider: Provider, style: Style, name: str
) -> None:
    """U3: the strict provider takes the next request, with pictures, signatures and open calls."""
    import_(server, text=TODAY[name])
    assert ask(server, "go on", model=style.model)["text"] == "ok"
    sent = json.dumps(provider.last.messages)
    assert (PIXEL in sent) == (name in ("claude-code", "codex"))


TREES = [
    tree(f"light{n}", root(), node("a", "root", "user", f"lighthouse {n}"), updated=n)
    for n in range(3)
]


def test_all_conversations_of_chatgpt_become_sessions(server: Server) -> None:
    """The newest is the current one; the others are saved, listed, found and can be loaded."""
    shown = import_(server, text=json.dumps(TREES))
    assert (shown["id"], shown["title"]) == ("light2", "Title light2")
    assert shown["notes"] == ["Older conversations in it, each a saved session now: 2"]
    listed = server.request("tiro/session/list", {"query": "Title light"})["sessions"]
    assert {row["id"] for row in listed} == {"light0", "light1", "light2"}
    hits = server.request("tiro/session/search", {"query": "lighthouse"})["hits"]
    assert {hit["id"] for hit in hits} == {"light0", "light1", "light2"}
    server.request("tiro/session/load", {"id": "light0"})
    assert view(server)["messages"][0]["content"] == "lighthouse 0"
    assert import_(server, text=json.dumps(TREES))["notes"] == [
        "Older conversations that are here already: 2",
        "The session 'light2' has the same messages; this one is a second one",
    ]


def test_without_autosave_only_the_newest_conversation_is_taken(
    start: StartServer, home: Home
) -> None:
    """M4.4: nothing is written; what is left out is told."""
    server = start(settings={"session": {"autosave": False}})
    shown = import_(server, text=json.dumps(TREES))
    assert shown["notes"] == ["Older conversations left out as nothing is saved by itself: 2"]
    assert shown["messages"][0]["content"] == "lighthouse 2"
    assert home.session_files() == []
