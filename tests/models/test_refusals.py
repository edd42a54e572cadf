"""Error bodies as real servers of OpenAI's format send them, refused whole or in mid-stream."""

import asyncio
import json
from typing import Any

import pytest

from tests.models.test_openai import failure
from tests.models.wire import (
    SECRET,
    Wire,
    answer,
    ask,
    broken,
    event,
    joined,
    model,
    only,
    piece,
    refuses,
    request,
    says,
    streams,
    text,
)
from tiro.errors import ContextOverflowError, ModelError
from tiro.models.model import RetryWait, ThinkingDelta
from tiro.session.messages import Message

OLLAMA_404 = {
    "error": {"message": "model 'm1' not found", "type": "not_found_error", "param": None,
              "code": None}
}  # fmt: skip
OPENROUTER_RAW = {
    "error": {
        "message": "Provider returned error",
        "code": 400,
        "metadata": {
            "raw": '{"error":{"message":"top_k is out of range"}}',
            "provider_name": "Novita",
        },
    },
    "user_id": "user_1",
}
OPENROUTER_CREDIT = {
    "error": {"message": "This request requires more credits, or fewer max_tokens.", "code": 402}
}
VLLM_OLD = {"object": "error", "message": "The model `m1` does not exist.",
            "type": "NotFoundError", "param": None, "code": 404}  # fmt: skip
VLLM_DETAIL = {"detail": [{"loc": ["body", "messages"], "msg": "field required"}]}
LLAMACPP_KEY = {"error": {"message": "Invalid API Key", "type": "authentication_error",
                          "code": 401}}  # fmt: skip

