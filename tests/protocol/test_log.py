"""The log: where it goes, who may read it, its size, what is never in it (B52, B53)."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tiro.config.directories import state_directory
from tiro.config.settings import LogSettings
from tiro.protocol.log import OURS, ProcessLog, path_of

SECRET = "sk-c0ffee-5ec4e7"
logger = logging.getLogger("tiro.test_log")


@pytest.fixture
def log() -> Iterator[ProcessLog]:
    levels = {name: logging.getLogger(name).level for name in OURS}
    made = ProcessLog(max_file_bytes=4000)
    yield made
    made.close()
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "tiro.log"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def to_file(path: Path, level: str = "info") -> LogSettings:
    return LogSettings(level=level, file=str(path))  # type: ignore[arg-type]  # one of the literals


def test_warnings_go_to_stderr_by_default(
    log: ProcessLog, capsys: pytest.CaptureFixture[str]
) -> None:
    assert log.follow(LogSettings()) == []
    logger.info("quiet")
    logger.warning("loud")
    told = capsys.readouterr()
    assert "quiet" not in told.err
    assert told.err.endswith(f" WARNING tiro.test_log[{os.getpid()}]: loud\n")
    assert told.out == ""
    assert not state_directory().exists()


def test_relative_file_lies_in_the_directory_for_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert path_of("tiro.log") == state_directory() / "tiro.log"
    assert path_of("~/tiro.log") == Path("/home/me/tiro.log")
    assert path_of("/var/log/tiro.log") == Path("/var/log/tiro.log")


def test_file_is_for_its_owner_from_the_first_instant(log: ProcessLog, path: Path) -> None:
    before = os.umask(0)
    try:
        assert log.follow(to_file(path)) == []
        for _ in range(200):
            logger.info("x" * 30)
    finally:
        os.umask(before)
    assert (mode(path), mode(path.with_name("tiro.log.1"))) == (0o600, 0o600)
    assert mode(path.parent) == 0o700


def test_wide_file_is_narrowed(log: ProcessLog, path: Path) -> None:
    path.parent.mkdir()
    path.write_text("before\n")
    path.chmod(0o644)
    log.follow(to_file(path))
    logger.info("after")
    assert mode(path) == 0o600
    assert path.read_text().startswith("before\n")


def test_size_is_bounded_and_the_newest_is_kept(log: ProcessLog, path: Path) -> None:
    log.follow(to_file(path))
    for number in range(500):
        logger.info("line %d", number)
    files = sorted(path.parent.iterdir())
    assert [file.name for file in files] == ["tiro.log", "tiro.log.1"]
    assert all(0 < file.stat().st_size <= 4000 for file in files)
    numbers = [
        int(line.split()[-1]) for file in reversed(files) for line in file.read_text().splitlines()
    ]
    assert numbers == list(range(numbers[0], 500))


def test_file_that_another_process_moved_is_made_anew(log: ProcessLog, path: Path) -> None:
    log.follow(to_file(path))
    logger.info("one")
    path.rename(path.with_name("tiro.log.1"))
    logger.info("two")
    assert path.read_text().endswith("two\n")
    assert "two" not in path.with_name("tiro.log.1").read_text()


def test_secrets_are_taken_out_of_lines_and_tracebacks(log: ProcessLog, path: Path) -> None:
    log.follow(to_file(path))
    log.keep_out([SECRET])
    log.keep_out(["another-one"])
    logger.info("the key %s and another-one", SECRET)
    try:
        raise ValueError(f"Bad key {SECRET}")
    except ValueError:
        logger.exception("It broke")
    logger.info("token %s", "ghp_" + "a1B2" * 9)
    text = path.read_text()
    assert "the key [secret] and [secret]" in text
    assert "ValueError: Bad key [secret]" in text
    assert SECRET not in text
    assert "a1B2" not in text


def test_other_libraries_are_heard_from_warning_on(log: ProcessLog, path: Path) -> None:
    """pygls logs each message at INFO; httpx only its address."""
    log.follow(to_file(path, "debug"))
    for name in ("pygls.protocol", "httpcore.http11", "asyncio"):
        logging.getLogger(name).info("a whole message")
        logging.getLogger(name).warning("%s warns", name)
    logging.getLogger("httpx").info("HTTP Request")
    text = path.read_text()
    assert "a whole message" not in text
    assert text.count("warns") == 3
    assert "HTTP Request" in text


def test_changed_settings_are_followed(
    log: ProcessLog, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = path.with_name("other.log")
    log.follow(to_file(path))
    log.follow(to_file(path))
    logger.info("one")
    log.follow(to_file(other, "error"))
    logger.warning("two")
    logger.error("three")
    log.follow(LogSettings(level="info"))
    logger.info("four")
    assert path.read_text().count("\n") == 1
    assert other.read_text().count("\n") == 1
    assert capsys.readouterr().err.endswith(": four\n")


@pytest.mark.parametrize("kind", ["directory", "pipe", "below a file"])
def test_file_that_cannot_be_written_is_told_and_stderr_used(
    log: ProcessLog, path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path.parent.mkdir()
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_text("")
        path = path / "tiro.log"
    (problem,) = log.follow(to_file(path))
    assert problem.startswith(f"The log {str(path)!r} cannot be written: ")
    assert problem.endswith("; stderr is used")
    assert log.follow(to_file(path)) == [problem]
    logger.warning("here")
    assert capsys.readouterr().err.endswith(": here\n")


def test_error_of_the_disk_disturbs_nobody(
    log: ProcessLog, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback on stderr, and the log goes on when it can."""
    log.follow(to_file(path))
    path.unlink()
    path.mkdir()
    logger.info("lost")
    path.rmdir()
    logger.info("kept")
    assert path.read_text().endswith(": kept\n")
    assert capsys.readouterr().err == ""
