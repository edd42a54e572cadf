"""Random histories: what is read back from snapshot and journal is the live session (U9.2)."""

import os
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import strategies as st

from tests.sizes import sized
from tests.stores.faults import FaultyDisk
from tests.stores.look import names
from tests.stores.script import state_of, use
from tiro.session.changes import Evict
from tiro.session.messages import Message
from tiro.session.session import Session
from tiro.stores.manager import SessionManager
from tiro.stores.reading import read_session

MEMORY = next((path for path in ("/dev/shm",) if os.access(path, os.W_OK)), None)
"""A file system in memory, where there is one: what is asked here is not about disks."""

TEXT = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", "\n", '"\\', "é🙂\u2028\x00", "\ud83d", '{"n":1}\n', "x" * 500]),
)
VALUE = st.one_of(
    st.none(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False, allow_infinity=False), TEXT
)

STEP = st.one_of(
    st.tuples(st.just("user"), TEXT),
    st.tuples(st.just("assistant"), TEXT),
    st.tuples(st.just("use"), st.integers(1, 4)),
    st.tuples(st.just("answer"), st.integers(1, 4)),
    st.tuples(st.just("edit"), st.integers(0, 6), TEXT),
    st.tuples(st.just("rewind"), st.integers(0, 6)),
    st.tuples(st.just("pin"), st.integers(0, 6), st.booleans()),
    st.tuples(st.just("limit"), st.integers(1, 8)),
    st.tuples(st.just("set"), st.sampled_from("ab"), VALUE),
    st.tuples(st.just("delete"), st.sampled_from("ab")),
    st.tuples(st.just("fields"), TEXT, st.dictionaries(TEXT, VALUE, max_size=2)),
    st.tuples(st.just("clear"), st.booleans()),
    st.tuples(st.just("turn"), st.integers(1, 3)),
    st.tuples(st.just("save")),
    st.tuples(st.just("end")),
    st.tuples(st.just("kill")),
    st.tuples(st.just("reload")),
)


def seq_at(session: Session, index: int) -> int:
    """The seq of a message of the window, or one that is not there."""
    rows = session.oldest_first()
    return (rows[index].seq or 0) if index < len(rows) else 10_000


def change(session: Session, step: tuple[Any, ...]) -> None:
    """Apply one step that changes the session, if it can be applied."""
    kind, *values = step
    if kind in ("user", "assistant"):
        session.add_message(kind, values[0], **({"x-extra": [values[0]]} if values[0] else {}))
    elif kind == "use":
        session.add_message("assistant", use(f"c{values[0]}"))
    elif kind == "answer":
        session.append_message(Message("tool", "it is", tool_call_id=f"c{values[0]}"))
    elif kind == "set":
        session.set(*values)
    elif kind == "delete":
        session.delete(values[0])
    elif kind == "fields":
        session.change(title=values[0], memo=values[1], summary=values[0])
    elif kind == "limit":
        session.change(max_history=values[0])
        if seqs := session.over_limit():
            session.commit(Evict(seqs, session.stamp()))
    elif kind == "clear":
        session.clear(keep_memo=values[0])
    else:
        change_one(session, kind, values)


def change_one(session: Session, kind: str, values: list[Any]) -> None:
    """A step about one message, which may not be there or not allow it."""
    try:
        if kind == "edit":
            session.edit_message(seq_at(session, values[0]), values[1])
        elif kind == "rewind":
            session.rewind(seq_at(session, values[0]))
        elif kind == "pin":
            session.pin(seq_at(session, values[0]), values[1])
    except ValueError:
        pass


def read_back(directory: Path, id: str) -> dict[str, Any]:
    """The state of the session as another process finds it."""
    session = Session()
    read_session(directory / f"{id}.json").restore(session)
    return state_of(session)


@hypothesis.settings(max_examples=sized(fast=50, normal=400, long=5000))
@hypothesis.given(st.lists(STEP, max_size=20), st.sampled_from([None, 1, 3, 6]))
def test_what_is_read_back_is_the_live_session(
    steps: list[tuple[Any, ...]], max_history: int | None
) -> None:
    """After every single step; over saves, ends, kills and loads in between."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        directory = Path(name)
        disk = FaultyDisk()
        manager = SessionManager(directory, fsync="never", disk=disk)
        session = manager.create(max_history=max_history or float("inf"), id="x")
        session.add_message("user", "first")
        for step in steps:
            kind = step[0]
            if kind == "save":
                manager.save(session)
            elif kind == "end":
                manager.end(session)
            elif kind in ("kill", "reload"):
                if kind == "kill":
                    disk.fail()  # nothing of what it still wants to write reaches a file
                manager.close()
                disk = FaultyDisk()
                manager = SessionManager(directory, fsync="never", disk=disk)
                session = manager.load_id("x")
            elif kind == "turn":
                with manager.writing(session):
                    for number in range(step[1]):
                        session.add_message("user", f"turn {number}")
            else:
                change(session, step)
            assert manager.is_stored(session)
            assert read_back(directory, "x") == state_of(session), step
        manager.close()
        assert read_back(directory, "x") == state_of(session)
        assert names(directory) == ["x.json"]
