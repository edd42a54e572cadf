"""What people come from is read (issue 8): transcripts, buffers, exports, message arrays (U7.4)."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sizes import sized
from tests.stores.test_formats import TEXTS, opened
from tiro import InvalidInputError, SessionFormatError
from tiro.session.provider_view import provider_view
from tiro.stores.formats import registry
from tiro.stores.formats.format import Imported


def read(text: str, name: str) -> Imported:
    assert registry.recognised(text).name == name
    return registry.recognised(text).loads(text)


def said(imported: Imported) -> list[tuple[str, Any]]:
    """Role and content of every message, one text block as its text."""
    return [(m.role, _bare(m.content)) for m in imported.stored.messages]


def _bare(content: Any) -> Any:
    is_text = isinstance(content, list) and [b.get("type") for b in content] == ["text"]
    return content[0]["text"] if is_text else content


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def use(id: str, name: str = "Read", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def result(id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


# Claude Code


def claude(uuid: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    """A line as that program writes it."""
    message = {"role": role, "content": content}
    if role == "assistant":
        message |= {"id": more.pop("id", f"msg_{uuid}"), "model": "m", "type": "message"}
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/w",
        "sessionId": "95e6f011-ec33-4b37-91ad-5d242b40ae3d",
        "version": "2.0.0",
        "type": role,
        "message": message,
        "uuid": uuid,
        "timestamp": f"2026-01-20T11:57:{len(uuid):02}.716Z",
        **more,
    }


SUMMARY = {"type": "summary", "summary": "Reading a file", "leafUuid": "d"}
SNAPSHOT = {"type": "file-history-snapshot", "messageId": "a", "snapshot": {}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "S="}
TALK: list[dict[str, Any]] = [
    SUMMARY,
    SNAPSHOT,
    claude("a", None, "user", "Read it"),
    claude("b", "a", "assistant", [THOUGHT], id="m1"),
    claude("c", "b", "assistant", [text("I look")], id="m1"),
    claude("d", "c", "assistant", [use("t1", file_path="/w/x")], id="m1"),
    claude("e", "d", "user", [result("t1", "1→x", is_error=True)], toolUseResult={"type": "text"}),
    claude("f", "e", "assistant", [text("It is x")]),
]  # fmt: skip


def test_claude_code_is_read_with_one_message_for_one_answer() -> None:
    """The pieces of an answer are lines there; each result is a message of its own (M1.4)."""
    imported = read(lines(*TALK), "claude-code")
    assert said(imported) == [
        ("user", "Read it"),
        (
            "assistant",
            [
                {"type": "thinking", "thinking": "hm", "signature": "S="},
                text("I look"),
                use("t1", file_path="/w/x"),
            ],
        ),
        ("tool", result("t1", "1→x", is_error=True)),
        ("assistant", "It is x"),
    ]
    fields = imported.stored.fields
    assert fields["id"] == "95e6f011-ec33-4b37-91ad-5d242b40ae3d"
    assert fields["title"] == "Reading a file"
    assert fields["created_at"] == "2026-01-20T11:57:01.716Z"
    assert imported.notes == ["Not taken over: file-history-snapshot: 1"]


def test_what_was_left_in_claude_code_is_left_out_and_told() -> None:
    """A prompt that was taken back, a sub-agent, the program's own words, a torn last line."""
    imported = read(
        lines(
            *TALK,
            claude("g", "f", "user", "wrong turn"),
            claude("h", "g", "assistant", [text("wrong answer"), use("t9")]),
            claude("hr", "h", "user", [result("t9", "wrong result")]),
            claude("s", None, "user", "sub-agent's task", isSidechain=True, agentId="ab"),
            claude("i", "f", "user", "<caveat>", isMeta=True),
            claude("j", "i", "user", "And then?"),
        )
        + '{"parentUuid": "j", "type": "assi',
        "claude-code",
    )
    assert said(imported)[-2:] == [("assistant", "It is x"), ("user", "And then?")]
    assert imported.notes == [
        "1 line is broken and was left out",
        "Not taken over: file-history-snapshot: 1, in branches that were left: 3,"
        " said by sub-agents: 1, written by Claude Code itself: 1",
    ]


