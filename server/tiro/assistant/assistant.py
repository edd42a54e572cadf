"""`Assistant`: the composition root; the use cases are its methods, or those of its parts.

Law: one method at a time, in the caller's order, but for `start_turn`, which runs beside the others
while it waits for its model and from its first event on. What a method changes is in the session's
journal before it returns, as far as the disk allows. While a turn runs it holds the session's lock
against other processes.
"""

import asyncio
import contextlib
import platform
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tiro import __version__
from tiro.agents.agent_info import AgentInfo
from tiro.agents.events import TurnOutcome
from tiro.agents.gate import Reason
from tiro.assistant import window
from tiro.assistant.allowed import explain_permission
from tiro.assistant.calibrations import Calibrations
from tiro.assistant.deletion import Deletion
from tiro.assistant.explain import Explained, explain
from tiro.assistant.file_edits import FileEdits
from tiro.assistant.fit import crowded
from tiro.assistant.limits import configure
from tiro.assistant.memory import Memory
from tiro.assistant.messages import Messages
from tiro.assistant.model_choice import ModelRow, Models, load_adapters
from tiro.assistant.new_turn import Means, begin_turn
from tiro.assistant.prompt import Attachment, content_of, is_blank
from tiro.assistant.rescue import Rescue, waiting
from tiro.assistant.results import Exported, Status
from tiro.assistant.running_turn import EventListener, TurnResult, entered
from tiro.assistant.saved_sessions import SavedSessions
from tiro.assistant.setup import KeepOut, Setup
from tiro.assistant.state import State
from tiro.assistant.titles import Titles
from tiro.assistant.turn_commands import commands_beside
from tiro.assistant.turns import Turns
from tiro.config.directories import cache_directory, config_directory
from tiro.config.settings import Doubts
from tiro.errors import InvalidInputError
from tiro.models.observer import Observer
from tiro.session.core import newest
from tiro.session.messages import Content, Message, Usage
from tiro.session.meter import ContextSize
from tiro.session.secrets import KnownSecrets
from tiro.session.session import Session
from tiro.session.settings import positive_or_none
from tiro.session.transcript import SHOWN_MESSAGES, Statistics, count, summarize
from tiro.stores.leftovers import remove_leftovers
from tiro.stores.notices import Notice
from tiro.tools.editor import Editor
from tiro.tools.workspace import Workspace

CLOSE_SECONDS = 0.5
"""How long the end waits for the store before it tells what is kept elsewhere."""

LATE_STORE = (
    "`store` can only be set in the user's configuration file, and is read when the server starts:"
    " until then sessions are kept by the kind {!r}"
)


