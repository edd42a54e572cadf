"""What in a text acts on a screen or is not seen there, made visible: one notation everywhere.

A control character is its picture (`␛`), any other one its number (`⟨U+202E⟩`). The Emacs and VS
Code clients say the same of what they show.
"""

import re

_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_TURNING = "\u202a-\u202e\u2066-\u2069"
_UNSEEN = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028\u2029\u2060-\u2065"
    "\u206a-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_JOINING = "\u200c\u200d"
"""They belong into emoji and into words of many scripts, but into none in ASCII."""

_ACTING = re.compile(f"[{_CONTROL}{_TURNING}]")
_HIDING = re.compile(
    f"[{_CONTROL}{_TURNING}{_UNSEEN}]|(?<![^\0-\x7f])[{_JOINING}]|[{_JOINING}](?![^\0-\x7f])"
)
_LINE_END = re.compile(r"\r+(?=\n|\Z)")


def visible(text: str) -> str:
    """The text with a sign for each character that could hide something; tabs and lines stay."""
    return _HIDING.sub(_sign, text)


def harmless(text: str) -> str:
    """The text as prose may be shown: with a sign for what acts, its line ends plain ones."""
    return _ACTING.sub(_sign, _LINE_END.sub("", text))


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\u27e8U+{code:04X}\u27e9"
