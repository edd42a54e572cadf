"""The contract between a turn and whoever answers it: one request in, a stream of deltas out.

Law of `Model.stream`: it yields any number of deltas and exactly one `Finished`, always last; a
stream that breaks raises `ModelError` instead. Closing the iterator, or cancelling who reads it,
closes the connection at once.
"""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Struct
from msgspec.structs import replace

from tiro.models.observer import Observer
from tiro.session.messages import AttachmentBlock, Message, StopReason, Usage

MAX_COUNT = 10**12
"""More tokens than this no provider counts; beyond it a number means nothing."""

LIMIT_PARAMETERS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""What providers call the limit of an answer; a request has a field for it."""
OWN_PARAMETERS = frozenset(
    {"model", "messages", "system", "tools", "functions", "stream", "stream_options"}
    | {"n", "best_of", "response_format", *LIMIT_PARAMETERS}
)
"""What Tiro itself says in a request, or reads in one way only: no option changes it."""

ProviderApi = Literal["openai", "anthropic", "local"]


class ToolSchema(Struct, frozen=True):
    """A tool as it is offered to the model."""

    name: str
    description: str
    input_schema: dict[str, Any]


class ModelRequest(Struct, frozen=True, kw_only=True):
    """What one step asks of a model."""

    model: str
    """The provider's own name of it, without `provider/`."""
    messages: list[Message]
    """A provider view: oldest first, repaired, blocks only."""
    system: str = ""
    tools: list[ToolSchema] = []
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    options: Mapping[str, Any] = {}
    """More parameters, by the provider's own names; see `OWN_PARAMETERS` for what is none."""
    response_schema: dict[str, Any] | None = None
    """The JSON Schema of the answer; a provider that knows none is asked in words only."""


class TextDelta(Struct, frozen=True, tag="text"):
    """A piece of the answer."""

    text: str


class ThinkingDelta(Struct, frozen=True, tag="thinking"):
    """A piece of the model's reasoning; the signature comes with the last piece, if at all.

    An empty signature ends a piece of reasoning that has none.
    """

    text: str
    signature: str | None = None


class ToolUseDelta(Struct, frozen=True, tag="tool_use_delta", kw_only=True):
    """A piece of a tool use that is still being written; only for display."""

    index: int
    """Which of the answer's tool uses it belongs to, from 0."""
    name: str
    """What is known of the tool's name so far."""
    input_json: str
    """The new piece of the input's JSON text."""


class ToolUseDone(Struct, frozen=True, tag="tool_use", kw_only=True):
    """A tool use that is complete."""

    id: str
    name: str
    input: dict[str, Any] | None
    """None when the arguments cannot be read as a JSON object: such a tool use must not run."""
    raw: str
    """The arguments as they came."""


class BlockDone(Struct, frozen=True, tag="block"):
    """A block that is kept as it came, such as reasoning that only its provider can read."""

    block: dict[str, Any]


class RetryWait(Struct, frozen=True, tag="retry"):
    """The provider could not answer; the request is repeated after this wait."""

    attempt: int
    wait_seconds: float
    reason: str


class Progress(Struct, frozen=True, tag="progress"):
    """What goes on before the first piece of an answer, such as the loading of a local model."""

    message: str
    fraction: float | None = None


class Finished(Struct, frozen=True, tag="finished"):
    """The answer is complete."""

    stop_reason: StopReason
    usage: Usage | None = None
    """None when the provider reported nothing."""


Delta = (
    TextDelta
    | ThinkingDelta
    | ToolUseDelta
    | ToolUseDone
    | BlockDone
    | RetryWait
    | Progress
    | Finished
)


Dollars = Annotated[float, Meta(ge=0, le=1_000_000)]


class Price(Struct, frozen=True):
    """US dollars for a million tokens."""

    input: Dollars = 0.0
    output: Dollars = 0.0
    cache_read: Dollars | None = None
    """None: as input."""

    def cost_usd(self, usage: Usage) -> float:
        """What this usage costs; cache writes count as input."""
        cache_read = self.input if self.cache_read is None else self.cache_read
        paid_as_input = usage.input_tokens + usage.cache_write_tokens
        total = paid_as_input * self.input + usage.output_tokens * self.output
        return (total + usage.cache_read_tokens * cache_read) / 1_000_000


MIN_WINDOW = 512
"""In tokens; in less there is no room for a prompt."""


class ModelFacts(Struct, frozen=True):
    """What is known about a model; None is unknown."""

    context_window: Annotated[int, Meta(ge=MIN_WINDOW, le=1_000_000_000)] | None = None
    max_output_tokens: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None
    price_per_million: Price | None = None
    takes_tools: bool = True
    """Whether it gets to see the tools of a request; the chat template of some leaves them out."""


