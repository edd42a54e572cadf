"""What survives: kill -9 at many moments, damaged disks, two processes in one directory."""

import json
import os
import random
import resource
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import RpcError, Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold, Reply
from tests.e2e.talk import add, ask, begin_ask, stored, view, window, words
from tests.e2e.test_turns import outside
from tests.sizes import sized


def latest(server: Server) -> list[str]:
    """Load the latest session and give its texts."""
    server.request("tiro/session/load", {"latest": True})
    return words(server)


def everything(home: Home) -> set[str]:
    """Every text in any session of this home, as a fresh process reads them."""
    with Server(home) as reader:
        reader.initialize()
        found: set[str] = set()
        for row in reader.request("tiro/session/list", {"limit": 1000})["sessions"]:
            reader.request("tiro/session/load", {"path": row["path"]})
            found |= set(words(reader))
        reader.check()
        return found


def leftovers(home: Home) -> list[str]:
    """Temporary files in the sessions directory."""
    return [p.name for p in home.sessions.iterdir() if ".tmp" in p.name]


# kill -9


def test_every_acknowledged_message_survives_a_kill(start: StartServer, home: Home) -> None:
    dice = random.Random(7)
    said: list[str] = []
    server = start()
    for run in range(sized(fast=3, normal=8, long=50)):
        if run:
            server = start()
            assert latest(server) == said
        number = 0
        deadline = time.monotonic() + dice.uniform(0.0, 0.5)
        while time.monotonic() < deadline:
            text = f"run {run} message {number} " + "x" * dice.randrange(2000)
            add(server, "user", text)
            said.append(text)
            number += 1
            if dice.random() < 0.1:
                server.request("tiro/session/save")
        unanswered = [f"run {run} last {n}" for n in range(dice.randrange(3))]
        for text in unanswered:
            server.begin("tiro/session/addMessage", {"role": "user", "content": text})
        server.kill()
        if unanswered:
            with Server(home) as reader:
                reader.initialize()
                kept = latest(reader)
                assert kept[: len(said)] == said
                assert kept[len(said) :] == unanswered[: len(kept) - len(said)]
                said = kept
    assert latest(start()) == said
    home_files = [p for p in home.sessions.iterdir() if ".bad" in p.name]
    assert home_files == []
    assert leftovers(home) == []


def test_b10_a_kill_during_a_save_of_5_mb_leaves_a_whole_file(
    start: StartServer, home: Home
) -> None:
    dice = random.Random(3)
    server = start()
    for _ in range(5):
        add(server, "user", "x" * 1_000_000)
    id_ = server.request("tiro/session/save")["id"]
    for run in range(sized(fast=2, normal=6, long=50)):
        add(server, "user", f"run {run}")
        server.begin("tiro/session/save")
        time.sleep(dice.uniform(0.0, 0.05))
        server.kill()
        json.loads((home.sessions / f"{id_}.json").read_bytes())
        server = start()
        assert latest(server)[-1] == f"run {run}"
        add(server, "user", "writes again")
        assert leftovers(home) == []


def test_what_is_changed_in_a_session_survives_a_kill(start: StartServer) -> None:
    server = start()
    for text in ("one", "two", "three", "four"):
        add(server, "user", text)
    server.request("tiro/session/setAgent", {"name": "plan"})
    server.request("tiro/models/set", {"name": "fake/other"})
    server.request("tiro/state/set", {"key": "k", "value": {"b": 2**70}})
    server.request("tiro/session/configure", {"title": "T", "maxHistory": 3})
    server.request("tiro/session/editMessage", {"seq": 3, "content": "tre"})
    server.request("tiro/session/rewind", {"toSeq": 3})
    before = view(server)
    everything_before = view(server, limit=100, all=True)["messages"]
    server.kill()
    again = start()
    after = again.request("tiro/session/load", {"id": before["id"]})
    same = ("id", "title", "agent", "model", "messages", "total", "archived", "maxHistory",
            "turns", "memo", "state", "createdAt", "updatedAt")  # fmt: skip
    assert {k: after[k] for k in same} == {k: before[k] for k in same}
    assert view(again, limit=100, all=True)["messages"] == everything_before
    assert add(again, "user", "five")["seq"] == 5


