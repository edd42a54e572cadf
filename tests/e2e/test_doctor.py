"""`tiro doctor` as a person types it, on machines in all kinds of states."""

import json
import socket
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.e2e import command, replies
from tests.e2e.home import KEY_VARIABLE, Home
from tests.e2e.provider import API_KEY, MODEL, Provider
from tests.e2e.replies import Reply
from tests.e2e.warm import WarmProcess

DONE, FAILED, NO_MODEL = 0, 1, 3


Doctor = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def doctor(warmth: WarmProcess | None) -> Doctor:
    """Run it to its end; None takes a variable out. Whatever it finds, it tells no secret."""

    def run(home: Home, *words: str, **env: str | None) -> subprocess.CompletedProcess[str]:
        given = {k: v for k, v in {**home.environment(), **env}.items() if v is not None}
        done = command.run(home, "doctor", *words, env=given, warm=warmth)
        assert done.stderr == ""
        assert API_KEY not in done.stdout
        return done

    return run


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


def test_all_is_well(home: Home, doctor: Doctor) -> None:
    done = doctor(home)
    assert done.returncode == DONE
    lines = done.stdout.splitlines()
    assert lines[-1] == "All is well: tiro chat"
    assert f"Config      {home.config_dir / 'config.yaml'}" in lines
    assert f"Model       fake/{MODEL} (it is set as `model`)" in lines
    assert f"  ok  fake         {MODEL}" in lines
    assert "Agent       build" in lines
    assert "  --  openai       its API key OPENAI_API_KEY is not set" in lines
    assert any(line.startswith(f"Sessions    0 in {home.sessions}, ") for line in lines)
    assert not home.sessions.exists(), "looking changes nothing"


def test_what_an_editor_sets_is_seen_and_beats_the_files(home: Home, doctor: Doctor) -> None:
    given = {"session": {"max_history": "x"}, "model": f"fake/{MODEL}"}
    done = doctor(home, "--settings", json.dumps(given))
    assert "The editor's settings: session.max_history must be a whole number" in done.stdout
    done = doctor(home, "--settings", json.dumps({"model": "fake/other"}))
    assert done.returncode == FAILED
    assert "fake/other" in done.stdout


@pytest.mark.parametrize("given", ["{", "[]"])
def test_settings_that_are_no_json_object_are_refused(home: Home, given: str) -> None:
    done = command.run(home, "doctor", "--settings", given, env=home.environment())
    assert (done.returncode, done.stdout) == (2, "")
    assert "--settings is no JSON" in done.stderr


def test_missing_key_is_the_next_step(home: Home, doctor: Doctor) -> None:
    home.write_config(providers={"fake": home.fake(api_key_env="SURELY_NOT_SET")})
    done = doctor(home)
    assert done.returncode == NO_MODEL
    assert done.stdout.splitlines()[-1] == "Next: export SURELY_NOT_SET=…"


@pytest.mark.parametrize("status", [401, 403])
def test_refused_key_is_found_out_without_being_told(
    home: Home, provider: Provider, status: int, doctor: Doctor
) -> None:
    """B52: a key that is set is tried, since a prompt would fail; its variable is named."""
    if status == 403:
        provider.models_answer = replies.error(403, "Incorrect API key, or not yours")
    done = doctor(home, **{KEY_VARIABLE: "sk-not-the-right-one-at-all"} if status == 401 else {})
    assert done.returncode == NO_MODEL
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("  --  fake ")]
    assert f"refused the API key in {KEY_VARIABLE}" in line
    assert f"HTTP {status}" in line
    assert "Incorrect API key" in line
    assert "sk-not-the-right-one-at-all" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith(f"Next: set {KEY_VARIABLE} to a key that fake")


NO_LISTS = [
    (replies.error(501, "Not Implemented"), "HTTP 501"),
    (replies.page(404), "HTTP 404"),
    (replies.page(), "a web page"),
]


@pytest.mark.parametrize(("answer", "told"), NO_LISTS)
def test_a_server_without_a_list_of_models_is_no_fault(
    home: Home, provider: Provider, answer: Reply, told: str, doctor: Doctor
) -> None:
    """It answers, which is all that a prompt needs when the model is named."""
    provider.models_answer = answer
    home.write_config(providers={"fake": home.fake(models=None)})
    done = doctor(home)
    assert done.returncode == DONE, done.stdout
    lines = done.stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("  ok  fake ")]
    assert line.startswith(f"  ok  fake         {MODEL} (it answers, but lists no models: ")
    assert told in line
    assert f"Model       fake/{MODEL} (it is set as `model`)" in lines
    assert lines[-1] == "All is well: tiro chat"


def test_a_server_without_a_list_needs_a_model_that_is_named(
    home: Home, provider: Provider, doctor: Doctor
) -> None:
    provider.models_answer = replies.error(404, "Not Found")
    given = {name: getattr(home, name)(models=None) for name in ("fake", "claude")}
    home.write_config(model="fake", providers=given)
    done = doctor(home)
    assert done.returncode == NO_MODEL
    assert done.stdout.splitlines()[-1].startswith("Next: set `model` to fake/…")
    assert "unreachable" not in done.stdout


