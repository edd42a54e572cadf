"""What a user may set about one session: its limits, its title, how it is brought under them."""

from collections.abc import Mapping
from typing import Any

from tiro.session.session import Session
from tiro.session.settings import configured

SETTINGS = {
    "every_n_turns": "session.resize.every_n_turns",
    "memo_enabled": "session.memo.enabled",
    "summary_enabled": "session.summary.enabled",
}


def configure(session: Session, given: Mapping[str, Any]) -> None:
    """Change what is given, in one step; None switches a limit off."""
    limit = given.get("limit", {})
    off = {"chars": None, "messages": None}
    own = configured(session.own_settings, given.get("mode"), off if limit is None else limit)
    for name, key in SETTINGS.items():
        if name in given:
            own[key] = given[name]
    fields = {name: given[name] for name in ("max_history", "title") if name in given}
    if own != session.own_settings:
        fields["settings"] = own
    if fields:
        session.change(**fields)
        session.prune()