def tool_turn(server: Server, provider: Provider, *, third: Any) -> None:
    """Start a turn of five tool uses whose third step is special."""
    for n in range(5):
        server.home.write(f"f{n}.txt", f"RESULT {n}")
    steps = [
        replies.tools((f"c{n}", "read_file", {"path": f"f{n}.txt"}), before=f"step {n}")
        for n in range(5)
    ]
    provider.script(*steps[:2], *third, *steps[3:])
    begin_ask(server, "work on it")


def check_resumed(server: Server, provider: Provider, results: int) -> list[dict[str, Any]]:
    """After a restart: the prompt and those results are there; one more prompt passes."""
    provider.reset()
    texts = latest(server)
    assert texts[0] == "work on it"
    for n in range(results):
        assert any(f"RESULT {n}" in t and t.startswith("result:") for t in texts)
    assert ask(server, "go on")["text"] == "ok"
    sent = provider.last.messages
    assert len(provider.chats) == 1, "nothing is run again by itself"
    assert sent[-1]["content"] == "go on"
    return [m for m in sent if m["role"] == "tool"]


def test_b05_killed_while_a_tool_runs(start: StartServer, provider: Provider) -> None:
    server = start()
    outside(server)
    asked = threading.Event()

    def never(_: Any) -> dict[str, Any]:
        asked.set()
        time.sleep(3)
        return {}

    server.on_request("tiro/permission/request", never)
    tool_turn(
        server, provider, third=[replies.tools(("c2", "read_file", {"path": "../secret.txt"}))]
    )
    assert asked.wait(10)
    server.kill()
    told = check_resumed(start(), provider, results=2)
    assert [m["tool_call_id"] for m in told] == ["c0", "c1", "c2"]
    assert "interrupt" in told[-1]["content"].lower()
    assert "unknown" in told[-1]["content"].lower()


def test_b05_killed_between_a_result_and_the_next_request(
    start: StartServer, provider: Provider
) -> None:
    server = start()
    third = replies.tools(("c2", "read_file", {"path": "f2.txt"}))
    tool_turn(server, provider, third=[third, Reply([Hold()])])
    provider.wait_for(4)
    server.kill()
    told = check_resumed(start(), provider, results=3)
    assert ["RESULT" in m["content"] for m in told] == [True] * 3


def test_b05_killed_while_text_streams(start: StartServer, provider: Provider) -> None:
    server = start()
    hold = Hold()
    tool_turn(server, provider, third=[replies.stream(replies.text_chunk("half"), hold)])
    hold.wait()
    server.wait_event("text", delta="half")
    server.kill()
    told = check_resumed(start(), provider, results=2)
    assert len(told) == 2


def test_a_finished_message_is_stored_before_the_next_step(
    start: StartServer, provider: Provider
) -> None:
    server = start()
    hold = Hold()
    tool_turn(server, provider, third=[Reply([hold])])
    provider.wait_for(3)
    written = "".join(path.read_text("utf-8") for path in server.home.sessions.iterdir())
    assert "RESULT 1" in written
    server.kill()
    assert any("RESULT 1" in text for text in latest(start()))


# Damage


def test_a_torn_last_line_of_a_journal_is_cut_off(start: StartServer, home: Home) -> None:
    server = start()
    for n in range(5):
        add(server, "user", f"m{n}")
    server.kill()
    (journal,) = home.sessions.glob("*.journal")
    raw = journal.read_bytes()
    assert b"m4" in raw
    journal.write_bytes(raw + b'{"n": 99, "op": "add", "mess')
    server = start()
    assert latest(server) == [f"m{n}" for n in range(5)]
    add(server, "user", "m5")
    server.kill()
    assert latest(start()) == [f"m{n}" for n in range(6)]


def test_a_bad_line_in_a_journal_is_kept_aside_and_told(start: StartServer, home: Home) -> None:
    server = start()
    for n in range(5):
        add(server, "user", f"m{n}")
    server.kill()
    (journal,) = home.sessions.glob("*.journal")
    lines = journal.read_bytes().splitlines(keepends=True)
    bad = next(i for i, line in enumerate(lines) if b"m2" in line)
    lines[bad] = b"\x00" * 40 + b"\n"
    damaged = b"".join(lines)
    journal.write_bytes(damaged)
    server = start()
    texts = latest(server)
    assert [t for t in ("m0", "m1", "m3", "m4") if t in texts] == ["m0", "m1", "m3", "m4"]
    (aside,) = home.sessions.glob("*.journal.bad-*")
    assert aside.read_bytes() == damaged
    ask(server, "go on")


