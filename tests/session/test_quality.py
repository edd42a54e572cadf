"""Quality: which answers of a model may become a memo or a summary."""

import asyncio
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from tiro import ResizeError, Session
from tiro.session import memo, resize, summary
from tiro.session.cap import MOST_TOKENS, Cap, cap_in
from tiro.session.prompts import KEEP_WORDS
from tiro.session.quality import FREE_GROWTH_CHARACTERS, pinned_texts, quoted
from tiro.session.summary import Summarizer

PORT = "The server listens on port 8417"
LONG = FREE_GROWTH_CHARACTERS + 1


def said(text: str | None, stop: str = "end_turn", uses: tuple[str, ...] = ()) -> SimpleNamespace:
    return SimpleNamespace(text=text, stop_reason=stop, tool_uses=list(uses))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        (None, "empty"),
        (said(""), "empty"),
        (said("I will not", "refusal"), "refusal"),
        (said('{"memo": {"a": 1}}', "max_tokens"), "cut_off"),
        (said('{"memo": {"a": 1}}', "length"), "cut_off"),
        (said(None, "tool_use", ("glob",)), "tool_uses"),
    ],
)
def test_b19_what_is_no_whole_answer_becomes_neither(reply: Any, reason: str) -> None:
    """B19, N3.8: blank, refused, cut off, only tool uses or thinking; the reason is told."""
    with pytest.raises(ResizeError, match="the old one stays") as caught:
        memo.usable(reply, {}, 100, ())
    assert caught.value.data["reason"] == reason
    with pytest.raises(ResizeError) as caught:
        summary.usable(reply, "", 100)
    assert caught.value.data["reason"] == reason


def test_text_is_no_memo_and_json_is_no_summary() -> None:
    """A5.3, B19 (v)."""
    with pytest.raises(ResizeError, match="no JSON object"):
        memo.usable("They spoke.", {}, 100, ())
    with pytest.raises(ResizeError, match="no text"):
        summary.usable('{"memo": {}}', "", 100)


def test_an_empty_memo_replaces_nothing() -> None:
    """Where there was none it is nothing to note; where there was one it would be lost."""
    assert memo.usable('{"memo": {}}', {}, 100, ()) is None
    with pytest.raises(ResizeError, match="empty"):
        memo.usable('{"memo": {}}', {"a": 1}, 100, ())


@pytest.mark.parametrize(("replaced", "is_taken"), [(LONG - 1, True), (LONG, False)])
def test_neither_may_be_longer_than_what_it_replaces(replaced: int, is_taken: bool) -> None:
    """Where that was over 2,000 characters."""
    for use in (
        lambda: memo.usable({"memo": {"a": "x" * LONG}}, {}, replaced, ()),
        lambda: summary.usable("x" * (LONG + 1), "", replaced),
    ):
        if is_taken:
            assert use()
        else:
            with pytest.raises(ResizeError, match="longer than what it replaces"):
                use()


@pytest.mark.parametrize("text", ["null", " null\n", "{}", "[]", '""', ".", "---", "```\n```"])
def test_a_summary_without_a_word_is_none(text: str) -> None:
    """However little it replaces."""
    with pytest.raises(ResizeError, match="the old one stays"):
        summary.usable(text, "", 10)


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("ok", False),
        ("Fine. " + "." * 100, False),
        ("It is ok", False),
        ("Port 8417", True),
        ("好的。", False),
        ("服务器的端口号是八四一七", True),
        ("서버는 팔사일칠 포트", True),
    ],
)
def test_a_few_letters_stand_for_no_long_talk(text: str, is_taken: bool) -> None:
    """Issue 4, 5; a character of Chinese, Japanese or Korean says more than a letter."""
    assert summary.usable(text, "", LONG - 1) == text
    if is_taken:
        assert summary.usable(text, "", LONG) == text
        return
    with pytest.raises(ResizeError, match="says nothing") as caught:
        summary.usable(text, "", LONG)
    assert caught.value.data["reason"] == "empty"


def test_a_short_fact_is_a_memo_of_a_long_talk() -> None:
    assert memo.usable('{"memo": {"name": "Ann"}}', {}, LONG, ()) == {"name": "Ann"}


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, but I can’t assist with that request.",
        "I am sorry, I cannot do this.",
        "Sorry, but I can't.",
        "\nI cannot help with this conversation.",
        "I can't assist with that.",
    ],
)
def test_a_refusal_in_words_is_a_refusal(text: str) -> None:
    """B19: many providers know no other one."""
    for use in (
        lambda: memo.usable(text, {}, 100, ()),
        lambda: summary.usable(said(text), "", 100),
    ):
        with pytest.raises(ResizeError, match="refused to write it") as caught:
            use()
        assert caught.value.data["reason"] == "refusal"


@pytest.mark.parametrize(
    "text",
    [
        "The user said: I'm sorry, but I can't come.",
        "I can't assist with the port, said the assistant. " + "They went on. " * 15,
        "I cannot reproduce the crash on the second machine; port 8417 is open there.",
    ],
)
def test_what_only_speaks_of_a_refusal_is_taken(text: str) -> None:
    assert summary.usable(text, "", 100) == text.strip()