def test_a_file_that_cannot_be_read_comes_first(home: Home, doctor: Doctor) -> None:
    """Nothing else that is found means much while the configuration is not what was written."""
    path = home.write_config()
    path.write_text(path.read_text() + "]")
    line = path.read_text().count("\n") + 1
    done = doctor(home)
    assert done.returncode in (FAILED, NO_MODEL)
    assert done.stdout.splitlines()[-1].startswith(f"Next: correct {path}, line {line}: ")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("fake-modle", "fake/fake-model, fake/fake-small"),
        ("zzz", "fake/fake-model, fake/fake-small, fake/other:latest"),
        ("fake-model", None),
        ("fake", None),
        ("other", None),
    ],
)
def test_a_model_that_its_provider_does_not_list_is_not_well(
    home: Home, provider: Provider, name: str, near: str | None, doctor: Doctor
) -> None:
    """It may be a slip, or a short name for one that is listed: the provider decides that."""
    provider.model_names = ["fake-model", "fake-small", "other:latest"]
    home.write_config(model=f"fake/{name}", providers={"fake": home.fake(models=None)})
    done = doctor(home)
    assert done.returncode == (FAILED if near else DONE)
    last = done.stdout.splitlines()[-1]
    if near is None:
        assert last == "All is well: tiro chat"
    else:
        assert last == f"Next: check the name in `model`: fake does not list it, but {near}"
        assert "(the first of these is not in its list)" in done.stdout


def test_a_slip_about_the_model_comes_first(home: Home, doctor: Doctor) -> None:
    """Nobody is asked, so it is not well, whoever could answer."""
    path = home.write_config()
    path.write_text(path.read_text().replace('"model":', '"modle":'))
    done = doctor(home, ANTHROPIC_API_KEY="k-hosted", HTTPS_PROXY="http://127.0.0.1:9")
    assert done.returncode == NO_MODEL
    lines = done.stdout.splitlines()
    assert "Model       none can be used (not asked before the problem above is corrected)" in lines
    slip = f"{path}, line 2: modle is no setting (did you mean model?)"
    assert lines[-1] == f"Next: correct {slip}"
    assert any(line.startswith(f"Problem     {slip}; ") for line in lines)


def test_wrong_keys_are_told_with_their_places(home: Home, doctor: Doctor) -> None:
    """The default holds, so a prompt would be answered all the same."""
    path = home.write_config(session={"max_history": "lots"}, agnet="plan")
    summary = home.config_dir / "agents" / "summary.md"
    summary.parent.mkdir()
    summary.write_text("---\nhidden: true\n---\nSum up.")
    instructions = home.write("AGENTS.md", "x" * 30_001)
    done = doctor(home)
    assert done.returncode == DONE
    problems = [line for line in done.stdout.splitlines() if line.startswith("Problem ")]
    assert len(problems) == 4
    assert all(f"{path}, line " in problem for problem in problems[:2])
    assert f"{summary}: nothing asks this agent" in problems[2]
    assert f"{instructions} is longer than 30,000 characters" in problems[3]
    assert done.stdout.splitlines()[-1].startswith(f"Next: correct {path}, line ")


def test_servers_that_never_answer_are_not_waited_for_long(
    home: Home, silent: str, doctor: Doctor
) -> None:
    """Ten of them; whoever waits ten seconds for each is stopped by the test's own limit."""
    many = {f"slow{n}": {"api": "openai", "base_url": silent} for n in range(10)}
    home.write_config(model="slow3/one", providers=many)
    done = doctor(home)
    assert done.returncode == NO_MODEL
    assert done.stdout.count(f"it takes connections at {silent}, but") == 10
    assert "Next: make slow3 answer (see above), or" in done.stdout
    assert f"  ok  fake         {MODEL}" in done.stdout


def test_damaged_sessions_and_json(home: Home, doctor: Doctor) -> None:
    home.sessions.mkdir(parents=True)
    (home.sessions / "half.json").write_text('{"id": "half", "messages": [')
    done = doctor(home)
    assert done.returncode == DONE, "a prompt is answered all the same"
    told = done.stdout.splitlines()[-1]
    assert told.startswith(f"Next: move {home.sessions / 'half.json'} to another folder, or repair")
    found = json.loads(doctor(home, "--json").stdout)
    assert found["isReady"]
    assert found["model"] == f"fake/{MODEL}"
    assert found["sessions"]["saved"] == 0
    (damaged,) = found["sessions"]["damaged"]
    assert damaged["path"].endswith("half.json")
    fake = next(one for one in found["providers"] if one["name"] == "fake")
    assert fake["models"] == [MODEL]


def test_odd_machine_gets_a_report_all_the_same(home: Home, doctor: Doctor) -> None:
    """No HOME, a broken file, a file where the sessions should be."""
    path = home.write_config()
    path.write_text(f"{path.read_text()[:-1]}, ][")
    home.sessions.write_text("no directory")
    done = doctor(home, HOME=None, XDG_CACHE_HOME="/proc/nowhere", NO_PROXY="*")
    assert done.returncode in (FAILED, NO_MODEL)
    assert f"Problem     {path}, line " in done.stdout
    assert f"{home.sessions}, where nothing can be saved" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Next: ")


def test_unset_model_is_the_first_that_answers(home: Home, silent: str, doctor: Doctor) -> None:
    home.write_config(model=None, providers={"fake": home.fake(base_url=silent)})
    done = doctor(home)
    assert done.returncode == DONE
    assert f"Model       claude/{MODEL} (the first that can be used" in done.stdout
