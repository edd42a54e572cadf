"""The system prompt, the request around it, and the size of both.

The beginning of the prompt is stable (U5, N5.3): nothing in it depends on the clock, so that prompt
caches hold.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from tiro.agents.agent_info import AgentInfo
from tiro.agents.options import output_limit
from tiro.models.model import Model, ModelRequest, ToolSchema
from tiro.session.core import Core
from tiro.session.meter import ContextSize
from tiro.session.provider_view import provider_view, with_front
from tiro.session.results import Rows, fitting_rows
from tiro.session.shown import free_in, memo_text, room_in, shown, staying, summary_text
from tiro.session.tokens import Weights


def build_system_prompt(prompt: str, memo: Any = None, summary: str | None = None) -> str:
    """The prompt, then the memo under its heading, then the summary at the very end (U5, N5).

    Without memo and summary it is the prompt, byte for byte (N5.2).
    """
    parts = [part for part in (prompt, memo_text(memo), summary_text(summary)) if part]
    return "\n\n".join(parts) if len(parts) > 1 or not prompt else prompt


def session_prompt(
    session: Core,
    prompt: str,
    tools: Sequence[ToolSchema] = (),
    context_window: int | None = None,
) -> str:
    """The whole system prompt of the next request: prompt, standing instructions, memo, summary.

    The last three take their shares of the context window at most, the last two only what what
    must be sent besides leaves them.
    """
    return _parts(session, prompt, tools, context_window).prompt()


def what_is_cut(
    session: Core, prompt: str, tools: Sequence[ToolSchema], context_window: int | None
) -> list[str]:
    """What of instructions, memo and summary the next request does not show whole, in sentences."""
    return _parts(session, prompt, tools, context_window).cut


def rows_sent(
    session: Core, prompt: str, tools: Sequence[ToolSchema], context_window: int | None
) -> Rows:
    """What the next request is made of: results are cut where they do not fit."""
    return _parts(session, prompt, tools, context_window).rows


def build_request(
    session: Core,
    model: Model,
    agent: AgentInfo,
    prompt: str,
    tools: Sequence[ToolSchema] = (),
    *,
    max_output_tokens: int | None = None,
) -> ModelRequest:
    """The next request exactly as the model gets it; changes nothing."""
    parts = _parts(session, prompt, tools, model.facts.context_window)
    return ModelRequest(
        model=model.name.partition("/")[2] or model.name,
        messages=provider_view(*parts.rows, thinking=True),
        system=parts.prompt(),
        tools=list(tools),
        max_output_tokens=output_limit(agent.options) or max_output_tokens,
        temperature=agent.temperature,
        top_p=agent.top_p,
        options=agent.options,
    )


def request_size(
    session: Core,
    prompt: str,
    tools: Sequence[ToolSchema] = (),
    *,
    draft: str = "",
    context_window: int | None = None,
) -> ContextSize:
    """The estimated size of the next request, with its parts counted apart."""
    parts = _parts(session, prompt, tools, context_window, draft)
    return session.meter.measure(
        with_front(*parts.rows),
        **parts.texts,
        draft=draft,
        context_window=context_window,
    )


def request_weights(
    session: Core, prompt: str, tools: Sequence[ToolSchema], context_window: int | None = None
) -> Weights:
    """What the next request weighs, for the calibration of the meter."""
    parts = _parts(session, prompt, tools, context_window)
    return session.meter.weights(with_front(*parts.rows), *parts.texts.values())


class _Parts(NamedTuple):
    """What a request is made of."""

    texts: dict[str, str]
    """All besides its messages, by the names of the breakdown."""
    rows: Rows
    cut: list[str]
    """What of the texts is not shown whole, a sentence each."""

    def prompt(self) -> str:
        """The whole system prompt."""
        names = ("system", "memo", "summary")
        return "\n\n".join(self.texts[name] for name in names if self.texts[name])


def _parts(
    session: Core,
    prompt: str,
    tools: Sequence[ToolSchema],
    context_window: int | None,
    draft: str = "",
) -> _Parts:
    offered = _tools_text(tools)
    taken = session.meter.text(prompt) + session.meter.text(offered)
    room = None if context_window is None else room_in(context_window, taken)
    free = free_in(session, context_window, taken, draft)
    found = shown(session, room, free)
    texts = {
        "system": "\n\n".join(part for part in (prompt, found.instructions) if part),
        "tools": offered,
        "memo": found.memo,
        "summary": found.summary,
    }
    instructed = None if free is None else free - session.meter.text(found.instructions)
    return _Parts(texts, fitting_rows(session, staying(session, draft), instructed), found.cut)


def _tools_text(tools: Sequence[ToolSchema]) -> str:
    return "".join(tool.name + tool.description + json.dumps(tool.input_schema) for tool in tools)
