"""The trash of a Redis server: keys renamed, by one script each time (`RawTrash`).

An answer may be lost though a script ran: asked again, each says that it is done.
"""

import logging
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import uuid4

import msgspec

from tiro.session.json_text import encode
from tiro.stores.about import About
from tiro.stores.shelf import DeletedRow, KeptTexts

# In all scripts: KEYS are those of `Server.keys_of`, then the session, its changes and the list of
# the trash, and whose removal was answered last; ARGV[1] is the id, ARGV[2] what tells the session
# from others of its id.
_PUT = """
if redis.call('HGET', KEYS[1], 'birth') ~= ARGV[2] then
  return redis.call('HEXISTS', KEYS[7], ARGV[2])
end
redis.call('RENAME', KEYS[1], KEYS[5])
redis.call('PERSIST', KEYS[5])
if redis.call('EXISTS', KEYS[2]) == 1 then
  redis.call('RENAME', KEYS[2], KEYS[6])
  redis.call('PERSIST', KEYS[6])
end
redis.call('HSET', KEYS[7], ARGV[2], '[' .. ARGV[3] .. ',' .. ARGV[4] .. ',' .. ARGV[5] .. ']')
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[4], ARGV[1])
return 1
"""
_RESTORE = """
local there = redis.call('HGET', KEYS[1], 'birth')
if there then return there == ARGV[2] and 1 or 0 end
if redis.call('EXISTS', KEYS[5]) == 0 then return 0 end
redis.call('DEL', KEYS[2])
redis.call('RENAME', KEYS[5], KEYS[1])
if redis.call('EXISTS', KEYS[6]) == 1 then redis.call('RENAME', KEYS[6], KEYS[2]) end
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
redis.call('HDEL', KEYS[7], ARGV[2])
if ARGV[4] ~= '' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  redis.call('ZADD', KEYS[4], ARGV[5], ARGV[1])
end
return 1
"""
_REMOVE = """
redis.call('DEL', KEYS[5], KEYS[6])
if redis.call('HDEL', KEYS[7], ARGV[2]) == 0 then
  return redis.call('GET', KEYS[8]) == ARGV[3] and 1 or 0
end
redis.call('SET', KEYS[8], ARGV[3], 'PX', ARGV[4])
return 1
"""
_ASKED_AGAIN_MS = 120_000
"""For how long a removal is known to be whose: longer than anybody asks again."""

log = logging.getLogger(__name__)


class Redis(Protocol):
    """What it asks of the server."""

    prefix: bytes

    def connect(self) -> Any:
        """The client of the library."""
        ...

    def told(self, verb: str) -> AbstractContextManager[None]:
        """What fails inside raises StorageError."""
        ...

    def keys_of(self, id: str | bytes) -> list[bytes]:
        """The keys of a session, and of all."""
        ...

    def row_of(self, id: str) -> tuple[str, bytes] | None:
        """What tells a session from later ones of its id, and what lists say of it."""
        ...

    def left_ms(self, moment: float | None) -> str:
        """For how long Redis is to keep a session from now on; empty: for ever."""
        ...

    def run_on(self, script: str, keys: list[bytes], *values: object) -> bool:
        """Run a script on these keys with these values; what it answers."""
        ...


class TrashKeys:
    """The sessions that were deleted from one server."""

    def __init__(self, server: Redis) -> None:
        self._server = server

    def put(self, id: str, now: datetime) -> bool:
        """As `RawTrash.put`."""
        row = self._server.row_of(id)
        if row is None:
            return False
        birth, listed = row
        return self._run(_PUT, id, birth, repr(now.timestamp()), encode(id), listed)

    def rows(self) -> list[DeletedRow]:
        """As `RawTrash.rows`."""
        with self._server.told("read"):
            fields = self._server.connect().hgetall(self._server.prefix + b"trash")
        rows = []
        for text in fields.values():
            try:
                rows.append(_row(text))
            except (ValueError, OverflowError, OSError) as error:  # it costs the others nothing
                log.warning("A session in the trash cannot be listed: %s", error)
        return sorted(rows, key=lambda row: (row.deleted_at, row.key), reverse=True)

    def restore(self, key: str) -> bool:
        """As `RawTrash.restore`."""
        with self._server.told("read"):
            text = self._server.connect().hget(self._server.prefix + b"trash", key)
        if text is None:
            return False
        _, id, listed = _TEXT.decode(text)
        (_, _, moment), _ = _LISTED.decode(listed)
        left = self._server.left_ms(moment)
        return self._run(_RESTORE, id, key, bytes(listed), left, repr(moment))

    def read(self, key: str) -> KeptTexts | None:
        """As `RawTrash.read`."""
        session, changes = self._keys("", key)[4:6]
        with self._server.told("read"):
            together = self._server.connect().pipeline(transaction=True)
            fields, lines = together.hgetall(session).lrange(changes, 0, -1).execute()
        return KeptTexts(int(fields[b"n"]), (fields[b"snapshot"], lines)) if fields else None

    def remove(self, key: str) -> bool:
        """As `RawTrash.remove`."""
        return self._run(_REMOVE, "", key, uuid4().hex, _ASKED_AGAIN_MS)

    def _run(self, script: str, id: str, key: str, *values: object) -> bool:
        return self._server.run_on(script, self._keys(id, key), id, key, *values)

    def _keys(self, id: str, key: str) -> list[bytes]:
        text = key.encode()
        names = (b"thrown:" + text, b"thrown_changes:" + text, b"trash", b"removed:" + text)
        return [*self._server.keys_of(id), *(self._server.prefix + name for name in names)]


def _row(text: bytes) -> DeletedRow:
    moment, id, listed = _TEXT.decode(text)
    (birth, _, expires_at), about = _LISTED.decode(listed)
    return DeletedRow(birth, id, datetime.fromtimestamp(moment, UTC), expires_at, about)


_TEXT = msgspec.json.Decoder(tuple[float, str, msgspec.Raw])
_LISTED = msgspec.json.Decoder(tuple[tuple[str, int, float | None], About])
"""As the list of saved sessions has it."""
