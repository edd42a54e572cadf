"""One use of the product while one call to the system fails, and all that is seen of it."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e import command, replies
from tests.e2e.client import TIRO, RpcError, Server
from tests.e2e.home import SERVER, Home
from tests.e2e.provider import Recorded
from tests.e2e.replies import Reply
from tests.e2e.talk import text_of, words
from tests.e2e.warm import Forked, WarmProcess
from tests.sizes import PATIENCE

HOOKED = ("-m", "tests.faults.hook")
"""What a forked process is told, to be a `tiro` whose calls can fail."""
SECONDS = PATIENCE
"""So long an answer is waited for; whoever takes longer hangs."""
PICTURE, OTHER_PICTURE = (
    {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": data * 9000},
    }
    for data in ("iVBORw0K", "iVBORw0L")
)


@dataclass
class Seen:
    """What became of one use."""

    told: dict[str, str] = field(default_factory=dict)
    """By step: what was answered, said or shown, without what differs from run to run."""
    kept: set[str] = field(default_factory=set)
    """The texts that were acknowledged as stored."""
    lost: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    """What must never be: an end, a hang, a traceback, a frame that is none."""


class Stage:
    """A home, a provider and the environment in which one call fails until `heal`."""

    def __init__(
        self,
        root: Path,
        home: Home,
        warm: WarmProcess,
        fault: Mapping[str, Any] | None = None,
    ) -> None:
        self.warm = warm
        self.root, self.fault = root, fault
        self.home = home
        self.seen = Seen()
        self.places = root / "places"
        self.healed = root / "healed"
        self.is_killed = fault is not None and fault["fault"] == "kill"
        self.is_refused = False
        """Whether a server has said in a sentence why it cannot start."""
        self.servers: list[Server] = []
        self.reached: list[list[Any]] = []

    def environment(self) -> dict[str, str]:
        """What makes the hook part of a process."""
        given = {"TIRO_PLACES": str(self.places)}
        if self.fault:
            given["TIRO_FAULT"] = json.dumps({**self.fault, "healed": str(self.healed)})
        return given

    def heal(self) -> None:
        """From now on nothing fails."""
        self.healed.touch()

    def serve(self, *words: str, **hello: Any) -> Server:
        """A server that is greeted by an editor."""
        given = [*TIRO, *HOOKED, "serve", *words]
        server = Server(self.home, env=self.environment(), command=given, warm=self.warm)
        self.servers.append(server)
        server.on_request("tiro/permission/request", lambda _: {"decision": "once"})
        server.on_request("workspace/applyEdit", lambda _: {"applied": False})
        self.tell("initialize", server, "initialize", server.hello(**hello))
        with contextlib.suppress(OSError):
            server.notify("initialized", {})
        return server

    def tell(self, step: str, server: Server, method: str, params: Any = None) -> Any:
        """Send a request; what is refused is told as the step's."""
        try:
            result = server.request(method, {} if params is None else params, SECONDS)
        except RpcError as error:
            self.told(step, error.message)
            return None
        except (AssertionError, OSError):
            self.ended(step, server)
            return None
        return result

    def add(self, server: Server, text: str, content: Any = None) -> None:
        """Add a user's message; it is kept where the answer says so."""
        given = {"role": "user", "content": content or text}
        result = self.tell(f"add {text}", server, "tiro/session/addMessage", given)
        if result is not None:
            if result["stored"]:
                self.seen.kept.add(text)
            else:
                self.told(f"add {text}", "not stored")

    def ask(self, server: Server, prompt: str, **more: Any) -> Any:
        """A turn; how it ended, and what its tools said."""
        first = len(server.events()) if server.process.poll() is None else 0
        done = self.tell(f"ask {prompt}", server, "tiro/turn/start", {"prompt": prompt, **more})
        if done is None:
            return None
        if done["stopReason"] != "end_turn":
            self.told(f"ask {prompt}", f"{done['stopReason']} {done.get('error')}")
        for event in server.events()[first:]:
            if event["type"] == "toolUse" and event["status"] in ("failed", "rejected"):
                self.told(f"ask {prompt}: {event['toolUse']['name']}", str(event.get("result")))
            if event["type"] == "notice":
                self.told(f"ask {prompt}: notice", str(event))
        if done.get("stored", True) is not False:
            self.seen.kept.add(prompt)
        return done

    def run(self, *words: str, given: str = "") -> None:
        """A command to its end; its exit code, what it prints and what it complains of."""
        env = {**self.home.environment(), **self.environment()}
        done = command.run(self.home, *HOOKED, *words, given=given, env=env, warm=self.warm)
        step = f"tiro {' '.join(words[:2])}".replace(str(self.root), "…")
        if "Traceback" in done.stderr:
            self.seen.faults.append(f"{step}: a traceback: {done.stderr[-600:]}")
        if done.returncode < 0 and not self.is_killed:
            self.seen.faults.append(f"{step}: ended by signal {-done.returncode}")
        self.told(step, f"[exit {done.returncode}] {done.stderr.strip()}")
        self.told(f"{step} printed", done.stdout)

    def type(self, lines: Sequence[str], *words: str, env: Mapping[str, str]) -> None:
        """A command in a terminal; each line is typed when nothing more comes."""
        ours, theirs = pty.openpty()
        given = {**self.home.environment(), **self.environment(), **env, "TERM": "xterm"}
        pid = self.warm.begin([*HOOKED, *words], given, self.home.workspace, (theirs,) * 3)
        process = Forked(pid)
        os.close(theirs)
        shown = quiet(ours, 5.0)
        for line in lines:
            with contextlib.suppress(OSError):
                os.write(ours, line.encode())
            shown += quiet(ours, 8.0)
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(10)
        if code is None:
            process.kill()
            self.seen.faults.append(f"tiro {words[0]}: it did not end")
        if code is not None and code < 0 and not self.is_killed:
            self.seen.faults.append(f"tiro {words[0]}: ended by signal {-code}")
        os.close(ours)
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode("utf-8", "replace"))
        if "Traceback" in text:
            self.seen.faults.append(f"tiro {words[0]}: a traceback: {text[-900:]}")
        self.told(f"tiro {words[0]}", f"[exit {code}]")
        for line in text.splitlines():
            if line.startswith("· ") or "cannot" in line or "could not" in line:
                self.told(f"tiro {words[0]} shows", line)

    def interrupt(self, *words: str) -> None:
        """A command that runs until Ctrl-C."""
        log = self.home.new_log()
        with log.open("wb") as stderr:
            env = {**self.home.environment(), **self.environment()}
            running = self.warm.fork(
                env, self.home.workspace, stderr.fileno(), words=[*HOOKED, *words]
            )
        ready = select.select([running.stdout], [], [], SECONDS)[0]
        printed = os.read(running.stdout.fileno(), 1 << 16).decode() if ready else ""
        running.send_signal(signal.SIGINT)
        code = running.wait(SECONDS)
        step, said = f"tiro {words[0]}", log.read_text()
        if "Traceback" in said or (code < 0 and not self.is_killed):
            self.seen.faults.append(f"{step}: ended with {code}: {said[-600:]}")
        self.told(step, f"[exit {code}] {said}")
        self.told(f"{step} printed", printed)
        running.stdin.close()
        running.stdout.close()

    def told(self, step: str, text: str) -> None:
        """Something that a user may see."""
        self.seen.told[step] = (self.seen.told.get(step, "") + " " + plain(text, self.root)).strip()

    def ended(self, step: str, server: Server) -> None:
        """A request that got no answer."""
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = server.process.wait(5)
        if code == -9 and self.is_killed:
            return
        if code == 1 and step == "initialize" and server.stderr_text().startswith("tiro: "):
            self.told(step, server.stderr_text())
            self.is_refused = True
        if code == 1 and self.fault and self.fault["place"][0] == "protocol/frames.py":
            self.told(step, "the server ends, as when its editor is gone")
            self.is_refused = True
        if self.is_refused:
            return
        what = "hangs" if code is None else f"ended with {code}"
        log = server.stderr_text()[-500:]
        self.seen.faults.append(f"{step}: the server {what}: {plain(log, self.root)}")

    def listen(self, server: Server) -> None:
        """What the server said by itself."""
        for shown in server.named("window/showMessage"):
            self.told("message", shown["message"])
        for reason in reasons(server):
            self.told("session/changed", reason)
        self.seen.faults += [f"stdout: {fault}" for fault in server.violations]
        if "Traceback" in server.stderr_text():
            self.seen.faults.append(f"a traceback: {server.stderr_text()[-800:]}")
        problems = self.tell("status", server, "tiro/status") or {}
        for problem in problems.get("problems", []):
            self.told("status", problem)

    def finish(self) -> Seen:
        """Heal; does work go on, and is all there that was acknowledged?"""
        self.reached = self.met()
        self.heal()
        running = [server for server in self.servers if server.process.poll() is None]
        for server in running:
            self.resume(server)
            self.ask(server, "go on")
            self.listen(server)
            if server.process.poll() is None:
                try:
                    code = server.shutdown(SECONDS)
                except (AssertionError, RpcError, subprocess.TimeoutExpired, OSError) as error:
                    code = repr(error)  # type: ignore[assignment]
                if code != 0:
                    self.seen.faults.append(f"shutdown: {code}")
        for server in self.servers:
            server.close()
        self.look()
        return self.seen

    def resume(self, server: Server) -> None:
        """Add a message now that nothing fails: it is stored, at once or a little later."""
        given = {"role": "user", "content": "after"}
        result = self.tell("add after", server, "tiro/session/addMessage", given)
        if result is None:
            return
        if not result["stored"]:
            try:
                server.wait_until(lambda: reasons(server)[-1:] == ["saveResumed"], "saveResumed")
            except AssertionError:
                self.seen.faults.append("add after: saving never goes on")
                return
        self.seen.kept.add("after")

    def look(self) -> None:
        """Read all sessions with a new process."""
        with Server(self.home, warm=self.warm) as reader:
            reader.initialize()
            found = set[str]()
            for row in reader.request("tiro/session/list", {"limit": 1000})["sessions"]:
                with contextlib.suppress(RpcError):  # what is in it counts as lost
                    reader.request("tiro/session/load", {"path": row["path"]})
                    found |= set(words(reader))
            self.seen.lost = {
                text for text in self.seen.kept if not any(text in one for one in found)
            }
            self.add(reader, "in a new process")
            reader.shutdown()

    def met(self) -> list[list[Any]]:
        """The places that were met, with their operation; `["hit"]` is the fault."""
        if not self.places.exists():
            return []
        return [json.loads(line) for line in self.places.read_text().splitlines()]


