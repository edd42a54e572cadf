"""How Tiro is set up right now: settings, agents, tools and rules, and what follows from them.

A `Setup` is made anew from the files and the editor's settings whenever they change; a running turn
keeps the one it began with.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from tiro.agents.agent_info import AgentInfo
from tiro.agents.delegate import Begin, delegate_tool
from tiro.agents.permissions import PERMISSION_SETS, PermissionDecision, Rules
from tiro.agents.prompt import request_size, what_is_cut
from tiro.agents.registry import AgentRegistry
from tiro.agents.turn_input import Turn, offered_tools, schemas_of
from tiro.assistant.agent_folders import AgentFolders
from tiro.assistant.fit import budget_of
from tiro.assistant.instructions import Instructions, read_instructions
from tiro.assistant.model_choice import Models
from tiro.config import files
from tiro.config.directories import cache_directory
from tiro.config.settings import Settings, StoreSettings
from tiro.errors import AgentNotFoundError
from tiro.models.model import ModelFacts
from tiro.models.observer import Observer
from tiro.session.core import Core
from tiro.session.messages import Content, Message
from tiro.session.meter import ContextSize
from tiro.session.policy import Budget
from tiro.session.session import Session
from tiro.session.transcript import first_line
from tiro.stores.manager import SessionManager
from tiro.stores.notices import Notice
from tiro.tools.diagnostics import diagnostics_tools
from tiro.tools.edit_files import edit_tools
from tiro.tools.editor import Editor
from tiro.tools.files import file_tools
from tiro.tools.search import search_tools
from tiro.tools.shell import shell_tools
from tiro.tools.silent_disk import Patience
from tiro.tools.tool import Tool, ToolRun
from tiro.tools.workspace import Workspace

LOST = "the agent {!r} is missing: ask"
LOST_AGENT = (
    "The session's agent {!r} is not there any more: {} answers, and asks before all but reading"
    " until you select an agent"
)
LOST_MODEL = (
    "The provider of the session's model {!r} is not configured any more: {} answers until you"
    " choose a model"
)

KeepOut = Callable[[Iterable[str]], None]
"""Hears values that belong into no file and no log; may be called again with others."""


class Setup(msgspec.Struct, kw_only=True):
    """Everything that configuration decides."""

    settings: Settings
    files: list[Path]
    """The configuration files that are there."""
    config_problems: list[str]
    """What is wrong with them, one sentence each."""
    is_broken: bool
    """A file of it cannot be read at all; the first problem says which."""
    named_providers: frozenset[str] = frozenset()
    """Those that are configured, also where something is wrong with one."""
    folders: AgentFolders
    patience: Patience
    """With the disks on which all of it lies."""
    tools: Sequence[Tool]
    is_trusted: bool = True
    """Whether the user trusts the workspace."""
    instructions: Instructions = Instructions()
    """Those of the workspace, as they were when they were last looked at."""

    @property
    def agents(self) -> AgentRegistry:
        """The agents there are."""
        return self.folders.registry

    @property
    def problems(self) -> list[str]:
        """What is wrong with the configuration and the agents' files, one sentence each."""
        return [*self.config_problems, *self.folders.problems]

    @classmethod
    def load(
        cls,
        directory: Path,
        roots: Sequence[Path],
        given: Mapping[str, Any],
        trusted: bool = True,
        editor: Editor | None = None,
        patience: Patience | None = None,
    ) -> "Setup":
        """Read the configuration of a user, a workspace and an editor.

        In a workspace that is not `trusted` only tools that read are offered, and what needs an
        `editor` is offered only where it can be asked.
        """
        patience = patience or Patience()
        loaded = files.load(directory, roots, given, patience)
        trusted_roots, default = roots if trusted else [], loaded.settings.agent
        folders = AgentFolders(directory, trusted_roots, default, patience)
        tools = [
            *file_tools(),
            *search_tools(),
            *edit_tools(),
            *shell_tools(loaded.settings.key_variables(), loaded.settings.turn.command_keys),
        ]
        if editor is not None and editor.can_diagnose():
            tools += diagnostics_tools()
        return cls(
            settings=loaded.settings,
            files=loaded.files,
            config_problems=loaded.problems,
            is_broken=loaded.is_broken,
            named_providers=loaded.named_providers,
            folders=folders,
            patience=patience,
            tools=[tool for tool in tools if trusted or tool.effect == "read"],
            is_trusted=trusted,
        )

    def look_at(self, workspace: Workspace) -> list[str]:
        """Read the workspace's instructions and agents anew; what is newly wrong with their files.

        A workspace that is not trusted gives neither.
        """
        before = self.instructions.problems
        if self.is_trusted:
            self.instructions = read_instructions(workspace, self.patience)
        found = [problem for problem in self.instructions.problems if problem not in before]
        return [*found, *self.folders.look()]

    def system(self, agent: AgentInfo) -> str:
        """The system prompt of an agent's requests, without what a session adds to it."""
        return "\n\n".join(part for part in (agent.prompt, self.instructions.text) if part)

    def selectable(self, name: str) -> AgentInfo:
        """The agent of this name, if a user may select it; else AgentNotFoundError."""
        selectable = {agent.name: agent for agent in self.agents.selectable()}
        if name not in selectable:
            raise AgentNotFoundError(
                f"There is no agent {name!r} to select; there are {', '.join(selectable)}",
                name=name,
                available=list(selectable),
            )
        return selectable[name]

    def agent_for(self, session: Core, wanted: str | None) -> AgentInfo:
        """Who answers: the agent asked for, the session's, or the default one (M5.4)."""
        if wanted is not None:
            return self.selectable(wanted)
        found = self.agents.get(session.agent) if session.agent else None
        return found or self.selectable(self.agents.default)

    def lost_agent(self, session: Core) -> str | None:
        """The name of the session's agent where it is not there any more (M4.3)."""
        name = session.unknown.get("agent")
        if name is None and self.agents.get(session.agent) is None:
            name = session.agent
        return name if isinstance(name, str) else None

    def lost_model(self, session: Core) -> str | None:
        """The session's model where nobody configures its provider any more (B63).

        Only where the configuration names another one: no session goes to whoever is there.
        """
        name = session.model
        if name is None or self.settings.model is None or self.is_broken:
            return None
        return None if name.partition("/")[0] in self.named_providers else name

    def model_of(self, session: Core) -> str | None:
        """The model that was chosen for a session, as long as its provider is configured."""
        return None if self.lost_model(session) else session.model

    def missing(self, session: Core) -> list[str]:
        """What a session names that is not there any more, and what holds instead."""
        agent, model = self.lost_agent(session), self.lost_model(session)
        told = [] if agent is None else [LOST_AGENT.format(agent, self.agents.default)]
        info = self.agents.get(session.agent) or self.agents.get(self.agents.default)
        instead = (info and info.model) or self.settings.model
        return told + ([] if model is None else [LOST_MODEL.format(model, instead)])

    def assign(
        self, session: Session, content: Content, agent: AgentInfo | None, model: str | None
    ) -> None:
        """Give a session what it does not have yet: this agent, the model asked for, a title.

        The title is the first line of the first prompt (M5.4, M4.5).
        """
        fields: dict[str, Any] = {}
        if session.title is None:
            prompts = (m for m in session.full() if m.role == "user")
            title = first_line([*islice(prompts, 1), Message("user", content)])
            fields |= {} if title is None else {"title": title}
        if session.agent is None and agent is not None:
            fields["agent"] = agent.name
        if session.model is None and model is not None:
            fields["model"] = model
        if fields:
            session.change(**fields)

    def measure(
        self,
        session: Core,
        facts: ModelFacts,
        draft: str = "",
        agent: AgentInfo | None = None,
    ) -> ContextSize:
        """The estimated size of the session's next request, by its own agent or by this one."""
        agent = agent or self.agent_for(session, None)
        tools = schemas_of(self.tools_of(agent)) if facts.takes_tools else []
        window = facts.context_window
        return request_size(session, self.system(agent), tools, draft=draft, context_window=window)

    def too_long(
        self, session: Core, facts: ModelFacts, agent: AgentInfo | None = None
    ) -> list[str]:
        """What of memory and instructions a request does not show whole, a sentence each."""
        agent = agent or self.agent_for(session, None)
        tools = schemas_of(self.tools_of(agent)) if facts.takes_tools else []
        return what_is_cut(session, self.system(agent), tools, facts.context_window)

    def budget(self, size: ContextSize) -> Budget | None:
        """What a request may take, where `size` is that of the next one as it is."""
        return budget_of(size, self.settings.session.budget_ratio)

    def tools_of(self, agent: AgentInfo) -> list[Tool]:
        """The tools that this agent is offered."""
        return offered_tools(self.every_tool(agent), self.rules_of(agent))

    def every_tool(self, agent: AgentInfo) -> list[Tool]:
        """All tools there are for this agent, also those that its rules deny; not to be run."""
        return self.tools_with(agent, _no_turn)

    def tools_with(self, agent: AgentInfo, begin: Begin) -> list[Tool]:
        """All tools, with the one that gives a task to another agent where there is one."""
        others = [a for a in self.agents.list() if a.mode != "primary" and a.name != agent.name]
        others = others if self.is_trusted else []  # only tools that read are offered there
        return [*self.tools, delegate_tool(others, begin)] if others else [*self.tools]

    def rules_of(self, agent: AgentInfo, session: Core | None = None) -> Rules:
        """The rules that hold for an agent, and in a session whose own agent is missing."""
        lost = None if session is None else self.lost_agent(session)
        return Rules(
            agent=agent.permission,
            agent_name=agent.name,
            config=self.settings.permission,
            default=PERMISSION_SETS[self.settings.permission_set],
            workspace=self.settings.workspace_permission,
            unread=self.settings.unread,
            lost=None if lost is None else PermissionDecision("ask", LOST.format(lost), "session"),
        )

    def models(
        self,
        manager: SessionManager,
        keep_out: KeepOut = lambda secrets: None,
        observer: Observer | None = None,
    ) -> Models:
        """The models of the configured providers; their keys stay out of the manager's files.

        `keep_out` hears the keys too; the observer hears what models are asked and answer.
        """
        settings, providers = self.settings, self.settings.providers
        keep_out(self._secrets())
        if observer is not None:
            providers = {
                name: msgspec.structs.replace(provider, observer=observer)
                for name, provider in providers.items()
            }
        models = Models(providers, settings.key_commands, cache_directory(), settings.doubts)

        def keep_key_out(key: str) -> None:
            if settings.session.redact:
                manager.secrets = [*manager.secrets, key]
            keep_out([key])

        models.keys.on_key = keep_key_out
        return models

    def manager(self, directory: Path, on_notice: Callable[[Notice], None]) -> SessionManager:
        """The keeper of the sessions in this directory, or where `store` says."""
        if self.settings.store.kind == "files":
            cache = cache_directory()
            manager = SessionManager(directory, on_notice=on_notice, cache_directory=cache)
        else:
            manager = _shared_manager(self.settings.store, directory, on_notice)
        self.apply_to(manager)
        return manager

    def apply_to(self, manager: SessionManager) -> None:
        """Let the keeper of sessions, and its current session, follow these settings."""
        session = self.settings.session
        manager.agents = _Selectable(self.agents)
        manager.default_max_history = session.max_history
        manager.ttl_seconds = session.ttl_seconds
        manager.fsync = session.fsync
        manager.autosave = session.autosave
        manager.settings = self.session_settings()
        # What was a key before stays one: it may still be in a session.
        manager.secrets = [*manager.secrets, *self._secrets()] if session.redact else []
        if manager.current is not None:
            manager.current.parent_settings = manager.settings

    def session_settings(self) -> dict[str, Any]:
        """The parent of every session's own settings, with the keys of the library (U8)."""
        session, instruct = self.settings.session, self.settings.session.memo.instruct
        return {
            "session.mode": session.mode,
            "session.limit": {
                name: limit
                for name in ("chars", "messages")
                if (limit := getattr(session.limit, name)) is not None
            },
            "session.resize.every_n_turns": session.resize.every_n_turns,
            "session.resize.max_messages_text_length": session.resize.max_messages_text_length,
            "session.resize.max_keep_messages_count": session.resize.max_keep_messages_count,
            "session.memo.enabled": session.memo.enabled,
            **({} if instruct is None else {"session.memo.instruct": instruct}),
            "session.summary.enabled": session.summary.enabled,
            "session.summary.message_buffer_limit": session.summary.message_buffer_limit,
            "session.summary.message_buffer_min": session.summary.message_buffer_min,
            "session.summary.model": session.summary.model,
        }

    def _secrets(self) -> list[str]:
        """The keys to keep out of files; a dummy key that is part of a name is no secret."""
        providers = self.settings.providers
        names = [*providers, self.settings.model or "", *self.agents.names(hidden=True)]
        names += [name for provider in providers.values() for name in provider.models]
        names += [provider.default_model or "" for provider in providers.values()]
        return [key for key in self.settings.secrets() if not any(key in name for name in names)]


class _Selectable(msgspec.Struct, frozen=True):
    """The agents that a session may have: those a user may select, whatever its file says."""

    agents: AgentRegistry

    def get(self, name: str) -> AgentInfo | None:
        return next((agent for agent in self.agents.selectable() if agent.name == name), None)


async def _no_turn(info: AgentInfo, task: str, run: ToolRun) -> Turn:
    raise AssertionError("a tool that is only shown is not run")


def _shared_manager(
    store: StoreSettings, directory: Path, on_notice: Callable[[Notice], None]
) -> SessionManager:
    """The keeper of the sessions in SQLite or on a Redis server."""
    from tiro.stores.shared import manager_of, place_of  # who has files never pays for it

    place = place_of(store.kind, store.path, store.url, directory)
    return manager_of(place, on_notice, cache_directory())
