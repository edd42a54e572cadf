"""What looks like a key in bytes of which more may come: where it stands, and where one may begin.

A person pastes keys that no configuration names, and tools read them; recordings go to others.
"""

import re
from collections.abc import Sequence

from tiro.session.redact import shape_spans

LONGEST = 16_500
"""The longest that is waited for: a private key."""
CONTEXT = 128
"""How far before a key that which makes it one may stand, such as the name of a header."""

_HINTS = (
    *(b"sk-", b"sk_live_", b"rk_live_", b"gsk_", b"xai-", b"hf_", b"ghp_", b"gho_", b"ghu_"),
    *(b"ghs_", b"ghr_", b"github_pat_", b"glpat-", b"npm_", b"AKIA", b"ASIA", b"AIza", b"xapp-"),
    *(b"xoxa-", b"xoxb-", b"xoxe-", b"xoxo-", b"xoxp-", b"xoxr-", b"xoxs-", b"eyJ"),
)
_KEY = b"(?<![A-Za-z0-9_+/-])(?:%b)[A-Za-z0-9_.+/-]{0,4096}" % b"|".join(_HINTS)
_BEARER = rb"(?i:\bbearer[ ]{1,4})([A-Za-z0-9._~+/-]{0,4096}=*)"
_PRIVATE_KEY = rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----)[^\"]){0,16384}"
_PASSWORD = rb"://[^\s/:@?#\"'<>\\]{0,200}(?::[^\s/@\"'<>\\]{0,200})?"
_PARAMETER = rb"[?&][A-Za-z_-]{1,20}=[A-Za-z0-9._~+/%-]{0,4096}=*"
_SHAPES = (_KEY, _BEARER, _PRIVATE_KEY, _PASSWORD, _PARAMETER)
_OPEN = re.compile(rb"(?:%b|%b|%b|%b|%b)\Z" % _SHAPES, re.DOTALL)
_MAY_BE = (*_HINTS, b"earer ", b"EARER ", b"PRIVATE KEY")
_MAY_HOLD = re.compile(b"|".join((*_MAY_BE, b"://", b"=")))
_IN_ADDRESS = (b":", b"?", b"&")
"""How what is open in an address begins: it is no secret before its end has come."""
_HINT = re.compile(b"|".join(_HINTS))
_IN_KEY = re.compile(rb"[A-Za-z0-9_.+/-]*+")
_IN_PRIVATE_KEY = re.compile(rb'[^"-]*+')
_LONG_KEY = 4000
_LONG_PRIVATE_KEY = 16_000
_ESCAPE = re.compile(rb"\\+(?:u([0-9a-fA-F]{4})|/)")
_OPEN_ESCAPE = re.compile(rb"\\++(?:u[0-9a-fA-F]{0,3})?\Z")
"""An escape whose end is still to come."""
_MOST = 8
"""With more than so much behind its beginning, it would tell most of a key."""


def plain(data: bytes) -> tuple[bytes, Sequence[int]]:
    """Without JSON's escapes, also those of JSON in JSON, and where each byte and the end stood.

    Quotes, backslashes and what is not printed stay escaped: they tell where strings end.
    """
    if b"\\u" not in data and b"\\/" not in data:
        return data, range(len(data) + 1)
    parts, places, at = list[bytes](), list[int](), 0
    for found in _ESCAPE.finditer(data):
        parts += [data[at : found.start()], _character(found)]
        places += range(at, found.start())
        places += [found.start()] * len(parts[-1])
        at = found.end()
    return b"".join([*parts, data[at:]]), [*places, *range(at, len(data) + 1)]


def settled(data: bytes) -> bytes:
    """Without an escape at the end whose rest is still to come."""
    return _OPEN_ESCAPE.sub(b"", data)


def shapes_in(data: bytes) -> list[tuple[int, int]]:
    """Where something stands that looks like a key; none reaches beyond the string it stands in."""
    text, places = plain(data)
    return [(places[first], places[last]) for first, last in _spans(text)]


def open_shape(data: bytes) -> int:
    """Where at the end something begins that may become a key; the end where nothing does."""
    text, places = plain(settled(data))
    if _MAY_HOLD.search(text) and (found := _OPEN.search(text)) is not None:
        return places[found.start() if found.start(1) < 0 else found.start(1)]
    return len(data)


def goes_on(begun: bytes, length: int, more: bytes) -> bool:
    """Whether with `more` it is still open for certain: what began like this, and is so long."""
    if begun.startswith(b"-----BEGIN "):
        return length < _LONG_PRIVATE_KEY and _IN_PRIVATE_KEY.fullmatch(more) is not None
    return length < _LONG_KEY and _IN_KEY.fullmatch(more) is not None


def fresh_starts(data: bytes) -> list[int]:
    """Where the first letters of a key stand, whatever is before them."""
    return [found.start() for found in _HINT.finditer(data)]


def tells_most(begun: bytes) -> bool:
    """Whether what `open_shape` found is more than the beginning that all such keys have."""
    begun, _ = plain(begun)
    if begun.startswith(_IN_ADDRESS):
        return False
    hint = max((len(hint) for hint in _MAY_BE if hint in begun), default=0)
    return len(begun) - hint > _MOST and any(48 <= byte < 58 for byte in begun)


def _character(escape: re.Match[bytes]) -> bytes:
    """What an escape stands for, or the escape."""
    character = chr(int(escape[1], 16)) if escape[1] else "/"
    is_told = character.isprintable() and character not in '"\\'
    return character.encode() if is_told else escape[0]


def _spans(data: bytes) -> list[tuple[int, int]]:
    if not _MAY_HOLD.search(data):
        return []
    text = data.decode("latin-1")
    spans = []
    for first, last in shape_spans(text):
        quoted = text.find('"', first, last)
        end = last if quoted < 0 else len(text[first:quoted].rstrip("\\")) + first
        if end > first:
            spans.append((first, end))
    return spans
