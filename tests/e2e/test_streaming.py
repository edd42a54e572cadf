"""What arrives from a provider, byte by byte (B28 to B31, B44), and what goes out to the editor."""

import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.provider import Provider
from tests.e2e.replies import DONE, ROLE, Break, Hold, Pause, Reply, Step
from tests.e2e.talk import ask, begin_ask, view, window, words
from tests.e2e.turns import events, failed_turn, joined

TEXT = "é漢\U0001f642"


def body(text: str = TEXT) -> bytes:
    """A whole text stream as one piece of bytes."""
    pieces = [step for step in replies.text(text).steps if isinstance(step, bytes)]
    return b"".join(pieces)


def tool_body(arguments: dict[str, Any]) -> bytes:
    """A whole tool stream as one piece of bytes, the arguments unescaped."""
    given = json.dumps(arguments, ensure_ascii=False)
    call = replies.calls_chunk(replies.call("c1", "read_file", given))
    return ROLE + call + replies.chunk(finish="tool_calls") + DONE


# B28: bytes, not characters


def test_b28_every_split_of_the_text_gives_the_text(server: Server, provider: Provider) -> None:
    raw = body()
    start, end = raw.index(TEXT.encode()), raw.index(TEXT.encode()) + len(TEXT.encode())
    for position in range(start - 2, end + 3):
        provider.script(Reply(replies.split(raw, position)))
        assert ask(server, f"cut at {position}")["text"] == TEXT


def test_b28_byte_by_byte_gives_the_text(server: Server, provider: Provider) -> None:
    raw = body()
    provider.script(Reply(replies.split(raw, *range(1, len(raw)))))
    done = ask(server)
    assert done["text"] == joined(events(server, done)) == TEXT
    assert words(server)[-1] == TEXT


def test_b28_splits_inside_tool_arguments(server: Server, provider: Provider) -> None:
    path = f"{TEXT}.txt"
    server.home.write(path, "FOUND IT")
    raw = tool_body({"path": path})
    start = raw.index("é".encode())
    for number, position in enumerate(range(start, start + len(TEXT.encode()) + 1)):
        provider.script(Reply(replies.split(raw.replace(b'"c1"', b'"c%d"' % number), position)))
        ask(server, f"cut at {position}")
        assert "FOUND IT" in provider.last.messages[-1]["content"]
    use = next(
        c[0] for _, c in window(server) if isinstance(c, list) and c[0]["type"] == "tool_use"
    )
    assert use["input"] == {"path": path}


NOISE = {
    "comments": lambda raw: b": OPENROUTER\n\n:\n\n" + raw.replace(b"\n\n", b"\n\n: x\n\n"),
    "fields": lambda raw: b"event: message\nid: 5\nretry: 100\n" + raw,
    "blank lines": lambda raw: b"\n\n\n" + raw.replace(b"\n\n", b"\n\n\n\n"),
    "no space": lambda raw: raw.replace(b"data: ", b"data:"),
    "crlf": lambda raw: raw.replace(b"\n", b"\r\n"),
    "cr": lambda raw: raw.replace(b"\n", b"\r"),
    "two data lines": lambda raw: raw.replace(b'"choices":', b'\ndata: "choices":'),
    "bom": lambda raw: b"\xef\xbb\xbf" + raw,
    "unknown field": lambda raw: raw.replace(b"data: ", b"what: ever\ndata: "),
    "no last blank line": lambda raw: raw[:-1],
}  # fmt: skip


@pytest.mark.parametrize("noise", NOISE)
def test_b28_noise_between_events_is_not_text(
    server: Server, provider: Provider, noise: str
) -> None:
    raw = NOISE[noise](body())
    provider.script(Reply([raw]), Reply(replies.split(raw, *range(1, len(raw), 7))))
    assert [ask(server, "go")["text"] for _ in range(2)] == [TEXT, TEXT]


def test_b28_a_wrong_charset_is_not_obeyed(server: Server, provider: Provider) -> None:
    header = [("content-type", "text/event-stream; charset=iso-8859-1")]
    provider.script(Reply([body()], headers=header))
    assert ask(server)["text"] == TEXT


# B29: only CR, LF and CRLF end a line


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085"])
def test_b29_raw_separators_are_text(server: Server, provider: Provider, mark: str) -> None:
    text = f"one{mark}two{mark}{mark}"
    server.home.write(f"a{mark}b.txt", "FOUND IT")
    provider.script(Reply([body(text)]), Reply([tool_body({"path": f"a{mark}b.txt"})]))
    assert mark.encode() in body(text)
    done = ask(server)
    assert done["text"] == joined(events(server, done)) == text
    ask(server, "now the tool")
    assert "FOUND IT" in provider.last.messages[-1]["content"]


@pytest.mark.parametrize("mark", [b"\x0b", b"\x0c", b"\x1c"])
def test_b29_control_characters_give_a_clean_error_or_the_text(
    server: Server, provider: Provider, mark: bytes
) -> None:
    provider.script(Reply([body("before after").replace(b"before ", b"before" + mark)]))
    answer = begin_ask(server, "go").message()
    if "error" in answer:
        assert answer["error"]["data"]["kind"] == "modelFailed"
    else:
        assert answer["result"]["text"] == f"before{mark.decode()}after"
    assert ask(server, "again")["text"] == "ok"


