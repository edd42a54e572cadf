"""The channel session of part N as a library: its fields, its trim, and who sums it up."""

import asyncio
import gc
import json
import subprocess
import sys
import weakref
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.session.test_summary import ended
from tests.sizes import PATIENCE
from tiro import Session, provider_view
from tiro.agents.prompt import session_prompt
from tiro.session.prompts import SUMMARY_PROMPT
from tiro.session.settings import SessionSettings
from tiro.session.summary import Summarizer, before_turn
from tiro.stores.formats.library import export_session
from tiro.stores.manager import SessionManager

KEY = "irc:#tiro"


class Clock:
    """A clock that goes on by a second each time it is read."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def talk(turns: int, **options: Any) -> Session:
    session = Session(**options)
    for turn in range(turns):
        session.add_message("user", f"question {turn}").add_message("assistant", f"answer {turn}")
    return session


class Provider:
    """Says one thing; where it is given an event, when that is set."""

    def __init__(self, reply: str = "a summary", gate: asyncio.Event | None = None) -> None:
        self.reply, self.gate = reply, gate
        self.calls: list[dict[str, Any]] = []

    async def chat(self, **given: Any) -> str:
        self.calls.append(given)
        if self.gate is not None:
            await self.gate.wait()
        return self.reply


# --- the session ----------------------------------------------------------------------------


def test_a_new_channel_session_has_its_key_and_nothing_else(tmp_path: Any) -> None:
    """N1.1: key, messages, times, metadata, what was consolidated, summary and its flag."""
    session = SessionManager(tmp_path).get_or_create(KEY)
    assert session.id == KEY
    assert (session.get_messages(), session.metadata, session.summary) == ([], {}, "")
    assert session.summary_in_progress is False
    assert session.created_at == session.updated_at
    session.add_message("tool", "found", tool_call_id="c1", name="glob", odd=[1])
    message = session.get_messages()[0]
    kept = {key: message[key] for key in ("role", "content", "tool_call_id", "name", "odd")}
    assert kept == {
        "role": "tool",
        "content": "found",
        "tool_call_id": "c1",
        "name": "glob",
        "odd": [1],
    }
    assert datetime.fromisoformat(message["timestamp"]).tzinfo is not None
    first, *rows = map(json.loads, as_lines(session))
    assert (first["key"], first["last_consolidated"], len(rows)) == (KEY, 0, 1)


def as_lines(session: Session) -> list[str]:
    """The session in the JSONL form of N6."""
    return export_session(session, "jsonl").splitlines()


def test_a_message_gets_a_time_and_moves_that_of_the_session() -> None:
    """N1.2."""
    session = Session(clock=Clock())
    before = session.updated_at
    assert session.add_message("user", "hi", name="ann") is session
    assert session.updated_at > before
    message = session.messages[0]
    assert (message["role"], message["content"], message["name"]) == ("user", "hi", "ann")
    assert message.timestamp is not None
    assert before < datetime.fromisoformat(str(message.timestamp)) <= session.updated_at


def test_recent_messages_are_a_bounded_read_that_trims_nothing() -> None:
    """N1.3: oldest first, with what a model needs and nothing else; the default is 500."""
    session = talk(300)
    session.add_message("assistant", "", tool_calls=[{"id": "c"}], odd=1)
    session.add_message("tool", "done", tool_call_id="c", name="glob", odd=2)
    n, count = session.n, len(session.messages)
    recent = session.recent_messages()
    assert (len(recent), recent[0]["content"]) == (500, "question 51")
    assert recent[-2:] == [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c"}]},
        {"role": "tool", "content": "done", "tool_call_id": "c", "name": "glob"},
    ]
    assert session.recent_messages(2) == recent[-2:]
    assert (session.recent_messages(0), len(session.recent_messages(10_000))) == ([], count)
    recent[0]["content"] = "changed"
    assert (session.n, len(session.messages)) == (n, count)
    assert session.messages[102]["content"] == "question 51"


def test_clear_empties_messages_and_summary_now() -> None:
    """N1.4."""
    session = talk(30, clock=Clock())
    session.trim_if_needed(4, 2)
    session.update_summary("said before")
    before = session.updated_at
    session.clear()
    assert (session.messages, session.archive, session.pending()) == ([], [], [])
    assert (session.summary, session.summary_in_progress) == ("", False)
    assert session.updated_at > before


# --- the trim -------------------------------------------------------------------------------


def test_the_first_kept_message_is_a_users() -> None:
    """N2.3: wherever the wanted cut falls, no turn is taken apart."""
    for min_keep in range(8):
        session = talk(6)
        session.trim_if_needed(8, min_keep)
        kept = session.messages
        assert not kept or kept[0].role == "user"
        assert len(kept) >= min_keep


NO_WAY_OUT = """
import sys
from tiro import Session

session = Session()
for n in range(60):
    session.add_message("user", f"question {n}").add_message("assistant", "yes")