def test_tools_that_ran_side_by_side_in_claude_code_are_no_branches() -> None:
    """Each result follows the line of its own use there."""
    imported = read(
        lines(
            claude("a", None, "user", "both"),
            claude("b", "a", "assistant", [use("t1")], id="m1"),
            claude("c", "b", "assistant", [use("t2")], id="m1"),
            claude("d", "b", "user", [result("t1", "one")]),
            claude("e", "c", "user", [result("t2", "two")]),
            claude("f", "e", "assistant", [text("done")]),
        ),
        "claude-code",
    )
    assert [role for role, _ in said(imported)] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert said(imported)[1][1] == [use("t1"), use("t2")]
    assert imported.notes == []


def test_what_was_compacted_in_claude_code_is_read_in_full() -> None:
    """A chain that breaks goes on with the line before; the summary repeats what is there."""
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "y", "parentUuid": None,
                "logicalParentUuid": "f", "sessionId": "s"}  # fmt: skip
    later = [
        claude("z", "y", "user", "Summary: …", isCompactSummary=True),
        claude("zz", "z", "user", "go on"),
    ]
    for before in (boundary, {**boundary, "logicalParentUuid": None}):
        imported = read(lines(*TALK, before, *later), "claude-code")
        assert [c for r, c in said(imported) if r == "user"] == ["Read it", "go on"]


def test_a_sub_agents_own_transcript_is_read() -> None:
    rows = [claude("a", None, "user", "task"), claude("b", "a", "assistant", [text("done")])]
    imported = read(lines(*({**row, "isSidechain": True} for row in rows)), "claude-code")
    assert said(imported) == [("user", "task"), ("assistant", "done")]


# Codex


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2025-10-29T00:59:00.317Z", "type": kind, "payload": payload}


def item(type: str, **payload: Any) -> dict[str, Any]:
    return codex("response_item", type=type, **payload)


def typed(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


META: dict[str, Any] = {
    "id": "019a2d7a-41c4-78b1",
    "timestamp": "2025-10-29T00:59:38Z",
    "instructions": None,
}
ROLLOUT = [
    item("message", role="user", content=[typed("<environment_context>\n")]),
    item("message", role="developer", content=[typed("be good")]),
    item("message", role="user", content=[
        typed("list files"),
        {"type": "input_image", "image_url": "data:image/png;base64,QQ=="},
    ]),
    codex("event_msg", type="user_message", message="list files"),
    item("reasoning", summary=[{"type": "summary_text", "text": "**Listing**"}], content=None,
         encrypted_content="gAAA"),
    item("reasoning", summary=[], encrypted_content="gAAA"),
    item("function_call", name="shell", arguments='{"command": ["ls"]}', call_id="call_1"),
    item("function_call_output", call_id="call_1", output='{"output": "a\\n"}'),
    item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="call_2"),
    item("custom_tool_call_output", call_id="call_2", output=[typed("ok")]),
    item("message", role="assistant", content=[{"type": "output_text", "text": "One file"}]),
    codex("event_msg", type="agent_message", message="One file"),
    item("ghost_snapshot", ghost_commit={}),
]  # fmt: skip
ROLLOUT_SAID = [
    (
        "user",
        [
            text("list files"),
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="},
            },
        ],
    ),
    (
        "assistant",
        [
            {"type": "thinking", "thinking": "**Listing**"},
            use("call_1", "shell", command=["ls"]),
        ],
    ),
    ("tool", result("call_1", '{"output": "a\n"}'.replace("\n", "\\n"))),
    ("assistant", [use("call_2", "apply_patch", input="*** Begin")]),
    ("tool", result("call_2", [text("ok")])),
    ("assistant", "One file"),
]
ROLLOUT_NOTES = [
    "Not taken over: written by Codex itself: 2, events for its interface: 2,"
    " reasoning that only its provider can read: 1, ghost_snapshot: 1"
]


