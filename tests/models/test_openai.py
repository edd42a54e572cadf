"""Answers in OpenAI's format, read into deltas: recorded streams, and B28 to B33 piece by piece."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.models.wire import (
    DONE,
    Body,
    Waits,
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
    ToolUseDone,
)
from tiro.models.request_parts import IMAGE_LEFT_OUT
from tiro.session.json_text import encode
from tiro.session.messages import Message, StopReason, Usage

STREAMS = Path(__file__).parents[1] / "data" / "streams"


def recorded(name: str) -> bytes:
    return (STREAMS / name).read_bytes()


def failure(*responses: httpx.Response | Exception, **given: Any) -> TiroError:
    with pytest.raises(TiroError) as caught:
        answer(*responses, **given)
    return caught.value


# --- recorded streams ----------------------------------------------------------------------


def test_llamacpp_with_progress_usage_and_length() -> None:
    deltas = answer(streams(recorded("llamacpp-text.sse")))
    assert deltas == [
        Progress("Reading the prompt", 0.0),
        Progress("Reading the prompt", 1.0),
        TextDelta("Hello! I'm here to help with any kind of creative"),
        Finished("max_tokens", Usage(input_tokens=33, output_tokens=12)),
    ]


def test_openai_with_two_tool_uses_and_cached_tokens() -> None:
    """B23: the cached tokens are inside prompt_tokens, and are counted once."""
    deltas = answer(streams(recorded("openai-tools.sse")))
    assert only(deltas, ToolUseDone, Finished, TextDelta) == [
        ToolUseDone(
            id="call_A",
            name="read_file",
            input={"path": "é漢🙂.py"},
            raw='{"path":"é漢🙂.py"}',
        ),
        ToolUseDone(id="call_B", name="glob", input={"pattern": "*.py"}, raw='{"pattern":"*.py"}'),
        Finished("tool_use", Usage(input_tokens=768, output_tokens=49, cache_read_tokens=183_936)),
    ]


def test_openrouter_with_comments_reasoning_and_cost() -> None:
    assert answer(streams(recorded("openrouter-reasoning.sse"))) == [
        ThinkingDelta("Let me think."),
        TextDelta("Two."),
        Finished("end_turn", Usage(input_tokens=10, output_tokens=5, cost_usd=0.00014)),
    ]


def test_deepseek_with_reasoning_content_and_its_own_cache_field() -> None:
    assert answer(streams(recorded("deepseek-reasoning.sse"))) == [
        ThinkingDelta("Thinking"),
        TextDelta("Two"),
        Finished("end_turn", Usage(input_tokens=6, output_tokens=9, cache_read_tokens=8)),
    ]


def test_ollama_with_index_0_for_all() -> None:
    deltas = answer(streams(recorded("ollama-tool.sse")))
    assert only(deltas, ToolUseDone) == [
        ToolUseDone(id="call_o1", name="glob", input={"pattern": "*"}, raw='{"pattern":"*"}'),
        ToolUseDone(id="call_o2", name="read_file", input={"path": "a"}, raw='{"path":"a"}'),
    ]


def test_mistral_with_content_in_parts() -> None:
    assert answer(streams(recorded("mistral-thinking.sse"))) == [
        ThinkingDelta("Hm"),
        TextDelta("Two."),
        Finished("end_turn", Usage(input_tokens=4, output_tokens=3)),
    ]


@pytest.mark.parametrize(
    "content",
    [
        [{"text": "Hi"}],
        ["H", {"type": "text", "text": "i"}],
        [{"type": "output_text", "text": "H"}, {"type": None, "text": "i"}],
        {"type": "text", "text": "Hi"},
        {"text": "Hi"},
        [{"type": "refusal", "refusal": "Hi"}],
        [{"content": [{"text": "H"}, "i"]}],
    ],
    ids=repr,
)
def test_text_in_a_part_without_a_known_type_is_text(content: Any) -> None:
    """What its user has seen, or should have, is in the session."""
    event = {"choices": [{"delta": {"content": content}, "finish_reason": "stop"}]}
    stream = b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(event).encode()
    assert answer(streams(stream)) == [TextDelta("Hi"), Finished("end_turn", None)]


def test_parts_nested_too_deeply_are_passed_over() -> None:
    content = b'{"content":' * 300 + b'"x"' + b"}" * 300
    event = b'{"choices": [{"delta": {"content": %b}, "finish_reason": "stop"}]}' % content
    assert answer(streams(b"data: %b\n\ndata: [DONE]\n\n" % event)) == [Finished("end_turn", None)]


def test_a_part_without_text_is_kept_as_it_came() -> None:
    parts = [{"text": "a"}, {"type": "novel", "x": [1]}, {"type": "thinking", "text": "Hm"}, 7, {}]
    event = {"choices": [{"delta": {"content": parts}, "finish_reason": "stop"}]}
    stream = b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(event).encode()
    assert answer(streams(stream)) == [
        TextDelta("a"),
        BlockDone({"type": "novel", "x": [1]}),
        ThinkingDelta("Hm"),
        Finished("end_turn", None),
    ]


def test_an_answer_that_is_not_streamed() -> None:
    whole = refuses(200, json.loads(recorded("llamacpp-whole.json")))
    assert answer(whole) == [
        TextDelta("Hello! I'm here to help with any kind of creative"),
        Finished("max_tokens", Usage(input_tokens=1, output_tokens=12, cache_read_tokens=32)),
    ]


@pytest.mark.parametrize("name", sorted(path.name for path in STREAMS.glob("*.sse")))
def test_a_recorded_stream_is_the_same_in_any_chunks(name: str) -> None:
    stream = recorded(name)
    whole = answer(streams(stream))
    one_by_one = answer(streams(*(stream[i : i + 1] for i in range(len(stream)))))
    assert joined(one_by_one) == joined(whole)
    assert joined(one_by_one, ThinkingDelta) == joined(whole, ThinkingDelta)
    assert only(one_by_one, ToolUseDone, Finished) == only(whole, ToolUseDone, Finished)


# --- B28, B29: bytes -----------------------------------------------------------------------

ODD = "é漢🙂\u2028\u2029\u0085"
ARGUMENTS = json.dumps({"text": ODD}, ensure_ascii=False)
NOISE = b": ping\n\n:\n\nevent: message\nid: 1\nretry: 10\n"
ODD_STREAM = b"".join(
    [
        NOISE,
        text(ODD).replace(b"\n", b"\r\n"),
        text(ODD).replace(b"data: ", b"data:"),
        b'data: {"choices":[{"delta":\ndata: {"content":"x"}}]}\n\n',
        piece(tool_calls=[{"index": 0, "id": "c", "function": {"name": "t", "arguments": ""}}]),
        piece(tool_calls=[{"index": 0, "function": {"arguments": ARGUMENTS[:14]}}]),
        piece(tool_calls=[{"index": 0, "function": {"arguments": ARGUMENTS[14:]}}]),
        piece("tool_calls"),
        DONE,
    ]
)
WRONG_CHARSET = {"content-type": "text/event-stream; charset=iso-8859-1"}


def check_odd(*chunks: bytes) -> None:
    deltas = answer(streams(*chunks, **WRONG_CHARSET))
    assert joined(deltas) == ODD + ODD + "x"
    assert [t.input for t in deltas if isinstance(t, ToolUseDone)] == [{"text": ODD}]
    assert isinstance(deltas[-1], Finished)


@pytest.mark.parametrize("part", range(8))
def test_b28_b29_every_two_chunk_split(part: int) -> None:
    for at in range(part, len(ODD_STREAM), 8):
        check_odd(ODD_STREAM[:at], ODD_STREAM[at:])


def test_b28_b29_byte_by_byte() -> None:
    check_odd(*(ODD_STREAM[i : i + 1] for i in range(len(ODD_STREAM))))


@pytest.mark.parametrize("mark", ["\x0b", "\x0c", "\x1c", "\x00"])
def test_b29_raw_control_characters_are_a_clean_error(mark: str) -> None:
    stream = f'data: {{"choices":[{{"delta":{{"content":"a{mark}b"}}}}]}}\n\n'.encode()
    assert "cannot be read" in str(failure(streams(stream)))


def test_text_that_arrives_together_leaves_together() -> None:
    assert answer(streams(text("a") + text("b"), text("c") + piece("stop"), DONE))[:-1] == [
        TextDelta("ab"),
        TextDelta("c"),
    ]


@pytest.mark.parametrize(
    ("halves", "expected"),
    [
        (['"\\ud83d"', '"\\ude42"'], "🙂"),
        (['"a\\ud83d"', '""', '"\\ude42b"'], "a🙂b"),
        (['"a\\ud83d"', '"b"'], "a\ufffdb"),
        (['"a\\ud83d"'], "a\ufffd"),
        (['"\\ude42a"'], "\ufffda"),
        (['"a\xff"'], "a\ufffd"),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_b12_half_a_character(halves: list[str], expected: str, together: bool) -> None:
    chunks = [
        f'data: {{"choices":[{{"delta":{{"content":{half}}}}}]}}\n\n'.encode("latin-1")
        for half in halves
    ]
    chunks = [b"".join(chunks)] if together else chunks
    deltas = answer(streams(*chunks, piece("stop"), DONE))
    assert joined(deltas) == expected
    for delta in only(deltas, TextDelta):
        assert isinstance(delta, TextDelta)
        delta.text.encode()


# --- B30: how an answer ends ---------------------------------------------------------------


def test_b30_i_closed_after_two_deltas() -> None:
    deltas, error = broken(model(Wire(streams(text("a"), text("b")))))
    assert deltas == [TextDelta("a"), TextDelta("b")]
    assert "broke off in the middle" in str(error)


def test_b30_ii_done_without_finish_reason() -> None:
    assert answer(streams(text("a"), DONE)) == [TextDelta("a"), Finished("end_turn")]


def test_b30_iii_finish_reason_without_done() -> None:
    assert answer(streams(text("a"), piece("stop"))) == [TextDelta("a"), Finished("end_turn")]


def test_b30_iii_reset_after_the_finish_reason() -> None:
    deltas = answer(streams(text("a"), piece("stop"), httpx.ReadError("reset")))
    assert deltas == [TextDelta("a"), Finished("end_turn")]


def test_b30_iv_the_socket_stays_open_after_done() -> None:
    body = Body(text("a"), piece("stop"), DONE, asyncio.Event())
    response = httpx.Response(200, stream=body)
    assert answer(response)[-1] == Finished("end_turn")
    assert body.is_closed


def test_b30_v_closed_in_the_middle_of_arguments() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "t", "arguments": '{"a'}}
    deltas, error = broken(model(Wire(streams(text("a"), piece(tool_calls=[call])))))
    assert not only(deltas, ToolUseDone, Finished)
    assert error.data["retryable"]


def test_an_empty_finish_reason_is_none() -> None:
    deltas, _ = broken(model(Wire(streams(text("a", finish=""), text("b", finish="")))))
    assert joined(deltas) == "ab"


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ("stop", "end_turn"),
        ("eos", "end_turn"),
        ("tool_calls", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
    ],
)
def test_stop_reasons(wire: str, expected: StopReason) -> None:
    assert answer(streams(text("a", wire), DONE))[-1] == Finished(expected)


def test_a_refusal_is_told_as_one() -> None:
    deltas = answer(streams(piece(refusal="I can't"), piece("stop"), DONE))
    assert deltas == [TextDelta("I can't"), Finished("refusal")]


def test_an_answer_with_nothing_in_it() -> None:
    assert answer(streams(piece("stop"), DONE)) == [Finished("end_turn")]


def test_nothing_at_all_is_no_answer() -> None:
    assert "broke off" in str(failure(*(streams() for _ in range(4))))


# --- usage ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ("many", None),
        ({}, Usage()),
        ({"prompt_tokens": 5, "completion_tokens": None}, Usage(5)),
        ({"prompt_tokens": 5, "prompt_tokens_details": None}, Usage(5)),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}}, Usage(0, 0, 5)),
        ({"prompt_tokens": "5", "completion_tokens": 2.0}, Usage(0, 2)),
    ],
)
def test_usage_as_servers_report_it(usage: Any, expected: Usage | None) -> None:
    last = event({"choices": [], "usage": usage})
    assert answer(streams(text("a", "stop"), last, DONE))[-1] == Finished("end_turn", expected)


def test_a_configured_price_beats_the_reported_cost() -> None:
    facts = {"m1": ModelFacts(price_per_million=Price(input=2, output=10, cache_read=1))}
    usage = {
        "prompt_tokens": 3_000_000,
        "completion_tokens": 100_000,
        "cost": 99,
        "prompt_tokens_details": {"cached_tokens": 1_000_000},
    }
    last = event({"choices": [], "usage": usage})
    finished = answer(streams(text("a", "stop"), last, DONE), models=facts)[-1]
    assert isinstance(finished, Finished)
    assert finished.usage == Usage(2_000_000, 100_000, 1_000_000, cost_usd=6.0)


# --- B31: tool uses from pieces ------------------------------------------------------------


def call(arguments: Any = ..., name: str | None = None, **fields: Any) -> dict[str, Any]:
    function: dict[str, Any] = {} if name is None else {"name": name}
    if arguments is not ...:
        function["arguments"] = arguments
    return {"type": "function", "function": function, **fields}


def tool_uses(*deltas_of_calls: Any) -> list[tuple[str, str, Any]]:
    """(id, name, input) of what these deltas' tool_calls give."""
    pieces = [piece(tool_calls=calls) for calls in deltas_of_calls]
    deltas = answer(streams(*pieces, piece("tool_calls"), DONE))
    return [(t.id, t.name, t.input) for t in deltas if isinstance(t, ToolUseDone)]