# B30: how a stream may end


def test_b30_a_stream_without_any_finish_mark_is_a_failure(
    server: Server, provider: Provider
) -> None:
    two = [ROLE, replies.text_chunk("half "), replies.text_chunk("answer")]
    for end in (Reply([*two, Break()]), Reply(two), Reply(two, framing="close")):
        provider.script(end)
        count = len(provider.chats)
        error, found = failed_turn(server)
        assert len(provider.chats) == count + 1, "nothing is retried after the first delta"
        assert error.data["retryable"] in (True, False)
        assert joined(found) == "half answer"
        partial = view(server)["messages"][-1]
        assert words(server)[-1] == "half answer"
        assert partial["metadata"]["tiro"]["interrupted"] is True
    assert ask(server, "again")["text"] == "ok"


def test_b30_done_without_a_finish_reason_is_complete(server: Server, provider: Provider) -> None:
    provider.script(Reply([ROLE, replies.text_chunk("whole"), DONE]))
    done = ask(server)
    assert (done["text"], done["stopReason"]) == ("whole", "end_turn")
    assert "tiro" not in view(server)["messages"][-1].get("metadata", {})


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_b30_a_finish_reason_without_done_is_complete(
    server: Server, provider: Provider, framing: Any
) -> None:
    pieces = [ROLE, replies.text_chunk("whole"), replies.chunk(finish="stop")]
    provider.script(Reply(pieces, framing=framing))
    done = ask(server)
    assert (done["text"], done["stopReason"]) == ("whole", "end_turn")


def test_b30_a_finish_reason_and_then_a_broken_connection_is_complete(
    server: Server, provider: Provider
) -> None:
    pieces: list[Step] = [ROLE, replies.text_chunk("whole"), replies.chunk(finish="stop")]
    provider.script(Reply([*pieces, Pause(0.05), Break()]))
    assert ask(server)["text"] == "whole"


def test_b30_a_socket_that_stays_open_after_done_is_no_hang(
    server: Server, provider: Provider
) -> None:
    hold = Hold()
    provider.script(Reply([*replies.text("whole").steps, hold]))
    turn = begin_ask(server, "go")
    hold.wait()
    assert turn.result()["text"] == "whole"
    hold.release()
    assert ask(server)["text"] == "ok"


def test_b30_cut_tool_arguments_run_nothing(server: Server, provider: Provider) -> None:
    server.home.write("a.txt", "text")
    start = replies.calls_chunk(replies.call("c1", "read_file", '{"path": "a'))
    provider.script(Reply([ROLE, replies.text_chunk("I look"), start, Break()]))
    _, found = failed_turn(server)
    assert not [e for e in found if e.get("status") in ("running", "done")]
    assert words(server)[1].startswith("I look")
    assert ask(server, "again")["text"] == "ok"


@pytest.mark.parametrize("finish", ["length", "stop", "tool_calls"])
def test_b32_arguments_cut_by_the_limit_run_nothing(
    server: Server, provider: Provider, finish: str
) -> None:
    server.home.write("a", "SHOULD NOT BE READ")
    cut = replies.calls_chunk(replies.call("c1", "read_file", '{"path": "a", "li'))
    provider.script(replies.stream(cut, finish=finish))
    ask(server)
    assert "SHOULD NOT BE READ" not in json.dumps(window(server))
    ask(server, "again")


# B31: the shapes of tool calls


def tool_steps(case: str) -> list[bytes]:
    """The chunks of two calls, a (a.txt) and b (b.txt), in the given odd form."""
    call, chunk = replies.call, replies.calls_chunk
    a, b = '{"path": "a.txt"}', '{"path": "b.txt"}'
    whole: dict[str, list[bytes]] = {
        "interleaved": [
            chunk(call("a", "read_file", "", 0)),
            chunk(call("b", "read_file", "", 1)),
            chunk(call(None, None, a[:6], 0)),
            chunk(call(None, None, b[:9], 1)),
            chunk(call(None, None, a[6:], 0)),
            chunk(call(None, None, b[9:], 1)),
        ],
        "both in each chunk": [
            chunk(call("a", "read_file", a[:5], 0), call("b", "read_file", b[:8], 1)),
            chunk(call(None, None, a[5:], 0), call(None, None, b[8:], 1)),
        ],
        "all index 0": [
            chunk(call("a", "read_file", a[:5], 0)),
            chunk(call("a", None, a[5:], 0)),
            chunk(call("b", "read_file", b[:5], 0)),
            chunk(call("b", None, b[5:], 0)),
        ],
        "all index 0, id only first": [
            chunk(call("a", "read_file", a[:5], 0)),
            chunk(call(None, None, a[5:], 0)),
            chunk(call("b", "read_file", b[:5], 0)),
            chunk(call(None, None, b[5:], 0)),
        ],
        "no index": [
            chunk(call("a", "read_file", a, None)),
            chunk(call("b", "read_file", b, None)),
        ],
        "no index, one chunk": [
            chunk(call("a", "read_file", a, None), call("b", "read_file", b, None)),
        ],
        "index from 1": [
            chunk(call("a", "read_file", a, 1)),
            chunk(call("b", "read_file", b, 2)),
        ],
        "name in two deltas": [
            chunk(call("a", "read_", "", 0)),
            chunk(call(None, "file", a, 0)),
            chunk(call("b", "read_file", b, 1)),
        ],
        "arguments as objects": [
            replies.chunk(
                {
                    "tool_calls": [
                        {"index": n, "id": id_, "type": "function",
                         "function": {"name": "read_file", "arguments": {"path": path}}}
                        for n, (id_, path) in enumerate((("a", "a.txt"), ("b", "b.txt")))
                    ]
                }
            )
        ],
    }  # fmt: skip
    return whole[case]


