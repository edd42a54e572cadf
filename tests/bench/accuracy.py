"""Rows about the token meter: how far its estimate is off, before and after reports, and its speed.

Measured against two real tokenizers: OpenAI's o200k and the file that Anthropic published. Their
files come with litellm, which is unpacked for them and never imported.
"""

import inspect
import json
import json.decoder
import os
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from tests.bench.row import Row, timed
from tiro import Message
from tiro.session.meter import Calibration, Meter
from tiro.session.tokens import estimate_tokens, weigh

Count = Callable[[str], int]
Talk = Sequence[tuple[str, ...]]
"""The kinds of text in each of its turns."""

ENGLISH = (
    "The parser reads a file in small blocks and keeps a short buffer between reads. When a quoted"
    " field contains a line break, the reader continues until it sees the closing quote, so the"
    " number of rows is not the number of newline characters. Most users never notice this, but an"
    " editor plugin that jumps to the line of an error does. Please don't rely on the old"
    " behaviour; it'll be removed in version 2.0, and we've already marked it as deprecated. "
) * 4
CHINESE = (
    "解析器以小块读取文件，并在两次读取之间保留一个很短的缓冲区。当带引号的字段包含换行符时，"
    "读取器会继续读取，直到遇到结束引号为止，因此行数并不等于换行符的数量。大多数用户不会注意到"
    "这一点，但是会跳转到出错行的编辑器插件会受到影响。请不要依赖旧的行为，它将在第二版中被移除。"
) * 4
ROWS = [
    {
        "id": i,
        "role": ["user", "assistant"][i % 2],
        "created_at": f"2026-11-{i % 28 + 1:02d}T10:{i % 60:02d}:00Z",
        "content": f"Message number {i} about file src/module_{i}.py",
        "usage": {"input_tokens": 100 + i * 7, "output_tokens": 20 + i * 3},
        "tags": ["a", "b", None, True],
    }
    for i in range(30)
]
TEXTS = {
    "English": ENGLISH,
    "Chinese": CHINESE,
    "Python": inspect.getsource(json.decoder)[:8000],
    "JSON with indents": json.dumps(ROWS, indent=2),
    "compact JSON": json.dumps(ROWS, separators=(",", ":")),
}
MODELS = {
    "o200k": "openai/gpt-5",
    "anthropic": "anthropic/claude-4",
    "smollm": "local/smollm2-135m",
}
"""A model that counts as each tokenizer does."""
FRAME_TOKENS = 4
"""What the mark around a message costs in these talks."""
MIXED: Talk = [tuple(TEXTS)] * 8
CHANGING: list[Talk] = [
    [("English", "English", "Python")] * 4 + [("Chinese", "English")] * 4,
    [("Chinese", "Chinese")] * 4 + [("English", "Python")] * 4,
]
SEEDS = 10
BARS = {"no report": 15, "same mix": 4, "changing": 6}
"""The largest mean errors, in per cent."""
SPEED_BYTES = 4_000_000


def rows() -> list[Row]:
    """All rows of this module."""
    counts = _tokenizers()
    return [uncalibrated(counts), *calibrated(counts), speed()]


def uncalibrated(counts: dict[str, Count]) -> Row:
    """The mean error over kinds of text, without any report, against characters / 4."""
    ours, plain = list[float](), list[float]()
    for name, count in counts.items():
        for text in TEXTS.values():
            true = count(text)
            ours.append(_off(estimate_tokens(text, MODELS[name]), true))
            plain.append(_off(len(text) // 4, true))
    return _row("token estimate, no report yet", ours, plain, "characters / 4", BARS["no report"])


def calibrated(counts: dict[str, Count]) -> list[Row]:
    """The error after three reported turns, against one ratio that is learned from them."""
    return [
        _after_reports("token estimate after 3 turns, same mix", counts, [MIXED], BARS["same mix"]),
        _after_reports(
            "the same, in a talk that changes its language", counts, CHANGING, BARS["changing"]
        ),
    ]


def speed() -> Row:
    """How much text is weighed in a second."""
    mix = "".join(TEXTS.values())
    text = mix * (SPEED_BYTES // len(mix.encode()) + 1)
    megabytes = len(text.encode()) / 1e6
    rate = megabytes / min(timed(lambda: weigh(text)) for _ in range(5))
    told = f"{rate:.0f} MB/s"
    return Row("token estimate, speed", told, "-", told, "at least 20 MB/s")


def _tokenizers() -> dict[str, Count]:
    found = find_spec("litellm")
    assert found is not None
    assert found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken  # reads the line above when it is imported
    import tokenizers

    o200k = tiktoken.get_encoding("o200k_base")
    anthropic = tokenizers.Tokenizer.from_file(str(folder / "anthropic_tokenizer.json"))
    return {
        "o200k": lambda text: len(o200k.encode(text, disallowed_special=())),
        "anthropic": lambda text: len(anthropic.encode(text, add_special_tokens=False).ids),
    }


def _after_reports(what: str, counts: dict[str, Count], talks: list[Talk], bar: int) -> Row:
    pairs = [
        pair
        for name, count in counts.items()
        for seed in range(SEEDS)
        for talk in talks
        for pair in errors(MODELS[name], count, talk, random.Random(seed))
    ]
    ours, plain = [ours for ours, _ in pairs], [plain for _, plain in pairs]
    return _row(what, ours, plain, "one ratio", bar)


def errors(
    model: str, count: Count, turns: Talk, chosen: random.Random
) -> Iterator[tuple[float, float]]:
    """How far the meter, and a plain ratio, are off in each turn after the third, in per cent."""
    meter, messages, true, ratio = Meter(), list[Message](), 0, 1.0
    meter.use(model, Calibration())
    for turn, kinds in enumerate(turns):
        for kind in kinds:
            text = _piece(TEXTS[kind], chosen)
            messages.append(Message("user", text, seq=len(messages) + 1))
            true += count(text) + FRAME_TOKENS
        plain = sum(len(str(message.content)) // 4 + FRAME_TOKENS for message in messages)
        if turn >= 3:
            yield _off(meter.measure(messages).tokens, true), _off(plain * ratio, true)
        meter.calibration.observe(meter.weights(messages), true)
        ratio = true / plain


def _piece(text: str, chosen: random.Random) -> str:
    length = min(chosen.randrange(200, 900), len(text) - 1)
    start = chosen.randrange(len(text) - length)
    return text[start : start + length]


def _off(estimate: float, true: int) -> float:
    return abs(estimate - true) / true * 100


def _row(what: str, ours: list[float], plain: list[float], against: str, bar: int) -> Row:
    mine, other = f"{statistics.mean(ours):.1f} %", f"{statistics.mean(plain):.1f} %"
    return Row(what, mine, f"{other} ({against})", mine, f"at most {bar} %")
