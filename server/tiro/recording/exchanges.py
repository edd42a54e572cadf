"""A recording read: the header, the messages of both sides, and each request with its answer."""

from pathlib import Path

import msgspec

from tiro.errors import InvalidInputError
from tiro.recording.lines import (
    Chunk,
    Ending,
    Header,
    MessageIn,
    MessageOut,
    Request,
    RequestEnd,
    Response,
    read_lines,
)


class RecordedExchange(msgspec.Struct):
    """One request and what came back; times are in ms."""

    request: Request
    response: Response | None = None
    chunks: list[Chunk] = []
    end: RequestEnd | None = None

    @property
    def how(self) -> Ending:
        """How it ended; a recording that broke off in the middle did not see more of it."""
        return self.end.how if self.end else "closed"

    @property
    def path(self) -> str:
        """The path of its address."""
        return "/" + self.request.url.partition("://")[2].partition("/")[2]


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """All that a recording holds."""

    header: Header
    messages_in: list[MessageIn] = []
    messages_out: list[MessageOut] = []
    exchanges: list[RecordedExchange] = []

    def of_provider(self, name: str | None = None) -> list[RecordedExchange]:
        """The requests to this provider, or to the first that was asked to answer.

        Raises InvalidInputError when there are none.
        """
        asked = sorted(self.exchanges, key=lambda one: one.request.method != "POST")
        if name is None and asked:
            name = asked[0].request.provider
        found = [one for one in self.exchanges if one.request.provider == name]
        if not found:
            others = ", ".join(sorted({one.request.provider for one in asked})) or "nobody"
            about = "no provider" if name is None else repr(name)
            raise InvalidInputError(f"The recording holds requests to {others}, to {about} none")
        return found


def read_recording(path: Path) -> Recording:
    """Read a recording.

    Raises StorageError when there is no such file, InvalidInputError for what is no recording.
    """
    header, lines = read_lines(path)
    recording = Recording(header=header)
    by_number: dict[int, RecordedExchange] = {}
    for line in lines:
        match line:
            case MessageIn():
                recording.messages_in.append(line)
            case MessageOut():
                recording.messages_out.append(line)
            case Request():
                by_number[line.n] = RecordedExchange(line)
            case Response() if line.n in by_number:
                by_number[line.n].response = line
            case Chunk() if line.n in by_number:
                by_number[line.n].chunks.append(line)
            case RequestEnd() if line.n in by_number:
                by_number[line.n].end = line
            case _:
                pass
    recording.exchanges.extend(by_number.values())
    return recording
