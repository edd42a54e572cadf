"""Text as tools show and write it: bytes ↔ text by a named encoding, lines, cuts with a mark.

Law: `encode_text` of what `decode_text` found gives exactly the same bytes.
"""

import codecs
import re

import msgspec

BINARY_PROBE_BYTES = 8192
LINE_CUT = "… [line cut, {total:,} characters]"


class Decoded(msgspec.Struct, frozen=True):
    """The text of a file."""

    text: str
    encoding: str
    is_guess: bool = False
    """The bytes do not say which encoding it is; this one is likely."""


def decode_text(data: bytes) -> Decoded | None:
    """The text of a file's bytes, or None when they are no text.

    A mark at the beginning decides; else it is UTF-8; what is not UTF-8 is guessed.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _marked(data[len(mark) :], encoding)
    if b"\0" in data[:BINARY_PROBE_BYTES]:
        return None
    try:
        return Decoded(data.decode("utf-8"), "UTF-8")
    except UnicodeDecodeError:
        return _guessed(data)


def encode_text(text: str, encoding: str) -> bytes:
    """The bytes of a text in an encoding as `decode_text` names it.

    Raises UnicodeEncodeError where the encoding lacks a character of the text.
    """
    if encoding == WINDOWS_1252:
        return codecs.charmap_encode(text, "strict", _TO_WINDOWS_1252)[0]
    name, mark, _ = encoding.partition(MARKED)
    codec = name.lower()
    marks = {coded: bytes_ for bytes_, coded in _MARKS} if mark else {}
    return marks.get(codec, b"") + text.encode(codec)


def decode_as(data: bytes, encoding: str) -> str | None:
    """The text for which `encode_text` gives exactly these bytes; None where there is none."""
    if encoding == WINDOWS_1252:
        return codecs.charmap_decode(data, "strict", _WINDOWS_1252)[0]
    mark = encode_text("", encoding)
    try:
        text = data.removeprefix(mark).decode(encoding.partition(MARKED)[0].lower())
    except UnicodeDecodeError:
        return None
    return text if encode_text(text, encoding) == data else None


def is_wide(encoding: str) -> bool:
    """Whether the line ends of a text in it are more than one byte."""
    return encoding.startswith(("UTF-16", "UTF-32"))


def with_line_ends(text: str, like: str) -> str:
    """The text with the line ends of another one, where that has CR LF or CR throughout."""
    ends = set(_ANY_LINE_END.findall(like))
    return plain_lines(text).replace("\n", ends.pop()) if len(ends) == 1 else text


def split_lines(text: str) -> list[str]:
    """The lines of a text as editors count them: CR LF, LF and CR end one.

    A line end at the end of the text begins no further line.
    """
    lines = plain_lines(text).split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def plain_lines(text: str) -> str:
    """The text with LF as its only line end."""
    return _LINE_ENDS.sub("\n", text) if "\r" in text else text


def cut_line(line: str, max_chars: int) -> str:
    """The line, or its beginning with a mark when it is too long to be shown."""
    if len(line) <= max_chars:
        return line
    return line[:max_chars] + LINE_CUT.format(total=len(line))


def _marked(data: bytes, encoding: str) -> Decoded | None:
    try:
        return Decoded(data.decode(encoding), encoding.upper() + MARKED)
    except UnicodeDecodeError:
        return None


def _guessed(data: bytes) -> Decoded:
    """Text that is not UTF-8: Chinese where all bytes above ASCII stand in pairs, else Latin-1."""
    if all(len(run) % 2 == 0 for run in _HIGH_BYTES.findall(data)):
        text = decode_as(data, GB18030)
        if text is not None:
            return Decoded(text, GB18030, is_guess=True)
    return Decoded(codecs.charmap_decode(data, "strict", _WINDOWS_1252)[0], WINDOWS_1252, True)


MARKED = " with a byte order mark"
UTF_8 = "UTF-8"
GB18030 = "GB18030"
WINDOWS_1252 = "Windows-1252"
_WINDOWS_1252 = "".join(
    chr(code) if char == "\ufffd" else char
    for code, char in enumerate(bytes(range(256)).decode("cp1252", "replace"))
)
"""The character of each byte; the five that have none stand for the controls of their number."""
_TO_WINDOWS_1252 = codecs.charmap_build(_WINDOWS_1252)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_LINE_ENDS = re.compile(r"\r\n?")
_ANY_LINE_END = re.compile(r"\r\n|\r|\n")
