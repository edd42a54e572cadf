"""For programs: a session as the text of a format, and a session out of such a text."""

from tiro.session.core import Core
from tiro.session.json_text import decode, encode
from tiro.session.session import Session
from tiro.session.snapshot import LISTS
from tiro.session.times import rfc3339, utc_now
from tiro.stores.formats import registry


def export_session(session: Core, format: str) -> str:
    """The session as text; nothing is taken out of it. InvalidInputError for an unknown format."""
    chosen = registry.to_write(format)
    with session.lock:
        fields = session.snapshot()
        lists = {name: fields.pop(name) for name in LISTS}
        data = encode({**fields, "timestamp": rfc3339(utc_now()), **lists})
    return chosen.dumps(decode(data))


def import_session(text: str, format: str | None = None) -> Session:
    """The session in a text, of this format or of the one that its content has.

    It keeps its id; without one it gets one. Raises SessionFormatError for what cannot be read,
    InvalidInputError for an unknown format.
    """
    chosen = registry.recognised(text) if format is None else registry.named(format)
    session, stored = Session(), chosen.loads(text).stored
    stored.fields["id"] = stored.fields["id"] or session.id
    session.restore(stored)
    return session
