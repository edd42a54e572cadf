"""A connection's messages on their way into a recording; a client's secret settings stay out.

A client may send a key in its settings, before the configuration could tell that it is one. So
these are looked for by their names.
"""

import os
import re
import time
from pathlib import Path
from typing import Any

import msgspec
from lsprotocol import types as lsp

from tiro.models.model import bare_url
from tiro.protocol import types
from tiro.protocol.frames import decode_body, encode_body
from tiro.recording.recorder import Recorder
from tiro.session.secrets import REDACTED

WITH_SETTINGS = (lsp.INITIALIZE, lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
_METHODS = re.compile("|".join(WITH_SETTINGS).encode())
_SECRET = re.compile(r"key|secret|token|passw|auth|header|proxy|credential", re.IGNORECASE)
_NOT_SECRET = "api_key_env"
_ADDRESS = re.compile(r"(?!file:)[\w+.-]+://")


class _Event(types.Wire, frozen=True):
    """What tells whose text a turn's event brings a piece of."""

    type: str
    turn_id: str
    tool_use_id: str = ""
    delta: str | None = None


class _Notification(types.Wire, frozen=True):
    params: _Event


_EVENT = b'"tiro/turn/event"'
_EVENTS = msgspec.json.Decoder(_Notification)


class RecordedConnection:
    """One connection, for `lifetime`; `recorder` is for whoever asks providers meanwhile."""

    def __init__(self, path: Path) -> None:
        """Begin the recording, in a new file of its own where the path is that of a directory.

        Raises StorageError when the file cannot be made.
        """
        path = path.expanduser()
        if path.is_dir():
            path /= time.strftime(f"tiro-%Y%m%d-%H%M%S-{os.getpid()}.jsonl")
        self._stored = 0
        self.recorder = Recorder(path, protocol=types.PROTOCOL_VERSION)

    def received(self, body: bytes) -> None:
        """A body that the client has sent, readable or not."""
        self.recorder.received(_without_settings_secrets(body))

    def sent(self, body: bytes) -> None:
        """A body for the client."""
        self.recorder.sent(body, self._text_of(body) if _EVENT in body else "")

    def _text_of(self, body: bytes) -> str:
        """Of which text the event brings a piece: of a tool's output, or of a message of a turn.

        In what is stored one message ends, and the next one begins.
        """
        try:
            event = _EVENTS.decode(body).params
        except msgspec.MsgspecError:
            return ""
        if event.type == "stored":
            self._stored += 1
        if event.delta is None:
            return ""
        part = event.tool_use_id or str(self._stored)
        return f"{event.type} {event.turn_id} {part}"


def _without_settings_secrets(body: bytes) -> bytes:
    if not _METHODS.search(body):
        return body
    try:
        message = decode_body(body)
    except ValueError:
        return b"(a message with settings that is no JSON)"
    is_one = isinstance(message, dict) and message.get("method") in WITH_SETTINGS
    return encode_body(_cleaned(message)) if is_one else body


def _cleaned(value: Any, is_secret: bool = False) -> Any:
    """A copy without what is secret by a name above it, or by its place in an address."""
    match value:
        case dict():
            return {
                name: _cleaned(
                    item, is_secret or (name != _NOT_SECRET and bool(_SECRET.search(name)))
                )
                for name, item in value.items()
            }
        case list():
            return [_cleaned(item, is_secret) for item in value]
        case str() if is_secret:
            return REDACTED
        case str() if _ADDRESS.match(value):
            return bare_url(value)
    return value
