"""Protocol section 4: the events of a turn, what it stores, its tools, attachments and failures."""

import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import KEY_VARIABLE, Home
from tests.e2e.provider import API_KEY, Provider
from tests.e2e.talk import add, ask, begin_ask, check_size, view, window, words
from tests.e2e.turns import (
    close_buffer,
    events,
    failed_turn,
    joined,
    open_buffer,
    shape,
)

BAD_PARAMS = -32602
RESULT_FIELDS = {
    "turnId", "stopReason", "text", "firstSeq", "lastSeq", "steps", "usage", "contextSize",
}  # fmt: skip


# A plain turn


def test_a_plain_turn_tells_everything_in_order(server: Server, provider: Provider) -> None:
    provider.script(replies.text("Hel", "lo ", "there", usage=replies.usage_chunk(20, 3)))
    turn = begin_ask(server, "hi")
    done = turn.result()
    assert set(done) >= RESULT_FIELDS
    assert (done["stopReason"], done["text"], done["steps"]) == ("end_turn", "Hello there", 1)
    assert (done["firstSeq"], done["lastSeq"]) == (1, 2)
    assert (done["usage"]["inputTokens"], done["usage"]["outputTokens"]) == (20, 3)
    check_size(done["contextSize"])
    found = events(server, done)
    assert shape(found) == ["started", "stored:user", "text", "stored:assistant", "finished"]
    started = found[0]
    assert (started["agent"], started["model"], started["seq"]) == ("build", "fake/fake-model", 1)
    assert joined(found) == "Hello there"
    assert [e["seq"] for e in found if e["type"] == "stored"] == [1, 2]
    assert found[-1]["stopReason"] == "end_turn"
    assert found[0]["sessionId"] == view(server)["id"]
    finished = next(n for n in server.notifications if n["params"] == found[-1])
    assert server.notifications.index(finished) < turn.mark, "events come before the answer"
    assert words(server) == ["hi", "Hello there"]
    assert view(server)["busy"] is None
    usage = [e for e in found if e["type"] == "usage"]
    assert usage[-1]["usage"]["outputTokens"] == 3
    check_size(usage[-1]["contextSize"])


def test_the_request_is_what_the_provider_wants(server: Server, provider: Provider) -> None:
    add(server, "system", "Always rhyme.")
    add(server, "user", "one")
    add(server, "assistant", "two")
    ask(server, "three")
    body = provider.last.body
    assert [m["content"] for m in provider.last.messages] == ["one", "two", "three"]
    assert "Always rhyme." in provider.last.system
    assert (body["model"], body["stream"]) == ("fake-model", True)
    assert body["stream_options"]["include_usage"] is True
    assert {"read_file", "list_files", "glob", "grep"} <= set(provider.last.tool_names)
    assert API_KEY not in provider.last.raw.decode()


def test_a_prompt_of_blocks_is_stored_as_it_came(server: Server, provider: Provider) -> None:
    blocks = [
        {"type": "text", "text": "look", "x-y": 1},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    ]
    ask(server, blocks)
    assert window(server)[0] == ("user", blocks)
    sent = provider.last.messages[0]["content"]
    assert sent[0] == {"type": "text", "text": "look"}
    assert sent[1]["image_url"]["url"] == "data:image/png;base64,aGk="


@pytest.mark.parametrize(
    "prompt",
    ["", "  ", "\n\t", [], [{"type": "text", "text": " "}], [{"type": "text", "text": ""}]],
)
def test_a_blank_prompt_is_refused_and_stores_nothing(
    server: Server, provider: Provider, prompt: Any
) -> None:
    mark = len(server.notifications)
    assert server.error("tiro/turn/start", {"prompt": prompt}).code == BAD_PARAMS
    assert (view(server)["total"], provider.chats) == (0, [])
    assert [n for n in server.notifications[mark:] if n["method"] == "tiro/turn/event"] == []


@pytest.mark.parametrize(
    "prompt", [5, None, {"type": "text"}, [5], [{"text": "x"}], [{"type": "text", "text": 5}]]
)
def test_a_prompt_of_the_wrong_shape_is_refused(server: Server, prompt: Any) -> None:
    assert server.error("tiro/turn/start", {"prompt": prompt}).code in (BAD_PARAMS, -32040)
    assert view(server)["total"] == 0


