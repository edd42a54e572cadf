"""What only the Redis store promises: Redis' own expiry, no secret in an error, the extra named."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.stores.contract.redis_server import RedisServer
from tests.stores.contract.test_contract import until
from tiro import SessionNotFoundError, StorageError
from tiro.stores.redis import RedisStore

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


def test_an_error_names_the_server_and_no_secret(tmp_path: Path) -> None:
    with RedisStore("redis://ada:secret@127.0.0.1:1/0", NEVER) as store:
        with pytest.raises(StorageError, match=r"127\.0\.0\.1:1 ") as told:
            store.get("x")
        assert "secret" not in f"{told.value!r} {told.value} {told.value.data} {store.shelf!r}"


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(StorageError, match=r"tiro\[redis\]"):
        RedisStore("redis://127.0.0.1:1/0", NEVER)
