"""A real Redis server for tests: a folder and a socket of its own, ended by its process."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self


class RedisServer:
    """Keeps what it has answered: each write is on the disk first."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="r-"))  # a socket's path has to be short
        self._process: subprocess.Popen[str] | None = None
        self.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"unix://{self._folder / 's'}"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        program = shutil.which("redis-server")
        assert program, "install redis-server: apt-get install redis-server"
        options = f"--port 0 --unixsocket {self._folder / 's'} --dir {self._folder} --save ''"
        self._process = subprocess.Popen(
            [program, *options.replace("''", "").split(" "), *DURABLE.split()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout
        told = []
        for line in self._process.stdout:
            told.append(line)
            if "eady to accept connections" in line:
                return
        raise AssertionError(f"redis-server ended: {''.join(told)}")

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout:
                self._process.stdout.close()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


DURABLE = "--appendonly yes --appendfsync always --daemonize no --loglevel notice"
