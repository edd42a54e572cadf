"""Every tool that an agent can have, for tests of who may use them."""

from tiro.agents.agent_info import AgentInfo
from tiro.agents.built_in import built_in_agents
from tiro.agents.delegate import delegate_tool
from tiro.agents.turn_input import Turn
from tiro.tools.edit_files import edit_tools
from tiro.tools.files import FILE_TOOLS
from tiro.tools.shell import shell_tools
from tiro.tools.tool import Tool, ToolRun


def tools_by_name() -> dict[str, Tool]:
    """The tools, by their names."""
    agents = [agent for agent in built_in_agents() if agent.mode != "primary"]
    tools = [*FILE_TOOLS, *edit_tools(), *shell_tools(), delegate_tool(agents, _begin)]
    return {tool.name: tool for tool in tools}


async def _begin(info: AgentInfo, task: str, run: ToolRun) -> Turn:
    raise AssertionError("nothing is given to another agent here")
