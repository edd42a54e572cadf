"""Secrets in text: in which spellings one may be met, and text without them, whole or in pieces.

Whatever takes an exact value out of something asks here what to look for: the log, errors, files,
recordings, what tools give back, and the environment of commands.
"""

import json
import re
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from urllib.parse import quote, unquote

REDACTED = "[secret]"
"""Stands where a secret stood."""
SHORTEST_SECRET = 6
"""Shorter values are no secrets, and without them texts would be unreadable."""
SHORTEST_IN_TEXT = 8
"""Shorter ones are part of too many words to be taken out of what is somebody's own text."""


def spellings(secrets: Iterable[str]) -> list[str]:
    """The secrets as they are, trimmed, as an address and as JSON write them; the longest first."""
    found: set[str] = set()
    for secret in secrets:
        found |= _spellings_of(secret)
    return sorted(found, key=len, reverse=True)


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with every spelling of every secret replaced, the longest first."""
    return without(text, spellings(secrets))


def without(text: str, spelled: Sequence[str]) -> str:
    """The text with these strings replaced, in their order."""
    for form in spelled:
        text = text.replace(form, REDACTED)
    return text


class KnownSecrets:
    """The secrets of one process, which become more and never less; for any thread.

    Out of what tools give back are taken those that cannot be words, as a placeholder such as
    "lm-studio" can: the files in which it stands could not be edited any more.
    """

    def __init__(
        self,
        secrets: Iterable[str] = (),
        on_more: Callable[[Sequence[str]], None] = lambda secrets: None,
    ) -> None:
        self._on_more = on_more
        self._lock = threading.Lock()
        self._values: tuple[str, ...] = ()
        self._spelled: list[str] = []
        self._in_text: list[str] = []
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Keep these out too; `on_more` hears them."""
        more = list(secrets)
        self._on_more(more)
        with self._lock:
            self._values = tuple(dict.fromkeys((*self._values, *more)))
            self._spelled = spellings(self._values)
            self._in_text = [form for form in self._spelled if _may_be_taken_out(form)]

    def text(self, text: str) -> str:
        """The text of a tool without them."""
        return without(text, self._in_text)

    def pieces(self) -> "Pieces":
        """The same for text that comes in pieces."""
        return Pieces(self._in_text)

    def are_in(self, value: str) -> bool:
        """Whether the value is one of them, or has one that is long enough in it."""
        return any(
            value == form or (len(form) >= SHORTEST_IN_TEXT and form in value)
            for form in self._spelled
        )


class Pieces:
    """Text that comes in pieces, without secrets: what may begin one waits for what follows."""

    def __init__(self, spelled: Sequence[str]) -> None:
        self._spelled = spelled
        self._held = ""

    def add(self, piece: str) -> str:
        """What can be shown by now; what then still waits is shorter than the longest secret."""
        text = self._held + piece
        end = self._settled(text)
        self._held = text[end:]
        return without(text[:end], self._spelled)

    def rest(self) -> str:
        """What still waits, when nothing follows; it is handed out once."""
        rest, self._held = without(self._held, self._spelled), ""
        return rest

    def _settled(self, text: str) -> int:
        """Where what may be the beginning of a secret begins; no whole one lies across it."""
        end = min((_open_start(text, form) for form in self._spelled), default=len(text))
        across = True
        while across:
            across = False
            for form in self._spelled:
                at = text.find(form, max(0, end - len(form) + 1), end + len(form) - 1)
                if 0 <= at < end < at + len(form):
                    end, across = at, True
        return end


def _may_be_taken_out(form: str) -> bool:
    """Whether it is long enough, and no words that a text may have of its own."""
    return len(form) >= SHORTEST_IN_TEXT and not _WORDS.fullmatch(form)


def _open_start(text: str, form: str) -> int:
    """Where a beginning of the form begins with which the text ends; else the text's end."""
    at = text.find(form[0], max(0, len(text) - len(form) + 1))
    while at >= 0 and not form.startswith(text[at:]):
        at = text.find(form[0], at + 1)
    return len(text) if at < 0 else at


@lru_cache(maxsize=256)
def _spellings_of(secret: str) -> frozenset[str]:
    found: set[str] = set()
    plain = {secret, secret.strip()}
    addressed = {form for text in plain for form in (quote(text), quote(text, ""), unquote(text))}
    for text in plain | addressed:
        for is_ascii in (False, True):
            escaped = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
            found |= {text, escaped, escaped.replace("/", "\\/")}
        found |= {_escaped(text, which, digits) for which in _ESCAPED for digits in ("04x", "04X")}
    return frozenset(form for form in found if len(form) >= SHORTEST_SECRET)


def _escaped(text: str, which: str, digits: str) -> str:
    """The text as a JSON writer has it that escapes these characters by their numbers."""
    return "".join(
        f"\\u{unit:{digits}}" if chr(unit) in which or unit > 0x7F else json.dumps(chr(unit))[1:-1]
        for (unit,) in struct.iter_unpack("<H", text.encode("utf-16-le", "surrogatepass"))
    )


_ESCAPED = ("<>&", "<>&='", "<>&'+`\"", "".join(map(chr, range(0x80))))
"""What the JSON writers of Go, Java (Gson) and .NET escape, and one that escapes everything."""
_WORDS = re.compile(r"[a-z]+(?:[-_ .][a-z]+)*|[0-9T:.Z+-]{1,19}")
"""Words in small letters, or what could be a time."""
