"""`tiro replay`: play a recording, say how to use it, and tell what differs, until Ctrl-C."""

import contextlib
import sys
import threading
from pathlib import Path

import msgspec

from tiro.recording.exchanges import RecordedExchange
from tiro.recording.replay import Replay

USE = """\
Plays {count} answers of {provider}, recorded by Tiro {tiro} on {platform}. In config.yaml:

model: {provider}/{model}
providers:
  {provider}: {{api: {api}, base_url: "{base_url}", api_key: replay}}

Ctrl-C ends it.
"""


def play(file: str, port: int, fast: bool, provider: str | None = None) -> int:
    """Play until the user interrupts it; returns the exit code."""
    with (
        Replay(Path(file), port=port, fast=fast, provider=provider, on_note=_tell) as replay,
        contextlib.suppress(KeyboardInterrupt),
    ):
        sys.stdout.write(_use(replay))
        sys.stdout.flush()
        threading.Event().wait()
    if replay.left:
        _tell(f"Not asked for were {replay.left} of {len(replay.exchanges)} recorded answers")
    return 0


def _use(replay: Replay) -> str:
    first = replay.exchanges[0].request
    return USE.format(
        count=len(replay.exchanges),
        provider=first.provider,
        tiro=replay.recording.header.tiro,
        platform=replay.recording.header.platform,
        model=_model(replay.exchanges),
        api="openai" if first.api == "local" else first.api,
        base_url=replay.base_url,
    )


def _tell(note: str) -> None:
    sys.stderr.write(f"· {note}\n")
    sys.stderr.flush()


def _model(exchanges: list[RecordedExchange]) -> str:
    """The name under which the model was asked, where a request says it."""
    for exchange in exchanges:
        try:
            body = msgspec.json.decode(exchange.request.data)
        except msgspec.DecodeError:
            continue
        if isinstance(body, dict) and isinstance(body.get("model"), str):
            return str(body["model"])
    return "NAME"
