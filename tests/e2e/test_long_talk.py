"""A conversation that never ends: 2,000 messages in a window of 8,000 tokens, with kill -9.

The models are scripted: a summary or a memo holds exactly the facts that its request held, so a
fact that is lost anywhere on the way is missed at the end. How much else it holds changes, from
nothing to more than it was given.
"""

import json
import random
import re
from pathlib import Path
from typing import Any

from tests.e2e import replies
from tests.e2e.client import Pending, Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider, Recorded
from tests.e2e.talk import result, stored, text_of, until, use, view
from tiro.assistant.summary_upkeep import MOST_TURNS_SKIPPED

WINDOW = 8_000
FACT = re.compile(r"FACT-\d+")
TAG = re.compile(r"\bm\d{4}\b")
SHARES = (0.3, 0.95, 0.01, 1.5, 0.6)
"""How long an answer is beside its request."""
BATCHES, BATCH = 20, 84
"""With what the turns add they pass 2,000 messages."""

LINES = (
    "We looked at the parser again and it reads the file in small blocks.",
    "Der Leser hält zwischen zwei Blöcken einen kurzen Puffer, für Zeilen über Grenzen.",
    "解析器以小块读取文件，并在读取之间保留一个短缓冲区。",
    "Парсер читает файл небольшими блоками.",
    "def read(block): return [line for line in block.split('\\n') if line]",
    '{"name": "block", "size": 4096, "lines": [1, 2, 3]}',
    "🙂🚀 done 🎉",
)


def tokens_at_most(request: Recorded) -> int:
    """More than any tokenizer makes of this request."""
    body = request.body
    texts = [request.system, json.dumps(body.get("tools", []))]
    for message in body["messages"]:
        if message["role"] != "system":
            texts += [text_of(message.get("content") or ""), json.dumps(message.get("tool_calls"))]
    text = "".join(texts)
    plain = sum(character.isascii() for character in text)
    return round(plain / 3.3 + (len(text) - plain) * 0.95)


class Models:
    """The model of the talk, of its memo and of its summary in one provider."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.summaries: list[Recorded] = []
        self.at_once = 0
        self.hold: replies.Hold | None = None
        self.turns = 0
        self.is_wordy = True

    def answer(self, request: Recorded) -> replies.Reply:
        size = tokens_at_most(request)
        self.sizes.append(size + request.body.get("max_tokens", 0))  # the answer has to fit too
        if self.sizes[-1] > WINDOW:
            return replies.error(400, "prompt is too long", code="context_length_exceeded")
        usage = replies.usage_chunk(size)
        if request.tool_names:
            return self._turn(usage)
        said = text_of(request.messages[-1]["content"])
        if "current_memo" in said:
            memo = {"facts": sorted(set(FACT.findall(said))), "more": self._more(said)}
            return replies.text(json.dumps({"memo": memo}), usage=usage)
        return self._summary(request, said, usage)

    def _turn(self, usage: bytes) -> replies.Reply:
        self.turns += 1
        if self.turns % 3 == 1:
            given = {"path": f"notes-{self.turns % 4}.txt"}
            uses = [(f"t{self.turns}-{n}", "read_file", given) for n in range(2)]
            return replies.tools(*uses, usage=usage)
        return replies.text(f"answer {self.turns}", usage=usage)

    def _summary(self, request: Recorded, said: str, usage: bytes) -> replies.Reply:
        running = [r for r in self.summaries if not (r.answered.is_set() or r.closed.is_set())]
        self.at_once = max(self.at_once, len(running) + 1)
        self.summaries.append(request)
        facts = " ".join(dict.fromkeys(FACT.findall(said)))
        whole = replies.text(f"They know {facts}. {self._more(said)}", usage=usage)
        if self.hold is None:
            return whole
        return replies.Reply([replies.ROLE, self.hold, *whole.steps[1:]])

    def _more(self, said: str) -> str:
        """Words that nobody needs, in some relation to what was read that lasts for some turns."""
        share = SHARES[self.turns // 8 % len(SHARES)] if self.is_wordy else 0
        return "more " * round(len(said) * share / 5)


class Talk:
    """What was said and stored, message by message."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server = server
        self.said: list[str] = []
        self.facts: dict[str, str] = {}
        self.random = random.Random(seed)

    def line(self) -> str:
        text = f"m{len(self.said):04} {self.random.choice(LINES)}"
        if self.random.random() < 0.04:
            fact = f"FACT-{self.random.randrange(10**6)}"
            text += f" {fact}"
            self.facts[fact] = text.split()[0]
        if self.random.random() < 0.01:
            text += " long " * 600
        self.said.append(text.split()[0])
        return text

    def batch(self, count: int) -> None:
        """Add messages, tool groups among them, all at once; each is answered."""
        for one in self._begin(count):
            assert one.result()["stored"]

    def killed_batch(self, count: int, start: StartServer) -> None:
        """The same, but the server is killed somewhere in it; go on with what it had stored."""
        before = len(self.said)
        pending = self._begin(count)
        for one in pending[: self.random.randrange(count)]:
            one.result()
        self.server.kill()
        answered = sum(one.done for one in pending)
        self.server = start()
        self.server.request("tiro/session/load", {"latest": True})
        tags = TAG.findall(" ".join(text_of(m["content"]) for m in everything(self.server)))
        assert len(tags) >= before + answered
        assert tags == self.said[: len(tags)]
        self.said = tags
        self.facts = {fact: tag for fact, tag in self.facts.items() if tag in tags}

    def _begin(self, count: int) -> list[Pending]:
        pending: list[Pending] = []
        while len(pending) < count:
            for role, content in self._group():
                given = {"role": role, "content": content}
                pending.append(self.server.begin("tiro/session/addMessage", given))
        return pending

    def _group(self) -> list[tuple[str, Any]]:
        if self.random.random() > 0.1:
            return [("user", self.line()), ("assistant", self.line())]
        ids = [f"a{len(self.said)}-{n}" for n in range(self.random.randint(1, 3))]
        text = {"type": "text", "text": self.line()}
        answers = [result(id_, f"{self.line()} x") for id_ in ids]
        uses = [use(id_, path="notes-1.txt") for id_ in ids]
        return [("assistant", [text, *uses]), *(("user", [answer]) for answer in answers)]

    def ask(self) -> None:
        done = self.server.request("tiro/turn/start", {"prompt": self.line()})
        assert done["stopReason"] == "end_turn"