class Assistant:
    """One user's assistant: one current session, one running turn at most.

    `editor` is what tools may ask of the editor; `on_event` hears every event of a turn, in order;
    `on_changed` hears what changes without having been asked for; `observer` what models are asked
    and answer, byte by byte; `keep_out` the values that belong into no file and no log.
    """

    def __init__(
        self,
        *,
        editor: Editor,
        on_event: EventListener = lambda turn, n, event: None,
        on_changed: Callable[[Notice], None] = lambda notice: None,
        config_dir: Path | None = None,
        observer: Observer | None = None,
        keep_out: KeepOut = lambda secrets: None,
    ) -> None:
        self.workspace = Workspace(editor)
        self.editor = editor
        self.turns = Turns(on_event)
        self._on_changed = on_changed
        self.tell: Callable[[str], None] = lambda text: None
        """Hears what the user should know, and may be told more than once."""
        self.say = self.tell
        """Hears what the user should know each time that it is told."""
        self._observer, self.secrets = observer, KnownSecrets(on_more=keep_out)
        self._config_dir = config_dir or config_directory()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beside: set[asyncio.Task[None]] = set()
        self._client: tuple[Sequence[Path], Mapping[str, Any], bool] = ([], {}, True)
        self.setup = Setup.load(self._config_dir, [], {})
        self.manager = self.setup.manager(self._config_dir / "sessions", self._noticed)
        self._store = self.setup.settings.store
        self.saved = SavedSessions(self.manager, self.turns, self._weigh, self.setup.patience)
        self.edits = FileEdits(
            self.workspace,
            self._config_dir / "edits",
            lambda: self.manager.autosave,
            self.setup.patience,
            lambda session_id, times: commands_beside(self.manager, session_id, times),
        )
        self.messages, self.state, self.deletion = Messages(self), State(self), Deletion(self)
        self.memory, self.titles = Memory(self, self._noticed), Titles(self, self._noticed)
        self.calibrations = Calibrations(cache_directory())
        self.models = self._open_models()
        self._former: list[Models] = []
        """Models of settings before, of which somebody still waits for an answer."""

    # --- how it is set up ---

    async def configure_client(
        self, settings: Mapping[str, Any], roots: Sequence[Path], workspace_trusted: bool = True
    ) -> list[str]:
        """Take over an editor's settings and workspace; the problems, one sentence each.

        Called at `initialize` and whenever the editor's configuration changes; a running turn keeps
        what it began with. In a workspace that is not trusted only tools that read are offered.
        """
        self._loop = asyncio.get_running_loop()
        self._client = (roots, settings, workspace_trusted)
        setup = await self._read_setup()
        await self._set_up(setup)
        return self._configured_wrong()

    async def read_corrections(self) -> None:
        """Read the configuration again where it was in doubt who may be asked, or what may run."""
        settings, problems = self.setup.settings, self.setup.config_problems
        if settings.doubts == Doubts() and settings.unread is None:
            return
        setup = await self._read_setup()
        if (setup.settings, setup.config_problems) != (settings, problems):
            await self._set_up(setup)

    async def warm_up(self) -> None:
        """Load what the first prompt will need, in a thread, so that it need not wait for it.

        Then what is too much in the ledger of edits goes, and what killed processes left beside
        sessions; what an earlier end has left is told.
        """
        await asyncio.to_thread(load_adapters)
        await asyncio.to_thread(self.edits.prune)
        await asyncio.to_thread(remove_leftovers, self.manager.directory, self.manager.disk)
        self.tell_all(await asyncio.to_thread(waiting, self._config_dir))

    async def shutdown(self) -> None:
        """End the turn, what the models started, and everything that is not yet on the disk."""
        await self.turns.cancel()
        await self.titles.close()
        await self.memory.close()
        rescue = Rescue(self.manager, self._config_dir)
        await asyncio.to_thread(rescue.write)
        for models in (*self._former, self.models):
            await models.close()
        await asyncio.to_thread(self.calibrations.save)
        await asyncio.to_thread(self.saved.close)
        closing = asyncio.ensure_future(asyncio.to_thread(self.manager.close))
        if (await asyncio.wait({closing}, timeout=CLOSE_SECONDS))[0]:
            await asyncio.to_thread(rescue.drop_stored)
        for sentence in rescue.told():
            self.say(sentence)
        await closing

    # --- the session, for reading ---

    @property
    def session(self) -> Session:
        """The current session; the first read makes it."""
        return self.manager.get()

    @property
    def running_turn_id(self) -> str | None:
        """The id of the turn that runs or is starting, if there is one."""
        return self.turns.turn_id

    async def page(
        self,
        limit: int | None = None,
        before_seq: int | None = None,
        everything: bool | None = None,
    ) -> list[Message]:
        """The window, or with an argument a page of the whole history, oldest first."""
        if limit is None and before_seq is None and not everything:
            return self.session.oldest_first()
        return window.page(self.session, limit, before_seq, bool(everything))

    async def content(
        self, seq: int, block: int | None, offset: int | None, limit: int | None
    ) -> window.Piece:
        """A part of a long message or block."""
        session = self.session
        outputs = self.manager.outputs(session)
        asked = partial(window.piece, session, seq, block, offset or 0, limit, outputs)
        return await asyncio.to_thread(asked) if outputs else asked()

    async def show(self) -> str | None:
        """The text of *show session*, None when it is empty."""
        return summarize(newest(self.session, SHOWN_MESSAGES))

    async def statistics(self) -> Statistics:
        """Counts over the window, usage over the session."""
        session, tokens = self.session, self.context_size().tokens
        return count(session.newest_first, session.turns, tokens, session.usage)

    def context_size(self, draft: str = "") -> ContextSize:
        """The size of the next request, with a draft in it; O(window), each text weighed once."""
        return self.measured(self.session, draft)

    def measured(self, session: Session, draft: str = "") -> ContextSize:
        """The size of the session's next request; while a turn runs, for the model that answers."""
        name = self._model_name(session)
        if self.turns.running is None:
            self._use_meter_of(name, session)
        return self.setup.measure(session, self.models.facts(name), draft)

    def too_long(self) -> list[str]:
        """What of memory and instructions the next request does not show whole, a sentence each."""
        session = self.session
        return self.setup.too_long(session, self.models.facts(self._model_name(session)))

    async def explain(
        self,
        draft: Content | None = None,
        attachments: Sequence[Attachment] = (),
        agent: str | None = None,
        model: str | None = None,
    ) -> Explained:
        """The next request, as `start_turn` with these would send it; changes nothing.

        A blank draft is none. Raises as `start_turn` for what it would refuse to send.
        """
        session, content = self.session, None
        self.tell_all(await asyncio.to_thread(self.setup.look_at, self.workspace))
        if attachments or not is_blank(draft):
            content = await content_of(
                draft or "", attachments, self.workspace, self.setup.patience
            )
        info = self.setup.agent_for(session, agent)
        known = await self.models.without_asking(self.wanted_model(session, info, model))
        means = Means(setup=self.setup, workspace=self.workspace, editor=self.editor)
        turn = means.turn(session.fork(), "", info, known)
        turn.session.meter.use(known.name, self.calibrations.of(known.name))
        return await explain(turn, content, self.setup, self.manager)

    def agent(self) -> AgentInfo | None:
        """The session's agent; None when none is selected or the saved one is not there."""
        return self.setup.agents.get(self.session.agent)

    # --- the session, for changing ---

    async def get_id(self) -> str:
        """The session's id, made now if it has none; claims no file."""
        return self.manager.claim_id(self.session)

    async def new(
        self,
        id: str | None = None,
        title: str | None = None,
        agent: str | None = None,
        max_history: int | None = None,
    ) -> Session:
        """End the old session as `clear` does, and begin one with these.

        Raises SessionExistsError for a taken id, InvalidSessionIdError for an unsafe one.
        """
        if agent is not None:
            self.setup.selectable(agent)
        return await self.saved.new(id, title, agent, max_history)

    async def explain_permission(
        self, agent: str | None, tool: str, input: dict[str, Any]
    ) -> list[Reason]:
        """Why a tool use of an agent, or the session's own, would run or not; changes nothing."""
        return await explain_permission(
            self.setup, self.session, self.workspace, agent, tool, input
        )

    async def load(
        self, path: Path | None = None, id: str | None = None, latest: bool | None = None
    ) -> Session:
        """Make a saved session the current one, as SavedSessions does; tell what it misses."""
        session = await self.saved.load(path, id, latest)
        self.tell_all(self.setup.missing(session))
        return session

    async def set_agent(self, name: str | None) -> AgentInfo | None:
        """Select an agent, or none; a running turn keeps its own."""
        await self._look_at_agents()
        agent = None if name is None else self.setup.selectable(name)
        async with self.changing() as session:
            session.set_agent(name)
        return agent

    async def set_model(self, name: str) -> str:
        """Choose the session's model as `provider/name`; a running turn keeps its own.

        Raises ModelNotConfiguredError, with what is missing, for one that cannot be used.
        """
        full = await self.models.usable(name)
        async with self.changing() as session:
            session.change(model=full)
        return full

    async def configure(self, given: Mapping[str, Any]) -> Session:
        """Change what is given of a session's title, limits and modes.

        `given` may hold max_history, title, mode, limit, every_n_turns, memo_enabled and
        summary_enabled. Limits that are changed while a turn runs take effect when it is over.
        """
        if "max_history" in given:
            try:
                positive_or_none(given["max_history"])
            except ValueError as error:
                raise InvalidInputError(str(error)) from error
        async with self.changing() as session:
            self.turns.when_over(lambda: configure(session, given))
            return session

    async def export(
        self, format: str, id: str | None, path: Path | None, redact: bool | None
    ) -> Exported:
        """A session as text; what looks like a key is taken out unless that is switched off."""
        is_redacted = self.setup.settings.session.redact if redact is None else redact
        return await self.saved.export(format, id, path, is_redacted)

    @contextlib.asynccontextmanager
    async def changing(self, during_turn: bool = True) -> AsyncIterator[Session]:
        """The session for one change: locked against other processes, and up to date."""
        if not during_turn:
            self.turns.refuse_another()
        session = self.session
        async with entered(self.manager.changing(session)):
            yield session

    async def end_expired(self) -> None:
        """Begin an empty session where the time of the current one is over, and tell it."""
        if await self.saved.end_expired():
            self._noticed(Notice("expired", self.session, {}))

    # --- turns ---

    async def start_turn(
        self,
        turn_id: str,
        prompt: Content,
        attachments: Sequence[Attachment] = (),
        agent: str | None = None,
        model: str | None = None,
    ) -> TurnResult:
        """Ask, and wait for the end of the turn; its events go to `on_event`. O(window) a step.

        `turn_id` is one that no other turn has. Raises TurnInProgressError while another one runs,
        InvalidInputError for an empty prompt, ModelNotConfiguredError before anything is stored,
        and what ended the turn if it failed.
        """
        self.turns.refuse_another()
        await self.end_expired()
        running = await begin_turn(self, turn_id, prompt, attachments, agent, model)
        if running is None:
            return self.cancelled_turn(turn_id)
        try:
            outcome = await running.outcome()
        finally:
            self.titles.start(running.session)
            self._keep(self.memory.after_turn(running.session))
            self._keep(asyncio.to_thread(self.calibrations.save))
        size = self.measured(running.session)
        return TurnResult(turn_id=running.turn_id, outcome=outcome, context_size=size)

    def cancelled_turn(self, turn_id: str) -> TurnResult:
        """The result of a turn that was cancelled before it began; nothing of it is stored."""
        next_seq = self.session.next_seq
        outcome = TurnOutcome(
            stop_reason="cancelled",
            text="",
            first_seq=next_seq,
            last_seq=next_seq - 1,
            steps=0,
            usage=Usage(),
        )
        return TurnResult(turn_id=turn_id, outcome=outcome, context_size=self.context_size())

    # --- agents, models, status ---

    async def list_agents(self, everything: bool | None = None) -> Sequence[AgentInfo]:
        """The agents a user may select, or all of them, as their files are now."""
        await self._look_at_agents()
        agents = self.setup.agents
        return agents.list() if everything else agents.selectable()

    async def list_models(self) -> Sequence[ModelRow]:
        """The models of every provider, with a reason where one cannot be used."""
        return await self.models.rows([self.current_model(), self.setup.settings.model])

    async def _look_at_agents(self) -> None:
        """Take the agents' files as they are now, and tell what is newly wrong with them."""
        self.tell_all(await asyncio.to_thread(self.setup.folders.look))

    def tell_all(self, sentences: Iterable[str]) -> None:
        """Tell the user each of these."""
        for sentence in sentences:
            self.tell(sentence)

    def wanted_model(self, session: Session, info: AgentInfo, model: str | None) -> str | None:
        """The name of the model that answers an agent's prompt; None: the first usable one."""
        return model or self.setup.model_of(session) or info.model or self.setup.settings.model

    def current_model(self) -> str | None:
        """The model the next turn will use, as far as it is known without asking anybody."""
        session = self.manager.current
        return (
            (self.setup.model_of(session) if session else None)
            or self.setup.settings.model
            or self.models.first_usable
        )

    async def status(self) -> Status:
        """How this server is set up, and what is wrong with it."""
        await self._look_at_agents()
        model = self.current_model()
        problems = self._configured_wrong()
        problems += self.setup.missing(self.session)
        problems += self.too_long()
        problems += filter(None, [crowded(self.setup.budget(self.context_size()))])
        return Status(
            version=__version__,
            python=platform.python_version(),
            config_files=list(self.setup.files),
            sessions_directory=self.manager.directory,
            model=model,
            provider=model.partition("/")[0] if model else None,
            problems=problems,
        )

    async def _weigh(self, session: Session) -> None:
        """Weigh its messages in a thread: hundreds of megabytes of them take seconds."""
        self._use_meter_of(self._model_name(session), session)
        await asyncio.to_thread(session.meter.weights, session.newest_first)

    def _use_meter_of(self, name: str | None, session: Session) -> None:
        if name is not None:
            session.meter.use(name, self.calibrations.of(name))

    async def _read_setup(self) -> Setup:
        given, patience = (*self._client, self.editor), self.setup.patience
        return await asyncio.to_thread(Setup.load, self._config_dir, *given, patience)

    def _configured_wrong(self) -> list[str]:
        """What is wrong with the configuration, one sentence each."""
        setup = self.setup
        late = [] if setup.settings.store == self._store else [LATE_STORE.format(self._store.kind)]
        return [*setup.problems, *setup.instructions.problems, *late]

    async def _set_up(self, setup: Setup) -> None:
        await asyncio.to_thread(setup.look_at, self.workspace)
        self.setup = setup
        self.setup.apply_to(self.manager)
        self._replace_models()

    def _model_name(self, session: Session) -> str | None:
        """The model that the session's own agent will use, as far as it is known."""
        name = self.wanted_model(session, self.setup.agent_for(session, None), None)
        return self.models.full_name(name)

    def _open_models(self) -> Models:
        return self.setup.models(self.manager, self.secrets.add, self._observer)

    def _replace_models(self) -> None:
        """Open models anew with the settings of now; whoever asks one keeps the old ones open."""
        before, self.models = self.models, self._open_models()
        self._former.append(before)
        self.turns.when_over(lambda: self._keep(self._close_former(before)))

    async def _close_former(self, models: Models) -> None:
        models.retire()
        if self.turns.asked:
            await asyncio.wait([*self.turns.asked])
        self._former.remove(models)
        await models.close()

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Let it run beside all else, and hold it until it has ended."""
        task = asyncio.ensure_future(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def _noticed(self, notice: Notice) -> None:
        """Pass a notice on in the loop's thread; the manager may tell it from its own."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._on_changed, notice)