class ProviderSettings(Struct, frozen=True, kw_only=True):
    """How a provider is reached. Its repr shows no key, no header value and no query."""

    name: str
    api: ProviderApi
    base_url: str = ""
    api_key: str | None = None
    api_key_env: str | None = None
    """The environment variable that should hold the key, if one is named."""
    headers: dict[str, str] = {}
    proxy: str | None = None
    timeout_seconds: float | None = None
    """The longest silence of the provider that is waited for; None: the default of the API."""
    default_model: str | None = None
    models: dict[str, ModelFacts] = {}
    observer: Observer | None = None
    """Hears what is sent and what comes back."""

    def __repr__(self) -> str:
        """Name, API and bare address; everything that may hold a secret stays out."""
        key = "set" if self.api_key else "unset"
        url = bare_url(self.base_url)
        return (
            f"ProviderSettings(name={self.name!r}, api={self.api!r}, base_url={url!r}, key {key})"
        )


class Model(Protocol):
    """A model that can be asked."""

    name: str
    """`provider/name`."""
    facts: ModelFacts

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Ask once and yield the answer as it comes, by the law at the top of this file."""
        ...

    def wire_request(self, request: ModelRequest) -> dict[str, Any]:
        """The JSON body that `stream(request)` would send now; sends and starts nothing."""
        ...

    async def close(self) -> None:
        """Give back connections and processes; may be called any number of times."""
        ...


def bare_url(url: str) -> str:
    """The address without user, password, query and fragment, which may hold secrets."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "", url
    address = re.split(r"[?#]", rest, maxsplit=1)[0]
    return f"{scheme}{separator}{address.rpartition('@')[2]}"


def attachment_text(block: AttachmentBlock) -> str:
    """An attachment as the model reads it: what it is, then its text between fences."""
    where = f" {block.path}" if block.path else ""
    fence = "```"
    while fence in block.text:
        fence += "`"
    return f"[{block.kind}{where}{_line_span(block.range)}]\n{fence}\n{block.text}\n{fence}"


def _line_span(span: dict[str, Any] | None) -> str:
    """The lines of a range as people count them, from 1; nothing for a range that is none."""
    match span:
        case {"start": {"line": int(first)}, "end": {"line": int(last)}}:
            return f", lines {first + 1}-{last + 1}"
        case _:
            return ""


LOCAL_CONTEXT_WINDOW = 8192
LOCAL_FACTS = ModelFacts(LOCAL_CONTEXT_WINDOW, max_output_tokens=1024)
"""What an embedded model is started with; it could take more, at the cost of memory."""

_WITHOUT_TOOLS = ("smollm2",)

_KNOWN_FACTS: tuple[tuple[str, ModelFacts], ...] = (
    ("gpt-5", ModelFacts(400_000, 128_000)),
    ("gpt-4.1", ModelFacts(1_047_576, 32_768)),
    ("gpt-4o", ModelFacts(128_000, 16_384)),
    ("o1", ModelFacts(200_000, 100_000)),
    ("o3", ModelFacts(200_000, 100_000)),
    ("o4-mini", ModelFacts(200_000, 100_000)),
    ("claude-3-7", ModelFacts(200_000, 64_000)),
    ("claude-3-5", ModelFacts(200_000, 8_192)),
    ("claude-3", ModelFacts(200_000, 4_096)),
    ("claude-opus-4-5", ModelFacts(200_000, 64_000)),
    ("claude-opus-4-6", ModelFacts(1_000_000, 128_000)),
    ("claude-opus-4-1", ModelFacts(200_000, 32_000)),
    ("claude-opus-4-2", ModelFacts(200_000, 32_000)),
    ("claude-sonnet-4-5", ModelFacts(200_000, 64_000)),
    ("claude-sonnet-4-2", ModelFacts(200_000, 64_000)),
    ("claude-haiku-4-5", ModelFacts(200_000, 64_000)),
    ("claude", ModelFacts(200_000, None)),
    ("gemini-2", ModelFacts(1_048_576, None)),
    ("deepseek", ModelFacts(128_000, None)),
)
"""Beginnings of names whose facts are public; the first that fits counts. Prices change."""


def known_facts(provider: ProviderSettings, name: str) -> ModelFacts:
    """The facts a user configured, else those that are public, else none."""
    if name in provider.models:
        return provider.models[name]
    if provider.api == "local":
        return replace(LOCAL_FACTS, takes_tools=not name.startswith(_WITHOUT_TOOLS))
    if _is_loopback(provider.base_url):
        return ModelFacts()
    last_part = name.rpartition("/")[2]
    return next((f for start, f in _KNOWN_FACTS if last_part.startswith(start)), ModelFacts())


def _is_loopback(url: str) -> bool:
    """A server on one's own machine chooses the window itself, whatever its model could do."""
    return bool(re.match(r"https?://(localhost|127\.|\[::1\])", url))
