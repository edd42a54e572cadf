"""Small whole images in the four formats, 3 pixels wide and 2 high, made without a library."""

import struct
import zlib


def png(width: int = 3, height: int = 2) -> bytes:
    """A grey image."""
    rows = b"".join(b"\0" + bytes(width) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def jpeg(width: int = 3, height: int = 2) -> bytes:
    """The frame of one, with a thumbnail's header before it that must not be taken for it."""
    thumbnail = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, 99, 99, 1)
    application = b"\xff\xe1" + struct.pack(">H", 2 + len(thumbnail)) + thumbnail
    frame = b"\xff\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    scan = b"\xff\xda" + struct.pack(">H", 8) + b"\1\1\0\0\x3f\0" + b"\x12\x34"
    return b"\xff\xd8" + application + frame + scan + b"\xff\xd9"


def gif(width: int = 3, height: int = 2) -> bytes:
    """A frame of one."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0" + bytes(6) + b"\x3b"


def webp(kind: bytes, width: int = 3, height: int = 2) -> bytes:
    """The header of one: lossy, lossless, or with further features."""
    sizes = {
        b"VP8 ": b"\x30\1\0\x9d\1\x2a" + struct.pack("<HH", width, height),
        b"VP8L": b"\x2f" + struct.pack("<I", width - 1 | height - 1 << 14),
        b"VP8X": b"\0\0\0\0" + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3],
    }
    body = b"WEBP" + kind + struct.pack("<I", len(sizes[kind])) + sizes[kind] + bytes(4)
    return b"RIFF" + struct.pack("<I", len(body)) + body
