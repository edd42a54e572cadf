"""What a recording holds, and what it never does."""

import json
import logging
import os
import stat
import threading
from pathlib import Path

import pytest

from tests.recording.making import asked
from tests.sizes import PATIENCE
from tiro.errors import InvalidInputError, StorageError
from tiro.recording import recorder as recorder_module
from tiro.recording.exchanges import read_recording
from tiro.recording.lines import End, Header, RequestEnd, read_lines
from tiro.recording.recorder import Recorder

SECRET = "sk-c0ffee-5ec4e7"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bug.jsonl"


@pytest.fixture
def recorder(path: Path) -> Recorder:
    made = Recorder(path, protocol=1)
    made.keep_out([SECRET])
    return made


def test_lines_come_in_the_order_of_their_times(recorder: Recorder, path: Path) -> None:
    recorder.received(b'{"id":1}')
    exchange = asked(recorder)
    exchange.answered(200, [("content-type", "text/plain")])
    exchange.received(b"one")
    exchange.ended("complete")
    recorder.sent(b'{"id":1,"result":null}')
    recorder.close()
    header, lines = read_lines(path)
    kinds = [json.loads(line)["type"] for line in path.read_text().splitlines()]
    assert kinds == [
        *("header", "message_in", "request", "response", "chunk"),
        *("request_end", "message_out", "end"),
    ]
    assert header.ms == 0
    times = [line.ms for line in lines]
    assert times == sorted(times)


def test_bytes_come_back_as_they_were(recorder: Recorder, path: Path) -> None:
    """Text as text, JSON as JSON on one line, everything else as base64."""
    bodies = [b'{"a": [1,\r\n "\\n"]}', b"no JSON\n", b'{"a": "\xff"}', b'{"a": "\xc3\xa4"}']
    chunks = [b"data: 1\n\n", b"\xc3", b"\xa4", b"\x00\xff", b""]
    for body in bodies:
        recorder.received(body)
    exchange = asked(recorder)
    for chunk in chunks:
        exchange.received(chunk)
    recorder.close()
    found = read_recording(path)
    assert [line.data for line in found.messages_in] == [b'{"a": [1,"\\n"]}', *bodies[1:]] or [
        json.loads(found.messages_in[0].data),
        *(line.data for line in found.messages_in[1:]),
    ] == [{"a": [1, "\n"]}, *bodies[1:]]
    assert [chunk.data for chunk in found.exchanges[0].chunks] == chunks
    assert b"\r" not in path.read_bytes()


