"""What holds for a turn in both wire styles: ends, faults, waits, limits, usage, blank answers."""

import base64
import json
from typing import Any

import pytest

from tests.e2e import anthropic_replies, replies
from tests.e2e.client import Server
from tests.e2e.provider import API_KEY, Provider
from tests.e2e.replies import Break, Hold, Pause, Reply
from tests.e2e.styles import Style, both_styles
from tests.e2e.talk import add, ask, begin_ask, view, window, words
from tests.e2e.turns import events, joined, shape
from tests.tools.images import png


def asked(server: Server, style: Style, prompt: Any = "hi") -> dict[str, Any]:
    """A turn in this style that ends well."""
    return ask(server, prompt, model=style.model)


def fails(server: Server, style: Style) -> tuple[Any, list[dict[str, Any]]]:
    """A turn in this style that must fail: its error and its events."""
    mark = len(server.events())
    error = begin_ask(server, "go", model=style.model).error()
    assert (error.code, error.kind) == (-32032, "modelFailed")
    assert error.data["provider"] == style.model.partition("/")[0]
    return error, server.events()[mark:]


def check_usable(server: Server, style: Style, provider: Provider) -> None:
    """The next prompt is answered, and the strict provider takes the history."""
    assert asked(server, style, "again")["text"] == "ok"
    assert provider.refused == []


def spoken(style: Style, provider: Provider) -> list[str]:
    """The roles of the newest request, as a check that it came in this style."""
    assert provider.last.is_anthropic == style.model.startswith("claude/")
    return [message["role"] for message in provider.last.messages]


# A good turn


@both_styles
def test_a_turn_with_tools(server: Server, provider: Provider, style: Style) -> None:
    server.home.write("a.txt", "content of A é漢🙂")
    server.home.write("b.txt", "content of B")
    uses = [("call_a", "read_file", {"path": "a.txt"}), ("call_b", "read_file", {"path": "b.txt"})]
    provider.script(style.tools(*uses), style.text("Both ", "read.\u2028"))
    done = asked(server, style)
    assert (done["text"], done["stopReason"], done["steps"]) == ("Both read.\u2028", "end_turn", 2)
    found = events(server, done)
    assert {"toolUse:call_a:done", "toolUse:call_b:done"} <= set(shape(found))
    assert joined(found) == done["text"]
    sent = json.dumps(provider.last.messages, ensure_ascii=False)
    assert sent.index("content of A é漢🙂") < sent.index("content of B")
    assert spoken(style, provider)[:2] == ["user", "assistant"]
    assert set(provider.last.tool_names) >= {"read_file", "grep"}
    assert provider.last.system
    check_usable(server, style, provider)


@both_styles
def test_the_bytes_may_come_one_by_one(server: Server, provider: Provider, style: Style) -> None:
    """B28."""
    steps = [*style.begun("é漢🙂"), *style.ended()]
    raw = b"".join(step for step in steps if isinstance(step, bytes)).replace(b"\n", b"\r\n")
    provider.script(Reply([b": ping\n\n", *(raw[i : i + 1] for i in range(len(raw)))]))
    assert asked(server, style)["text"] == "é漢🙂"


def test_b23_each_style_counts_its_cached_tokens_once(server: Server, provider: Provider) -> None:
    told = {
        "input_tokens": 3, "cache_read_input_tokens": 180_000, "cache_creation_input_tokens": 99,
        "output_tokens": 140,
    }  # fmt: skip
    cached = anthropic_replies.answer(anthropic_replies.text_block(0, "x"), usage=told)
    plain = replies.text("x", usage=replies.usage_chunk(184_704, 49, cached=183_936))
    for model, reply, total in (
        ("claude/fake-model", cached, 180_242),
        ("fake/fake-model", plain, 184_753),
    ):
        provider.script(reply)
        usage = ask(server, model=model)["usage"]
        counts = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
        assert sum(usage[key] for key in counts) == total


# B30: how a stream may end


@both_styles
def test_b30_a_stream_that_breaks_keeps_what_came(
    server: Server, provider: Provider, style: Style
) -> None:
    half = style.begun("half ", "answer")
    for end in (Reply([*half, Break()]), Reply(half), Reply([*half, Break(reset=True)])):
        provider.script(end)
        count = len(provider.chats)
        _, found = fails(server, style)
        assert len(provider.chats) == count + 1, "nothing is retried after the first delta"
        assert joined(found) == words(server)[-1] == "half answer"
        assert view(server)["messages"][-1]["metadata"]["tiro"]["interrupted"] is True
    check_usable(server, style, provider)


