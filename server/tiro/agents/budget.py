"""What one turn may cost: checked before each request, so that none passes it."""

from tiro.agents.settings import TurnBudget
from tiro.errors import BudgetExceededError
from tiro.models.model import Price
from tiro.session.messages import Usage


class Spending:
    """What a turn has used so far, with all that other agents have used for it."""

    def __init__(self) -> None:
        self.usage = Usage()

    def add(self, usage: Usage) -> None:
        """Count what a request has used."""
        self.usage += usage


def check_budget(budget: TurnBudget, spent: Usage, tokens: int, price: Price | None) -> None:
    """Raise BudgetExceededError if a request of so many tokens would pass the turn's budget.

    `spent` is the turn's usage so far. Money is only counted where the model's price is known.
    """
    total = spent.tokens() + tokens
    if budget.tokens is not None and total > budget.tokens:
        raise _exceeded(f"{budget.tokens:,} tokens", budget.tokens, total)
    if budget.usd is None or price is None:
        return
    usd = (spent.cost_usd or 0.0) + price.cost_usd(Usage(input_tokens=tokens))
    if usd > budget.usd:
        raise _exceeded(f"${budget.usd:g}", budget.usd, usd)


def _exceeded(shown: str, budget: float, estimate: float) -> BudgetExceededError:
    return BudgetExceededError(
        f"The next request would pass this turn's budget of {shown}; raise `turn.budget` or ask for"
        " less at a time",
        budget=budget,
        estimate=estimate,
    )
