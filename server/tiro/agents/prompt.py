"""The system prompt, the request around it, and the size of both.

The beginning of the prompt is stable (U5, N5.3): nothing in it depends on the clock, so that prompt
caches hold.
"""

import json
from collections.abc import Sequence
from typing import Any

from tiro.agents.agent_info import AgentInfo
from tiro.agents.options import output_limit
from tiro.models.model import Model, ModelRequest, ToolSchema
from tiro.session.core import Core
from tiro.session.messages import Message
from tiro.session.meter import ContextSize
from tiro.session.provider_view import provider_view, with_front
from tiro.session.shown import Shown, free_in, memo_text, room_in, shown, summary_text
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
    texts = _texts(session, prompt, tools, context_window)
    parts = [texts[name] for name in ("system", "memo", "summary") if texts[name]]
    return "\n\n".join(parts)


def what_is_cut(
    session: Core, prompt: str, tools: Sequence[ToolSchema], context_window: int | None
) -> list[str]:
    """What of instructions, memo and summary the next request does not show whole, in sentences."""
    return _shown(session, prompt, _tools_text(tools), context_window).cut


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
    return ModelRequest(
        model=model.name.partition("/")[2] or model.name,
        messages=provider_view(session.oldest_first(), session.archive_rows, thinking=True),
        system=session_prompt(session, prompt, tools, model.facts.context_window),
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
    return session.meter.measure(
        _sent(session),
        **_texts(session, prompt, tools, context_window, draft),
        draft=draft,
        context_window=context_window,
    )


def request_weights(
    session: Core, prompt: str, tools: Sequence[ToolSchema], context_window: int | None = None
) -> Weights:
    """What the next request weighs, for the calibration of the meter."""
    texts = _texts(session, prompt, tools, context_window)
    return session.meter.weights(_sent(session), *texts.values())


def _sent(session: Core) -> list[Message]:
    return with_front(session.oldest_first(), session.archive_rows)


def _texts(
    session: Core,
    prompt: str,
    tools: Sequence[ToolSchema],
    context_window: int | None,
    draft: str = "",
) -> dict[str, str]:
    """The texts of a request besides its messages, by the names of the breakdown."""
    offered = _tools_text(tools)
    found = _shown(session, prompt, offered, context_window, draft)
    return {
        "system": "\n\n".join(part for part in (prompt, found.instructions) if part),
        "tools": offered,
        "memo": found.memo,
        "summary": found.summary,
    }


def _shown(
    session: Core, prompt: str, tools: str, context_window: int | None, draft: str = ""
) -> Shown:
    taken = session.meter.text(prompt) + session.meter.text(tools)
    room = None if context_window is None else room_in(context_window, taken)
    return shown(session, room, free_in(session, context_window, taken, draft))


def _tools_text(tools: Sequence[ToolSchema]) -> str:
    return "".join(tool.name + tool.description + json.dumps(tool.input_schema) for tool in tools)