REFUSED: dict[str, tuple[int, Any, str, str]] = {
    "ollama, unknown model": (404, OLLAMA_404, "does not know this model", "'m1' not found"),
    "ollama, a bare string": (400, {"error": "invalid format"}, "refused", "invalid format"),
    "llama.cpp, key": (401, LLAMACPP_KEY, "refused the API key", "Invalid API Key"),
    "vllm, old form": (404, VLLM_OLD, "does not know this model", "does not exist"),
    "vllm, validation": (422, VLLM_DETAIL, "refused", "field required"),
    "openrouter, another's words": (400, OPENROUTER_RAW, "refused", "top_k is out of range"),
    "openrouter, credit": (402, OPENROUTER_CREDIT, "no credit left", "more credits"),
    "a proxy, plain text": (403, b"Forbidden by policy", "does not allow", "by policy"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_told_in_the_provider_s_own_words_and_not_repeated(name: str) -> None:
    status, body, sentence, words = REFUSED[name]
    error = failure(refuses(status, body))
    assert isinstance(error, ModelError)
    assert sentence in str(error)
    assert words in str(error)
    assert (error.data["status"], error.data["retryable"]) == (status, False)
    assert "{" not in str(error).replace("[{", "")


BUSY: dict[str, tuple[int, Any, str]] = {
    "llama.cpp, loading": (
        503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}},
        "Loading model",
    ),
    "ollama, queue": (
        503, {"error": "server busy, please try again.  maximum pending requests exceeded"},
        "server busy",
    ),
    "openrouter, limited": (
        429,
        {"error": {"message": "Provider returned error", "code": 429, "metadata": {
            "raw": "m1 is temporarily rate-limited upstream", "provider_name": "Chutes"}}},
        "rate-limited upstream",
    ),
    "vllm, dead engine": (
        500, {"error": {"message": "EngineCore encountered an issue", "code": 500}}, "EngineCore",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUSY)
def test_a_busy_server_is_asked_again_and_its_words_are_told(name: str) -> None:
    status, body, words = BUSY[name]
    deltas = answer(refuses(status, body), says("after all"))
    (wait,) = only(deltas, RetryWait)
    assert isinstance(wait, RetryWait)
    assert words in wait.reason
    assert joined(deltas) == "after all"


IN_STREAM: dict[str, tuple[Any, int | None, str]] = {
    "ollama": ({"error": "an error was encountered while running the model"}, None, "running"),
    "ollama, object": (
        {"error": {"message": "llama runner process has terminated", "type": "api_error"}},
        500, "terminated",
    ),
    "llama.cpp": (
        {"error": {"code": 500, "message": "Context shift is off", "type": "server_error"}},
        500, "Context shift",
    ),
    "vllm, old form": (
        {"object": "error", "message": "engine died", "type": "InternalServerError", "code": 500},
        500, "engine died",
    ),
    "openrouter": (
        {"id": "gen-1", "error": {"code": 502, "message": "Provider disconnected"},
         "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]},
        502, "disconnected",
    ),
    "openrouter, a reason only": (
        {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]},
        None, "no reason",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_STREAM)
def test_b33_an_error_in_mid_stream_is_told_and_never_text(name: str) -> None:
    fault, status, words = IN_STREAM[name]
    deltas, error = broken(model(Wire(streams(text("half"), event(fault)))))
    assert joined(deltas) == "half"
    assert (error.data["status"], error.data["retryable"]) == (status, True)
    assert words in str(error)


def test_b33_a_request_that_is_wrong_is_not_repeated_though_it_was_told_late() -> None:
    wrong = {"error": {"message": "bad tool schema", "type": "invalid_request_error"}}
    error = failure(streams(event(wrong)))
    assert isinstance(error, ModelError)
    assert (error.data["status"], error.data["retryable"]) == (400, False)


def test_b52_a_key_in_another_provider_s_words_is_not_told() -> None:
    raw = json.dumps({"error": {"message": f"Invalid key {SECRET}"}})
    body = {"error": {"message": "Provider returned error", "metadata": {"raw": raw}}}
    error = failure(refuses(401, body))
    assert SECRET not in str(error) + str(error.data)


@pytest.mark.parametrize(
    ("words", "tokens"),
    [
        ("This model's maximum context length is 4096 tokens. However, your request has 5000 input"
         " tokens. Please reduce the length of the input messages.", 5000),
        ("This endpoint's maximum context length is 4096 tokens. However, you requested about 5000"
         " tokens (4000 of text input, 1000 in the output).", 5000),
        ("the input length exceeds the context length", None),
    ],
)  # fmt: skip
def test_a_request_that_does_not_fit(words: str, tokens: int | None) -> None:
    error = failure(refuses(400, {"error": {"message": words, "code": 400}}))
    assert isinstance(error, ContextOverflowError)
    assert error.data["tokens"] == tokens


# --- reasoning -----------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_has_several_names(field: str) -> None:
    """DeepSeek and older vLLM, OpenRouter and newer vLLM, Ollama."""
    deltas = answer(streams(piece(**{field: "h"}), piece(**{field: "m"}), text("x", "stop")))
    assert joined(deltas, ThinkingDelta) == "hm"
    assert joined(deltas) == "x"


def test_reasoning_is_sent_back_once_a_server_demands_it_and_only_its_own() -> None:
    """DeepSeek and Kimi refuse the next step of a turn without it; all others get none."""
    thought = {"type": "thinking", "thinking": "hm"}
    use = {"type": "tool_use", "id": "1", "name": "look", "input": {}}
    result = Message("tool", {"type": "tool_result", "tool_use_id": "1", "content": "A"})
    others = [{**thought, "thinking": "foreign"}, {"type": "text", "text": "x"}]
    wanted = request(
        Message("user", "go"),
        Message("assistant", others).marked(model="claude/m"),
        Message("user", "on"),
        Message("assistant", [thought, use]).marked(model="acme/m1"),
        result,
    )
    refusal = {"error": {"message": "thinking is enabled but reasoning_content is missing in"
                         " assistant tool call message at index 3"}}  # fmt: skip
    wire = Wire(refuses(400, refusal), says("a"))
    assert joined(asyncio.run(ask(model(wire), wanted))) == "a"
    first, second = wire.bodies()
    assert "reasoning_content" not in json.dumps(first)
    sent = [m.get("reasoning_content") for m in second["messages"]]
    assert sent == [None, "", None, "hm", None]
    still = Wire(refuses(400, refusal), refuses(400, refusal))
    with pytest.raises(ModelError, match="is missing"):
        asyncio.run(ask(model(still), wanted))
