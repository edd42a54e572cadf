"""`RedisStore`: sessions on a Redis server that any number of machines may share.

A session is a hash with its snapshot and a list of the changes since, one item a save, and a field
of one hash for lists. Each write is one script, so it happens whole or not at all, and first checks
which state it follows on; one that is sent again because its answer was lost does nothing. Redis
itself removes what has expired, by its own clock; ours decides what counts as expired.
"""

import contextlib
import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec

from tiro.errors import StorageError
from tiro.session.changes import Change
from tiro.session.core import Core
from tiro.session.times import Clock, rfc3339, utc_now
from tiro.stores.about import Heading
from tiro.stores.journal import change_lines
from tiro.stores.kept import KeptStore, replay
from tiro.stores.session_files import encode_snapshot
from tiro.stores.store import CLEANUP_SECONDS, expires_at

ANSWER_SECONDS = 5.0
"""How long an answer, or a connection, is waited for before it is tried again."""
TRIES = 3

# In all scripts: KEYS are the session, its changes, what lists say, when sessions expire.
_INSERT = """
local birth = redis.call('HGET', KEYS[1], 'birth')
if birth then return birth == ARGV[2] and 1 or 0 end
redis.call('HSET', KEYS[1], 'birth', ARGV[2], 'n', ARGV[3], 'snapshot', ARGV[4],
           'expires_at', ARGV[5])
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[6])
redis.call('ZREM', KEYS[4], ARGV[1])
if ARGV[7] ~= '' then
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
  redis.call('ZADD', KEYS[4], ARGV[5], ARGV[1])
end
return 1
"""
_APPEND = """
local found = redis.call('HMGET', KEYS[1], 'birth', 'n')
if found[1] ~= ARGV[2] then return 0 end
if found[2] == ARGV[4] and redis.call('LINDEX', KEYS[2], -1) == ARGV[5] then return 1 end
if found[2] ~= ARGV[3] then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[5])
redis.call('HSET', KEYS[1], 'n', ARGV[4])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[6])
local left = redis.call('PTTL', KEYS[1])
if left > 0 then redis.call('PEXPIRE', KEYS[2], left) end
return 1
"""
_REPLACE = """
local found = redis.call('HMGET', KEYS[1], 'birth', 'n', 'snapshot')
if found[1] ~= ARGV[2] then return 0 end
if found[2] == ARGV[4] and found[3] == ARGV[5] then return 1 end
if found[2] ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], 'n', ARGV[4], 'snapshot', ARGV[5])
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[6])
return 1
"""
_DELETE = """
local birth = redis.call('HGET', KEYS[1], 'birth')
if birth and ARGV[2] ~= '' and birth ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[4], ARGV[1])
return redis.call('HDEL', KEYS[3], ARGV[1])
"""
_DELETE_EXPIRED = """
local moment = redis.call('ZSCORE', KEYS[4], ARGV[1])
if not moment or tonumber(moment) >= tonumber(ARGV[2]) then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HDEL', KEYS[3], ARGV[1])
return redis.call('ZREM', KEYS[4], ARGV[1])
"""


class RedisStore(KeptStore):
    """Keeps sessions on the server at this address, such as `redis://host:6379/0`.

    Needs the extra `redis`. All keys begin with `prefix`. Whether a save that was answered survives
    the end of the server is for the server to say: with `appendonly yes`, `appendfsync always`.
    """

    def __init__(
        self,
        url: str,
        cleanup_interval_seconds: float = CLEANUP_SECONDS,
        clock: Clock = utc_now,
        prefix: str = "tiro:",
    ) -> None:
        super().__init__(Server(url, clock, prefix), cleanup_interval_seconds, clock)


