"""Secrets out of text, in every spelling and however it comes in pieces (U9.11, B52)."""

import json
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tiro.session import secrets as secrets_module
from tiro.session.secrets import KnownSecrets, redact, spellings

KEY = 'sk-pa/th+ü"1'


@pytest.mark.parametrize(
    "written",
    [
        KEY,
        f"  {KEY}\n",
        quote(KEY),
        quote(KEY, ""),
        json.dumps(KEY),
        json.dumps(KEY, ensure_ascii=False),
        json.dumps(KEY).replace("/", "\\/"),
        r"sk-pa/th\u002B\u00FC\u00221",
        "".join(f"\\u{ord(character):04x}" for character in KEY),
    ],
)
def test_a_secret_is_found_in_each_spelling(written: str) -> None:
    assert not [form for form in spellings([KEY]) if form in redact(written, [KEY])]
    assert "[secret]" in redact(written, [KEY])
    assert "[secret]" in KnownSecrets([f" {KEY} "]).text(written), "blanks are no part of it"


@pytest.mark.parametrize(
    "written", [r"k\u003dy-\u0026x\u0027z", r"k=y-\u0026x'z", r"k=y-\u0026x\u0027z"]
)
def test_a_secret_is_found_however_json_is_written(written: str) -> None:
    """As the writers of Java, Go and .NET do it; a provider may give a key back in its error."""
    assert redact(written, ["k=y-&x'z"]) == "[secret]"


@pytest.mark.parametrize("placeholder", ["lm-studio", "sk-no-key-required", "none", "2026-11-28"])
def test_what_could_be_words_stays_in_what_tools_give_back(placeholder: str) -> None:
    """A file in which the placeholder stands could not be edited any more."""
    known = KnownSecrets([placeholder])
    assert known.text(f"use {placeholder} here") == f"use {placeholder} here"
    assert known.are_in(placeholder) == (len(placeholder) > 4), (
        "a variable is a secret all the same"
    )


def test_secrets_only_become_more() -> None:
    known = KnownSecrets(["first-key-1"])
    pieces = known.pieces()
    known.add(["second-key-2"])
    assert known.text("first-key-1 second-key-2") == "[secret] [secret]"
    assert pieces.add("first-key-1.") == "[secret].", "and none that began before is lost"


def test_what_several_threads_add_at_once_is_all_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key command's key must not be lost to that of another one."""
    known = KnownSecrets()
    added = [[f"K{n}-{m}-Secret" for m in range(12)] for n in range(4)]

    def slow(values: Iterable[str]) -> list[str]:
        time.sleep(0.0002)
        return [*values]

    def add(own: list[str]) -> None:
        for secret in own:
            known.add([secret])

    monkeypatch.setattr(secrets_module, "spellings", slow)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, added))
    assert [secret for own in added for secret in own if not known.are_in(secret)] == []


SECRETS = ["ab1ab1ab2", "b1ab2cd3cd3", "ab1ab1ab2-and-more-9", "8d3cd3cd"]
PARTS = st.sampled_from(["a", "ab1", "ab1ab2", "cd3", "-and-more-9", "8d3cd3cd", " ", *SECRETS])


@given(st.lists(PARTS, max_size=12), st.data())
@example(["b1ab2", "cd3cd3"], None)
def test_no_secret_is_in_the_pieces(parts: list[str], data: st.DataObject | None) -> None:
    """However it is cut; and nothing is lost that is no secret."""
    text, shown, at = "".join(parts), "", 0
    pieces = KnownSecrets(SECRETS).pieces()
    while at < len(text):
        size = data.draw(st.integers(1, 9)) if data else 5
        shown += pieces.add(text[at : at + size])
        at += size
    shown += pieces.add("\n")
    assert not [secret for secret in SECRETS if secret in shown]
    if not any(secret in text for secret in SECRETS):
        assert shown == f"{text}\n"


def test_pieces_that_begin_no_secret_come_at_once() -> None:
    pieces = KnownSecrets(["sk-1234567"]).pieces()
    assert [pieces.add(piece) for piece in ("hi ", "all s", "k-12", "x\n")] == [
        "hi ",
        "all ",
        "",
        "sk-12x\n",
    ]