def known(session: dict[str, Any]) -> set[str]:
    """The facts that memo and summary hold."""
    return set(FACT.findall(json.dumps(session["memo"]) + session["summary"]))


def waiting(session: dict[str, Any]) -> list[dict[str, Any]]:
    """What left the window and is in no summary and no memo yet."""
    return [m for m in session["archive"] if m.get("metadata", {}).get("tiro", {}).get("pending")]


def everything(server: Server) -> list[dict[str, Any]]:
    """All messages, oldest first, page by page."""
    rows: list[dict[str, Any]] = []
    while True:
        before = {"beforeSeq": rows[0]["seq"]} if rows else {}
        page = view(server, limit=500, **before)["messages"]
        if not page:
            return rows
        rows = [*page, *rows]


def check(talk: Talk) -> dict[str, Any]:
    """Nothing is deleted, and what is not raw and waiting is known."""
    session = stored(Path(talk.server.request("tiro/session/save")["path"]))
    rows = sorted([*session["archive"], *session["messages"]], key=lambda m: m["seq"])
    assert TAG.findall(" ".join(text_of(row["content"]) for row in rows)) == talk.said
    raw = waiting(session)
    there = {f for m in [*raw, *session["messages"]] for f in FACT.findall(text_of(m["content"]))}
    assert set(talk.facts) - known(session) - there == set()
    return session


def test_two_thousand_messages_in_a_small_window(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U4.1 to U4.5, U8.2 to U8.4, N4.4 to N4.6: nothing is lost, nothing is refused."""
    home.write_config(
        providers={"fake": home.fake(models={"fake-model": {"context_window": WINDOW}})},
        session={"summary": {"enabled": True}},
    )
    for n in range(4):
        home.write(f"notes-{n}.txt", f"line {n}\n" * 40)
    models = Models()
    provider.otherwise(models.answer)
    talk = Talk(start(), seed=7)
    for n in range(BATCHES):
        if n == BATCHES // 2:
            talk.server.request("tiro/session/configure", {"memoEnabled": True})
        if n % 5 == 3:
            talk.killed_batch(BATCH // 2, start)
        models.hold = replies.Hold() if n % 5 == 4 else None
        talk.batch(BATCH)
        for _ in range(2):
            talk.ask()  # it never waits for a summary that is held
        if models.hold is not None:
            models.hold.wait()
            talk.batch(BATCH // 3)  # what is evicted now is not in the summary that is on its way
        if n % 10 == 9:
            talk.server.kill()
            talk.server = start()
            talk.server.request("tiro/session/load", {"latest": True})
        if models.hold is not None:
            check(talk)
            models.hold.release()
    models.is_wordy = False
    for _ in range(MOST_TURNS_SKIPPED + 1):  # after so many failures it is asked again
        talk.ask()
    until(lambda: waiting(check(talk)) == [])
    session = check(talk)
    assert len(session["archive"]) + len(session["messages"]) >= 2_000
    assert max(models.sizes) <= WINDOW
    assert models.at_once == 1
    assert session["memo"]["facts"]
    assert len(session["messages"]) <= 100
