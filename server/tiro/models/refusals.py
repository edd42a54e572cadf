"""What servers say when they refuse, in each of the ways they say it, read into our errors."""

import re
from collections.abc import Sequence
from typing import Any

from tiro.errors import ContextOverflowError, ModelError
from tiro.models import failures
from tiro.models.model import ProviderSettings
from tiro.session.json_text import decode, encode

_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error"}
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Anthropic's names for them."""
_NO_CREDIT = re.compile(r"insufficient_quota|credit balance is too low", re.IGNORECASE)
"""OpenAI says so with the status of a rate limit, Anthropic with that of a bad request."""
_NUMBER = r"(\d[\d,_]*)"
_OVERFLOW_SENTENCES = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"request \((?P<tokens>{_NUMBER}) tokens\) exceeds the available context size "
        rf"\((?P<window>{_NUMBER}) tokens\)",
        rf"maximum context length (?:is|of) (?P<window>{_NUMBER}) tokens.*?"
        r"(?:resulted in|requested|request has|contains?(?: at least)?) (?:about )?"
        rf"(?P<tokens>{_NUMBER})",
        rf"maximum context length (?:is|of) (?P<window>{_NUMBER})",
        rf"prompt is too long: (?P<tokens>{_NUMBER}) tokens > (?P<window>{_NUMBER})",
        rf"input token count \((?P<tokens>{_NUMBER})\) exceeds the maximum number of tokens "
        rf"allowed \((?P<window>{_NUMBER})\)",
        rf"prompt contains (?P<tokens>{_NUMBER}) tokens.*?too large for model with "
        rf"(?P<window>{_NUMBER})",
        rf"exceed context limit: (?P<tokens>{_NUMBER}) \+ {_NUMBER} > (?P<window>{_NUMBER})",
        r"context size has been exceeded",
        r"(?:prompt|input) is too long",
        r"exceeds? the (?:model'?s )?(?:available |maximum )?context (?:window|size|length)",
    )
)
_COMPLAINTS = {
    # Ollama, OpenRouter, llama.cpp, vLLM
    "tools": re.compile(
        r"(?:not|n't|no endpoints found that) support (?:tools|tool use|function)"
        r"|tools param requires --jinja|requires --enable-auto-tool-choice",
        re.IGNORECASE,
    ),
    # OpenRouter, llama.cpp and OpenAI, vLLM, DeepSeek, Ollama
    "images": re.compile(
        r"(?:not|n't|no endpoints found that) support (?:image|vision)"
        r"|image(?:_url)?s?(?: input| content)? (?:is|are) (?:not|only) support"
        r"|not a multimodal model|at most 0 image|unknown variant `?image"
        r"|missing data required for image",
        re.IGNORECASE,
    ),
    # DeepSeek, Groq and Fireworks, Azure, older llama.cpp
    "response_format": re.compile(
        r"response[ _]format|json[ _]schema|structured outputs?\b|failed to parse grammar",
        re.IGNORECASE,
    ),
    # Anthropic, of a block that is not as it came
    "thinking": re.compile(r"\b(?:redacted_)?thinking\b", re.IGNORECASE),
}
_REASONING_MISSING = re.compile(
    r"missing.{0,40}reasoning_content|reasoning_content.{0,60}(?:missing|must|required)",
    re.IGNORECASE,
)
_REFUSING_STATUSES = (400, 404, 415, 422, 500)
_MARKS = {
    "images": b'"type":"image',
    "thinking": b'thinking"',
    "cache_control": b'"cache_control":',
}
"""What a request holds that has such a part in its messages."""
_NOT_SUPPORTED = re.compile(r"not support(ed)?\b", re.IGNORECASE)
_REFUSED = re.compile(
    r"unsupported|support|unknown|unrecognized|unexpected|extra|not permitted|not allowed"
    r"|deprecated|cannot both",
    re.IGNORECASE,
)


def from_wire_refusal(
    provider: ProviderSettings,
    status: int,
    body: bytes,
    retry_after_seconds: float | None = None,
    meaning: failures.Meaning | None = None,
) -> ModelError | ContextOverflowError:
    """The error for an HTTP answer that is none; `meaning` where it is not that of the status."""
    text = body.decode("utf-8", "replace")
    fault = _fault_in(body)
    if overflow := _overflow(provider, fault, text):
        return overflow
    meaning = meaning or failures.meaning_of_status(status, provider)
    if _NO_CREDIT.search(f"{_code(fault)} {_words(fault)}"):
        meaning = failures.NO_CREDIT
    words = _words(fault)
    if meaning.is_retryable and _NOT_SUPPORTED.search(words):
        meaning = failures.Meaning("does not support what the request holds")
    if not words and status == 404 and not provider.base_url.rstrip("/").endswith("/v1"):
        words = "most base_urls end in /v1"
    return failures.refusal(
        provider,
        meaning,
        words=words,
        status=status,
        body=text,
        retry_after_seconds=retry_after_seconds,
    )


