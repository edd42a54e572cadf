"""The seven agents that are always there, with their rules (M5.2, M5.7 to M5.9, M5.13).

Users select `build` and `plan`; these give tasks to `general` and `explore`. Tiro itself asks
`compaction` and `title`. `summary` is for programs: they find it in the registry, while what leaves
a window is summed up by a prompt of its own (N3.4), since that has to serve the model later on.
"""

from collections.abc import Sequence
from pathlib import Path

from tiro.agents.agent_info import AgentInfo
from tiro.agents.command_rules import MAY_BE_READ_ONLY, READ_ONLY
from tiro.agents.permissions import SECRET_FILES, Kind, Permission
from tiro.session.prompts import COMPACTION_PROMPT

PLAN_FILES: Sequence[tuple[str, Kind]] = ((".tiro/plan/*.md", "allow"), ("*", "deny"))
"""Where the plan agent may write (M5.8)."""

READ_COMMANDS: Sequence[tuple[str, Kind]] = ((READ_ONLY, "allow"), ("*", "deny"))
"""What of the shell an agent may use that changes nothing (M5.8, M5.9)."""

PLAN_COMMANDS: Sequence[tuple[str, Kind]] = (
    (READ_ONLY, "allow"),
    (MAY_BE_READ_ONLY, "ask"),
    ("*", "deny"),
)

PLAN_PERMISSION: Permission = {"edit": PLAN_FILES, "write": PLAN_FILES, "bash": PLAN_COMMANDS}
EXPLORE_PERMISSION: Permission = {
    "read": SECRET_FILES,
    "grep": "allow",
    "glob": "allow",
    "bash": READ_COMMANDS,
    "*": "deny",
}
GENERAL_PERMISSION: Permission = {"delegate": "deny"}


def built_in_agents() -> Sequence[AgentInfo]:
    """All seven, those that a user may select first."""
    return [
        AgentInfo(
            name="build",
            description="Answers questions about the workspace and does the work on it",
            mode="primary",
            native=True,
            prompt=_prompt("build"),
        ),
        AgentInfo(
            name="plan",
            description="Works out how something should be done, and changes nothing",
            mode="primary",
            native=True,
            prompt=_prompt("plan"),
            permission=PLAN_PERMISSION,
        ),
        AgentInfo(
            name="general",
            description="Does a task of several steps, and reports what came out",
            mode="subagent",
            native=True,
            hidden=True,
            prompt=_prompt("general"),
            permission=GENERAL_PERMISSION,
        ),
        AgentInfo(
            name="explore",
            description="Finds things in the workspace, and changes nothing",
            mode="subagent",
            native=True,
            prompt=_prompt("explore"),
            permission=EXPLORE_PERMISSION,
        ),
        _writer("compaction", "Sums up a conversation that goes on without it", COMPACTION_PROMPT),
        _writer("title", "Names a conversation", _prompt("title")),
        _writer("summary", "Tells in a few sentences what was done", _prompt("summary")),
    ]


def _writer(name: str, description: str, prompt: str) -> AgentInfo:
    """An agent that only writes: no tools, and nobody selects it."""
    return AgentInfo(
        name=name,
        description=description,
        mode="primary",
        native=True,
        hidden=True,
        prompt=prompt,
        permission="deny",
    )


def _prompt(name: str) -> str:
    return (Path(__file__).parent / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()
