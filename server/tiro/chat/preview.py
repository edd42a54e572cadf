"""`/preview`: what would leave the window and what would stand for it; then apply, edit or drop."""

from typing import Any

from tiro.chat.memo_text import Kept, rewritten, text_of
from tiro.chat.talk import Talk
from tiro.chat.told_messages import say_messages
from tiro.errors import InvalidInputError
from tiro.screen_text import counted
from tiro.session.memo import facts

FORCES: dict[str, str | None] = {
    "": "compact",
    "compact": "compact",
    "resize": None,
    "lite": "lite",
    "deep": "deep",
}
"""The word behind the command → what is asked of the server."""

QUESTION = "Do it? [a]pply, [e]dit the text first, [d]rop: "


async def preview(talk: Talk, rest: str) -> None:
    """Show what a compaction, or a resize, would do, and let the person decide."""
    if rest not in FORCES:
        raise InvalidInputError("/preview takes nothing, or one of compact, resize, lite, deep")
    talk.screen.doing("It is worked out what would go; Ctrl-C leaves all as it is")
    asked = {"force": FORCES[rest]}
    shown = await talk.link.request("tiro/session/previewResize", asked)
    if shown["draftId"] is None or not _changes_anything(shown):
        talk.screen.tell("Nothing would change")
        return
    is_memo = shown["decision"]["type"] != "compact" and bool(facts(shown["memo"]))
    kept: Kept = "memo" if is_memo else "summary"
    text = text_of(kept, shown[kept])
    await _show(talk, shown, kept, text)
    if (changes := await _decided(talk, shown, kept, text)) is None:
        talk.screen.tell("Nothing has changed")
    else:
        await _apply(talk, {"draftId": shown["draftId"], **changes})


def _changes_anything(shown: dict[str, Any]) -> bool:
    return bool(shown["evict"]) or shown["tokensBefore"] != shown["tokensAfter"]


async def _show(talk: Talk, shown: dict[str, Any], kept: Kept, text: str) -> None:
    view = await talk.link.request("tiro/session/get")
    going = [message for message in view["messages"] if message["seq"] in shown["evict"]]
    sizes = await sizes_of(talk, shown)
    talk.screen.say(f"{counted(len(going), 'message')} would leave the window: {sizes}")
    say_messages(talk, going)
    if shown["memoRefused"] is not None:
        talk.screen.tell(shown["memoRefused"])
    if text:
        talk.screen.say(f"In their place, the {kept}:")
        talk.screen.say(text, indent=0 if kept == "summary" else None)
    else:
        talk.screen.tell("No text would stand in their place; edit writes one")


async def _decided(
    talk: Talk, shown: dict[str, Any], kept: Kept, text: str
) -> dict[str, Any] | None:
    """What is to be applied besides the draft itself; None: it is dropped, or nobody decides.

    An edited text is not applied yet: it may be edited again, or dropped.
    """
    changes: dict[str, Any] = {}
    while (line := await talk.choose_one(QUESTION)) is not None:
        match line.strip().lower():
            case "a" | "apply":
                return changes
            case "d" | "drop":
                return None
            case "e" | "edit":
                try:
                    value = await rewritten(talk, kept, text, shown[kept])
                except InvalidInputError as error:
                    talk.screen.complain(str(error))
                    continue
                if value is not None:
                    changes, text = {kept: value}, text_of(kept, value)
                    talk.screen.tell(f"The {kept} is as you wrote it, and not applied yet")
    return None


async def _apply(talk: Talk, params: dict[str, Any]) -> None:
    done = await talk.link.request("tiro/session/applyResize", params)
    gone = counted(done["evicted"], "message")
    sizes = await sizes_of(talk, done)
    talk.screen.tell(f"Out of the window: {gone}, {sizes}; /undo takes it back")


async def sizes_of(talk: Talk, done: dict[str, Any]) -> str:
    """From which size to which one, and whether any report has confirmed such estimates."""
    size = await talk.link.request("tiro/session/contextSize", {})
    sure = "" if size["errorPercent"] is not None else " (not yet checked by a report)"
    return f"about {done['tokensBefore']:,} → {done['tokensAfter']:,} tokens{sure}"
