"""A recording as a test: its editor's side sent to a real server, its provider's side replayed.

What the editor hears is compared without what differs from run to run: ids, times, sizes of the
request, and how the text was cut into events.
"""

import json
import os
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.e2e.client import Server
from tests.e2e.home import Home
from tests.sizes import PATIENCE
from tiro.recording.exchanges import Recording
from tiro.recording.replay import Replay

VOLATILE = {"sessionId", "turnId", "n", "contextSize", "savedAt", "id", "path"}


def configure(home: Home, replay: Replay) -> None:
    """Let the recorded provider be the replay; the first model asked is the default one."""
    provider = replay.exchanges[0].request.provider
    model = next(
        json.loads(exchange.request.data)["model"]
        for exchange in replay.exchanges
        if exchange.request.method == "POST"
    )
    # The window is given, so that nobody asks the server for it.
    facts = {"context_window": 100_000}
    settings = {
        "api": "openai",
        "base_url": replay.base_url,
        "api_key": "replay",
        "models": {model: facts},
    }
    home.config_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.config_dir.joinpath("config.yaml").write_text(
        json.dumps({"model": f"{provider}/{model}", "providers": {provider: settings}}), "utf-8"
    )


def play_editor(recording: Recording, server: Server, timeout: float = PATIENCE) -> None:
    """Send the editor's messages, each after the answers that had come before it."""
    answers = [(line.ms, _value(line)["id"]) for line in recording.messages_out if _is_answer(line)]
    for line in recording.messages_in:
        for id_ in (id_ for ms, id_ in answers if ms < line.ms):
            _wait_for(server, id_, timeout)
        server.send(_at_home(_value(line), server.home.workspace))
    server.wait_exit()


def heard_then(recording: Recording) -> dict[str, Any]:
    """What the editor heard when it was recorded."""
    return _comparable([json.loads(line.data) for line in recording.messages_out])


def heard_now(recording: Recording, server: Server) -> dict[str, Any]:
    """What it heard from this server, without fields that the protocol has got since."""
    ids = [message.get("id") for message in map(_value, recording.messages_in)]
    answers = [answer for id_ in ids for answer in server.answers_to(id_)]
    heard = _comparable([*server.notifications, *answers])
    return dict(_as_then(heard, heard_then(recording)))


def _wait_for(server: Server, id_: Any, timeout: float) -> None:
    server.wait_until(lambda: bool(server.answers_to(id_)), f"the answer to {id_}", timeout)


def _comparable(messages: list[dict[str, Any]]) -> dict[str, Any]:
    events = [_stable(m["params"]) for m in messages if m.get("method") == "tiro/turn/event"]
    joined: list[Any] = []
    for kind, group in groupby(events, lambda event: event["type"]):
        if kind == "text":
            joined.append({"type": kind, "delta": "".join(event["delta"] for event in group)})
        else:
            joined.extend(group)
    answers = {
        m["id"]: _stable(m.get("result", m.get("error")))
        for m in messages
        if "method" not in m and "capabilities" not in (m.get("result") or {})
    }
    return {"events": joined, "answers": answers}


def _as_then(now: Any, then: Any) -> Any:
    """The value with those keys only that the recorded one has."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {key: _as_then(value, then[key]) for key, value in now.items() if key in then}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [_as_then(*pair) for pair in zip(now, then, strict=True)]
    return now


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stable(item) for key, item in value.items() if key not in VOLATILE}
    return [_stable(item) for item in value] if isinstance(value, list) else value


def _at_home(message: dict[str, Any], workspace: Path) -> dict[str, Any]:
    """The message as it would have been sent from here."""
    if message.get("method") == "initialize":
        folders = [{"uri": workspace.as_uri(), "name": workspace.name}]
        here = {"processId": os.getpid(), "rootUri": workspace.as_uri()}
        message["params"] |= {**here, "workspaceFolders": folders}
    return message


def _value(line: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(line.data)
    return value


def _is_answer(line: Any) -> bool:
    return "method" not in _value(line)
