"""Every message of a session is in its next request, or it is said why not."""

from typing import Any

import pytest

from tests.session.histories import result, says, user, uses
from tiro.session import history
from tiro.session.changes import Cover
from tiro.session.core import Core
from tiro.session.left_out import left_out, moved_to_system
from tiro.session.messages import Message
from tiro.session.provider_view import viewed


def a_core(*messages: Message) -> Core:
    core = Core()
    for message in messages:
        core.append(message)
    return core


def reasons(core: Core, window: set[int] = frozenset()) -> list[tuple[int, str]]:  # type: ignore[assignment]
    view = viewed(core.oldest_first(), core.archive_rows)
    return [(left.seq, left.reason) for left in left_out(core, view, window)]


def test_what_left_the_window_says_how() -> None:
    core = a_core(user("a"), says("b"), user("c"), says("d"), user("e"), says("f"))
    core.change(max_history=2)
    core.prune()
    assert reasons(core) == [(seq, "evicted") for seq in (1, 2, 3, 4)]
    core.change(summary="a and b")
    core.commit(Cover([1, 2], core.stamp()))
    assert [reason for _, reason in reasons(core)] == ["summarized"] * 2 + ["evicted"] * 2
    assert reasons(core, {3, 4, 5, 6})[2:] == [(3, "over_limit"), (4, "over_limit")]
    history.rewind(core, 5)
    history.edit(core, 5, "E")
    assert reasons(core)[4:] == [(5, "edited"), (6, "taken_back")]


def test_the_user_message_that_is_put_in_front_is_not_left_out() -> None:
    """U3.2."""
    core = a_core(user("a"), says("b"), says("c"))
    core.change(max_history=1)
    core.prune()
    assert reasons(core) == [(2, "evicted")]


def test_system_messages_are_in_the_prompt_wherever_they_lie() -> None:
    """U3.9."""
    core = a_core(Message("system", "be kind"), user(), Message("system", "  "), user("b"))
    core.change(max_history=2)
    core.prune()
    assert [(repair.seq, repair.rule) for repair in moved_to_system(core)] == [(1, "system_prompt")]
    assert reasons(core) == [(2, "evicted"), (3, "empty")]


def test_what_says_nothing_in_the_window_says_what_it_held() -> None:
    core = a_core(user(), says(" "), uses("a"), result("a"), result("b"))
    assert reasons(core) == [(2, "empty"), (5, "orphan_result")]


@pytest.mark.parametrize("fields", [{}, {"max_history": 2, "memo": {"a": 1}}])
def test_a_fork_takes_every_change_alone(fields: dict[str, Any]) -> None:
    """Neither the session nor who observes it hears of what is tried on the copy."""
    core = a_core(user("a"), says("b"), user("c"))
    core.change(state={"k": 1}, **fields)
    before, heard = core.snapshot(), []
    core.observe(lambda n, changes: heard.append(changes))
    forked = core.fork()
    assert forked.snapshot() == before
    forked.append(user("d"))
    history.rewind(forked, 3)
    history.clear(forked)
    forked.change(title="x", pins=[1])
    assert (core.snapshot(), heard) == (before, [])
    core.append(user("mine"))
    assert not forked.newest_first
