"""Large values out of messages and back (U9.10): nothing is lost, nothing is taken for one."""

from typing import Any

import pytest

from tests.session.histories import user
from tiro.session.json_text import decode, encode
from tiro.session.large import can_be_shortened, is_left_behind, put_back, shortened, take_out
from tiro.session.messages import Message
from tiro.session.provider_view import provider_view

BIG = "é" * 40_000
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BIG}}


def content_of(message: Message) -> Any:
    return message.content


def nothing(_: str) -> None:
    return None


def keep(text: str) -> str:
    return text


def stored(message: Message) -> tuple[Message, dict[str, str]]:
    """The message as a file holds it, and the values beside the file."""
    short, values = take_out(message, keep)
    written = encode(shortened(message, short).to_dict() if short.references else message)
    texts = {name: data.decode() for name, data in values.items()}
    return Message.from_dict(decode(written)), texts


CONTENTS: list[Any] = [
    BIG,
    [BIG, {"type": "text", "text": BIG}],
    {"type": "tool_result", "tool_use_id": "a", "content": BIG, "is_error": True},
    {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}, IMAGE]},
    [{"type": "text", "text": "look"}, IMAGE, IMAGE],
    [{"type": "attachment", "kind": "file", "path": "/a", "text": "a" * 64_001}],
    [{"type": "tool_use", "id": "a", "name": "write", "input": {"x": [{"": BIG}, 2**70], "1": 1}}],
    [{"type": "unknown", "deep": [[[{"at": BIG, "sha256": "0" * 64}]]]}],
]


@pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
@pytest.mark.parametrize("metadata", [None, {"mine": {"tiro": 1}}, {"tiro": {"pending": True}}])
def test_a_large_value_goes_and_comes_back(content: Any, metadata: dict[str, Any] | None) -> None:
    """U9.10: wherever a string can stand in a content; all else is the same, value for value."""
    message = Message("user", content, seq=3, metadata=metadata, extra={"colour": "red"})
    short, values = stored(message)
    assert len(encode(short.to_dict())) < 2000
    assert all(text in (BIG, "a" * 64_001) for text in values.values())
    assert values
    assert put_back(short, values.get) == (message, [])


@pytest.mark.parametrize(
    ("text", "is_large"),
    [("a" * 64_000, False), ("a" * 64_001, True), ("漢" * 21_333, False), ("漢" * 21_334, True)],
)
def test_large_is_more_than_64_kb_of_utf8(text: str, is_large: bool) -> None:
    """U9.10."""
    assert bool(take_out(user(text), keep)[1]) == is_large


def test_without_the_value_its_beginning_and_the_reference_stay() -> None:
    """Missing is not lost: a later reading finds it again."""
    message = Message("tool", {"type": "tool_result", "tool_use_id": "a", "content": BIG + "end"})
    short, values = stored(message)
    [name] = values
    left, missing = put_back(short, nothing)
    assert missing == [name]
    assert left == short
    assert content_of(left)["content"].startswith("é" * 200 + " [")
    assert is_left_behind(content_of(left)["content"])
    assert f"blobs/{name}" in content_of(left)["content"]
    assert put_back(left, values.get) == (message, [])


@pytest.mark.parametrize("content", ["cut", BIG])
def test_the_whole_of_a_cut_output_goes_and_comes_back_too(content: str) -> None:
    """U9.10: it stands beside the content, and so does its reference."""
    block = {"type": "tool_result", "tool_use_id": "a", "content": content}
    message = Message("tool", block, metadata={"tiro": {"output": "x" + BIG}})
    short, values = stored(message)
    assert len(encode(short.to_dict())) < 3000
    assert "x" + BIG in values.values()
    assert put_back(short, values.get) == (message, [])
    left, missing = put_back(short, nothing)
    assert left == short
    assert set(missing) == set(values)


