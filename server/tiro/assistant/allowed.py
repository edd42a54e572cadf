"""Whether a tool use would run, and by which rule, without running it."""

import asyncio
from functools import partial
from typing import Any

from tiro.agents.gate import Gate, Reason
from tiro.assistant.setup import Setup
from tiro.errors import AgentNotFoundError, InvalidInputError, ToolError
from tiro.session.core import Core
from tiro.tools.silent_disk import SilentDiskError
from tiro.tools.tool import check_input
from tiro.tools.workspace import Workspace


async def explain_permission(
    setup: Setup,
    session: Core,
    workspace: Workspace,
    agent: str | None,
    tool: str,
    input: dict[str, Any],
) -> list[Reason]:
    """What decides about a tool use of this agent, or of the one that would answer next.

    Any agent may be asked about, also one that nobody can select. Raises AgentNotFoundError, and
    InvalidInputError for a tool that is not there or an input that it does not take.
    """
    info = setup.agents.get(agent) if agent is not None else setup.agent_for(session, None)
    if info is None:
        names = [*setup.agents.names(hidden=True)]
        raise AgentNotFoundError(
            f"There is no agent {agent!r}; there are {', '.join(names)}",
            name=agent,
            available=names,
        )
    tools = {one.name: one for one in setup.every_tool(info)}
    if tool not in tools:
        raise InvalidInputError(f"There is no tool {tool!r}; there are {', '.join(tools)}")
    gate = Gate(setup.rules_of(info, session), workspace)
    try:
        given = check_input(tools[tool].input_schema, input)
        look = partial(gate.look, tools[tool], given)
        use = await asyncio.to_thread(setup.patience.ask, f"{tool} {given}", look)
    except SilentDiskError as error:
        raise InvalidInputError(f"What {tool} would be used on{error}") from error
    except ToolError as error:
        raise InvalidInputError(str(error)) from error
    return gate.reasons(use, session.rules)