AB = [("1", "a", {"x": 1}), ("2", "b", {"y": 2})]


def test_b31_i_interleaved_by_index_id_only_first() -> None:
    assert (
        tool_uses(
            [call("", "a", index=0, id="1")],
            [call("", "b", index=1, id="2")],
            [call('{"x"', index=0), call('{"y"', index=1)],
            [call(":1}", index=0)],
            [call(":2}", index=1)],
        )
        == AB
    )


def test_b31_i_id_and_name_on_every_piece() -> None:
    assert (
        tool_uses(
            [call('{"x"', "a", index=0, id="1")],
            [call('{"y"', "b", index=1, id="2")],
            [call(":1}", "a", index=0, id="1")],
            [call(":2}", "b", index=1, id="2")],
        )
        == AB
    )


def test_b31_ii_all_index_0_but_different_ids() -> None:
    assert (
        tool_uses(
            [call('{"x"', "a", index=0, id="1")],
            [call(":1}", index=0)],
            [call('{"y"', "b", index=0, id="2")],
            [call(":2}", index=0)],
        )
        == AB
    )


def test_b31_iii_no_index() -> None:
    assert (
        tool_uses(
            [call('{"x"', "a", id="1")], [call(":1}")], [call('{"y"', "b", id="2")], [call(":2}")]
        )
        == AB
    )


