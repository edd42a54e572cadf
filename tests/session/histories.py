"""Random histories for property tests: well-formed turns, and every way they get broken."""

from typing import Any

from hypothesis import strategies as st

from tiro import Message, Session

IDS = ("a", "b", "c", "d")
TEXTS = st.sampled_from(["hello", "", "  \n", "漢字", "🙂 ok", "half \ud83d"])


def user(text: str = "hi") -> Message:
    """A prompt."""
    return Message("user", text)


def steered(text: str = "use tabs") -> Message:
    """What a user said to a running turn."""
    return user(text).marked(steered=True)


def says(text: str = "yes") -> Message:
    """An answer without tool uses."""
    return Message("assistant", text)


def uses(*ids: str, text: str | None = None) -> Message:
    """An assistant message that uses a tool once for each id."""
    blocks: list[Any] = [{"type": "text", "text": text}] if text is not None else []
    blocks += [{"type": "tool_use", "id": i, "name": "glob", "input": {"n": i}} for i in ids]
    return Message("assistant", blocks)


def result(tool_use_id: str, content: str = "found") -> Message:
    """The answer to a tool use."""
    block = {"type": "tool_result", "tool_use_id": tool_use_id, "content": content}
    return Message("tool", block)


def numbered(messages: list[Message]) -> list[Message]:
    """The messages with seqs from 1, as a session would hold them."""
    rows = [m.to_dict() | {"seq": seq} for seq, m in enumerate(messages, 1)]
    return [Message.from_dict(row) for row in rows]


any_message = st.one_of(
    st.builds(user, TEXTS),
    st.builds(says, TEXTS),
    st.lists(st.sampled_from(IDS), min_size=1, max_size=3).map(lambda ids: uses(*ids)),
    st.builds(result, st.sampled_from(IDS), TEXTS),
    st.builds(Message, st.sampled_from(["system", "developer", "critic"]), TEXTS),
    st.just(Message("assistant", [{"type": "thinking", "thinking": "hm"}])),
    st.just(Message("user", [{"type": "hologram", "data": 1}])),
    st.just(
        Message(
            "assistant",
            "",
            tool_calls=[{"id": "a", "function": {"name": "glob", "arguments": '{"n": 1}'}}],
        )
    ),
    st.just(Message("tool", "old spelling", tool_call_id="a")),
)

any_history = st.lists(any_message, max_size=14).map(numbered)


@st.composite
def sound_histories(draw: st.DrawFn) -> list[Message]:
    """Histories as turns make them: every tool use answered, in order or late, ids unique."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(0, 5))):
        messages.append(user(f"prompt {turn}"))
        for step in range(draw(st.integers(0, 3))):
            ids = [f"{turn}-{step}-{n}" for n in range(draw(st.integers(0, 3)))]
            messages.append(uses(*ids, text="working") if ids else says())
            messages += [result(i) for i in draw(st.permutations(ids))]
    return numbered(messages)


def talk(turns: int, length: int = 10) -> Session:
    """A session of so many turns, each message of this length."""
    session = Session()
    for _ in range(turns):
        session.add_message("user", "u" * length).add_message("assistant", "a" * length)
    return session