# Attachments


def test_attachments_follow_the_users_own_text(server: Server, provider: Provider) -> None:
    given: list[dict[str, Any]] = [
        {"kind": "selection", "path": "/w/a.py", "text": "x = 1",
         "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 5}}},
        {"kind": "text", "text": "NOTE TO SELF"},
        {"kind": "diagnostics", "path": "/w/a.py", "text": "undefined name y"},
    ]  # fmt: skip
    ask(server, "why?", attachments=given)
    (_, content), _ = window(server)
    assert content[0] == {"type": "text", "text": "why?"}
    assert [(b["type"], b["kind"], b["text"]) for b in content[1:]] == [
        ("attachment", "selection", "x = 1"),
        ("attachment", "text", "NOTE TO SELF"),
        ("attachment", "diagnostics", "undefined name y"),
    ]
    assert content[1]["path"] == "/w/a.py"
    assert content[1]["range"] == given[0]["range"]
    sent = json.dumps(provider.last.messages[0])
    for part in ("why?", "x = 1", "/w/a.py", "NOTE TO SELF", "undefined name y"):
        assert part in sent
    assert view(server)["contextSize"]["breakdown"]["attachments"] > 0


def test_a_file_attachment_is_read_from_the_buffer_before_the_disk(
    server: Server, provider: Provider
) -> None:
    path = server.home.write("notes.txt", "on disk\n")
    ask(server, "a", attachments=[{"kind": "file", "path": str(path)}])
    assert "on disk" in json.dumps(provider.last.messages[-1])
    open_buffer(server, path.as_uri(), "not yet saved\n")
    ask(server, "b", attachments=[{"kind": "file", "path": path.as_uri()}])
    assert "not yet saved" in json.dumps(provider.last.messages[-1])
    block = next(b for b in window(server)[-2][1] if b["type"] == "attachment")
    assert (block["path"], block["text"]) == (str(path), "not yet saved\n")
    close_buffer(server, path.as_uri())


@pytest.mark.parametrize(
    "attachments",
    [[{"kind": "novel", "text": "x"}], [{"text": "x"}], ["x"], [{"kind": "text", "text": 5}],
     [{"kind": "selection", "text": "x", "range": {"start": 5}}]],
)  # fmt: skip
def test_odd_attachments_are_refused(server: Server, attachments: Any) -> None:
    error = server.error("tiro/turn/start", {"prompt": "x", "attachments": attachments})
    assert error.code == BAD_PARAMS
    assert "attachments[0]" in error.message
    assert view(server)["total"] == 0


# Agent and model of a turn


def test_agent_and_model_hold_for_the_turn_and_stay_if_there_was_none(
    server: Server, provider: Provider
) -> None:
    done = ask(server, "a", agent="plan", model="fake/other")
    assert provider.last.body["model"] == "other"
    assert (view(server)["agent"], view(server)["model"]) == ("plan", "fake/other")
    assert events(server, done)[0]["agent"] == "plan"
    done = ask(server, "b", agent="build", model="fake/third")
    assert provider.last.body["model"] == "third"
    assert events(server, done)[0]["agent"] == "build"
    assert (view(server)["agent"], view(server)["model"]) == ("plan", "fake/other")


def test_the_first_prompt_gives_the_default_agent(server: Server) -> None:
    ask(server)
    assert view(server)["agent"] == "build"


def test_an_unknown_agent_refuses_the_turn(server: Server, provider: Provider) -> None:
    error = server.error("tiro/turn/start", {"prompt": "x", "agent": "nobody"})
    assert (error.code, error.kind) == (-32030, "agentNotFound")
    assert (view(server)["total"], view(server)["agent"], provider.chats) == (0, None, [])


def test_without_a_usable_model_nothing_happens(start: StartServer) -> None:
    server = start(env={KEY_VARIABLE: ""})
    error = server.error("tiro/turn/start", {"prompt": "x"})
    assert (error.code, error.kind) == (-32031, "modelNotConfigured")
    tried = error.data["tried"]
    assert tried
    assert all(row["provider"] and row["reason"] for row in tried)
    assert "fake" in [row["provider"] for row in tried]
    assert view(server)["total"] == 0
    assert server.events() == []
    assert server.error("tiro/turn/start", {"prompt": "x", "model": "nope/x"}).kind == (
        "modelNotConfigured"
    )


# Ends of a turn


def test_max_steps_ends_the_turn_without_another_request(
    start: StartServer, home: Home, provider: Provider
) -> None:
    home.write_config(turn={"max_steps": 3})
    server = start()
    home.write("a.txt", "text")
    provider.script(
        *(replies.tools((f"c{n}", "read_file", {"path": "a.txt"})) for n in range(5)),
    )
    done = ask(server)
    assert (done["stopReason"], done["steps"]) == ("max_steps", 3)
    assert len(provider.chats) == 3
    assert len([word for word in words(server) if word.startswith("result:")]) == 3
    provider.reset()
    assert ask(server, "go on")["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("length", "max_tokens"), ("content_filter", "refusal"), ("stop", "end_turn")],
)
def test_stop_reasons_are_the_providers(
    server: Server, provider: Provider, finish: str, stop: str
) -> None:
    provider.script(replies.text("half", finish=finish))
    done = ask(server)
    assert (done["stopReason"], done["text"]) == (stop, "half")
    assert events(server, done)[-1]["stopReason"] == stop
    assert ask(server)["stopReason"] == "end_turn"


def test_an_empty_answer_stores_nothing(server: Server, provider: Provider) -> None:
    provider.script(replies.text(), replies.text("", ""))
    for _ in range(2):
        done = ask(server, "say nothing")
        assert (done["stopReason"], done["text"]) == ("end_turn", "")
        assert events(server, done)[-1]["stopReason"] == "end_turn"
    assert words(server) == ["say nothing", "say nothing"]
    ask(server)


def test_thinking_alone_is_stored_and_never_sent_back_as_text(
    server: Server, provider: Provider
) -> None:
    provider.script(
        replies.stream(
            replies.chunk({"reasoning_content": "let me "}),
            replies.chunk({"reasoning_content": "think"}),
        )
    )
    done = ask(server)
    assert (done["text"], done["stopReason"]) == ("", "end_turn")
    assert joined(events(server, done), "thinking") == "let me think"
    blocks = window(server)[1][1]
    assert [b["type"] for b in blocks] == ["thinking"]
    assert blocks[0]["thinking"] == "let me think"
    ask(server, "and?")
    assert "let me think" not in json.dumps(provider.last.messages)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_retried_and_tells_why(
    server: Server, provider: Provider, status: int
) -> None:
    provider.script(replies.error(status, "the provider says no"))
    error, _ = failed_turn(server)
    assert (error.data["status"], error.data["retryable"]) == (status, False)
    assert "the provider says no" in error.data["body"]
    assert len(provider.chats) == 1
    assert words(server) == ["go"]
    assert ask(server, "again")["text"] == "ok"


def test_a_secret_in_the_providers_answer_goes_nowhere(
    start: StartServer, provider: Provider
) -> None:
    provider.script(replies.error(401, f"bad key {API_KEY} " + "x" * 10_000))
    server = start()
    error, found = failed_turn(server)
    assert len(error.data["body"].encode()) <= 2048
    provider.script(replies.text(f"your key is {API_KEY}"))
    ask(server, "what is my key?")
    server.request("tiro/session/save")
    assert API_KEY not in json.dumps([error.error, found])
    assert API_KEY not in server.stderr_text()
    for path, content in server.home.contents().items():
        if path.suffix in (".json", ".journal", ".log"):
            assert API_KEY.encode() not in content, path


def test_a_turn_resizes_by_the_policy_and_says_so(server: Server, provider: Provider) -> None:
    for number in range(4):
        add(server, "user", f"old question {number}")
        add(server, "assistant", f"old answer {number}")
    server.request("tiro/session/configure", {"limit": {"messages": 3}})
    done = ask(server, "new question")
    told = next(e for e in events(server, done) if e["type"] == "resize")
    assert (told["decision"]["type"], told["decision"]["reason"]) == (
        "lite",
        "max_keep_messages_count",
    )
    assert told["evicted"] >= 5
    assert told["tokensAfter"] < told["tokensBefore"]
    sent = [m["content"] for m in provider.last.messages]
    assert sent[-1] == "new question"
    assert len(sent) <= 4
    assert len(view(server, limit=50)["messages"]) == 10
