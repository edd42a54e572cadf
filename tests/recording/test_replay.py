"""A recording plays the provider: the same bytes, the same pauses, the same end."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.recording.making import BASE, asked, made
from tests.sizes import PATIENCE
from tiro.errors import InvalidInputError, StorageError
from tiro.exits import Exit
from tiro.recording.lines import Ending
from tiro.recording.recorder import Recorder
from tiro.recording.replay import USED_UP, Replay, diff

BODY = b'{"model": "m1"}'
CHUNKS = (b"data: 1\n\n", b"data: \xc3", b"\xa4\n\n")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bug.jsonl"


def connect(replay: Replay) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(replay.base_url.split("/")[2], timeout=PATIENCE)


def post(replay: Replay, body: bytes = BODY, path: str = "/chat") -> tuple[int, bytes]:
    """One request on a connection of its own."""
    with_path = "/" + replay.base_url.partition("://")[2].partition("/")[2]
    with closing(connect(replay)) as connection:
        connection.request("POST", with_path + path, body)
        response = connection.getresponse()
        with response:
            return response.status, response.read()


def raw(replay: Replay) -> bytes:
    """All bytes that answer one request."""
    host, port = replay.base_url.split("/")[2].split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as peer:
        head = b"POST /api/v1/chat HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(BODY)
        peer.sendall(head + BODY)
        got = b""
        while not got.endswith(b"0\r\n\r\n"):
            got += peer.recv(65536)
        return got


def test_answer_is_the_recorded_one_then_410(path: Path) -> None:
    made(path, *CHUNKS, status=201)
    with Replay(path, fast=True) as replay:
        assert replay.base_url.endswith(BASE[BASE.index("/api") :])
        assert post(replay) == (201, b"".join(CHUNKS))
        assert (replay.left, replay.notes) == (0, [])
        status, body = post(replay)
        assert status == 410
        assert USED_UP in json.loads(body)["error"]["message"]
        assert USED_UP in replay.notes[0]


def test_chunks_are_those_that_came(path: Path) -> None:
    made(path, *CHUNKS)
    with Replay(path, fast=True) as replay:
        _, _, body = raw(replay).partition(b"\r\n\r\n")
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in CHUNKS)
    assert body == framed + b"0\r\n\r\n"


def test_replay_is_the_same_each_time(path: Path) -> None:
    made(path, *CHUNKS)
    answers = set()
    for _ in range(3):
        with Replay(path, fast=True) as replay:
            answers.add(raw(replay))
    assert len(answers) == 1


def test_pauses_are_kept_unless_it_is_to_be_fast(path: Path) -> None:
    recorder = Recorder(path, protocol=1)
    exchange = asked(recorder)
    exchange.answered(200, [("transfer-encoding", "chunked")])
    time.sleep(0.15)  # what is measured
    exchange.received(b"late")
    exchange.ended("complete")
    recorder.close()
    with Replay(path) as replay:
        began = time.monotonic()
        assert post(replay) == (200, b"late")
        assert time.monotonic() - began >= 0.14


def test_differing_request_is_told_and_answered(path: Path) -> None:
    made(path, b"ok", body=b'{"model":"m1","messages":[{"role":"user","content":"hi"}]}')
    with Replay(path, fast=True) as replay:
        sent = {"messages": [{"content": "ho", "role": "user"}], "model": "m1"}
        assert post(replay, json.dumps(sent).encode()) == (200, b"ok")
        (note,) = replay.notes
    assert '-   "content": "hi",' in note
    assert '+   "content": "ho",' in note
    assert "model" not in note


def test_diff_is_short() -> None:
    many = [json.dumps({"a": [word * 300] * 500}).encode() for word in ("x", "y")]
    assert diff(many[0], many[0]) == ""
    told = diff(*many)
    assert len(told.splitlines()) < 30
    assert max(map(len, told.splitlines())) <= 200
    assert diff(b"no json", b"other")


def test_differences_fill_no_terminal(path: Path) -> None:
    """A talk sends all that came before again, so each request differs in the same lines."""
    recorder = Recorder(path, protocol=1)
    for _ in range(30):
        exchange = asked(recorder, json.dumps(["x"] * 15).encode())
        exchange.answered(200, [("content-length", "0")])
        exchange.ended("complete")
    recorder.close()
    with Replay(path, fast=True) as replay:
        for _ in range(30):
            post(replay, json.dumps(["y"] * 15).encode())
    assert len(replay.notes) == 30
    assert len("\n".join(replay.notes).splitlines()) < 100
    assert replay.notes[0].endswith("more")
    assert replay.notes[-1] == "Request 30 differs from the recorded one"


def test_requests_to_other_providers_are_not_played(path: Path) -> None:
    """While models are looked for, servers are asked that do not run."""
    recorder = Recorder(path, protocol=1)
    asked(recorder, b"", path="/models", method="GET", provider="ollama").ended("unreachable")
    for text in (b"first", b"second"):
        exchange = asked(recorder)
        exchange.answered(200, [("content-length", str(len(text)))])
        exchange.received(text)
        exchange.ended("complete")
    recorder.close()
    with Replay(path, fast=True) as replay:
        assert len(replay.exchanges) == 2
        assert [post(replay) for _ in range(2)] == [(200, b"first"), (200, b"second")]
    assert len(Replay(path, provider="ollama").exchanges) == 1
    with pytest.raises(InvalidInputError, match="to 'nobody' none"):
        Replay(path, provider="nobody")


def test_reset_in_mid_chunk_is_a_reset(path: Path) -> None:
    made(path, b"data: 1\n\n", b"data: ha", how="reset")
    with Replay(path, fast=True) as replay:
        connection = connect(replay)
        connection.request("POST", "/api/v1/chat", BODY)
        response = connection.getresponse()
        assert response.read1() == b"data: 1\n\n"
        assert response.read1() == b"data: ha"
        with pytest.raises(ConnectionResetError):
            response.read1()
        connection.close()


@pytest.mark.parametrize("headers", [None, [("content-length", "500")]])
def test_cut_answer_is_cut(path: Path, headers: list[tuple[str, str]] | None) -> None:
    made(path, b"data: ha", how="cut", headers=headers)
    with Replay(path, fast=True) as replay, pytest.raises(http.client.IncompleteRead) as caught:
        post(replay)
    assert caught.value.partial.endswith(b"ha")


@pytest.mark.parametrize("how", ["unreachable", "cut"])
def test_request_without_an_answer_gets_none(path: Path, how: str) -> None:
    made(path, how=how, status=0)  # type: ignore[arg-type]  # one of the literals
    with Replay(path, fast=True) as replay, pytest.raises(http.client.RemoteDisconnected):
        post(replay)


def test_answer_that_we_closed_waits_for_the_client_to_close(path: Path) -> None:
    """Who plays both sides cancels once more; nothing is told of it."""
    made(path, b"half", how="closed")
    with Replay(path, fast=True, hold_seconds=PATIENCE) as replay:
        with closing(connect(replay)) as connection:
            connection.request("POST", "/api/v1/chat", BODY)
            response = connection.getresponse()
            assert response.read1() == b"half"
        connection.close()
    assert replay.notes == []


@pytest.mark.parametrize("how", ["closed", "silent"])
def test_answer_that_we_closed_ends_with_an_error_that_says_so(path: Path, how: Ending) -> None:
    made(path, b'data: {"a', how=how)
    with Replay(path, fast=True, hold_seconds=0) as replay:
        with pytest.raises(http.client.IncompleteRead) as caught:
            post(replay)
        (note,) = replay.notes
    assert "did not wait for its end" in note
    assert caught.value.partial.startswith(b'data: {"a\n\nevent: error\ndata: ')
    _, _, data = caught.value.partial.rpartition(b"data: ")
    assert json.loads(data)["error"]["message"] == note


def test_answer_that_we_closed_before_its_head_is_refused(path: Path) -> None:
    """A connection without an answer would be tried again, which uses up what comes next."""
    made(path, how="closed", status=0)
    with Replay(path, fast=True, hold_seconds=0) as replay:
        status, body = post(replay)
    assert status == 410
    assert [json.loads(body)["error"]["message"]] == replay.notes


def test_recording_that_breaks_off_in_an_answer_ends_there(path: Path) -> None:
    """As `kill -9` leaves it, with half a line at its end."""
    made(path, b"data: 1\n\n", b"data: 2\n\n")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    with Replay(path, fast=True, hold_seconds=0) as replay:
        with pytest.raises(http.client.IncompleteRead) as caught:
            post(replay)
        (note,) = replay.notes
    assert caught.value.partial.startswith(b"data: 1\n\n\n\nevent: error")
    assert "breaks off" in note


def test_secrets_that_were_taken_out_break_no_framing(path: Path) -> None:
    """The promised length is that of the body as it is now."""
    recorder = Recorder(path, protocol=1)
    recorder.keep_out(["a-long-secret-key"])
    exchange = asked(recorder)
    body = b'{"error": "a-long-secret-key"}'
    exchange.answered(401, [("content-length", str(len(body)))])
    exchange.received(body)
    exchange.ended("complete")
    recorder.close()
    with Replay(path, fast=True) as replay:
        assert post(replay) == (401, b'{"error": "[secret]"}')


def test_port_in_use_is_one_sentence(path: Path) -> None:
    made(path, b"ok")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(StorageError, match="cannot be used"),
            Replay(path, port=taken.getsockname()[1]),
        ):
            pass


def test_printed_line_is_all_it_takes_and_a_cancelled_answer_ends(path: Path) -> None:
    """`tiro replay FILE`; the recording holds an answer that was cancelled midway."""
    delta = b'data: {"choices": [{"delta": {"content": "half an ans"}}]}\n\n'
    made(path, delta, how="closed", target="/chat/completions")
    command = [sys.executable, "-m", "tiro", "replay", str(path), "--fast"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        use = next(line.strip() for line in process.stdout if "TIRO_CONFIG_DIR=" in line)
        asking = use.replace(" tiro ", f" {sys.executable} -m tiro ")
        asked = subprocess.run(["sh", "-c", asking], capture_output=True, text=True)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert asked.stdout.startswith("half an ans")
    assert "Answer 1 goes no further" in asked.stderr
    assert (asked.returncode, process.returncode) == (Exit.NO_MODEL, 0)
    assert "· Answer 1 goes no further" in errors
    directory = use.removeprefix("TIRO_CONFIG_DIR=").partition(" ")[0]
    assert not Path(directory).exists()


def test_command_says_what_was_not_asked_for(path: Path) -> None:
    made(path, b"ok")
    command = [sys.executable, "-m", "tiro", "replay", str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "1 answers of acme" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert errors == "· Not asked for were 1 of 1 recorded answers\n"


def test_command_refuses_what_is_no_recording(path: Path) -> None:
    for text, code in ((None, 2), ("hello\n", 1), (made(path).read_text(), 1)):
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        command = [sys.executable, "-m", "tiro", "replay", str(path), "--provider", "nobody"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == code
        assert done.stderr.startswith("tiro: ")
        assert len(done.stderr.splitlines()) == 1
