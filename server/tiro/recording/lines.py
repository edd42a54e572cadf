"""The format of a recording: one JSON object a line, in the order of their times.

`ms` counts from the first line, on a clock that never goes back. What was JSON stands under `json`,
other text under `text`, and bytes that are no UTF-8 under `base64`. `n` numbers the requests to
providers; the lines of one request may stand among those of others.
"""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from tiro.errors import InvalidInputError, StorageError

FORMAT = 1

Ending = Literal["complete", "closed", "cut", "reset", "silent", "unreachable"]
"""How a request ended: whole; by us; by the provider without an error of the network, though it
had promised more; by one; it said nothing for too long; there was no connection at all."""


class Line(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="line", omit_defaults=True
):
    """One line."""

    ms: float


class Payload(Line, frozen=True, kw_only=True):
    """A line that holds bytes, in the form that shows most of them."""

    json: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | None = None
    base64: str | None = None

    @property
    def data(self) -> bytes:
        """The bytes."""
        if not isinstance(self.json, msgspec.UnsetType):
            return bytes(self.json)
        return base64.b64decode(self.base64) if self.base64 else (self.text or "").encode()


class Header(Line, frozen=True, kw_only=True, tag="header"):
    """The first line."""

    format: int
    tiro: str
    protocol: int
    platform: str
    python: str


class MessageIn(Payload, frozen=True, kw_only=True, tag="message_in"):
    """A message of the editor."""


class MessageOut(Payload, frozen=True, kw_only=True, tag="message_out"):
    """A message to the editor."""


class Request(Payload, frozen=True, kw_only=True, tag="request"):
    """A request to a provider; the address and the headers are without secrets."""

    n: int
    provider: str
    api: str
    base_url: str
    method: str
    url: str
    headers: list[tuple[str, str]]


class Response(Line, frozen=True, kw_only=True, tag="response"):
    """The head of the answer."""

    n: int
    status: int
    headers: list[tuple[str, str]]


class Chunk(Payload, frozen=True, kw_only=True, tag="chunk"):
    """A piece of the answer's body, as long as it came."""

    n: int


class RequestEnd(Line, frozen=True, kw_only=True, tag="request_end"):
    """The end of a request; `error` names the class of what went wrong."""

    n: int
    how: Ending
    error: str = ""


class End(Line, frozen=True, kw_only=True, tag="end"):
    """The last line, when the server ended in order."""


AnyLine = Header | MessageIn | MessageOut | Request | Response | Chunk | RequestEnd | End


def json_payload(data: bytes) -> dict[str, Any]:
    """The fields of a `Payload` for what should be JSON."""
    try:
        data.decode("utf-8")
        raw = msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return payload(data)
    if b"\n" in data or b"\r" in data:
        return {"json": msgspec.Raw(msgspec.json.format(bytes(raw), indent=-1))}
    return {"json": raw}


def payload(data: bytes) -> dict[str, Any]:
    """The fields of a `Payload` for any bytes."""
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def encode_line(line: AnyLine) -> bytes:
    """The line with its end."""
    return msgspec.json.encode(line) + b"\n"


def read_lines(path: Path) -> tuple[Header, list[AnyLine]]:
    """The header and all other whole lines of a recording; a torn last one is left out.

    Raises StorageError when there is no such file, InvalidInputError for what is no recording.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StorageError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    lines = list(_decoded(path, data))
    header = lines[0] if lines else None
    if not isinstance(header, Header):
        raise InvalidInputError(f"{str(path)!r} is no recording of Tiro; make one with --record")
    if header.format > FORMAT:
        raise InvalidInputError(
            f"{str(path)!r} was recorded by Tiro {header.tiro}, which is newer; update this one"
        )
    return header, lines[1:]


def _decoded(path: Path, data: bytes) -> Iterator[AnyLine]:
    whole, _, _ = data.rpartition(b"\n")
    for number, line in enumerate(whole.split(b"\n") if whole else [], 1):
        try:
            yield _DECODER.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidInputError(
                f"{str(path)!r}, line {number} is no line of a recording: {error}"
            ) from error


_DECODER = msgspec.json.Decoder(AnyLine)
