"""A new turn: what it is made of, and how it begins, from the prompt to its first event."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from tiro.agents.agent_info import AgentInfo
from tiro.agents.delegate import id_within
from tiro.agents.turn_input import Turn
from tiro.assistant.fit import Fitting
from tiro.assistant.prompt import Attachment, content_of
from tiro.assistant.running_turn import RunningTurn, entered
from tiro.assistant.setup import Setup
from tiro.assistant.turns import new_turn_id
from tiro.models.model import Model
from tiro.session.messages import Content
from tiro.session.queued import add_queued
from tiro.session.session import Session
from tiro.session.summary import before_turn
from tiro.tools.tool import ToolRun
from tiro.tools.workspace import Editor, PermissionAnswer, PermissionRequest, Workspace

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant


async def begin_turn(
    assistant: "Assistant",
    prompt: Content,
    attachments: Sequence[Attachment],
    agent: str | None,
    model: str | None,
) -> RunningTurn | None:
    """The turn, begun; None where it was stopped while it waited for its model.

    Raises as `Assistant.start_turn`, and then nothing of it is stored.
    """
    session, workspace, turn_id = assistant.session, assistant.workspace, new_turn_id()
    await assistant.read_corrections()
    content = await content_of(prompt, attachments, workspace)
    assistant.tell_all(await asyncio.to_thread(assistant.setup.look_at, workspace))
    info = assistant.setup.agent_for(session, agent)
    chosen = await _chosen(assistant, turn_id, lambda: assistant.wanted_model(session, info, model))
    if chosen is None:
        return None
    assistant.tell_all(assistant.setup.missing(session))
    given_up = threading.Event()
    holding = entered(assistant.manager.writing(session, given_up.is_set), given_up.set)
    await holding.__aenter__()
    try:
        assistant.manager.claim_id(session)
        add_queued(session)  # what a turn that was killed could not take any more
        setup = assistant.setup
        is_lost = agent is None and setup.lost_agent(session) is not None
        given = None if is_lost else info  # it is the user who selects another one (M4.3)
        setup.assign(session, content, given, model and chosen.name)
        assistant.memory.use(session, chosen)
        before_turn(session)
        session.meter.use(chosen.name, assistant.calibrations.of(chosen.name))
        choose = assistant.models.choose
        turn = turn_of(setup, session, content, info, chosen, workspace, assistant.editor, choose)
    except BaseException:
        await holding.__aexit__(None, None, None)
        raise
    turn.edits = assistant.edits.recorder_of(turn_id, session.id)
    turn.secrets = assistant.secrets
    return assistant.turns.start(turn_id, session, turn, holding)


def turn_of(
    setup: Setup,
    session: Session,
    content: Content,
    agent: AgentInfo,
    model: Model,
    workspace: Workspace,
    editor: Editor,
    open_model: Callable[[str], Awaitable[Model]] | None = None,
) -> Turn:
    """All that a turn needs; its prompt is to be the next message of the session.

    `open_model` opens the model that another agent names, when it is given a task.
    """

    async def begin(info: AgentInfo, task: str, run: ToolRun) -> Turn:
        chosen = model
        if info.model is not None and open_model is not None:
            chosen = await open_model(info.model)
        return _turn_within(setup, turn, info, task, chosen, editor, run)

    turn = _turn(setup, session, content, agent, model, workspace, editor)
    turn.tools = setup.tools_with(agent, begin)
    return turn


async def _chosen(
    assistant: "Assistant", turn_id: str, wanted: Callable[[], str | None]
) -> Model | None:
    """The model of a turn; where settings change while it is looked for, that of the new ones.

    Everything else goes on while a command prints a key, or a server is asked for its models.
    """
    while True:
        models, name = assistant.models, wanted()
        choosing, is_at_hand = models.choose(name), models.is_at_hand(name)
        work = choosing if is_at_hand else assistant.turns.prepared(turn_id, choosing)
        chosen = await work
        if chosen is None or assistant.models is models:
            return chosen


def _turn_within(
    setup: Setup,
    caller: Turn,
    info: AgentInfo,
    task: str,
    model: Model,
    editor: Editor,
    run: ToolRun,
) -> Turn:
    """The turn in which an agent does a task for another one's turn."""
    session = Session(setup.session_settings())

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        seen = id_within(run.tool_use_id, request.tool_use_id)
        return await editor.ask_permission(msgspec.structs.replace(request, tool_use_id=seen))

    turn = _turn(setup, session, task, info, model, caller.workspace, editor)
    turn.rules = msgspec.structs.replace(turn.rules, caller=caller.rules)
    turn.spending, turn.on_usage = caller.spending, run.on_event
    turn.rules_in, turn.edits, turn.ask = caller.session, caller.edits, ask
    turn.secrets = caller.secrets
    return turn


def _turn(
    setup: Setup,
    session: Session,
    content: Content,
    agent: AgentInfo,
    model: Model,
    workspace: Workspace,
    editor: Editor,
) -> Turn:
    prompt_seq = session.next_seq
    return Turn(
        session=session,
        prompt=content,
        model=model,
        agent=agent,
        workspace=workspace,
        tools=setup.tools,
        system=setup.system(agent),
        settings=setup.settings.turn,
        rules=setup.rules_of(agent, session),
        before_step=Fitting(
            session,
            lambda: setup.measure(session, model.facts, agent=agent),
            setup.settings.session.budget_ratio,
            prompt_seq,
        ).fitted,
        ask=editor.ask_permission,
    )
