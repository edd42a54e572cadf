"""Thousands of random histories drive the running server in bursts of requests (P1, P3, U3, U9).

Every text has a tag of its own. What was acknowledged is found again by its tag in some session of
the directory, whatever came after it: a prune, a resize, an edit, a rewind, a load, a kill. The
strict provider refuses nothing, and each id is answered once.
"""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Pending, Server
from tests.e2e.conftest import StartServer, Tell
from tests.e2e.contract import openai_faults
from tests.e2e.provider import Provider, Recorded
from tests.e2e.replies import Break, Pause, Reply
from tests.e2e.talk import result, use
from tests.e2e.test_explain import body_of
from tests.sizes import sized

HISTORIES = sized(fast=100, normal=2000, long=20_000)
BLOCK = 100
"""So many share one provider and one home; a killed server is replaced by the next one."""

ASKED = 0.2
"""The share of histories that end with a prompt; the next request of all of them is explained."""

KILLED = 0.08
"""The share of bursts that end in a kill -9."""

ALLOWED = {None, "invalidMessage", "turnInProgress", "sessionNotFound", "resizeFailed"}
"""What guessed numbers and ids are answered with; a kind of None is -32602."""

Answered = Callable[[dict[str, Any]], None]


def by_its_prompt(request: Recorded) -> Reply:
    """What the newest prompt asks for in brackets: tool calls, silence, half an answer, …"""
    messages = json.loads(request.raw)["messages"]
    prompt = next(str(m["content"]) for m in reversed(messages) if m["role"] == "user")
    kind = prompt.rpartition("[")[2].partition("]")[0]
    if kind == "tools" and messages[-1]["role"] != "tool":
        return replies.tools(("a", "glob", {"pattern": "*"}), ("a", "no_such", {}), before="look")
    if kind == "slow":
        return replies.stream(replies.text_chunk("half"), Pause(60))
    if kind == "half":
        return Reply([replies.ROLE, replies.text_chunk("half"), Break()])
    if kind == "refused":
        return replies.error(400, "no")
    return replies.text(" \n" if kind == "blank" else "fine")


class History:
    """One history: a few bursts of requests, then a look at everything that was acknowledged."""

    def __init__(self, server: Server, start: StartServer, seed: int) -> None:
        self.server, self.start = server, start
        self.dice = random.Random(seed)
        self.tags = 0
        self.kept: set[str] = set()
        """The tags that the server has acknowledged."""
        self.said: list[str] = []
        self.pending: list[tuple[Pending, Answered]] = []
        self.ids: list[str] = []
        self.heard_before = 0

    def run(self) -> None:
        """Some bursts, each followed by its answers or by a kill."""
        for _ in range(self.dice.choice([1, 1, 2])):
            self.burst()
            if self.dice.random() < KILLED:
                self.kill()
            self.settle()
        self.check()

    def burst(self) -> None:
        """Some requests that do not wait for each other; some bursts end with a turn."""
        quick = [
            self.user, self.user, self.assistant, self.assistant, self.answer, self.answer,
            self.system, self.limit, self.edit, self.rewind, self.resize, self.state, self.get_id,
        ]  # fmt: skip
        for _ in range(self.dice.randint(1, 7)):
            self.dice.choice(quick)()
        last = [self.turn, self.stopped_turn, self.ended_turn, self.clear, self.load, self.user]
        self.dice.choice(last)()

    def send(self, method: str, answered: Answered = lambda _: None, **params: Any) -> None:
        """Send a request; its result goes to `answered` when the burst is over."""
        self.said.append(f"{method} {params}")
        self.pending.append((self.server.begin(method, params), answered))

    def settle(self) -> None:
        """Take every answer of the burst, in order."""
        pending, self.pending = self.pending, []
        for request, answered in pending:
            self.take(request.message(30), answered)

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
        self.send("tiro/session/editMessage", lambda _: self.kept.add(tag), **params)

    def rewind(self) -> None:
        self.send("tiro/session/rewind", toSeq=self.dice.randint(0, self.tags))

    # The window and what else a session holds

    def limit(self) -> None:
        limit = self.dice.choice([None, 1, 2, 3, 5, 8, 20])
        self.send("tiro/session/configure", maxHistory=limit)

    def resize(self) -> None:
        self.send("tiro/session/configure", limit={"messages": self.dice.choice([None, 2, 6])})
        self.send("tiro/session/resize", force="lite")

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
            self.server.wait_until(lambda: turn.done or self.heard(kind), 30, f"the event {kind}")

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
            request.message(30)
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
        return json.dumps(shown["messages"])


@pytest.mark.timeout(600)  # with --long
@pytest.mark.parametrize("first", range(0, HISTORIES, BLOCK))
def test_no_history_is_refused_or_loses_anything(
    start: StartServer, provider: Provider, first: int, record_property: Tell
) -> None:
    provider.otherwise(by_its_prompt)
    kills, server = 0, start()
    for seed in range(first, first + BLOCK):
        history = History(server, start, seed)
        try:
            history.run()
        except Exception as error:
            raise AssertionError(f"seed {seed}: {history.said}") from error
        assert provider.refused == [], (seed, history.said)
        provider.requests.clear()
        kills, server = kills + history.said.count("kill"), history.server
    for name, count in (("histories", BLOCK), ("kills", kills), ("served_kills", kills)):
        record_property(name, count)