def test_an_outside_edit_is_respected(start: StartServer, home: Home) -> None:
    server = start()
    add(server, "user", "one")
    path = Path(server.request("tiro/session/save")["path"])
    content = stored(path)
    content["messages"][0]["content"] = "uno"
    content["title"] = "By hand"
    path.write_text(json.dumps(content))
    add(server, "user", "two")
    server.request("tiro/session/save")
    server.wait_notification("tiro/session/changed", lambda p: p["reason"] == "changedOnDisk")
    assert words(server) == ["uno", "two"]
    assert view(server)["title"] == "By hand"
    assert [m["content"] for m in stored(path)["messages"]] == ["uno", "two"]


def test_a_file_damaged_meanwhile_is_set_aside(start: StartServer, home: Home) -> None:
    server = start()
    add(server, "user", "one")
    path = Path(server.request("tiro/session/save")["path"])
    path.write_bytes(b"no session any more")
    add(server, "user", "two")
    server.request("tiro/session/save")
    assert [m["content"] for m in stored(path)["messages"]] == ["one", "two"]
    (aside,) = home.sessions.glob("*.bad-*")
    assert aside.read_bytes() == b"no session any more"
    assert aside.stat().st_mode & 0o777 == 0o600


def test_a_file_removed_meanwhile_is_written_again(start: StartServer, home: Home) -> None:
    server = start()
    add(server, "user", "one")
    path = Path(server.request("tiro/session/save")["path"])
    path.unlink()
    assert add(server, "user", "two")["stored"] is True
    server.request("tiro/session/save")
    assert [m["content"] for m in stored(path)["messages"]] == ["one", "two"]


# A full disk, a disk that cannot be written


def fill_up(directory: Path) -> Path:
    """Fill the file system of that directory to the last byte."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return filler


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB of this test's own."""
    at = tmp_path / "disk"
    at.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(at)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount here; the test with a file size limit covers this")
    if done.returncode:
        pytest.skip("mounting is not allowed; the test with a file size limit covers this")
    yield at
    subprocess.run(["umount", "-l", str(at)], check=True)


def test_b10_a_full_disk_is_told_once_and_saving_resumes(
    start: StartServer, home: Home, small_disk: Path, provider: Provider
) -> None:
    home.sessions.symlink_to(small_disk)
    server = start()
    assert add(server, "user", "before")["stored"] is True
    server.request("tiro/session/save")
    filler = fill_up(small_disk)
    for n in range(4):
        assert add(server, "user", f"full {n} " + "x" * 20_000)["stored"] is False
    assert ask(server, "a turn on a full disk")["text"] == "ok"
    error = server.error("tiro/session/save")
    assert (error.kind, error.data["errno"]) == ("storeFailed", "ENOSPC")
    told = [p["reason"] for p in server.named("tiro/session/changed")]
    assert told.count("saveFailed") == 1
    assert len(words(server)) == 7
    filler.unlink()
    assert add(server, "user", "after")["stored"] is True
    server.wait_notification("tiro/session/changed", lambda p: p["reason"] == "saveResumed")
    expected = words(server)
    server.kill()
    assert latest(start()) == expected
    assert leftovers(home) == []


def test_b10_a_full_disk_at_the_first_message(
    start: StartServer, home: Home, small_disk: Path
) -> None:
    home.sessions.symlink_to(small_disk)
    filler = fill_up(small_disk)
    server = start()
    assert add(server, "user", "one")["stored"] is False
    assert add(server, "user", "two")["stored"] is False
    assert [p.name for p in small_disk.iterdir() if p.stat().st_size and p != filler] == []
    filler.unlink()
    assert add(server, "user", "three")["stored"] is True
    server.kill()
    assert latest(start()) == ["one", "two", "three"]


def test_b10_a_file_size_limit_is_no_crash(start: StartServer, home: Home) -> None:
    server = start()
    assert add(server, "user", "before")["stored"] is True
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    answers = [add(server, "user", f"m{n} " + "x" * 30_000)["stored"] for n in range(6)]
    assert answers[0] is True
    assert answers[-1] is False
    expected = words(server)
    told = [p["reason"] for p in server.named("tiro/session/changed")]
    assert told.count("saveFailed") == 1
    resource.prlimit(
        server.process.pid,
        resource.RLIMIT_FSIZE,
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY),
    )
    assert add(server, "user", "after")["stored"] is True
    server.kill()
    assert latest(start()) == [*expected, "after"]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """An empty directory that nobody can write, not even root."""
    at = tmp_path / "read-only"
    at.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "none", str(at)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted and os.geteuid() == 0:
        pytest.skip("root writes everywhere, and mounting is not allowed")
    at.chmod(0o500) if not mounted else None
    yield at
    if mounted:
        subprocess.run(["umount", "-l", str(at)], check=True)
    else:
        at.chmod(0o700)


