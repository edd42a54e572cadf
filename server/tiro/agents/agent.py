"""The library's agent: a model that answers within a session, with its caller's tools (A9, G5.5).

    agent = Agent(model).attach_session(mode="memo")
    print(agent.run("Which files hold Lisp?"))

A request that fails, or whose session was emptied meanwhile, leaves nothing in the session.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from tiro import __version__
from tiro.agents.agent_info import AgentInfo
from tiro.agents.agent_tools import AgentTool, Answered, answered, tool_of
from tiro.agents.options import output_limit
from tiro.agents.prompt import session_prompt
from tiro.agents.recorded import as_text, recorded
from tiro.agents.registry import AgentRegistry
from tiro.errors import InvalidInputError
from tiro.models.model import ModelRequest
from tiro.session import history
from tiro.session.cut import legal_cut
from tiro.session.handlers import awaited, without_loop
from tiro.session.history import Messages
from tiro.session.messages import Message
from tiro.session.provider_view import provider_view
from tiro.session.session import Session
from tiro.session.times import rfc3339, utc_now

__all__ = ["Agent", "AgentInfo", "AgentRegistry", "Result", "SessionStore"]

MAX_REQUESTS = 50
"""How often a model is asked for one answer, unless the agent says so."""
TTL_SECONDS = 24 * 3600.0
"""How long a session lives that the agent makes in a store (G5.5)."""

Input: TypeAlias = str | Mapping[str, Any]
"""What a user says: text, or named parts, which the model and the session get as YAML."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A request that has succeeded."""

    input: Input
    """What the caller gave."""
    request: ModelRequest
    """The last one, if there were several."""
    output: str
    session: Session | None
    """Where it was asked; None without a session."""
    steps: list[Message] = []
    """Every tool call and result before the answer, oldest first."""