def test_codex_is_read() -> None:
    imported = read(lines(codex("session_meta", **META, cwd="/w"), *ROLLOUT), "codex")
    assert said(imported) == ROLLOUT_SAID
    assert imported.notes == ROLLOUT_NOTES
    assert imported.stored.fields["id"] == "019a2d7a-41c4-78b1"
    assert imported.stored.messages[0].timestamp == "2025-10-29T00:59:00.317Z"


def test_an_old_transcript_of_codex_is_read() -> None:
    """The items stood bare, after a line of facts."""
    bare = [row["payload"] for row in ROLLOUT if row["type"] == "response_item"]
    imported = read(lines(META, {"record_type": "state"}, *bare), "codex")
    assert said(imported) == ROLLOUT_SAID
    assert imported.notes == [ROLLOUT_NOTES[0].replace(" events for its interface: 2,", "")]
    assert imported.stored.fields["id"] == "019a2d7a-41c4-78b1"


# gptel


TOOL = """(:name "db" :args (:action "count" :deep [1 2.5 "a\\"b"] :all t :no :json-false))

5453 files
"""
MARKDOWN = [
    ("", "### How many *files*?\n\n"),
    ("ignore", '``` tool (db :action "count")\n'),
    ("tool", TOOL),
    ("ignore", "```\n"),
    ("response", "There are 5453 files 🙂."),
    ("", "\n\n### And then?\n\n"),
    ("response", "漢字"),
    ("", "\n\n### \n\n"),
]
ORG = [
    ("", "*** How many /files/?\n"),
    ("tool", f'#+begin_tool (db :action "count")\n{TOOL},* no heading\n#+end_tool\n'),
    ("response", "There are 5453."),
    ("ignore", "#+begin_reasoning\nlong\nthoughts\n#+end_reasoning\n"),
    ("", "\n*** "),
]


def spans(parts: list[tuple[str, str]], start: int = 1) -> str:
    """The places of a buffer's parts as gptel writes them, positions counted from 1."""
    groups: dict[str, list[str]] = {}
    for kind, part in parts:
        id = ' "call_1"' if kind == "tool" else ""
        groups.setdefault(kind, []).append(f"({start} {start + len(part)}{id})")
        start += len(part)
    listed = (f"({kind} {' '.join(places)})" for kind, places in groups.items() if kind)
    return f"({' '.join(listed)})"


def variables(bounds: str) -> str:
    return (
        "<!-- Local Variables: -->\n<!-- gptel-model: gpt-4o -->\n"
        '<!-- gptel--system-message: "Be brief" -->\n'
        f"<!-- gptel--bounds: {bounds} -->\n<!-- End: -->\n"
    )


DB = use("call_1", "db", action="count", deep=[1, 2.5, 'a"b'], all=True, no=False)


def test_a_markdown_buffer_of_gptel_is_read() -> None:
    """Its places are characters, whatever their width; a prompt loses the mark that begins it."""
    body = "".join(part for _, part in MARKDOWN)
    imported = read(body + variables(spans(MARKDOWN)), "gptel")
    assert said(imported) == [
        ("user", "How many *files*?"),
        ("assistant", [DB]),
        ("tool", result("call_1", "5453 files")),
        ("assistant", "There are 5453 files 🙂."),
        ("user", "And then?"),
        ("assistant", "漢字"),
    ]
    assert imported.notes == ["Its system prompt is not taken over"]


def test_an_org_buffer_of_gptel_is_read() -> None:
    """The places count the drawer at the top too."""
    drawer = ":PROPERTIES:\n:GPTEL_MODEL: gpt-4o\n:GPTEL_BOUNDS: %s\n:END:\n"
    bounds = ""
    for _ in range(5):  # as gptel does, until the places do not change any more
        bounds = spans(ORG, 1 + len(drawer % bounds))
    imported = read(drawer % bounds + "".join(part for _, part in ORG), "gptel")
    assert said(imported) == [
        ("user", "How many /files/?"),
        ("assistant", [DB]),
        ("tool", result("call_1", "5453 files\n* no heading")),
        (
            "assistant",
            [text("There are 5453."), {"type": "thinking", "thinking": "long\nthoughts"}],
        ),
    ]
    assert imported.notes == []


