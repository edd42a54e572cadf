"""What a caller may replace in a session, sync and async made alike (A2.8, A7.1)."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from tiro.session.cap import Cap
from tiro.session.messages import Message
from tiro.session.settings import SessionSettings

T = TypeVar("T")

Policy = Callable[[list[Message], list[Message], SessionSettings], Any]
"""(full, current, settings) → None, a type, or a dict with a `type` (A3.4)."""
ResizeHandler = Callable[[list[Message], list[Message], Any, SessionSettings], Any]
"""(full, current, memo, settings) → (full, current, memo), or None to leave all as it is (A4.3)."""
MemoHandler = Callable[[Any, list[Message], list[dict[str, Any]], SessionSettings], Any]
"""(memo, messages, attachments, settings) → the new memo; what is no dict leaves the old (A5.4)."""
AttachmentHandler = Callable[[Message], Any]
"""message → list of dicts (A6.5)."""


DEFAULT_TYPES: Mapping[str, ResizeHandler | None] = MappingProxyType({"lite": None, "deep": None})


class Handlers(msgspec.Struct, frozen=True):
    """What a caller put in the place of the defaults; None is the default."""

    policy: Policy | None = None
    resize: Mapping[str, ResizeHandler | None] = DEFAULT_TYPES
    """By the type of a decision; a type that is not here cannot be resized by (A4.2)."""
    attachment_summary: AttachmentHandler | None = None
    memo_update: MemoHandler | None = None
    summarizer: Any = None
    """Who writes the summary in the background; None: nobody does (U8.1)."""
    memo_model: Any = None
    """Who brings the memo up to date; None: what the setting `session.memo.model` holds."""
    memo_cap: Cap | None = None
    """What a model's memo may take; None is no limit."""


def without_loop(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, with or without a running event loop in this thread (A7.2)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    results: list[T] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(asyncio.run(make()))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, name="tiro-sync")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]


async def awaited(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function that may be sync (run in a thread) or async (A7.1)."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    result = await asyncio.to_thread(function, *arguments)
    return await result if isinstance(result, Awaitable) else result
