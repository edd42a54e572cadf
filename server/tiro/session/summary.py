"""The summary of what left the window: written in the background, rolled on, checked (N3, N4).

The queue is the session's own: evicted messages wait in the archive until a summary that covers
them is stored, so it survives restarts (U4.3). One job a session; a turn never waits for it (N4.6).
Compaction folds the whole window in (M7.1). A summary that comes too late, or is unusable, changes
nothing.
"""

import asyncio
import contextlib
import inspect
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from tiro.errors import ContextOverflowError, ResizeError
from tiro.session.cap import Cap
from tiro.session.changes import Change, Cover, Evict, Set
from tiro.session.core import Core
from tiro.session.cut import legal_cut
from tiro.session.dialogue import dialogue, runs
from tiro.session.handlers import awaited
from tiro.session.messages import Message, as_message, seqs_of
from tiro.session.prompts import COMPACTION_PROMPT, SUMMARY_PROMPT, SUMMARY_WORDS
from tiro.session.quality import (
    answer_in,
    check_new,
    check_old,
    check_says,
    keep_words,
    pinned_texts,
    refused,
)
from tiro.session.resize import undoable

PREVIOUS_HEADING = "Earlier summary:"
DIALOGUE_HEADING = "Messages:"

MAX_CHARACTERS = 60_000
"""The text of messages in one request; a longer backlog is summarised in several (U4.3)."""
LEAST_CHARACTERS = 1_000
"""A request with fewer is not cut again when a model refuses it as too long."""

log = logging.getLogger(__name__)


