"""Slash commands about what the model gets of a session: its size, its memory, the request."""

import json
from typing import Any

from tiro.assistant.instructions import HEADING
from tiro.chat.memo_text import Kept, rewritten, text_of
from tiro.chat.preview import sizes_of
from tiro.chat.talk import Talk, messages
from tiro.chat.told_messages import say_messages
from tiro.errors import InvalidInputError
from tiro.screen_text import one_line
from tiro.session.memo import facts
from tiro.session.shown import MEMO_HEADING, SUMMARY_HEADING

LINE_CELLS = 80
EDITS: dict[str, Kept | None] = {
    "edit": None,
    "edit memo": "memo",
    "edit summary": "summary",
}
"""The words behind /memo → what is edited; None: the one that there is."""
NO_WINDOW = (
    "How much the model takes is not known, so no message leaves for want of room. To tell it, put"
    " in config.yaml: providers: {{{provider}: {{models: {{{model}: {{context_window: 32768}}}}}}}}"
)
NO_MODEL_YET = (
    "No model is chosen yet: it will be the first that can be used, and how much that takes is"
    " looked up with your first question; /model chooses one"
)
NO_PIN = "No message is pinned"
PARTS = {
    "system": "system prompt",
    "tools": "tools on offer",
    "memo": "memo",
    "summary": "summary",
    "user": "your messages",
    "assistant": "answers",
    "toolUse": "uses of tools",
    "toolResult": "results of tools",
    "attachments": "attached files",
}
"""What takes the room in a request, in plain words."""

LEFT_OUT = {
    "evicted": "not sent, since it left the window",
    "summarized": "not sent, since the summary tells of it",
    "over_limit": "not sent, since there is no room for it",
    "taken_back": "not sent, since you took it back",
    "edited": "not sent, an earlier wording",
    "empty": "not sent, since nothing is in it",
    "thinking": "not sent, since it is thinking only",
    "orphan_result": "not sent, a result of no use of a tool that is sent",
    "unknown_block": "not sent, since no request may hold it",
}
"""Why a message is not in a request (`reason` in PROTOCOL.md), in plain words."""
CHANGED = {
    "empty": "sent without an empty part",
    "thinking": "sent without its thinking",
    "orphan_result": "sent without a result that belongs to no use of a tool",
    "unknown_block": "sent without a part that no request may hold",
    "missing_result": "a use of a tool without a result; one is sent that says so",
    "moved_result": "a tool's result, sent right behind the use it belongs to",
    "new_id": "a use of a tool, sent with an id of its own",
    "placeholder": "a short text is sent where your message is missing",
    "user_in_front": "an earlier question, sent first since a request begins with one",
    "merged": "sent as one with the message before it",
    "role_as_text": "sent as yours, with its unknown role named",
    "unsendable": "sent without characters or numbers that cannot be sent",
    "system_prompt": "sent as part of the system prompt",
}
"""How a message differs in a request (`rule` in PROTOCOL.md), in plain words."""


async def size(talk: Talk, rest: str) -> None:
    """How large the next request is, how sure that is, and what takes the room."""
    size = await talk.link.request("tiro/session/contextSize", {"draft": rest or None})
    tokens, error = size["tokens"], size["errorPercent"]
    of = f" of {size['contextWindow']:,} ({size['ratio']:.1%})" if size["contextWindow"] else ""
    sure = f", give or take {error:.0f} %" if error is not None else ", not yet checked by a report"
    talk.screen.say(f"The next request has about {tokens:,} tokens{of}{sure}:")
    for name, part in size["breakdown"].items():
        if part:
            talk.screen.say(f"  {PARTS[name]:<18} {part:>9,} {part / tokens:>5.0%}")
    if not size["contextWindow"]:
        provider, _, model = ((await talk.link.request("tiro/status"))["model"] or "").partition(
            "/"
        )
        known = NO_WINDOW.format(provider=provider, model=json.dumps(model))
        talk.screen.tell(known if model else NO_MODEL_YET)


async def compact(talk: Talk, rest: str) -> None:
    """Fold all that was said into the summary."""
    talk.screen.doing("A summary is being written; Ctrl-C leaves all as it is")
    done = await talk.link.request("tiro/session/compact")
    if not done["evicted"]:
        talk.screen.tell("Nothing is there to fold into the summary")
        return
    before, after = done["tokensBefore"], done["tokensAfter"]
    sizes = await sizes_of(talk, done)
    talk.screen.tell(f"{messages(done['evicted'])} folded into the summary: {sizes}")
    if after >= before:
        talk.screen.tell("No room was gained; /undo brings the messages back")