# --- the cap ---


def letters(text: str) -> int:
    """A token a character."""
    return len(text)


@pytest.mark.parametrize("replaced", [10, 50_000])
def test_neither_may_take_more_than_its_share_of_the_window(replaced: int) -> None:
    """However little or much it replaces; the reason tells both figures."""
    cap = Cap(100, letters)
    for use in (
        lambda: memo.usable({"memo": {"a": "x" * 100}}, {}, replaced, (), cap),
        lambda: summary.usable("x" * 101, "", replaced, (), cap),
    ):
        with pytest.raises(ResizeError, match=r"takes 1\d\d tokens, and it may take 100") as caught:
            use()
        assert caught.value.data["reason"] == "too_large"
    assert memo.usable({"memo": {"a": "x" * 80}}, {}, replaced, (), cap)
    assert summary.usable("x" * 100, "", replaced, (), cap)


@pytest.mark.parametrize(
    ("window", "tokens"), [(8_000, 1_200), (1, 1), (1_000_000, MOST_TOKENS), (None, MOST_TOKENS)]
)
def test_the_cap_is_a_share_of_the_window(window: int | None, tokens: int) -> None:
    assert cap_in(letters, window).tokens == tokens


def test_the_smallest_window_counts() -> None:
    """Who writes it and who reads it need not be the same model."""
    assert cap_in(letters, 100_000, None, 8_000).tokens == 1_200


def test_a_summarizer_tells_the_cap_and_is_sent_the_one_before_whole() -> None:
    session, provider = Session(), Provider("x" * 501, "short")
    old = f"FIRST {'old ' * 240}LAST"
    session.change(summary=old)
    session.add_message("user", "hello").add_message("assistant", "yes")
    summarizer = Summarizer(provider, "m", cap=Cap(500, letters))
    with pytest.raises(ResizeError, match="501 tokens"):
        session.compact(summarizer)
    session.compact(summarizer)
    assert session.summary == "short"
    assert "at most" in provider.prompts[0]
    assert all(old in text for text in provider.texts)


def test_a_summary_that_cannot_be_sent_whole_is_not_replaced() -> None:
    """U4.1: what a model did not see is not in its answer; what it should have read waits."""
    session, provider = Session(), Provider("short")
    session.change(summary="old " * 251)
    session.add_message("user", "hello").add_message("assistant", "yes")
    before = session.snapshot()
    with pytest.raises(ResizeError, match=r"takes 1,004 tokens .* given 1,000") as caught:
        session.compact(Summarizer(provider, "m", cap=Cap(500, letters)))
    assert caught.value.data["reason"] == "unreadable"
    assert session.snapshot() == before
    assert provider.texts == []


def memo_session(old: dict[str, Any], *answers: str) -> tuple[Session, list[str]]:
    """A session whose memo of 500 tokens these answers become, and what its model was sent."""
    session, asked, left = Session({"session.mode": "memo"}), list[str](), list(answers)

    async def model(messages: list[Any]) -> str:
        asked.append("".join(message["content"] for message in messages))
        return left.pop(0)

    session.change(memo=old)
    session.handlers = replace(session.handlers, memo_model=model, memo_cap=Cap(500, letters))
    session.add_message("user", "hello")
    return session, asked


def test_a_memo_is_told_the_cap_and_sent_the_one_before_whole() -> None:
    """A refused one leaves cursor and memo; what it has not read waits for the next (U4.2)."""
    old = f"FIRST {'old ' * 230}LAST"
    answers = ['{"memo": {"a": "%s"}}' % ("x" * 500), '{"memo": {"a": "y"}}']
    session, asked = memo_session({"all": old}, *answers)
    session.resize(force="lite")
    assert session.memo["all"] == old
    assert session.memo_cursor == 0
    session.resize(force="lite")
    assert session.memo["a"] == "y"
    assert session.memo_cursor == 1
    assert "at most" in asked[0]
    assert all(old in text for text in asked)


def test_a_memo_that_cannot_be_sent_whole_is_not_replaced() -> None:
    """U4.1: its model is not even asked; a model that can read it goes on where it was."""
    old = {"all": "old " * 250}
    session, asked = memo_session(old, '{"memo": {"a": "y"}}')
    found = asyncio.run(resize.resize(session, session.settings, "deep"))
    assert re.search(r"takes 1,0\d\d tokens .* given 1,000", found.memo_refused or "")
    assert session.memo["all"] == old["all"]
    assert (session.memo_cursor, asked) == (0, [])
    session.handlers = replace(session.handlers, memo_cap=Cap(600, letters))
    session.resize(force="lite")
    assert (session.memo["a"], session.memo_cursor) == ("y", 1)
    assert old["all"] in asked[0]