def test_b30_a_reason_to_stop_is_no_end_in_the_anthropic_style(
    server: Server, provider: Provider
) -> None:
    delta, _ = anthropic_replies.ending()
    steps = [anthropic_replies.start(), *anthropic_replies.text_block(0, "half"), delta]
    provider.script(Reply(steps))
    error = begin_ask(server, "go", model="claude/fake-model").error()
    assert error.kind == "modelFailed"
    assert view(server)["messages"][-1]["metadata"]["tiro"]["interrupted"] is True


@both_styles
def test_b30_cut_tool_arguments_run_nothing(
    server: Server, provider: Provider, style: Style
) -> None:
    server.home.write("a.txt", "text")
    provider.script(Reply([*style.begun_use("c1", "read_file", '{"path": "a.txt"'), Break()]))
    _, found = fails(server, style)
    assert not [e for e in found if e.get("status") in ("running", "done")]
    assert words(server) == ["go"]
    check_usable(server, style, provider)


@both_styles
def test_b30_a_socket_that_stays_open_is_no_hang(
    server: Server, provider: Provider, style: Style
) -> None:
    hold = Hold()
    provider.script(Reply([*style.begun("whole"), *style.ended(), hold]))
    turn = begin_ask(server, "go", model=style.model)
    hold.wait()
    assert turn.result()["text"] == "whole"
    hold.release()


# B32: cut by the output limit


@both_styles
@pytest.mark.parametrize("finish", ["length", "stop", "tool_calls"])
def test_b32_arguments_cut_by_the_limit_run_nothing_and_are_repeated_once(
    server: Server, provider: Provider, style: Style, finish: str
) -> None:
    server.home.write("a", "SHOULD NOT BE READ")
    finish = anthropic_replies.STOP_REASONS[finish] if "claude" in style.model else finish
    cut = style.tools(("c1", "read_file", '{"path": "a", "li'), finish=finish)
    provider.script(cut, cut, cut)
    done = asked(server, style)
    assert (done["stopReason"], done["steps"]) == ("max_tokens", 2)
    told = json.dumps(window(server))
    assert "SHOULD NOT BE READ" not in told
    assert told.count("truncated") == 2
    provider.reset()
    check_usable(server, style, provider)


@both_styles
def test_b32_an_empty_answer_that_was_cut_is_reported_and_not_stored(
    server: Server, provider: Provider, style: Style
) -> None:
    provider.script(Reply([*style.begun(""), *style.ended("length")]))
    done = asked(server, style)
    assert (done["stopReason"], done["text"]) == ("max_tokens", "")
    assert words(server) == ["hi"]
    check_usable(server, style, provider)


# B33, B34: faults and waits


@both_styles
def test_b33_an_error_inside_the_stream_is_told_never_text(
    server: Server, provider: Provider, style: Style
) -> None:
    provider.script(Reply([*style.begun("a", "b", "c"), style.fault("overloaded now")]))
    error, found = fails(server, style)
    assert joined(found) == words(server)[-1] == "abc"
    assert "overloaded now" in json.dumps(error.error)
    assert len(provider.chats) == 1
    check_usable(server, style, provider)


@both_styles
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_b33_a_busy_provider_is_asked_again(
    server: Server, provider: Provider, style: Style, status: int
) -> None:
    wait = [("retry-after", "0")]
    provider.script(style.error(status, "busy", wait), style.text("after all"))
    done = asked(server, style)
    assert done["text"] == joined(events(server, done)) == "after all"
    assert [e["attempt"] for e in events(server, done) if e["type"] == "retry"] == [1]


@both_styles
def test_b33_before_the_first_delta_it_tries_again(
    server: Server, provider: Provider, style: Style
) -> None:
    started = style.begun()
    provider.script(Reply([*started, style.fault("overloaded")]), style.text("after all"))
    done = asked(server, style)
    assert done["text"] == "after all"
    assert words(server) == ["hi", "after all"]
    assert len(provider.chats) == 2


