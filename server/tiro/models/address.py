"""What is wrong with the address of a server, in words for whoever wrote it."""

import re
from urllib.parse import urlsplit

from tiro.models.model import bare_url

EXAMPLE = "http://127.0.0.1:8080/v1"
_HERE = re.compile(r"(localhost|127\.[\d.]+|\[::1\])(?=[:/]|$)")

_HOST = re.compile(r"[\w-]+(\.[\w-]+)*(\.[\w-]+|:\d+)(?=[:/]|$)")
"""What is taken for one: it has a dot or a port. Anything else may be a key in the wrong place."""

_OF_A_REQUEST = re.compile(r"(/(?:(?:chat/)?completions|messages|responses))/*$")


def problem_of_address(text: str, schemes: tuple[str, ...] = ("http", "https")) -> str | None:
    """The end of a sentence that begins with the setting, or None; no password is quoted."""
    known = " or ".join(f"{scheme}://" for scheme in schemes[:2])
    if "://" not in text:
        bare = bare_url(text).lstrip("/")
        scheme = "http" if _HERE.match(bare) else "https"
        like = f"{scheme}://{bare}" if _HERE.match(bare) or _HOST.match(bare) else EXAMPLE
        return f"needs {known} in front, such as {like}"
    try:
        parts = urlsplit(text)
    except ValueError:
        return _NO_ADDRESS
    if parts.scheme not in schemes:
        return f"must begin with {known}, not with {parts.scheme}://"
    if not parts.hostname or re.search(r"[\s\x00]", text):
        return _NO_ADDRESS
    try:
        if parts.port == 0:
            return _NO_PORT
    except ValueError:
        return _NO_PORT
    if found := of_a_request(text):
        before = found.string[: found.start()]
        return f"must end before {found[1]}, which is added to it: write {before}"
    return None


def of_a_request(text: str) -> re.Match[str] | None:
    """The end of an address as providers show it in the documents of their requests."""
    return _OF_A_REQUEST.search(bare_url(text))


_NO_ADDRESS = f"is no address, write one such as {EXAMPLE}"
_NO_PORT = "has a wrong port: after the colon comes a number from 1 to 65535"