def test_a_memo_that_grows_with_what_it_reads_reads_less_at_once() -> None:
    """A model that keeps half of all it is given still gets on, in smaller pieces."""
    session, sizes = Session({"session.mode": "memo"}), list[int]()

    async def model(messages: list[Any]) -> str:
        given = json.loads(messages[1]["content"])
        sizes.append(len(given["messages"]))
        words = str(given["current_memo"]) + str(given["messages"])
        return json.dumps({"memo": {"a": words[: len(words) // 2]}})

    session.handlers = replace(session.handlers, memo_model=model, memo_cap=Cap(1_000, letters))
    for n in range(32):
        session.add_message("user", f"{n} {'x' * 80}")
    session.resize(force="lite")
    assert session.memo_cursor == 32
    assert len(session.memo["a"]) <= 1_000
    assert max(sizes) == 32
    assert len(sizes) < 20


# --- pinned words ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "is_quoted"),
    [
        (f"They said: {PORT}.", True),
        (f"They said: {PORT.replace(' ', chr(10) + ' ')}.", True),
        ({"facts": ["x", {PORT: True}]}, True),
        ({"facts": [PORT.upper()]}, False),
        ({"server": {"port": 8417}}, False),
        ("", False),
        (None, False),
    ],
)
def test_what_quotes_a_pinned_text(where: Any, is_quoted: bool) -> None:
    """Word for word, in any value of a memo, however the lines are broken."""
    assert quoted([PORT], where) == ([PORT] if is_quoted else [])


def test_a_very_short_text_is_quoted_by_chance() -> None:
    assert quoted(["ok", " "], "ok ok") == []


def test_a_new_one_keeps_the_pinned_words_of_the_old() -> None:
    old = {"facts": [PORT]}
    assert memo.usable({"memo": {"net": PORT}}, old, 100, [PORT]) == {"net": PORT}
    with pytest.raises(ResizeError, match="pinned words 'The server") as caught:
        memo.usable({"memo": {"net": "a port"}}, old, 100, [PORT])
    assert caught.value.data["reason"] == "pinned_lost"
    assert memo.usable({"memo": {"net": "a port"}}, {"facts": []}, 100, [PORT]), "not in the old"
    assert memo.usable({"memo": {"net": "a port"}}, old, 100, []), "not pinned any more"
    assert summary.usable(f"Known: {PORT}.", f"{PORT}.", 100, [PORT])
    with pytest.raises(ResizeError, match="pinned words"):
        summary.usable("They set up a server.", f"{PORT}.", 100, [PORT])


def pinned_session() -> Session:
    """A session whose memo and summary both quote a pinned message."""
    session = Session()
    session.add_message("user", PORT).add_message("assistant", "noted").pin(1)
    session.change(memo={"facts": [PORT]}, summary=f"First of all: {PORT}.")
    assert list(pinned_texts(session)) == [PORT]
    return session


class Provider:
    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.prompts: list[str] = []
        self.texts: list[str] = []

    async def chat(self, **given: Any) -> str:
        self.prompts.append(given["messages"][0]["content"])
        self.texts.append(given["messages"][1]["content"])
        return self.replies.pop(0)


def test_a_summary_that_loses_pinned_words_is_refused() -> None:
    """The quality check, M7.1: the model is told what to keep, and nothing changes without it."""
    session, provider = pinned_session(), Provider("They spoke.", f"{PORT}; they spoke.")
    before = session.snapshot()
    with pytest.raises(ResizeError, match="pinned words"):
        session.compact(Summarizer(provider, "m"))
    assert session.snapshot() == before
    assert f"{KEEP_WORDS}\n- {PORT}" in provider.prompts[0]
    session.compact(Summarizer(provider, "m"))
    assert session.summary == f"{PORT}; they spoke."


def test_a_memo_that_loses_pinned_words_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """The old one stays, nothing counts as read, and the next one that keeps them is taken."""
    session = pinned_session()
    provider = Provider('{"memo": {"port": 1}}', '{"memo": {"facts": ["' + PORT + '"], "b": 2}}')
    session.set_settings("session.memo.model", provider).use_memo(messages=1)
    asyncio.run(session.async_resize("lite"))
    assert session.memo["facts"] == [PORT]
    assert session._memo_cursor == 0
    assert "pinned words" in caplog.text
    assert KEEP_WORDS in provider.prompts[0]
    session.add_message("user", "more").resize("lite")
    assert (session.memo["b"], session._memo_cursor) == (2, 3)


@pytest.mark.parametrize(("tokens", "words"), [(1_200, 200), (100, 60)])
async def test_a_summary_s_model_is_told_one_number_of_words(tokens: int, words: int) -> None:
    """The lower one of what a summary should take and of what is taken at all."""
    provider = Provider("short")
    summarizer = Summarizer(provider, "m", cap=Cap(tokens, letters))
    await summarizer.summarize_async([{"role": "user", "content": "hi"}], "", lambda text: None)
    (told,) = provider.prompts
    assert re.findall(r"\d+ words", told) == [f"{words} words"]
