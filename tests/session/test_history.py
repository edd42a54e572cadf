"""Adding, answering, taking back and editing messages (M1.4, M2.5, protocol section 2)."""

from typing import Any

import pytest

from tests.session.histories import result, says, user, uses
from tiro import InvalidInputError, InvalidMessageError, Session
from tiro.session.history import check_answers, checked, open_tool_uses

TEXT = {"type": "text", "text": "x"}


def roles(session: Session) -> list[str]:
    """The roles of the window, oldest first."""
    return [m.role for m in session.messages]


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "critic", "content": "x"},
        {"role": "developer", "content": "x"},
        {"role": "user", "content": [{"text": "no type"}]},
        {"role": "user", "content": [{"type": 7}]},
        {"role": "user", "content": ["no block"]},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "text", "text": 1}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "x"}],
        },
        {"role": "tool", "content": "text"},
        {"role": "tool", "content": []},
        {"role": "tool", "content": [TEXT]},
        {"role": "tool", "content": {"type": "tool_result", "content": "x"}},
        {"role": "user", "content": {"type": "image"}},
        {"role": "user", "content": [{"type": "attachment", "kind": "file"}]},
    ],
)
def test_a_broken_message_is_refused(fields: dict[str, Any]) -> None:
    """Protocol section 2, open points 20 and 24."""
    with pytest.raises(InvalidMessageError) as caught:
        checked(fields)
    assert caught.value.data["reason"]


@pytest.mark.parametrize("fields", [{"content": "x"}, {"role": "user"}])
def test_a_message_without_role_or_content_is_a_key_error(fields: dict[str, Any]) -> None:
    """A1.9."""
    with pytest.raises(KeyError):
        checked(fields)
    session = Session()
    with pytest.raises(KeyError):
        session.append_message(fields)
    assert session.messages == []


@pytest.mark.parametrize("content", [1, True, None, 1.5])
def test_content_that_is_none_is_a_type_error(content: Any) -> None:
    """Protocol: neither string, object nor list is -32602."""
    with pytest.raises((TypeError, KeyError)):
        checked({"role": "user", "content": content})


def test_unknown_blocks_and_fields_are_kept() -> None:
    """Protocol: any other type is kept verbatim; a client's marks are dropped."""
    fields = {
        "role": "user",
        "content": [{"type": "hologram", "z": 1, "a": 2}],
        "x-y": 1,
        "seq": 99,
        "metadata": {"tiro": {"pending": True}, "mine": 1},
    }
    message = checked(fields)
    assert message.content == [{"type": "hologram", "z": 1, "a": 2}]
    assert message.extra == {"x-y": 1}
    assert message.metadata == {"mine": 1}
    assert message.seq is None


def test_a_list_of_results_becomes_one_message_each() -> None:
    """M1.4."""
    session = Session()
    session.append_message(user()).append_message(uses("a", "b"))
    blocks = [result("a").content, result("b").content]
    session.append_message({"role": "tool", "content": blocks})
    assert roles(session) == ["user", "assistant", "tool", "tool"]
    assert [m.content for m in session.messages[2:]] == blocks


def test_a_result_for_an_unknown_or_answered_tool_use_is_refused() -> None:
    """M2.5."""
    session = Session()
    session.append_message(user()).append_message(uses("a"))
    check_answers(session, result("a"))
    with pytest.raises(InvalidMessageError) as caught:
        check_answers(session, result("b"))
    assert caught.value.data["tool_use_id"] == "b"
    session.append_message(result("a"))
    with pytest.raises(InvalidMessageError):
        check_answers(session, result("a"))
    assert open_tool_uses(session.newest_first) == set()


def test_a_reused_id_is_open_again() -> None:
    """Open point 7: a result answers the latest earlier use with its id."""
    session = Session()
    for message in (user(), uses("a"), result("a"), uses("a")):
        session.append_message(message)
    assert open_tool_uses(session.newest_first) == {"a"}


@pytest.mark.parametrize(("to_seq", "left"), [(5, 5), (4, 1), (3, 1), (2, 1), (1, 1), (0, 0)])
def test_a_rewind_inside_a_group_takes_the_whole_group(to_seq: int, left: int) -> None:
    """Protocol, rewind."""
    session = Session()
    for message in (user(), uses("a", "b", "c"), result("a"), result("b"), result("c"), says()):
        session.append_message(message)
    session.rewind(to_seq)
    assert len(session.messages) == left
    assert len(session.archive) == 6 - left
    assert all(m.marks() == {"taken_back": True} for m in session.archive)


def test_an_edit_that_breaks_a_tool_pair_is_refused() -> None:
    """Protocol, -32040."""
    session = Session()
    session.append_message(user()).append_message(uses("a", text="x")).append_message(result("a"))
    for seq, content in [(2, "no more tools"), (3, result("b").content)]:
        with pytest.raises(InvalidMessageError):
            session.edit_message(seq, content)
    assert session.archive == []
    session.edit_message(3, result("a", "better").content)
    assert session.messages[2]["content"]["content"] == "better"
    with pytest.raises(InvalidInputError):
        session.edit_message(9, "x")


def test_ids_made_of_the_time_are_kept() -> None:
    """M2.8."""
    session = Session(new_id=lambda: None)
    assert session.id is None
    first = session.get_id()
    assert first.startswith("session-")
    assert len(first) == len("session-20261128-093000")
    assert session.get_id() == first
    assert len(Session().id or "") == 32