async def undo(talk: Talk, rest: str) -> None:
    """Take the last compaction or resize back, and say what came back."""
    before = await talk.link.request("tiro/session/get")
    view = await talk.link.request("tiro/session/undoResize")
    there = {message["seq"] for message in before["messages"]}
    back = [message for message in view["messages"] if message["seq"] not in there]
    talk.screen.tell(f"{messages(len(back))} in the window again")
    say_messages(talk, back)
    for what in ("memo", "summary"):
        if view[what] != before[what]:
            talk.screen.tell(f"The {what} is that of before" if view[what] else f"No {what} now")


async def memo(talk: Talk, rest: str) -> None:
    """What is remembered of what has left the window; with `edit` as the person writes it."""
    kept = await talk.link.request("tiro/memo/get")
    if rest:
        await _edit(talk, rest, kept)
        return
    memo = facts(kept["memo"]) if isinstance(kept["memo"], dict) else kept["memo"]
    if memo:
        talk.screen.say(text_of("memo", memo))
    if kept["summary"]:
        talk.screen.say(kept["summary"])
    if not memo and not kept["summary"]:
        talk.screen.tell("Nothing is remembered yet of messages that have left the window")


async def _edit(talk: Talk, rest: str, kept: dict[str, Any]) -> None:
    if rest not in EDITS:
        raise InvalidInputError(f"/memo takes nothing, or {', '.join(EDITS)}")
    has_only_summary = bool(kept["summary"]) and not kept["memo"]
    which: Kept = EDITS[rest] or ("summary" if has_only_summary else "memo")
    value = await rewritten(talk, which, text_of(which, kept[which]), kept[which])
    if value is None or value == kept[which]:
        talk.screen.tell("Nothing has changed")
        return
    await talk.link.request("tiro/memo/set", {which: value})
    talk.screen.tell(f"The {which} is as you wrote it")


async def pin(talk: Talk, rest: str) -> None:
    """Hold a message in the window, or let it go."""
    if rest:
        if not (number := rest.removeprefix("-")).isdecimal():
            raise InvalidInputError("/pin needs the number of a message, as /show lists it")
        params = {"seq": int(number), "pinned": rest == number}
        await talk.link.request("tiro/session/pin", params)
    view = await talk.link.request("tiro/session/get")
    talk.screen.tell(f"Pinned: {', '.join(map(str, view['pins']))}" if view["pins"] else NO_PIN)
    say_messages(talk, [m for m in view["messages"] if m["seq"] in view["pins"]])


async def explain(talk: Talk, rest: str) -> None:
    """What the next request holds, and what it leaves out; `json`: all of it."""
    if rest not in ("", "json"):
        raise InvalidInputError("/explain takes nothing, or json for the whole request")
    told = await talk.link.request("tiro/session/explain")
    if rest:
        talk.screen.say(json.dumps(told, indent=2, ensure_ascii=False))
        return
    system, say = _words_of(told["system"] or ""), talk.screen.say
    say(f"To {told['model'] or 'the first model that can be used'}, {_about(told['tokens'])}")
    say(f"system prompt of {len(system):,} characters: {one_line(system, LINE_CELLS)}")
    say(f"  {', '.join(_parts_of(system))}")
    say(f"tools: {', '.join(map(_name_of, told['tools'])) or 'none'}")
    for message in told["messages"]:
        say(f"[{message['role'].upper()}] {one_line(_words_of(message), LINE_CELLS)}")
    for words, rows, key in (
        (LEFT_OUT, told["left"], "reason"),
        (CHANGED, told["repairs"], "rule"),
    ):
        for why in dict.fromkeys(row[key] for row in rows):
            seqs = [f"#{row['seq']}" for row in rows if row[key] == why]
            say(f"{words.get(why, why)}: {', '.join(seqs)}")


def _parts_of(system: str) -> list[str]:
    """What stands in a system prompt beside the agent's own words, and what does not."""
    lines, instructions = system.split("\n"), HEADING.format(path="")
    files = [line.removeprefix(instructions) for line in lines if line.startswith(instructions)]
    return [
        "with the memo" if MEMO_HEADING in lines else "no memo yet",
        "with the summary" if SUMMARY_HEADING in lines else "no summary yet",
        *([f"with {path}" for path in files] or ["no AGENTS.md"]),
    ]


def _about(size: dict[str, Any]) -> str:
    of = f" of {size['contextWindow']:,}" if size["contextWindow"] else ""
    return f"about {size['tokens']:,} tokens{of}"


def _name_of(tool: dict[str, Any]) -> str:
    """A tool's name, in whatever form a provider has it."""
    return str(tool.get("name") or tool.get("function", {}).get("name"))


def _words_of(value: Any) -> str:
    """What stands in a provider's message or block: its text, else its JSON."""
    if isinstance(value, list):
        return " ".join(map(_words_of, value))
    if isinstance(value, str):
        return value
    rest = {key: given for key, given in value.items() if key not in ("role", "content", "type")}
    said = _words_of(value.get("content") or value.get("text") or "")
    calls = json.dumps(rest, ensure_ascii=False) if rest and "text" not in value else ""
    return f"{said} {calls}".strip()
