"""While a turn waits for its model, here for a command that prints the key, all else goes on.

The command reads a pipe: it has begun when somebody can write into it, and ends when that is done.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

from tests.e2e.client import Pending, Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import API_KEY, Provider
from tests.e2e.talk import add, ask, begin_ask, view, words

Begin = Callable[[], tuple[Server, Pending, TextIO]]


@pytest.fixture
def choosing(home: Home, start: StartServer, tmp_path: Path) -> Iterator[Begin]:
    """Begins a turn whose key command runs; closing the pipe after writing a key ends that."""
    pipe, opened = tmp_path / "key", []
    os.mkfifo(pipe)
    slow = home.fake(api_key_env=None, api_key_command=["cat", str(pipe)])
    home.write_config(providers={"fake": slow})
    server = start()
    add(server, "user", "before")

    def begin() -> tuple[Server, Pending, TextIO]:
        turn = begin_ask(server, "go")
        opened.append(pipe.open("w"))
        return server, turn, opened[-1]

    yield begin
    for file in opened:
        with contextlib.suppress(BrokenPipeError):
            file.close()


def give(key: TextIO) -> None:
    """Let the command print the key and end."""
    key.write(API_KEY)
    key.close()


def test_reads_are_answered_and_the_turn_goes_on(choosing: Begin) -> None:
    server, turn, key = choosing()
    assert words(server) == ["before"]
    for method in ("getId", "list", "contextSize", "explain", "statistics", "judgeResize"):
        server.request(f"tiro/session/{method}")
    assert server.request("tiro/agents/list")["default"] == "build"
    assert server.request("tiro/state/set", {"key": "k", "value": 1}) == {}
    assert server.request("tiro/state/get", {"key": "k"})["value"] == 1
    assert view(server)["busy"] is not None
    assert not turn.done
    give(key)
    assert turn.result()["text"] == "ok"
    assert words(server) == ["before", "go", "ok"]


def test_it_is_a_turn_already(choosing: Begin) -> None:
    """Protocol 4: what is refused during a turn is refused, and steering waits for its start."""
    server, turn, key = choosing()
    for method, params in [
        ("turn/start", {"prompt": "me too"}),
        ("session/addMessage", {"role": "user", "content": "late"}),
        ("session/rewind", {"toSeq": 0}),
        ("session/compact", {}),
    ]:
        error = server.error(f"tiro/{method}", params)
        assert error.kind == "turnInProgress"
        assert error.data["turnId"] == view(server)["busy"]["turnId"]
    steered = server.begin("tiro/turn/steer", {"text": "and this"})
    server.request("tiro/session/setAgent", {"name": "plan"})
    give(key)
    assert steered.result()["queued"] is True
    assert turn.result()["stopReason"] == "end_turn"
    assert words(server)[:2] == ["before", "go"]
    assert "and this" in words(server)
    assert server.wait_event("started")["agent"] == "build"


@pytest.mark.parametrize("way", ["cancel", "cancel by id", "$/cancelRequest"])
def test_it_is_cancelled_at_once(choosing: Begin, provider: Provider, way: str) -> None:
    """B43; nothing is stored, and the next one has the key of the same command."""
    server, turn, key = choosing()
    if way == "$/cancelRequest":
        server.notify("$/cancelRequest", {"id": turn.id})
        assert turn.error().code == -32800
    else:
        busy = view(server)["busy"]
        params = {} if way == "cancel" else busy
        assert server.request("tiro/turn/cancel", params) == {"cancelled": True}
        assert turn.result()["stopReason"] == "cancelled"
        assert turn.result()["turnId"] == busy["turnId"], "it is the one that was told"
    assert words(server) == ["before"]
    assert (view(server)["busy"], server.events(), provider.chats) == (None, [], [])
    if way == "cancel":
        give(key)  # also when nobody waits for it
    again = begin_ask(server, "again")
    if way != "cancel":
        give(key)
    assert again.result()["text"] == "ok"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("clear", {}),
        ("new", {"title": "x"}),
        ("load", {"id": "ID"}),
        ("import", {"text": '{"messages": []}'}),
    ],
)
def test_who_ends_the_session_wins(
    choosing: Begin, provider: Provider, method: str, params: dict[str, Any]
) -> None:
    """B62: the turn is answered first, as cancelled, and leaves no trace in either session."""
    server, turn, _ = choosing()
    id_ = server.request("tiro/session/getId")["id"]
    given = {key: value.replace("ID", id_) for key, value in params.items()}
    ended = server.begin(f"tiro/session/{method}", given)
    ended.result()
    assert turn.result()["stopReason"] == "cancelled"
    assert turn.mark <= ended.mark
    assert words(server) == (["before"] if method == "load" else [])
    assert server.request("tiro/session/load", {"id": id_})["messages"][0]["content"] == "before"
    assert (words(server), server.events(), provider.chats) == (["before"], [], [])


def test_settings_that_change_meanwhile_hold(
    choosing: Begin, home: Home, provider: Provider
) -> None:
    """Nobody is asked whom the settings do not name any more."""
    server, turn, key = choosing()
    changed = {"model": "claude/fake-model"}
    server.notify("workspace/didChangeConfiguration", {"settings": changed})
    assert view(server)["busy"] is not None
    assert server.request("tiro/status")["model"] == changed["model"]
    give(key)
    assert turn.result()["text"] == "ok"
    assert provider.last.path == "/v1/messages"


def test_an_agent_whose_file_changes_meanwhile_answers_as_it_is_then(
    choosing: Begin, home: Home, provider: Provider
) -> None:
    """Its prompt and its rules are of the same settings as its model."""
    file = home.config_dir / "agents" / "build.md"
    file.parent.mkdir()
    file.write_text("---\nmode: primary\n---\nFirst.")
    server, turn, key = choosing()
    file.write_text("---\nmode: primary\npermission: {bash: deny}\n---\nSecond, as of now.")
    changed = {"model": "claude/fake-model"}
    server.notify("workspace/didChangeConfiguration", {"settings": changed})
    assert view(server)["busy"] is not None
    assert server.request("tiro/status")["model"] == changed["model"]
    give(key)
    assert turn.result()["text"] == "ok"
    assert provider.last.system == "Second, as of now."
    assert "run_command" not in provider.last.tool_names


def test_a_compaction_has_the_model_of_settings_that_change_meanwhile(
    choosing: Begin, home: Home, provider: Provider
) -> None:
    """The command of the old ones is ended, which is no fault of theirs."""
    server, turn, _ = choosing()
    server.request("tiro/turn/cancel")
    assert turn.result()["stopReason"] == "cancelled"
    compaction = server.begin("tiro/session/compact")
    assert words(server) == ["before"]
    changed = {"model": "claude/fake-model"}
    server.notify("workspace/didChangeConfiguration", {"settings": changed})
    assert compaction.result()["evicted"] == 1
    assert provider.last.path == "/v1/messages"


def test_a_command_that_fails_is_told_and_the_next_turn_runs(choosing: Begin) -> None:
    server, turn, key = choosing()
    key.close()
    assert turn.error().kind == "modelNotConfigured"
    assert words(server) == ["before"]
    assert ask(server, "go", model="claude/fake-model")["text"] == "ok"


def test_a_compaction_that_waits_for_its_model_holds_up_nothing(choosing: Begin) -> None:
    server, turn, _ = choosing()
    server.request("tiro/turn/cancel")
    compaction = server.begin("tiro/session/compact")
    assert words(server) == ["before"]
    assert not compaction.done
    server.request("tiro/session/clear")
    assert compaction.error().data["reason"] == "overtaken"
    assert turn.result()["stopReason"] == "cancelled"


def test_b42_the_command_ends_with_the_server(choosing: Begin) -> None:
    server, turn, key = choosing()
    assert server.shutdown() == 0
    assert turn.result()["stopReason"] == "cancelled"
    key.write("nobody reads this any more")
    with pytest.raises(BrokenPipeError):
        key.flush()
