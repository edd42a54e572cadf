"""`RedisStore`: sessions on a Redis server that any number of machines may share.

A session is a hash with its snapshot and a list of the changes since, one item a save, and a field
of one hash for lists. Each write is one script, so it happens whole or not at all, and first checks
which state it follows on. An answer may be lost or late though the write lands: so the hash says
who wrote last, and what is written again because of that takes the place of one's own write only.
Redis itself removes what has expired, by its own clock; ours decides what counts as expired.
"""

import contextlib
import logging
import math
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from uuid import uuid4
from weakref import WeakKeyDictionary

import msgspec

from tiro.errors import SessionFormatError, StorageError
from tiro.session.changes import Change
from tiro.session.core import Core
from tiro.session.json_text import encode
from tiro.session.times import Clock, rfc3339, utc_now
from tiro.stores.about import About, Heading
from tiro.stores.journal import change_lines
from tiro.stores.kept import KeptStore
from tiro.stores.lock import Holder, is_gone, this_process
from tiro.stores.redis_trash import TrashKeys
from tiro.stores.session_files import encode_snapshot
from tiro.stores.shelf import KeptTexts, Keys, NoKeys, Row
from tiro.stores.store import CLEANUP_SECONDS, expires_at, has_expired

log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0
"""How long an answer, or a connection, is waited for before it is tried again."""
TRIES = 3
LEASE_SECONDS = 30.0
"""How long a lock outlives its holder, and how often that says that it lives: thrice in this."""

# In all scripts: KEYS are the session, its changes, what lists say, when sessions expire.
_INSERT = """
local found = redis.call('HMGET', KEYS[1], 'birth', 'n', 'writer')
if found[1] then
  if found[1] ~= ARGV[2] or found[3] ~= ARGV[2] then return 0 end
  if tonumber(found[2]) >= tonumber(ARGV[3]) then return 1 end
end
redis.call('HSET', KEYS[1], 'birth', ARGV[2], 'writer', ARGV[2], 'n', ARGV[3],
           'snapshot', ARGV[4], 'expires_at', ARGV[5])
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
local found = redis.call('HMGET', KEYS[1], 'birth', 'n', 'writer')
if found[1] ~= ARGV[2] then return 0 end
if found[2] == ARGV[4] and found[3] == ARGV[7] then return 1 end
if found[2] ~= ARGV[3] then return 0 end
if redis.call('HEXISTS', KEYS[1], 'snapshot') == 0 then return 0 end
if redis.call('LLEN', KEYS[2]) ~= tonumber(ARGV[8]) then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[5])
redis.call('HSET', KEYS[1], 'n', ARGV[4], 'writer', ARGV[7])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[6])
local left = redis.call('PTTL', KEYS[1])
if left > 0 then redis.call('PEXPIRE', KEYS[2], left) end
return 1
"""
_REPLACE = """
local found = redis.call('HMGET', KEYS[1], 'birth', 'n', 'writer')
if found[1] ~= ARGV[2] then return 0 end
if found[2] ~= ARGV[3] then
  if found[3] ~= ARGV[7] or tonumber(found[2]) > tonumber(ARGV[4]) then return 0 end
end
redis.call('HSET', KEYS[1], 'n', ARGV[4], 'snapshot', ARGV[5], 'writer', ARGV[7])
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
_RENEW = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0
"""
_RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
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
        server = Server(url, clock, prefix)
        server.connect()
        super().__init__(server, cleanup_interval_seconds, clock)


