"""What hides in a text is shown one visible way, in the terminal, in previews and in lists."""

import pytest

from tiro.screen_text import flat, one_line
from tiro.session.hidden import harmless, visible

HIDING = {
    "a\x00b": "a␀b",
    "\x1b[31m": "␛[31m",
    "a\rb": "a␍b",
    "a\x7fb": "a␡b",
    "a\x85b": "a⟨U+0085⟩b",
    "\u202etxt": "⟨U+202E⟩txt",
    "a\u2066b\u2069": "a⟨U+2066⟩b⟨U+2069⟩",
    "pay\u200bpal": "pay⟨U+200B⟩pal",
    "pay\u200dpal": "pay⟨U+200D⟩pal",
    "a\u200cé": "a⟨U+200C⟩é",
    "so\xadft": "so⟨U+00AD⟩ft",
    "a\u2028b": "a⟨U+2028⟩b",
    "\ufeffa": "⟨U+FEFF⟩a",
    "a\u3164b": "a⟨U+3164⟩b",
    "\U000e0041": "⟨U+E0041⟩",
    "\ud800": "⟨U+D800⟩",
}


@pytest.mark.parametrize("text", HIDING)
def test_what_hides_is_shown(text: str) -> None:
    assert visible(text) == HIDING[text]
    assert flat(text) == HIDING[text]
    assert one_line(f"x\n{text}", 60) == f"x {HIDING[text]}"


@pytest.mark.parametrize(
    "text", ["a\tb\n", "Füße 漢字", "👩\u200d👩\u200d👧 ⚠\ufe0f", "می\u200cخواهم", "\xa0\u3000"]
)
def test_what_people_write_stays(text: str) -> None:
    assert visible(text) == text
    assert harmless(text) == text


def test_prose_keeps_what_does_not_act_and_plain_line_ends() -> None:
    assert harmless("a\r\nb\r") == "a\nb"
    assert harmless("a\rb\x1b[2J\u202e") == "a␍b␛[2J⟨U+202E⟩"
    assert harmless("so\xadft\u200b") == "so\xadft\u200b"