def test_file_is_for_its_owner_from_the_first_instant(path: Path) -> None:
    before = os.umask(0)
    try:
        Recorder(path, protocol=1).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_file_that_is_there_is_left_alone(path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(StorageError, match="already; give --record another name"):
        Recorder(path, protocol=1)
    assert path.read_text() == "mine"
    with pytest.raises(StorageError, match="cannot be written: Not a directory"):
        Recorder(path / "below.jsonl", protocol=1)


def test_headers_show_no_secret(recorder: Recorder, path: Path) -> None:
    """Of a request only what everybody sends; of an answer all but cookies and the like."""
    sent = (("Authorization", "Bearer abc"), ("X-Mine", "abc"), ("Content-Type", "text/plain"))
    exchange = asked(recorder, headers=sent)
    answered = [
        ("Set-Cookie", "id=abc"),
        ("X-Auth-Token", "abc"),
        ("Location", "https://user:abc@h.test/v1?key=abc"),
        ("X-RateLimit-Remaining-Tokens", "12"),
        ("X-Echo", f"Bearer {SECRET}"),
    ]
    exchange.answered(401, answered)
    recorder.close()
    (found,) = read_recording(path).exchanges
    assert [value for _, value in found.request.headers] == ["[secret]", "[secret]", "text/plain"]
    assert found.response is not None
    assert [value for _, value in found.response.headers] == [
        *("[secret]", "[secret]", "h.test/v1", "12", "Bearer [secret]")
    ]
    assert b"abc" not in path.read_bytes()


def test_secret_is_nowhere_in_the_file(recorder: Recorder, path: Path) -> None:
    recorder.received(json.dumps({"text": SECRET}).encode())
    recorder.sent(b'{"delta": "It is sk-c0f"}')
    recorder.sent(b'{"delta": "fee-5ec4e7!"}')
    exchange = asked(recorder, json.dumps({"messages": [SECRET]}).encode())
    exchange.answered(401, [])
    exchange.received(f'{{"error": "Bad key {SECRET[:5]}'.encode())
    exchange.received(f'{SECRET[5:]}"}}'.encode())
    recorder.close()
    assert SECRET not in path.read_text()
    found = read_recording(path)
    assert "".join(json.loads(line.data)["delta"] for line in found.messages_out) == (
        "It is [secret][secret]!"
    )
    body = b"".join(chunk.data for chunk in found.exchanges[0].chunks)
    assert json.loads(body) == {"error": "Bad key [secret]"}


def test_message_that_a_cut_breaks_is_kept_as_text(path: Path) -> None:
    """A key of digits may stand inside a number."""
    recorder = Recorder(path, protocol=1)
    recorder.keep_out(["123456"])
    recorder.received(b'{"n":1123456789}')
    recorder.close()
    assert read_recording(path).messages_in[0].text == '{"n":1[secret]789}'


def test_secret_that_is_known_later_is_kept_out_from_then_on(path: Path) -> None:
    recorder = Recorder(path, protocol=1)
    recorder.keep_out([SECRET])
    recorder.keep_out(["another-one"])
    recorder.received(f'["{SECRET}", "another-one"]'.encode())
    recorder.close()
    assert json.loads(read_recording(path).messages_in[0].data) == ["[secret]", "[secret]"]


def test_start_of_a_secret_is_not_waited_for_for_ever(
    recorder: Recorder, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came last before a hang must be in the file, not in memory."""
    monkeypatch.setattr(recorder_module, "HOLD_SECONDS", 0.1)
    recorder.sent(b'{"delta": "It ends in sk-c0f"}')
    recorder.sent(b'{"id": 1}')
    _wait_until_written(path, b'"id": 1')
    (first, _) = read_recording(path).messages_out
    assert json.loads(first.data) == {"delta": "It ends in [secret]"}
    recorder.close()


def test_too_much_at_once_ends_the_recording_with_a_warning(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(path, protocol=1, max_waiting_bytes=1000)
    for _ in range(50):
        recorder.received(json.dumps({"text": "x" * 600}).encode())
    recorder.close()
    recorder.received(b"{}")
    assert [record.levelno for record in caplog.records] in ([], [logging.WARNING])
    header, lines = read_lines(path)
    assert isinstance(header, Header)
    assert len(lines) == 51 or caplog.messages


def test_pieces_of_one_text_are_joined_and_those_of_others_are_not(
    recorder: Recorder, path: Path
) -> None:
    for letter in SECRET:
        for text in ("one", "two"):
            recorder.sent(json.dumps({"delta": letter}).encode(), text)
    recorder.close()
    told = [json.loads(line.data)["delta"] for line in read_recording(path).messages_out]
    for shown in ("".join(told[0::2]), "".join(told[1::2])):
        assert shown.replace("[secret]", "") in ("", "s", "sk", "sk-")


def test_a_recording_that_is_not_written_in_time_says_that_its_end_may_be_missing(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(path, protocol=1)
    back, written = threading.Event(), recorder._write
    monkeypatch.setattr(recorder, "_write", lambda lines: back.wait(PATIENCE) and written(lines))
    monkeypatch.setattr(recorder_module, "CLOSE_SECONDS", 0.01)
    recorder.close()
    assert "may be missing" in caplog.messages[0]
    back.set()
    recorder._thread.join(PATIENCE)


def test_torn_last_line_is_left_out(recorder: Recorder, path: Path) -> None:
    recorder.received(b'{"id": 1}')
    recorder.close()
    whole = path.read_bytes()
    for size in range(whole.index(b"\n") + 1, len(whole)):
        path.write_bytes(whole[:size])
        _, lines = read_lines(path)
        assert len(lines) == whole[:size].count(b"\n") - 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no recording"),
        ("hello\n", "line 1 is no line"),
        ('{"type": "end", "ms": 1}\n', "is no recording"),
        ('{"type": "header", "ms": 0}\n', "line 1"),
        (
            '{"type":"header","ms":0,"format":99,"tiro":"9.9","protocol":1,"platform":"",'
            '"python":""}\n',
            "newer",
        ),
    ],
)
def test_file_that_is_no_recording_says_so(path: Path, text: str, why: str) -> None:
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=why):
        read_lines(path)


def test_end_of_a_request_is_told_once(recorder: Recorder, path: Path) -> None:
    exchange = asked(recorder)
    exchange.ended("reset", "ReadError")
    exchange.ended("closed")
    recorder.close()
    _, lines = read_lines(path)
    ends = [line for line in lines if isinstance(line, RequestEnd)]
    assert [(end.how, end.error) for end in ends] == [("reset", "ReadError")]
    assert isinstance(lines[-1], End)


def _wait_until_written(path: Path, what: bytes) -> None:
    while what not in path.read_bytes():
        os.sched_yield()
