"""A working day in one go: turns with tools, cancels, faults of the provider, resizes, restarts.

What a server holds at the evening it must also have held in the morning: memory, handles, children.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.e2e import replies
from tests.e2e.client import Pending, Server
from tests.e2e.conftest import StartServer, Tell
from tests.e2e.home import Home
from tests.e2e.provider import Provider, Recorded
from tests.e2e.replies import Break, Pause, Reply
from tests.e2e.talk import begin_ask, latest, text_of, until
from tests.e2e.test_long_talk import everything
from tests.processes import children_of, memory_bytes, open_files
from tests.sizes import sized

REAL_PROCESSES = True
TURNS = sized(fast=60, normal=150, long=5000)
MORNING = min(100, TURNS // 3)
"""So many turns of the last server, until all that it loads once is there."""
FILES = 5
FEW_HANDLES = 4
"""As many as may be open at one moment and not at another: a journal, a connection."""
FAULTS = (
    replies.error(400, "no"),
    replies.error(429, "slow down", headers=[("retry-after", "0")]),
    replies.page(),
    Reply([replies.ROLE, replies.text_chunk("half"), Break()]),
    Reply([replies.ROLE, replies.text_chunk("half"), Break(reset=True)]),
)


TOOLS: dict[str, Callable[[int], list[tuple[str, str, Any]]]] = {
    "read": lambda n: [
        (f"r{n}", "read_file", {"path": f"f{n % FILES}.txt"}),
        (f"g{n}", "grep", {"pattern": f"line {n % 9}"}),
    ],
    "write": lambda n: [
        (f"w{n}", "write_file", {"path": f"new{n % FILES}.txt", "content": f"text {n}\n"})
    ],
    "run": lambda n: [(f"c{n}", "run_command", {"command": f"echo {n}; ls"})],
}
"""What the model does for a prompt of that kind; each time something else."""


class Provided:
    """The provider of the day, which fails in one of twenty answers."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.uses = 0

    def answer(self, request: Recorded) -> Reply:
        """Tool uses as the newest prompt wants them, then a text."""
        if self.dice.random() < 0.05:
            return self.dice.choice(FAULTS)
        if not request.tool_names:
            return replies.text("They worked on the files.")
        messages = request.messages
        prompt = next(text_of(m["content"]) for m in reversed(messages) if m["role"] == "user")
        kind = prompt.rpartition("[")[2].partition("]")[0]
        if kind == "slow":
            return replies.stream(replies.text_chunk("half"), Pause(60))
        if kind in TOOLS and messages[-1]["role"] != "tool":
            self.uses += 1
            return replies.tools(*TOOLS[kind](self.uses))
        return replies.text(*[f"word{n} " for n in range(20)])


class Day:
    """The editor's side of the day."""

    def __init__(self, start: StartServer, seed: int) -> None:
        self.start = start
        self.server = start()
        self.dice = random.Random(seed)
        self.kept: set[str] = set()
        self.failed = 0
        self.turns = self.turns_of_server = 0
        self.held = Counter[str]()

    def pass_by(self) -> None:
        """All turns, and what happens between them; the last server has most of them."""
        while self.turns < TURNS:
            self.turn()
            if self.turns % 25 == 0:
                self.server.request("tiro/session/resize", {"force": "lite"})
            if self.turns % 40 == 0:
                self.take(self.server.begin("tiro/session/compact"))
            if self.turns % 60 == 0:
                self.server.request("tiro/session/save")
                latest(self.server)
            if self.turns % 150 == 0:
                self.server.request("tiro/session/clear")
            if self.turns == TURNS // 3:
                self.restart()
            if self.turns_of_server == MORNING:
                self.held = held(self.server)

    def turn(self) -> None:
        """A turn of some kind; some are cancelled."""
        self.turns += 1
        self.turns_of_server += 1
        kind = self.dice.choices(["plain", "read", "write", "run", "slow"], [4, 3, 2, 1, 1])[0]
        tag = f"m{self.turns:04}."
        turn = begin_ask(self.server, f"{tag} [{kind}]")
        if kind == "slow":
            self.server.request("tiro/turn/cancel")
        done = self.take(turn)
        if done is not None and done["lastSeq"] >= done["firstSeq"]:
            self.kept.add(tag)
        if self.turns % 20 == 0:
            self.server.forget()

    def take(self, asked: Pending) -> Any:
        """The result of what a model was asked for; None where the provider failed."""
        answer = asked.message()
        if "error" in answer:
            assert answer["error"]["data"]["kind"] == "modelFailed", answer
            self.failed += 1
        return answer.get("result")

    def restart(self) -> None:
        """The editor is closed and opened again."""
        assert self.server.shutdown() == 0
        self.server = self.start()
        self.turns_of_server = 0
        latest(self.server)


def held(server: Server) -> Counter[str]:
    """What the server's process holds: kilobytes, open handles and children."""
    pid = server.process.pid
    kilobytes, handles = memory_bytes(pid) // 1024, len(open_files(pid))
    return Counter(kilobytes=kilobytes, handles=handles, children=len(children_of(pid)))


def tags(server: Server) -> set[str]:
    """The tag of every prompt in every session of the directory."""
    found = set[str]()
    for row in server.request("tiro/session/list", {"limit": 1000})["sessions"]:
        server.request("tiro/session/load", {"path": row["path"]})
        found |= {text_of(m["content"]).split()[0] for m in everything(server) if m["content"]}
    return found


def test_a_working_day_leaves_nothing_behind_and_loses_nothing(
    start: StartServer, home: Home, provider: Provider, record_property: Tell
) -> None:
    """P1, P3: what is acknowledged is there, and the strict provider never refuses."""
    home.write_config(
        permission={"edit": "allow", "write": "allow", "bash": "allow"},
        session={"summary": {"enabled": True}},
        providers={"fake": home.fake(models={"fake-model": {"context_window": 16_000}})},
    )
    for n in range(FILES):
        home.write(f"f{n}.txt", "".join(f"line {m} of file {n}\n" for m in range(40)))
    dice = random.Random(11)
    provided = Provided(dice)
    provider.otherwise(provided.answer)
    day = Day(start, seed=12)
    day.pass_by()
    morning = day.held
    until(lambda: held(day.server)["children"] <= morning["children"])
    evening = held(day.server)
    assert evening["kilobytes"] <= 1.2 * morning["kilobytes"], (morning, evening)
    assert evening["handles"] <= morning["handles"] + FEW_HANDLES, (morning, evening)
    assert day.failed > TURNS // 100
    assert tags(day.server) >= day.kept
    assert day.server.shutdown() == 0
    record_property("day_turns", day.turns)
