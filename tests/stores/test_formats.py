"""Formats (U7, N6, A8): what goes out comes back the same, what is no session is refused."""

import contextlib
import json
import sys
from itertools import pairwise
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.session.histories import any_history, result, says, user, uses
from tests.sizes import sized
from tiro import InvalidInputError, Message, SessionFormatError
from tiro.session.changes import Cover, TakeBack
from tiro.session.core import Core
from tiro.session.json_text import clean, decode, encode
from tiro.stores.formats import registry
from tiro.stores.formats.format import Imported

EXAMPLES = sized(fast=60, normal=120, long=3000)
ODD = ["no", "1e3", "~", "", " a", "a ", "a\tb", "\u0085", "x\u0085y\n", "\u2028", "\ufeff", "\0",
       "half \ud83d", "a\r\nb", "- x: [", "---\n...", "#", "12:30:45", "2025-02-21", "<<", "=",
       "\n", "\n\n x\n  y \n", " \n", "é\n漢字 🙂", "'\"", "\x1b[0m\n", "```\n"]  # fmt: skip
TEXTS = st.one_of(st.sampled_from(ODD), st.text(max_size=20))
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**80), 2**80),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def sessions(draw: st.DrawFn) -> Core:
    """Sessions with a window, an archive, memories, odd texts, unknown blocks and keys."""
    core = Core()
    for message in draw(any_history):
        core.append(message)
    core.append(Message.from_dict({"role": "user", "content": draw(TEXTS), "x-y": draw(VALUES)}))
    core.append(Message("user", [{"type": "text", "text": draw(TEXTS)}, {"type": "?", "v": 1}]))
    archived = draw(st.lists(any_history.map(len), max_size=1))
    if archived:
        core.change(max_history=max(1, archived[0]))
        core.prune()
    core.change(memo=draw(VALUES), summary=draw(TEXTS), metadata={"m": draw(VALUES)})
    core.change(title=draw(st.none() | TEXTS), id="one", settings={"a.b": draw(VALUES)})
    core.state = {"k": draw(VALUES), **draw(st.dictionaries(TEXTS, VALUES, max_size=2))}
    core.unknown = {"future": draw(VALUES)}
    return core


def form(core: Core) -> dict[str, Any]:
    """What a file of the session holds, ready to be compared, key order included."""
    fields: dict[str, Any] = decode(encode(core.snapshot()))
    return fields


def opened(imported: Imported) -> Core:
    core = Core()
    core.restore(imported.stored)
    return core


def there_and_back(core: Core, name: str) -> Core:
    text = registry.named(name).dumps(form(core))
    assert registry.recognised(text).name == name
    imported = registry.recognised(text).loads(text)
    assert imported.notes == []
    return opened(imported)


@pytest.mark.parametrize("name", ["json", "yaml"])
@given(core=sessions())
@settings(max_examples=EXAMPLES, deadline=None)
def test_what_is_exported_comes_back_equal(name: str, core: Core) -> None:
    """U7.1, U7.2: archive, marks, memories, unknown keys, order, big integers, odd texts."""
    again = there_and_back(core, name)
    assert json.dumps(form(again)) == json.dumps(form(core))


