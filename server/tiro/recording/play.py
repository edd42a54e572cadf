"""`tiro replay`: play a recording, say how to use it, and tell what differs, until Ctrl-C."""

import contextlib
import json
import shlex
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from tiro.recording.exchanges import RecordedExchange
from tiro.recording.replay import Replay

Say: TypeAlias = Callable[[str], None]

USE = """\
Plays {count} answers of {provider}, recorded by Tiro {tiro} on {platform}. In another terminal:

  TIRO_CONFIG_DIR={directory} tiro ask Hello

An editor that is started in that way asks it too. Ctrl-C ends it.
"""

CONFIG = """\
model: {model}
providers:
  {provider}: {{api: {api}, base_url: {base_url}, api_key: replay}}
"""


def play(file: str, port: int, fast: bool, provider: str | None, show: Say, tell: Say) -> None:
    """Play until the user interrupts it.

    How to use it goes to `show`, every note to `tell`. What has to be configured for it lies in a
    directory of its own, which goes with it, so that nobody's own configuration is touched.
    """

    def note(text: str) -> None:
        tell(f"· {text}\n")

    with (
        tempfile.TemporaryDirectory(prefix="tiro-replay-", ignore_cleanup_errors=True) as directory,
        Replay(Path(file), port=port, fast=fast, provider=provider, on_note=note) as replay,
        contextlib.suppress(KeyboardInterrupt),
    ):
        (Path(directory) / "config.yaml").write_text(_config(replay), encoding="utf-8")
        show(_use(replay, directory))
        while True:
            time.sleep(1)  # not for ever: another thread may take the signal that ends it
    if replay.left:
        note(f"Not asked for were {replay.left} of {len(replay.exchanges)} recorded answers")


def _use(replay: Replay, directory: str) -> str:
    header = replay.recording.header
    return USE.format(
        count=len(replay.exchanges),
        provider=replay.exchanges[0].request.provider,
        tiro=header.tiro,
        platform=header.platform,
        directory=shlex.quote(directory),
    )


def _config(replay: Replay) -> str:
    """The configuration that asks the replay, its names quoted as JSON, which is YAML too."""
    first = replay.exchanges[0].request
    return CONFIG.format(
        model=json.dumps(f"{first.provider}/{_model(replay.exchanges)}"),
        provider=json.dumps(first.provider),
        api="openai" if first.api == "local" else first.api,
        base_url=json.dumps(replay.base_url),
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
