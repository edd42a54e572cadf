"""Which tool use may run: rules, and the decision that names the rule behind it."""

from typing import Literal

import msgspec

Kind = Literal["allow", "ask", "deny"]


class PermissionDecision(msgspec.Struct, frozen=True):
    """May it run, and which rule says so."""

    kind: Kind
    rule: str
    """For people: key, pattern and decision, such as `read: *.env deny`."""
    source: str = "default"
    """Whose rule it is: session, agent, config, workspace or default."""