class Server:
    """The sessions on one Redis server, as a shelf."""

    def __init__(
        self,
        url: str,
        clock: Clock = utc_now,
        prefix: str = "tiro:",
        answer_seconds: float = ANSWER_SECONDS,
        tries: int = TRIES,
    ) -> None:
        self.clock = clock
        self.keys: Keys = NoKeys()
        self.busy_seconds = 0.0
        self.address = _without_secrets(url)
        self.prefix = prefix.encode()
        self._url = url
        self._patience = answer_seconds, tries
        self._errors: tuple[type[Exception], ...] = ()
        self._client: Any = None
        self._scripts: dict[str, Any] = {}
        self._births: WeakKeyDictionary[Core, tuple[str, str]] = WeakKeyDictionary()
        """Of sessions being inserted: their id, and what tells them from later ones of it."""
        self._lock = threading.Lock()

    @property
    def trash(self) -> TrashKeys:
        """The sessions that were deleted."""
        return TrashKeys(self)

    def __repr__(self) -> str:
        return f"<Redis at {self.address}>"

    def connect(self) -> Any:
        """The client of the library, made where there is none; StorageError without the library."""
        if self._client is None:
            self._errors, self._client = _client_at(self._url, *self._patience)
        return self._client

    def insert(self, session: Core) -> "_KeptKeys | None":
        """Make the keys of a new session; None where there are some."""
        heading, birth, moment = Heading(session), self._birth_of(session), expires_at(session)
        data = self.encoded(session)
        values = (session.n, data, "" if moment is None else repr(moment))
        about = self.about(session, heading, (birth, session.n, moment), len(data))
        is_ours = self.run(_INSERT, session.id, birth, *values, about, self.left_ms(moment))
        with self._lock:
            self._births.pop(session, None)
        if not is_ours:
            return None
        kept = _KeptKeys(self, session.id or "", (birth, session.n, moment), (data, []), birth)
        kept.heading = heading
        return kept

    def find(self, id: str) -> "_KeptKeys | None":
        """Read the keys of a session."""
        session, changes, *_ = self.keys_of(id)
        with self.told("read"):
            together = self.connect().pipeline(transaction=True)
            fields, lines = together.hgetall(session).lrange(changes, 0, -1).execute()
        if not fields:
            return None
        moment = float(fields[b"expires_at"]) if fields[b"expires_at"] else None
        state = (fields[b"birth"].decode(), int(fields[b"n"]), moment)
        return _KeptKeys(self, id, state, (fields.get(b"snapshot", b""), lines), uuid4().hex)

    def has(self, id: str) -> bool:
        """Whether a session has keys."""
        with self.told("read"):
            return bool(self.connect().exists(self.keys_of(id)[0]))

    def state_of(self, id: str) -> tuple[str, int] | None:
        """What tells a session from later ones of its id, and its last change."""
        with self.told("read"):
            birth, n = self.connect().hmget(self.keys_of(id)[0], "birth", "n")
        return None if birth is None else (birth.decode(), int(n))

    def row_of(self, id: str) -> tuple[str, bytes] | None:
        """What tells a session from later ones of its id, and what lists say of it.

        Where no list has it, that is read from the session.
        """
        session, _, listed, _ = self.keys_of(id)
        with self.told("read"):
            together = self.connect().pipeline(transaction=True)
            birth, row = together.hget(session, "birth").hget(listed, _bytes(id)).execute()
        if birth is None:
            return None
        if self.listed_birth(row) == birth.decode():
            return birth.decode(), row
        kept, core = self.find(id), Core(self.clock)
        if kept is None:
            return None
        with contextlib.suppress(SessionFormatError):
            kept.restore(core)
        state = (kept.birth, kept.n, kept.expires_at)
        size = kept.snapshot_bytes + kept.changes_bytes
        return kept.birth, self.about(core, Heading(core), state, size)

    def value_of(self, key: bytes) -> bytes | None:
        """The text under a key; None where there is none."""
        with self.told("read"):
            value: bytes | None = self.connect().get(key)
            return value

    def rows(self, now: datetime) -> list[Row]:
        """What lists say of all sessions, without the expired."""
        with self.told("read"):
            fields = self.connect().hgetall(self.prefix + b"sessions")
        rows = []
        for id, text in fields.items():
            try:
                (birth, n, moment), about = _LISTED.decode(text)
            except msgspec.MsgspecError as error:  # it costs the others nothing
                log.warning("A session cannot be listed: %s", error)
                continue
            if not has_expired(moment, now):
                rows.append(Row(id.decode("utf-8", "surrogatepass"), birth, n, about, moment))
        return sorted(rows, key=lambda row: (row.about.saved_at, row.id), reverse=True)

    def lock(self, id: str) -> "_Lease":
        """The lock of a session: a key that is gone a while after its holder."""
        return _Lease(self, self.prefix + b"lock:" + _bytes(id))

    def hurried(self) -> contextlib.AbstractContextManager[None]:
        """Nothing: a server that does not answer is given up soon."""
        return contextlib.nullcontext()

    def ping(self) -> None:
        """Raise StorageError where nothing can be read."""
        with self.told("read"):
            self.connect().ping()

    def delete(self, id: str) -> bool:
        """Remove the keys of a session."""
        return self.run(_DELETE, id, "")

    def delete_expired(self, now: datetime) -> int:
        """Remove all that is left of sessions that have expired."""
        with self.told("read"):
            moment = repr(now.timestamp())
            ids = self.connect().zrangebyscore(self.prefix + b"expiring", "-inf", f"({moment}")
        return sum(self.run(_DELETE_EXPIRED, id, moment) for id in ids)

    def count(self, now: datetime) -> int:
        """How many sessions there are, without the expired."""
        with self.told("read"):
            together = self.connect().pipeline(transaction=True)
            together.hlen(self.prefix + b"sessions")
            together.zcount(self.prefix + b"expiring", "-inf", f"({now.timestamp()!r}")
            everything, expired = together.execute()
        return int(everything) - int(expired)

    def close(self) -> None:
        """Let go of all connections."""
        if self._client is not None:
            with self.told("read"):
                self._client.close()

    def listed_birth(self, text: bytes | None) -> str | None:
        """Which session a line of the list speaks of; None where it cannot be read."""
        with contextlib.suppress(msgspec.MsgspecError):
            return _LISTED.decode(text or b"")[0][0]
        return None

    def encoded(self, session: Core) -> bytes:
        """A snapshot of a session."""
        return self.keys.redact(encode_snapshot(session, self.clock()))

    def about(self, session: Core, heading: Heading, state: "_State", size: int) -> bytes:
        """What lists say of a session."""
        about = heading.about(session, rfc3339(self.clock()), size)
        return self.keys.redact(encode((state, about)))

    def run(self, script: str, id: str | bytes | None, *values: object) -> bool:
        """Run a script on a session's keys, with its id and these values; what it answers."""
        return self.run_on(script, self.keys_of(id or ""), _bytes(id or ""), *values)

    def run_on(self, script: str, keys: list[bytes], *values: object) -> bool:
        """Run a script on these keys with these values; what it answers."""
        with self.told("written"):
            if script not in self._scripts:
                self._scripts[script] = self.connect().register_script(script)
            return bool(self._scripts[script](keys=keys, args=list(values)))

    def keys_of(self, id: str | bytes) -> list[bytes]:
        """The keys of a session, of its changes, of what lists say, and when sessions expire."""
        names = (b"session:" + _bytes(id), b"changes:" + _bytes(id), b"sessions", b"expiring")
        return [self.prefix + name for name in names]

    def _birth_of(self, session: Core) -> str:
        """What tells a new session from others of its id; the same until an insert is answered."""
        id, new = session.id or "", uuid4().hex
        with self._lock:
            before, birth = self._births.get(session, (id, new))
            self._births[session] = id, birth if before == id else new
            return self._births[session][1]

    def left_ms(self, moment: float | None) -> str:
        """For how long Redis is to keep a session from now on; it is never the first to let go."""
        if moment is None:
            return ""
        return str(max(1, math.ceil((moment - self.clock().timestamp()) * 1000) + 1))

    @contextlib.contextmanager
    def told(self, verb: str) -> Iterator[None]:
        """What the library raises inside is a StorageError."""
        try:
            yield
        except self._errors as error:
            raise StorageError(
                f"The sessions on the Redis server {self.address} could not be {verb}: {error}"
            ) from error


