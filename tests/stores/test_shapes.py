"""Every record that other programs write today becomes a message or is named (issue 8, U7.4)."""

import json
from typing import Any

import pytest

from tests.stores.shapes import (
    CHATGPT,
    CLAUDE,
    FUNCTIONS,
    PICTURE,
    PRINTED,
    RESPONSES,
    SAMPLES,
    SNAPSHOTS,
    THOUGHT,
    answer,
    block,
    claude,
    lines,
    node,
    rollout,
    spoken,
    tree,
    typed,
)
from tests.stores.test_transcripts import read, said
from tiro.session.messages import text_of, tool_results_of, tool_uses_of
from tiro.stores.formats import registry
from tiro.stores.formats.format import Imported


def text(text: str) -> dict[str, Any]:
    return block("text", text=text)


def left_out(imported: Imported) -> dict[str, int]:
    """What is counted as not taken over."""
    (note,) = imported.notes
    listed = note.removeprefix("Not taken over: ")
    assert listed != note
    pairs = (part.rpartition(": ") for part in listed.split(", "))
    return {what: int(count) for what, _, count in pairs}


def check_paired(imported: Imported) -> None:
    """Every result answers a use before it."""
    open_uses = set[str]()
    for message in imported.stored.messages:
        answered = {result.tool_use_id for result in tool_results_of(message)}
        assert answered <= open_uses
        open_uses |= {use.id for use in tool_uses_of(message)}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_result_stands_after_its_use(name: str) -> None:
    check_paired(read(SAMPLES[name], name))


# Claude Code


def test_claude_code_is_known_by_any_of_its_records() -> None:
    """It may begin with a page of snapshots, or with a line longer than most files."""
    huge = {**typed("u", None, "x" * 9_000_000), "type": "user"}
    rest = [typed("v", "u", "hello"), answer("w", "v", "m", text("hi"))]
    for begin in (SNAPSHOTS, [huge], *([row] * 30 for row in CLAUDE)):
        assert registry.recognised(lines(*begin, *rest)).name == "claude-code"


def test_all_that_claude_code_writes_is_taken_over_or_named() -> None:
    imported = read(SAMPLES["claude-code"], "claude-code")
    given = {"file_path": "/w/a"}
    assert said(imported) == [
        ("user", [text("look at it"), PICTURE]),
        (
            "assistant",
            [
                THOUGHT,
                text("Both at once."),
                block("tool_use", id="t1", name="Read", input=given),
                block("tool_use", id="t2", name="mcp__x__shot", input={}),
            ],
        ),
        ("tool", block("tool_result", tool_use_id="t1", content="")),
        ("user", "and quickly"),
        (
            "tool",
            block(
                "tool_result",
                tool_use_id="t2",
                content=[
                    text("a picture"),
                    PICTURE,
                    block("tool_reference", tool_name="Read"),
                ],
            ),
        ),
        ("assistant", [block("redacted_thinking", data="Eo8="), text("Done.")]),
        ("user", "go on"),
        ("assistant", [block("tool_use", id="t3", name="Bash", input={"command": "x"})]),
        ("user", "[Request interrupted by user for tool use]"),
        ("assistant", "Kept over the compaction."),
        ("user", "last words"),
    ]
    assert imported.stored.fields["title"] == "Looking at it"
    assert left_out(imported) == {
        "file-history-snapshot": 30,
        "queue-operation": 1,
        "permission-mode": 1,
        "progress": 1,
        "attachment (hook_success)": 1,
        "system (local_command)": 1,
        "system (turn_duration)": 1,
        "said by sub-agents": 2,
        "written by Claude Code itself": 2,
        "system (compact_boundary)": 1,
        "last-prompt": 1,
    }


def test_a_transcript_that_repeats_its_lines_is_read_once() -> None:
    """As older versions did where a session was resumed."""
    assert said(read(lines(*CLAUDE, *CLAUDE), "claude-code")) == said(
        read(lines(*CLAUDE), "claude-code")
    )


def test_a_transcript_that_begins_after_a_compaction_keeps_its_summary() -> None:
    """What was said before it is nowhere else in the file."""
    summary = typed("s", None, "What was said", isCompactSummary=True)
    imported = read(lines(summary, typed("u", "s", "go on")), "claude-code")
    assert said(imported) == [("user", "What was said"), ("user", "go on")]


