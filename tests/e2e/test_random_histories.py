"""Thousands of random histories drive the running server in bursts of requests (P1, P3, U3, U9).

Every text has a tag of its own. What was acknowledged is found again by its tag in some session of
the directory, whatever came after it: a prune, a trim, a resize, a compaction, an undo, an edit, a
rewind, a load, a kill. The strict provider refuses nothing, and each id is answered once. What left
a window waits for a summary until a model was asked about it, and its answer could be used (U4.1).
"""

import json
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Pending, Server
from tests.e2e.conftest import StartServer, Tell
from tests.e2e.contract import openai_faults
from tests.e2e.home import Home
from tests.e2e.provider import Provider, Recorded
from tests.e2e.replies import Break, Pause, Reply
from tests.e2e.talk import result, use
from tests.e2e.test_explain import body_of
from tests.sizes import sized

HISTORIES = sized(fast=200, normal=2000, long=20_000)
BLOCK = 100
"""So many share one provider and one home; a killed server is replaced by the next one."""

UNTRIMMED = {"enabled": True}
TRIMMED = {**UNTRIMMED, "message_buffer_limit": 4, "message_buffer_min": 1}
"""In every second block windows are trimmed before each turn (N2)."""

SEEN = {
    "resized", "compacted", "undone", "applied", "pinned", "let go", "edited", "taken back",
    "summary", "no summary", "late summary", "memo", "no memo", "covered",
    "long summary", "long memo",
}  # fmt: skip
"""What has to happen in any two blocks, or they would show nothing about it."""

TAG = re.compile(r"m\d+\.")
EVICTING = re.compile("maxHistory|/resize|/applyResize|/compact")
"""Requests that make messages leave a window; without any of them it was a trim."""

ASKED = 0.2
"""The share of histories that end with a prompt; the next request of all of them is explained."""

KILLED = 0.08
"""The share of bursts that end in a kill -9."""

ALLOWED = {None, "invalidMessage", "turnInProgress", "sessionNotFound", "resizeFailed"}
"""What guessed numbers and ids are answered with; a kind of None is -32602."""

Answered = Callable[[dict[str, Any]], None]


