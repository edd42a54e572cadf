"""A fake assistant with the real interface: a real session in memory, and turns by script."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from tests.sizes import PATIENCE
from tiro.agents import events
from tiro.agents.agent_info import AgentInfo
from tiro.agents.gate import Reason
from tiro.agents.permissions import PermissionDecision
from tiro.assistant.file_edits import FileEdits
from tiro.assistant.results import MemoryView, Preview
from tiro.errors import (
    AgentNotFoundError,
    InvalidInputError,
    TiroError,
    TurnInProgressError,
    TurnNotFoundError,
)
from tiro.protocol.service import Service, build_server
from tiro.session import history
from tiro.session.messages import Message, Usage
from tiro.session.meter import ContextSize, Meter
from tiro.session.session import Session
from tiro.stores.retention import Plan
from tiro.tools.silent_disk import Patience
from tiro.tools.workspace import Workspace

Script = Sequence[events.TurnEvent | asyncio.Event | BaseException | float]
AGENTS = [
    AgentInfo(name="build", description="Does it", mode="primary", native=True),
    AgentInfo(name="plan", description="Plans it", mode="primary", native=True),
    AgentInfo(name="title", mode="primary", native=True, hidden=True),
]


class FakeAssistant:
    """Keeps one session in memory; a turn plays the next script."""

    def __init__(
        self,
        *,
        editor: Any = None,
        on_event: Callable[[Any, int, Any], None] = lambda turn, n, event: None,
        on_changed: Callable[[Any], None] = lambda notice: None,
        scripts: Sequence[Script] = (),
    ) -> None:
        self.editor, self.on_event, self.on_changed = editor, on_event, on_changed
        self.session = Session(max_history=5000)
        self.session.id = None
        self.scripts = list(scripts)
        self.calls: list[tuple[Any, ...]] = []
        self.files: dict[str, Session] = {}
        self.exported = "the text"
        self.saved = self.turns = self.memory = self.deletion = (
            self  # one object plays all parts of the real one
        )
        self.edits = FileEdits(
            Workspace(editor), Path("/nowhere"), is_kept=lambda: False, patience=Patience()
        )
        self.problems: list[str] = []
        self.before: Callable[[str], Any] | None = None
        self.on_asking: Callable[[], None] = lambda: None
        self.is_shut_down = False
        self._turn: SimpleNamespace | None = None
        self.setup = SimpleNamespace(
            settings=SimpleNamespace(session=SimpleNamespace(resume="ask")),
            agents=SimpleNamespace(default="build"),
            tools_of=lambda agent: [SimpleNamespace(name="read_file")],
            missing=lambda session: [],
        )
        self.manager = SimpleNamespace(
            path_of=lambda session: None,
            saved_at=lambda session: None,
            is_stored=lambda session: True,
        )
        self.messages = SimpleNamespace(
            add=self.add_message,
            answer=self.add_tool_result,
            rewind=self.rewind,
            edit=self.edit_message,
        )
        self.state = SimpleNamespace(
            get=self.state_get, set=self.state_set, delete=self.state_delete
        )

    # --- set up ---

    async def configure_client(
        self, settings: Mapping[str, Any], roots: Sequence[Path], workspace_trusted: bool
    ) -> list[str]:
        self.calls.append(("configure_client", dict(settings), list(roots), workspace_trusted))
        return self.problems

    async def warm_up(self) -> None:
        self.calls.append(("warm_up",))

    async def shutdown(self) -> None:
        await self._end_turn()
        self.is_shut_down = True

    async def _step(self, name: str, *args: Any) -> None:
        self.calls.append((name, *args))
        if self.before is not None:
            await self.before(name)

    # --- the session ---

    @property
    def running_turn_id(self) -> str | None:
        return self._turn.turn_id if self._turn else None

    async def page(
        self,
        limit: int | None = None,
        before_seq: int | None = None,
        everything: bool | None = None,
    ) -> list[Message]:
        await self._step("page", limit, before_seq, everything)
        return self.session.oldest_first()

    async def content(self, seq: int, block: Any, offset: Any, limit: Any) -> Any:
        return SimpleNamespace(text="piece", total_chars=5)

    async def show(self) -> str | None:
        return self.session.summarize()

    async def statistics(self) -> Any:
        return self.session.statistics()

    async def explain(self, draft: Any, attachments: Any, agent: Any, model: Any) -> Any:
        await self._step("explain", draft, attachments, agent, model)
        parts = SimpleNamespace(system="", messages=[], tools=[], parameters={})
        left = [SimpleNamespace(seq=1, reason="empty")]
        size = self.context_size()
        return SimpleNamespace(model=None, parts=parts, tokens=size, left=left, repairs=[])

    def context_size(self, draft: str = "") -> ContextSize:
        return Meter().measure(self.session.oldest_first(), draft=draft)

    def agent(self) -> AgentInfo | None:
        return next((agent for agent in AGENTS if agent.name == self.session.agent), None)

    async def get_id(self) -> str:
        await self._step("get_id")
        return self.session.get_id()

    async def add_message(self, fields: dict[str, Any]) -> Any:
        await self._step("add_message", fields)
        self._refuse_during_turn()
        added, pruned = history.add(self.session, history.checked(fields))
        total = len(self.session.newest_first)
        return SimpleNamespace(seq=added[-1].seq, total=total, pruned=pruned, stored=False)

    async def add_tool_result(self, tool_use_id: str, content: Any, is_error: bool) -> Any:
        return await self.add_message(history.answer(tool_use_id, content, is_error).to_dict())

    async def set_agent(self, name: str | None) -> AgentInfo | None:
        await self._step("set_agent", name)
        if name is not None and name not in [agent.name for agent in AGENTS]:
            raise AgentNotFoundError("There is no such agent", name=name, available=["build"])
        self.session.set_agent(name)
        return self.agent()

    async def explain_permission(self, agent: str | None, tool: str, input: Any) -> Any:
        return [Reason(PermissionDecision("allow", f"{tool}: allow", "default"))]

    async def set_model(self, name: str) -> str:
        return name

    async def configure(self, given: Mapping[str, Any]) -> Session:
        await self._step("configure", dict(given))
        return self.session

    async def rewind(self, to_seq: int) -> Session:
        self.session.rewind(to_seq)
        return self.session

    async def edit_message(self, seq: int, content: Any) -> Session:
        self.session.edit_message(seq, content)
        return self.session

    async def state_get(self, key: str) -> tuple[bool, Any]:
        value, found = self.session.lookup(key)
        return found, value

    async def state_set(self, key: str, value: Any) -> None:
        await self._step("state_set", key, value)
        self.session.set(key, value)

    async def state_delete(self, key: str) -> bool:
        found = self.session.lookup(key)[1]
        self.session.delete(key)
        return found

    async def judge(self, force: Any = None) -> Any:
        return None

    async def compact(self) -> Any:
        return await self.resize()

    async def preview(self, force: Any = None) -> Any:
        return Preview(
            decision=None, evict=[], keep=[], memo={}, summary="", tokens_before=1,
            tokens_after=1, draft_id=None,
        )  # fmt: skip

    async def apply(self, draft_id: str, memo: Any, summary: Any) -> Any:
        return await self.resize()

    async def undo(self) -> Session:
        return self.session

    async def pin(self, seq: int, pinned: bool) -> list[int]:
        return [seq] if pinned else []

    def get(self) -> Any:
        return MemoryView(
            memo={}, summary="", memo_cursor=0, last_resize=None, summary_in_progress=False
        )

    async def set(self, memo: Any, summary: Any) -> Any:
        return self.get()

    async def resize(self, force: Any = None) -> Any:
        await self._step("resize", force)
        return SimpleNamespace(
            decision={"type": "lite"}, evicted=0, total=0, tokens_before=1, tokens_after=1,
            memo={}, summary="", memo_refused=None,
        )  # fmt: skip

    # --- sessions as files ---

    async def new(self, id: Any, title: Any, agent: Any, max_history: Any) -> Session:
        await self.clear()
        self.session.change(title=title)
        return self.session

    async def clear(self) -> Any:
        await self._step("clear")
        await self._end_turn()
        total, self.session = len(self.session.newest_first), Session(max_history=5000)
        self.session.id = None
        return SimpleNamespace(cleared=total, saved_as=None)

    async def save(self, path: Path | None = None) -> Any:
        await self._step("save", path)
        self.files[self.session.get_id()] = self.session
        return SimpleNamespace(path=path or Path("/s.json"), id=self.session.get_id(), bytes=1)

    async def load(self, path: Any = None, id: Any = None, latest: Any = None) -> Session:
        await self._step("load", path, id, latest)
        if sum((path is not None, id is not None, bool(latest))) != 1:
            raise InvalidInputError("Give exactly one of path, id and latest")
        await self._end_turn()
        return self.session

    async def list(self, query: Any = None, limit: Any = None, offset: Any = None) -> Any:
        rows = [
            SimpleNamespace(
                id=id_, path=f"/{id_}.json", title=f"About {id_}", agent=None, messages=1,
                archived=0, saved_at="2026-01-01T00:00:00.000Z", bytes=1, error=None,
                expires_at=None,
            )
            for id_ in self.files
        ]  # fmt: skip
        return rows[: limit or 100], len(rows)

    async def latest(self) -> Any:
        rows, _ = await self.list(limit=1)
        return next(iter(rows), None)

    async def delete(self, id: str) -> bool:
        return self.files.pop(id, None) is not None

    discard = delete

    async def rename(self, id: str, title: str | None) -> None:
        await self._step("rename", id, title)

    async def deleted(self, limit: int | None, offset: int | None) -> Any:
        return [], 0

    async def plan(self, rule: Any) -> Any:
        return Plan([], 0, 0)

    async def prune(self, going: Any, order: Any) -> Any:
        return going

    async def restore(self, id: str) -> Any:
        return SimpleNamespace(id=id, path=f"/{id}.json", was_id=id)

    async def empty(self, id: str | None) -> int:
        return 0

    async def search(self, query: str, limit: int | None, on_progress: Any) -> Any:
        on_progress(1, 4)
        await self._step("search", query, limit)
        return []

    async def export(self, format: str, id: Any, path: Path | None, redact: Any) -> Any:
        await self._step("export", format, id, path, redact)
        text = None if path else self.exported
        return SimpleNamespace(path=path, text=text, was_redacted=False, losses=[])

    async def import_from(
        self, path: Path | None, text: str | None, format: Any, is_once: bool
    ) -> Any:
        await self._step("import_from", path, text, format, is_once)
        await self._end_turn()
        return self.session, ["a note"]

    # --- turns ---

    async def start_turn(
        self, turn_id: str, prompt: Any, attachments: Any, agent: Any, model: Any
    ) -> Any:
        await self._step("start_turn", prompt, attachments, agent, model)
        if isinstance(prompt, str) and not prompt.strip():
            raise InvalidInputError("The prompt is empty; write what you want to ask")
        self._refuse_during_turn()
        script = self.scripts.pop(0) if self.scripts else [events.Text("ok")]
        history.add(self.session, {"role": "user", "content": prompt})
        turn = self._turn = SimpleNamespace(
            turn_id=turn_id,
            session=self.session,
            cancel=asyncio.Event(),
            over=asyncio.Event(),
            answered=asyncio.Event(),
        )
        playing = asyncio.ensure_future(self._play(turn, script))
        try:
            return await asyncio.shield(playing)
        except asyncio.CancelledError:
            turn.cancel.set()
            await asyncio.wait([playing])
            raise
        finally:
            turn.answered.set()

    async def _play(self, turn: Any, script: Script) -> Any:
        n, text, reason, error = 0, "", "end_turn", None

        def tell(event: Any) -> None:
            nonlocal n
            n += 1
            self.on_event(turn, n, event)

        tell(events.Started(agent="build", model="fake/fake", seq=1))
        for step in script:
            if turn.cancel.is_set():
                reason = "cancelled"
                break
            if isinstance(step, float):
                await asyncio.sleep(step)
            elif isinstance(step, asyncio.Event):
                waits = [asyncio.ensure_future(e.wait()) for e in (step, turn.cancel)]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for wait in waits:
                    wait.cancel()
            elif isinstance(step, BaseException):
                reason, error = "error", step
                break
            else:
                text += step.delta if isinstance(step, events.Text) else ""
                tell(step)
        if turn.cancel.is_set():
            reason = "cancelled"
        outcome = events.TurnOutcome(
            stop_reason=reason,  # type: ignore[arg-type]
            text=text, first_seq=1, last_seq=2, steps=1, usage=Usage(3, 4),
        )  # fmt: skip
        self._turn = None
        tell(events.Finished(outcome, error if isinstance(error, TiroError) else None))
        turn.over.set()
        if error is not None:
            raise error
        return SimpleNamespace(
            turn_id=turn.turn_id, outcome=outcome, context_size=self.context_size()
        )

    def steer(self, text: str, turn_id: str | None = None) -> None:
        self.calls.append(("steer", text, turn_id))

    @property
    def running(self) -> Any:
        return self._turn

    def cancelled_turn(self, turn_id: str) -> Any:
        outcome = events.TurnOutcome(
            stop_reason="cancelled", text="", first_seq=1, last_seq=0, steps=0, usage=Usage(),
        )  # fmt: skip
        return SimpleNamespace(turn_id=turn_id, outcome=outcome, context_size=self.context_size())

    async def cancel(self, turn_id: str | None = None) -> bool:
        turn = self._turn
        if turn_id is not None and (turn is None or turn.turn_id != turn_id):
            raise TurnNotFoundError("That turn is not running", turn_id=turn_id)
        if turn is None:
            return False
        turn.cancel.set()
        await turn.over.wait()
        return True

    async def _end_turn(self) -> None:
        if (turn := self._turn) is not None:
            await self.cancel()
            await turn.answered.wait()

    def _refuse_during_turn(self) -> None:
        if self._turn is not None:
            raise TurnInProgressError("A turn is running", turn_id=self._turn.turn_id)

    # --- agents, models, status ---

    async def list_agents(self, everything: bool | None = None) -> Any:
        return [agent for agent in AGENTS if everything or not agent.hidden]

    async def list_models(self) -> Any:
        return []

    def current_model(self) -> str | None:
        return None

    async def status(self) -> Any:
        return SimpleNamespace(
            version="0", python="3", config_files=[], sessions_directory=Path("/s"), model=None,
            provider=None, problems=[],
        )  # fmt: skip


def fake_assistant(*scripts: Script) -> Callable[..., Any]:
    """What `build_server` is given in place of the real assistant."""
    return lambda **given: FakeAssistant(**given, scripts=scripts)


class Outlet:
    """Takes what would be written; a test decides whether the client reads."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.sizes: list[int] = []
        self.waiting: list[Callable[[], None]] = []
        self.is_read = True
        self.changed = asyncio.Event()

    def put(self, body: bytes) -> None:
        self.bodies.append(body)
        self.sizes.append(len(body))
        self.changed.set()

    def when_idle(self, callback: Callable[[], None]) -> bool:
        if not self.is_read:
            self.waiting.append(callback)
        return self.is_read

    def read_on(self) -> None:
        """The client reads everything and goes on reading."""
        self.is_read = True
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback()

    def messages(self) -> list[Any]:
        return [msgspec.json.decode(body) for body in self.bodies]


