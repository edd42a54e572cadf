"""Protocol section 4: the events of a turn, what it stores, its tools, attachments and failures."""

import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import KEY_VARIABLE, Home
from tests.e2e.provider import API_KEY, Provider
from tests.e2e.talk import add, ask, begin_ask, result, use, view, window, words
from tests.e2e.test_session import check_size

BAD_PARAMS = -32602
RESULT_FIELDS = {
    "turnId", "stopReason", "text", "firstSeq", "lastSeq", "steps", "usage", "contextSize",
}  # fmt: skip


def events(server: Server, done: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a finished turn, checked for what holds for every turn."""
    found = server.events(done["turnId"])
    assert [e["n"] for e in found] == list(range(1, len(found) + 1))
    assert found[0]["type"] == "started"
    assert [e["type"] for e in found].count("finished") == 1
    assert found[-1]["type"] == "finished"
    assert len({e["sessionId"] for e in found}) == 1
    return found


def shape(found: list[dict[str, Any]]) -> list[str]:
    """The types of events in order, text joined, usage left out."""
    short: list[str] = []
    for event in found:
        name = event["type"]
        if name == "toolUse":
            name = f"toolUse:{event['toolUse']['id']}:{event['status']}"
        elif name == "stored":
            name = f"stored:{event['role']}"
        if name != "usage" and not (name == "text" and short[-1:] == ["text"]):
            short.append(name)
    return short


def joined(found: list[dict[str, Any]], type_: str = "text") -> str:
    return "".join(e["delta"] for e in found if e["type"] == type_)


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


# Tools


def test_a_tool_turn_tells_and_stores_every_step(server: Server, provider: Provider) -> None:
    server.home.write("a.txt", "first line\nsecond line\n")
    provider.script(
        replies.tools(("c1", "read_file", {"path": "a.txt"}), before="I look. "),
        replies.text("It has two lines."),
    )
    done = ask(server, "how long is a.txt?")
    assert (done["text"], done["steps"], done["firstSeq"], done["lastSeq"]) == (
        "It has two lines.",
        2,
        1,
        4,
    )
    assert done["usage"]["outputTokens"] == 10
    found = events(server, done)
    names = [name for name in shape(found) if not name.startswith("toolUse")]
    assert sorted(names[4:6]) == ["stored:tool", "toolResult"]
    assert names[:4] == ["started", "stored:user", "text", "stored:assistant"]
    assert names[6:] == ["text", "stored:assistant", "finished"]
    statuses = [e["status"] for e in found if e["type"] == "toolUse"]
    assert statuses == ["proposed", "running", "done"]
    assert [e["toolUse"] for e in found if e["type"] == "toolUse"] == [
        {"id": "c1", "name": "read_file", "input": {"path": "a.txt"}}
    ] * 3
    assert all(e.get("rule") for e in found if e.get("status") in ("running", "done"))
    shown = next(e for e in found if e["type"] == "toolResult")
    assert (shown["toolUseId"], shown["isError"], shown["truncated"]) == ("c1", False, False)
    assert "first line" in shown["content"]
    kept = window(server)
    assert kept[1][1] == [{"type": "text", "text": "I look. "}, use("c1", path="a.txt")]
    assert kept[2][1]["tool_use_id"] == "c1"
    assert "second line" in kept[2][1]["content"]
    assert "second line" in provider.last.messages[-1]["content"]


def run_tool(
    server: Server, provider: Provider, name: str, given: Any, id_: str = "c1"
) -> tuple[str, bool, list[dict[str, Any]]]:
    """One tool use in a turn of its own: what the model is told, is_error, the events."""
    provider.script(replies.tools((id_, name, given)))
    done = ask(server, "use it")
    block = view(server)["messages"][-2]["content"]
    assert block["type"] == "tool_result"
    told = provider.last.messages[-1]["content"]
    text = told if isinstance(told, str) else json.dumps(told)
    return text, block.get("is_error", False), events(server, done)


def test_the_read_tools_read_the_workspace(server: Server, provider: Provider) -> None:
    server.home.write("src/one.py", "import os\nNEEDLE = 1\n")
    server.home.write("src/two.txt", "no match\n")
    server.home.write("notes.md", "the NEEDLE is here\n")
    text, failed, _ = run_tool(server, provider, "list_files", {"path": "."}, "l1")
    assert not failed
    assert "notes.md" in text
    assert "src" in text
    text, failed, _ = run_tool(server, provider, "glob", {"pattern": "**/*.py"}, "g1")
    assert (failed, "one.py" in text, "two.txt" in text) == (False, True, False)
    text, failed, _ = run_tool(server, provider, "grep", {"pattern": "NEEDLE"}, "r1")
    assert not failed
    assert "one.py" in text
    assert "notes.md" in text
    assert "2" in text, "the line number"
    assert "two.txt" not in text


def test_a_model_can_act_on_every_failure_of_a_tool(server: Server, provider: Provider) -> None:
    for number, (name, given, part) in enumerate(
        [
            ("read_file", {"path": "missing.txt"}, "missing.txt"),
            ("read_file", {}, "path"),
            ("read_file", {"path": 5}, "path"),
            ("no_such_tool", {"a": 1}, "no_such_tool"),
            ("grep", {"pattern": "("}, "("),
        ]
    ):
        text, failed, found = run_tool(server, provider, name, given, f"c{number}")
        assert failed, name
        assert part in text
        assert [e["status"] for e in found if e["type"] == "toolUse"][-1] == "failed"
        assert next(e for e in found if e["type"] == "toolResult")["isError"] is True
        assert "Traceback" not in text
        assert str(server.home.root) not in text.replace(str(server.home.workspace), "")


def test_several_uses_in_one_message_are_all_answered(server: Server, provider: Provider) -> None:
    server.home.write("a.txt", "AAA")
    server.home.write("b.txt", "BBB")
    provider.script(
        replies.tools(
            ("c1", "read_file", {"path": "a.txt"}),
            ("c2", "read_file", {"path": "nope.txt"}),
            ("c3", "read_file", {"path": "b.txt"}),
        )
    )
    ask(server)
    told = [m for m in provider.last.messages if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in told] == ["c1", "c2", "c3"]
    assert "AAA" in told[0]["content"]
    assert "BBB" in told[2]["content"]


def test_a_large_result_is_cut_for_display_only(server: Server, provider: Provider) -> None:
    server.home.write("han.txt", "漢" * 3000)
    _, _, found = run_tool(server, provider, "read_file", {"path": "han.txt"})
    shown = next(e for e in found if e["type"] == "toolResult")
    assert shown["truncated"] is True
    assert 4000 <= len(shown["content"].encode()) <= 4096
    assert "\ufffd" not in shown["content"]
    assert "漢" * 3000 in window(server)[2][1]["content"]
    piece = server.request("tiro/session/content", {"seq": 3, "block": 0})
    assert "漢" * 3000 in piece["text"]


def test_an_empty_file_is_an_answer(server: Server, provider: Provider) -> None:
    server.home.write("empty.txt", "")
    text, failed, _ = run_tool(server, provider, "read_file", {"path": "empty.txt"})
    assert (bool(text.strip()), failed) == (True, False)


def test_integers_beyond_64_bit_are_strings_in_events_only(
    server: Server, provider: Provider
) -> None:
    provider.script(
        replies.tools(("c1", "no_such", {"n": 2**70, "ok": 2**63 - 1, "low": -(2**64)}))
    )
    done = ask(server)
    shown = next(e for e in events(server, done) if e["type"] == "toolUse")["toolUse"]["input"]
    assert shown == {"n": str(2**70), "ok": 2**63 - 1, "low": str(-(2**64))}
    assert window(server)[1][1][0]["input"] == {"n": 2**70, "ok": 2**63 - 1, "low": -(2**64)}


def test_b12_what_a_model_writes_is_clean_everywhere(server: Server, provider: Provider) -> None:
    provider.script(
        replies.tools(("c1", "read_file", '{"path": "a\\ud83d.txt", "n": "\\u0000"}')),
        replies.stream(
            b'data: {"choices":[{"index":0,"delta":{"content":"x\\ud83dy\\u0000z"}}]}\n\n'
        ),
    )
    done = ask(server)
    assert done["text"] == "x\ufffdy\ufffdz"
    assert joined(events(server, done)) == "x\ufffdy\ufffdz"
    assert window(server)[1][1][0]["input"]["path"] == "a\ufffd.txt"
    ask(server, "next")
    server.request("tiro/session/save")


def test_b12_a_file_that_is_not_utf8_reads_with_visible_marks(
    server: Server, provider: Provider
) -> None:
    server.home.write("latin.txt", "café \x1b[31m".encode("latin-1") + b"\x00\xed\xa0\xbd end")
    text, _, _ = run_tool(server, provider, "read_file", {"path": "latin.txt"})
    assert "caf" in text
    bad_name = server.home.workspace / "bad"
    bad_name.mkdir()
    (server.home.workspace.__class__(str(bad_name)) / "x\udce9.txt").write_text("odd NAME")
    for name, given in (("list_files", {"path": "bad"}), ("grep", {"pattern": "odd NAME"})):
        text, _, _ = run_tool(server, provider, name, given, f"c-{name}")
        assert ".txt" in text


# The workspace and the editor's buffers


def open_buffer(server: Server, uri: str, text: str, version: int = 1) -> None:
    document = {"uri": uri, "languageId": "text", "version": version, "text": text}
    server.notify("textDocument/didOpen", {"textDocument": document})


def change_buffer(server: Server, uri: str, version: int, *changes: dict[str, Any]) -> None:
    server.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)},
    )


def close_buffer(server: Server, uri: str) -> None:
    server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


def test_tools_see_the_live_text_of_open_buffers(server: Server, provider: Provider) -> None:
    path = server.home.write("live.txt", "DISK one\nDISK two\n")
    uri = path.as_uri()
    open_buffer(server, uri, "BUFFER \U0001f642 one\nBUFFER two\n")
    text, _, _ = run_tool(server, provider, "read_file", {"path": "live.txt"}, "r1")
    assert "BUFFER \U0001f642 one" in text
    assert "DISK" not in text
    encoding = server.initialize_result["capabilities"]["positionEncoding"]
    after = {"utf-8": 11, "utf-16": 9, "utf-32": 8}[encoding]
    change_buffer(
        server,
        uri,
        2,
        {
            "range": {
                "start": {"line": 0, "character": after},
                "end": {"line": 0, "character": after + 4},
            },
            "text": " TYPED",
        },
        {
            "range": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 6}},
            "text": "B",
        },
    )
    text, _, _ = run_tool(server, provider, "read_file", {"path": str(path)}, "r2")
    assert "BUFFER \U0001f642 TYPED" in text
    assert "B two" in text
    for pattern, hit in (("TYPED", True), ("DISK", False)):
        text, _, _ = run_tool(server, provider, "grep", {"pattern": pattern}, f"g{pattern}")
        assert ("live.txt" in text) is hit
    close_buffer(server, uri)
    text, _, _ = run_tool(server, provider, "read_file", {"path": "live.txt"}, "r3")
    assert "DISK one" in text


def test_a_buffer_that_is_not_on_disk_yet_can_be_read(server: Server, provider: Provider) -> None:
    uri = (server.home.workspace / "new file é.txt").as_uri()
    open_buffer(server, uri, "only in the editor")
    text, failed, _ = run_tool(server, provider, "read_file", {"path": "new file é.txt"})
    assert (failed, "only in the editor" in text) == (False, True)
    close_buffer(server, uri)


def outside(server: Server) -> list[tuple[str, dict[str, Any]]]:
    """Every way out of the workspace that a read tool could be talked into."""
    root, workspace = server.home.root, server.home.workspace
    (root / "workspace-secret").mkdir(exist_ok=True)
    (root / "workspace-secret" / "k.txt").write_text("TOPSECRET sibling")
    (root / "secret.txt").write_text("TOPSECRET above")
    for link, target in (("link", root / "workspace-secret"), ("file", root / "secret.txt")):
        if not (workspace / link).is_symlink():
            (workspace / link).symlink_to(target)
    return [
        ("read_file", {"path": "../secret.txt"}),
        ("read_file", {"path": str(root / "secret.txt")}),
        ("read_file", {"path": (root / "secret.txt").as_uri()}),
        ("read_file", {"path": "x/../../secret.txt"}),
        ("read_file", {"path": "../workspace-secret/k.txt"}),
        ("read_file", {"path": "link/k.txt"}),
        ("read_file", {"path": "file"}),
        ("read_file", {"path": "/proc/self/environ"}),
        ("read_file", {"path": "secret\x00.txt"}),
        ("list_files", {"path": ".."}),
        ("list_files", {"path": "link"}),
        ("glob", {"pattern": "../**/*.txt"}),
        ("glob", {"pattern": "**/k.txt"}),
        ("grep", {"pattern": "TOPSECRET"}),
        ("grep", {"pattern": "TOPSECRET", "path": ".."}),
        ("grep", {"pattern": "TOPSECRET", "path": "link"}),
    ]


def test_no_tool_leaves_the_workspace_unasked(server: Server, provider: Provider) -> None:
    server.on_request("tiro/permission/request", lambda _: {"decision": "reject"})
    uses = outside(server)
    provider.script(*(replies.tools((f"c{n}", *one)) for n, one in enumerate(uses)))
    done = ask(server)
    assert done["stopReason"] == "end_turn"
    assert len(provider.chats) == len(uses) + 1
    told = json.dumps([m for m in provider.last.messages if m["role"] == "tool"])
    assert "TOPSECRET sibling" not in told
    assert "TOPSECRET above" not in told
    assert KEY_VARIABLE not in told
    assert API_KEY not in told


def test_reading_outside_asks_and_a_rejection_is_told(server: Server, provider: Provider) -> None:
    outside(server)
    asked: list[dict[str, Any]] = []

    def refuse(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {"decision": "reject", "message": "not that one"}

    server.on_request("tiro/permission/request", refuse)
    text, failed, found = run_tool(server, provider, "read_file", {"path": "../secret.txt"})
    assert failed
    assert "not that one" in text
    assert [e["status"] for e in found if e["type"] == "toolUse"][-1] == "rejected"
    (question,) = asked
    assert question["turnId"] == found[0]["turnId"]
    assert question["toolUse"] == {
        "id": "c1",
        "name": "read_file",
        "input": {"path": "../secret.txt"},
    }
    assert (question["agent"], question["effect"]) == ("build", "read")
    assert question["rule"]


def test_reading_outside_works_once_when_allowed(server: Server, provider: Provider) -> None:
    outside(server)
    asked: list[Any] = []

    def allow(params: Any) -> dict[str, Any]:
        asked.append(params)
        return {"decision": "once"}

    server.on_request("tiro/permission/request", allow)
    for number in range(2):
        text, failed, _ = run_tool(
            server, provider, "read_file", {"path": "../secret.txt"}, f"c{number}"
        )
        assert (failed, "TOPSECRET above" in text) == (False, True)
    assert len(asked) == 2


@pytest.mark.parametrize(
    "answer", [None, {}, 5, {"decision": "maybe"}, {"decision": None}, {"message": "x"}]
)
def test_an_odd_answer_to_a_question_means_reject(
    server: Server, provider: Provider, answer: Any
) -> None:
    outside(server)
    server.on_request("tiro/permission/request", lambda _: answer)
    text, failed, _ = run_tool(server, provider, "read_file", {"path": "../secret.txt"})
    assert failed
    assert "TOPSECRET" not in text


def test_a_client_without_the_question_is_asked_the_standard_way(
    start: StartServer, provider: Provider
) -> None:
    server = start(features={"turnEvents": True})
    outside(server)
    asked: list[Any] = []
    server.on_request("window/showMessageRequest", lambda params: asked.append(params))
    text, failed, _ = run_tool(server, provider, "read_file", {"path": "../secret.txt"})
    assert failed
    assert "TOPSECRET" not in text
    assert len(asked) == 1
    assert asked[0]["message"]
    assert len(asked[0]["actions"]) >= 2
    server.on_request("window/showMessageRequest", lambda params: params["actions"][0])
    run_tool(server, provider, "read_file", {"path": "../secret.txt"}, "c2")


def test_the_env_ban_holds_for_every_tool(server: Server, provider: Provider) -> None:
    server.on_request("tiro/permission/request", lambda _: {"decision": "once"})
    server.home.write(".env", "KEY=TOPSECRET")
    server.home.write("sub/prod.env", "KEY=TOPSECRET")
    server.home.write(".env.example", "KEY=EXAMPLE")
    for number, (name, given) in enumerate(
        [
            ("read_file", {"path": ".env"}),
            ("read_file", {"path": "sub/prod.env"}),
            ("grep", {"pattern": "KEY"}),
        ]
    ):
        text, _, _ = run_tool(server, provider, name, given, f"c{number}")
        assert "TOPSECRET" not in text
    text, _, _ = run_tool(server, provider, "read_file", {"path": ".env.example"}, "c9")
    assert "EXAMPLE" in text


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


def failed_turn(server: Server, prompt: str = "go") -> tuple[Any, list[dict[str, Any]]]:
    """A turn that must fail with modelFailed: its error and its events."""
    mark = len(server.events())
    error = begin_ask(server, prompt).error(20)
    assert (error.code, error.kind) == (-32032, "modelFailed")
    assert error.data["provider"] == "fake"
    found = server.events()[mark:]
    assert found[-1]["type"] == "finished"
    assert found[-1]["stopReason"] == "error"
    assert found[-1]["error"]
    return error, found


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
    for path in server.home.root.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".journal", ".log"):
            assert API_KEY not in path.read_text("utf-8", "replace"), path


# While a turn runs


def test_b45_what_a_running_turn_refuses(server: Server, provider: Provider) -> None:
    add(server, "user", "one")
    add(server, "assistant", [use("open")])
    hold = replies.Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    turn = begin_ask(server, "A")
    server.wait_event("text", since=0, delta="half")
    turn_id = view(server)["busy"]["turnId"]
    before = words(server)
    id_ = view(server)["id"]
    for method, params in (
        ("turn/start", {"prompt": "B"}),
        ("turn/start", {"prompt": "C"}),
        ("session/addMessage", {"role": "user", "content": "B"}),
        ("session/addToolResult", {"toolUseId": "open", "content": "x"}),
        ("session/rewind", {"toSeq": 1}),
        ("session/editMessage", {"seq": 1, "content": "uno"}),
        ("session/resize", {"force": "lite"}),
        ("session/delete", {"id": id_}),
    ):
        error = server.error(f"tiro/{method}", params)
        assert (error.code, error.kind) == (-32020, "turnInProgress"), method
        assert error.data["turnId"] == turn_id
    assert words(server) == before
    hold.release()
    assert turn.result()["text"] == "half"
    assert len(provider.chats) == 1
    assert words(server) == [*before, "half"]


def test_b45_what_a_running_turn_allows(server: Server, provider: Provider) -> None:
    other = server.request("tiro/session/new", {"id": "other"})["id"]
    add(server, "user", "x")
    server.request("tiro/session/new", {})
    hold = replies.Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    turn = begin_ask(server, "A")
    server.wait_event("text", delta="half")
    id_ = server.request("tiro/session/getId")["id"]
    assert "[USER] A" in server.request("tiro/session/show")["text"]
    assert server.request("tiro/session/statistics")["user"] == 1
    assert server.request("tiro/session/save")["id"] == id_
    assert server.request("tiro/state/set", {"key": "k", "value": 1}) == {}
    assert server.request("tiro/session/contextSize")["tokens"] > 0
    assert server.request("tiro/session/delete", {"id": other}) == {"deleted": True}
    assert server.request("tiro/session/judgeResize") == {"decision": None}
    assert id_ in [r["id"] for r in server.request("tiro/session/list")["sessions"]]
    assert server.request("tiro/session/setAgent", {"name": "plan"})["agent"]["name"] == "plan"
    assert server.request("tiro/models/set", {"name": "fake/next"}) == {"model": "fake/next"}
    server.request("tiro/session/configure", {"title": "T"})
    hold.release()
    done = turn.result()
    assert events(server, done)[0]["agent"] == "build"
    assert view(server)["state"] == {"k": 1}
    done = ask(server, "B")
    assert events(server, done)[0]["agent"] == "plan"
    assert provider.last.body["model"] == "next"


@pytest.mark.parametrize("how", ["clear", "new", "load"])
def test_b62_nothing_of_the_old_turn_comes_after_the_answer(
    server: Server, provider: Provider, how: str
) -> None:
    add(server, "user", "saved before")
    saved = server.request("tiro/session/save")["id"]
    server.request("tiro/session/clear")
    hold = replies.Hold()
    provider.script(replies.stream(replies.text_chunk("half an answer "), hold))
    turn = begin_ask(server, "old prompt")
    server.wait_event("text", delta="half an answer ")
    old = view(server)["id"]
    change = server.begin(f"tiro/session/{how}", {"id": saved} if how == "load" else {})
    change.result()
    assert turn.done, "turn/start is answered before"
    assert turn.result()["stopReason"] == "cancelled"
    assert turn.result()["text"] == "half an answer "
    assert provider.last.closed_by_client()
    hold.release()
    provider.script(replies.text("hello yourself"))
    done = ask(server, "hello")
    late = [
        n["params"] for n in server.notifications[change.mark :] if n["method"] == "tiro/turn/event"
    ]
    assert all(e["turnId"] == done["turnId"] for e in late)
    before = ["saved before"] if how == "load" else []
    assert [m["content"] for m in provider.last.messages] == [*before, "hello"]
    assert words(server) == [*before, "hello", "hello yourself"]
    old_session = server.request("tiro/session/load", {"id": old})
    assert old_session["messages"][0]["content"] == "old prompt"
    partial = old_session["messages"][1]
    assert partial["metadata"]["tiro"]["interrupted"] is True
    assert words(server) == ["old prompt", "half an answer "]


def test_b62_clear_while_a_question_is_open(server: Server, provider: Provider) -> None:
    outside(server)
    answer = replies.Hold()

    def late(_: Any) -> dict[str, Any]:
        answer.reached.set()
        answer.released.wait(10)
        return {"decision": "once"}

    server.on_request("tiro/permission/request", late)
    provider.script(replies.tools(("c1", "read_file", {"path": "../secret.txt"})))
    turn = begin_ask(server, "old prompt")
    answer.wait()
    old = view(server)["id"]
    server.request("tiro/session/clear")
    assert turn.result()["stopReason"] == "cancelled"
    answer.release()
    ask(server, "hello")
    assert [m["content"] for m in provider.last.messages] == ["hello"]
    kept = server.request("tiro/session/load", {"id": old})["messages"]
    assert kept[-1]["content"]["tool_use_id"] == "c1"
    assert "TOPSECRET" not in json.dumps(kept)


def test_results_that_a_client_adds_are_sent(server: Server, provider: Provider) -> None:
    add(server, "user", "go")
    add(server, "assistant", [use("a"), use("b")])
    add(server, "tool", result("b", "B"))
    ask(server, "next")
    told = [m for m in provider.last.messages if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in told] == ["a", "b"]
    assert told[1]["content"] == "B"
    assert "interrupt" in told[0]["content"].lower()


def test_untrusted_workspaces_offer_reading_only(start: StartServer, provider: Provider) -> None:
    server = start(initialize=False)
    server.initialize(trusted=False)
    ask(server)
    assert set(provider.last.tool_names) == {"read_file", "list_files", "glob", "grep"}
