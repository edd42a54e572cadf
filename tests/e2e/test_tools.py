"""Protocol section 4: the tools of a turn, the workspace, live buffers, and questions."""

import json
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import ASKING, DENIED, KEY_VARIABLE, Home
from tests.e2e.provider import API_KEY, Provider
from tests.e2e.talk import ask, use, view, window
from tests.e2e.turns import (
    change_buffer,
    close_buffer,
    events,
    joined,
    open_buffer,
    outside,
    shape,
)


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
    server.home.write("han.txt", ("漢" * 30 + "\n") * 100)
    _, _, found = run_tool(server, provider, "read_file", {"path": "han.txt"})
    shown = next(e for e in found if e["type"] == "toolResult")
    assert shown["truncated"] is True
    assert 4000 <= len(shown["content"].encode()) <= 4096
    assert "\ufffd" not in shown["content"]
    assert window(server)[2][1]["content"].count("漢") == 3000
    piece = server.request("tiro/session/content", {"seq": 3, "block": 0})
    assert piece["text"].count("漢") == 3000


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
    server.home.write("latin.txt", "café \x1b[31m".encode("latin-1") + b"\xed\xa0\xbd end")
    text, _, _ = run_tool(server, provider, "read_file", {"path": "latin.txt"})
    assert "caf" in text
    bad_name = server.home.workspace / "bad"
    bad_name.mkdir()
    (server.home.workspace.__class__(str(bad_name)) / "x\udce9.txt").write_text("odd NAME")
    for name, given in (("list_files", {"path": "bad"}), ("grep", {"pattern": "odd NAME"})):
        text, _, _ = run_tool(server, provider, name, given, f"c-{name}")
        assert ".txt" in text


# The workspace and the editor's buffers


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


def test_a_whole_text_change_and_odd_documents_do_no_harm(
    server: Server, provider: Provider
) -> None:
    path = server.home.write("live.txt", "DISK")
    uri = path.as_uri()
    change_buffer(server, uri, 1, {"text": "never opened"})
    close_buffer(server, uri)
    open_buffer(server, uri, "BUFFER")
    change_buffer(server, uri, 2, {"text": "WHOLE"})
    end = {"line": 999, "character": 999}
    change_buffer(server, uri, 3, {"range": {"start": end, "end": end}, "text": " TAIL"})
    odds: list[Any] = [{}, {"textDocument": {}}, {"textDocument": {"uri": 5}}, None, []]
    for odd in odds:
        for method in ("didOpen", "didChange", "didClose", "didSave"):
            server.notify(f"textDocument/{method}", odd)
    open_buffer(server, "untitled:Untitled-1", "no file")
    open_buffer(server, "file:///%ff/%00", "odd")
    text, _, _ = run_tool(server, provider, "read_file", {"path": "live.txt"})
    assert "WHOLE TAIL" in text
    for one in (uri, "untitled:Untitled-1", "file:///%ff/%00"):
        close_buffer(server, one)


def test_folders_may_come_and_go(server: Server, provider: Provider) -> None:
    second = server.home.root / "second root"
    second.mkdir(exist_ok=True)
    (second / "s.txt").write_text("IN THE SECOND")
    folder = {"uri": second.as_uri(), "name": "second"}
    given = {"path": str(second / "s.txt")}
    assert run_tool(server, provider, "read_file", given, "c0")[1]
    for number, (event, failed) in enumerate(
        [({"added": [folder], "removed": []}, False), ({"added": [], "removed": [folder]}, True)]
    ):
        server.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        text, is_error, _ = run_tool(server, provider, "read_file", given, f"c{number + 1}")
        assert (is_error, "IN THE SECOND" in text) == (failed, not failed)


def test_without_a_folder_nothing_can_be_read(start: StartServer, provider: Provider) -> None:
    server = start(roots=[])
    path = server.home.write("a.txt", "SECRET TEXT")
    for number, (name, given) in enumerate(
        [("read_file", {"path": str(path)}), ("read_file", {"path": "a.txt"}),
         ("list_files", {}), ("glob", {"pattern": "*"}), ("grep", {"pattern": "SECRET"})]
    ):  # fmt: skip
        text, _, _ = run_tool(server, provider, name, given, f"c{number}")
        assert "SECRET TEXT" not in text


def test_a_root_may_be_a_link(start: StartServer, home: Home, provider: Provider) -> None:
    home.write("inner/a.txt", "BEHIND THE LINK")
    link = home.root / "link-to-workspace"
    link.symlink_to(home.workspace)
    server = start(roots=[link])
    given = ({"path": "inner/a.txt"}, {"path": str(link / "inner/a.txt")},
             {"path": str(home.workspace / "inner/a.txt")})  # fmt: skip
    for number, one in enumerate(given):
        text, failed, _ = run_tool(server, provider, "read_file", one, f"c{number}")
        assert (failed, "BEHIND THE LINK" in text) == (False, True)
    text, _, _ = run_tool(server, provider, "grep", {"pattern": "BEHIND"}, "g")
    assert "a.txt" in text


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


