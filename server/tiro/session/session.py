"""`Session`: the face of the library, one call a method over the functions of its neighbours.

    session = Session()
    session.add_message("user", "Find all .el files")
    print(session.summarize())

Lists come oldest first and are copies: changing them never changes the session.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from tiro.session import (
    agently,
    entry_history,
    history,
    policy,
    resize,
    summary,
    tokens,
    transcript,
)
from tiro.session.changes import DeleteState, SetState
from tiro.session.core import Core, newest
from tiro.session.entries import Entry
from tiro.session.handlers import (
    AttachmentHandler,
    Handlers,
    MemoHandler,
    Policy,
    ResizeHandler,
    without_loop,
)
from tiro.session.messages import Content, Message, copied, recent
from tiro.session.settings import SessionSettings, configured, positive_or_none
from tiro.session.summary import Summarizer
from tiro.session.times import Clock, utc_now


class Session(Core):
    """One conversation: messages, memo, summary, state; see ARCHITECTURE.md for its parts.

    Without arguments it has an id of 32 hex characters and no limit but those of a resize that is
    asked for. `max_history` is None or at least 1 (ValueError otherwise).
    """

    def __init__(
        self,
        settings: SessionSettings | Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        max_history: int | None = None,
        agent: str | None = None,
        policy_handler: Policy | None = None,
        resize_handlers: Mapping[str, ResizeHandler] | None = None,
        attachment_summary_handler: AttachmentHandler | None = None,
        memo_update_handler: MemoHandler | None = None,
        clock: Clock = utc_now,
        new_id: Any = lambda: uuid4().hex,
    ) -> None:
        super().__init__(clock, settings)
        self.id, self.agent = id or new_id(), agent
        self.max_history = positive_or_none(max_history)
        self.handlers = Handlers(
            policy_handler,
            Handlers().resize if resize_handlers is None else dict(resize_handlers),
            attachment_summary_handler,
            memo_update_handler,
        )

    @property
    def messages(self) -> list[Message]:
        """The window, oldest first."""
        return copied(self.oldest_first())

    @property
    def current_chat_history(self) -> list[Message]:
        """The window, oldest first."""
        return copied(self.oldest_first())

    @property
    def full_chat_history(self) -> list[Message]:
        """Every message ever added and not taken back, oldest first."""
        return copied(self.full())

    @property
    def archive(self) -> list[Message]:
        """What left the window, oldest first."""
        return copied(self.archive_rows)

    @property
    def newest_message(self) -> Message | None:
        """The newest message of the window, or None."""
        return next(iter(copied(newest(self, 1))), None)

    @property
    def created_at(self) -> datetime:
        """When the session was made, in UTC."""
        return self.created

    @property
    def updated_at(self) -> datetime:
        """When the session was last changed, in UTC."""
        return self.updated

    @property
    def _turns(self) -> int:
        return self.turns

    @property
    def _last_resize_turn(self) -> int:
        return self.last_resize_turn

    @property
    def _memo_cursor(self) -> int:
        return self.memo_cursor

    def get_messages(self) -> list[dict[str, Any]]:
        """The window as dicts, oldest first (M2.6)."""
        return [message.to_dict() for message in self.messages]

    def recent_messages(self, max_messages: int = 500) -> list[dict[str, Any]]:
        """The newest messages as dicts of what a model needs, oldest first (N1.3)."""
        return recent(copied(newest(self, max_messages)))

    def append_message(self, message: Message | Mapping[str, Any]) -> "Session":
        """Append a message; KeyError for a dict without role or content (A1.9)."""
        history.add(self, message)
        return self

    def __repr__(self) -> str:
        """What it is, without a word that was said in it."""
        count = len(self.newest_first)
        return f"<Session {self.id!r}, messages: {count}, agent: {self.agent!r}>"

    def add_message(self, role: str, content: Content, **extra: Any) -> "Session":
        """Append a message of this role and content; further fields are kept (M2.4)."""
        history.add(self, {**extra, "role": role, "content": content})
        return self

    def add_tool_result(
        self, tool_use_id: str, result: str | list[Any], is_error: bool = False
    ) -> "Session":
        """Append the answer to a tool use; any id is accepted here (M2.5)."""
        history.add(self, history.answer(tool_use_id, result, is_error))
        return self

    def set_chat_history(self, messages: history.Messages) -> "Session":
        """Put messages in the place of both histories; the memo stays, nothing resizes (A9.4)."""
        history.set_all(self, messages)
        return self

    async def async_set_chat_history(self, messages: history.Messages) -> "Session":
        """`set_chat_history`, for callers that use the async forms throughout."""
        return self.set_chat_history(messages)

    async def async_add_chat_history(self, messages: history.Messages) -> "Session":
        """Append one message or many, then resize if the policy says so (A9.5)."""
        await resize.add(self, self.settings, messages)
        return self

    def add_chat_history(self, messages: history.Messages) -> "Session":
        """`async_add_chat_history` for callers without a loop, and inside one."""
        return without_loop(lambda: self.async_add_chat_history(messages))

    def reset_chat_history(self, drop_memo: bool = False) -> "Session":
        """Empty both histories and the counters; the memo stays unless told so (A9.6)."""
        history.clear(self, keep_memo=not drop_memo)
        return self

    async def async_reset_chat_history(self, drop_memo: bool = False) -> "Session":
        """`reset_chat_history`, for callers that use the async forms throughout."""
        return self.reset_chat_history(drop_memo)

    def clear(self, keep_memo: bool = False) -> None:
        """Empty the session; id, agent, state, settings and the seq counter stay (U1.12)."""
        history.clear(self, keep_memo)

    def rewind(self, to_seq: int) -> int:
        """Take back all messages after `to_seq`; returns how many."""
        return history.rewind(self, to_seq)

    def edit_message(self, seq: int, content: Content) -> None:
        """Give a message another content; the earlier wording goes to the archive."""
        history.edit(self, seq, content)

    def pin(self, seq: int, pinned: bool = True) -> None:
        """Hold a message in the window whatever the limits are, or let it go (U2.8)."""
        history.pin(self, seq, pinned)

    def update_summary(self, text: str) -> None:
        """Set the summary of what left the window; none is in progress then (N3.10)."""
        self.change(summary=text)
        self.summary_in_progress = False

    def set(self, key: str, value: Any) -> None:
        """Set a key of the caller's own state (G1.2)."""
        self.commit(SetState(key, value, self.stamp()))

    def get(self, key: str, default: Any = None) -> Any:
        """The state under `key`, or the default."""
        return self.state.get(key, default)

    def lookup(self, key: str) -> tuple[Any, bool]:
        """The state under `key` and whether there is one."""
        return self.state.get(key), key in self.state

    def delete(self, key: str) -> None:
        """Delete a key of the state; a missing one is no error."""
        self.commit(DeleteState(key, self.stamp()))

    def add_entry(self, entry: Entry) -> "Session":
        """Append an entry; TypeError or ValueError for what is none (G1.4)."""
        entry_history.add_entry(self, entry)
        return self

    def get_history(self, limit: int = 0) -> list[Entry]:
        """The newest entries of the full history by their time, newest first; 0: all (G1.5)."""
        return entry_history.newest_entries(self, limit)

    async def async_judge_resize(self, force: bool | str | None = False) -> dict[str, Any] | None:
        """Whether to resize: a dict with `type`, `reason`, …, or None; changes nothing (A3)."""
        return await policy.told(self, self.settings, force)

    def judge_resize(self, force: bool | str | None = False) -> dict[str, Any] | None:
        """`async_judge_resize` for callers without a loop, and inside one."""
        return without_loop(lambda: self.async_judge_resize(force))

    async def async_resize(self, force: bool | str | None = False) -> list[Message]:
        """Resize if the policy says so or it is forced; the window afterwards (A4.1)."""
        await resize.resize(self, self.settings, force)
        return self.messages

    def resize(self, force: bool | str | None = False) -> list[Message]:
        """`async_resize` for callers without a loop, and inside one."""
        return without_loop(lambda: self.async_resize(force))

    async def async_compact(self, summarizer: Summarizer) -> int:
        """Fold the window into the summary; how many messages left it (M7.1)."""
        return await summary.compact(self, summarizer)

    def compact(self, summarizer: Summarizer) -> int:
        """`async_compact` for callers without a loop, and inside one."""
        return without_loop(lambda: self.async_compact(summarizer))

    def trim_if_needed(self, limit: int, min_keep: int) -> tuple[list[Message], bool]:
        """Evict the oldest turns beyond `limit` messages: what left, and whether any did (N2)."""
        return summary.trim(self, limit, min_keep)

    def set_policy_handler(self, policy: Policy | None) -> "Session":
        """Let `policy(full, current, settings)` decide when to resize (A3.4)."""
        self.handlers = replace(self.handlers, policy=policy)
        return self

    def set_resize_handlers(self, type: str, handler: ResizeHandler) -> "Session":
        """Let `handler(full, current, memo, settings)` resize by this type (A2.8, A4.5)."""
        self.handlers = replace(self.handlers, resize={**self.handlers.resize, type: handler})
        return self

    def set_attachment_summary_handler(self, handler: AttachmentHandler | None) -> "Session":
        """Let `handler(message)` name what is not text in a message (A6.5)."""
        self.handlers = replace(self.handlers, attachment_summary=handler)
        return self

    def set_memo_update_handler(self, handler: MemoHandler | None) -> "Session":
        """Let `handler(memo, messages, attachments, settings)` write the memo (A5.4)."""
        self.handlers = replace(self.handlers, memo_update=handler)
        return self

    def configure(
        self,
        mode: str | None = None,
        limit: Mapping[str, int | None] | None = None,
        every_n_turns: int | None = None,
    ) -> "Session":
        """Set only what is given; limits merge (A2.13)."""
        self.change(settings=configured(self.own_settings, mode, limit, every_n_turns))
        return self

    def set_limit(self, chars: int | None = None, messages: int | None = None) -> "Session":
        """Set the limits in characters and messages (A2.14)."""
        return self.configure(limit=given(chars=chars, messages=messages))

    def use_lite(
        self,
        chars: int | None = None,
        messages: int | None = None,
        every_n_turns: int | None = None,
    ) -> "Session":
        """Keep the history short without a memo."""
        return self.configure("lite", given(chars=chars, messages=messages), every_n_turns)

    def use_memo(
        self,
        chars: int | None = None,
        messages: int | None = None,
        every_n_turns: int | None = None,
    ) -> "Session":
        """Distil key facts into the memo at each resize."""
        return self.configure("memo", given(chars=chars, messages=messages), every_n_turns)

    def set_settings(self, key: str, value: Any) -> "Session":
        """Set one setting by its dotted key; what JSON cannot hold stays in memory (A2.14)."""
        self.set_setting(key, value)
        return self

    def to_json(self) -> str:
        """The session in the Agently form, as JSON (A8)."""
        return agently.to_json(self)

    def to_yaml(self) -> str:
        """The session in the Agently form, as YAML (A8)."""
        return agently.to_yaml(self)

    def load_json(self, text: str) -> "Session":
        """Fill the session from JSON in the Agently form; all of it or nothing (A8.3, A8.4)."""
        agently.load_json(self, text)
        return self

    def load_yaml(self, text: str) -> "Session":
        """Fill the session from YAML in the Agently form; all of it or nothing (A8.3, A8.4)."""
        agently.load_yaml(self, text)
        return self

    def summarize(self) -> str | None:
        """The text of *show session*; None when there is nothing (M2.10)."""
        return transcript.summarize(newest(self, transcript.SHOWN_MESSAGES))

    def statistics(self) -> transcript.Statistics:
        """Counts of messages and tool uses over the window, usage over the session."""
        size = self.meter.measure(self.newest_first).tokens
        return transcript.count(self.newest_first, self.turns, size, self.usage)

    def text_length(self) -> int:
        """The length of the window in approximate characters (A3.7)."""
        return tokens.text_length(self.oldest_first())

    def context_size(self) -> int:
        """The characters of all text in the window, divided by 4 (M2.9)."""
        return tokens.characters(self.oldest_first()) // 4

    def get_id(self) -> str:
        """The id; a session without one gets a time stamp, kept from then on (M2.8)."""
        return history.named(self)

    def get_agent(self) -> str | None:
        """The name of the assigned agent."""
        return self.agent

    def set_agent(self, name: str | None) -> "Session":
        """Assign an agent by its name, or none."""
        self.change(agent=name)
        return self


def given(**values: int | None) -> dict[str, int | None]:
    """Only the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}