def test_b31_iii_no_index_and_no_id() -> None:
    expected = [("made_1", "a", {"x": 1}), ("made_2", "b", {"y": 2})]
    assert tool_uses([call('{"x":1}', "a")], [call('{"y":2}', "b")]) == expected
    assert tool_uses([call('{"x":1}', "a"), call('{"y":2}', "b")]) == expected
    assert tool_uses([call({}, "a"), call({}, "b")]) == [
        ("made_1", "a", {}),
        ("made_2", "b", {}),
    ]


def test_the_older_form_of_one_function_call() -> None:
    """What came before `tool_calls`: a name first, its arguments in pieces."""
    older = [{"name": "a", "arguments": ""}, {"arguments": '{"x"'}, {"arguments": ":1}"}]
    pieces = [piece(function_call=one) for one in older]
    deltas = answer(streams(*pieces, piece("function_call"), DONE))
    done = [(d.name, d.input) for d in deltas if isinstance(d, ToolUseDone)]
    assert done == [("a", {"x": 1})]
    assert deltas[-1] == Finished("tool_use", None)


def test_the_same_tool_twice_without_ids() -> None:
    assert tool_uses([call('{"x":1}', "a", index=0)], [call('{"x":2}', "a", index=0)]) == [
        ("made_1", "a", {"x": 1}),
        ("made_2", "a", {"x": 2}),
    ]


