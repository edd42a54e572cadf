"""Several processes on one store, some of them killed: nothing that was answered is lost."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sizes import SECONDS, sized
from tests.stores.conftest import Tell
from tests.stores.contract.conftest import Open
from tests.stores.contract.redis_server import RedisServer
from tests.stores.contract.stores import SHARED, Stored
from tests.stores.look import texts
from tiro import SessionChangedError, StorageError
from tiro.stores.redis import RedisStore, Server

ROOT = Path(__file__).parents[3]


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.stores.contract.writing", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "server"), str(ROOT)))},
    )


@pytest.mark.parametrize("kind", SHARED)
def test_interleaved_saves_of_two_processes_lose_nothing(
    kind: str, store: Stored, tmp_path: Path, redis_url: str, record_property: Tell
) -> None:
    """Product bar: two processes, 1,000 interleaved saves; nothing is there twice either."""
    store.create("x")
    each = sized(fast=50, normal=500, long=2000)
    writers = [
        start("interleave", kind, str(tmp_path), redis_url, who, str(each)) for who in ("a", "b")
    ]
    ends = [writer.communicate(timeout=SECONDS - 5) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert all(json.loads(out) >= 0 for out, _ in ends)
    session = store.get("x")
    found = texts(session)
    for who in ("a", "b"):
        mine = [text for text in found if text.startswith(who)]
        assert mine == [f"{who}:{number}" for number in range(each)]
    assert len(found) == 2 * each
    assert [m["seq"] for m in session.messages] == list(range(1, 2 * each + 1))
    record_property(f"saves_{kind}", 2 * each)


@pytest.mark.parametrize("kind", SHARED)
@pytest.mark.parametrize("number", range(sized(fast=1, normal=2, long=25)))
def test_a_killed_writer_has_lost_nothing_it_was_answered(
    kind: str,
    store: Stored,
    tmp_path: Path,
    redis_url: str,
    open_another: Open,
    number: int,
    record_property: Tell,
) -> None:
    """Kill -9 in the middle of saves, some of which write a new snapshot."""
    session = store.create("x")
    session.add_message("user", "filler" * random.Random(number).randrange(20_000))
    store.save(session)
    writer = start("add_for_ever", kind, str(tmp_path), redis_url)
    assert writer.stdout
    answered = -1
    for line in writer.stdout:
        answered = int(line)
        if answered >= 20 + 37 * number:
            break
    writer.kill()
    answered = max([answered, *(int(line) for line in writer.stdout if line.endswith("\n"))])
    writer.wait()
    writer.stdout.close()
    other = open_another()
    session = other.get("x")
    found = texts(session)[1:]
    assert found == [f"message {number}" for number in range(len(found))]
    assert len(found) in (answered + 1, answered + 2)
    assert session.get("last") == len(found) - 1
    session.add_message("user", "goes on")
    other.save(session)
    assert texts(store.get("x"))[-1] == "goes on"
    record_property("writer_kills", 1)


def test_a_killed_redis_has_lost_nothing_it_has_answered(record_property: Tell) -> None:
    """With `appendonly yes` and `appendfsync always`; the same store goes on when it is back."""
    with RedisServer() as server, RedisStore(server.url, 1e6) as store:
        session = store.create("x")
        for round in range(rounds := sized(fast=2, normal=3, long=30)):
            saved = len(session.messages)
            for _ in range(20):
                session.add_message("user", f"message {len(session.messages)}")
                store.save(session)
                saved += 1
            server.kill()
            session.add_message("user", f"message {len(session.messages)}")
            with pytest.raises(StorageError, match="could not be written"):
                store.save(session)
            with pytest.raises(StorageError, match="could not be read"):
                store.get("x")
            server.start()
            assert texts(store.get("x")) == [f"message {n}" for n in range(saved)], round
            store.save(session)
            assert texts(store.get("x")) == texts(session)
    record_property("redis_kills", rounds)


def test_a_redis_killed_while_many_write_has_lost_nothing_it_has_answered(
    tmp_path: Path, record_property: Tell
) -> None:
    """Kill -9 of the server while a process writes as fast as it can."""
    with RedisServer() as server:
        for number in range(rounds := sized(fast=1, normal=2, long=25)):
            folder = tmp_path / str(number)
            with RedisStore(server.url, 1e6, prefix=f"{folder}:") as store:
                store.create("x")
                writer = start("add_for_ever", "redis", str(folder), server.url)
                assert writer.stdout
                answered = -1
                for line in writer.stdout:
                    answered = int(line)
                    if answered == 20 + 37 * number:
                        server.kill()  # the writer ends with the error that it is told
                assert writer.wait(SECONDS) == 1
                writer.stdout.close()
                server.start()
                found = texts(store.get("x"))
                assert len(found) in (answered + 1, answered + 2)
                assert found == [f"message {n}" for n in range(len(found))]
    record_property("redis_kills", rounds)


def test_a_save_that_is_sent_again_is_done_once(
    redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer was lost, not the write: sent again it neither doubles nor counts as stale."""
    with RedisStore(redis_server.url, 1e6, prefix=f"{tmp_path}:") as store:
        session = store.create("x")
        session.add_message("user", "one")
        send, lost = Server.run, []

        def run(server: Server, *sent: Any) -> bool:
            lost.append(send(server, *sent))
            return send(server, *sent)

        monkeypatch.setattr(Server, "run", run)
        store.save(session)
        session.change(title="two")
        store.save(session)
        made = store.create("y")
        assert len(lost) == 3
        assert texts(store.get("x")) == ["one"]
        made.set("k", 1)
        store.save(made)
        assert store.get("y").get("k") == 1
        stale = store.get("x")
        session.set("k", 1)
        store.save(session)
        stale.set("k", 2)
        with pytest.raises(SessionChangedError):
            store.save(stale)
