"""What only the Redis store promises: Redis' own expiry, no secret in an error, the extra named."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from msgspec.structs import replace

from tests.sizes import PATIENCE, sized
from tests.stores.contract.redis_server import RedisServer
from tests.stores.contract.test_contract import until
from tiro import SessionNotFoundError, StorageError
from tiro.stores import redis as redis_store
from tiro.stores.lock import Holder, is_gone, this_process
from tiro.stores.redis import LEASE_SECONDS, RedisStore, Server

NEVER = 1e6


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    return f"{tmp_path}:"


@pytest.fixture
def store(redis_server: RedisServer, prefix: str) -> Iterator[RedisStore]:
    with RedisStore(redis_server.url, NEVER, prefix=prefix) as store:
        yield store


@pytest.fixture
def raw(redis_server: RedisServer) -> Iterator[Any]:
    with redis.Redis.from_url(redis_server.url) as client:
        yield client


def test_redis_itself_removes_what_has_expired(store: RedisStore, raw: Any, prefix: str) -> None:
    """G5.3: native TTL; what is left of it in lists goes with the next clean-up."""
    store.create("for ever")
    session = store.create("x", 0.2)
    session.set("k", 1)
    with suppress(SessionNotFoundError):  # the machine may be busy for so long
        store.save(session)
    until(lambda: not raw.exists(f"{prefix}session:x", f"{prefix}changes:x"))
    with pytest.raises(SessionNotFoundError):
        store.get("x")
    assert store.count() == 1
    store.delete_expired()
    assert raw.hkeys(f"{prefix}sessions") == [b"for ever"]
    assert raw.zrange(f"{prefix}expiring", 0, -1) == []
    assert raw.ttl(f"{prefix}session:for ever") == -1


def test_every_key_of_a_session_expires(store: RedisStore, raw: Any, prefix: str) -> None:
    session = store.create("x", 3600)
    session.set("k", 1)
    store.save(session)
    for name in ("session", "changes"):
        assert 0 < raw.pttl(f"{prefix}{name}:x") <= 3_600_002


def test_a_deleted_session_leaves_no_key(store: RedisStore, raw: Any, prefix: str) -> None:
    session = store.create("x", 3600)
    session.set("k", 1)
    store.save(session)
    store.delete("x")
    assert raw.keys(f"{prefix}*") == []


def test_the_lock_of_a_holder_that_died_lapses(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """U9.8: a lease, which its holder renews while it lives."""
    first, second = (Server(redis_server.url, prefix=f"{tmp_path}:") for _ in range(2))
    monkeypatch.setattr(redis_store, "LEASE_SECONDS", 0.05)
    assert first.lock("x").try_take()
    until(second.lock("x").try_take)
    for server in (first, second):
        server.close()


@pytest.mark.parametrize("is_reaped", [True, False])
def test_the_lock_of_a_holder_that_was_killed_here_is_free_at_once(
    redis_server: RedisServer, raw: Any, tmp_path: Path, is_reaped: bool
) -> None:
    """U9.8: not after its lease; also while its parent has not asked for its end."""
    place = (redis_server.url, f"{tmp_path}:")
    with holder_of(*place) as holding:
        server = Server(redis_server.url, prefix=place[1])
        lock = server.lock("x")
        assert raw.persist(f"{place[1]}lock:x")  # it never lapses
        holding.send_signal(signal.SIGSTOP)
        assert not lock.try_take()
        assert lock.holder() is not None
        holding.kill()
        os.waitid(os.P_PID, holding.pid, os.WEXITED | os.WNOWAIT)
        if is_reaped:
            holding.wait()
        assert lock.try_take()
        server.close()


def test_of_many_that_see_a_dead_holder_one_gets_the_lock(
    redis_server: RedisServer, raw: Any, tmp_path: Path
) -> None:
    """Never two writers."""
    prefix = f"{tmp_path}:"
    with holder_of(redis_server.url, prefix) as holding:
        pass
    assert holding.returncode is not None
    left = raw.get(f"{prefix}lock:x")
    servers = [Server(redis_server.url, prefix=prefix) for _ in range(4)]
    with ThreadPoolExecutor(len(servers)) as pool:
        for _ in range(sized(fast=20, normal=100, long=1000)):
            raw.set(f"{prefix}lock:x", left, px=30_000)
            begin = threading.Barrier(len(servers))
            assert sum(pool.map(partial(take_together, begin), servers)) == 1
    for server in servers:
        server.close()


def take_together(begin: threading.Barrier, server: Server) -> bool:
    lock = server.lock("x")
    begin.wait(PATIENCE)
    return lock.try_take()


@contextmanager
def holder_of(url: str, prefix: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of the session `x`; ended by a kill."""
    code = (
        "import sys; from tiro.stores.redis import Server;"
        "assert Server(sys.argv[1], prefix=sys.argv[2]).lock('x').try_take();"
        "print(flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, url, prefix],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout
        assert process.stdout.readline() == "\n"
        yield process
        process.kill()


def test_who_is_gone_is_known_of_this_machine_alone() -> None:
    """A number is given again; other machines have their own; an older Tiro said no more."""
    us = this_process()
    assert us.life is not None
    machine, _, start = us.life.rpartition("/")
    assert not is_gone(us)
    assert is_gone(replace(us, life=f"{machine}/{int(start) - 1}"))
    assert not is_gone(replace(us, pid=2**22 + 1, life=f"another/{start}"))
    assert is_gone(replace(us, pid=2**22 + 1))
    assert not is_gone(replace(us, pid=2**22 + 1, life=None))
    assert not is_gone(Holder())


def test_a_lock_is_renewed_and_given_back_by_its_holder_only(
    redis_server: RedisServer, raw: Any, prefix: str
) -> None:
    server = Server(redis_server.url, prefix=prefix)
    mine, other = server.lock("x"), server.lock("x")
    assert mine.try_take()
    assert not other.try_take()
    holder = other.holder()
    assert holder is not None
    assert holder.pid == os.getpid()
    assert raw.pexpire(f"{prefix}lock:x", 100_000_000)
    other.renew()
    assert raw.pttl(f"{prefix}lock:x") > 1_000_000
    mine.renew()
    assert raw.pttl(f"{prefix}lock:x") <= LEASE_SECONDS * 1000
    other.release()
    assert not other.try_take()
    mine.release()
    assert other.holder() is None
    assert other.try_take()
    mine.release()
    assert raw.exists(f"{prefix}lock:x")
    server.close()


def test_an_error_names_the_server_and_no_secret(tmp_path: Path) -> None:
    with RedisStore("redis://ada:secret@127.0.0.1:1/0", NEVER) as store:
        with pytest.raises(StorageError, match=r"127\.0\.0\.1:1/0 ") as told:
            store.get("x")
        assert "secret" not in f"{told.value!r} {told.value} {told.value.data} {store.shelf!r}"


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(StorageError, match=r"tiro\[redis\]"):
        RedisStore("redis://127.0.0.1:1/0", NEVER)