def test_the_older_places_of_gptel_are_read() -> None:
    imported = read("q\r\nanswer\r\n" + variables("((3 . 9))"), "gptel")
    assert said(imported) == [("user", "q"), ("assistant", "answer")]


@pytest.mark.parametrize(
    "bounds", ["((response (1 99999)))", "((response (-5 2) (2 1) (0 0)))", "((x (1 \"a\")) 7 ())"]
)  # fmt: skip
def test_places_out_of_range_lose_no_text(bounds: str) -> None:
    imported = read("abc def\n" + variables(bounds), "gptel")
    assert "".join(content for _, content in said(imported)).replace(" ", "") == "abcdef"


def test_a_tool_that_cannot_be_read_stays_as_text() -> None:
    imported = read('(:name "x" :args (\n' + variables('((tool (1 19 "i")))'), "gptel")
    assert said(imported) == [("assistant", '(:name "x" :args (')]


# ChatGPT


def node(id: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    author = {"role": role, "name": more.pop("name", None), "metadata": {}}
    message = {"id": id, "author": author, "create_time": 1761699578.3, "content": content,
               "metadata": {}, "recipient": "all", **more}  # fmt: skip
    return {"id": id, "parent": parent, "children": [], "message": message}


def tree(id: str, *nodes: dict[str, Any], updated: float = 1.0, **more: Any) -> dict[str, Any]:
    mapping = {node["id"]: node for node in nodes}
    for one in nodes:
        if one["parent"] in mapping:
            mapping[one["parent"]]["children"].append(one["id"])
    return {"title": f"Title {id}", "create_time": 1.0, "update_time": updated, "mapping": mapping,
            "current_node": nodes[-1]["id"], "conversation_id": id, **more}  # fmt: skip


def root() -> dict[str, Any]:
    return {"id": "root", "parent": None, "children": [], "message": None}


CODE = {"content_type": "code", "language": "unknown", "text": "print(1)"}
OUTPUT = {"content_type": "execution_output", "text": "1\n"}
THOUGHTS = {"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "I think"}]}
POINTER = {"content_type": "image_asset_pointer", "asset_pointer": "file://x"}
PICTURE = {"content_type": "multimodal_text", "parts": [POINTER, "see"]}


def test_chatgpt_is_read_along_the_branch_that_was_shown() -> None:
    one = tree(
        "c1",
        root(),
        node("s", "root", "system", ""),
        node("u0", "s", "user", {"content_type": "user_editable_context", "user_profile": "me"}),
        node("a", "u0", "user", PICTURE),
        node("x", "a", "assistant", "another answer"),
        node("b", "a", "assistant", THOUGHTS),
        node("c", "b", "assistant", CODE, recipient="python"),
        node("d", "c", "tool", OUTPUT, name="python"),
        node("e", "d", "assistant", "It is 1"),
    )
    imported = read(json.dumps([one]), "chatgpt")
    assert said(imported) == [
        ("user", "[image_asset_pointer]\n\nsee"),
        (
            "assistant",
            [{"type": "thinking", "thinking": "I think"}, use("c", "python", text="print(1)")],
        ),
        ("tool", result("c", "1\n")),
        ("assistant", "It is 1"),
    ]
    assert (imported.stored.fields["id"], imported.stored.fields["title"]) == ("c1", "Title c1")
    assert imported.stored.messages[0].timestamp == "2025-10-29T00:59:38.300Z"
    assert imported.notes == [
        "Not taken over: written by ChatGPT itself: 1,"
        " pictures, recordings and files that are not in this file: 1,"
        " in branches that were left: 1"
    ]
    assert said(read(json.dumps(one), "chatgpt")) == said(imported)


def test_all_conversations_of_chatgpt_are_read() -> None:
    """The newest is gone on with; what says nothing is counted."""
    trees = [
        tree("old", root(), node("a", "root", "user", "old"), updated=1),
        tree("new", root(), node("a", "root", "user", "new"), updated=3),
        tree("mid", root(), node("a", "root", "user", "mid"), updated=2),
        tree("empty", root()),
    ]
    imported = read(json.dumps(trees), "chatgpt")
    assert said(imported) == [("user", "new")]
    assert [other.fields["id"] for other in imported.others] == ["old", "mid"]
    assert imported.notes == ["Conversations without a message that can be read: 1"]


def test_a_circle_in_chatgpts_tree_ends() -> None:
    one = tree("c", node("a", "b", "user", "q"), node("b", "a", "assistant", "r"))
    assert said(read(json.dumps([one]), "chatgpt")) == [("user", "q"), ("assistant", "r")]


# message arrays


def test_an_array_as_openai_takes_it_is_read() -> None:
    """U1.9: tool data stay in their own spelling."""
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    rows: list[dict[str, Any]] = [
        {"role": "system", "content": "be brief"},
        {
            "role": "user",
            "content": [
                text("what is it"),
                {"type": "image_url", "image_url": {"url": "https://x"}},
            ],
            "name": "me",
        },
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.el"},
        {"role": "assistant", "content": "One"},
    ]
    imported = read(json.dumps(rows), "messages")
    core = opened(imported)
    assert [m.role for m in core.oldest_first()] == [row["role"] for row in rows]
    assert core.oldest_first()[1].name == "me"
    picture = {"type": "image", "source": {"type": "url", "url": "https://x"}}
    assert core.oldest_first()[1].content == [text("what is it"), picture]
    assert core.oldest_first()[2].tool_calls == [call]
    assert core.oldest_first()[3].tool_call_id == "c1"


def test_an_array_as_anthropic_takes_it_is_read() -> None:
    """M1.4: each result is a message, before what else the user says."""
    rows: list[dict[str, Any]] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [text("ok"), use("a"), use("b")]},
        {"role": "user", "content": [result("a", "1"), result("b", "2"), text("and now?")]},
    ]
    assert said(read(json.dumps(rows), "messages")) == [
        ("user", "look"),
        ("assistant", [text("ok"), use("a"), use("b")]),
        ("tool", result("a", "1")),
        ("tool", result("b", "2")),
        ("user", "and now?"),
    ]


