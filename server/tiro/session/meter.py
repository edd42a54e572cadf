"""The meter of a session: how large its next request is, in tokens, and how sure that is.

Messages are weighed once. What a provider reports for a request corrects the estimate for that
model: one factor for words, one for code, one for other scripts, so that a talk that changes its
language stays right. The running error is shown beside the figure.
"""

import copy
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from tiro.session.messages import (
    AttachmentBlock,
    Block,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    blocks_of,
    read_block,
    result_text,
)
from tiro.session.tokens import Weights, family_of, to_json, weigh

IMAGE_TOKENS = 1600
"""What a provider counts for a picture, whatever its size in bytes."""

MESSAGE_TOKENS = 4
"""What the frame of a message costs: its role and the marks around it."""

MOST_TEXTS = 8
"""How many texts besides the messages have known weights."""

Part: TypeAlias = tuple[str, Weights]
"""What something counts for, and under which name of the breakdown."""


class Breakdown(msgspec.Struct, frozen=True):
    """Tokens by where they come from."""

    system: int = 0
    tools: int = 0
    memo: int = 0
    summary: int = 0
    user: int = 0
    assistant: int = 0
    tool_use: int = 0
    tool_result: int = 0
    attachments: int = 0


class ContextSize(msgspec.Struct, frozen=True):
    """The estimated size of a request, in tokens; `tokens` is the sum of the breakdown."""

    tokens: int
    error_percent: float | None
    context_window: int | None
    ratio: float | None
    breakdown: Breakdown


class Learned(msgspec.Struct, frozen=True):
    """What a calibration knows, in the form in which it is kept."""

    factors: Weights
    spread: tuple[Weights, Weights, Weights]
    error_percent: float | None

    def is_sound(self) -> bool:
        """Whether a calibration can go on from it, wherever it comes from."""
        rows, wide = self.spread, MOST_SPREAD
        return (
            all(LEAST <= factor <= MOST for factor in self.factors)
            and all(-wide <= value <= wide for row in rows for value in row)
            and all(rows[i][i] > 0 for i in range(3))
            and (self.error_percent is None or self.error_percent >= 0)
        )


class Calibration:
    """What the reports of one model's provider teach about the estimate.

    A Kalman filter over the three factors, each 1 at first: a report moves the factor of a group by
    how much of the request it was and how sure the factor is already. O(1) a report.
    """

    def __init__(self, known: Learned | None = None) -> None:
        self.factors: Weights = (1.0, 1.0, 1.0)
        self.error_percent: float | None = None
        """The running mean of how far the estimate was off, before each report; None: no report."""
        self._spread = [[first**2 if i == j else 0.0 for j in range(3)] for i, first in _FIRST]
        self._before: tuple[Weights, int] | None = None
        if known is not None:
            self.factors, self.error_percent = known.factors, known.error_percent
            self._spread = [list(row) for row in known.spread]

    def learned(self) -> Learned | None:
        """All that it knows, for a calibration in another process; None before any report."""
        if self.error_percent is None:
            return None
        a, b, c = ((row[0], row[1], row[2]) for row in self._spread)
        return Learned(self.factors, (a, b, c), self.error_percent)

    def tokens(self, weights: Weights) -> int:
        """The corrected estimate of something weighed."""
        return round(_product(weights, self.factors))

    def observe(self, weights: Weights, reported: int) -> None:
        """Learn from a request of this weight, and the input tokens its provider counted.

        A report far from the estimate is about something else, and is left out.
        """
        if not LEAST * sum(weights) <= reported <= MOST * sum(weights) or not reported:
            return
        expected = _product(weights, self.factors)
        error = abs(expected - reported) / reported * 100
        known = self.error_percent
        self.error_percent = error if known is None else known + (error - known) * ERROR_SHARE
        if self._before is not None:
            before, count = self._before
            grown = tuple(now - then for now, then in zip(weights, before, strict=True))
            self._learn((grown[0], grown[1], grown[2]), reported - count)
        self._learn(weights, reported)
        self._before = (weights, reported)

    def observe_refusal(self, weights: Weights, least: int) -> None:
        """Learn from a request that was refused as too long, so that the next one is shorter.

        It had `least` tokens at least. How many more, nobody says: the factors are no surer for it,
        and nothing is compared with it.
        """
        if self.tokens(weights) < least:
            self._before, spread = None, self._spread
            self.observe(weights, least)
            self._before, self._spread = None, spread

    def _learn(self, weights: Weights, reported: int) -> None:
        total = sum(weights)
        if min(weights) < 0 or total < LEAST_WEIGHT:
            return
        spread = [_product(row, weights) for row in self._spread]
        doubt = _product(spread, weights) + (NOISE * total) ** 2 + NOISE_TOKENS**2
        gain = [value / doubt for value in spread]
        miss = reported - _product(weights, self.factors)
        moved = [
            min(MOST, max(LEAST, factor + step * miss))
            for factor, step in zip(self.factors, gain, strict=True)
        ]
        self.factors = (moved[0], moved[1], moved[2])
        self._spread = [
            [self._spread[i][j] - gain[i] * spread[j] + (FADING if i == j else 0) for j in range(3)]
            for i in range(3)
        ]


