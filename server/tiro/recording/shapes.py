"""What looks like a key in bytes of which more may come: where it stands, and where one may begin.

A person pastes keys that no configuration names, and tools read them; recordings go to others.
"""

import re

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
_OPEN = re.compile(rb"(?:%b|%b|%b)\Z" % (_KEY, _BEARER, _PRIVATE_KEY), re.DOTALL)
_MAY_BE = (*_HINTS, b"earer ", b"EARER ", b"PRIVATE KEY")
_MOST = 8
"""With more than so much behind its beginning, it would tell most of a key."""


def shapes_in(data: bytes) -> list[tuple[int, int]]:
    """Where something stands that looks like a key; none reaches beyond the string it stands in."""
    if not any(hint in data for hint in _MAY_BE) and b"=" not in data and b"://" not in data:
        return []
    text = data.decode("latin-1")
    spans = []
    for first, last in shape_spans(text):
        quoted = text.find('"', first, last)
        end = last if quoted < 0 else len(text[first:quoted].rstrip("\\")) + first
        if end > first:
            spans.append((first, end))
    return spans


def open_shape(data: bytes) -> int:
    """Where at the end something begins that may become a key; the end where nothing does."""
    if any(hint in data for hint in _MAY_BE) and (found := _OPEN.search(data)) is not None:
        return found.start() if found.start(1) < 0 else found.start(1)
    return len(data)


def tells_most(begun: bytes) -> bool:
    """Whether what `open_shape` found is more than the beginning that all such keys have."""
    hint = max((len(hint) for hint in _MAY_BE if hint in begun), default=0)
    return len(begun) - hint > _MOST and any(48 <= byte < 58 for byte in begun)
