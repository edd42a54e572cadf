"""Size estimates (U1.10, M2.9) and the breakdown of a request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.histories import any_history, result, user, uses
from tiro import Message, Session, estimate_tokens
from tiro.session.tokens import IMAGE_TOKENS, measure


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("漢" * 1000, 600, 1500), ("a" * 1000, 200, 350), ("🙂" * 1000, 1000, 4000), ("", 0, 0)],
)
def test_an_estimate_knows_scripts(text: str, least: int, most: int) -> None:
    """B24: characters / 4 is 3 to 4 times too low for Chinese."""
    assert least <= estimate_tokens(text) <= most


@given(st.text(), st.text())
def test_an_estimate_never_falls_when_text_is_added(text: str, more: str) -> None:
    """B24."""
    assert estimate_tokens(text + more) >= estimate_tokens(text)


@given(any_history, st.text(max_size=20))
def test_tokens_are_the_sum_of_the_breakdown(window: list[Message], draft: str) -> None:
    """Protocol, ContextSize."""
    size = measure(window, system="s", tools="t", memo="m", draft=draft, context_window=100)
    parts = [getattr(size.breakdown, name) for name in size.breakdown.__struct_fields__]
    assert size.tokens == sum(parts)
    assert size.ratio == round(size.tokens / 100, 4)


def test_a_picture_counts_the_same_whatever_its_size() -> None:
    """B24."""
    sizes = []
    for data in ("A" * 10, "A" * 3_000_000):
        source = {"type": "base64", "media_type": "image/png", "data": data}
        sizes.append(measure([Message("user", [{"type": "image", "source": source}])]).tokens)
    assert sizes[0] == sizes[1]
    assert sizes[0] >= IMAGE_TOKENS


def test_context_size_is_characters_by_four() -> None:
    """M2.9: tool uses count with their name and input, results with their content."""
    session = Session()
    session.append_message(user("x" * 8)).append_message(uses("a")).append_message(result("a"))
    assert session.context_size() == (8 + len("glob") + len('{"n": "a"}') + len("found")) // 4