touched = []
sys.addaudithook(lambda event, args: touched.append(event))
evicted, did = session.trim_if_needed(50, 10)
events = list(touched)
print(len(evicted), did, [e for e in events if e.split(".")[0] not in ("object", "sys", "gc")])
"""


def test_a_trim_touches_nothing_outside() -> None:
    """N2.6: list work without a loop, a file, a socket, a process or a thread."""
    done = subprocess.run(
        [sys.executable, "-c", NO_WAY_OUT],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "110 True []\n"


# --- the summariser -------------------------------------------------------------------------


async def test_it_is_asked_with_a_prompt_and_a_transcript() -> None:
    """N3.3: two messages, the system's first and the user's last."""
    provider, heard = Provider(), list[str]()
    evicted = talk(2).messages
    await Summarizer(provider, "m").summarize_async(evicted, "they met", heard.append)
    system, user = provider.calls[0]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"] == SUMMARY_PROMPT
    assert "user: question 0\nassistant: answer 0" in user["content"]
    assert user["content"].index("they met") < user["content"].index("question 0")
    assert heard == ["a summary"]


@pytest.mark.parametrize(
    "said",
    [
        ("leave", "window of a conversation"),
        ("short summary", "background", "later"),
        ("what happened",),
        ("details", "names", "figures", "facts"),
        ("still open", "tasks", "questions", "promises"),
        ("earlier summary is given", "work it in"),
        ("fewer than 200 words",),
        ("nothing else",),
    ],
)
def test_the_prompt_says_all_that_a_summary_needs(said: tuple[str, ...]) -> None:
    """N3.4."""
    assert all(words in SUMMARY_PROMPT for words in said)


async def test_the_job_is_held_while_it_runs_and_nobody_waits_for_it() -> None:
    """N3.5: it comes back at once, and garbage collection does not end the job."""
    session, gate = talk(30), asyncio.Event()
    session.trim_if_needed(50, 10)
    summarizer = Summarizer(Provider(gate=gate), "m")
    task = weakref.ref(summarizer.fire_and_forget(session, None, session.pending(), ""))
    assert (session.summary_in_progress, session.summary) == (True, "")
    await asyncio.sleep(0)
    gc.collect()
    held = task()
    assert held is not None
    assert not held.done()
    gate.set()
    await held
    assert (session.summary, session.pending()) == ("a summary", [])


def test_a_summary_that_is_set_ends_the_progress() -> None:
    """N3.10."""
    session = talk(1)
    session.summary_in_progress = True
    session.update_summary("text")
    assert (session.summary, session.summary_in_progress) == ("text", False)


async def test_what_comes_from_the_system_takes_the_same_path() -> None:
    """N4.3: a turn that a system message begins is trimmed, prompted and summed up like any."""
    session, gate = talk(30), asyncio.Event()
    session.add_message("system", "The timer rang").add_message("assistant", "I look.")
    session.update_summary("old")
    summarizer = Summarizer(provider := Provider(gate=gate), "m")
    assert before_turn(session, summarizer)
    assert (len(session.messages), session.summary_in_progress) == (10, True)
    session.add_message("system", "The timer rang again")
    prompt = session_prompt(session, "You help.")
    assert prompt.index("The timer rang again") < prompt.index("old")
    assert [m["role"] for m in provider_view(session.messages)][:2] == ["user", "assistant"]
    assert not before_turn(session, summarizer)
    gate.set()
    await ended(session)
    assert (session.summary, len(provider.calls)) == ("a summary", 1)


def test_the_progress_of_a_summary_is_not_stored(tmp_path: Any) -> None:
    """N6.3: in no form; after a load it is off."""
    manager = SessionManager(tmp_path)
    session = manager.get_or_create(KEY)
    session.add_message("user", "hi")
    session.summary_in_progress = True
    manager.save(session)
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    forms = ["\n".join(as_lines(session)), session.to_json(), session.to_yaml()]
    assert all("in_progress" not in text for text in [stored.decode(), *forms])
    assert SessionManager(tmp_path).get_or_create(KEY).summary_in_progress is False


def test_the_buffer_holds_50_and_keeps_10() -> None:
    """N7.1: and the main model sums up."""
    settings = SessionSettings({})
    assert settings.integer("session.summary.message_buffer_limit") == 50
    assert settings.integer("session.summary.message_buffer_min") == 10
    assert settings["session.summary.model"] is None
    assert Summarizer(Provider(), "main").model == "main"
    session = talk(25)
    before_turn(session)
    assert len(session.messages) == 50
    session.add_message("user", "one more")
    before_turn(session)
    assert len(session.messages) == 11  # ten, and the question that the oldest of them answers


# --- the static buffer's limits -------------------------------------------------------------


def test_the_system_prompt_survives_every_trim() -> None:
    """N8.1: it is no part of the window, nor are standing instructions that a history holds."""
    session = Session()
    session.add_message("system", "Speak French.")
    for n in range(30):
        session.add_message("user", f"question {n}").add_message("assistant", "oui")
    session.trim_if_needed(50, 0)
    assert session.messages == []
    prompt = session_prompt(session, "You help.")
    assert prompt.startswith("You help.")
    assert "Speak French." in prompt


def test_a_trim_that_can_evict_nothing_changes_nothing() -> None:
    """N8.1: no prompt at which a kept part could begin."""
    session = Session()
    for n in range(5):
        session.add_message("assistant", f"note {n}")
    before = (session.n, session.snapshot())
    assert session.trim_if_needed(3, 1) == ([], False)
    assert (session.n, session.snapshot()) == before


async def test_nothing_is_evicted_in_part_by_itself() -> None:
    """N8.2: the window goes on as it is while a summary is waited for; a part is a wish only."""
    session, gate = talk(30), asyncio.Event()
    before_turn(session, Summarizer(Provider(gate=gate), "m"))
    window = [message.seq for message in session.messages]
    await asyncio.sleep(0)
    assert [message.seq for message in session.messages] == window
    assert all("a summary" not in str(message.content) for message in session.messages)
    gate.set()
    await ended(session)
    assert [message.seq for message in session.messages] == window
    with pytest.raises(KeyError, match="partial"):
        session.resize("partial")
