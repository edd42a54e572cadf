"""What a key stands for that there is not: the one that was meant, as far as that can be told."""

import difflib
from collections.abc import Iterable

from tiro.config.settings import Document, ProviderConfig

ADDRESS_WORDS = ("url", "host", "endpoint", "address", "server", "proxy")
"""What a key is called that says where a provider is, also where there is no such key."""


def meant_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """The path of what a misspelt key stands for, where that decides who hears a prompt."""
    key, is_new = path[-1].lower(), path[-1] not in Document.__struct_fields__
    if len(path) == 1 and is_new:
        meant = closest(key, Document.__struct_fields__)
        if "provider" in key or meant == "providers":
            return ("providers",)
        return ("model",) if "model" in key or meant == "model" else path
    if path[0] == "providers" and len(path) == 3 and key not in ProviderConfig.__struct_fields__:
        meant = closest(key, ProviderConfig.__struct_fields__)
        if meant == "api" or any(word in key for word in ADDRESS_WORDS):
            return (*path[:2], "api")
    return path


def hint(key: str, known: Iterable[str]) -> str:
    """Words to put behind a key that there is not; none where nothing is like it."""
    return did_you_mean(closest(key, known))


def closest(key: str, known: Iterable[str]) -> str | None:
    """The known key that is most like this one, if any is."""
    return next(iter(difflib.get_close_matches(key.lower(), list(known), n=1)), None)


def did_you_mean(meant: str | None) -> str:
    """The question whether this was meant, if anything."""
    return f" (did you mean {meant}?)" if meant else ""
