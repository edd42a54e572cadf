"""The system prompt, the request around it, and the size of both.

The beginning of the prompt is stable (U5, N5.3): nothing in it depends on the clock, so that prompt
caches hold.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tiro.agents.agent_info import AgentInfo
from tiro.agents.options import output_limit
from tiro.models.model import Model, ModelRequest, ToolSchema
from tiro.session.core import Core
from tiro.session.memo import BOOKKEEPING
from tiro.session.messages import Message
from tiro.session.meter import ContextSize
from tiro.session.provider_view import SYSTEM_ROLES, provider_view, standing_instructions
from tiro.session.tokens import Weights

MEMO_HEADING = "## Session Memo"
SUMMARY_HEADING = "## Conversation Summary"
SUMMARY_SENTENCE = (
    "This sums up earlier conversation that is no longer part of the message history."
)


def build_system_prompt(prompt: str, memo: Any = None, summary: str | None = None) -> str:
    """The prompt, then the memo under its heading, then the summary at the very end (U5, N5).

    Without memo and summary it is the prompt, byte for byte (N5.2).
    """
    parts = [part for part in (prompt, memo_text(memo), summary_text(summary)) if part]
    return "\n\n".join(parts) if len(parts) > 1 or not prompt else prompt


def memo_text(memo: Any) -> str:
    """The memo as its part of the system prompt; empty when there is nothing to show."""
    shown = memo
    if isinstance(memo, Mapping):
        shown = {key: value for key, value in memo.items() if key != BOOKKEEPING}
    if not shown:
        return ""
    return f"{MEMO_HEADING}\n\n{_as_json(shown)}"


def summary_text(summary: str | None) -> str:
    """The summary as its part of the system prompt; empty when there is none."""
    return f"{SUMMARY_HEADING}\n\n{SUMMARY_SENTENCE}\n\n{summary}" if summary else ""


def session_prompt(session: Core, prompt: str) -> str:
    """The whole system prompt of the next request: prompt, standing instructions, memo, summary."""
    return build_system_prompt(_with_instructions(session, prompt), session.memo, session.summary)


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
        system=session_prompt(session, prompt),
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
        **_texts(session, prompt, tools),
        draft=draft,
        context_window=context_window,
    )


def request_weights(session: Core, prompt: str, tools: Sequence[ToolSchema]) -> Weights:
    """What the next request weighs, for the calibration of the meter."""
    return session.meter.weights(_sent(session), *_texts(session, prompt, tools).values())


def _sent(session: Core) -> Iterator[Message]:
    return (m for m in reversed(session.newest_first) if m.role not in SYSTEM_ROLES)


def _texts(session: Core, prompt: str, tools: Sequence[ToolSchema]) -> dict[str, str]:
    """The texts of a request besides its messages, by the names of the breakdown."""
    shown = (tool.name + tool.description + json.dumps(tool.input_schema) for tool in tools)
    return {
        "system": _with_instructions(session, prompt),
        "tools": "".join(shown),
        "memo": memo_text(session.memo),
        "summary": summary_text(session.summary),
    }


def _with_instructions(session: Core, prompt: str) -> str:
    """The prompt and the system messages of the full history, in order (U3.9)."""
    if not session.has_instructions:
        return prompt
    full = (*session.archive_rows, *reversed(session.newest_first))
    texts = standing_instructions(m for m in full if m.role in SYSTEM_ROLES)
    return "\n\n".join(part for part in (prompt, *texts) if part) if texts else prompt


def _as_json(memo: Any) -> str:
    """The memo as JSON, the same for equal memos; keys that cannot be sorted keep their order."""
    try:
        return json.dumps(memo, ensure_ascii=False, indent=2, default=str, sort_keys=True)
    except TypeError:
        return json.dumps(memo, ensure_ascii=False, indent=2, default=str, skipkeys=True)
