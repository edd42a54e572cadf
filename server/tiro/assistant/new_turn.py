"""A new turn: what it is made of, and how it begins, from the prompt to its first event."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from tiro.agents.agent_info import AgentInfo
from tiro.agents.delegate import id_within
from tiro.agents.turn_input import Turn
from tiro.assistant.fit import Fitting
from tiro.assistant.model_choice import Models, chosen_of
from tiro.assistant.prompt import Attachment, content_of
from tiro.assistant.running_turn import RunningTurn, entered
from tiro.assistant.setup import Setup
from tiro.models.model import Model
from tiro.session.messages import Content
from tiro.session.queued import add_queued
from tiro.session.secrets import KnownSecrets
from tiro.session.session import Session
from tiro.session.summary import before_turn
from tiro.tools.editor import Editor, PermissionAnswer, PermissionRequest
from tiro.tools.long_output import OutputKeeper
from tiro.tools.tool import EditRecorder, ToolRun, Unrecorded
from tiro.tools.workspace import Workspace

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant


async def begin_turn(
    assistant: "Assistant",
    turn_id: str,
    prompt: Content,
    attachments: Sequence[Attachment],
    agent: str | None,
    model: str | None,
) -> RunningTurn | None:
    """The turn, begun; None where it was stopped while it waited for its model.

    Raises as `Assistant.start_turn`, and then nothing of it is stored.
    """
    session = assistant.session
    await assistant.read_corrections()
    content = await content_of(prompt, attachments, assistant.workspace, assistant.setup.patience)
    assistant.tell_all(await asyncio.to_thread(assistant.setup.look_at, assistant.workspace))
    answering = await _answering(assistant, session, turn_id, agent, model)
    if answering is None:
        return None
    info, chosen = answering
    setup = assistant.setup
    assistant.tell_all(setup.missing(session))
    given_up = threading.Event()
    holding = entered(assistant.manager.writing(session, given_up.is_set), given_up.set)
    await holding.__aenter__()
    try:
        assistant.manager.claim_id(session)
        add_queued(session)  # what a turn that was killed could not take any more
        is_lost = agent is None and setup.lost_agent(session) is not None
        given = None if is_lost else info  # it is the user who selects another one (M4.3)
        setup.assign(session, content, given, model and chosen.name)
        assistant.memory.use(session, chosen)
        before_turn(session)
        session.meter.use(chosen.name, assistant.calibrations.of(chosen.name))
        turn = _means(assistant, turn_id, session).turn(session, content, info, chosen)
    except BaseException:
        await holding.__aexit__(None, None, None)
        raise
    return assistant.turns.start(turn_id, session, turn, holding)


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What turns are made with: that of a prompt, and those within it."""

    setup: Setup
    workspace: Workspace
    editor: Editor
    open_model: Callable[[str], Awaitable[Model]] | None = None
    """Opens the model that another agent names, when it is given a task."""
    edits: Callable[[str], EditRecorder] = lambda tool_use_id: Unrecorded()
    keep_output: Callable[[], OutputKeeper | None] = lambda: None
    secrets: KnownSecrets = msgspec.field(default_factory=KnownSecrets)
    tell_all: Callable[[Iterable[str]], None] = lambda sentences: None
    """Hears what a user should know, a sentence each."""

    def turn(self, session: Session, content: Content, agent: AgentInfo, model: Model) -> Turn:
        """All that a turn needs; its prompt is to be the next message of the session."""

        async def begin(info: AgentInfo, task: str, run: ToolRun) -> Turn:
            chosen = model
            if info.model is not None and self.open_model is not None:
                chosen = await self.open_model(info.model)
            return self._within(turn, info, task, chosen, run)

        alone = self._alone(session, content, agent, model)
        tools = self.setup.tools_with(agent, begin)
        turn = msgspec.structs.replace(alone, tools=tools, keep_output=self.keep_output)
        return turn

    def _within(self, caller: Turn, info: AgentInfo, task: str, model: Model, run: ToolRun) -> Turn:
        """The turn in which an agent does a task for another one's turn."""

        async def ask(request: PermissionRequest) -> PermissionAnswer:
            seen = id_within(run.tool_use_id, request.tool_use_id)
            asked = msgspec.structs.replace(request, tool_use_id=seen)
            return await self.editor.ask_permission(asked)

        alone = self._alone(Session(self.setup.session_settings()), task, info, model)
        return msgspec.structs.replace(
            alone,
            rules=msgspec.structs.replace(alone.rules, caller=caller.rules),
            rules_now=lambda: msgspec.structs.replace(
                alone.rules, caller=(caller.rules_now or (lambda: caller.rules))()
            ),
            rules_in=caller.session,
            spending=caller.spending,
            on_usage=run.on_event,
            ask=ask,
        )

    def _alone(self, session: Session, content: Content, agent: AgentInfo, model: Model) -> Turn:
        """A turn that can give no task to another agent."""
        setup = self.setup
        return Turn(
            session=session,
            prompt=content,
            model=model,
            agent=agent,
            workspace=self.workspace,
            tools=setup.tools,
            system=setup.system(agent),
            settings=setup.settings.turn,
            rules=setup.rules_of(agent, session),
            rules_now=lambda: setup.rules_of(setup.agents.get(session.agent) or agent, session),
            before_step=Fitting(
                session,
                lambda: setup.measure(session, model.facts, agent=agent),
                setup.settings.session.budget_ratio,
                session.next_seq,
                lambda: self.tell_all(setup.too_long(session, model.facts, agent)),
            ).fitted,
            ask=self.editor.ask_permission,
            edits=self.edits,
            secrets=self.secrets,
        )


def _means(assistant: "Assistant", turn_id: str, session: Session) -> Means:
    outputs = assistant.manager.outputs(session)
    return Means(
        setup=assistant.setup,
        workspace=assistant.workspace,
        editor=assistant.editor,
        open_model=assistant.models.choose,
        edits=assistant.edits.recorder_of(turn_id, session.id),
        keep_output=outputs.keeper if outputs else lambda: None,
        secrets=assistant.secrets,
        tell_all=assistant.tell_all,
    )


async def _answering(
    assistant: "Assistant", session: Session, turn_id: str, agent: str | None, model: str | None
) -> tuple[AgentInfo, Model] | None:
    """Who answers a turn, with which model; None where it was stopped while it waited for that.

    Where settings change meanwhile, both are those of the new ones. Everything else goes on while a
    command prints a key, or a server is asked for its models.
    """
    first = assistant.setup.agent_for(session, agent)

    async def choose(models: Models) -> tuple[AgentInfo, Model] | None:
        setup = assistant.setup
        # The one that was there at first, whichever is selected since: it is a turn already.
        info = setup.agents.get(first.name) or setup.agent_for(session, agent)
        name = assistant.wanted_model(session, info, model)
        choosing, is_at_hand = models.choose(name), models.is_at_hand(name)
        chosen = await (choosing if is_at_hand else assistant.turns.prepared(turn_id, choosing))
        return None if chosen is None else (info, chosen)

    return await chosen_of(lambda: assistant.models, choose)
