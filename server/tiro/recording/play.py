"""`tiro replay`: play a recording, say how to use it, and tell what differs, until Ctrl-C."""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from tiro.recording.exchanges import RecordedExchange
from tiro.recording.replay import Replay

Say: TypeAlias = Callable[[str], None]

USE = """\
Plays {count} answers of {provider}, recorded by Tiro {tiro} on {platform}. In config.yaml:

model: {provider}/{model}
providers:
  {provider}: {{api: {api}, base_url: "{base_url}", api_key: replay}}

Ctrl-C ends it.
"""


def play(file: str, port: int, fast: bool, provider: str | None, show: Say, tell: Say) -> None:
    """Play until the user interrupts it.

    How to use it goes to `show`, every note to `tell`.
    """

    def note(text: str) -> None:
        tell(f"· {text}\n")

    with (
        Replay(Path(file), port=port, fast=fast, provider=provider, on_note=note) as replay,
        contextlib.suppress(KeyboardInterrupt),
    ):
        show(_use(replay))
        threading.Event().wait()
    if replay.left:
        note(f"Not asked for were {replay.left} of {len(replay.exchanges)} recorded answers")


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
