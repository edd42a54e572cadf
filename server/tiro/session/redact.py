"""Secrets out of files, and what has a key's shape out of text.

Exact values never reach a file, a log or an error. Shapes are guesses, so they are taken only out
of what is shown and exported, never out of what is stored (U9.11).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, get_args

from tiro.session.changes import Change
from tiro.session.json_text import decode, encode
from tiro.session.messages import KNOWN_BLOCKS, OWN_ROLES, Message
from tiro.session.secrets import REDACTED, SHORTEST_IN_TEXT, spellings, without
from tiro.session.snapshot import FIELDS


class Redactor:
    """Takes exact values out of what is stored, as far as the file stays what it is.

    Left alone are values that are short, that are part of a word of the format itself, or that
    could be a time: a dummy key such as "metadata" must not cost a session.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self.secrets = tuple(dict.fromkeys(filter(_can_be_taken_out, secrets)))
        self.spelled = list(filter(_can_be_taken_out, spellings(self.secrets)))

    def text(self, text: str) -> str:
        """The text without them."""
        return without(text, self.spelled)

    def json(self, data: bytes) -> bytes:
        """The JSON without them; next to nothing for data in which none of them is.

        Numbers stay, and so does the layout: lines stay lines. Two names do not become one.
        """
        strings = _Strings(self, data)
        if not strings.are_meant(data):
            return data
        return b"\n".join(
            _STRING.sub(strings.replaced, line) if strings.are_meant(line) else line
            for line in data.split(b"\n")
        )


class _Strings:
    """Replaces the strings of one piece of JSON, each by its value: escapes mean nothing to it."""

    def __init__(self, redactor: Redactor, data: bytes) -> None:
        self._escaped = [encode(form)[1:-1] for form in redactor.spelled]
        self._text = redactor.text
        self._data = data
        self._names: dict[str, str] = {}
        """What becomes of the names that are not as they were."""

    def are_meant(self, data: bytes) -> bool:
        """Whether a secret may be in some of the JSON."""
        return any(form in data for form in self._escaped)

    def replaced(self, string: re.Match[bytes]) -> bytes:
        """The string without secrets."""
        if not self.are_meant(string[1]):
            return string[0]
        value: str = decode(string[1])
        shown = self._text(value)
        if shown == value:
            return string[0]
        return encode(self._name(value, shown) if string[2] else shown) + string[2]

    def _name(self, value: str, shown: str) -> str:
        """What becomes of a name; one that another name has already gets a number."""
        if value not in self._names:
            taken = self._names.values()
            self._names[value] = next(
                name
                for name in _numbered(shown)
                if name not in taken and encode(name) + b":" not in self._data
            )
        return self._names[value]


def redact_shapes(text: str) -> str:
    """The text without what looks like a key or a password.

    That is: keys of well-known services, private keys, JSON web tokens, values of authorization
    headers, passwords and tokens in URLs. Names around a value stay, so that a reader sees what
    stood there. Applied to its own output it changes nothing. Costs a search for a few fixed
    strings, and more only where one occurs: at most about 80 ms for a million characters.
    """
    for hints, shape, mark in _SHAPES:
        if any(hint in text for hint in hints):
            text = re.sub(shape, mark, text)
    return text