def test_the_same_id_twice_gets_another_one() -> None:
    assert tool_uses(
        [call('{"x":1}', "a", index=0, id="1")], [call('{"x":2}', "a", index=1, id="1")]
    ) == [("1", "a", {"x": 1}), ("made_1", "a", {"x": 2})]


def test_an_id_that_comes_late() -> None:
    assert tool_uses([call("", "a", index=0)], [call("{}", index=0, id="9")]) == [("9", "a", {})]


@pytest.mark.parametrize("arguments", ["", None, ..., "{}", " ", "null", {}])
def test_b31_iv_no_arguments(arguments: Any) -> None:
    assert tool_uses([call(arguments, "a", index=0, id="1")]) == [("1", "a", {})]


def test_b31_v_name_split_over_two_deltas() -> None:
    assert tool_uses([call("", "read_", index=0, id="1")], [call('{"x":1}', "file", index=0)]) == [
        ("1", "read_file", {"x": 1})
    ]


def test_b31_vi_arguments_as_an_object() -> None:
    assert tool_uses([call({"x": [1, "é"]}, "a", index=0, id="1")]) == [("1", "a", {"x": [1, "é"]})]


DEEP = ['{"x": ' + "[" * depth + "]" * depth + "}" for depth in (200, 490, 5000)]