def test_what_claude_code_prints_as_json_is_read() -> None:
    imported = read(lines(*PRINTED), "claude-code")
    assert said(imported) == [("user", "hello"), ("assistant", "hi")]
    assert imported.stored.fields["id"] == "abc"
    assert left_out(imported) == {
        "system (init)": 1,
        "said by sub-agents": 1,
        "result (success)": 1,
    }


def test_any_new_record_of_claude_code_is_named() -> None:
    new: list[dict[str, Any]] = [
        claude("hologram", "x", "u"),
        {"type": ["odd"]},
        {"sessionId": "s"},
    ]
    imported = read(lines(typed("u", None, "hello"), *new), "claude-code")
    assert left_out(imported) == {"hologram": 1, "items of no type": 2}


# Codex


def test_all_that_codex_writes_is_taken_over_or_named() -> None:
    """Its first line may be megabytes long; a turn that was taken back is none."""
    imported = read(SAMPLES["codex"], "codex")
    spoken_by = [(m.role, text_of(m)) for m in imported.stored.messages if m.role != "tool"]
    assert spoken_by == [
        ("user", "list the files"),
        ("assistant", ""),
        ("assistant", ""),
        ("assistant", ""),
        ("assistant", ""),
        ("assistant", "One file."),
        ("user", "and now?"),
        ("assistant", ""),
        ("user", "never mind"),
    ]
    results = {r.tool_use_id: r for m in imported.stored.messages for r in tool_results_of(m)}
    uses = {u.id: u for m in imported.stored.messages for u in tool_uses_of(m)}
    assert list(uses) == ["c1", "c2", "c3", "c4", "c5", "c7"]
    assert uses["c2"].input == {"input": "{broken"}
    assert (uses["c3"].name, uses["c4"].name) == ("shell", "tool_search")
    assert results.keys() == uses.keys() - {"c7"}
    assert results["c1"].content == [text("a picture"), PICTURE]
    assert (results["c2"].content, results["c2"].is_error) == ("no", True)
    assert left_out(imported) == {
        "written by Codex itself": 3,
        "turn_context": 1,
        "events for its interface": 4,
        "web_search_call": 1,
        "in turns that were taken back": 4,
        "compacted": 1,
        "compaction": 1,
        "world_state": 1,
    }


def test_what_only_the_events_of_codex_say_is_read() -> None:
    rows = [
        rollout("session_meta", id="x"),
        rollout("event_msg", type="user_message", message="hello"),
        rollout("event_msg", type="token_count", info=None),
        rollout("event_msg", type="agent_message", message="hi"),
    ]
    imported = read(lines(*rows), "codex")
    assert said(imported) == [("user", "hello"), ("assistant", "hi")]
    assert left_out(imported) == {"events for its interface": 1}


@pytest.mark.parametrize(
    ("payload", "first"),
    [
        ({"message": "the talk so far", "replacement_history": []}, "the talk so far"),
        ({"message": "", "replacement_history": [spoken("user", "kept")["payload"]]}, "kept"),
    ],
)
def test_a_rollout_that_begins_after_a_compaction_keeps_what_came_of_it(
    payload: dict[str, Any], first: str
) -> None:
    rows = [rollout("session_meta", id="x"), rollout("compacted", **payload), spoken("user", "on")]
    assert said(read(lines(*rows), "codex")) == [("user", first), ("user", "on")]


def test_taking_back_more_turns_than_there_are_takes_back_all() -> None:
    rows = [
        rollout("session_meta", id="x"),
        spoken("user", "one"),
        spoken("assistant", "1"),
        rollout("event_msg", type="thread_rolled_back", num_turns=9),
        rollout("event_msg", type="thread_rolled_back", num_turns="x"),
        spoken("user", "two"),
    ]
    imported = read(lines(*rows), "codex")
    assert said(imported) == [("user", "two")]
    assert left_out(imported) == {"in turns that were taken back": 2}


# message arrays


