"""The real server with its sessions in SQLite and on a real Redis server (`store:`)."""

import functools
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.command import Tiro
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold
from tests.e2e.talk import add, ask, begin_ask, latest, view, words
from tests.sizes import sized
from tests.stores.contract.redis_server import RedisServer


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(params=["sqlite", "redis"])
def kept(request: pytest.FixtureRequest, home: Home) -> Home:
    """A home whose configuration names a store."""
    store: dict[str, Any] = {"kind": "sqlite"}
    if request.param == "redis":
        store = {"kind": "redis", "url": request.getfixturevalue("redis").url}
    home.write_config(store=store, session={"max_history": 100_000})
    return home


def test_what_was_answered_survives_a_kill(start: StartServer, kept: Home) -> None:
    """`store` in the configuration: kill -9 at any moment loses no acknowledged message."""
    said: list[str] = []
    for run in range(sized(fast=2, normal=4, long=30)):
        server = start()
        if run:
            assert latest(server) == said
        for number in range(10):
            said.append(f"run {run} message {number}")
            add(server, "user", said[-1])
        server.kill()
    assert not kept.sessions.exists()


def test_sessions_are_listed_found_loaded_saved_and_deleted(
    start: StartServer, kept: Home, provider: Provider, tmp_path: Path
) -> None:
    provider.script(replies.text("The answer is 42."))
    server = start()
    ask(server, "What is the question?")
    first = view(server)
    server.request("tiro/session/clear")
    add(server, "user", "Another one")
    saved = server.request("tiro/session/save")
    assert saved["bytes"] > 100
    copy = server.request("tiro/session/save", {"path": str(tmp_path / "copy.json")})
    assert Path(copy["path"]).stat().st_size == copy["bytes"]
    rows = server.request("tiro/session/list")["sessions"]
    assert [row["title"] for row in rows] == ["Another one", "What is the question?"]
    hits = server.request("tiro/session/search", {"query": "answer 42"})["hits"]
    assert [(hit["id"], hit["path"]) for hit in hits] == [(first["id"], first["path"])]
    server.request("tiro/session/load", {"path": hits[0]["path"]})
    assert words(server) == ["What is the question?", "The answer is 42."]
    text = server.request("tiro/session/export", {"format": "json", "id": saved["id"]})["text"]
    assert "Another one" in text
    assert server.request("tiro/session/delete", {"id": saved["id"]}) == {"deleted": True}
    assert server.error("tiro/session/load", {"id": saved["id"]}).kind == "sessionNotFound"
    assert len(server.request("tiro/session/list")["sessions"]) == 1
    assert not kept.sessions.exists()


def test_one_editor_asks_and_the_other_goes_on(
    start: StartServer, kept: Home, provider: Provider
) -> None:
    """U9.8: one conversation, two servers, which may be on two machines with Redis."""
    one, other = start(), start()
    provider.script(replies.text("first answer"))
    ask(one, "first question")
    other.request("tiro/session/load", {"id": view(one)["id"]})
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("second"), hold))
    turn = begin_ask(one, "second question")
    hold.wait()
    refused = other.error("tiro/session/addMessage", {"role": "user", "content": "now"})
    assert (refused.kind, refused.data["pid"]) == ("sessionInUse", one.process.pid)
    hold.release()
    turn.result()
    other.wait_notification("tiro/session/changed", lambda p: p["reason"] == "changedOnDisk")
    assert words(other) == words(one)
    provider.script(replies.text("third answer"))
    ask(other, "third question")
    one.wait_notification("tiro/session/changed", lambda p: p["reason"] == "changedOnDisk")
    assert words(one)[-2:] == ["third question", "third answer"]
    assert len(words(one)) == 6


def test_who_is_killed_while_it_answers_holds_up_nobody(
    start: StartServer, kept: Home, provider: Provider
) -> None:
    """U9.8: another server on the machine goes on at once; the lease on Redis lasts for 30 s."""
    one, other = start(), start()
    ask(one, "first question")
    other.request("tiro/session/load", {"id": view(one)["id"]})
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    begin_ask(one, "second question")
    hold.wait()
    one.kill()
    hold.release()
    ask(other, "third question")
    assert [text for text in words(other) if "question" in text] == [
        "first question",
        "second question",
        "third question",
    ]


def test_a_turn_goes_on_while_redis_is_away(
    start: StartServer, home: Home, provider: Provider, redis: RedisServer
) -> None:
    """U9.5: told once; what was said meanwhile is stored as soon as it is back."""
    home.write_config(store={"kind": "redis", "url": redis.url})
    server = start()
    add(server, "user", "before")
    redis.kill()
    provider.script(replies.text("an answer meanwhile"))
    assert ask(server, "a question meanwhile")["stopReason"] == "end_turn"
    server.wait_notification("tiro/session/changed", lambda p: p["reason"] == "saveFailed")
    redis.start()
    server.wait_notification("tiro/session/changed", lambda p: p["reason"] == "saveResumed")
    server.kill()
    assert latest(start()) == ["before", "a question meanwhile", "an answer meanwhile"]


def test_a_store_that_only_an_editor_names_is_told(start: StartServer, home: Home) -> None:
    server = start(settings={"store": {"kind": "sqlite"}})
    problems = server.request("tiro/status")["problems"]
    assert [text for text in problems if "`store`" in text and "'files'" in text]


def test_doctor_says_where_the_sessions_are(start: StartServer, kept: Home, tiro: Tiro) -> None:
    server = start()
    add(server, "user", "hello")
    place = str(Path(view(server)["path"]).parent)
    (line,) = [line for line in tiro("doctor").stdout.splitlines() if line.startswith("Sessions")]
    assert line.startswith("Sessions    1 in ")
    assert place in line


def test_doctor_names_a_redis_that_is_away(home: Home, tiro: Tiro, redis: RedisServer) -> None:
    home.write_config(store={"kind": "redis", "url": redis.url})
    redis.kill()
    assert "could not be read" in tiro("doctor").stdout


def is_told(server: Server, text: str) -> bool:
    return any(text in params["message"] for params in server.named("window/showMessage"))


def test_what_a_locked_file_did_not_take_is_kept_when_the_server_is_ended(
    start: StartServer, home: Home, tiro: Tiro
) -> None:
    """By a signal as by `shutdown`: it is told where, then and at the next start."""
    home.write_config(store={"kind": "sqlite"})
    for end in ("shutdown", "SIGTERM"):
        server = start()
        add(server, "user", "stored")
        with closing(sqlite3.connect(home.config_dir / "sessions.db", isolation_level=None)) as sql:
            sql.execute("BEGIN IMMEDIATE")
            assert add(server, "user", f"not stored before {end}")["stored"] is False
            if end == "shutdown":
                assert server.shutdown() == 0
            else:
                server.process.send_signal(signal.SIGTERM)
                assert server.wait_exit() == 1
        (path,) = (home.config_dir / "rescued").iterdir()
        assert is_told(server, str(path))
        again = start()
        again.wait_until(functools.partial(is_told, again, str(path.parent)), "what waits there")
        assert tiro("sessions", "import", str(path)).returncode == 0
        assert latest(again) == ["stored", f"not stored before {end}"]
        path.unlink()