class Server:
    """The sessions on one Redis server, as a shelf."""

    def __init__(self, url: str, clock: Clock, prefix: str) -> None:
        self.clock = clock
        self._prefix = prefix.encode()
        self._address = _without_secrets(url)
        self._errors, self._client = _client_at(url)
        self._scripts: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<Redis at {self._address}>"

    def insert(self, session: Core) -> "_KeptKeys | None":
        """Make the keys of a new session; None where there are some."""
        heading, birth, moment = Heading(session), uuid4().hex, expires_at(session)
        data = encode_snapshot(session, self.clock())
        values = (session.n, data, "" if moment is None else repr(moment))
        about = self.about(session, heading)
        if not self.run(_INSERT, session.id, birth, *values, about, self._left_ms(moment)):
            return None
        kept = _KeptKeys(self, session.id or "", (birth, session.n, moment), (data, []))
        kept.heading = heading
        return kept

    def find(self, id: str) -> "_KeptKeys | None":
        """Read the keys of a session."""
        session, changes, *_ = self._keys(id)
        with self._told("read"):
            together = self._client.pipeline(transaction=True)
            fields, lines = together.hgetall(session).lrange(changes, 0, -1).execute()
        if not fields:
            return None
        moment = float(fields[b"expires_at"]) if fields[b"expires_at"] else None
        state = (fields[b"birth"].decode(), int(fields[b"n"]), moment)
        return _KeptKeys(self, id, state, (fields[b"snapshot"], lines))

    def delete(self, id: str) -> bool:
        """Remove the keys of a session."""
        return self.run(_DELETE, id, "")

    def delete_expired(self, now: datetime) -> int:
        """Remove all that is left of sessions that have expired."""
        with self._told("read"):
            moment = repr(now.timestamp())
            ids = self._client.zrangebyscore(self._prefix + b"expiring", "-inf", f"({moment}")
        return sum(self.run(_DELETE_EXPIRED, id, moment) for id in ids)

    def count(self, now: datetime) -> int:
        """How many sessions there are, without the expired."""
        with self._told("read"):
            together = self._client.pipeline(transaction=True)
            together.hlen(self._prefix + b"sessions")
            together.zcount(self._prefix + b"expiring", "-inf", f"({now.timestamp()!r}")
            everything, expired = together.execute()
        return int(everything) - int(expired)

    def close(self) -> None:
        """Let go of all connections."""
        with self._told("read"):
            self._client.close()

    def about(self, session: Core, heading: Heading) -> bytes:
        """What lists say of a session."""
        return msgspec.json.encode(heading.about(session, rfc3339(self.clock())))

    def run(self, script: str, id: str | bytes | None, *values: object) -> bool:
        """Run a script on a session's keys, with its id and these values; what it answers."""
        if script not in self._scripts:
            self._scripts[script] = self._client.register_script(script)
        keys = self._keys(id or "")
        with self._told("written"):
            return bool(self._scripts[script](keys=keys, args=[_bytes(id or ""), *values]))

    def _keys(self, id: str | bytes) -> list[bytes]:
        names = (b"session:" + _bytes(id), b"changes:" + _bytes(id), b"sessions", b"expiring")
        return [self._prefix + name for name in names]

    def _left_ms(self, moment: float | None) -> str:
        """For how long Redis is to keep a session from now on; it is never the first to let go."""
        if moment is None:
            return ""
        return str(max(1, math.ceil((moment - self.clock().timestamp()) * 1000) + 1))

    @contextlib.contextmanager
    def _told(self, verb: str) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise StorageError(
                f"The sessions on the Redis server {self._address} could not be {verb}: {error}"
            ) from error


class _KeptKeys:
    """The keys of one session, as they were last seen."""

    def __init__(
        self,
        server: Server,
        id: str,
        state: tuple[str, int, float | None],
        texts: tuple[bytes, list[bytes]],
    ) -> None:
        self.heading: Heading | None = None
        self._server = server
        self._id = id
        self._birth, self._n, self.expires_at = state
        self._texts: tuple[bytes, list[bytes]] | None = texts
        self.snapshot_bytes = len(texts[0])
        self.changes_bytes = sum(map(len, texts[1]))

    def restore(self, session: Core) -> None:
        """Bring a session to what was read; called once."""
        assert self._texts is not None
        replay(session, *self._texts, self._n)
        self._texts, self.heading = None, Heading(session)

    def append(self, session: Core, first_n: int, changes: tuple[Change, ...]) -> bool:
        """Add one item with these changes to the list."""
        assert self.heading is not None
        self.heading.follow(session, changes)
        lines = change_lines(first_n, changes)
        if not self._write(_APPEND, session, lines):
            return False
        self.changes_bytes += len(lines)
        return True

    def replace(self, session: Core) -> bool:
        """Write the snapshot anew and empty the list of changes."""
        self.heading = Heading(session)
        data = encode_snapshot(session, self._server.clock())
        if not self._write(_REPLACE, session, data):
            return False
        self.snapshot_bytes, self.changes_bytes = len(data), 0
        return True

    def delete(self) -> bool:
        """Remove the keys, whatever others wrote to them."""
        return self._server.run(_DELETE, self._id, self._birth)

    def _write(self, script: str, session: Core, text: bytes) -> bool:
        assert self.heading is not None
        about = self._server.about(session, self.heading)
        state = (self._birth, self._n, session.n)
        if not self._server.run(script, self._id, *state, text, about):
            return False
        self._n = session.n
        return True


def _client_at(url: str) -> tuple[tuple[type[Exception], ...], Any]:
    """The errors of the library, and a client for this address; StorageError without the library.

    A call is tried again, on a new connection, when its answer does not come.
    """
    try:
        import redis
        from redis.backoff import ExponentialBackoff
        from redis.retry import Retry
    except ImportError as error:
        sentence = "Sessions on a Redis server need the extra `redis`: pip install 'tiro[redis]'"
        raise StorageError(sentence) from error
    client = redis.Redis.from_url(
        url,
        socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=ANSWER_SECONDS,
        retry=Retry(ExponentialBackoff(cap=0.1, base=0.01), TRIES),
    )
    return (redis.RedisError, OSError), client


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or 6379}" if parts.hostname else parts.path


def _bytes(id: str | bytes) -> bytes:
    return id if isinstance(id, bytes) else id.encode("utf-8", "surrogatepass")