@both_styles
def test_b34_a_wait_is_respected_told_and_can_be_cancelled(
    server: Server, provider: Provider, style: Style
) -> None:
    provider.script(style.error(429, "slow", [("retry-after", "0.7")]), style.text("later"))
    assert asked(server, style)["text"] == "later"
    first, second = provider.chats
    assert second.arrived - first.arrived >= 0.7
    provider.script(style.error(529, "slow", [("retry-after", "50")]))
    turn = begin_ask(server, "go", model=style.model)
    server.wait_until(lambda: server.events()[-1]["type"] == "retry", "the wait")
    server.request("tiro/turn/cancel")
    assert turn.result()["stopReason"] == "cancelled"
    provider.script(style.error(429, "much later", [("retry-after", "3600")]))
    error, _ = fails(server, style)
    assert (error.data["status"], error.data["retryAfterSeconds"]) == (429, 3600)
    check_usable(server, style, provider)


@both_styles
@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_b34_what_will_not_change_is_not_repeated(
    server: Server, provider: Provider, style: Style, status: int
) -> None:
    provider.script(style.error(status, f"no, not with {API_KEY}"))
    error, _ = fails(server, style)
    assert error.data["status"] == status
    assert not error.data["retryable"]
    assert len(provider.chats) == 1
    assert API_KEY not in json.dumps(error.error), "B52"


# B36: blank and cut answers


@both_styles
@pytest.mark.parametrize("case", ["blank", "empty", "thinking", "cancelled thinking", "cancelled"])
def test_b36_blank_and_cut_answers_leave_a_usable_session(
    server: Server, provider: Provider, style: Style, case: str
) -> None:
    thought = style.thought("hm")
    hold = Hold()
    steps = {
        "blank": [*style.begun("\n\n"), *style.ended()],
        "empty": [*style.begun(), *style.ended()],
        "thinking": [*thought, *style.ended()],
        "cancelled thinking": [*thought, hold],
        "cancelled": [*style.begun("\n", "\n"), hold],
    }[case]
    provider.script(Reply(steps))
    turn = begin_ask(server, "hi", model=style.model)
    if hold in steps:
        hold.wait()
        server.request("tiro/turn/cancel")
    assert turn.result()["text"] == ""
    check_usable(server, style, provider)
    assert "hm" not in json.dumps(provider.last.messages)


@both_styles
@pytest.mark.parametrize("data", ["", "no base64!", "iVB", "iVBO\n", "é" * 4])
def test_a_picture_that_cannot_be_read_does_not_end_a_session(
    server: Server, provider: Provider, style: Style, data: str
) -> None:
    """P1: what a provider refuses would be sent again with every later request."""
    source = {"type": "base64", "media_type": "image/png", "data": data}
    add(server, "user", [{"type": "text", "text": "look"}, {"type": "image", "source": source}])
    assert asked(server, style, "what is it?")["text"] == "ok"
    assert provider.refused == []
    assert view(server)["messages"][0]["content"][1]["source"] == source


@both_styles
def test_an_image_that_a_tool_reads_is_seen(
    server: Server, provider: Provider, style: Style
) -> None:
    """Also in later requests, and beside another result."""
    server.home.write("logo.png", "").write_bytes(png())
    server.home.write("a.txt", "text")
    uses = [("c1", "read_file", {"path": "logo.png"}), ("c2", "read_file", {"path": "a.txt"})]
    provider.script(style.tools(*uses), style.text("grey"), style.text("still grey"))
    done = asked(server, style)
    shown = [e["content"] for e in events(server, done) if e["type"] == "toolResult"]
    assert "logo.png (PNG image, 3 x 2 pixels, 68 bytes)" in shown
    assert asked(server, style, "and now?")["text"] == "still grey"
    data = base64.b64encode(png()).decode()
    assert [data in json.dumps(chat.messages) for chat in provider.chats] == [False, True, True]


@both_styles
def test_b36_a_tool_that_says_nothing(server: Server, provider: Provider, style: Style) -> None:
    server.home.write("empty.txt", "")
    uses = [("c1", "read_file", {"path": "empty.txt"}), ("c2", "glob", {"pattern": "*.nothing"})]
    provider.script(style.tools(*uses), Reply([Pause(0.01), *style.text("fine").steps]))
    assert asked(server, style)["text"] == "fine"
    check_usable(server, style, provider)
