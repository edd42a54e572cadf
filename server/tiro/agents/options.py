"""Further parameters of an agent's requests: which are sent, and why others are not.

They go to the provider by its own names, so what is no parameter there is the provider's to refuse.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tiro.models.model import LIMIT_PARAMETERS, OWN_PARAMETERS


def output_limit(options: Mapping[str, Any]) -> int | None:
    """The most tokens that an answer may have, whatever a provider calls that."""
    return next((options[name] for name in LIMIT_PARAMETERS if name in options), None)


def usable_options(options: Mapping[Any, Any], *, is_own: bool) -> dict[str, Any]:
    """Those that are sent; of an agent that is not the user's own only numbers.

    More than a number may switch on what the provider does by itself, such as asking other servers.
    """
    return {key: value for key, value in options.items() if not _fault(key, value, is_own)}


def faults_of(options: Mapping[Any, Any], *, is_own: bool) -> Iterator[tuple[str, str]]:
    """The name of each one that is not sent, and why."""
    for key, value in options.items():
        if fault := _fault(key, value, is_own):
            yield str(key), fault


def _fault(key: Any, value: Any, is_own: bool) -> str | None:
    if not isinstance(key, str):
        return "is no name of a parameter"
    if key in LIMIT_PARAMETERS:
        is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
        return None if is_count else "must be a whole number from 1"
    if key in OWN_PARAMETERS:
        return "is Tiro's own to say"
    if not is_own and (isinstance(value, bool) or not isinstance(value, int | float)):
        return "must be a number in an agent of a workspace"
    return None if _is_json(value) else "is nothing that JSON can say"


def _is_json(value: Any) -> bool:
    match value:
        case None | bool() | str() | int():
            return True
        case float():
            return value - value == 0  # neither infinite nor NaN
        case list():
            return all(map(_is_json, value))
        case dict():
            return all(isinstance(key, str) and _is_json(one) for key, one in value.items())
        case _:
            return False