class Writer:
    """The model of summaries and memos: some cannot be used, are far too long, or come late."""

    def __init__(self) -> None:
        self.did: Counter[str] = Counter()
        self.read = ""
        """All that it was shown before it gave an answer that can be used."""

    def answer(self, request: Recorded) -> Reply:
        """As the text of the request falls: by chance, but the same whenever it is played."""
        if request.tool_names:
            return by_its_prompt(request)
        text = str(request.messages[-1]["content"])
        number = zlib.crc32(text.encode())
        chance, more = number % 8, ""
        kind = "memo" if text.startswith('{"current_memo"') else "summary"
        if chance == 0:
            self.did[f"no {kind}"] += 1
            return replies.text(" \n")
        if chance == 1:
            self.did[f"no {kind}"] += 1
            return replies.error(400, "no")
        self.did[kind] += 1
        self.read += text
        if chance in (2, 3):
            self.did[f"long {kind}"] += 1
            more = "more " * (len(text) * (number // 8 % 150 + 1) // 500)
        memo = json.dumps({"memo": {"a": 1, "more": more}})
        said = replies.text(memo if kind == "memo" else f"They spoke. {more}")
        if chance > 4:
            self.did[f"late {kind}"] += 1
            return Reply([replies.ROLE, Pause(0.03), *said.steps[1:]])
        return said


def by_its_prompt(request: Recorded) -> Reply:
    """What the newest prompt asks for in brackets: tool calls, silence, half an answer, …"""
    messages = json.loads(request.raw)["messages"]
    prompt = next(str(m["content"]) for m in reversed(messages) if m["role"] == "user")
    kind = prompt.rpartition("[")[2].partition("]")[0]
    if kind == "tools" and messages[-1]["role"] != "tool":
        return replies.tools(("a", "glob", {"pattern": "*"}), ("a", "no_such", {}), before="look")
    if kind == "slow":
        return replies.stream(replies.text_chunk("half"), Pause(20))
    if kind == "half":
        return Reply([replies.ROLE, replies.text_chunk("half"), Break()])
    if kind == "refused":
        return replies.error(400, "no")
    return replies.text(" \n" if kind == "blank" else "fine")


class History:
    """One history: a few bursts of requests, then a look at everything that was acknowledged."""

    def __init__(self, server: Server, start: StartServer, seed: int, writer: Writer) -> None:
        self.server, self.start, self.writer = server, start, writer
        self.did = writer.did
        self.dice = random.Random(seed)
        self.tags = 0
        self.kept: set[str] = set()
        """The tags that the server has acknowledged."""
        self.said: list[str] = []
        self.pending: list[tuple[Pending, Answered]] = []
        self.ids: list[str] = []
        self.heard_before = 0
        self.draft = "none"

    def run(self) -> None:
        """Some bursts, each followed by its answers or by a kill."""
        for _ in range(self.dice.choice([1, 1, 2])):
            self.burst()
            if self.dice.random() < KILLED:
                self.kill()
            self.settle()
        self.check()

    def run_calmly(self) -> None:
        """Some messages and a turn; where anything leaves the window, a trim has put it out."""
        for _ in range(6):
            self.user()
        self.turn()
        self.settle()
        self.check()

    def burst(self) -> None:
        """Some requests that do not wait for each other; some bursts end with a turn."""
        quick = [
            self.user, self.user, self.assistant, self.assistant, self.answer, self.answer,
            self.system, self.limit, self.edit, self.rewind, self.resize, self.state, self.get_id,
            self.user, self.pin, self.pin, self.undo, self.preview, self.apply, self.memory,
            self.resize, self.resize, self.resize, self.summaries, self.edit,
        ]  # fmt: skip
        for _ in range(self.dice.randint(1, 7)):
            self.dice.choice(quick)()
        last = [
            self.turn, self.turn, self.stopped_turn, self.ended_turn, self.clear, self.load,
            self.user, self.compact, self.compact,
        ]  # fmt: skip
        self.dice.choice(last)()

    def send(self, method: str, answered: Answered = lambda _: None, **params: Any) -> None:
        """Send a request; its result goes to `answered` when the burst is over."""
        self.said.append(f"{method} {params}")
        self.pending.append((self.server.begin(method, params), answered))

    def settle(self) -> None:
        """Take every answer of the burst, in order."""
        pending, self.pending = self.pending, []
        for request, answered in pending:
            self.take(request.message(), answered)

    def take(self, message: dict[str, Any], answered: Answered) -> None:
        if "result" in message:
            answered(message["result"])
            return
        error = message["error"]
        kind = error.get("data", {}).get("kind")
        assert kind in {*ALLOWED, "modelFailed"}, error
        assert kind is not None or error["code"] == -32602, error

    def tag(self) -> str:
        self.tags += 1
        return f"m{self.tags}."

    def keep(self, tag: str, added: dict[str, Any]) -> None:
        assert added["stored"] is True
        self.kept.add(tag)

    # Messages

    def add(self, tag: str, role: str, content: Any) -> None:
        fields = {"role": role, "content": content}
        self.send("tiro/session/addMessage", lambda r: self.keep(tag, r), **fields)

    def user(self) -> None:
        tag = self.tag()
        blocks = [{"type": "text", "text": tag}, {"type": "new"}]
        long = f"{tag} {'x' * 70_000}"  # it becomes a blob
        self.add(tag, "user", self.dice.choices([tag, blocks, long], [20, 10, 1])[0])

    def system(self) -> None:
        tag = self.tag()
        self.add(tag, "system", tag)

    def assistant(self) -> None:
        tag = self.tag()
        ids = self.dice.choice([(), ("c1",), ("c1", "c2"), ("c1", "c1"), ("", "x|1", "L" * 70)])
        uses = [use(id_, "glob") for id_ in ids]
        self.add(tag, "assistant", [{"type": "text", "text": tag}, *uses])

    def answer(self) -> None:
        tag = self.tag()
        id_ = self.dice.choice(["c1", "c2", "", "x|1", "never"])
        self.add(tag, "tool", result(id_, tag))

    def edit(self) -> None:
        tag = self.tag()
        params = {"seq": self.dice.randint(1, self.tags), "content": tag}

        def edited(_: dict[str, Any]) -> None:
            self.kept.add(tag)
            self.did["edited"] += 1

        self.send("tiro/session/editMessage", edited, **params)

    def rewind(self) -> None:
        params = {"toSeq": self.dice.randint(0, self.tags)}
        self.send("tiro/session/rewind", self.counted("taken back"), **params)

    # The window and what else a session holds

    def limit(self) -> None:
        limit = self.dice.choice([None, 1, 2, 3, 5, 8, 20])
        self.send("tiro/session/configure", maxHistory=limit)

    def resize(self) -> None:
        self.user()
        limit, mode = self.dice.choice([None, 1, 2, 6]), self.dice.choice(["lite", "memo"])
        self.send("tiro/session/configure", limit={"messages": limit}, mode=mode)
        kind = self.dice.choice(["lite", "deep"])
        self.send("tiro/session/resize", self.counted("resized", "evicted"), force=kind)
        if self.dice.random() < 0.3:
            self.undo()

    def preview(self) -> None:
        def shown(preview: dict[str, Any]) -> None:
            self.draft = preview["draftId"] or self.draft

        kind = self.dice.choice(["lite", "compact"])
        self.send("tiro/session/previewResize", shown, force=kind)

    def apply(self) -> None:
        self.preview()
        self.settle()  # the draft is known only then
        summary = self.dice.choice([None, "mine"])
        done = self.counted("applied")
        self.send("tiro/session/applyResize", done, draftId=self.draft, summary=summary)

    def undo(self) -> None:
        self.send("tiro/session/undoResize", self.counted("undone"))

    def compact(self) -> None:
        self.send("tiro/session/compact", self.counted("compacted", "evicted"))

    def pin(self) -> None:
        seq = self.dice.randint(1, self.tags + 1)
        self.send("tiro/session/pin", self.counted("pinned"), seq=seq, pinned=True)
        if self.dice.random() < 0.4:
            self.send("tiro/session/pin", self.counted("let go"), seq=seq, pinned=False)

    def memory(self) -> None:
        given: dict[str, Any] = self.dice.choice(
            [{"memo": {"mine": 1}}, {"summary": "mine"}, {"summary": ""}]
        )
        self.send("tiro/memo/set", **given)

    def summaries(self) -> None:
        self.send("tiro/session/configure", summaryEnabled=self.dice.random() < 0.5)

    def counted(self, what: str, field: str | None = None) -> Answered:
        """Count an answer, or those only that did something."""

        def count(done: dict[str, Any]) -> None:
            self.did[what] += 1 if field is None or done[field] else 0

        return count

    def state(self) -> None:
        self.send("tiro/state/set", key=self.dice.choice("ab"), value=self.tags)

    def get_id(self) -> None:
        self.send("tiro/session/getId", lambda r: self.ids.append(r["id"]))

    # Turns

    def prompt(self, kind: str) -> None:
        tag = self.tag()

        def answered(done: dict[str, Any]) -> None:
            if done["lastSeq"] >= done["firstSeq"]:
                self.kept.add(tag)
            else:
                assert done["stopReason"] == "cancelled"

        self.heard_before = len(self.server.notifications)
        self.send("tiro/turn/start", answered, prompt=f"{tag} [{kind}]")

    def turn(self) -> None:
        self.prompt(self.dice.choice(["fine", "blank", "tools", "tools", "half", "refused"]))

    def stopped_turn(self) -> None:
        self.prompt(self.dice.choice(["slow", "slow", "tools", "fine"]))
        self.loiter()
        self.send("tiro/turn/cancel")

    def ended_turn(self) -> None:
        self.prompt("slow")
        self.loiter()
        self.dice.choice([self.clear, self.load])()

    def loiter(self) -> None:
        """Let the turn come to some point, by an event of it and not by time."""
        kind, turn = self.dice.choice([None, "started", "stored"]), self.pending[-1][0]
        if kind is not None:
            self.server.wait_until(lambda: turn.done or self.heard(kind), f"the event {kind}")

    def heard(self, kind: str) -> bool:
        """Whether the newest turn has told this since it was asked for."""
        told = self.server.notifications[self.heard_before :]
        return any(n["params"].get("type") == kind for n in told)

    # Sessions

    def clear(self) -> None:
        self.send(self.dice.choice(["tiro/session/clear", "tiro/session/new"]))

    def load(self) -> None:
        where = {"id": self.dice.choice(self.ids)} if self.ids else {"latest": True}
        self.send("tiro/session/save")
        self.send("tiro/session/load", **where)

    def kill(self) -> None:
        """kill -9 after some answers of the burst have come; what had come must have stayed."""
        count = self.dice.randrange(len(self.pending) + 1)
        for request, _ in self.pending[:count]:
            request.message()
        self.server.kill()
        self.server.check()
        for request, answered in self.pending:
            if request.done:
                self.take(request.message(), answered)
        self.pending = []
        self.said.append("kill")
        self.server = self.start()

    # What must hold

    def check(self) -> None:
        """Every session's next request is valid; all that was acknowledged is in one of them."""
        if self.dice.random() < ASKED:
            self.prompt("fine")
            self.settle()
        found = ""
        rows = self.server.request("tiro/session/list", {"limit": 1000})["sessions"]
        for row in rows:
            assert row["error"] is None, row
            self.server.request("tiro/session/load", {"id": row["id"]})
            found += self.everything()
            explained = self.server.request("tiro/session/explain", {"draft": "go on"})
            assert openai_faults(json.dumps(body_of(explained)).encode()) == []
        lost = sorted(tag for tag in self.kept if tag not in found)
        assert not lost, lost
        for row in rows:  # nothing is left behind for the next history
            self.server.request("tiro/session/delete", {"id": row["id"]})
        self.server.forget()

    def everything(self) -> str:
        """All messages of the current session, as text; numbers and order hold."""
        params = {"limit": 100_000, "all": True}
        shown = self.server.request("tiro/session/get", params)
        rows = [(m, (m.get("metadata") or {}).get("tiro", {})) for m in shown["messages"]]
        alive = [m["seq"] for m, marks in rows if not marks.get("taken_back")]
        assert alive == sorted(set(alive))
        assert shown["total"] + shown["archived"] == len(alive)
        window = self.server.request("tiro/session/get")["messages"]
        gone = [(m, marks) for m, marks in rows if not marks.get("taken_back") and m not in window]
        for message, marks in gone:
            self.did["trimmed"] += EVICTING.search(" ".join(self.said)) is None
            if not marks.get("pending") and message["role"] != "system":
                self.did["covered"] += 1
                tags = TAG.findall(json.dumps(message["content"]))
                assert all(tag in self.writer.read for tag in tags), (tags, marks)
        return json.dumps(shown["messages"])


@pytest.fixture(scope="module")
def done() -> list[Counter[str]]:
    """What has happened in the blocks before."""
    return []


@pytest.mark.timeout(600)  # with --long
@pytest.mark.parametrize("first", range(0, HISTORIES, BLOCK))
def test_no_history_is_refused_or_loses_anything(
    start: StartServer,
    home: Home,
    provider: Provider,
    first: int,
    record_property: Tell,
    done: list[Counter[str]],
) -> None:
    """U4.1, U4.3, N4.5, and that each thing that may befall a memory has befallen one."""
    is_trimmed = first // BLOCK % 2 == 1
    home.write_config(session={"summary": TRIMMED if is_trimmed else UNTRIMMED})
    writer = Writer()
    provider.otherwise(writer.answer)
    kills, server = 0, start()
    for seed in range(first, first + BLOCK):
        writer.read = ""
        history = History(server, start, seed, writer)
        try:
            (history.run_calmly if is_trimmed and seed % 10 == 0 else history.run)()
        except Exception as error:
            raise AssertionError(f"seed {seed}: {history.said}") from error
        assert provider.refused == [], (seed, history.said)
        provider.requests.clear()
        kills, server = kills + history.said.count("kill"), history.server
    assert writer.did["trimmed"] or not is_trimmed
    done.append(writer.did)
    both = Counter[str]()
    for did in done[-2:]:
        both += did
    assert len(done) == 1 or not {name for name in SEEN if not both[name]}, both
    for name, count in (("histories", BLOCK), ("kills", kills), ("served_kills", kills)):
        record_property(name, count)
