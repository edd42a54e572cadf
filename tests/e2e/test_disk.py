"""A full disk, a disk that cannot be written, and what the user is told (B10, B15)."""

import json
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import Server
from tests.e2e.command import Tiro
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.talk import (
    add,
    ask,
    latest,
    leftovers,
    until,
    words,
)
from tiro.exits import Exit


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
    told = server.named("tiro/session/changed")
    assert [p["reason"] for p in told].count("saveFailed") == 1
    assert all(set(p) >= {"reason", "id", "total", "contextSize"} for p in told)
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


def test_a_rename_on_a_full_disk_is_refused(
    start: StartServer, tiro: Tiro, home: Home, small_disk: Path
) -> None:
    """Who is told that it is done finds it done, whichever session it is."""
    home.write_config()
    home.sessions.symlink_to(small_disk)
    tiro("ask", "words")
    (file,) = home.session_files()
    filler = fill_up(small_disk)
    for id in ("latest", file.stem):
        refused = tiro("sessions", "rename", id, "title")
        assert (refused.returncode, refused.stdout) == (Exit.FAILED, "")
        assert "No space left" in refused.stderr
    server = start()
    server.request("tiro/session/load", {"latest": True})
    error = server.error("tiro/session/rename", {"id": file.stem, "title": "title"})
    assert (error.kind, error.data["errno"]) == ("storeFailed", "ENOSPC")
    assert server.request("tiro/session/get")["title"] == "words"
    filler.unlink()
    server.request("tiro/session/rename", {"id": file.stem, "title": "other"})
    server.kill()
    (row,) = json.loads(tiro("sessions", "list", "--json").stdout)["sessions"]
    assert row["title"] == "other"


@pytest.mark.parametrize("is_current", [True, False])
def test_what_could_not_be_stored_is_deleted_with_the_rest_or_not_at_all(
    start: StartServer, home: Home, small_disk: Path, is_current: bool
) -> None:
    """It comes back as it was, so all of it goes to the trash."""
    home.sessions.symlink_to(small_disk)
    server = start()
    add(server, "user", "before")
    id_ = server.request("tiro/session/getId")["id"]
    filler = fill_up(small_disk)
    assert add(server, "user", "kept " + "x" * 20_000)["stored"] is False
    if not is_current:
        server.request("tiro/session/clear")
    error = server.error("tiro/session/delete", {"id": id_})
    assert (error.kind, error.data["errno"]) == ("storeFailed", "ENOSPC")
    server.request("tiro/session/load", {"id": id_})
    assert len(words(server)) == 2
    if not is_current:
        server.request("tiro/session/clear")
    filler.unlink()
    assert server.request("tiro/session/delete", {"id": id_})["deleted"]
    server.request("tiro/trash/restore", {"id": id_})
    server.request("tiro/session/load", {"id": id_})
    assert [text.split()[0] for text in words(server)] == ["before", "kept"]


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_the_doctor_sees_a_full_disk(tiro: Tiro, home: Home, small_disk: Path, kind: str) -> None:
    file = small_disk / "sessions.db"
    home.write_config(**({"store": {"kind": kind, "path": str(file)}} if kind == "sqlite" else {}))
    home.sessions.symlink_to(small_disk)
    tiro("ask", "words")
    fill_up(small_disk)
    assert "The session cannot be saved: " in (said := tiro("ask", "more words").stderr)
    assert kind == "sqlite" or "No space left" in said
    last = tiro("doctor").stdout.splitlines()[-1]
    place = file if kind == "sqlite" else home.sessions
    assert last == f"Next: make room on the disk of {place}: 0 B are free"


def test_the_latest_is_renamed_though_nothing_is_saved_by_itself(tiro: Tiro, home: Home) -> None:
    home.write_config()
    tiro("ask", "words")
    home.write_config(session={"autosave": False})
    assert tiro("sessions", "rename", "latest", "title").returncode == Exit.DONE
    assert "title" in tiro("sessions", "list").stdout


@pytest.mark.parametrize("method", ["clear", "new", "import"])
def test_what_a_full_disk_kept_out_is_stored_though_another_session_goes_on(
    start: StartServer, home: Home, small_disk: Path, method: str
) -> None:
    """P3, U9.5: whoever loads it gets it whole meanwhile, and nobody has to do anything."""
    home.sessions.symlink_to(small_disk)
    server = start()
    assert add(server, "user", "before")["stored"] is True
    id_ = server.request("tiro/session/getId")["id"]
    filler = fill_up(small_disk)
    assert add(server, "user", "kept " + "x" * 20_000)["stored"] is False
    given = {"text": '[{"role": "user", "content": "i"}]'} if method == "import" else {}
    server.request(f"tiro/session/{method}", given)
    server.request("tiro/session/load", {"id": id_})
    assert [text.split()[0] for text in words(server)] == ["before", "kept"]
    server.request("tiro/session/clear")
    filler.unlink()
    file = home.sessions / f"{id_}.json"
    until(lambda: "kept" in file.read_text())
    server.kill()
    server = start()
    server.request("tiro/session/load", {"id": id_})
    assert [text.split()[0] for text in words(server)] == ["before", "kept"]


def test_two_sessions_that_could_not_be_stored_have_two_ids(start: StartServer, home: Home) -> None:
    """U9.1: also in one second, and once both are stored."""
    home.sessions.parent.mkdir(parents=True, exist_ok=True)
    home.sessions.write_text("in the way")
    server = start()
    assert add(server, "user", "one")["stored"] is False
    server.request("tiro/session/clear")
    assert add(server, "user", "two")["stored"] is False
    home.sessions.unlink()
    assert add(server, "user", "three")["stored"] is True
    until(lambda: len(home.session_files()) == 2)
    found = {" ".join(latest_of(server, path)) for path in home.session_files()}
    assert found == {"one", "two three"}


def latest_of(server: Server, path: Path) -> list[str]:
    server.request("tiro/session/load", {"path": str(path)})
    return words(server)


def test_b10_a_file_size_limit_is_no_crash(start: StartServer, home: Home) -> None:
    server = start()
    assert add(server, "user", "before")["stored"] is True
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    # A snapshot in an idle moment may take as much again as the journal after it.
    answers = [add(server, "user", f"m{n} " + "x" * 30_000)["stored"] for n in range(9)]
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
