"""Protocol section 5: which models there are, which one answers, and what is refused at once."""

import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import API_KEY, MODEL, Provider
from tests.e2e.replies import Reply
from tests.e2e.talk import ask, view
from tests.e2e.test_doctor import NO_LISTS

NOT_CONFIGURED = (-32031, "modelNotConfigured")


def rows_of(server: Server, provider: str) -> dict[str, tuple[bool, str | None]]:
    """Name → available and reason, of one provider's models."""
    rows = server.request("tiro/models/list")["models"]
    return {r["name"]: (r["available"], r["reason"]) for r in rows if r["provider"] == provider}


@pytest.mark.parametrize(("answer", "told"), NO_LISTS[1:])
def test_the_models_that_somebody_named_are_listed_by_whoever_lists_none(
    start: StartServer, home: Home, provider: Provider, answer: Reply, told: str
) -> None:
    """The one of the configuration, that of the session, `default_model` and `models`."""
    provider.models_answer = answer
    named = {"default_model": "usual", "models": {"large": {}}}
    config = {
        "fake": home.fake(models=None),
        "claude": home.claude(**named),
        "bare": home.fake(models=None),
    }
    home.write_config(model="fake/mine", providers=config)
    server = start()
    assert rows_of(server, "fake") == {"fake/mine": (True, None)}
    assert list(rows_of(server, "claude")) == ["claude/usual", "claude/large"]
    ((name, (available, reason)),) = rows_of(server, "bare").items()
    assert (name, available) == ("bare", False)
    assert "it answers, but lists no models" in str(reason)
    assert told in str(reason)
    server.request("tiro/models/set", {"name": "bare/chosen"})
    assert server.request("tiro/models/list")["current"] == "bare/chosen"
    assert rows_of(server, "bare") == {"bare/chosen": (True, None)}
    assert rows_of(server, "fake") == {"fake/mine": (True, None)}
    ask(server)
    assert provider.last.body["model"] == "chosen"


def test_the_current_model_stands_beside_those_that_the_server_lists(
    start: StartServer, home: Home, provider: Provider
) -> None:
    provider.model_names = ["one", "two"]
    home.write_config(model="fake/mine", providers={"fake": home.fake(models=None)})
    assert list(rows_of(start(), "fake")) == ["fake/mine", "fake/one", "fake/two"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_told_with_its_variable(
    start: StartServer, home: Home, provider: Provider, status: int
) -> None:
    """Also of models that are configured: a prompt to them would fail."""
    provider.models_answer = replies.error(status, "no")
    given = {
        "work": home.fake(api_key_env="WORK_KEY"),
        "own": home.fake(api_key="k-own", api_key_env=None),
    }
    home.write_config(model=f"work/{MODEL}", providers=given)
    server = start(env={"WORK_KEY": "k-work"})
    available, reason = rows_of(server, "work")[f"work/{MODEL}"]
    assert not available
    assert "refused the API key in WORK_KEY" in str(reason)
    available, reason = rows_of(server, "own")[f"own/{MODEL}"]
    assert "refused the API key, check it" in str(reason)


# models/set


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("work/m", "its API key WORK_KEY is not set; set it"),
        ("work", "its API key WORK_KEY is not set; set it"),
        ("gone/m", "there is no provider 'gone'"),
        ("openai/gpt-5", "its API key OPENAI_API_KEY is not set; set it"),
        ("fake/", "a model name follows the slash"),
    ],
)
def test_a_model_that_cannot_be_used_is_refused_and_nothing_changes(
    start: StartServer, home: Home, name: str, told: str
) -> None:
    home.write_config(providers={"work": home.fake(api_key_env="WORK_KEY")})
    server = start()
    server.request("tiro/models/set", {"name": "fake/before"})
    error = server.error("tiro/models/set", {"name": name})
    assert (error.code, error.kind) == NOT_CONFIGURED
    assert told in error.message
    assert [row["provider"] for row in error.data["tried"]] == [name.partition("/")[0]]
    assert view(server)["model"] == "fake/before"