class Meter:
    """Weighs a session for the model that answers in it; each message once a family of models."""

    def __init__(self) -> None:
        self.calibration = Calibration()
        self._family = ""
        self._known: dict[int, tuple[Message, list[Part]]] = {}
        self._texts: dict[str, Weights] = {}
        """Of prompt, tools, memo and summary, which are the same from one look to the next."""

    def use(self, model: str | None, calibration: Calibration) -> None:
        """Measure for this model from now on."""
        self.calibration = calibration
        if (family := family_of(model)) != self._family:
            self._family = family
            self.clear()

    def text(self, text: str) -> int:
        """About how many tokens a text is."""
        return self.calibration.tokens(self._weighed(text))

    def message(self, message: Message) -> int:
        """What one message counts for; one that is known is not read again."""
        return sum(self.calibration.tokens(weights) for _, weights in self._parts(message))

    def measure(
        self,
        messages: Iterable[Message],
        *,
        system: str = "",
        tools: str = "",
        memo: str = "",
        summary: str = "",
        draft: str = "",
        context_window: int | None = None,
    ) -> ContextSize:
        """The size of a request with these messages; the texts are what is sent of each part.

        O(messages), and O(bytes) of what has not been weighed yet.
        """
        sums = self._sums(messages, system, tools, memo, summary, draft)
        counts = {name: self.calibration.tokens(weights) for name, weights in sums.items()}
        tokens = sum(counts.values())
        ratio = round(tokens / context_window, 4) if context_window else None
        error = self.calibration.error_percent
        shown = None if error is None else round(error, 1)
        return ContextSize(tokens, shown, context_window, ratio, Breakdown(**counts))

    def weights(self, messages: Iterable[Message], *texts: str) -> Weights:
        """What a request weighs, for `Calibration.observe`."""
        sums = self._sums(messages, *texts)
        return _sum(sums.values())

    def fork(self) -> "Meter":
        """A copy that weighs on its own; it shares the calibration."""
        forked = copy.copy(self)
        forked._known, forked._texts = self._known.copy(), self._texts.copy()
        return forked

    def forget(self, seq: int) -> None:
        """A message left the window."""
        self._known.pop(seq, None)

    def clear(self) -> None:
        """Forget all weights."""
        self._known.clear()
        self._texts.clear()

    def _sums(
        self,
        messages: Iterable[Message],
        system: str = "",
        tools: str = "",
        memo: str = "",
        summary: str = "",
        draft: str = "",
    ) -> dict[str, Weights]:
        texts = {"system": system, "tools": tools, "memo": memo, "summary": summary}
        parts = [(name, self._weighed(text)) for name, text in texts.items() if text]
        if draft:
            parts += [("user", weigh(draft, self._family)), ("user", FRAME)]
        words, code, wide = (dict.fromkeys(Breakdown.__struct_fields__, 0.0) for _ in range(3))
        for message in messages:
            for name, weights in self._parts(message):
                words[name] += weights[0]
                code[name] += weights[1]
                wide[name] += weights[2]
        for name, weights in parts:
            words[name] += weights[0]
            code[name] += weights[1]
            wide[name] += weights[2]
        return {name: (words[name], code[name], wide[name]) for name in words}

    def _weighed(self, text: str) -> Weights:
        found = self._texts.get(text)
        if found is None:
            found = weigh(text, self._family)
            if len(self._texts) >= MOST_TEXTS:
                self._texts.clear()
            self._texts[text] = found
        return found

    def _parts(self, message: Message) -> list[Part]:
        """The parts of the breakdown that a message counts for."""
        found = self._known.get(message.seq or 0)
        if found is not None and found[0] is message:
            return found[1]
        role = message.role if message.role in ("assistant", "system") else "user"
        if message.role == "developer":
            role = "system"
        parts: list[Part] = [("tool_result" if message.role == "tool" else role, FRAME)]
        parts += [self._block(block, role) for block in blocks_of(message)]
        if message.seq is not None:
            self._known[message.seq] = (message, parts)
        return parts

    def _block(self, block: Block, role: str) -> Part:
        """Where a block counts, and what it weighs."""
        if isinstance(block, TextBlock):
            return role, weigh(block.text, self._family)
        if isinstance(block, ToolUseBlock):
            return "tool_use", self._weigh(block.name, to_json(block.input))
        if isinstance(block, ToolResultBlock):
            pictures = 0 if isinstance(block.content, str) else sum(map(_is_image, block.content))
            text = self._weigh(result_text(block.content))
            return "tool_result", _sum([text, (0.0, float(pictures * IMAGE_TOKENS), 0.0)])
        if isinstance(block, AttachmentBlock):
            return "attachments", self._weigh(block.text, block.path or "")
        if isinstance(block, ImageBlock):
            return role, (0.0, float(IMAGE_TOKENS), 0.0)
        return role, NOTHING  # thinking and opaque blocks are sent only where they came from

    def _weigh(self, *texts: str) -> Weights:
        return _sum(weigh(text, self._family) for text in texts)


def _is_image(block: Any) -> bool:
    return isinstance(read_block(block), ImageBlock)


def _sum(many: Iterable[Weights]) -> Weights:
    words = code = wide = 0.0
    for weights in many:
        words += weights[0]
        code += weights[1]
        wide += weights[2]
    return words, code, wide


def _product(a: Sequence[float], b: Sequence[float]) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


NOTHING: Weights = (0.0, 0.0, 0.0)
FRAME: Weights = (float(MESSAGE_TOKENS), 0.0, 0.0)

ERROR_SHARE = 0.3
"""How much the newest report counts in the running error."""
LEAST, MOST = 0.4, 2.5
"""No factor leaves this range, and no report outside of it counts."""
LEAST_WEIGHT = 50
"""Requests smaller than this teach nothing."""
NOISE, NOISE_TOKENS = 0.015, 5.0
"""What a report is off by itself: a share of it, and the frames of a chat template."""
MOST_SPREAD = 1.0
"""No factor is ever less sure than this."""
FADING = 1e-5
"""How much surer old reports are forgotten with each new one."""
_FIRST = tuple(enumerate((0.12, 0.12, 0.25)))
"""How unsure the factors are before any report."""
