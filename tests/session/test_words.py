"""Text as words: what a search finds, whatever case, accents and script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiro import Message
from tiro.session.words import SNIPPET_CHARACTERS, holds, phrases, searchable, snippet, words


def found(query: str, text: str) -> bool:
    wanted = phrases(query)
    assert wanted
    assert (snippet(text, wanted) is not None) == all(p.is_in(words(text)) for p in wanted)
    return snippet(text, wanted) is not None


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("config", "The CONFIG file"),
        ("Cafe", "un café"),
        ("café", "UN CAFE\u0301"),
        ("STRASSE", "Straße"),
        ("ξενος", "ΞΈΝΟΣ"),
        ("ёлка", "ЕЛКА"),
        ("two words", "words, and two"),
        ('"two words"', "two\nwords"),
        ('"two words', "two-words"),
        ("read_file", "the read_file tool"),
        ("file", "the read_file tool"),
        ("src/a.py", "in src/a.py:12"),
        ("conf*", "configuration"),
        ("漢字", "日本語の漢字検索"),
        ("字", "漢字"),
        ("漢", "漢字"),
        ("検索", "漢字検索"),
        ("字検索", "漢字検索abc"),
        ("abc漢", "abc漢字"),
        ("日本語 漢字", "漢字、日本語"),
        ("ไทย", "ภาษาไทย"),
        ("한국", "한국 사람"),
        ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
        ("हिन्दी", "यह हिन्दी है"),
        ("ａｂｃ", "abc"),
        ("AND", "this and that"),
        ("NEAR(a", "near a"),
        ("12", "12"),
        ("🙂", "fine🙂"),
        ("🎉", "🙂🎉 done"),
        ("🙂🎉", "so 🙂🎉🎉"),
        ("👍", "👍🏽"),
        ("👩‍💻", "she 👩‍💻 codes"),
        ("🇩🇪 ok", "ok 🇩🇪"),
        ("✅", "✅ done"),
        ("done", "✅done"),
        ("getUserName()", "call getusername(1)"),
        ("foo.bar()", "x = foo.bar()"),
        ("--dry-run", "use `--dry-run`"),
    ],
)
def test_a_query_finds(query: str, text: str) -> None:
    assert found(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("config", "configuration"),
        ('"two words"', "two more words"),
        ("one two", "one"),
        ("漢検", "漢字検索"),
        ("字漢", "漢字 字"),
        ("か*", "がく"),
        ("ab字", "ab 漢字"),
        ("a_b", "b a"),
        ("🙂", "🎉"),
        ("🎉🙂", "🙂🎉"),
    ],
)
def test_a_query_does_not_find(query: str, text: str) -> None:
    assert not found(query, text)


@pytest.mark.parametrize("query", ["", " ", '"', '""', "*", "(", "^", "' -", "→", "\0", '"(" *'])
def test_a_query_without_a_word_wants_nothing(query: str) -> None:
    assert phrases(query) == []


@given(st.text(max_size=300))
def test_any_text_and_a_chinese_word_in_any_text_are_found(text: str) -> None:
    """A text finds itself, and a Chinese word is found whatever stands around it."""
    whole = phrases('"' + text.replace('"', " ") + '"')
    assert all(phrase.is_in(words(text)) for phrase in whole)
    assert snippet(f"{text}漢字検索全文{text}", phrases("字検索全")) is not None


MIXED = st.text("aB é\u0301ßΣ漢字ほ゛゜ﬁＡ_-*", max_size=12)


@given(MIXED, MIXED)
def test_what_holds_a_phrase_is_what_has_it_among_its_words(text: str, query: str) -> None:
    """A text that is not taken apart would not have been found."""
    wanted = phrases(query)
    assert holds(text, wanted) == all(phrase.is_in(words(text)) for phrase in wanted)


@given(st.text(max_size=2000), st.text(max_size=400))
def test_a_snippet_is_one_short_line_that_shows_the_hit(before: str, after: str) -> None:
    shown = snippet(f"{before} Übermut {after}", phrases("ubermut"))
    assert shown is not None
    assert len(shown) <= SNIPPET_CHARACTERS + 2
    assert "\n" not in shown
    assert phrases("ubermut")[0].is_in(words(shown))


def test_a_snippet_deep_in_a_long_text_shows_the_hit() -> None:
    for filler in ("x" * 50_000, "word " * 20_000, "漢" * 30_000, "é " * 20_000, "\n" * 9_999):
        shown = snippet(f"{filler} needle {filler}", phrases("needle"))
        assert shown is not None
        assert "needle" in shown
    shown = snippet("漢" * 9_000 + "字検索" + "漢" * 9_000, phrases("検索"))
    assert shown is not None
    assert "検索" in shown


def test_all_that_was_said_is_searched() -> None:
    blocks = [
        {"type": "text", "text": "said"},
        {"type": "thinking", "thinking": "thought"},
        {"type": "tool_use", "id": "a", "name": "grep", "input": {"p": ["asked", {"n": 7}]}},
        {"type": "attachment", "kind": "file", "path": "/src/x.py", "text": "attached"},
        {"type": "image", "source": {"type": "base64", "data": "UElD"}},
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "got"}]},
    ]
    text = searchable(Message("assistant", blocks))
    assert words(text) == " said thought grep asked 7 src x py attached got "
    assert searchable(Message("user", "plain")) == "plain"
