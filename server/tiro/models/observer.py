"""Who may hear what goes between Tiro and a provider: declared here, handed down from above."""

from collections.abc import Sequence
from typing import Literal, Protocol

Ending = Literal["complete", "closed", "cut", "reset", "silent", "unreachable"]
"""How a request ended: whole; by us; by the provider without an error of the network, though it
had promised more; by one; it said nothing for too long; there was no connection at all."""


class Exchange(Protocol):
    """What follows one request. Nothing here may wait or raise."""

    def answered(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """The head of the answer is here."""
        ...

    def received(self, data: bytes) -> None:
        """A piece of its body is here, as long as the network delivered it."""
        ...

    def ended(self, how: Ending, error: str = "") -> None:
        """It is over, `error` being a class of errors; the first word on this counts."""
        ...


class Observer(Protocol):
    """Hears all requests to providers."""

    def asked(
        self,
        *,
        provider: str,
        api: str,
        base_url: str,
        method: str,
        url: str,
        headers: Sequence[tuple[str, str]],
        body: bytes,
    ) -> Exchange:
        """A request is about to be sent; the addresses are bare, the headers as they are sent."""
        ...
