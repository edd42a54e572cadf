"""Size estimates (U1.10, M2.9) and the breakdown of a request."""

import base64
import random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.histories import any_history, result, user, uses
from tiro import Message, Session, estimate_tokens
from tiro.session.meter import IMAGE_TOKENS, Calibration, Meter
from tiro.session.tokens import family_of


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [("漢" * 1000, 600, 1500), ("a" * 1000, 200, 350), ("🙂" * 1000, 1000, 4000), ("", 0, 0)],
)
def test_b24_an_estimate_knows_scripts(text: str, least: int, most: int) -> None:
    """B24: characters / 4 is 3 to 4 times too low for Chinese."""
    assert least <= estimate_tokens(text) <= most


@given(st.text(), st.text())
def test_b24_an_estimate_never_falls_when_text_is_added(text: str, more: str) -> None:
    """B24."""
    assert estimate_tokens(text + more) >= estimate_tokens(text)


@given(any_history, st.text(max_size=20))
def test_tokens_are_the_sum_of_the_breakdown(window: list[Message], draft: str) -> None:
    """Protocol, ContextSize."""
    size = Meter().measure(window, system="s", tools="t", memo="m", draft=draft, context_window=100)
    parts = [getattr(size.breakdown, name) for name in size.breakdown.__struct_fields__]
    assert size.tokens == sum(parts)
    assert size.ratio == round(size.tokens / 100, 4)


def test_b24_a_picture_counts_the_same_whatever_its_size() -> None:
    """B24."""
    sizes = []
    for data in ("A" * 10, "A" * 3_000_000):
        source = {"type": "base64", "media_type": "image/png", "data": data}
        sizes.append(
            Meter().measure([Message("user", [{"type": "image", "source": source}])]).tokens
        )
    assert sizes[0] == sizes[1]
    assert sizes[0] >= IMAGE_TOKENS


def test_context_size_is_characters_by_four() -> None:
    """M2.9: tool uses count with their name and input, results with their content."""
    session = Session()
    session.append_message(user("x" * 8)).append_message(uses("a")).append_message(result("a"))
    assert session.context_size() == (8 + len("glob") + len('{"n": "a"}') + len("found")) // 4


def test_b24_a_dump_of_base64_counts_for_what_it_is() -> None:
    """B24: it was four times too low; a long word is no dump."""
    data = base64.b64encode(random.Random(1).randbytes(30_000)).decode()
    assert 20_000 <= estimate_tokens(data) <= 40_000
    assert estimate_tokens("longword" * 20) < 60


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("openai/gpt-5", "openai"),
        ("openrouter/anthropic/claude-x", "anthropic"),
        ("ollama/qwen", ""),
        (None, ""),
    ],
)
def test_a_model_belongs_to_a_family(model: str | None, family: str) -> None:
    """Factors differ by provider family."""
    assert family_of(model) == family


def test_only_new_messages_are_weighed() -> None:
    """Only new text is estimated each turn; another family weighs anew."""
    session = Session()
    for n in range(50):
        session.add_message("user", f"{n} " + "x" * 2_000)
    meter = session.meter
    first = meter.measure(session.newest_first).tokens
    with mock.patch("tiro.session.meter.weigh", side_effect=AssertionError):
        assert meter.measure(session.newest_first).tokens == first
    meter.use("anthropic/claude-x", Calibration())
    session.add_message("user", "漢" * 100)
    assert meter.measure(session.newest_first).tokens >= first + 90


TRUE_FACTORS = (1.1, 0.85, 1.3)


def reported(weights: tuple[float, float, float]) -> int:
    return round(sum(w * f for w, f in zip(weights, TRUE_FACTORS, strict=True)))


def test_a_text_is_weighed_once_a_family() -> None:
    meter, text = Meter(), "漢字" * 100
    for model in ("gpt-5", "claude-x", "gpt-5"):
        meter.use(model, Calibration())
        assert meter.text(text) == estimate_tokens(text, model)
    with mock.patch("tiro.session.meter.weigh", side_effect=AssertionError):
        assert meter.fork().measure([], system=text).tokens == meter.text(text)


def test_reports_correct_the_estimate_also_when_the_language_changes() -> None:
    """The meter's bars: 4 % after three reports, 6 % where the language changes."""
    meter, messages = Meter(), list[Message]()
    kinds = ["plain words go here " * 40, "if (x[1] == 2) { y = 3; }\n" * 40]
    kinds += ["解析器以小块读取文件" * 30]
    errors = []
    for turn, text in enumerate([kinds[0], kinds[1], kinds[0], kinds[1], *[kinds[2]] * 4]):
        messages.append(Message("user", text, seq=turn + 1))
        weights = meter.weights(messages)
        true = reported(weights)
        errors.append(abs(meter.measure(messages).tokens - true) / true * 100)
        meter.calibration.observe(weights, true)
    assert max(errors[3:4]) < 4
    assert max(errors[5:]) < 6
    assert meter.measure(messages).error_percent is not None


def test_a_report_that_makes_no_sense_spoils_nothing() -> None:
    """The estimate stays within bounds, whatever a provider says."""
    calibration = Calibration()
    for wrong in (0, -5, 10**12, 1):
        calibration.observe((100.0, 100.0, 0.0), wrong)
        assert calibration.factors == (1.0, 1.0, 1.0)
    assert calibration.error_percent is None


def test_a_refusal_as_too_long_makes_the_next_estimate_larger() -> None:
    """U8: by a lower bound; an exact report afterwards counts as ever."""
    calibration, weights = Calibration(), (3_000.0, 2_000.0, 0.0)
    calibration.observe_refusal(weights, 6_000)
    assert 5_900 < calibration.tokens(weights) <= 6_000
    calibration.observe_refusal(weights, 5_500)  # that was known
    assert 5_900 < calibration.tokens(weights) <= 6_000
    calibration.observe_refusal(weights, 10**9)  # that cannot be
    assert 5_900 < calibration.tokens(weights) <= 6_000
    calibration.observe(weights, 5_300)
    assert calibration.tokens(weights) == pytest.approx(5_300, rel=0.02)


def test_no_report_no_error() -> None:
    """ContextSize: the error is null until it is known."""
    assert Meter().measure([Message("user", "hi")]).error_percent is None
