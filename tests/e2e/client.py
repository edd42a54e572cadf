"""A raw driver for `tiro serve`: a real child process, raw frames, and a check of every byte.

Nothing of the product is imported here. The driver reads stdout itself and writes down whatever is
no frame (`violations`), answers the server's requests by configurable handlers, keeps every
notification in order, and can kill, pause and starve the server. Use `Server` as a context manager
or end it with `shutdown()`, `kill()` or `close()`.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from tests.e2e.contract import strict_json
from tests.e2e.home import Home
from tests.e2e.warm import Forked, WarmProcess
from tests.sizes import PATIENCE

MAX_DISPLAY_BYTES = 1 << 20
READ_BYTES = 1 << 16
TIRO = (sys.executable, "-m", "tiro")
UNSET: Any = object()

Handler = Callable[[Any], Any]


_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""U+0000 in JSON; behind an escaped backslash it is text about one."""


class RpcError(Exception):
    """The server answered a request with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')} {error.get('data', '')}")
        self.error = error
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: dict[str, Any] = error.get("data") or {}
        self.kind: str | None = self.data.get("kind")


class Pending:
    """A request that was sent and waits for its answer."""

    def __init__(self, server: "Server", id_: Any, method: str) -> None:
        self.server, self.id, self.method = server, id_, method

    @property
    def done(self) -> bool:
        """True once the answer has arrived."""
        return bool(self.server.answers_to(self.id))

    def message(self, timeout: float = PATIENCE) -> dict[str, Any]:
        """Wait for the whole answer, an error included."""
        what = f"an answer to {self.method} (id {self.id!r})"
        self.server.wait_until(lambda: self.done, what, timeout)
        return self.server.answers_to(self.id)[0]

    @property
    def mark(self) -> int:
        """How many notifications had come when the answer came."""
        self.message()
        return self.server.marks[json.dumps(self.id)]

    def result(self, timeout: float = PATIENCE) -> Any:
        """Wait for the result; an error answer raises `RpcError`."""
        answer = self.message(timeout)
        if "error" in answer:
            raise RpcError(answer["error"])
        return answer["result"]

    def error(self, timeout: float = PATIENCE) -> RpcError:
        """Wait for an error answer and give it."""
        answer = self.message(timeout)
        assert "error" in answer, f"{self.method} answered {answer!r}, not an error"
        return RpcError(answer["error"])


class Server:
    """One `tiro serve` process, driven over its pipes."""

    def __init__(
        self,
        home: Home,
        *,
        env: Mapping[str, str] | None = None,
        command: Iterable[str] | None = None,
        warm: WarmProcess | None = None,
        umask: int = -1,
    ) -> None:
        self.home = home
        self.command = list(command or [*TIRO, "serve"])
        self.env = {**home.environment(), **(env or {})}
        self.violations: list[str] = []
        self.notifications: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.orphans: list[dict[str, Any]] = []
        self.marks: dict[str, int] = {}
        self.frames = 0
        self.bytes = 0
        self.largest_notification = 0
        self.initialize_result: dict[str, Any] = {}
        self._handlers: dict[str, Handler] = {}
        self.reset_handlers()
        self._answers: dict[str, list[dict[str, Any]]] = {}
        self._changed = threading.Condition()
        self._reading = threading.Event()
        self._reading.set()
        self._drained = False
        self._told = 0
        self._turns_before = 0
        self._writing = threading.Lock()
        self._next_id = 0
        self.stderr_path = home.new_log()
        self._start(warm, umask)

    def _start(self, warm: WarmProcess | None, umask: int) -> None:
        self.process: subprocess.Popen[bytes] | Forked
        with self.stderr_path.open("wb") as stderr:
            if warm is not None:
                words = self.command[len(TIRO) :]
                self.process = warm.fork(
                    self.env, self.home.workspace, stderr.fileno(), umask, words
                )
            else:
                self.process = subprocess.Popen(
                    self.command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    env=self.env,
                    cwd=self.home.workspace,
                    bufsize=0,
                    umask=umask,
                )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self._reader = threading.Thread(target=self._read, name="driver", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What a test does

    def initialize(self, **given: Any) -> dict[str, Any]:
        """Say hello as an editor does: `initialize`, then `initialized`."""
        self.initialize_result = self.request("initialize", self.hello(**given))
        self.notify("initialized", {})
        return self.initialize_result

    def hello(
        self,
        *,
        settings: dict[str, Any] | None = None,
        features: dict[str, Any] | None = None,
        trusted: bool = True,
        roots: Iterable[Path] | None = None,
        capabilities: dict[str, Any] | None = None,
        process_id: int | None = None,
    ) -> dict[str, Any]:
        """The params of `initialize`, with what this test wants otherwise."""
        folders = [self.home.workspace] if roots is None else list(roots)
        return {
            "processId": os.getpid() if process_id is None else process_id,
            "rootUri": folders[0].as_uri() if folders else None,
            "workspaceFolders": [{"uri": f.as_uri(), "name": f.name} for f in folders],
            "capabilities": capabilities or {"window": {"workDoneProgress": True}},
            "initializationOptions": {
                "settings": settings or {},
                "features": features or {"permissionRequest": True, "turnEvents": True},
                "workspaceTrusted": trusted,
            },
        }

    def request(self, method: str, params: Any = UNSET, timeout: float = PATIENCE) -> Any:
        """Send a request and wait for its result; an error raises `RpcError`."""
        return self.begin(method, params).result(timeout)

    def error(self, method: str, params: Any = UNSET, timeout: float = PATIENCE) -> RpcError:
        """Send a request that must fail and give the error."""
        return self.begin(method, params).error(timeout)

    def begin(self, method: str, params: Any = UNSET, id_: Any = UNSET) -> Pending:
        """Send a request without waiting."""
        if id_ is UNSET:
            self._next_id += 1
            id_ = self._next_id
        body = {"jsonrpc": "2.0", "id": id_, "method": method}
        if method == "tiro/turn/start":
            self._turns_before = len(self.events())
        self.send(body if params is UNSET else {**body, "params": params})
        return Pending(self, id_, method)

    def notify(self, method: str, params: Any = UNSET) -> None:
        """Send a notification."""
        body = {"jsonrpc": "2.0", "method": method}
        self.send(body if params is UNSET else {**body, "params": params})

    def send(self, message: Any) -> None:
        """Send one value as a frame."""
        self.send_body(json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass"))

    def send_body(self, body: bytes) -> None:
        """Send these bytes as the body of a frame."""
        self.send_raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def send_raw(self, raw: bytes) -> None:
        """Send bytes as they are."""
        with self._writing:
            view = memoryview(raw)
            while view:
                view = view[os.write(self._stdin.fileno(), view) :]

    def on_request(self, method: str, handler: Handler) -> None:
        """Set what answers a request of the server: a function from params to the result."""
        self._handlers[method] = handler

    def reset_handlers(self) -> None:
        """Answer only what every LSP client answers."""
        quiet = ("client/registerCapability", "window/workDoneProgress/create")
        self._handlers = {method: lambda _: None for method in quiet}

    def forget(self) -> None:
        """Forget what was heard so far, for the next test on a shared server."""
        with self._changed:
            self.notifications.clear()
            self._turns_before = 0
            self.requests.clear()
            self.orphans.clear()

    def pause_reading(self) -> None:
        """Stop taking bytes from stdout, as an editor that hangs."""
        self._reading.clear()

    def resume_reading(self) -> None:
        """Take bytes again."""
        self._reading.set()

    # What a test sees

    def answers_to(self, id_: Any) -> list[dict[str, Any]]:
        """Every answer that this id got so far."""
        return self._answers.get(json.dumps(id_), [])

    @property
    def answered(self) -> int:
        """How many requests have got their answer."""
        return len(self._answers)

    def named(self, method: str) -> list[dict[str, Any]]:
        """The params of every notification of that method so far, in order."""
        with self._changed:
            return [n["params"] for n in self.notifications if n["method"] == method]

    def events(self, turn_id: str | None = None) -> list[dict[str, Any]]:
        """The turn events so far, of one turn or of all."""
        found = self.named("tiro/turn/event")
        return [e for e in found if turn_id is None or e["turnId"] == turn_id]

    def wait_event(
        self, type_: str, timeout: float = PATIENCE, since: int | None = None, **given: Any
    ) -> Any:
        """Wait for a turn event of that type with those fields.

        Without `since` it is one that has come after the newest turn was asked for.
        """
        first = self._turns_before if since is None else since

        def found() -> list[dict[str, Any]]:
            fields = {"type": type_, **given}
            events = self.events()[first:]
            return [e for e in events if all(e.get(k) == v for k, v in fields.items())]

        self.wait_until(lambda: bool(found()), f"the event {type_} {given}", timeout)
        return found()[0]

    def wait_notification(
        self, method: str, match: Callable[[Any], bool] = lambda _: True, timeout: float = PATIENCE
    ) -> Any:
        """Wait for a notification of that method whose params match, and give the params."""

        def found() -> list[Any]:
            return [params for params in self.named(method) if match(params)]

        self.wait_until(lambda: bool(found()), f"the notification {method}", timeout)
        return found()[0]

    def wait_until(
        self, condition: Callable[[], bool], what: str, timeout: float = PATIENCE
    ) -> None:
        """Wait until a condition over what arrived holds."""
        with self._changed:
            if self._changed.wait_for(lambda: condition() or self._ended(), timeout):
                assert condition(), f"{what} did not come, the server has ended\n{self.report()}"
                return
        raise AssertionError(f"{what} did not come in {timeout} s\n{self.report()}")

    def report(self) -> str:
        """What to print when something went wrong."""
        log = self.stderr_path.read_text("utf-8", "replace")[-3000:]
        newest = self.notifications[-3:]
        return (
            f"exit code: {self.process.poll()}\nviolations: {self.violations[:5]}\n"
            f"without id: {self.orphans[-3:]}\nnewest notifications: {newest}\nstderr: {log}"
        )

    def check(self) -> None:
        """Everything that holds for every server at every time."""
        assert not self.violations, self.report()
        news, self._told = self.stderr_text()[self._told :], len(self.stderr_text())
        twice = {id_: got for id_, got in self._answers.items() if len(got) > 1}
        assert not twice, f"answered twice: {twice}"
        assert "Traceback" not in news, news[-3000:]

    def stderr_text(self) -> str:
        """All that the server wrote to stderr."""
        return self.stderr_path.read_text("utf-8", "replace")

    # How it ends

    def shutdown(self, timeout: float = PATIENCE) -> int:
        """`shutdown`, `exit`, and the exit code."""
        self.request("shutdown", timeout=timeout)
        self.notify("exit")
        return self.wait_exit(timeout)

    def close_stdin(self) -> None:
        """Close the server's stdin, as an editor that dies."""
        with self._writing:
            self._stdin.close()

    def wait_exit(self, timeout: float = PATIENCE) -> int:
        """Wait for the process to end and give its exit code.

        The document gives it two seconds; a busy machine may take longer, a hang is still seen.
        """
        code = self.process.wait(timeout)
        self._reader.join(timeout)
        return code

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self.process.send_signal(signal.SIGKILL)
        self.wait_exit()

    def close(self) -> None:
        """End the process, whatever state it is in, and free the pipes."""
        self._reading.set()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        for pipe in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                pipe.close()

    # The reader's thread

    def _ended(self) -> bool:
        return self._drained

    def _read(self) -> None:
        buffer = bytearray()
        while True:
            self._reading.wait()
            piece = os.read(self._stdout.fileno(), READ_BYTES)
            if not piece:
                break
            self.bytes += len(piece)
            buffer += piece
            while self._take_frame(buffer):
                pass
        with self._changed:
            if buffer and self.process.wait() >= 0:
                self.violations.append(f"stdout ended with {bytes(buffer[:200])!r}")
            self._drained = True
            self._changed.notify_all()

    def _take_frame(self, buffer: bytearray) -> bool:
        head, blank, rest = buffer.partition(b"\r\n\r\n")
        if not blank:
            return False
        name, _, value = head.partition(b": ")
        if name != b"Content-Length" or not value.isdigit():
            self._violate(f"stdout holds what is no frame: {bytes(buffer[:200])!r}")
            buffer.clear()
            return False
        if len(rest) < int(value):
            return False
        size = len(head) + 4 + int(value)
        body = bytes(rest[: int(value)])
        del buffer[:size]
        self._take(body)
        return True

    def _take(self, body: bytes) -> None:
        self.frames += 1
        try:
            message = strict_json(body)
        except ValueError as error:
            self._violate(f"{error} in {body[:200]!r}")
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._violate(f"no JSON-RPC message: {body[:200]!r}")
            return
        if _NUL.search(body):
            self._violate(f"a NUL on the wire: {body[:200]!r}")
        with self._changed:
            self._sort(message, len(body))
            self._changed.notify_all()

    def _sort(self, message: dict[str, Any], size: int) -> None:
        if "method" in message and size > MAX_DISPLAY_BYTES:
            self.violations.append(f"{message['method']} has {size} bytes")
        if "method" not in message:
            self._sort_answer(message)
        elif "id" in message:
            self.requests.append(message)
            threading.Thread(target=self._reply, args=(message,), daemon=True).start()
        else:
            self.largest_notification = max(self.largest_notification, size)
            self.notifications.append({**message, "at": time.monotonic(), "size": size})

    def _sort_answer(self, message: dict[str, Any]) -> None:
        if ("result" in message) == ("error" in message) or "id" not in message:
            self.violations.append(f"an answer holds id and one of result, error: {message!r}")
        if message.get("id") is None:
            self.orphans.append(message)
        else:
            id_ = json.dumps(message["id"])
            self.marks.setdefault(id_, len(self.notifications))
            self._answers.setdefault(id_, []).append(message)

    def _violate(self, what: str) -> None:
        with self._changed:
            self.violations.append(what)
            self._changed.notify_all()

    def _reply(self, message: dict[str, Any]) -> None:
        handler = self._handlers.get(message["method"])
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if handler is None:
            answer["error"] = {"code": -32601, "message": f"no {message['method']} here"}
        else:
            answer["result"] = handler(message.get("params"))
        with contextlib.suppress(OSError, ValueError):
            self.send(answer)