def test_what_says_nothing_in_an_array_is_told() -> None:
    """It is left out with a note, but not where it uses a tool."""
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    rows = [
        {"role": "user", "content": "q"},
        {"role": "developer", "content": []},
        {"role": "assistant", "content": [], "tool_calls": [call]},
    ]
    imported = read(json.dumps(rows), "messages")
    assert said(imported) == [("user", "q"), ("assistant", "")]
    assert imported.stored.messages[1].tool_calls == [call]
    assert imported.notes == ["Not taken over: messages without content: 1"]


def test_a_broken_item_of_an_array_is_named() -> None:
    rows = [{"role": "user", "content": "q"}, {"role": "user"}]
    with pytest.raises(SessionFormatError, match="Item 2") as caught:
        read(json.dumps(rows), "messages")
    assert caught.value.data["recovered"] == 1


def test_a_request_as_openai_takes_it_is_read() -> None:
    """What the array in it holds, and no setting of the request; U7.4."""
    rows = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "q"}]
    body = {"model": "gpt-4o", "messages": rows, "temperature": 1, "tools": [{"x": 1}]}
    imported = read(json.dumps(body, indent=2), "request")
    assert said(imported) == [("system", "be brief"), ("user", "q")]
    assert (imported.stored.fields["model"], imported.stored.unknown) == (None, {})
    assert imported.notes == ["Not taken over: the definitions of tools"]
    newer = {"model": "gpt-5", "instructions": "be brief", "input": "q"}
    imported = read(json.dumps(newer), "request")
    assert said(imported) == [("user", "q")]
    assert imported.notes == ["Not taken over: the system prompt"]
    items = {**newer, "input": [{"type": "message", "role": "user", "content": "q"}]}
    assert said(read(json.dumps(items), "request")) == [("user", "q")]


