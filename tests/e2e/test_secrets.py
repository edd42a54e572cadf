"""B52, U9.11: configured keys reach no file, log, error or list, whoever says them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import API_KEY, Provider
from tests.e2e.talk import add, ask, begin_ask, result, use
from tests.sizes import PATIENCE

MARK = "S3CR3T"
HEADER, QUERY, PASSWORD, PROXY, SPARE = (f"{MARK}-{name}-0123456789" for name in "hqpxs")
SECRETS = [API_KEY, HEADER, QUERY, PASSWORD, PROXY, SPARE]
OWN = f"{API_KEY} {HEADER} {QUERY} {SPARE}"
ALL = " ".join(SECRETS)
LONG = f"{ALL} line of output\n" * 2000


@pytest.fixture
def leaky(home: Home) -> Home:
    """A home whose every kind of setting holds a key, and whose log tells all."""
    assert home.provider is not None
    spare = {"api": "openai", "base_url": f"http://user:{PASSWORD}@127.0.0.1:9/v1"}
    proxied = {
        **spare,
        "base_url": "http://127.0.0.1:9/v1",
        "proxy": f"http://u:{PROXY}@127.0.0.1:9",
    }
    fake = home.fake(
        base_url=f"{home.provider.base_url}?key={QUERY}",
        headers={"X-Extra": HEADER, "Authorization-Extra": f"Bearer {SPARE}"},
    )
    home.write_config(
        providers={"fake": fake, "spare": spare, "proxied": proxied},
        log={"level": "debug", "file": "tiro.log"},
    )
    return home


def files(home: Home) -> Iterator[tuple[Path, bytes]]:
    """Everything on the disk that the user did not write."""
    for path, content in home.contents().items():
        if path.name != "config.yaml" and home.workspace not in path.parents:
            yield path, content


def check_clean(home: Home, *told: Any) -> None:
    """No key in what was told and in no file."""
    for value in told:
        text = json.dumps(value)
        assert not [secret for secret in SECRETS if secret in text], text[:2000]
    for path, data in files(home):
        assert not [secret for secret in SECRETS if secret.encode() in data], path


def say_all(server: Server, provider: Provider) -> None:
    """Have user, model, tools and titles say every key."""
    server.home.write("keys.txt", ALL)
    pieces = [ALL[i : i + 7] for i in range(0, len(ALL), 7)]
    provider.script(
        replies.tools(("c1", "read_file", {"path": "keys.txt"}), before=ALL),
        replies.tools(("c2", "glob", {"pattern": f"*{ALL}*"})),
        replies.text(*pieces),
    )
    attached = {"type": "attachment", "kind": "selection", "path": "/a", "text": ALL}
    ask(server, [{"type": "text", "text": ALL}, attached])
    server.request("tiro/session/configure", {"title": f"about {ALL}"})
    add(server, "assistant", [use("c3", given={ALL: [ALL]})], name=ALL, metadata={"mine": ALL})
    add(server, "tool", result("c3", LONG))
    add(server, "user", LONG)


def test_b52_keys_that_everybody_says_are_in_no_file(
    start: StartServer, provider: Provider, leaky: Home
) -> None:
    """Journal, snapshot, large values, copy, list, search index, log: also after a kill."""
    server = start()
    say_all(server, provider)
    check_clean(leaky)
    saved = server.request("tiro/session/save")
    check_clean(leaky, saved)
    server.request("tiro/session/save", {"path": str(leaky.root / "copy" / "c.json")})
    server.request("tiro/session/clear")
    listed = server.request("tiro/session/list")
    assert "[secret]" in listed["sessions"][0]["title"]
    found = server.request("tiro/session/search", {"query": "line of output"})
    assert found["hits"]
    exported = server.request("tiro/session/export", {"id": saved["id"], "format": "markdown"})
    check_clean(leaky, listed, found, exported, server.request("tiro/status"))
    loaded = server.request("tiro/session/load", {"id": saved["id"]})
    assert "[secret]" in loaded["messages"][-1]["content"]
    assert list((leaky.sessions / "blobs").iterdir())
    server.kill()
    check_clean(leaky, server.stderr_text())
    assert (leaky.root / "state" / "tiro" / "tiro.log").exists()


@pytest.mark.parametrize("status", [401, 400])
def test_b52_a_refusal_that_repeats_keys_tells_none(
    start: StartServer, provider: Provider, leaky: Home, status: int
) -> None:
    """In the answer to the turn, in its events, in the session."""
    server = start()
    provider.script(*[replies.error(status, f"wrong key {OWN}") for _ in range(9)])
    asked = begin_ask(server, "hi")
    error = asked.error()
    assert "[secret]" in error.data["body"]
    server.request("tiro/session/save")
    check_clean(leaky, error.error, server.events(), server.stderr_text())


def test_b52_doctor_and_wrong_settings_tell_no_key(leaky: Home) -> None:
    """Also where they are at the wrong place, or cannot be reached."""
    leaky.write_config(
        providers={
            "fake": leaky.fake(api_key=API_KEY, api_key_env=None, headers=[HEADER]),
            "bad": {"api": "openai", "base_url": f"http://u:{PASSWORD}@[", "proxy": {PROXY: 1}},
            "far": {"api": "openai", "base_url": f"http://u:{QUERY}@127.0.0.1:9/v1"},
        }
    )
    done = subprocess.run(
        [sys.executable, "-m", "tiro", "doctor"],
        env=leaky.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert "far" in done.stdout
    check_clean(leaky, done.stdout, done.stderr)


def test_a_key_that_was_changed_stays_out_of_files(
    start: StartServer, provider: Provider, leaky: Home
) -> None:
    """U9.11: what was a key when it was said is not written because another one is set now."""
    server = start()
    provider.script(replies.text(f"it is {HEADER}"))
    ask(server, "which key?")
    settings = {"providers": {"fake": leaky.fake(headers={"X-Extra": "another-key-1234"})}}
    server.notify("workspace/didChangeConfiguration", {"settings": {"tiro": settings}})
    server.request("tiro/session/save")
    check_clean(leaky)