class _KeptKeys(KeptTexts):
    """The keys of one session, as they were last seen."""

    def __init__(
        self,
        server: Server,
        id: str,
        state: "_State",
        texts: tuple[bytes, list[bytes]],
        writer: str,
    ) -> None:
        self.birth, n, self.expires_at = state
        super().__init__(n, texts)
        self._items = len(texts[1])
        """How many items the list of changes has."""
        self._server = server
        self._writer = writer
        self._is_unsure = False
        """Whether a write was not answered, so that it may have landed."""
        self._id = id

    def append(self, session: Core, first_n: int, changes: tuple[Change, ...]) -> bool:
        """Add one item with these changes to the list."""
        if self._is_unsure:
            return self.replace(session)
        assert self.heading is not None
        self.heading.follow(session, changes)
        lines = self._server.keys.redact(change_lines(first_n, changes))
        size = self.snapshot_bytes + self.changes_bytes + len(lines)
        if not self._write(_APPEND, session, lines, size):
            return False
        self.changes_bytes += len(lines)
        self._items += 1
        return True

    def replace(self, session: Core) -> bool:
        """Write the snapshot anew and empty the list of changes."""
        self.heading = Heading(session)
        data = self._server.encoded(session)
        if not self._write(_REPLACE, session, data, len(data)):
            return False
        self.snapshot_bytes, self.changes_bytes, self._items = len(data), 0, 0
        return True

    def delete(self) -> bool:
        """Remove the keys, whatever others wrote to them."""
        return self._server.run(_DELETE, self._id, self.birth)

    def is_current(self) -> bool:
        """Whether the keys are still as they were last seen."""
        return self._server.state_of(self._id) == (self.birth, self.n)

    def _write(self, script: str, session: Core, text: bytes, size: int) -> bool:
        assert self.heading is not None
        state = (self.birth, session.n, self.expires_at)
        about = self._server.about(session, self.heading, state, size)
        values = (self.birth, self.n, session.n, text, about, self._writer, self._items)
        self._is_unsure = True
        is_ours = self._server.run(script, self._id, *values)
        self._is_unsure = False
        if is_ours:
            self.n = session.n
        return is_ours


