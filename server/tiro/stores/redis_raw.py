"""The sessions on one Redis server, unread: what a look for damage reads and a repair writes."""

from datetime import datetime
from uuid import uuid4

from tiro.session.core import Core
from tiro.stores.about import Heading
from tiro.stores.redis import Server
from tiro.stores.shelf import TurnLock
from tiro.stores.shelf_verify import Found
from tiro.stores.vacuum import Vacuumed
from tiro.stores.verify import Damage

# KEYS as in all scripts, and where the damaged is kept: its snapshot, then its changes.
_PUT = """
local found = redis.call('HMGET', KEYS[1], 'birth', 'n', 'snapshot')
if (found[1] or '') ~= ARGV[2] then return 0 end
if tonumber(found[2] or '') and found[2] ~= ARGV[3] then return 0 end
local left = redis.call('PTTL', KEYS[1])
redis.call('RPUSH', KEYS[5], found[3] or '')
for _, lines in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
  redis.call('RPUSH', KEYS[5], lines)
end
if left > 0 then redis.call('PEXPIRE', KEYS[5], left) end
redis.call('DEL', KEYS[2])
if ARGV[4] == '' then
  redis.call('DEL', KEYS[1])
  redis.call('HDEL', KEYS[3], ARGV[1])
  redis.call('ZREM', KEYS[4], ARGV[1])
else
  redis.call('HSET', KEYS[1], 'birth', ARGV[4], 'writer', ARGV[4], 'n', ARGV[5],
             'snapshot', ARGV[6])
  redis.call('HSETNX', KEYS[1], 'expires_at', ARGV[8])
  redis.call('HSET', KEYS[3], ARGV[1], ARGV[7])
end
return 1
"""


class RawKeys:
    """The keys of a server's sessions; one is found by its id."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def name(self) -> str:
        """Where the server is."""
        return f"Redis at {self._server.address}"

    def problems(self, stamp: str) -> list[Damage]:
        """None: Redis reads its own files when it starts."""
        self._server.ping()
        return []

    def places(self) -> list[str]:
        """The ids of all sessions of which anything is there."""
        server, found = self._server, set[bytes]()
        with server.told("read"):
            client = server.connect()
            found.update(client.hkeys(server.prefix + b"sessions"))
            for kind in (b"session:", b"changes:"):
                start = server.prefix + kind
                pattern = _literally(start) + b"*"
                found.update(key[len(start) :] for key in client.scan_iter(pattern, count=1000))
        return sorted(id.decode("utf-8", "surrogatepass") for id in found)

    def read(self, place: str) -> Found | None:
        """The keys of one session; None for what Redis has removed because it expired."""
        server = self._server
        session, changes, listed, expiring = server.keys_of(place)
        id = place.encode("utf-8", "surrogatepass")
        with server.told("read"):
            together = server.connect().pipeline(transaction=True)
            together.hgetall(session).lrange(changes, 0, -1).hget(listed, id).zscore(expiring, id)
            fields, lines, row, moment = together.execute()
        if not fields and not lines and row is None:
            return None
        birth = fields.get(b"birth", b"").decode("utf-8", "replace")
        n = fields.get(b"n", b"").decode("ascii", "replace")
        return Found(
            id=place,
            birth=birth,
            n=int(n) if n.isdecimal() else 0,
            expires_at=moment,
            snapshot=fields.get(b"snapshot"),
            changes=lines,
            is_listed=server.listed_birth(row) == birth,
        )

    def put(self, found: Found, session: Core | None, stamp: str) -> str | None:
        """As `RawShelf.put`; what was found is kept under a key of its own."""
        server = self._server
        kept = server.prefix + f"damaged:{found.id}:{stamp}".encode("utf-8", "surrogatepass")
        new: tuple[object, ...] = ("", "", "", "", "")
        if session is not None:
            birth, data = found.birth or uuid4().hex, server.encoded(session)
            state = birth, session.n, found.expires_at
            about = server.about(session, Heading(session), state, len(data))
            moment = "" if found.expires_at is None else repr(found.expires_at)
            new = (birth, session.n, data, about, moment)
        keys = [*server.keys_of(found.id), kept]
        id = found.id.encode("utf-8", "surrogatepass")
        is_done = server.run_on(_PUT, keys, id, found.birth, found.n, *new)
        return kept.decode("utf-8", "replace") if is_done else None

    def lock(self, id: str) -> TurnLock:
        """The lock of the session with this id."""
        return self._server.lock(id)

    def vacuum(self, *, now: datetime) -> Vacuumed:
        """Remove what lists still hold of the expired; Redis itself gives back the room."""
        return Vacuumed(self._server.delete_expired(now), 0, 0)

    def unneeded(self, *, now: datetime) -> Vacuumed:
        """How many of the expired lists still hold."""
        server = self._server
        with server.told("read"):
            limit = f"({now.timestamp()!r}"
            count = server.connect().zcount(server.prefix + b"expiring", "-inf", limit)
        return Vacuumed(int(count), 0, 0)


def _literally(text: bytes) -> bytes:
    """A pattern that stands for this text."""
    return b"".join(b"\\" + bytes([c]) if c in b"*?[]\\^-" else bytes([c]) for c in text)
