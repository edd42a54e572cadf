"""Images as models take them: which a file holds, how large it is, and whether it is whole.

Law: only what every provider takes is shown to a model. A refused image stays in the session and
would be refused again with each later request.
"""

import base64
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from tiro.errors import ToolError

MAX_IMAGE_BYTES = 3_750_000
"""5 MB in base64, the least that a provider takes."""
MAX_IMAGE_SIDE = 8000

TOO_LARGE = (
    "{name!r} is a {kind} image of {width} x {height} pixels and {size:,} bytes; a model can be"
    " shown {limit:,} bytes and {side} pixels a side at most. Ask the user for a smaller one"
)
BROKEN = "{name!r} begins like a {kind} image, but is cut off or damaged; nothing was read"
PROBE_BYTES = 12


class Image(NamedTuple):
    """An image that a model can be shown."""

    kind: str
    width: int
    height: int
    data: bytes

    def block(self) -> dict[str, Any]:
        """The content block that shows it."""
        media_type = f"image/{self.kind.lower()}"
        data = base64.b64encode(self.data).decode("ascii")
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": "image", "source": source}


def image_kind(head: bytes) -> str | None:
    """The format of an image, by the first `PROBE_BYTES` of its file; None for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    return "WEBP" if head.startswith(b"RIFF") and head[8:12] == b"WEBP" else None


def read_image(name: str, data: bytes, size: int) -> Image:
    """The image in a file of this size; ToolError where a provider would refuse it.

    `data` holds the file up to one byte more than may be shown.
    """
    kind = image_kind(data) or ""
    try:
        width, height = _SIZES[kind](data)
    except (struct.error, StopIteration):
        width = height = 0
    side = max(width, height)
    if side and (size > MAX_IMAGE_BYTES or side > MAX_IMAGE_SIDE):
        raise ToolError(
            TOO_LARGE.format(
                name=name, kind=kind, width=width, height=height, size=size,
                limit=MAX_IMAGE_BYTES, side=MAX_IMAGE_SIDE,
            )
        )  # fmt: skip
    if not width or not height or not _is_whole(kind, data):
        raise ToolError(BROKEN.format(name=name, kind=kind))
    return Image(kind, width, height, data)


def _is_whole(kind: str, data: bytes) -> bool:
    """Whether the end of the file is there."""
    if kind == "WEBP":
        return int.from_bytes(data[4:8], "little") + 8 <= len(data)
    return _ENDS[kind] in data[-_SLACK_BYTES:]


def _png_size(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif_size(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """From the first frame header; the segments before it are skipped."""
    height, width = next(
        struct.unpack_from(">HH", data, place + 5)
        for marker, place in _jpeg_segments(data)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC)
    )
    return width, height


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Each segment up to the picture's data: its marker, and where it begins."""
    place = 2
    while data[place : place + 1] == b"\xff":
        (marker, length) = struct.unpack_from(">xBH", data, place)
        if marker == 0xFF:  # a filling byte
            place += 1
            continue
        yield marker, place
        if marker == 0xDA:
            return
        place += 2 + length


def _webp_size(data: bytes) -> tuple[int, int]:
    """From the first chunk: lossy, lossless, or with further features."""
    chunk = data[12:16]
    if chunk == b"VP8X":
        return (
            int.from_bytes(data[24:27], "little") + 1,
            int.from_bytes(data[27:30], "little") + 1,
        )
    if chunk == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


_SIZES = {"PNG": _png_size, "JPEG": _jpeg_size, "GIF": _gif_size, "WEBP": _webp_size}
_ENDS = {"PNG": b"IEND\xaeB`\x82", "JPEG": b"\xff\xd9", "GIF": b"\x3b"}
_SLACK_BYTES = 64
"""So near to the end of a file its last mark stands; some programs write a little behind it."""
