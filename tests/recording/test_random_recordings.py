"""Recordings with random damage: refused in a sentence, or read with all that is whole in them."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.damage import damaged
from tests.sizes import sized
from tiro.errors import InvalidInputError, StorageError
from tiro.recording.exchanges import read_recording
from tiro.recording.replay import Replay

RECORDINGS = {
    path.name: path.read_bytes()[:20_000]
    for path in sorted((Path(__file__).parents[1] / "recordings").glob("*.jsonl"))
}


@pytest.fixture(scope="module")
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "damaged.jsonl"


@pytest.mark.parametrize("name", RECORDINGS)
@settings(max_examples=sized(fast=15, normal=30, long=3000))
@given(data=st.data())
def test_a_damaged_recording_is_refused_or_can_be_played(
    path: Path, name: str, data: st.DataObject
) -> None:
    path.write_bytes(data.draw(damaged(RECORDINGS[name])))
    try:
        found = read_recording(path)
        for message in (*found.messages_in, *found.messages_out):
            assert isinstance(message.data, bytes)
        for exchange in found.exchanges:
            assert isinstance(exchange.request.data, bytes)
            assert all(isinstance(chunk.data, bytes) for chunk in exchange.chunks)
            assert exchange.path.startswith("/")
        Replay(path)
    except (InvalidInputError, StorageError):
        pass
