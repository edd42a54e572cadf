"""`tiro sessions verify` and `vacuum`: what lies on the disk for them, or where `store` says."""

import argparse
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiro import output
from tiro.arguments import SESSIONS_EXAMPLES, Commands, add_command
from tiro.exits import Exit
from tiro.screen_text import counted, flat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tiro.stores.shelf_verify import RawShelf


def add_stored(group: Commands) -> None:
    """The commands of this file, among those of `sessions`."""
    whole = add_command(group, "verify", sessions_verify, "look for damage", SESSIONS_EXAMPLES)
    whole.add_argument("--repair", action="store_true", help="mend what can be; deletes nothing")
    whole.add_argument("--json", action="store_true", help="print JSON")
    about = "remove what nobody needs any more"
    room = add_command(group, "vacuum", sessions_vacuum, about, SESSIONS_EXAMPLES)
    room.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    room.add_argument("--json", action="store_true", help="print JSON")


def sessions_verify(given: argparse.Namespace) -> int:
    """Read every saved session and all that belongs to it; 1 when something is damaged."""
    from tiro.session.times import utc_now
    from tiro.stores.shelf_verify import repair_shelf, verify_shelf
    from tiro.stores.verify import repair, verify

    now = utc_now()
    with _stored() as place:
        if isinstance(place, Path):
            found = (repair if given.repair else verify)(place, now=now)
        else:
            found = (repair_shelf if given.repair else verify_shelf)(place, now=now)
    if given.json:
        output.write_json(_camel(found))
    else:
        for finding in found.findings:
            output.write(f"{flat(finding.path)}: {flat(finding.problem)}\n")
            if finding.remedy is not None:
                does = "" if given.repair else "--repair: "
                output.write(f"  {does}{flat(finding.remedy)}\n")
        mended = sum(finding.is_repaired for finding in found.findings)
        told = f"damage in {counted(len(found.findings), 'place')}" if found.findings else ""
        told += f", mended in {mended}" if told and given.repair else ""
        output.note(f"{counted(found.sessions, 'session')} read; {told or 'all is sound'}")
    return Exit.DONE if found.is_sound() else Exit.FAILED


def sessions_vacuum(given: argparse.Namespace) -> int:
    """Remove expired sessions and large values that no session needs; say how much that is."""
    from tiro.session.times import utc_now
    from tiro.stores.vacuum import unneeded, vacuum

    now = utc_now()
    with _stored() as place:
        if isinstance(place, Path):
            done = (unneeded if given.dry_run else vacuum)(place, now=now)
        else:
            done = (place.unneeded if given.dry_run else place.vacuum)(now=now)
    if given.json:
        output.write_json(_camel(done))
    else:
        verb = "would be removed" if given.dry_run else "removed"
        expired = counted(done.expired, "expired session")
        values = counted(done.values, "large value")
        room = f"{done.bytes:,} bytes {'would be' if given.dry_run else 'are'} free"
        if done.expired or done.values or done.bytes:
            output.write(f"{expired} and {values} that nothing needs {verb}; {room}\n")
        else:
            output.write("There is nothing that nobody needs\n")
        if done.in_use:
            output.note(f"{counted(done.in_use, 'large value')} stay while a session is answering")
    return Exit.DONE


def _camel(value: object) -> Any:
    """A value as the other commands print such ones."""
    import msgspec

    from tiro.protocol.wire import camel

    fields = msgspec.to_builtins(value)
    if isinstance(fields, dict):
        return {camel(name): _camel(item) for name, item in fields.items()}
    return [_camel(item) for item in fields] if isinstance(fields, list) else fields


@contextmanager
def _stored() -> "Iterator[Path | RawShelf]":
    """The directory of session files, or the store that the user's configuration names instead."""
    from tiro.config.directories import sessions_directory
    from tiro.config.files import load
    from tiro.shown_turn import tell
    from tiro.stores.shared import place_of, raw_shelf

    found = load()
    for problem in found.problems:
        tell(problem)
    directory, store = sessions_directory(), found.settings.store  # no workspace may set it
    if store.kind == "files":
        yield directory
        return
    with raw_shelf(place_of(store.kind, store.path, store.url, directory)) as shelf:
        yield shelf