def test_a_request_as_anthropic_takes_it_is_read() -> None:
    """M1.4: each result is a message."""
    rows: list[dict[str, Any]] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [use("a")]},
        {"role": "user", "content": [result("a", "1"), text("and now?")]},
    ]
    body = {"model": "m", "max_tokens": 9, "system": "be brief", "messages": rows}
    imported = read(json.dumps(body), "request")
    told = [("user", "look"), ("assistant", [use("a")]), ("tool", result("a", "1"))]
    assert said(imported) == [*told, ("user", "and now?")]
    assert imported.notes == ["Not taken over: the system prompt"]


@pytest.mark.parametrize("more", [{}, {"id": "a", "model": "m"}, {"memo": {}, "model": "m"}])
def test_a_session_is_no_request(more: dict[str, Any]) -> None:
    """U7.2."""
    read(json.dumps({"messages": [{"role": "user", "content": "q"}], **more}), "json")


# all of them


CHATGPT = json.dumps(
    [tree("c1", root(), node("a", "root", "user", "q"), node("b", "a", "assistant", "r"))]
)
SAMPLES = {
    "claude-code": lines(*TALK),
    "codex": lines(codex("session_meta", **META), *ROLLOUT),
    "gptel": "".join(part for _, part in MARKDOWN) + variables(spans(MARKDOWN)),
    "chatgpt": CHATGPT,
    "messages": json.dumps([{"role": "user", "content": [text("q"), result("a", "b")]}]),
    "request": json.dumps({"model": "m", "messages": [{"role": "user", "content": [text("q")]}]}),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_read_can_be_asked_about(name: str) -> None:
    """U3: a request can be made of it; every use has its result."""
    core = opened(read(SAMPLES[name], name))
    messages = provider_view(core.oldest_first(), merge=True, thinking=False)
    assert messages[0].role == "user"


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_that_is_only_read_says_so(name: str) -> None:
    with pytest.raises(InvalidInputError, match="can only be imported; export to one of agently"):
        registry.to_write(name)
    assert registry.earlier_id(SAMPLES[name]) is None


@pytest.mark.parametrize("name", SAMPLES)
def test_a_torn_or_empty_one_is_read_in_part_with_a_note_or_refused(name: str) -> None:
    """Issue 8: damaged files get clear errors; what is left out of lines is counted."""
    whole = SAMPLES[name]
    for size in (0, 1, len(whole) // 3, len(whole) // 2, len(whole) - 3):
        torn = whole[:size]
        try:
            imported = registry.recognised(torn).loads(torn)
        except SessionFormatError:
            continue
        assert imported.notes


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
@settings(max_examples=sized(fast=30, normal=60, long=3000), deadline=None)
def test_any_change_to_one_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Hostile and damaged files raise nothing but a refusal."""
    whole = SAMPLES[name]
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 40)))
    odd = st.sampled_from(["null", "[]", "{}", "7", '"x"', "true", "[[[[", "-1", "((", '\\"'])
    changed = whole[:start] + data.draw(TEXTS | odd) + whole[end:]
    for chosen in (registry.named(name), *(f for f in registry.FORMATS if f.looks_like(changed))):
        with contextlib.suppress(SessionFormatError):
            opened(chosen.loads(changed))


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - {"gptel"}))
@given(data=st.data())
@settings(max_examples=sized(fast=30, normal=60, long=3000), deadline=None)
def test_any_value_in_one_of_another_type_is_read_or_refused(
    name: str, data: st.DataObject
) -> None:
    """Whatever a field holds, it is no other error."""
    rows = [json.loads(line) for line in SAMPLES[name].splitlines()]
    at: Any = data.draw(st.sampled_from(rows))
    while isinstance(at, dict | list) and at:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if data.draw(st.booleans()) or not isinstance(at[key], dict | list):
            at[key] = data.draw(st.sampled_from([None, 7, "x", [], {}, [7], {"x": [None]}, True]))
            break
        at = at[key]
    changed = lines(*rows)
    with contextlib.suppress(SessionFormatError):
        opened(registry.named(name).loads(changed))