def test_a_rejection_is_told(server: Server, provider: Provider) -> None:
    server.home.write(ASKING, "TOPSECRET")
    asked: list[dict[str, Any]] = []

    def refuse(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {"decision": "reject", "message": "not that one"}

    server.on_request("tiro/permission/request", refuse)
    text, failed, found = run_tool(server, provider, "read_file", {"path": ASKING})
    assert failed
    assert "not that one" in text
    assert [e["status"] for e in found if e["type"] == "toolUse"][-1] == "rejected"
    (question,) = asked
    assert question["turnId"] == found[0]["turnId"]
    use_asked = {"id": "c1", "name": "read_file", "input": {"path": ASKING}}
    assert question["toolUse"] == use_asked
    assert (question["agent"], question["effect"]) == ("build", "read")
    assert question["rule"]


def test_a_question_allows_once(server: Server, provider: Provider) -> None:
    server.home.write(ASKING, "TOPSECRET above")
    asked: list[Any] = []

    def allow(params: Any) -> dict[str, Any]:
        asked.append(params)
        return {"decision": "once"}

    server.on_request("tiro/permission/request", allow)
    for number in range(2):
        given = {"path": ASKING}
        text, failed, _ = run_tool(server, provider, "read_file", given, f"c{number}")
        assert (failed, "TOPSECRET above" in text) == (False, True)
    assert len(asked) == 2


def test_always_holds_for_this_path_and_this_session(server: Server, provider: Provider) -> None:
    other = f"{ASKING.removesuffix('.txt')}-too.txt"
    for name in (ASKING, other):
        server.home.write(name, "asked for")
    asked: list[str] = []

    def always(params: Any) -> dict[str, Any]:
        asked.append(params["toolUse"]["input"]["path"])
        return {"decision": "always"}

    server.on_request("tiro/permission/request", always)

    def read(name: str, id_: str) -> None:
        text, failed, _ = run_tool(server, provider, "read_file", {"path": name}, id_)
        assert (failed, "asked for" in text) == (False, True)

    for number in range(3):
        read(ASKING, f"c{number}")
    assert asked == [ASKING]
    read(other, "c4")
    assert asked == [ASKING, other]
    id_ = server.request("tiro/session/save")["id"]
    server.request("tiro/session/clear")
    read(ASKING, "c5")
    assert asked == [ASKING, other, ASKING]
    server.request("tiro/session/load", {"id": id_})
    read(ASKING, "c6")
    assert asked == [ASKING, other, ASKING]


def test_denials_in_a_broken_file_still_stand_between_model_and_file(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """The file forbids reading it, which nobody can tell while it is broken: the user is asked."""
    home.write(DENIED, "TOPSECRET")
    path = home.write_config()
    whole = path.read_text()
    settings = {key: json.loads(whole)[key] for key in ("model", "providers")}
    path.write_text(whole.rstrip("} \n"))
    server = start(settings=settings)
    asked: list[Any] = []

    def refuse(params: Any) -> dict[str, Any]:
        asked.append(params["rule"])
        return {"decision": "reject"}

    server.on_request("tiro/permission/request", refuse)
    for number, (name, given) in enumerate(
        [("read_file", {"path": DENIED}), ("grep", {"pattern": "TOPSECRET"})]
    ):
        assert "TOPSECRET" not in run_tool(server, provider, name, given, f"c{number}")[0]
    assert asked == ["*: ask, since config.yaml cannot be used"] * 2
    (problem,) = server.request("tiro/status")["problems"]
    assert problem.startswith(f"{path}, line ")
    path.write_text(whole)
    server.notify("workspace/didChangeConfiguration", {"settings": {"tiro": settings}})
    text, failed, _ = run_tool(server, provider, "read_file", {"path": DENIED}, "c2")
    assert (failed, "denied.txt" in text, len(asked)) == (True, True, 2)


def test_a_denied_path_is_not_read_and_the_rule_is_told(server: Server, provider: Provider) -> None:
    server.home.write(DENIED, "TOPSECRET")
    text, failed, found = run_tool(server, provider, "read_file", {"path": DENIED})
    assert failed
    assert "TOPSECRET" not in text
    assert server.requests == []
    last = [e for e in found if e["type"] == "toolUse"][-1]
    assert last["status"] in ("rejected", "failed")
    assert DENIED in last["rule"]
    text, _, _ = run_tool(server, provider, "grep", {"pattern": "TOPSECRET"}, "c2")
    assert f"{DENIED}:" not in text


@pytest.mark.parametrize(
    "answer", [None, {}, 5, {"decision": "maybe"}, {"decision": None}, {"message": "x"}]
)
def test_an_odd_answer_to_a_question_means_reject(
    server: Server, provider: Provider, answer: Any
) -> None:
    server.home.write(ASKING, "TOPSECRET")
    server.on_request("tiro/permission/request", lambda _: answer)
    text, failed, _ = run_tool(server, provider, "read_file", {"path": ASKING})
    assert failed
    assert "TOPSECRET" not in text


def test_a_client_without_the_question_is_asked_the_standard_way(
    start: StartServer, provider: Provider
) -> None:
    server = start(features={"turnEvents": True})
    server.home.write(ASKING, "TOPSECRET")
    asked: list[Any] = []
    server.on_request("window/showMessageRequest", lambda params: asked.append(params))
    text, failed, _ = run_tool(server, provider, "read_file", {"path": ASKING})
    assert failed
    assert "TOPSECRET" not in text
    assert len(asked) == 1
    assert asked[0]["message"]
    assert len(asked[0]["actions"]) >= 2
    server.on_request("window/showMessageRequest", lambda params: params["actions"][0])
    run_tool(server, provider, "read_file", {"path": ASKING}, "c2")


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