def shape_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where stands what `redact_shapes` takes out, in no order; two may overlap."""
    for hints, shape, _ in _SHAPES:
        if any(hint in text for hint in hints):
            for found in re.finditer(shape, text):
                yield (found.end(1) if found.re.groups else found.start()), found.end()


def redact_shapes_in(value: Any) -> Any:
    """A copy of a JSON value whose strings, keys of objects too, are without shapes of keys.

    Two keys of an object that become equal are told apart by a number.
    """
    if isinstance(value, str):
        return redact_shapes(value)
    if isinstance(value, list | tuple):
        return [redact_shapes_in(item) for item in value]
    if not isinstance(value, dict):
        return value
    copied: dict[Any, Any] = {}
    for key, item in value.items():
        names = _numbered(redact_shapes(key)) if isinstance(key, str) else [key]
        copied[next(name for name in names if name not in copied)] = redact_shapes_in(item)
    return copied


def _can_be_taken_out(secret: str) -> bool:
    if len(secret) < SHORTEST_IN_TEXT or _TIME.fullmatch(secret):
        return False
    return not any(secret in word for word in _OWN_WORDS)


def _numbered(name: str) -> Iterator[str]:
    """The name itself, then with the numbers from 2 on."""
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def _key(prefix: str, rest: str) -> tuple[tuple[str, ...], str, str]:
    """A key that stands by itself: its fixed beginning, not in the middle of a word, and more."""
    return (prefix,), rf"{prefix}(?<![A-Za-z0-9_+/-]{prefix}){rest}", REDACTED


_TIME = re.compile(r"[0-9T:.Z+-]{1,19}")
_STRING = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")(:?)')
"""A string in JSON; with the colon it is the name of a field."""
_CHANGES: tuple[Any, ...] = get_args(Change)
_OWN_WORDS = (
    *(field for kind in (Message, *_CHANGES) for field in kind.__struct_fields__),
    *(field for kind in KNOWN_BLOCKS.values() for field in kind.__struct_fields__),
    *(kind.__struct_config__.tag for kind in _CHANGES),
    *(*FIELDS, *KNOWN_BLOCKS, *OWN_ROLES, "developer", "schema_version", "media_type", "messages"),
    *("taken_back", "window_only", "[secret]"),
)
"""What a file of ours says by itself."""
_PRIVATE_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_SHAPES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    # A private key, also one that was cut off: key material must follow, its mention stays.
    (
        ("PRIVATE KEY",),
        rf"(?s:-----BEGIN {_PRIVATE_KEY}(?=.{{0,300}}?[A-Za-z0-9+/=]{{40}})"
        rf"(?:(?!-----).){{0,16384}}(?:-----END {_PRIVATE_KEY})?)",
        REDACTED,
    ),
    # The value of an authorization header, in whatever quotes; `Bearer` also stands alone.
    (
        ("uthorization", "UTHORIZATION"),
        r"""(?i:(authorization[\\"']{0,4}\s{0,4}[:=]\s{0,4}[\\"']{0,4}"""
        r"""(?:(?:bearer|basic|token|apikey)\s{1,4})?))[A-Za-z0-9._~+/-]{8,}=*""",
        rf"\g<1>{REDACTED}",
    ),
    (
        ("earer", "EARER"),
        r"(?i:\b(bearer\s{1,4}))(?=[A-Za-z._~+/-]{0,200}[0-9])[A-Za-z0-9._~+/-]{16,}=*",
        rf"\g<1>{REDACTED}",
    ),
    # `user:password@` and `?token=`; what begins like a placeholder is one.
    (
        ("://",),
        r"""(://[^\s/:@?#"'<>\\]{0,200}:)(?![${<%*])[^\s/@"'<>\\]{1,200}(?=@)""",
        rf"\g<1>{REDACTED}",
    ),
    (
        ("=",),
        r"(?i:([?&](?:password|passwd|pwd|(?:access_|auth_|refresh_)?token|(?:client_)?secret"
        r"|api[_-]?key|key|sig|signature)=))(?![${<%*])[A-Za-z0-9._~+/%-]{8,}=*",
        rf"\g<1>{REDACTED}",
    ),
    (
        ("aws_secret", "AWS_SECRET", "SecretAccessKey"),
        r"""(?i:(secret_?access_?key[\\"']{0,4}\s{0,4}[:=]\s{0,4}[\\"']{0,4}))"""
        r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
        rf"\g<1>{REDACTED}",
    ),
    # OpenAI, Anthropic and whoever took their form: a long run with a digit, which names of
    # CSS classes such as `sk-fading-circle` do not have.
    _key(
        "sk-",
        r"(?=[A-Za-z0-9_-]{0,200}?[A-Za-z0-9]{16})(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{20,}",
    ),
    _key("sk_live_", r"[A-Za-z0-9]{16,}"),
    _key("rk_live_", r"[A-Za-z0-9]{16,}"),
    _key("gsk_", r"[A-Za-z0-9]{40,}"),
    _key("xai-", r"[A-Za-z0-9]{60,}"),
    _key("hf_", r"[A-Za-z0-9]{30,}"),
    *(_key(f"gh{kind}_", r"[A-Za-z0-9]{36,}") for kind in "pousr"),
    _key("github_pat_", r"[A-Za-z0-9_]{22,}"),
    _key("glpat-", r"[A-Za-z0-9_-]{20,}"),
    _key("npm_", r"[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    _key("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _key("ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _key("AIza", r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _key("xapp-", r"[A-Za-z0-9-]{10,}"),
    *(_key(f"xox{kind}-", r"(?=[A-Za-z-]{0,50}[0-9])[A-Za-z0-9-]{10,}") for kind in "abeoprs"),
    _key("eyJ", r"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
)
"""Strings of which one must occur, the shape, compiled on first use, and what stands for it."""