class Summarizer:
    """Asks `provider.chat(messages=…, tools=None, model=…)` for summaries (N3.1).

    The provider answers with a text, or with an object that has `text`, `stop_reason` and
    `tool_uses`; sync or async.
    """

    def __init__(
        self,
        provider: Any,
        model: str | None,
        summary_model: str | None = None,
        max_characters: int = MAX_CHARACTERS,
        cap: Cap | None = None,
    ) -> None:
        self.provider = provider
        self.model = summary_model or model
        self.max_characters = max_characters
        self.cap = cap
        """What a summary may take; None is no limit."""
        self.storing: Callable[[Core], AbstractAsyncContextManager[Any]] = _at_once
        """What is entered while a summary is stored, such as a lock; raising in it drops it."""
        self.on_failure: Callable[[Core, Exception], None] = lambda session, error: None
        """Called when a job in the background ends without the summary that it was for."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def summarize_async(
        self,
        evicted: Iterable[Message | Mapping[str, Any]],
        previous_summary: str | None,
        callback: Callable[[str], Any],
    ) -> None:
        """Ask once and hand the text to `callback` (N3.2); ResizeError for an unusable one."""
        messages = list(map(as_message, evicted))
        result = callback(await self.written(messages, previous_summary or "", SUMMARY_PROMPT))
        if inspect.isawaitable(result):
            await result

    def fire_and_forget(
        self,
        session: Core,
        session_manager: Any,
        evicted_messages: Iterable[Message | Mapping[str, Any]],
        previous_summary: str | None,
    ) -> "asyncio.Task[None]":
        """Start the session's job and return at once; nothing it meets is raised (N3.5 to N3.7).

        `session_manager.save(session)` is called after each stored summary; None for no manager.
        Needs a running event loop.
        """
        session.summary_in_progress = True
        session.summary_job += 1
        first = list(map(as_message, evicted_messages))
        job = self._job(session, session_manager, first, previous_summary or "")
        task = asyncio.create_task(job, name=f"summary {session.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel the jobs that run; what they were about goes on waiting."""
        for task in (tasks := tuple(self._tasks)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def folded(
        self, waiting: Sequence[Message], previous: str, prompt: str, pinned: Sequence[str] = ()
    ) -> tuple[list[Message], str]:
        """The oldest of these messages, as many as one request takes, and a summary with them in.

        A request that is too long for the model is asked again with half of it (U4.3, B21); from
        then on no longer one is made. Raises as `written` does.
        """
        while True:
            batch = next(runs(waiting, self.max_characters))
            try:
                return batch, await self.written(batch, previous, prompt, pinned)
            except ContextOverflowError:
                if self.max_characters <= LEAST_CHARACTERS:
                    raise
                self.max_characters //= 2

    async def written(
        self, messages: Sequence[Message], previous: str, prompt: str, pinned: Sequence[str] = ()
    ) -> str:
        """One summary of these messages and the one before it, asked for once and checked.

        Pinned texts that the one before holds must be in it. Raises ResizeError with
        the reason for an unusable answer, or for one before that no request could hold whole, and
        what the provider raises.
        """
        text = dialogue(messages, self.max_characters)
        if not text.strip():
            return previous  # they say nothing, and no provider takes an empty prompt
        if previous.strip():
            check_old(previous, "summary", self.cap)
            text = f"{PREVIOUS_HEADING}\n{previous}\n\n{DIALOGUE_HEADING}\n{text}"
        prompt = "\n".join([_limited(prompt, self.cap), *keep_words(pinned, previous)])
        request = [{"role": "system", "content": prompt}, {"role": "user", "content": text}]
        reply = self.provider.chat(messages=request, tools=None, model=self.model)
        if inspect.isawaitable(reply):
            reply = await reply
        return usable(reply, previous, len(text), pinned, self.cap)

    async def _job(self, session: Core, manager: Any, first: list[Message], previous: str) -> None:
        clears, number = session.clears, session.summary_job
        try:
            waiting = _queue(session, first)
            while waiting:
                pinned = pinned_texts(session)
                batch, text = await self.folded(waiting, previous, SUMMARY_PROMPT, pinned)
                async with self.storing(session):
                    stored = store(session, text, batch, previous, clears)
                if not stored:
                    break
                if manager is not None:
                    await awaited(manager.save, session)
                previous, waiting = text, session.pending()
        except asyncio.CancelledError:
            log.warning("The summary of session %s was cancelled; it is tried again", session.id)
        except Exception as error:
            log.warning("No summary of session %s: %s; it is tried again", session.id, error)
            self.on_failure(session, error)
        finally:
            if session.summary_job == number:
                session.summary_in_progress = False


def before_turn(session: Core, summarizer: Summarizer | None = None, manager: Any = None) -> bool:
    """Trim the window and start the job for all that waits (N4.1, N3.7); whether one was started.

    Reads `session.summary.message_buffer_limit` and `.message_buffer_min`. Never waits.
    """
    settings = session.settings
    limit = settings.integer("session.summary.message_buffer_limit")
    if limit is not None and limit > 0:
        least = settings.integer("session.summary.message_buffer_min") or 0
        trim(session, limit, max(0, min(least, limit - 1)))  # a small limit beats its minimum
    summarizer = summarizer or session.handlers.summarizer
    if summarizer is None or session.summary_in_progress or not settings["session.summary.enabled"]:
        return False
    waiting = session.pending()
    if waiting:
        summarizer.fire_and_forget(session, manager, waiting, session.summary)
    return bool(waiting)


def trim(session: Core, limit: int, min_keep: int) -> tuple[list[Message], bool]:
    """Evict the oldest turns of a window that holds more than `limit` messages (N2).

    At least `min_keep` messages stay, unless the next turn begins later; pinned ones are neither
    counted nor evicted. Returns what was evicted, oldest first. ValueError unless
    0 <= min_keep < limit. O(window), no I/O.
    """
    if not 0 <= min_keep < limit:
        raise ValueError(f"min_keep must be at least 0 and below {limit}, not {min_keep}")
    with session.lock:
        held = session.held()
        free = [message for message in session.oldest_first() if message.seq not in held]
        if len(free) <= limit:
            return [], False
        evicted = free[: legal_cut(free, len(free) - min_keep, "user")]
        if evicted:
            session.commit(Evict(seqs_of(evicted), session.stamp()))
        return evicted, bool(evicted)


class Fold(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction whose summary is written; nothing has been changed yet."""

    text: str
    evict: list[Message]
    """What leaves the window, oldest first."""
    covered: list[Message]
    """That, and what waits already: all that the summary stands for besides the one before it."""
    previous: str
    clears: int


async def folded_window(
    session: Core, summarizer: Summarizer, prompt: str = COMPACTION_PROMPT
) -> Fold:
    """Let a summary be written of the window and all that waits; changes nothing.

    Pinned messages stay out of it. Raises ResizeError for an unusable summary and for one that
    gains no room, and what the provider raises.
    """
    with session.lock:
        previous, clears = session.summary, session.clears
        window, pinned = foldable(session), pinned_texts(session)
        waiting = [*session.pending(), *window]
    text, left = previous, waiting
    while left:
        batch, text = await summarizer.folded(left, text, prompt, pinned)
        left = left[len(batch) :]
    if text != previous:
        _check_gain(session, text, previous, waiting)
    return Fold(text=text, evict=window, covered=waiting, previous=previous, clears=clears)


async def compact(session: Core, summarizer: Summarizer, prompt: str = COMPACTION_PROMPT) -> int:
    """Fold the window and all that waits into the summary (M7.1); how many messages left.

    Raises what `folded_window` raises; then, and where the session was changed by somebody else
    meanwhile, nothing has changed.
    """
    fold = await folded_window(session, summarizer, prompt)
    async with summarizer.storing(session):
        return store_fold(session, fold) if fold.covered else 0


def store_fold(session: Core, fold: Fold) -> int:
    """Make a compaction true in one step; what `store` says of it."""
    return store(session, fold.text, fold.covered, fold.previous, fold.clears, fold.evict)


def foldable(session: Core) -> list[Message]:
    """The messages of the window that a compaction takes out of it: all that no pin holds."""
    held = session.held()
    return [message for message in session.oldest_first() if message.seq not in held]


def store(
    session: Core,
    text: str,
    covered: Sequence[Message],
    previous: str,
    clears: int,
    evicted: Sequence[Message] = (),
) -> int:
    """Commit a summary with all that it ends, in one step; how many messages it concerned.

    0, and nothing changed, when the session was cleared, or its summary changed, since (N4.8).
    """
    with session.lock:
        if session.clears != clears or session.summary != previous:
            return 0
        at = session.stamp()
        fields: dict[str, Any] = {"summary": text}
        changes: list[Change] = []
        if evicted:
            fields["undo"] = undoable(session)
            changes.append(Evict(seqs_of(evicted), at))
        session.commit(*changes, Cover(seqs_of(covered), at), Set(fields, at))
        return len(evicted or covered)


def usable(
    reply: Any,
    previous: str,
    replaced: int,
    pinned: Sequence[str] = (),
    cap: Cap | None = None,
) -> str:
    """The text of a provider's answer, stripped; ResizeError naming why it cannot be a summary.

    `replaced` is the length of all that it stands for, the summary before it included.
    """
    text = answer_in(reply, "summary")
    if not isinstance(text, str) or _is_object(text):
        raise refused("summary", "it is no text", "not_text")
    text = text.strip()
    check_says(text, replaced, "summary")
    check_new(text, previous, replaced, pinned, "summary", cap)
    return text


def _check_gain(session: Core, text: str, previous: str, replaced: Iterable[Message]) -> None:
    meter = session.meter
    before = meter.text(previous) + sum(map(meter.message, replaced))
    if (after := meter.text(text)) >= before:
        raise ResizeError(
            f"Nothing would be gained: the summary takes {after:,} tokens, what it stands for"
            f" {before:,}; all stays as it was",
            reason="no_gain",
        )


@contextlib.asynccontextmanager
async def _at_once(session: Core) -> AsyncIterator[None]:
    yield


def _queue(session: Core, first: list[Message]) -> list[Message]:
    """What waits for a summary: the session's own queue, and what the caller names besides."""
    pending = session.pending()
    known = {message.seq for message in pending}
    return [*(message for message in first if message.seq not in known), *pending]


def _is_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _limited(prompt: str, cap: Cap | None) -> str:
    """The prompt with one limit: its own, where it has one, unless the cap is lower."""
    if cap is None:
        return prompt
    if prompt == SUMMARY_PROMPT:
        words = min(SUMMARY_WORDS, cap.words)
        return prompt.replace(f"{SUMMARY_WORDS} words", f"{words} words")
    return f"{prompt}\n{cap.told()}"