def test_a_message_without_one_value_gets_another() -> None:
    """References of values that are missing stay beside new ones."""
    first, values = stored(Message("user", [{"type": "text", "text": BIG}]))
    left, _ = put_back(first, nothing)
    both = Message("user", [*content_of(left), "b" * 70_000], metadata=left.metadata)
    short, more = stored(both)
    whole, missing = put_back(short, {**values, **more}.get)
    assert whole == Message("user", [{"type": "text", "text": BIG}, "b" * 70_000])
    assert missing == []


def test_what_somebody_wrote_in_its_place_stays() -> None:
    """U9.7: an edit of the file is respected, of the whole string or of its beginning."""
    short, values = stored(Message("user", [{"type": "text", "text": BIG}, BIG]))
    edited = Message("user", ["mine", content_of(short)[1]], metadata=short.metadata)
    assert put_back(edited, values.get) == (Message("user", ["mine", BIG]), [])
    beginning = "MINE" + content_of(short)[1]
    edited = Message("user", [content_of(short)[0], beginning], metadata=short.metadata)
    whole, missing = put_back(edited, values.get)
    assert whole.content == [{"type": "text", "text": BIG}, beginning]
    assert whole.marks()["large"], "and the value is still referred to"
    assert missing == []


@pytest.mark.parametrize(
    "marks",
    [1, ["x"], [{"at": [0]}], [{"at": [0], "sha256": "../../etc/passwd", "bytes": 1}]],
)
def test_marks_that_make_no_sense_are_left_alone(marks: Any) -> None:
    """A name is a hash and nothing else: never a path."""
    message = Message("user", "x [… 1 bytes in blobs/x]", metadata={"tiro": {"large": marks}})
    assert put_back(message, lambda name: pytest.fail(name)) == (message, [])


@pytest.mark.parametrize("at", [[], [7], ["x"], [0, "text", 3], [-1], [0, "no"]])
def test_a_place_that_is_not_there_is_no_place(at: list[Any]) -> None:
    """A file can say anything."""
    mark = {"at": at, "sha256": "0" * 64, "bytes": 5}
    message = Message("user", [{"type": "text", "text": "x"}], metadata={"tiro": {"large": [mark]}})
    whole, missing = put_back(message, lambda _: "value")
    assert (whole.content, missing) == (message.content, [])


def test_a_user_may_write_what_looks_like_a_reference() -> None:
    """U9.10: it comes back as it was written, also beside a real one."""
    short, values = stored(Message("user", BIG))
    lookalike = {"type": "text", "text": short.content, "large": short.marks()["large"]}
    assert put_back(Message("user", [lookalike]), values.get)[0].content == [lookalike]
    message = Message("user", [lookalike, BIG])
    again, values = stored(message)
    assert put_back(again, values.get) == (message, [])


@pytest.mark.parametrize("metadata", [{}, {"tiro": "not ours"}])
def test_a_message_that_can_hold_no_marks_stays_whole(metadata: dict[str, Any]) -> None:
    """Nothing else of it may change."""
    assert not can_be_shortened(Message("user", BIG, metadata=metadata))
    assert not can_be_shortened(Message("user", BIG, extra={"metadata": 5}))


def test_a_lone_surrogate_becomes_what_it_becomes_in_every_file() -> None:
    """B12."""
    short, values = stored(Message("user", BIG + "\ud83d"))
    assert put_back(short, values.get)[0].content == BIG + "\ufffd"


def test_a_lost_image_is_sent_as_text() -> None:
    """B36: what a provider would refuse each time is not sent; the session stays usable."""
    result = {"type": "tool_result", "tool_use_id": "a", "content": [IMAGE]}
    use = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    rows = [
        stored(Message("user", [{"type": "text", "text": "look"}, IMAGE]))[0],
        Message("assistant", [use]),
        stored(Message("tool", result))[0],
        user("so?"),
    ]
    view = provider_view(rows)
    assert content_of(view[0])[1]["type"] == "text"
    assert [block["type"] for block in content_of(view[2])["content"]] == ["text"]
    assert provider_view(view) == view