@pytest.mark.parametrize("raw", ['{"x": ', "[1]", '"text"', "1", "{'x': 1}", '{"x":1}}', *DEEP])
def test_b31_vii_unreadable_arguments_are_shown_not_run(raw: str) -> None:
    deltas = answer(
        streams(piece(tool_calls=[call(raw, "a", index=0, id="1")]), piece("tool_calls"), DONE)
    )
    assert only(deltas, ToolUseDone) == [ToolUseDone(id="1", name="a", input=None, raw=raw)]


def test_b32_arguments_cut_by_the_output_limit() -> None:
    deltas = answer(
        streams(piece(tool_calls=[call('{"p', "a", index=0, id="1")]), piece("length"), DONE)
    )
    assert deltas[-2:] == [
        ToolUseDone(id="1", name="a", input=None, raw='{"p'),
        Finished("max_tokens"),
    ]


@pytest.mark.parametrize("calls", [None, [], [None], "none", [{}], [{"function": None}]])
def test_b31_viii_no_call(calls: Any) -> None:
    deltas = answer(streams(piece(content="a", tool_calls=calls), piece("stop"), DONE))
    assert deltas[-1] == Finished("end_turn")
    assert not only(deltas, ToolUseDone)


def test_lone_surrogates_in_arguments() -> None:
    raw = '{"x": "a\\ud83d", "y": "\\ud83d\\ude42"}'
    assert tool_uses([call(raw, "a", index=0, id="1")]) == [("1", "a", {"x": "a\ufffd", "y": "🙂"})]


INPUTS = st.dictionaries(st.text(max_size=4), st.text(max_size=8) | st.integers(), max_size=3)


