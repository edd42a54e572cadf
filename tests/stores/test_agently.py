"""The Agently form as a format of export and import (U7.4, U7.5, A8)."""

import json
from typing import Any

import pytest

from tests.session.histories import result, says, user, uses
from tests.stores.test_formats import form, opened
from tiro import Message, SessionFormatError
from tiro.session.core import Core
from tiro.stores.formats import registry

NAMES = ["agently", "agently-yaml"]


def talk() -> Core:
    core = Core()
    for message in (user("🙂 one"), uses("a"), result("a"), says("two"), user("taken back")):
        core.append(message)
    core.append(Message.from_dict({"role": "critic", "content": "x", "mood": ["calm"]}))
    core.change(id="s", memo={"k": 1}, max_history=3)
    core.prune()
    return core


def imported(text: str) -> Any:
    return registry.recognised(text).loads(text)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_recognised_and_comes_back_with_equal_messages(name: str) -> None:
    """U7.4: exported again, it is the same text."""
    text = registry.named(name).dumps(form(talk()))
    assert registry.recognised(text).name == name
    again = opened(imported(text))
    assert [m.content for m in again.full()] == [m.content for m in talk().full()]
    assert len(again.newest_first) == 3
    assert (again.memo, again.turns, again.id) == ({"k": 1}, 2, "s")
    assert registry.named(name).dumps(form(again)) == text
    assert registry.earlier_id(text) == "s"


def test_a_foreign_file_is_exported_as_it_came() -> None:
    """U7.4, U7.5: with what is only in the window, of which a note tells."""
    rows = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "x": None}]
    note = {"role": "user", "content": "in short"}
    value = {"id": "f", "full_chat_history": rows, "current_chat_history": [note, rows[1]]}
    read = imported(json.dumps(value))
    assert read.notes == ["Only in the window, and not in the full history: 1"]
    again = json.loads(registry.named("agently").dumps(form(opened(read))))
    assert {key: again[key] for key in value} == value


@pytest.mark.parametrize("name", ["json", "yaml", "jsonl"])
def test_a_session_that_speaks_of_the_form_is_not_taken_for_it(name: str) -> None:
    """U7.4: the format is recognised by what it is, not by what is said in it."""
    core = Core()
    core.append(user('"full_chat_history": [1]\nfull_chat_history:\n- 1'))
    core.append(Message("user", [{"type": "?", "full_chat_history": [{"full_chat_history": 1}]}]))
    core.unknown = {"full_chat_history": []}
    text = registry.named(name).dumps(form(core))
    assert registry.recognised(text).name == name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"full_chat_history": [{"role": "user"}]}', "content"),
        ('{"full_chat_history": 1}', "list of messages"),
        ('{"full_chat_history": [], "turns": "x"}', "whole number"),
        ("full_chat_history:\n- 1\n", "list of messages"),
        ("full_chat_history: [", "YAML"),
    ],
)
def test_what_is_broken_is_refused_with_a_reason(text: str, reason: str) -> None:
    """A8.4: sessionFileInvalid on the wire."""
    with pytest.raises(SessionFormatError, match=reason):
        imported(text)


@pytest.mark.parametrize("name", NAMES)
def test_what_has_no_history_is_refused(name: str) -> None:
    """A session without a message would be taken for all that was in it."""
    text = json.dumps({"id": "a", "full_context": [{"role": "user", "content": "x"}]})
    with pytest.raises(SessionFormatError, match="neither full_chat_history nor current"):
        registry.named(name).loads(text)