def reasons(server: Server) -> list[str]:
    """What the server said about storing, in order."""
    told = [changed["reason"] for changed in server.named("tiro/session/changed")]
    return [reason for reason in told if reason in ("saveFailed", "saveResumed")]


def quiet(terminal: int, seconds: float) -> bytes:
    """What comes until it is the person's turn, or nothing comes for so long."""
    shown = b""
    while select.select([terminal], [], [], seconds)[0]:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:
            break
        shown += piece
        if not piece or (shown.endswith(b"> ") and not select.select([terminal], [], [], 0.2)[0]):
            break
    return shown


def plain(text: str, root: Path) -> str:
    """The text without what differs from run to run."""
    text = text.replace(str(root), "…").replace(str(SERVER), "…")
    text = re.sub(r"/tmp/tiro-[\w-]+", "<temporary folder>", text)
    text = re.sub(r"session-\d{8}-\d{6}(-\d+)?", "<session>", text)
    text = re.sub(r"\b[0-9a-f]{8,}\b", "<id>", text)
    text = re.sub(r"\b127\.0\.0\.1:\d+", "<host>", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?Z?", "<time>", text)
    return re.sub(r"\d+(\.\d+)? (ms|s|seconds|kB|MB|GB|bytes)\b", "<n>", text)


TOOLS: dict[str, list[tuple[str, str, Any]]] = {
    "read": [
        ("r1", "read_file", {"path": "a.txt"}), ("r2", "list_files", {"path": "."}),
        ("r3", "glob", {"pattern": "**/*.txt"}), ("r4", "grep", {"pattern": "l.ne"}),
        ("r5", "read_file", {"path": "p.png"}),
    ],
    "write": [
        ("w1", "write_file", {"path": "new/b.txt", "content": "b\n"}),
        ("w2", "edit_file", {"path": "a.txt", "old_text": "line 1", "new_text": "line one"}),
        ("w3", "write_file", {"path": "c.txt", "content": "c\n"}),
    ],
    "run": [("c1", "run_command", {"command": "echo hello; ls"})],
    "git": [("c2", "run_command", {"command": "git status; cat a.txt *.txt; rm -r gone"})],
}  # fmt: skip


def answer(request: Recorded) -> Reply:
    """Tool uses as the newest prompt names them, then a text."""
    if not request.tool_names:
        return replies.text('{"so": "far"}' if "JSON" in request.system else "They talked.")
    last = request.messages[-1]
    kind = text_of(last["content"]).strip().split()[-1] if last["role"] == "user" else ""
    if kind in TOOLS:
        return replies.tools(*TOOLS[kind])
    return replies.text("ok")