def test_a_session_whose_model_lost_its_key_names_the_ways_out(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """Nobody else answers meanwhile, although the configuration has a model."""
    home.write_config(providers={"work": home.fake(api_key_env="WORK_KEY")})
    server = start(env={"WORK_KEY": API_KEY})
    ask(server, model=f"work/{MODEL}")
    server.request("tiro/session/save")
    server.shutdown()
    server = start()
    server.request("tiro/session/load", {"latest": True})
    error = server.error("tiro/turn/start", {"prompt": "go on"})
    assert (error.code, error.kind) == NOT_CONFIGURED
    told = "its API key WORK_KEY is not set; set it, or choose another model"
    assert f"The model 'work/{MODEL}' cannot be used: {told}" in error.message
    assert (view(server)["total"], len(provider.chats)) == (2, 1)
    server.request("tiro/models/set", {"name": f"fake/{MODEL}"})
    assert ask(server)["text"] == "ok"


# Who is never asked

ON_THIS_MACHINE = """\
model: openai/{model}
providers:
  openai: {{base_url: "{url}", api: openai}}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("model:", "modle:", "line 1: modle is no setting (did you mean model?)"),
        ("model: openai", "model: [openai", "line 1: this is no valid YAML"),
        ("model: openai/", "model: {}\n#", "line 1: model must be text or null"),
        ("base_url:", "bass_url:", "line 3: providers.openai.bass_url is no setting"),
        ("api: openai}", "api: openal}", "line 3: providers.openai.api must be"),
        ("providers:", "provider:", "line 2: provider is no setting"),
        ("openai: {", "openai: 1 # {", "line 3: providers.openai must be a section"),
    ],
)
def test_a_slip_in_the_configuration_sends_no_prompt_elsewhere(
    start: StartServer, home: Home, provider: Provider, right: str, wrong: str, told: str
) -> None:
    """A hosted provider has its key, but the user has named one on this machine."""
    path = home.write_config()
    whole = ON_THIS_MACHINE.format(model=MODEL, url=provider.base_url)
    assert whole.count(right) == 1
    path.write_text(whole.replace(right, wrong))
    nowhere = "http://127.0.0.1:9"  # the hosted ones must not be reached from a test
    keys = {"ANTHROPIC_API_KEY": "k-hosted", "OPENAI_API_KEY": API_KEY, "HTTPS_PROXY": nowhere}
    server = start(env=keys)
    assert any(told in problem for problem in server.request("tiro/status")["problems"])
    error = server.error("tiro/turn/start", {"prompt": "private"})
    assert (error.code, error.kind) == NOT_CONFIGURED
    assert f"until this is corrected: {path}, " in error.message
    assert told in error.message
    assert server.error("tiro/session/explain").kind == "modelNotConfigured"
    assert view(server)["messages"] == []
    path.write_text(whole)
    assert ask(server)["text"] == "ok", "the corrected file is read by the next prompt"


def test_a_rule_that_could_not_be_read_holds_up_nobody_once_it_is_corrected(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """The file names no provider, so there is no doubt who may be asked; still everything asks."""
    home.write_config()
    path = home.workspace / ".tiro" / "config.yaml"
    path.parent.mkdir()
    path.write_text("permission: [\n")
    server = start()
    listing = {"agent": "build", "tool": "read_file", "input": {"path": "a"}}

    def decision() -> Any:
        return server.request("tiro/permissions/explain", listing)["decision"]

    ask(server)
    assert decision() == "ask"
    path.write_text("permission: {}\n")
    ask(server)
    assert decision() == "allow"
    assert server.request("tiro/status")["problems"] == []


def test_a_file_that_stays_broken_opens_no_model_anew(
    start: StartServer, home: Home, provider: Provider, tmp_path: Path
) -> None:
    """Each prompt looks whether it was corrected, and must not ask for a password each time."""
    runs = tmp_path / "runs"
    command = f"echo run >> {shlex.quote(str(runs))}; echo {API_KEY}"
    home.write_config(providers={"fake": home.fake(api_key_env=None, api_key_command=command)})
    path = home.workspace / ".tiro" / "config.yaml"
    path.parent.mkdir()
    path.write_text("permission: [\n")
    server = start()
    for _ in range(3):
        ask(server)
    assert runs.read_text() == "run\n"


def test_pipes_where_files_should_be_hold_up_nothing(start: StartServer, home: Home) -> None:
    """Whoever opens one waits for ever; each is told, and a prompt says which to correct."""
    path = home.write_config()
    whole = path.read_text()
    own = [path, home.config_dir / "agents/mine.md", home.sessions / "half.json"]
    for place in (*own, home.workspace / ".tiro/config.yaml", home.workspace / "AGENTS.md"):
        place.parent.mkdir(exist_ok=True, parents=True)
        place.unlink(missing_ok=True)
        os.mkfifo(place)
    server = start()
    problems = server.request("tiro/status")["problems"]
    for name in ("config/config.yaml", "mine.md", ".tiro/config.yaml", "AGENTS.md"):
        assert any(f"{name} is no regular file" in problem for problem in problems), problems
    (row,) = server.request("tiro/session/list")["sessions"]
    assert row["error"]
    error = server.error("tiro/turn/start", {"prompt": "hi"})
    assert f"{path} is no regular file" in error.message
    for place in (path, home.workspace / ".tiro/config.yaml"):
        place.unlink()
    path.write_text(whole)
    assert ask(server)["text"] == "ok"
