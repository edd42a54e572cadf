"""Answers in Anthropic's format, read into deltas: streams, their ends, faults, and refusals."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.e2e import anthropic_replies as replies
from tests.e2e.anthropic_replies import (
    PING,
    STOP,
    ending,
    event,
    filled,
    opened,
    redacted_block,
    start,
    text_block,
    thinking_block,
    use_block,
)
from tests.e2e.replies import Reply
from tests.models.test_openai import JSON
from tests.models.wire import (
    SECRET,
    Waits,
    Wire,
    anthropic,
    ask,
    broken,
    joined,
    only,
    refuses,
    request,
    streams,
)
from tiro.errors import ContextOverflowError, ModelError, TiroError
from tiro.models.model import (
    BlockDone,
    Delta,
    Finished,
    ModelFacts,
    Price,
    Progress,
    RetryWait,
    TextDelta,
    ThinkingDelta,
    ToolSchema,
    ToolUseDelta,
    ToolUseDone,
)
from tiro.session.messages import Message, StopReason, Usage

USAGE = Usage(10, 5)
TOOL = ToolSchema("read_file", "Read.", {"type": "object", "properties": {}})


def sent(*steps: bytes | list[bytes]) -> bytes:
    """The bytes of these events together."""
    return b"".join(b"".join(step) if isinstance(step, list) else step for step in steps)


def whole(*blocks: list[bytes], stop: str = "end_turn") -> bytes:
    return sent(*(step for step in replies.answer(*blocks, stop=stop).steps))  # type: ignore[arg-type]


def answer(*responses: httpx.Response | Exception, **given: Any) -> list[Delta]:
    return asyncio.run(ask(anthropic(Wire(*responses), **given)))


def read(*blocks: list[bytes], stop: str = "end_turn") -> list[Delta]:
    return answer(streams(whole(*blocks, stop=stop)))


def failure(*responses: httpx.Response | Exception, **given: Any) -> TiroError:
    with pytest.raises(TiroError) as caught:
        answer(*responses, **given)
    return caught.value


def as_response(reply: Reply) -> httpx.Response:
    body = b"".join(step for step in reply.steps if isinstance(step, bytes))
    return refuses(reply.status, body, **{k.replace("-", "_"): v for k, v in reply.headers})


# --- a good answer -------------------------------------------------------------------------


def test_a_whole_answer_with_everything_in_it() -> None:
    deltas = read(
        thinking_block(0, "Let ", "me", signature="Eq+/=="),
        redacted_block(1, "Ab+/=="),
        text_block(2, "I ", "look."),
        use_block(3, "toolu_1", "read_file", '{"path": "é', '漢🙂.py"}'),
        use_block(4, "toolu_2", "glob"),
        stop="tool_use",
    )
    assert deltas == [
        ThinkingDelta("Let me"),
        ThinkingDelta("", "Eq+/=="),
        BlockDone({"type": "redacted_thinking", "data": "Ab+/=="}),
        TextDelta("I look."),
        ToolUseDelta(index=0, name="read_file", input_json=""),
        ToolUseDelta(index=0, name="read_file", input_json='{"path": "é'),
        ToolUseDelta(index=0, name="read_file", input_json='漢🙂.py"}'),
        ToolUseDone(
            id="toolu_1", name="read_file", input={"path": "é漢🙂.py"}, raw='{"path": "é漢🙂.py"}'
        ),
        ToolUseDelta(index=1, name="glob", input_json=""),
        ToolUseDone(id="toolu_2", name="glob", input={}, raw=""),
        Finished("tool_use", USAGE),
    ]


@pytest.mark.parametrize("size", [1, 7, 100])
def test_b28_it_may_be_cut_anywhere(size: int) -> None:
    raw = whole(text_block(0, "é漢🙂 \u2028"), use_block(1, "a", "glob", '{"p": "🙂', '"}'))
    pieces = [raw[i : i + size] for i in range(0, len(raw), size)]
    deltas = answer(streams(*pieces))
    assert joined(deltas) == "é漢🙂 \u2028"
    assert only(deltas, ToolUseDone) == [
        ToolUseDone(id="a", name="glob", input={"p": "🙂"}, raw='{"p": "🙂"}')
    ]


def test_halves_of_a_character_are_joined() -> None:
    halves = [
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%b"}}'
        b"\n\n" % half
        for half in (rb"a\ud83d", rb"\ude42b")
    ]
    assert joined(answer(streams(start(), *halves, STOP))) == "a🙂b"


def test_what_is_not_known_is_passed_over_or_kept() -> None:
    unknown = [
        PING,
        event("novel_event", x=1),
        filled(0, type="novel_delta", x=1),
        filled(9, type="input_json_delta", partial_json="{"),
        b": comment\n\n",
        b"data: [DONE]\n\n",
        filled(0, type="citations_delta", citation={"type": "x"}),
    ]
    search = [
        opened(1, type="server_tool_use", id="s1", name="web_search", input={}),
        filled(1, type="input_json_delta", partial_json='{"q": 1}'),
        replies.closed(1),
    ]
    assert read(text_block(0, "a", "b"), unknown, search) == [
        TextDelta("ab"),
        BlockDone({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": 1}}),
        Finished("end_turn", USAGE),
    ]


def untyped(**fields: Any) -> bytes:
    """An event that does not say what it is."""
    return b"data: %b\n\n" % json.dumps(fields).encode()


@pytest.mark.parametrize(
    "block",
    [
        [opened(0), filled(0, type="text_delta", text="Hi"), replies.closed(0)],
        [opened(0, text="H"), filled(0, type="text_delta", text="i"), replies.closed(0)],
        [opened(0, type=None, text="H"), filled(0, text="i"), replies.closed(0)],
        [opened(0, type="text", text="Hi"), filled(0, type="novel", x=1), replies.closed(0)],
        [opened(0, type="text", text=""), filled(0, text="Hi"), replies.closed(0)],
        [opened(0, type="text", text=""), filled(0, type="novel", text="Hi"), replies.closed(0)],
        [filled(0, text="H"), filled(0, text="i")],
        [event("content_block_start", index=0), filled(0, text="Hi"), replies.closed(0)],
        [untyped(index=0, content_block={"text": "H"}), untyped(index=0, delta={"text": "i"})],
        [opened(0, text="Hi")],
    ],
    ids=repr,
)
def test_text_without_a_type_is_text(block: list[bytes]) -> None:
    """What its user has seen, or should have, is in the session."""
    assert read(block) == [TextDelta("Hi"), Finished("end_turn", USAGE)]


def test_thinking_without_a_type_is_thinking() -> None:
    block = [opened(0), filled(0, thinking="Hm"), filled(0, signature="Eq=="), replies.closed(0)]
    assert read(block, text_block(1, "a")) == [
        ThinkingDelta("Hm"),
        ThinkingDelta("", "Eq=="),
        TextDelta("a"),
        Finished("end_turn", USAGE),
    ]


def test_a_block_of_an_unknown_type_keeps_what_came_into_it() -> None:
    known: dict[str, Any] = {"type": "compaction", "content": "", "n": 1}
    pieces: list[dict[str, Any]] = [
        {"content": "It "},
        {"content": "was.", "n": 2, "more": ["x"]},
    ]
    block = [opened(0, **known), *(filled(0, type="novel", **piece) for piece in pieces)]
    nameless = [opened(1, x=1), filled(1, type="novel", y="z"), replies.closed(1)]
    assert read([*block, replies.closed(0)], nameless) == [
        BlockDone({"type": "compaction", "content": "It was.", "n": 2, "more": ["x"]}),
        BlockDone({"x": 1, "y": "z"}),
        Finished("end_turn", USAGE),
    ]


def test_a_whole_answer_of_blocks_without_a_type() -> None:
    body = {"content": [{"text": "Hi"}, {"thinking": "Hm"}, {"x": 1}], "stop_reason": "end_turn"}
    deltas = answer(refuses(200, body))
    assert joined(deltas) == "Hi"
    assert ThinkingDelta("Hm") in deltas
    assert only(deltas, BlockDone) == [BlockDone({"x": 1})]


def test_an_answer_that_is_not_streamed() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "s="},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "glob", "input": {"pattern": "*"}},
    ]
    deltas = answer(as_response(replies.plain(*blocks, stop="tool_use")))
    assert deltas == [
        ThinkingDelta("hm"),
        ThinkingDelta("", "s="),
        TextDelta("I look."),
        ToolUseDelta(index=0, name="glob", input_json=""),
        ToolUseDone(id="t1", name="glob", input={"pattern": "*"}, raw='{"pattern":"*"}'),
        Finished("tool_use", USAGE),
    ]


@pytest.mark.parametrize(
    ("wire_reason", "reason"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("pause_turn", "end_turn"),
        ("novel_reason", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
    ],
)
def test_stop_reasons(wire_reason: str, reason: StopReason) -> None:
    assert read(text_block(0, "x"), stop=wire_reason)[-1] == Finished(reason, USAGE)


def test_two_pieces_of_thinking_keep_their_own_signatures() -> None:
    """B35: an unsigned piece must not be taken into the signed one after it."""
    unsigned = [*thinking_block(0, "a", signature=None), replies.closed(0)]
    assert read(unsigned, thinking_block(1, "b", signature="s"))[:-1] == [
        ThinkingDelta("a"), ThinkingDelta("", ""), ThinkingDelta("b"), ThinkingDelta("", "s"),
    ]  # fmt: skip


def test_a_signature_in_two_pieces_and_one_from_the_start() -> None:
    steps = [
        *thinking_block(0, "a", signature=None),
        filled(0, type="signature_delta", signature="x+"),
        filled(0, type="signature_delta", signature="y="),
        replies.closed(0),
        opened(1, type="thinking", thinking="", signature="z="),
        replies.closed(1),
    ]
    assert only(read(steps), ThinkingDelta) == [
        ThinkingDelta("a"), ThinkingDelta("", "x+y="), ThinkingDelta("", "z="),
    ]  # fmt: skip


# --- B23: usage ----------------------------------------------------------------------------


def test_b23_cached_tokens_are_not_in_the_input_tokens() -> None:
    told = {
        "input_tokens": 3, "cache_read_input_tokens": 180_000, "cache_creation_input_tokens": 99,
        "output_tokens": 140,
    }  # fmt: skip
    reply = replies.answer(text_block(0, "x"), usage=told)
    raw = sent(*(step for step in reply.steps))  # type: ignore[arg-type]
    price = {"m1": ModelFacts(200_000, 64_000, Price(10, 50, 1))}
    (finished,) = only(answer(streams(raw), models=price), Finished)
    assert isinstance(finished, Finished)
    usage = finished.usage
    assert usage is not None
    assert (usage.input_tokens, usage.cache_read_tokens) == (3, 180_000)
    assert (usage.cache_write_tokens, usage.output_tokens) == (99, 140)
    assert usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens == 180_102
    assert usage.cost_usd == pytest.approx((102 * 10 + 180_000 + 140 * 50) / 1e6)


@pytest.mark.parametrize("odd", [None, {}, 5, {"input_tokens": None}, {"input_tokens": "5"},
                                 {"input_tokens": -1}, {"input_tokens": 1e400}])  # fmt: skip
def test_odd_usage_is_no_failure(odd: Any) -> None:
    steps = [
        event("message_start", message={"usage": odd}),
        *text_block(0, "x"),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage=odd),
        STOP,
    ]
    assert answer(streams(*steps))[-1] == Finished("end_turn", None)


def test_usage_that_comes_late_counts() -> None:
    steps = [start(input_tokens=0), *text_block(0, "x"), *ending("stop", input_tokens=7)]
    assert answer(streams(sent(*steps)))[-1] == Finished("end_turn", Usage(7, 5))  # type: ignore[arg-type]


# --- B30, B32, B33: how an answer ends -----------------------------------------------------


def test_b30_closed_before_message_stop_is_broken() -> None:
    for end in (b"", sent(*ending()[:1])):  # type: ignore[arg-type]
        deltas, error = broken(anthropic(Wire(streams(start(), *text_block(0, "ha", "lf"), end))))
        assert joined(deltas) == "half"
        assert error.data["retryable"]
        assert not only(deltas, Finished)


def test_b30_closed_in_the_middle_of_a_tool_use() -> None:
    deltas, _ = broken(
        anthropic(Wire(streams(start(), *use_block(0, "a", "write", '{"path": "a')[:-1])))
    )
    assert not only(deltas, ToolUseDone)


def test_b35_cut_before_the_signature() -> None:
    deltas, _ = broken(
        anthropic(Wire(streams(start(), *thinking_block(0, "hm", signature="s")[:-2])))
    )
    assert only(deltas, ThinkingDelta) == [ThinkingDelta("hm")]


def test_b30_the_socket_stays_open_after_message_stop() -> None:
    deltas = answer(streams(whole(text_block(0, "x")), asyncio.Event()))
    assert deltas == [TextDelta("x"), Finished("end_turn", USAGE)]


def test_b32_an_input_cut_by_the_limit_is_not_read() -> None:
    deltas = read(use_block(0, "a", "write", '{"path": "a", "te'), stop="max_tokens")
    assert deltas[-2:] == [
        ToolUseDone(id="a", name="write", input=None, raw='{"path": "a", "te'),
        Finished("max_tokens", USAGE),
    ]


def test_b32_a_tool_use_that_was_never_closed_is_told_all_the_same() -> None:
    open_use = use_block(0, "a", "write", '{"path": "a')[:-1]
    assert read(open_use, stop="max_tokens")[-2:] == [
        ToolUseDone(id="a", name="write", input=None, raw='{"path": "a'),
        Finished("max_tokens", USAGE),
    ]


FAULTS = {
    "overloaded": (replies.fault(), 529, True, "Overloaded"),
    "api": (replies.fault("Internal", "api_error"), 500, True, "Internal"),
    "invalid": (replies.fault("bad", "invalid_request_error"), 400, False, "bad"),
    "llama.cpp": (
        b'event: error\ndata: {"code":500,"message":"broke","type":"server_error"}\n\n',
        500, True, "broke",
    ),
    "other style": (b'data: {"error":{"message":"broke","code":503}}\n\n', 503, True, "broke"),
    "bare": (b'data: {"type":"error"}\n\n', None, True, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_b33_an_error_after_the_first_delta_is_told_and_not_repeated(name: str) -> None:
    fault, status, retryable, words = FAULTS[name]
    deltas, error = broken(anthropic(Wire(streams(start(), text_block(0, "half")[1], fault))))
    assert deltas == [TextDelta("half")]
    assert (error.data["status"], error.data["retryable"]) == (status, retryable)
    assert words in str(error)


@pytest.mark.parametrize("name", ["overloaded", "api", "llama.cpp", "other style"])
def test_b33_an_error_before_the_first_delta_is_waited_out(name: str) -> None:
    waits = Waits()
    failed = streams(start(), PING, FAULTS[name][0])
    wire = Wire(failed, streams(whole(text_block(0, "x"))))
    deltas = asyncio.run(ask(anthropic(wire, waits=waits)))
    assert only(deltas, TextDelta) == [TextDelta("x")]
    assert [type(delta) for delta in deltas[:1]] == [RetryWait]
    assert waits.seconds == [0.5]


# --- refusals ------------------------------------------------------------------------------


def test_b34_overloaded_and_limited_are_waited_out() -> None:
    waits = Waits()
    limited = as_response(replies.error(429, "slow down", [("retry-after", "2")]))
    overloaded = as_response(replies.error(529, "Overloaded"))
    good = streams(whole(text_block(0, "x")))
    assert joined(asyncio.run(ask(anthropic(Wire(limited, overloaded, good), waits=waits)))) == "x"
    assert waits.seconds == [2.0, 1.0]


@pytest.mark.parametrize(
    ("status", "words", "sentence"),
    [
        (401, "invalid x-api-key", "refused the API key"),
        (400, "Your credit balance is too low to access the Anthropic API", "no credit left"),
        (404, "model: claude-nope", "does not know this model"),
        (413, "Request exceeds the maximum size", "too large"),
        (400, "messages.0: bad", "messages.0: bad"),
    ],
)
def test_a_refusal_is_told_once(status: int, words: str, sentence: str) -> None:
    error = failure(as_response(replies.error(status, words)))
    assert isinstance(error, ModelError)
    assert sentence in str(error)
    assert words in str(error)
    assert not error.data["retryable"]


def test_b52_an_echoed_key_is_not_told() -> None:
    error = failure(as_response(replies.error(401, f"invalid x-api-key {SECRET}")))
    assert SECRET not in str(error) + str(error.data)


@pytest.mark.parametrize(
    ("words", "tokens"),
    [
        ("prompt is too long: 208310 tokens > 200000 maximum", 208_310),
        ("input length and `max_tokens` exceed context limit: 199000 + 21333 > 200000, decrease"
         " input length or `max_tokens` and try again", 199_000),
    ],
)  # fmt: skip
def test_a_request_that_does_not_fit_tells_both_numbers(words: str, tokens: int) -> None:
    error = failure(as_response(replies.error(400, words)))
    assert isinstance(error, ContextOverflowError)
    assert (error.data["tokens"], error.data["context_window"]) == (tokens, 200_000)


def asked_twice(error: httpx.Response, *messages: Message, **given: Any) -> tuple[Any, Any]:
    """The two requests around a refusal that is answered by leaving something out."""
    wire = Wire(error, streams(whole(text_block(0, "a"))), streams(whole(text_block(0, "b"))))
    asked = anthropic(wire)
    wanted = request(*messages, **given)

    async def twice() -> list[Delta]:
        first = [delta async for delta in asked.stream(wanted)]
        return first + await ask(asked, wanted)

    assert joined(asyncio.run(twice())) == "ab"
    first, second, third = wire.bodies()
    assert second == third == asked.wire_request(wanted)
    return first, second


@pytest.mark.parametrize(
    ("message", "gone"),
    [
        ("`temperature` and `top_p` cannot both be specified for this model", "top_p"),
        ("`temperature` is deprecated for this model.", "temperature"),
        ("this model does not support tools", "tools"),
    ],
)
def test_a_refused_parameter_is_left_out_then_and_later(message: str, gone: str) -> None:
    first, second = asked_twice(
        as_response(replies.error(400, message)), temperature=0.2, top_p=0.5, tools=[TOOL]
    )
    assert set(first) - set(second) == {gone}


def test_an_output_limit_that_is_too_high_is_lowered() -> None:
    words = "max_tokens: 50000 > 8192, which is the maximum allowed number of output tokens for m1"
    first, second = asked_twice(as_response(replies.error(400, words)))
    assert (first["max_tokens"], second["max_tokens"]) == (50_000, 8192)


def test_cache_marks_that_are_refused_are_left_out() -> None:
    words = "messages.0.content.0.text.cache_control: Extra inputs are not permitted"
    first, second = asked_twice(as_response(replies.error(400, words)))
    assert "cache_control" in json.dumps(first)
    assert "cache_control" not in json.dumps(second)


def test_b35_thinking_that_is_refused_ends_no_session() -> None:
    """Whatever changed a signed block (an edited file), leaving it out is always accepted."""
    thought = {"type": "thinking", "thinking": "edited", "signature": "s"}
    answered = Message("assistant", [thought, {"type": "text", "text": "x"}])
    words = "messages.1.content.0: Invalid `signature` in `thinking` block"
    first, second = asked_twice(
        as_response(replies.error(400, words)),
        Message("user", "a"), answered.marked(model="acme/m1"), Message("user", "b"),
    )  # fmt: skip
    assert first["messages"][1]["content"] == [thought, {"type": "text", "text": "x"}]
    assert second["messages"][1]["content"] == [{"type": "text", "text": "x"}]
    assert thought["thinking"] == "edited"


# --- where and how it is asked -------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        ("https://e.test/v1", "https://e.test/v1/messages"),
        ("https://e.test/v1/", "https://e.test/v1/messages"),
        ("https://e.test/anthropic/?a=b", "https://e.test/anthropic/v1/messages?a=b"),
    ],
)
def test_the_address_and_the_headers(base_url: str, url: str) -> None:
    wire = Wire(streams(whole(text_block(0, "x"))))
    asyncio.run(ask(anthropic(wire, base_url=base_url, headers={"x-own": "1"})))
    (asked,) = wire.requests
    assert str(asked.url) == url
    assert asked.headers["x-api-key"] == SECRET
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert asked.headers["x-own"] == "1"
    assert "authorization" not in asked.headers


def test_a_web_page_or_another_api_is_told() -> None:
    assert "web page" in str(failure(streams(b"<html>")))
    assert "check its api" in str(failure(streams(b'{"hello": 1}')))
    assert "check its api" in str(failure(streams(b"data: 5\n\n")))


def listed(*rows: Any) -> httpx.Response:
    return refuses(200, {"data": list(rows), "has_more": False})


def test_a_model_that_is_not_known_is_asked_for_once() -> None:
    row = {"id": "m1", "type": "model", "max_input_tokens": 1_000_000, "max_tokens": 128_000}
    good = [streams(whole(text_block(0, "x"))) for _ in range(2)]
    wire = Wire(listed({"id": "m0"}, row), *good)
    asked = anthropic(wire, models={})

    async def twice() -> None:
        async for _ in asked.stream(request()):
            pass
        await ask(asked)

    asyncio.run(twice())
    assert [r.method for r in wire.requests] == ["GET", "POST", "POST"]
    assert str(wire.requests[0].url) == "https://provider.test/v1/models?limit=1000"
    assert asked.facts == ModelFacts(1_000_000, 128_000)
    assert json.loads(wire.requests[1].content)["max_tokens"] == 128_000


def test_what_the_user_configured_wins_and_a_list_that_fails_is_no_failure() -> None:
    row = {"id": "m1", "max_input_tokens": 1_000_000, "max_tokens": 128_000}
    own = {"m1": ModelFacts(context_window=50_000)}
    for found, facts in (
        (listed(row), ModelFacts(50_000, 128_000)),
        (refuses(404), ModelFacts(50_000, None)),
    ):
        wire = Wire(found, streams(whole(text_block(0, "x"))))
        asked = anthropic(wire, models=own)
        asyncio.run(ask(asked))
        assert asked.facts == facts


# --- the law of Model.stream over anything -------------------------------------------------

KINDS = st.sampled_from([
    "message_start", "content_block_start", "content_block_delta", "content_block_stop",
    "message_delta", "message_stop", "ping", "error", "novel",
])  # fmt: skip
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["text", "thinking", "tool_use", "redacted_thinking", "text_delta", "thinking_delta",
             "input_json_delta", "signature_delta", "novel"]
        ),
        "text": JSON, "thinking": JSON, "signature": JSON, "partial_json": JSON, "id": JSON,
        "name": JSON, "input": JSON, "data": JSON, "stop_reason": JSON, "usage": JSON,
    },
)  # fmt: skip
EVENTS = st.builds(
    lambda kind, index, part, extra: {
        "type": kind, "index": index, "content_block": part, "delta": part, "message": part,
        **extra,
    },
    KINDS,
    st.sampled_from([0, 1, None, "0"]),
    PARTS | JSON,
    st.dictionaries(st.sampled_from(["usage", "error", "delta", "index", "message"]), JSON,
                    max_size=2),
)  # fmt: skip


@given(st.lists(EVENTS, max_size=8), st.booleans())
def test_any_stream_ends_by_the_law(given_events: list[Any], has_end: bool) -> None:
    raw = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in given_events)
    raw += STOP if has_end else b""
    try:
        deltas = answer(*(streams(raw) for _ in range(4)))
    except TiroError:
        return
    assert [type(delta) for delta in deltas].count(Finished) == 1
    assert isinstance(deltas[-1], Finished)
    for delta in only(deltas, TextDelta, ThinkingDelta):
        delta.text.encode()  # type: ignore[union-attr]


def test_progress_is_told_when_tools_are_left_out() -> None:
    refusal = as_response(replies.error(400, "this model does not support tools"))
    wire = Wire(refusal, streams(whole(text_block(0, "x"))))
    deltas = asyncio.run(ask(anthropic(wire), request(tools=[TOOL])))
    assert deltas[0] == Progress("acme/m1 takes no tools and is asked without them")
