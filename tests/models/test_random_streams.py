"""Recorded streams with random damage, cut anywhere: a whole answer, or an error of ours (B28-B33).

What a stream of either format says is read to one end by the law of `Model.stream`.
"""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.damage import damaged
from tests.e2e.anthropic_replies import redacted_block, text_block, thinking_block, use_block
from tests.models.test_anthropic import answer as anthropic_answer
from tests.models.test_anthropic import whole
from tests.models.wire import answer, streams
from tests.sizes import sized
from tiro.errors import ContextOverflowError, ModelError
from tiro.models.model import Delta, Finished, TextDelta, ThinkingDelta, ToolUseDone

RECORDED = {
    path.name: path.read_bytes()
    for path in sorted((Path(__file__).parents[1] / "data" / "streams").glob("*.sse"))
}
ANTHROPIC = whole(
    thinking_block(0, "I think é漢🙂", signature="signed"),
    redacted_block(1, "hidden"),
    text_block(2, "Hello", " there\u2028"),
    use_block(3, "u1", "read_file", '{"path":', ' "a.txt"}'),
    stop="tool_use",
)
EXAMPLES = settings(max_examples=sized(fast=10, normal=20, long=3000))


def cut(data: st.DataObject, stream: bytes) -> list[bytes]:
    """The bytes in pieces."""
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=4).map(sorted))
    return [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


def check(deltas: list[Delta]) -> None:
    """One end, at the end; texts that can be stored and sent; ids that differ."""
    assert [type(delta) for delta in deltas].count(Finished) == 1
    assert isinstance(deltas[-1], Finished)
    for delta in deltas:
        if isinstance(delta, TextDelta | ThinkingDelta):
            delta.text.encode()
    ids = [delta.id for delta in deltas if isinstance(delta, ToolUseDone)]
    assert len(set(ids)) == len(ids)
    assert all(ids)


@pytest.mark.parametrize("name", RECORDED)
@EXAMPLES
@given(data=st.data())
def test_a_damaged_chat_completion_is_read_or_refused(name: str, data: st.DataObject) -> None:
    pieces = cut(data, data.draw(damaged(RECORDED[name])))
    try:
        deltas = answer(*(streams(*pieces) for _ in range(4)))
    except (ModelError, ContextOverflowError):
        return
    check(deltas)


@EXAMPLES
@given(damaged(ANTHROPIC), st.data())
def test_a_damaged_message_is_read_or_refused(stream: bytes, data: st.DataObject) -> None:
    pieces = cut(data, stream)
    try:
        deltas = anthropic_answer(*(streams(*pieces) for _ in range(4)))
    except (ModelError, ContextOverflowError):
        return
    check(deltas)