def test_items_of_openais_newer_api_are_read() -> None:
    """Also where the array begins with one that is no message."""
    imported = read(json.dumps(RESPONSES), "messages")
    use = block("tool_use", id="c1", name="ls", input={"p": "."})
    assert said(imported) == [
        ("user", "what is it"),
        ("assistant", [use]),
        ("tool", block("tool_result", tool_use_id="c1", content="a.el")),
        ("assistant", "One file"),
    ]
    assert left_out(imported) == {
        "reasoning that only its provider can read": 1,
        "item_reference": 1,
    }
    assert said(read(json.dumps(RESPONSES[2:5]), "messages")) == said(imported)[1:]


def test_functions_as_openai_called_them_once_stay_paired() -> None:
    """They have no ids; what was refused is what was said."""
    imported = read(json.dumps(FUNCTIONS), "messages")
    check_paired(imported)
    assert [(m.role, m.content, m.tool_call_id) for m in imported.stored.messages] == [
        ("user", "what is it", None),
        ("assistant", "", None),
        ("tool", "a.el", "call_1"),
        ("assistant", "I would rather not", None),
    ]
    assert left_out(imported) == {"messages without content": 1}


def test_a_result_without_content_is_one() -> None:
    """As Anthropic takes it."""
    rows = [
        {"role": "assistant", "content": [block("tool_use", id="a", name="ls", input={})]},
        {"role": "user", "content": [block("tool_result", tool_use_id="a")]},
    ]
    imported = read(json.dumps(rows), "messages")
    (result,) = tool_results_of(imported.stored.messages[1])
    assert (result.tool_use_id, result.content) == ("a", "")


# ChatGPT


def test_all_that_chatgpt_writes_is_taken_over_or_named() -> None:
    """What a tool gave in several messages is one result, also where it was not shown."""
    imported = read(SAMPLES["chatgpt"], "chatgpt")
    use = block("tool_use", id="n2", name="web.run", input={"q": ["rain"]})
    assert said(imported) == [
        ("user", "what is the weather"),
        ("assistant", [use]),
        ("tool", block("tool_result", tool_use_id="n2", content="wet\n\nvery wet")),
        ("assistant", "It is dry."),
        ("user", "and tomorrow\n\n[real_time_user_audio_video_asset_pointer]"),
        ("assistant", [block("thinking", thinking="hm"), text("partly")]),
    ]
    assert imported.notes == [
        "Not taken over: pictures, recordings and files that are not in this file: 2,"
        " written by ChatGPT itself: 1, in branches that were left: 1"
    ]


def test_uses_side_by_side_in_chatgpt_keep_their_results() -> None:
    one = tree(
        node("assistant", "a", "web"),
        node("assistant", "b", "python"),
        node("tool", "A"),
        node("tool", "B"),
    )
    check_paired(read(json.dumps([one]), "chatgpt"))
    rows = said(read(json.dumps([one]), "chatgpt"))
    assert [content["content"] for role, content in rows if role == "tool"] == ["A", "B"]


def test_what_older_conversations_lose_is_told_too() -> None:
    """Not only what the newest of them loses."""
    other = tree(node("user", "hello"))
    imported = read(json.dumps([CHATGPT, {**other, "update_time": 9.0}]), "chatgpt")
    assert said(imported) == [("user", "hello")]
    assert any("in branches that were left: 1" in note for note in imported.notes)


# gptel


def test_reasoning_between_fences_of_gptel_is_thinking() -> None:
    """Versions of it mark only the fences as ignored, or all of the passage."""
    fences = [("ignore", "``` reasoning\n"), ("response", "hm"), ("ignore", "\n```\n")]
    for parts in (fences, [("ignore", "``` reasoning\nhm\n```\n")]):
        body, places, at = "q\n", [], 3
        for kind, part in [*parts, ("response", "Yes.")]:
            body += part
            places.append(f"({kind} ({at} {at + len(part)}))")
            at += len(part)
        bounds = f"<!-- gptel--bounds: ({' '.join(places)}) -->"
        local = f"<!-- Local Variables: -->\n{bounds}\n<!-- End: -->\n"
        imported = read(f"{body}\n\n{local}", "gptel")
        thought = block("thinking", thinking="hm")
        assert said(imported) == [("user", "q"), ("assistant", [thought, text("Yes.")])]
        assert imported.notes == []