class SessionStore(Protocol):
    """What an agent asks of a store; each may be async."""

    def create(
        self,
        id: str | None = None,
        ttl: float | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Any:
        """Make a session that is stored."""
        ...

    def get(self, id: str) -> Any:
        """The session of this id; SessionNotFoundError without one."""
        ...

    def save(self, session: Any) -> Any:
        """Store what has changed."""
        ...


class Agent:
    """A model, and the session that it answers in, if any (A9.1).

    `model` is an object with `stream(request)`, or a callable from messages (a list of dicts) to
    text, sync or async. With a store and no session, each request without an id gets one of its
    own (G5.5). Hooks and handlers may be sync or async.
    """

    def __init__(
        self,
        model: Any,
        session: Session | None = None,
        store: SessionStore | None = None,
        info: AgentInfo | None = None,
    ) -> None:
        self.model, self.store = model, store
        self.info = info or AgentInfo(name="assistant")
        self._session = session
        self._own_history = Session()
        """What the model is shown while no session is bound; no request is recorded here."""
        self._before: list[Callable[[ModelRequest], Any]] = []
        self._after: list[Callable[[Result], Any]] = []
        self._record_handler: Callable[[Result], Any] | None = None
        self._history_limit: int | None = None
        self._tools: dict[str, AgentTool] = {}

    @property
    def session(self) -> Session | None:
        """The bound session, or None (A9.3)."""
        return self._session

    def get_session(self) -> Session | None:
        """The bound session, or None (A9.3)."""
        return self._session

    def attach_session(self, session: Session | None = None, *, mode: str | None = None) -> "Agent":
        """Bind this session, or a new one, in this mode (A9.2); ValueError for an unknown mode."""
        self._session = (Session() if session is None else session).configure(mode=mode)
        return self

    def detach_session(self) -> "Agent":
        """Answer without a session from now on."""
        self._session = None
        return self

    def before_request(self, hook: Callable[[ModelRequest], Any]) -> "Agent":
        """Call `hook(request)` before each request; another request that it returns is sent."""
        self._before.append(hook)
        return self

    def after_request(self, hook: Callable[[Result], Any]) -> "Agent":
        """Call `hook(result)` after each request that succeeded and was recorded."""
        self._after.append(hook)
        return self

    def set_record_handler(self, handler: Callable[[Result], Any] | None) -> "Agent":
        """Let `handler(result)` say which messages to record; nothing for none (A9.9)."""
        self._record_handler = handler
        return self

    def set_history_limit(self, limit: int | None) -> "Agent":
        """Send only so many of the newest messages along; 0: none, None: the whole window (G5.5).

        Raises InvalidInputError below 0.
        """
        if limit is not None and limit < 0:
            raise InvalidInputError("The history limit must be 0 or more; None sends the window")
        self._history_limit = limit
        return self

    def add_tool(
        self,
        function: Callable[..., Any],
        name: str | None = None,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
    ) -> "Agent":
        """Let a model that streams have this function called, by keyword; sync or async (G5.5).

        Calls and results are recorded with the answer, and what the function raises is told to the
        model. A request that fails records nothing (A9.8), also where tools have had their effect.
        """
        tool = tool_of(function, name, description, input_schema)
        self._tools[tool.schema.name] = tool
        return self

    def set_chat_history(self, messages: Messages) -> "Agent":
        """Put messages in the place of the history (A9.4)."""
        history.set_all(self._shown(), messages)
        return self

    async def async_set_chat_history(self, messages: Messages) -> "Agent":
        """`set_chat_history`, for callers that use the async forms throughout."""
        return self.set_chat_history(messages)

    async def async_add_chat_history(self, messages: Messages) -> "Agent":
        """Append one message or many; a bound session is resized if it has to be (A9.5)."""
        if self._session is None:
            history.add_all(self._own_history, messages)
        else:
            await self._session.async_add_chat_history(messages)
        return self

    def add_chat_history(self, messages: Messages) -> "Agent":
        """`async_add_chat_history` for callers without a loop, and inside one."""
        return without_loop(lambda: self.async_add_chat_history(messages))

    def reset_chat_history(self, drop_memo: bool = False) -> "Agent":
        """Empty the history and its counters; the memo stays unless told so (A9.6)."""
        history.clear(self._shown(), keep_memo=not drop_memo)
        return self

    async def async_reset_chat_history(self, drop_memo: bool = False) -> "Agent":
        """`reset_chat_history`, for callers that use the async forms throughout."""
        return self.reset_chat_history(drop_memo)

    async def async_run(self, text: Input, session_id: str | None = None) -> str:
        """Ask the model, record both sides, and return its answer (A9.7, A9.8).

        Raises InvalidInputError for empty input, SessionNotFoundError for an id that the store
        does not have, and whatever model, hooks and handlers raise. A resize that fails has the
        answer recorded before it.
        """
        if not as_text(text).strip() or not text:
            raise InvalidInputError("The input is empty; say something to the agent")
        session = await self._session_for(text, session_id)
        clears = session.clears if session is not None else 0
        answer = await self._answered(self._own_history if session is None else session, text)
        output = answer.output
        result = Result(
            input=text, request=answer.request, output=output, session=session, steps=answer.steps
        )
        if session is not None and session.clears == clears:
            await self._record(session, result)
        for after in self._after:
            await awaited(after, result)
        return output

    def run(self, text: Input, session_id: str | None = None) -> str:
        """`async_run` for callers without a loop, and inside one."""
        return without_loop(lambda: self.async_run(text, session_id))

    def _shown(self) -> Session:
        return self._own_history if self._session is None else self._session

    async def _session_for(self, text: Input, session_id: str | None) -> Session | None:
        """The session that a request belongs to: of this id, the bound one, or a new one."""
        bound = self._session
        if bound is not None and session_id in (None, bound.id):
            return bound
        if self.store is None:
            if session_id is None:
                return None
            raise InvalidInputError(f"The session {session_id!r} needs a store to be found in")
        if session_id is not None:
            found: Session = await awaited(self.store.get, session_id)
            return found
        metadata = {"created_by": self.info.name, "agent_version": __version__}
        made: Session = await awaited(
            lambda store: store.create(None, TTL_SECONDS, metadata), self.store
        )
        made.set("initial_input_length", len(as_text(text)))
        made.set("session_start_time", rfc3339(utc_now()))
        return made

    async def _answered(self, session: Session, text: Input) -> Answered:
        """The model's answer to an input, after all tools that it used."""
        with session.lock:
            window, archive = session.oldest_first(), list(session.archive_rows)
        if (limit := self._history_limit) is not None:
            start = legal_cut(window, len(window) - limit) if limit else len(window)
            window, archive = window[start:], []
        window.append(Message("user", as_text(text)))

        async def ask(steps: list[Message]) -> ModelRequest:
            request = self._request(session, [*window, *steps], archive)
            for before in self._before:
                request = await awaited(before, request) or request
            return request

        return await answered(self.model, ask, self._tools, self.info.steps or MAX_REQUESTS)

    def _request(
        self, session: Session, window: list[Message], archive: list[Message]
    ) -> ModelRequest:
        """A request with these messages; nothing is added to the session."""
        name = str(self.info.model or getattr(self.model, "name", ""))
        with session.lock:
            return ModelRequest(
                model=name.partition("/")[2] or name,
                messages=provider_view(window, archive, thinking=True),
                tools=[tool.schema for tool in self._tools.values()],
                system=session_prompt(session, self.info.prompt),
                max_output_tokens=output_limit(self.info.options),
                temperature=self.info.temperature,
                top_p=self.info.top_p,
                options=self.info.options,
            )

    async def _record(self, session: Session, result: Result) -> None:
        """Append what the request leaves behind, then judge a resize (A9.8)."""
        if self._record_handler is None:
            said, *answer = recorded(result.input, result.output, session.settings)
            messages: Any = [said, *result.steps, *answer]
        else:
            messages = await awaited(self._record_handler, result)
        if messages:
            await session.async_add_chat_history(messages)
        if self.store is not None and session is not self._session:
            await awaited(self.store.save, session)
