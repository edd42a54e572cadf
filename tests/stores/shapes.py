"""Transcripts in the shapes in which other programs write them today, record for record.

Our own words in those programs' public forms: each list holds what its program mixes in between
the messages, what it writes when a turn is interrupted or its history compacted, and what it
leaves open at the end.
"""

import base64
import json
from typing import Any

from tests.tools.images import png

PIXEL = base64.b64encode(png(1, 1)).decode()
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def lines(*rows: dict[str, Any]) -> str:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


# Claude Code


def claude(kind: str, uuid: str, parent: str | None, **more: Any) -> dict[str, Any]:
    """A record in the chain of a transcript."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/w",
        "sessionId": "c0ffee00-0000-4000-8000-000000000001",
        "version": "2.1.173",
        "gitBranch": "main",
        "type": kind,
        "uuid": uuid,
        "timestamp": "2026-06-15T10:00:00.000Z",
        **more,
    }


def typed(uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    """What a user typed, or what tools gave."""
    return claude("user", uuid, parent, message={"role": "user", "content": content}, **more)


def answer(uuid: str, parent: str, id: str, *blocks: Any, **more: Any) -> dict[str, Any]:
    """A piece of an answer."""
    message: dict[str, Any] = {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
    }
    message |= {"content": list(blocks), "stop_reason": None, "usage": {"input_tokens": 1}}
    return claude("assistant", uuid, parent, message={**message, **more.pop("message", {})}, **more)


def block(kind: str, **more: Any) -> dict[str, Any]:
    """A content block."""
    return {"type": kind, **more}


SNAPSHOTS: list[dict[str, Any]] = [
    {
        "type": "file-history-snapshot",
        "messageId": f"m{n}",
        "snapshot": {},
        "isSnapshotUpdate": False,
    }
    for n in range(30)
]
THOUGHT = block("thinking", thinking="", signature="Ep8BCk==")
CLAUDE: list[dict[str, Any]] = [
    *SNAPSHOTS,
    {"type": "queue-operation", "operation": "enqueue", "content": "look at it",
     "timestamp": "2026-06-15T09:59:59.000Z", "sessionId": "c0ffee00"},
    {"type": "permission-mode", "permissionMode": "default", "sessionId": "c0ffee00"},
    claude("progress", "p1", None, data={"type": "hook_progress", "hookEvent": "SessionStart"}),
    claude("attachment", "h1", "p1", attachment={"type": "hook_success", "content": "ok"}),
    claude("system", "y1", "h1", subtype="local_command", content="/model"),
    typed("u1", "y1", [block("text", text="look at it"), PICTURE]),
    answer("a1", "u1", "m1", THOUGHT),
    answer("a2", "a1", "m1", block("text", text="Both at once.")),
    answer("a3", "a2", "m1", block("tool_use", id="t1", name="Read", input={"file_path": "/w/a"})),
    answer("a4", "a3", "m1", block("tool_use", id="t2", name="mcp__x__shot", input={})),
    typed("r1", "a3", [block("tool_result", tool_use_id="t1")], toolUseResult={"file": {}}),
    claude("attachment", "q1", "r1", attachment={
        "type": "queued_command", "prompt": "and quickly", "commandMode": "prompt",
        "origin": {"kind": "human"}}),
    typed("r2", "a4", [block("tool_result", tool_use_id="t2", is_error=None, content=[
        block("text", text="a picture"), PICTURE, block("tool_reference", tool_name="Read")])]),
    answer("a5", "r2", "m2", block("redacted_thinking", data="Eo8="), block("text", text="Done.")),
    claude("system", "y2", "a5", subtype="turn_duration", durationMs=7),
    typed("s1", None, "sub-agent's task", isSidechain=True, agentId="ab"),
    answer("s2", "s1", "m3", block("text", text="sub-agent's answer"), isSidechain=True),
    typed("u2", "y2", "go on"),
    answer("a6", "u2", "m4", block("tool_use", id="t3", name="Bash", input={"command": "x"})),
    typed("u3", "a6", [block("text", text="[Request interrupted by user for tool use]")]),
    answer("a7", "u3", "m5", block("text", text="No response requested."),
           message={"model": "<synthetic>"}),
    claude("system", "cb", None, subtype="compact_boundary", logicalParentUuid="a9",
           compactMetadata={"trigger": "auto", "preTokens": 1}),
    typed("cs", "cb", "The talk so far: …", isCompactSummary=True, isVisibleInTranscriptOnly=True),
    answer("a9", "cs", "m6", block("text", text="Kept over the compaction.")),
    typed("u4", "a9", "last words"),
    {"type": "last-prompt", "lastPrompt": "last words", "sessionId": "c0ffee00"},
    {"type": "ai-title", "aiTitle": "Looking at it", "sessionId": "c0ffee00"},
]  # fmt: skip
PRINTED: list[dict[str, Any]] = [
    {"type": "system", "subtype": "init", "session_id": "abc", "tools": []},
    {"type": "user", "message": {"role": "user", "content": [block("text", text="hello")]},
     "session_id": "abc", "parent_tool_use_id": None},
    {"type": "assistant", "message": {"id": "m", "content": [block("text", text="hi")]},
     "session_id": "abc", "parent_tool_use_id": None},
    {"type": "assistant", "message": {"id": "n", "content": [block("text", text="beside")]},
     "session_id": "abc", "parent_tool_use_id": "t"},
    {"type": "result", "subtype": "success", "result": "hi", "session_id": "abc"},
]  # fmt: skip
"""What `--output-format stream-json` prints."""


# Codex


def rollout(kind: str, **payload: Any) -> dict[str, Any]:
    """A line of a rollout."""
    return {"timestamp": "2026-01-02T03:04:05.000Z", "type": kind, "payload": payload}


def item(kind: str, **more: Any) -> dict[str, Any]:
    """An item that went to or from the model."""
    return rollout("response_item", type=kind, **more)


def spoken(role: str, *texts: str) -> dict[str, Any]:
    """A message."""
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text} for text in texts])


CODEX: list[dict[str, Any]] = [
    rollout("session_meta", id="11111111-1111-4111-8111-111111111111", cwd="/w", source="cli",
            base_instructions={"text": "x" * 2_000_000}),
    spoken("developer", "<permissions instructions> …"),
    spoken("user", "# AGENTS.md instructions for /w", "<environment_context>\n"),
    rollout("turn_context", cwd="/w", model="gpt-5"),
    rollout("event_msg", type="task_started", turn_id="1"),
    spoken("user", "list the files"),
    rollout("event_msg", type="user_message", message="list the files", images=[]),
    item("reasoning", summary=[{"type": "summary_text", "text": "I look"}], encrypted_content="g"),
    item("function_call", name="exec_command", arguments='{"cmd": "ls"}', call_id="c1"),
    item("function_call", name="exec_command", arguments="{broken", call_id="c2"),
    item("function_call_output", call_id="c2", output={"content": "no", "success": False}),
    item("function_call_output", call_id="c1", output=[
        {"type": "input_text", "text": "a picture"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}]),
    item("local_shell_call", call_id="c3", status="completed",
         action={"type": "exec", "command": ["ls"]}),
    item("function_call_output", call_id="c3", output="a"),
    item("tool_search_call", call_id="c4", execution="client", arguments={"query": "files"}),
    item("tool_search_output", call_id="c4", execution="client", tools=[{"type": "function"}]),
    item("web_search_call", status="completed", action={"type": "search", "query": "q"}),
    item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c5"),
    item("custom_tool_call_output", call_id="c5", output=[{"type": "output_text", "text": "ok"}]),
    spoken("assistant", "One file."),
    rollout("event_msg", type="agent_message", message="One file."),
    spoken("user", "taken back"),
    item("function_call", name="exec_command", arguments="{}", call_id="c6"),
    item("function_call_output", call_id="c6", output="taken back"),
    spoken("assistant", "taken back"),
    rollout("event_msg", type="thread_rolled_back", num_turns=1),
    rollout("compacted", message="the talk so far", replacement_history=[]),
    spoken("user", "and now?"),
    item("function_call", name="exec_command", arguments="{}", call_id="c7"),
    spoken("user", "<turn_aborted>\nThe user interrupted."),
    rollout("event_msg", type="turn_aborted", reason="interrupted"),
    spoken("user", "never mind"),
    item("compaction", encrypted_content="g"),
    {"timestamp": "2026-01-02T03:04:05.000Z", "type": "world_state", "payload": {}},
]  # fmt: skip


# message arrays

RESPONSES: list[dict[str, Any]] = [
    {"role": "user", "content": "what is it"},
    {"type": "reasoning", "id": "rs", "summary": []},
    {"type": "function_call", "id": "fc", "call_id": "c1", "name": "ls", "arguments": '{"p": "."}'},
    {"type": "function_call_output", "call_id": "c1", "output": "a.el"},
    {"type": "message", "id": "msg", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "One file", "annotations": []}]},
    {"type": "item_reference", "id": "x"},
]  # fmt: skip
FUNCTIONS: list[dict[str, Any]] = [
    {"role": "user", "content": "what is it"},
    {"role": "assistant", "content": None, "function_call": {"name": "ls", "arguments": "{}"}},
    {"role": "function", "name": "ls", "content": "a.el"},
    {"role": "assistant", "content": None, "refusal": "I would rather not"},
    {"role": "assistant", "content": None},
]


# ChatGPT


def tree(*nodes: dict[str, Any]) -> dict[str, Any]:
    """A conversation whose nodes follow each other, unless they name their parent."""
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None}}
    before = "root"
    for number, node in enumerate(nodes):
        parent = node.pop("parent", before)
        before = f"n{number}"
        mapping[before] = {"id": before, "message": {"id": before, **node}, "parent": parent}
    for name, node in mapping.items():
        node["children"] = [one["id"] for one in mapping.values() if one["parent"] == name]
    return {"title": "Weather", "create_time": 1.0, "update_time": 2.0, "mapping": mapping,
            "current_node": before, "conversation_id": "gpt-1"}  # fmt: skip


def node(role: str, content: Any, recipient: str = "all", **more: Any) -> dict[str, Any]:
    """A message of a tree."""
    given = content if isinstance(content, dict) else {"content_type": "text", "parts": [content]}
    return {"author": {"role": role, "name": None, "metadata": {}}, "create_time": 1761699578.3,
            "content": given, "recipient": recipient, "status": "finished_successfully",
            "metadata": {}, "weight": 1.0, **more}  # fmt: skip


CHATGPT = tree(
    node("system", ""),
    node("user", "what is the weather", metadata={"attachments": [{"name": "a.pdf"}]}),
    node("assistant", {"content_type": "code", "text": '{"q": ["rain"]}'}, "web.run"),
    node("tool", {"content_type": "tether_browsing_display", "result": "wet", "summary": None},
         metadata={"is_visually_hidden_from_conversation": True}),
    node("tool", {"content_type": "tether_quote", "url": "u", "text": "very wet", "title": "t"}),
    node("assistant", "It rains."),
    node("assistant", "It is dry.", parent="n4"),
    node("user", {"content_type": "multimodal_text", "parts": [
        {"content_type": "audio_transcription", "text": "and tomorrow", "direction": "in"},
        {"content_type": "real_time_user_audio_video_asset_pointer"}]}),
    node("assistant", {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}),
    node("assistant", {"content_type": "reasoning_recap", "content": "Thought for 2s"}),
    node("assistant", "partly", status="in_progress"),
)  # fmt: skip
SAMPLES = {
    "claude-code": lines(*CLAUDE),
    "codex": lines(*CODEX),
    "messages": json.dumps(RESPONSES),
    "chatgpt": json.dumps([CHATGPT]),
}