def check_works_without_saving(server: Server, kind: str = "storeFailed") -> None:
    """Initialize and prompt work, the user is told once, save says why it cannot."""
    assert ask(server, "one")["text"] == "ok"
    assert ask(server, "two")["text"] == "ok"
    assert add(server, "user", "three")["stored"] is False
    error = server.error("tiro/session/save")
    assert error.kind == kind
    assert error.data["path"]
    assert error.data["errno"]
    told = [p["reason"] for p in server.named("tiro/session/changed")]
    assert told.count("saveFailed") == 1
    assert server.request("tiro/session/list")["sessions"] == []
    assert server.request("tiro/session/clear")["savedAs"] is None
    assert server.shutdown() == 0


def settings_for(provider: Provider) -> dict[str, Any]:
    """What config.yaml would say, where there can be none."""
    fake = {"api": "openai", "base_url": provider.base_url, "api_key_env": "TIRO_E2E_KEY"}
    return {"model": "fake/fake-model", "providers": {"fake": fake}}


def test_b15_a_read_only_config_directory(
    start: StartServer, read_only: Path, provider: Provider
) -> None:
    server = start(env={"TIRO_CONFIG_DIR": str(read_only)}, settings=settings_for(provider))
    check_works_without_saving(server)


def test_b15_a_config_directory_below_a_read_only_one(
    start: StartServer, read_only: Path, provider: Provider
) -> None:
    server = start(
        env={"TIRO_CONFIG_DIR": str(read_only / "a" / "b")}, settings=settings_for(provider)
    )
    check_works_without_saving(server)


def test_b15_a_config_directory_that_is_a_file(
    start: StartServer, home: Home, provider: Provider
) -> None:
    file = home.write("file", "x")
    server = start(env={"TIRO_CONFIG_DIR": str(file)}, settings=settings_for(provider))
    check_works_without_saving(server)


def test_b15_a_read_only_cache_and_state(start: StartServer, read_only: Path) -> None:
    server = start(env={"XDG_CACHE_HOME": str(read_only), "XDG_STATE_HOME": str(read_only)})
    ask(server)
    server.request("tiro/session/save")
    assert len(server.request("tiro/session/list")["sessions"]) == 1


def test_b15_no_home_and_an_odd_path(start: StartServer, home: Home, provider: Provider) -> None:
    odd = home.root / "with space é漢 #%41"
    server = start(env={"TIRO_CONFIG_DIR": str(odd)}, settings=settings_for(provider))
    ask(server)
    path = Path(server.request("tiro/session/save")["path"])
    assert path.parent == odd / "sessions"
    assert path.exists()
    server = start(env={"HOME": ""}, settings=settings_for(provider))
    ask(server)


# Two processes


def test_b11_one_session_used_in_turn(start: StartServer, provider: Provider) -> None:
    first, second = start(), start()
    ask(first, "one")
    id_ = first.request("tiro/session/save")["id"]
    assert second.request("tiro/session/load", {"id": id_})["total"] == 2
    ask(second, "two")
    second.request("tiro/session/save")
    ask(first, "three")
    first.request("tiro/session/save")
    asked = [m["content"] for m in provider.last.messages if m["role"] == "user"]
    assert asked == ["one", "two", "three"]
    assert add(second, "user", "four")["seq"] == 7
    expected = ["one", "ok", "two", "ok", "three", "ok", "four"]
    assert words(second) == expected
    first.kill()
    second.kill()
    assert latest(start()) == expected


def test_b11_messages_of_both_are_kept_without_any_save(start: StartServer, home: Home) -> None:
    first, second = start(), start()
    add(first, "user", "from the first 0")
    second.request("tiro/session/load", {"id": view(first)["id"]})
    for n in range(1, sized(fast=5, normal=20, long=500)):
        add(second, "user", f"from the second {n}")
        add(first, "user", f"from the first {n}")
    total = words(first)
    assert len(total) == len(set(total)) == 2 * sized(fast=5, normal=20, long=500) - 1
    first.kill()
    second.kill()
    assert everything(home) == set(total)