class Client:
    """Talks to a server in this process, without threads and pipes."""

    def __init__(self, *scripts: Script) -> None:
        self.outlet = Outlet()
        self.service: Service = build_server(fake_assistant(*scripts))
        self.protocol = self.service.server.protocol
        self.protocol.outlet = self.outlet
        self.service.connection.when_idle = self.outlet.when_idle
        self._next_id = 1000

    @property
    def assistant(self) -> FakeAssistant:
        assistant: Any = self.service.assistant
        return assistant  # type: ignore[no-any-return]

    def send(self, message: Any) -> None:
        """Hand over one message."""
        self.protocol.handle_message(message)

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: Any = None, id_: Any = None) -> Any:
        """Send a request; its id."""
        self._next_id += 1
        id_ = self._next_id if id_ is None else id_
        self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        return id_

    def answers(self, id_: Any) -> list[Any]:
        return [
            m
            for m in self.outlet.messages()
            if "method" not in m and m["id"] == id_ and type(m["id"]) is type(id_)
        ]

    def sent(self, method: str) -> list[Any]:
        """The params of all notifications and requests of ours with this method."""
        return [m.get("params") for m in self.outlet.messages() if m.get("method") == method]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until something holds, and return it."""
        while not (found := condition()):
            self.outlet.changed.clear()
            await asyncio.wait_for(self.outlet.changed.wait(), PATIENCE)
        return found

    async def answer(self, id_: Any) -> Any:
        found = await self.until(lambda: self.answers(id_))
        return found[0]

    async def call(self, method: str, params: Any = None) -> Any:
        """The result of a request; an error raises."""
        answer = await self.answer(self.request(method, params))
        assert "error" not in answer, answer
        return answer["result"]

    async def error(self, method: str, params: Any = None) -> Any:
        return (await self.answer(self.request(method, params)))["error"]

    async def initialize(self, **given: Any) -> Any:
        params = {"processId": None, "rootUri": None, "capabilities": {}, **given}
        result = await self.call("initialize", params)
        self.notify("initialized", {})
        return result
