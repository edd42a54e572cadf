"""What the editor gets while text streams: few, small, ordered frames (B44)."""

from collections.abc import Iterator

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold, Pause, Step
from tests.e2e.talk import ask, begin_ask, view, window
from tests.e2e.turns import events, joined
from tests.processes import memory_bytes
from tests.sizes import PATIENCE


def test_b44_the_first_delta_goes_out_at_once(server: Server, provider: Provider) -> None:
    for _ in range(3):
        hold = Hold()
        provider.script(replies.stream(replies.text_chunk("first"), hold))
        mark = len(server.events())
        turn = begin_ask(server, "go")
        hold.wait()
        server.wait_event("text", since=mark, delta="first")
        hold.release()
        turn.result()


def burst(text: str, size: int) -> bytes:
    return b"".join(replies.text_chunk(text[i : i + size]) for i in range(0, len(text), size))


def test_b44_20000_deltas_are_joined(server: Server, provider: Provider) -> None:
    text = "".join(f"{n:04d}" for n in range(10_000))
    groups: list[Step] = []
    for start in range(0, len(text), 800):
        groups += [burst(text[start : start + 800], 2), Pause(0.02)]
    provider.script(replies.stream(*groups))
    frames, size = server.frames, server.bytes
    done = ask(server)
    assert done["text"] == joined(events(server, done)) == text
    told = [n for n in server.notifications if n["params"].get("type") == "text"]
    (began, _), *_ = provider.last.sent
    seconds = told[-1]["at"] - began  # this process may see late what came in time
    assert len(told) <= 31 * seconds + 3
    assert server.frames - frames <= len(told) + 10
    assert server.bytes - size < 3 * len(text) + len(text)  # the answer holds the text once more


def test_b44_20000_deltas_at_once_are_few_frames(server: Server, provider: Provider) -> None:
    text = "ab" * 20_000
    provider.script(replies.stream(burst(text, 2)))
    done = ask(server)
    assert joined(events(server, done)) == text
    assert len([e for e in events(server, done) if e["type"] == "text"]) < 200


def test_b44_one_huge_delta_is_cut_into_small_frames(server: Server, provider: Provider) -> None:
    text = "漢\U0001f642é\n" * 300_000  # 3 MB
    provider.script(replies.stream(replies.text_chunk(text)))
    done = ask(server)
    assert done["text"] == text
    assert joined(events(server, done)) == text  # the driver refuses frames over 1 MB


def test_b44_a_large_prompt_with_images_is_no_trouble(server: Server, provider: Provider) -> None:
    data = "iVBORw0KGgo=" * 20_000
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    ask(server, [{"type": "text", "text": "x" * 200_000}, image])
    assert window(server)[0][1][1] == image
    size = view(server)["contextSize"]["tokens"]
    assert size < 120_000, "an image is not counted as text"


@pytest.fixture
def quiet(start: StartServer) -> Iterator[Server]:
    server = start()
    yield server
    server.resume_reading()


def test_b44_a_reader_that_sleeps_stops_nothing(quiet: Server, provider: Provider) -> None:
    server = quiet
    ask(server, "warm up")
    before = memory_bytes(server.process.pid)
    piece, count = "0123456789" * 100, 4000  # 4 MB of text
    hold = Hold()
    steps: list[Step] = [replies.text_chunk(piece) for _ in range(count)]
    provider.script(replies.stream(*steps, hold))
    turn = begin_ask(server, "go")
    server.wait_event("started")
    server.wait_event("text")
    server.pause_reading()
    hold.wait()
    stop = server.begin("tiro/turn/cancel")
    assert provider.last.closed_by_client(), "a cancel works while nobody reads"
    assert memory_bytes(server.process.pid) - before < 60_000_000
    server.resume_reading()
    assert stop.result() == {"cancelled": True}
    done = turn.result()
    text = piece * count
    assert done["stopReason"] == "cancelled"
    assert done["text"]
    assert text.startswith(done["text"])
    assert joined(events(server, done)) == done["text"]
    hold.release()


def test_b44_a_reader_that_sleeps_gets_everything_later(quiet: Server, provider: Provider) -> None:
    server = quiet
    piece, count = "0123456789" * 50, 4000  # 2 MB of text
    provider.script(replies.stream(*[replies.text_chunk(piece) for _ in range(count)]))
    turn = begin_ask(server, "go")
    server.wait_event("text")
    server.pause_reading()
    assert provider.last.answered.wait(PATIENCE), "a slow reader does not hold up the provider"
    state = server.begin("tiro/state/set", {"key": "k", "value": 1})
    server.resume_reading()
    done = turn.result()
    assert state.result() == {}
    assert done["text"] == joined(events(server, done)) == piece * count