def test_b11_both_at_the_same_time_lose_nothing(start: StartServer, home: Home) -> None:
    first, second = start(), start()
    add(first, "user", "begin")
    second.request("tiro/session/load", {"id": view(first)["id"]})
    said: set[str] = {"begin"}
    refused: set[str | None] = set()

    def talk(server: Server, name: str) -> None:
        for n in range(sized(fast=5, normal=15, long=500)):
            try:
                add(server, "user", f"{name} {n}")
                said.add(f"{name} {n}")
                server.request("tiro/session/save")
            except RpcError as error:
                refused.add(error.kind)

    threads = [threading.Thread(target=talk, args=a) for a in ((first, "a"), (second, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    first.kill()
    second.kill()
    assert refused <= {"sessionInUse"}
    assert everything(home) >= said


def test_b11_a_session_that_answers_elsewhere_is_in_use(
    start: StartServer, provider: Provider
) -> None:
    first, second = start(), start()
    add(first, "user", "one")
    id_ = view(first)["id"]
    second.request("tiro/session/load", {"id": id_})
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    turn = begin_ask(first, "two")
    first.wait_event("text", delta="half")
    error = second.error("tiro/turn/start", {"prompt": "three"})
    assert (error.code, error.kind) == (-32011, "sessionInUse")
    assert error.data["pid"] == first.process.pid
    assert error.data["host"]
    hold.release()
    assert turn.result()["text"] == "half"
    assert ask(second, "three")["text"] == "ok"
    assert words(second) == ["one", "two", "half", "three", "ok"]


def test_b11_a_dead_holder_holds_nothing(start: StartServer, provider: Provider) -> None:
    first, second = start(), start()
    add(first, "user", "one")
    second.request("tiro/session/load", {"id": view(first)["id"]})
    provider.script(replies.stream(replies.text_chunk("half"), Hold()))
    begin_ask(first, "two")
    first.wait_event("text", delta="half")
    first.kill()
    assert ask(second, "three")["text"] == "ok"
    assert words(second)[:2] == ["one", "two"]
    assert words(second)[-2:] == ["three", "ok"]


def test_b13_an_id_taken_meanwhile_becomes_the_next_one(start: StartServer) -> None:
    first, second = start(), start()
    for _ in range(20):
        one = first.request("tiro/session/getId")["id"]
        two = second.request("tiro/session/getId")["id"]
        if one == two:
            break
        first.request("tiro/session/new")
        second.request("tiro/session/new")
    assert one == two, "neither has claimed a file"
    add(first, "user", "first")
    add(second, "user", "second")
    changed = second.wait_notification(
        "tiro/session/changed", lambda params: params["reason"] == "renamed"
    )
    assert changed["id"] == view(second)["id"] == f"{two}-01"
    assert view(first)["id"] == one
    third = start()
    third.request("tiro/session/load", {"id": one})
    assert words(third) == ["first"]
    third.request("tiro/session/load", {"id": f"{one}-01"})
    assert words(third) == ["second"]


def test_many_requests_at_once_keep_the_file_whole(start: StartServer, home: Home) -> None:
    server = start()
    pending = []
    for n in range(50):
        pending.append(server.begin("tiro/session/addMessage", {"role": "user", "content": f"{n}"}))
        pending.append(server.begin("tiro/session/save"))
    for one in pending:
        one.result()
    assert words(server) == [str(n) for n in range(50)]
    server.kill()
    assert latest(start()) == [str(n) for n in range(50)]
    assert len(home.session_files()) == 1


def test_permissions_hold_whatever_the_umask(start: StartServer, home: Home) -> None:
    server = start(umask=0)
    ask(server)
    server.request("tiro/session/save")
    server.request("tiro/session/clear")
    assert home.sessions.stat().st_mode & 0o777 == 0o700
    for path in home.sessions.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path


def test_the_window_after_a_restart_is_what_the_model_gets(
    start: StartServer, provider: Provider
) -> None:
    server = start()
    server.home.write("a.txt", "RESULT")
    provider.script(replies.tools(("c1", "read_file", {"path": "a.txt"}), before="look"))
    ask(server, "one")
    before = window(server)
    assert server.shutdown() == 0
    again = start()
    again.request("tiro/session/load", {"latest": True})
    assert window(again) == before
    sent = provider.last.messages
    ask(again, "two")
    assert provider.last.messages[: len(sent)] == sent