@given(core=sessions())
@settings(max_examples=EXAMPLES // 3, deadline=None)
def test_yaml_is_the_same_without_the_c_library(core: Core) -> None:
    """Whoever has PyYAML without libyaml gets the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeLoader")
        patch.delattr(yaml, "CSafeDumper")
        assert json.dumps(form(there_and_back(core, "yaml"))) == json.dumps(form(core))


@given(core=sessions())
@settings(max_examples=EXAMPLES // 3, deadline=None)
def test_yaml_says_what_json_says_to_anybody(core: Core) -> None:
    """Any YAML 1.1 reader sees the values; text stays text."""
    assert yaml.safe_load(registry.named("yaml").dumps(form(core))) == form(core)


@given(core=sessions())
@settings(max_examples=EXAMPLES, deadline=None)
def test_jsonl_keeps_every_message_that_was_not_taken_back(core: Core) -> None:
    """N6.1: one message a line; pending ones are in the window again."""
    again = there_and_back(core, "jsonl")
    kept = [
        m for m in [*core.archive_rows, *core.oldest_first()] if not m.marks().get("taken_back")
    ]
    back = [*again.archive_rows, *again.oldest_first()]
    assert [(m.seq, clean(m.content)) for m in back] == [(m.seq, clean(m.content)) for m in kept]
    assert (again.summary, again.id) == (clean(core.summary), core.id)
    assert form(again)["memo"] == form(core)["memo"]


def test_jsonl_of_one_long_message_is_known() -> None:
    """A line may be longer than what is looked at."""
    text = json.dumps({"role": "user", "content": "x" * 9_000_000}) + "\n"
    assert registry.recognised(text).name == "jsonl"


def test_jsonl_has_the_lines_that_it_is_known_by() -> None:
    """N6.1, N6.2: covered messages are counted, pending ones stand in the window."""
    core = Core()
    core.append(user("covered"))
    core.append(says("pending"))
    core.append(user("here"))
    core.change(id="chat", max_history=1, summary="said before")
    core.prune()
    core.commit(Cover([1], core.stamp()))
    text = registry.named("jsonl").dumps(form(core))
    first, *rows = map(json.loads, text.splitlines())
    assert first["_type"] == "metadata"
    assert (first["key"], first["last_consolidated"], first["summary"]) == (
        "chat",
        1,
        "said before",
    )
    assert [row["content"] for row in rows] == ["covered", "pending", "here"]
    again = opened(registry.recognised(text).loads(text))
    assert [m.content for m in again.archive_rows] == ["covered"]
    assert [(m.content, m.marks()) for m in again.oldest_first()] == [("pending", {}), ("here", {})]


@pytest.mark.parametrize(
    ("covered", "hidden"), [(1, 1), (3, 0), (-1, 0), ("1", 0), (True, 0), (None, 0)]
)
def test_a_bad_count_hides_no_message(covered: object, hidden: int) -> None:
    """N6.2."""
    first = {"_type": "metadata", "key": "k", "last_consolidated": covered, "summary": None}
    rows = [first, {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    imported = registry.named("jsonl").loads("\n".join(map(json.dumps, rows)))
    assert len(imported.stored.archive) == hidden
    assert imported.stored.fields["summary"] == ""


def test_broken_lines_are_left_out_and_told() -> None:
    """N6.5: the messages survive a broken first line; nothing valid is no session."""
    text = '{"_type": "metadata", "key": \n{"role": "user", "content": "a"}\n[1]\n{"role": 1}\n'
    imported = registry.recognised(text).loads(text)
    assert [m.content for m in imported.stored.messages] == ["a"]
    assert imported.notes == ["3 lines are broken and were left out"]
    with pytest.raises(SessionFormatError):
        registry.named("jsonl").loads("{\n{\n")


def test_what_a_reader_changes_is_told() -> None:
    text = encode({"messages": [], "next_seq": "three", "usage": {"input_tokens": 1}}).decode()
    assert registry.recognised(text).loads(text).notes == [
        "The field 'next_seq' could not be used as it was"
    ]


def bomb(first: str, form: str) -> str:
    """Six lines, each of which stands for the one before fifty times."""
    lines = [f"a: &a {first}"]
    for old, new in pairwise("abcdefg"):
        lines.append(f"{new}: &{new} " + form.replace("@", ", ".join([f"*{old}"] * 50)))
    return "\n".join([*lines, "messages: []", ""])


LAUGHS = bomb("[x, x]", "[@]")
MERGES = bomb("{k: 1}", "{<<: [@]}")


@pytest.mark.parametrize(
    "text",
    [
        "messages:\n- !!python/object/apply:os.system ['true']\n",
        "messages:\n- !!python/name:os.system\n",
        "messages: []\nx: !!binary aGk=\n",
        "messages: []\nx: !!set {a}\n",
        "messages: []\n? [a]\n: b\n",
        "messages: &m\n- *m\n",
        "messages: []\nx: &m {a: *m}\n",
        "messages: []\nx: *nowhere\n",
        "messages: []\nx: " + "9" * 5000,
        "messages: []\nx: 0x" + "f" * 5000,
        "messages: []\nx: " + "1:" * 5000 + "1",
        "messages: []\nx: [\n",
        "messages: []\n---\nmessages: []\n",
        "messages: []\nx: " + "[" * 5_000 + "]" * 5_000,
        "messages: []\nx: " + "[" * 200_000,
        LAUGHS,
        MERGES,
    ],
)
def test_yaml_that_is_no_plain_value_is_refused(text: str) -> None:
    with pytest.raises(SessionFormatError):
        registry.recognised(text).loads(text)


def test_yaml_keys_and_dates_stay_as_they_are_written() -> None:
    """A hand-written file: nobody quotes a date, and nothing is merged (which could explode)."""
    text = "id: 2025-02-21\nmessages:\n- {role: user, content: 2025-02-21}\nstate: {1: a, no: b}\n"
    stored = registry.recognised(text).loads(text).stored
    assert stored.fields["id"] == "2025-02-21"
    assert stored.messages[0].content == "2025-02-21"
    assert stored.fields["state"] == {"1": "a", "no": "b"}
    merging = "messages: []\na: &a {k: 1}\nb: {<<: *a}\n"
    assert registry.recognised(merging).loads(merging).stored.unknown["b"] == {"<<": {"k": 1}}


def test_shared_values_of_a_foreign_yaml_are_read() -> None:
    """PyYAML writes an anchor where one object is in two places."""
    row = {"role": "user", "content": "hi"}
    text = yaml.safe_dump({"messages": [row], "state": {"last": row}})
    assert "&id001" in text
    stored = registry.recognised(text).loads(text).stored
    assert stored.fields["state"]["last"] == row


@pytest.mark.parametrize(
    "text",
    ["", "\n", "hello", "[]", '[{"role": "user", "content": 1}]', "{}", '{"messages": [', "{",
     '{"id": "x"}', "\ufeff", "null", "1", '{"messages": [1]}', "- 1\n",
     '{"schema_version": 99, "messages": []}', "# Notes\n", "id: x\n",
     "<!-- tiro session \"a\" -->\n"],
)  # fmt: skip
def test_what_is_no_session_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(SessionFormatError) as caught:
        registry.recognised(text).loads(text)
    assert caught.value.data["reason"]
    assert caught.value.data["recovered"] == 0


def test_a_torn_session_file_is_not_taken_for_lines() -> None:
    """Protocol section 1: nothing is loaded in part."""
    core = Core()
    for n in range(3):
        core.append(user(f"{n}"))
    text = registry.named("json").dumps(form(core))
    torn = text[: text.rindex("2") + 3]
    with pytest.raises(SessionFormatError) as caught:
        registry.recognised(torn).loads(torn)
    assert caught.value.data["recovered"] == 2


def test_lines_of_another_kind_are_told_as_such() -> None:
    """They are no JSON that is damaged somewhere."""
    for text in ('{"a": 1}\n{"b": 2}\n', '\ufeff\n{"level": "info"}\n{"level": "info"}'):
        with pytest.raises(SessionFormatError, match="Its lines are JSON, but in no form"):
            registry.recognised(text).loads(text)
    with pytest.raises(SessionFormatError, match="no valid JSON"):
        registry.named("json").loads('{"messages": [],\n"id": ')


def test_an_unknown_format_names_those_there_are() -> None:
    with pytest.raises(InvalidInputError, match="agently, agently-yaml, chatgpt, claude-code"):
        registry.named("word")


@pytest.mark.parametrize("name", sorted({*registry.WRITTEN} - {"go-agent"}))
@pytest.mark.parametrize("id", ["a", "chat:1", 'x" -->', None])
def test_an_export_says_whose_it_is(name: str, id: str | None) -> None:
    core = Core()
    core.append(user("earlier"))
    core.change(id=id)
    assert registry.earlier_id(registry.named(name).dumps(form(core))) == (id or "")
    assert registry.earlier_id("something else") is None


# Markdown


def markdown(*messages: Message, **fields: Any) -> str:
    core = Core()
    for message in messages:
        core.append(message)
    core.change(id="s", **fields)
    return registry.named("markdown").dumps(form(core))


def test_markdown_has_a_heading_for_each_role() -> None:
    text = markdown(user("Find"), uses("a", text="I look"), result("a", "x.el"), says("One"),
                    title="Files *and* more")  # fmt: skip
    lines = text.splitlines()
    assert lines[2] == "# Files \\*and\\* more"
    headings = [line.split(" ·")[0] for line in lines if line.startswith("## ")]
    assert headings == ["## User", "## Assistant", "## Tool", "## Assistant"]
    assert "<summary>Tool use: glob" in text
    assert "<summary>Result of glob</summary>" in text


@pytest.mark.parametrize(
    ("inside", "fence"),
    [("```\ncode\n```", "````"), ("````md\n```\n````", "`````"), ("~~~\n`\n~~~", "```")],
)
def test_markdown_keeps_code_and_folds_results_around_any_fence(inside: str, fence: str) -> None:
    text = markdown(user(inside), uses("a"), result("a", inside), says("after"))
    assert f"\n\n{inside}\n\n## Assistant" in text
    assert f"\n\n{fence}\n{inside}\n{fence}\n\n</details>" in text


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ("````py\n```\nprint()", "\n````"),
        ("1. so:\n   ~~~\n   x", "\n   ~~~"),
        ("<!-- hidden\n```", "\n-->"),
        ("<pre>\n# x", "\n</pre>"),
        ("<?php\n```", "\n?>"),
        ("```\ncode\n```", ""),
        ("    ```\n", ""),
        ("x ```y", ""),
        ("``` a`b", ""),
        ("<!-- x -->\n", ""),
        ("<div>\n```\n</div>", ""),
    ],
)
def test_markdown_closes_what_was_left_open(text: str, closing: str) -> None:
    """What an interrupted answer left open must not swallow the rest (CommonMark 4.5, 4.6)."""
    shown = text.strip("\n") + closing
    assert f"\n\n{shown}\n\n## User" in markdown(user("q"), says(text), user("next"))


def test_markdown_names_attachments_and_unknown_blocks() -> None:
    place = {"start": {"line": 1, "character": 0}, "end": {"line": 4, "character": 0}}
    text = markdown(Message("user", [
        {"type": "text", "text": "see"},
        {"type": "attachment", "kind": "selection", "path": "/src/a_b.py", "range": place,
         "text": "t"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
        {"type": "hologram", "v": 1},
    ]))  # fmt: skip
    assert "*Attached selection: /src/a\\_b.py, lines 2 to 5*" in text
    assert "*Image image/png*" in text
    assert "*hologram*" in text
    assert "QQ==" not in text


def test_markdown_leaves_out_what_was_taken_back() -> None:
    core = Core()
    core.append(user("first wording"))
    core.append(says("gone"))
    core.commit(TakeBack([2], core.stamp()))
    text = registry.named("markdown").dumps({**form(core), "id": "s"})
    assert "first wording" in text
    assert "gone" not in text


def test_a_deep_value_is_written_or_refused_but_never_ends_the_process() -> None:
    deep: Any = []
    for _ in range(150):
        deep = [deep]
    core = Core()
    core.append(user("x"))
    core.change(metadata={"deep": deep})
    for name in ("json", "yaml"):
        assert form(there_and_back(core, name))["metadata"] == {"deep": deep}
    assert sys.getrecursionlimit() >= 1000


@pytest.mark.parametrize("depth", [990, 1000, 100_000])
@pytest.mark.parametrize("form", ['{"messages":[],"memo":%s}', '{"messages":[%s]}', "%s", "a: %s"])
def test_json_that_is_nested_too_deeply_is_refused(form: str, depth: int) -> None:
    """Protocol section 3: whatever a file holds, it is a session or `sessionFileInvalid`."""
    text = form % ("[" * depth + "]" * depth)
    assert registry.earlier_id(text) in (None, "")
    with contextlib.suppress(SessionFormatError):
        registry.recognised(text).loads(text)


def test_a_line_that_is_nested_too_deeply_is_left_out() -> None:
    """N6.5: one bad line costs no other."""
    deep = "[" * 100_000 + "]" * 100_000
    text = f'{{"_type":"metadata","key":"k"}}\n{{"role":"user","content":{deep}}}\n'
    imported = registry.named("jsonl").loads(text + '{"role":"user","content":"y"}\n')
    assert imported.notes == ["1 line is broken and was left out"]
    assert [message.content for message in imported.stored.messages] == ["y"]


@given(core=sessions(), data=st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_text_that_was_changed_anyhow_is_read_or_refused(core: Core, data: st.DataObject) -> None:
    """Whatever an editor, a disk or a mail program made of it; nothing but a refusal is raised."""
    name = data.draw(st.sampled_from(["json", "yaml", "jsonl"]))
    text = registry.named(name).dumps(form(core))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    changed = text[:start] + data.draw(TEXTS) + text[end:]
    for chosen in (registry.named(name), *(f for f in registry.FORMATS if f.looks_like(changed))):
        with contextlib.suppress(SessionFormatError):
            opened(chosen.loads(changed))
        chosen.earlier_id(changed)
