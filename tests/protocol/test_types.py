"""The wire types are the one place for names: they agree with PROTOCOL.md and with themselves."""

import re
from pathlib import Path
from typing import Any, get_args

import msgspec

from tiro.agents import events
from tiro.protocol import types
from tiro.protocol.wire import WIRE_EVENTS, camel

DOCUMENT = (Path(__file__).parents[2] / "server" / "PROTOCOL.md").read_text(encoding="utf-8")
LATER: set[str] = set()
"""In the document, not yet in the server; a method that is built leaves this list."""


def test_methods_are_those_of_the_document() -> None:
    named = set(re.findall(r"`(tiro/[a-zA-Z]+(?:/[a-zA-Z]+)?)[` ]", DOCUMENT))
    ours = {*types.METHODS, *types.NOTIFICATIONS, *types.SERVER_REQUESTS}
    assert named - LATER == ours
    assert not ours & LATER


def test_commands_are_those_of_the_document() -> None:
    named = set(re.findall(r"`(tiro\.[a-zA-Z]+)", DOCUMENT)) - {"tiro.interrupted"}
    assert named == set(types.COMMANDS)


def test_errors_are_those_of_the_document() -> None:
    named = re.findall(r"^\| (-320\d\d) \| `(\w+)` \|", DOCUMENT, re.MULTILINE)
    ours = {found for found in types.ERRORS.values() if found[1] is not None}
    assert {(int(code), kind) for code, kind in named} == ours


def test_events_are_those_of_the_document() -> None:
    table = DOCUMENT.split("| type | fields |")[1].split("Rules:")[0]
    first_cells = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    named = {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}
    assert {kind.__struct_config__.tag for kind in types.EVENTS} == named


def test_every_turn_event_has_a_wire_type_of_the_same_name_and_fields() -> None:
    told = set(get_args(events.TurnEvent)) - {events.Progress}
    assert set(WIRE_EVENTS) == told
    for kind, wire in WIRE_EVENTS.items():
        assert camel(str(kind.__struct_config__.tag)) == wire.__struct_config__.tag
        if kind is not events.Finished:
            own = set(wire.__struct_fields__) - {"session_id", "turn_id", "n"}
            assert own == set(kind.__struct_fields__)


def test_the_schema_holds_everything_and_refers_to_nothing_else() -> None:
    schema = types.schema()
    assert set(schema["methods"]) == set(types.METHODS)
    assert set(schema["serverRequests"]) == set(types.SERVER_REQUESTS)
    assert set(schema["notifications"]) == set(types.NOTIFICATIONS)
    assert schema["protocolVersion"] == 1
    assert schema["commands"] == list(types.COMMANDS)
    references = set(re.findall(r'"#/\$defs/(\w+)"', msgspec.json.encode(schema).decode()))
    assert references <= set(schema["$defs"])
    view = schema["$defs"]["SessionView"]["properties"]
    assert {"maxHistory", "contextSize", "savedAt", "createdAt"} <= set(view)


def test_wire_names_are_camel_case_and_explained() -> None:
    for name, kind in vars(types).items():
        if isinstance(kind, type) and issubclass(kind, types.Wire):
            assert kind.__doc__, name
            assert all("_" not in field for field in kind.__struct_encode_fields__), name


def shapes() -> dict[str, set[str]]:
    """The fields of the shapes in section 2 of the document."""
    found: dict[str, set[str]] = {}
    for name in ("SessionView", "ContextSize", "Usage", "Agent", "Decision"):
        text = DOCUMENT.split(f"\n{name} ")[1].split("}\n")[0].split("{", 1)[1]
        text = re.sub(r"breakdown: \{[^}]*\}", "breakdown", text.replace("{ turnId }", "busy"))
        lines = [re.sub(r"  +(the window|messages in|kept outside|assistant).*", "", line)
                 for line in text.splitlines()]  # fmt: skip
        found[name] = {
            re.sub(r"[?:\s].*", "", part.strip())
            for part in ",".join(lines).split(",")
            if part.strip()
        }
    return found


def test_shapes_have_the_fields_of_the_document() -> None:
    documented = shapes()
    for name, wanted in documented.items():
        kind: Any = getattr(types, name)
        ours = set(kind.__struct_encode_fields__)
        assert ours <= wanted, (name, ours - wanted)
        assert len(wanted - ours) <= 1, (name, wanted - ours)