class _Lease:
    """The lock of one session, by a key with a time to live."""

    renew_seconds = LEASE_SECONDS / 3

    def __init__(self, server: Server, key: bytes) -> None:
        self._server = server
        self._key = key
        self._value = encode((this_process(), uuid4().hex))

    def try_take(self) -> bool:
        """Take it if it is free; one whose holder died on this machine is."""
        return self._take() or (self._end_if_abandoned() and self._take())

    def renew(self) -> None:
        """Go on holding it, or take it again where it was lost."""
        self._take()

    def release(self) -> None:
        """Give it back."""
        self._server.run_on(_RELEASE, [self._key], self._value)

    def holder(self) -> Holder | None:
        """Who holds it."""
        value = self._server.value_of(self._key)
        return None if value is None else _HELD.decode(value)[0]

    def _take(self) -> bool:
        return self._server.run_on(_RENEW, [self._key], self._value, int(LEASE_SECONDS * 1000))

    def _end_if_abandoned(self) -> bool:
        """End the lease of a process that is gone; of several that see so, one does, then all race.

        It ends only with the very value that was looked at, which no other holder ever writes.
        """
        value = self._server.value_of(self._key)
        if value is None or not is_gone(_HELD.decode(value)[0]):
            return False
        self._server.run_on(_RELEASE, [self._key], value)
        return True


def _client_at(
    url: str, answer_seconds: float, tries: int
) -> tuple[tuple[type[Exception], ...], Any]:
    """The errors of the library, and a client for this address.

    Raises StorageError without the library, and where the address is none. A call is tried
    again, on a new connection, when its answer does not come.
    """
    try:
        import redis
        from redis.backoff import ExponentialBackoff
        from redis.retry import Retry
    except ImportError as error:
        sentence = "Sessions on a Redis server need the extra `redis`: pip install 'tiro[redis]'"
        raise StorageError(sentence) from error
    try:
        client = redis.Redis.from_url(
            url,
            socket_timeout=answer_seconds,
            socket_connect_timeout=answer_seconds,
            retry=Retry(ExponentialBackoff(cap=0.1, base=0.01), tries),
        )
    except ValueError:  # its words may quote the address, a password too
        sentence = "The address of the Redis server is none; write one such as redis://host:6379/0"
        raise StorageError(sentence) from None
    return (redis.RedisError, OSError), client


def _without_secrets(url: str) -> str:
    try:
        parts = urlsplit(url)
        place = f"{parts.hostname}:{parts.port or 6379}" if parts.hostname else ""
    except ValueError:
        return ""
    return place + (parts.path.rstrip("/") if parts.netloc or parts.scheme == "unix" else "")


def _bytes(id: str | bytes) -> bytes:
    return id if isinstance(id, bytes) else id.encode("utf-8", "surrogatepass")


_State: TypeAlias = tuple[str, int, float | None]
"""What tells a session from later ones of its id, its last change, when it expires."""
_LISTED = msgspec.json.Decoder(tuple[_State, About])
_HELD = msgspec.json.Decoder(tuple[Holder, str])