@given(st.lists(INPUTS, min_size=1, max_size=4), st.data())
def test_b31_any_interleaving_by_index_gives_the_same(
    inputs: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Pieces of one tool use stay in order; those of different ones come in any order."""
    queues = []
    for index, value in enumerate(inputs):
        raw = json.dumps(value)
        at = data.draw(st.integers(0, len(raw)))
        queues.append(
            [
                call("", f"t{index}", index=index, id=f"id{index}"),
                call(raw[:at], index=index),
                call(raw[at:], index=index),
            ]
        )
    pieces = []
    while any(queues):
        queue = data.draw(st.sampled_from([queue for queue in queues if queue]))
        pieces.append([queue.pop(0)])
    found = sorted(tool_uses(*pieces))
    assert found == sorted((f"id{i}", f"t{i}", value) for i, value in enumerate(inputs))


# --- B33: errors inside the answer ---------------------------------------------------------

FAULT = {"error": {"message": "Overloaded, sorry", "type": "overloaded", "code": 529}}


@pytest.mark.parametrize(
    "fault",
    [
        event(FAULT),
        b"event: error\n" + event(FAULT["error"]),
        event({"object": "error", "message": "Overloaded, sorry", "code": 529}),
        event({"error": "Overloaded, sorry"}),
        event({"choices": [{"error": {"message": "Overloaded, sorry", "code": 502}}]}),
        event({"choices": [{"delta": {}, "finish_reason": "error"}], **FAULT}),
    ],
)
def test_b33_after_the_first_delta_an_error_ends_it(fault: bytes) -> None:
    deltas, error = broken(model(Wire(streams(text("half"), fault, DONE))))
    assert deltas == [TextDelta("half")]
    assert "Overloaded, sorry" in str(error)


def test_b33_before_the_first_delta_it_is_asked_again() -> None:
    waits = Waits()
    wire = Wire(streams(piece(role="assistant"), event(FAULT)), says("whole"))
    deltas = asyncio.run(ask(model(wire, waits=waits)))
    assert joined(deltas) == "whole"
    assert [type(delta) for delta in deltas] == [RetryWait, TextDelta, Finished]
    assert waits.seconds == [0.5]


def test_a_fault_that_will_stay_is_not_asked_again() -> None:
    wire = Wire(streams(event({"error": {"message": "bad", "code": 400}})))
    with pytest.raises(ModelError, match="bad"):
        asyncio.run(ask(model(wire)))


@pytest.mark.parametrize(
    "error",
    [
        httpx.RemoteProtocolError("peer closed connection"),
        httpx.ReadError("reset"),
        httpx.DecodingError("bad gzip"),
    ],
)
def test_b33_a_broken_connection(error: Exception) -> None:
    deltas, failed = broken(model(Wire(streams(text("half"), error))))
    assert deltas == [TextDelta("half")]
    assert failed.__cause__ is error
    assert joined(answer(streams(error), says("whole"))) == "whole"


# --- other answers -------------------------------------------------------------------------


@pytest.mark.parametrize("start", ["<!DOCTYPE html>", "\n <html>", "\ufeff<html>"])
@pytest.mark.parametrize("status", [200, 404])
def test_a_web_page_is_told_as_one(start: str, status: int) -> None:
    page = f"{start}<body>Log in to the guest network</body>".encode()
    error = failure(httpx.Response(status, stream=Body(page)))
    assert isinstance(error, ModelError)
    assert "guest network" in error.data["body"]
    assert ("web page" in str(error)) == (status == 200)


@pytest.mark.parametrize("body", [b"{}", b"[]", b'{"choices": 1}', b'{"hello": "world"}', b"{nope"])
def test_json_that_is_no_answer(body: bytes) -> None:
    with pytest.raises(ModelError) as caught:
        answer(httpx.Response(200, stream=Body(body)))
    assert "cannot be read" in str(caught.value)


def test_an_error_with_status_200() -> None:
    answers = [refuses(200, {"error": {"message": "quota"}}) for _ in range(4)]
    assert "quota" in str(failure(*answers))


OVERFLOWS: list[tuple[Any, int | None, int | None]] = [
    (json.loads(recorded("llamacpp-overflow.json")), 9031, 4096),
    (
        {
            "error": {
                "message": "This model's maximum context length is 128000 tokens. However, your "
                "messages resulted in 150123 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
        150_123,
        128_000,
    ),
    (
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested "
            "5000 tokens (4000 in the messages, 1000 in the completion).",
            "code": 400,
        },
        5000,
        4096,
    ),
    ({"error": {"message": "prompt is too long: 21000 tokens > 20000 maximum"}}, 21_000, 20_000),
    (
        [{"error": {"message": "The input token count (1,200,000) exceeds the maximum number of "
                    "tokens allowed (1048576).", "code": 400}}],
        1_200_000,
        1_048_576,
    ),
    (
        {"message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with "
         "32768 maximum context length"},
        40_000,
        32_768,
    ),
    ({"error": {"message": "Please shorten", "code": "context_length_exceeded"}}, None, None),
    ({"error": {"message": "Input is too long for requested model."}}, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("body", "tokens", "window"), OVERFLOWS)
@pytest.mark.parametrize("inside", [False, True])
def test_a_context_overflow_is_recognised(
    body: Any, tokens: int | None, window: int | None, inside: bool
) -> None:
    if inside:
        body = body[0] if isinstance(body, list) else body
        body = body if "error" in body else {"error": body}
        error = failure(streams(event(body)))
    else:
        error = failure(refuses(400, body))
    assert isinstance(error, ContextOverflowError)
    assert error.data["tokens"] == tokens
    assert error.data["context_window"] == window


def test_a_rate_limit_in_tokens_is_no_overflow() -> None:
    body = {"error": {"message": "Request too large: tokens per min (TPM): Limit 6000, Requested "
                      "9000", "code": "rate_limit_exceeded"}}  # fmt: skip
    error = failure(*(refuses(429, body, retry_after="1") for _ in range(4)))
    assert isinstance(error, ModelError)
    assert error.data["status"] == 429


# --- what a server does not take -----------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "gone", "instead"),
    [
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
         "'max_completion_tokens' instead.", "max_tokens", "max_completion_tokens"),
        ("Unsupported value: 'temperature' does not support 0.2 with this model.",
         "temperature", None),
        ("Unrecognized request argument supplied: stream_options", "stream_options", None),
        ("m1 does not support tools", "tools", None),
        ('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
         "tools", None),
        ("tools param requires --jinja flag", "tools", None),
        ("`temperature` and `top_p` cannot both be specified", "temperature", None),
        ("This response_format type is unavailable now", "response_format", None),
        ("This model does not support response format `json_schema`.", "response_format", None),
        ("JSON schema conversion failed: Unrecognized schema", "response_format", None),
        ("failed to parse grammar", "response_format", None),
    ],
)  # fmt: skip
def test_a_refused_parameter_is_left_out_then_and_later(
    message: str, gone: str, instead: str | None
) -> None:
    wanted = request(
        max_output_tokens=9,
        temperature=0.2,
        tools=[ToolSchema("t", "T.", {"type": "object"})],
        response_schema={"type": "object"},
    )
    wire = Wire(refuses(400, {"error": {"message": message}}), says("a"), says("b"))
    asked = model(wire)
    told = asked.wire_request(wanted)

    async def twice() -> list[Delta]:
        first = [delta async for delta in asked.stream(wanted)]
        return first + await ask(asked, wanted)

    assert joined(asyncio.run(twice())) == "ab"
    first, second, third = wire.bodies()
    assert first == told
    assert gone in first
    assert gone not in second
    assert second == third == asked.wire_request(wanted)
    assert instead is None or second[instead] == 9


def test_another_refusal_is_told_at_once() -> None:
    error = failure(refuses(400, {"error": {"message": "Invalid 'messages[3].role'"}}))
    assert "messages[3].role" in str(error)


NO_IMAGES = {
    "llama.cpp": (500, {"error": {"code": 500, "message": "image input is not supported - hint: if"
                        " this is unexpected, you may need to provide the mmproj"}}),
    "vllm": (400, {"object": "error", "message": "m1 is not a multimodal model", "code": 400}),
    "vllm's limit": (400, {"error": {"message": "At most 0 image(s) may be provided in one"
                                     " prompt.", "code": 400}}),
    "openrouter": (404, {"error": {"message": "No endpoints found that support image input",
                                   "code": 404}}),
    "openai": (400, {"error": {"message": "Invalid content type. image_url is only supported by"
                               " certain models."}}),
    "deepseek": (422, {"error": {"message": "Failed to deserialize the JSON body into the target"
                                 " type: messages[0]: unknown variant `image_url`"}}),
    "ollama": (500, {"error": "this model is missing data required for image input"}),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_IMAGES)
def test_b61_a_model_without_images_is_asked_without_them(name: str) -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/gif", "data": "R0lG"},
    }
    shown = {"type": "tool_result", "tool_use_id": "1", "content": [image]}
    wanted = request(
        Message("user", [{"type": "text", "text": "see"}, image]),
        Message("assistant", [{"type": "tool_use", "id": "1", "name": "look", "input": {}}]),
        Message("tool", shown),
    )
    before = encode(wanted)
    status, body = NO_IMAGES[name]
    wire = Wire(refuses(status, body), says("a"))
    deltas = asyncio.run(ask(model(wire), wanted))
    assert deltas[0] == Progress("acme/m1 takes no images and is asked without them")
    assert joined(deltas) == "a"
    first, second = wire.bodies()
    assert "image_url" in json.dumps(first)
    assert [m["content"] for m in second["messages"]] == [
        f"see\n\n{IMAGE_LEFT_OUT}", None, IMAGE_LEFT_OUT,
    ]  # fmt: skip
    assert encode(wanted) == before


def test_a_picture_that_is_refused_for_another_reason_is_told() -> None:
    fault = {"error": {"code": 500, "message": "image input is not supported"}}
    assert "does not support what the request holds" in str(failure(refuses(500, fault)))
    fault = {"error": {"message": "image exceeds 5 MB maximum"}}
    assert "5 MB" in str(failure(refuses(400, fault)))


# --- the law of Model.stream over anything -------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "name", "id", "index", "function", "arguments", "code"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=5,
)
PIECES = st.dictionaries(
    st.sampled_from(["content", "reasoning", "reasoning_content", "refusal", "tool_calls"]), JSON
)
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "delta": PIECES | JSON,
        "message": PIECES,
        "finish_reason": st.sampled_from(["stop", "length", "error"]) | JSON,
        "error": JSON,
    },
)
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(CHOICES, max_size=2) | JSON,
        "usage": JSON,
        "error": JSON,
        "message": JSON,
        "object": JSON,
        "prompt_progress": JSON,
    },
)
CHUNKS = st.one_of(
    st.builds(text, st.text(max_size=4)),
    st.builds(event, ANSWERS),
    st.just(piece("stop")),
    st.just(DONE),
    st.binary(max_size=8),
    st.builds(lambda e: event(e)[:-3], ANSWERS),
)

ENDS = ((), (DONE,), (piece("stop"),), (piece("stop"), DONE))


@given(st.lists(st.text(max_size=4)), st.lists(CHUNKS, max_size=6), st.sampled_from(ENDS))
def test_any_stream_ends_with_one_finished_or_with_our_error(
    said: list[str], odd: list[bytes], end: tuple[bytes, ...]
) -> None:
    """Only what is odd or has no end may be refused; what was said before it comes first."""
    chunks = (*map(text, said), *odd, *end)
    try:
        deltas = answer(*(streams(*chunks) for _ in range(4)))
    except (ModelError, ContextOverflowError):
        assert odd or not end
        return
    assert isinstance(deltas[-1], Finished)
    assert len(only(deltas, Finished)) == 1
    assert joined(deltas).startswith("".join(said))
    ids = [delta.id for delta in deltas if isinstance(delta, ToolUseDone)]
    assert len(set(ids)) == len(ids)
    assert all(ids)
    for delta in only(deltas, TextDelta, ThinkingDelta):
        assert isinstance(delta, TextDelta | ThinkingDelta)
        assert delta.text.encode()


GOOD = json.dumps(
    {"choices": [{"message": {"content": "Blue."}, "finish_reason": "stop"}]}
).encode()


@pytest.mark.parametrize("status", [200, 400, 500])
@given(
    body=st.one_of(JSON.map(json.dumps).map(str.encode), ANSWERS.map(json.dumps).map(str.encode))
)
@example(body=GOOD)
def test_any_document_too(status: int, body: bytes) -> None:
    try:
        deltas = answer(*(httpx.Response(status, stream=Body(body)) for _ in range(4)))
    except (ModelError, ContextOverflowError):
        assert (status, body) != (200, GOOD)
        return
    assert isinstance(deltas[-1], Finished)
    assert status == 200
    assert body != GOOD or joined(deltas) == "Blue."