CASES = [
    "interleaved", "both in each chunk", "all index 0", "all index 0, id only first", "no index",
    "no index, one chunk", "index from 1", "name in two deltas", "arguments as objects",
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_b31_pieces_join_the_right_call(server: Server, provider: Provider, case: str) -> None:
    server.home.write("a.txt", "content of A")
    server.home.write("b.txt", "content of B")
    provider.script(replies.stream(*tool_steps(case), finish="tool_calls"))
    ask(server)
    told = {m["tool_call_id"]: m["content"] for m in provider.last.messages if m["role"] == "tool"}
    assert list(told) == ["a", "b"]
    assert "content of A" in told["a"]
    assert "content of B" in told["b"]
    uses = [b["input"] for b in window(server)[1][1] if b["type"] == "tool_use"]
    assert uses == [{"path": "a.txt"}, {"path": "b.txt"}]


@pytest.mark.parametrize("arguments", ["", "null", "{}", None, " "])
def test_b31_no_arguments_mean_an_empty_object(
    server: Server, provider: Provider, arguments: str | None
) -> None:
    entry = replies.call("a", "list_files", arguments)
    provider.script(replies.stream(replies.calls_chunk(entry), finish="tool_calls"))
    ask(server)
    assert next(b for b in window(server)[1][1] if b["type"] == "tool_use")["input"] == {}
    assert [m["role"] for m in provider.last.messages] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    "arguments",
    [
        *('{"path": "a.txt"', "path=a.txt", '["a.txt"]', '"a.txt"', "5"),
        '{"path": ' + "[" * 490 + "]" * 490 + "}",
    ],
)
def test_b31_unreadable_arguments_are_shown_and_not_run(
    server: Server, provider: Provider, arguments: str
) -> None:
    server.home.write("a.txt", "SHOULD NOT BE READ")
    entry = replies.call("a", "read_file", arguments)
    provider.script(replies.stream(replies.calls_chunk(entry), finish="tool_calls"))
    done = ask(server)
    assert done["stopReason"] == "end_turn"
    told = provider.last.messages[-1]
    assert told["role"] == "tool"
    assert arguments in told["content"]
    assert "SHOULD NOT BE READ" not in told["content"]
    assert [e["status"] for e in events(server, done) if e["type"] == "toolUse"][-1] == "failed"
    ask(server, "again")


def test_b31_null_tool_calls_are_none(server: Server, provider: Provider) -> None:
    steps = [
        replies.chunk({"content": "just ", "tool_calls": None}),
        replies.chunk({"content": "text", "tool_calls": []}),
        replies.chunk({"content": None}),
    ]
    provider.script(replies.stream(*steps))
    done = ask(server)
    assert (done["text"], done["stopReason"], done["steps"]) == ("just text", "end_turn", 1)


def test_calls_without_or_with_double_ids_are_answered(server: Server, provider: Provider) -> None:
    server.home.write("a.txt", "content of A")
    for _ in range(2):
        given = [f'{{"path": "a.txt", "end_line": {n + 1}}}' for n in range(3)]
        entries = [replies.call("same", "read_file", given[n], n) for n in range(2)]
        none = replies.call(None, "read_file", given[2], 2)
        provider.script(replies.stream(replies.calls_chunk(*entries, none), finish="tool_calls"))
        assert ask(server)["stopReason"] == "end_turn"
    told = [m for m in provider.last.messages if m["role"] == "tool"]
    assert len(told) == 6
    assert all("content of A" in m["content"] for m in told)


def test_odd_chunks_are_no_failure(server: Server, provider: Provider) -> None:
    odd = [
        replies.event({"choices": []}),
        replies.event({"choices": None, "usage": None}),
        replies.event({"object": "ping"}),
        replies.event({"choices": [{"index": 0, "delta": None}]}),
        replies.event({"choices": [{"index": 0, "delta": {"content": ""}, "logprobs": None}]}),
        replies.text_chunk("fine"),
    ]
    provider.script(replies.stream(*odd))
    assert ask(server)["text"] == "fine"