def from_wire_fault(provider: ProviderSettings, fault: Any) -> ModelError | ContextOverflowError:
    """The error for one that comes inside an answer that had begun well."""
    text = encode(fault).decode()
    if overflow := _overflow(provider, fault, text):
        return overflow
    status = _status(fault)
    meaning = failures.Meaning("failed in the middle of its answer", is_retryable=True)
    told = None if status is None else failures.meaning_of_status(status, provider)
    if told is not None and not told.is_retryable:
        meaning = told
    return failures.refusal(provider, meaning, words=_words(fault), status=status, body=text)


def unreadable(provider: ProviderSettings, body: bytes) -> ModelError:
    """The error for an answer that is not in this format at all."""
    meaning = failures.Meaning("sent an answer that cannot be read, check its api and base_url")
    return failures.refusal(provider, meaning, body=body.decode("utf-8", "replace"))


def web_page(provider: ProviderSettings, body: bytes) -> ModelError:
    """The error for HTML where an API should be: a login page, a proxy, a wrong address."""
    meaning = failures.Meaning("answered with a web page, check its base_url and the proxy")
    return failures.refusal(provider, meaning, body=body.decode("utf-8", "replace"))


def cut_off(provider: ProviderSettings) -> ModelError:
    """The error for a stream that ends without any mark of its end."""
    meaning = failures.Meaning("broke off in the middle of its answer", is_retryable=True)
    return failures.refusal(provider, meaning)


def refused_part(error: Exception, sent: dict[str, Any], optional: Sequence[str]) -> str | None:
    """The optional part of the request that the server does not take, if that is its complaint.

    A part is a parameter, or `tools`, `images` or `thinking`, wherever in the request they stand.
    """
    if not isinstance(error, ModelError) or error.data["status"] not in _REFUSING_STATUSES:
        return None
    body = error.data["body"] or ""
    for part, complaint in _COMPLAINTS.items():
        if part in optional and complaint.search(body) and _holds(sent, part):
            return part
    if error.data["status"] not in (400, 422) or not _REFUSED.search(body):
        return None
    named = (name for name in optional if name not in _COMPLAINTS and _holds(sent, name))
    return next((name for name in named if re.search(rf"\b{name}\b", body)), None)


def _holds(sent: dict[str, Any], part: str) -> bool:
    return part in sent or (part in _MARKS and _MARKS[part] in encode(sent.get("messages")))


def demands_reasoning(error: Exception) -> bool:
    """Whether the server misses what the model thought before its tool uses: DeepSeek, Kimi."""
    if not isinstance(error, ModelError) or error.data["status"] not in (400, 422):
        return False
    return _REASONING_MISSING.search(error.data["body"] or "") is not None


def _fault_in(body: bytes) -> Any:
    """The part of a refusal that tells the fault; servers nest it in several ways."""
    try:
        value = decode(body)
    except ValueError:
        text = body.decode("utf-8-sig", "replace").strip()
        return None if text.startswith("<") else text
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        return value.get("error") or value.get("detail") or value
    return value


def _overflow(provider: ProviderSettings, fault: Any, text: str) -> ContextOverflowError | None:
    """The error of a request that is too long, with the numbers that the server tells."""
    found = next(filter(None, (pattern.search(text) for pattern in _OVERFLOW_SENTENCES)), None)
    if found is None and not {str(_code(fault)), str(_type(fault))} & _OVERFLOW_CODES:
        return None
    told = found.groupdict() if found else {}
    numbers = fault if isinstance(fault, dict) else {}
    tokens = _int(numbers.get("n_prompt_tokens")) or _int(told.get("tokens"))
    window = _int(numbers.get("n_ctx")) or _int(told.get("window"))
    size = f" ({tokens:,} tokens, {window:,} fit)" if tokens and window else ""
    return ContextOverflowError(
        f"The request does not fit the context window of the model at {provider.name!r}{size}, "
        "shorten the session or the prompt",
        provider=provider.name,
        tokens=tokens,
        context_window=window,
    )


def _words(fault: Any) -> str:
    """The provider's own sentence."""
    if isinstance(fault, str):
        return fault
    if isinstance(fault, list):
        return encode(fault).decode()
    if not isinstance(fault, dict):
        return ""
    message = fault.get("message") or fault.get("detail") or fault.get("error") or ""
    words = message if isinstance(message, str) else encode(message).decode()
    metadata = fault.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    # OpenRouter's own sentence only says that it passes on what another one said.
    return f"{words}: {_words(_fault_in(raw.encode()))}" if isinstance(raw, str) else words


def _code(fault: Any) -> Any:
    return fault.get("code") if isinstance(fault, dict) else None


def _type(fault: Any) -> Any:
    return fault.get("type") if isinstance(fault, dict) else None


def _status(fault: Any) -> int | None:
    """The HTTP status that a fault inside a stream names, or that its type stands for."""
    code = _int(_code(fault))
    if code is not None and 400 <= code < 600:
        return code
    return _STATUS_OF_TYPE.get(str(_type(fault)))


def _int(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and (digits := re.sub(r"[,_]", "", value)).isdecimal():
        return int(digits)
    return None
