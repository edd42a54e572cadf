"""The library's agent (A9): what it asks, what its session keeps, and what failures leave."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import ScriptedModel, says, uses
from tiro import InvalidInputError, Message, ModelError, Session, SessionNotFoundError
from tiro.agents.agent import Agent, AgentInfo, AgentRegistry, Result
from tiro.models.model import ModelRequest, TextDelta, ToolUseDone
from tiro.session.changes import TakeBack
from tiro.session.entries import get_tool_result_content
from tiro.session.messages import text_of, tool_results_of
from tiro.stores.memory import MemoryStore
from tiro.stores.sqlite import SQLiteStore

Rows = list[dict[str, Any]]


class Heard:
    """A callable model that notes what it was asked and gives the next answer, then "ok"."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[Rows] = []

    def __call__(self, messages: Rows) -> Any:
        self.requests.append(messages)
        answer = self.answers.pop(0) if self.answers else "ok"
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def last(self) -> list[str]:
        """What the last request held, without its system prompt."""
        return [row["content"] for row in self.requests[-1] if row["role"] != "system"]


def texts(messages: list[Message]) -> list[Any]:
    return [message.content for message in messages]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


# --- with and without a session -------------------------------------------------------------


def test_without_a_session_nothing_is_kept() -> None:
    """A9.1, A9.3."""
    model = Heard("one", "two")
    agent = Agent(model)
    assert (agent.session, agent.get_session()) == (None, None)
    assert [agent.run("a"), agent.run("b")] == ["one", "two"]
    assert model.requests == [[user("a")], [user("b")]]


def test_attaching_binds_and_detaching_lets_go() -> None:
    """A9.2, A9.3: and the property cannot be set."""
    session, agent = Session(), Agent(Heard())
    assert agent.attach_session(session) is agent
    assert agent.session is agent.get_session() is session
    new = agent.attach_session(mode="memo").get_session()
    assert new is not None
    assert new is not session
    assert new.settings.memo_is_enabled()
    with pytest.raises(AttributeError):
        agent.session = session  # type: ignore[misc]
    assert agent.detach_session() is agent
    assert agent.get_session() is None
    agent.run("unheard")
    assert session.messages == []


def test_a_mode_that_is_not_given_changes_none() -> None:
    """A9.2."""
    session = Session().use_memo()
    Agent(Heard()).attach_session(session)
    assert session.settings["session.mode"] == "memo"
    with pytest.raises(ValueError, match="mode"):
        Agent(Heard()).attach_session(session, mode="odd")


def test_two_agents_share_nothing() -> None:
    """A9.10: not even what was added to both."""
    shared = {"role": "user", "content": [{"type": "text", "text": "x"}]}
    agents = [Agent(Heard(), Session()) for _ in range(2)]
    for agent in agents:
        agent.add_chat_history([shared])
    shared["content"].append({"type": "text", "text": "later"})  # type: ignore[attr-defined]
    agents[0].run("only here")
    sessions = [agent.session for agent in agents]
    assert sessions[0] is not None
    assert sessions[1] is not None
    assert texts(sessions[1].full_chat_history) == [[{"type": "text", "text": "x"}]]
    assert len(sessions[0].full_chat_history) == 3
    sessions[0].commit(TakeBack([3], sessions[0].stamp()))
    taken_back = Session().add_chat_history(sessions[0].archive)
    assert texts(taken_back.full_chat_history) == ["ok"], "here nobody has taken it back"
    moved = Session().set_chat_history(sessions[0].full_chat_history)
    assert texts(moved.full_chat_history) == texts(sessions[0].full_chat_history)


# --- the history ----------------------------------------------------------------------------


def in_sync(agent: Agent, name: str, *arguments: Any) -> Any:
    return getattr(agent, name)(*arguments)


def in_async(agent: Agent, name: str, *arguments: Any) -> Any:
    return asyncio.run(getattr(agent, f"async_{name}")(*arguments))


FORMS: list[Callable[..., Any]] = [in_sync, in_async]


@pytest.mark.parametrize("call", FORMS)
def test_setting_the_history_of_a_session(call: Callable[..., Any]) -> None:
    """A9.4, A9.11: counters start again, no resize runs, the memo stays."""
    session = Session().set_limit(messages=1)
    for _ in range(3):
        session.add_message("assistant", "old")
    session.resize("lite")
    session.change(memo={"k": 1})
    agent = Agent(Heard(), session)
    rows = [user("a"), {"role": "assistant", "content": "b", "mood": "calm"}, user("c")]
    assert call(agent, "set_chat_history", rows) is agent
    assert texts(session.full_chat_history) == texts(session.messages) == ["a", "b", "c"]
    assert session.messages[1].extra == {"mood": "calm"}
    assert (session._turns, session._last_resize_turn, session._memo_cursor) == (1, 0, 0)
    assert (session.memo, session.archive) == ({"k": 1}, [])
    assert session.messages[0].seq == 4, "U1.2"


@pytest.mark.parametrize("call", FORMS)
def test_adding_to_the_history_checks_once_whether_to_resize(call: Callable[..., Any]) -> None:
    """A9.5, A9.11: one message or many, in both histories."""
    checks: list[int] = []
    session = Session(policy_handler=lambda full, *_: checks.append(len(full)))
    agent = Agent(Heard(), session)
    assert call(agent, "add_chat_history", [user("a"), user("b")]) is agent
    call(agent, "add_chat_history", user("c"))
    call(agent, "add_chat_history", Message("user", "d"))
    assert checks == [2, 3, 4]
    assert texts(session.full_chat_history) == texts(session.messages) == list("abcd")


@pytest.mark.parametrize("call", FORMS)
@pytest.mark.parametrize("drop", [False, True])
def test_resetting_keeps_the_memo_unless_told(call: Callable[..., Any], drop: bool) -> None:
    """A9.6, A9.11, U1.12."""
    session = Session(id="s").set_limit(messages=1)
    for _ in range(3):
        session.add_message("assistant", "x")
    session.resize("lite")
    session.update_summary("text")
    session.change(memo={"k": 1})
    agent = Agent(Heard(), session)
    assert call(agent, "reset_chat_history", drop) is agent
    assert (session.messages, session.full_chat_history, session.archive) == ([], [], [])
    assert (session._turns, session._last_resize_turn, session._memo_cursor) == (0, 0, 0)
    assert (session.memo, session.summary, session.id) == ({} if drop else {"k": 1}, "", "s")


@pytest.mark.parametrize("call", FORMS)
def test_without_a_session_the_agent_has_a_history_of_its_own(call: Callable[..., Any]) -> None:
    """A9.4: it goes along with each request, however long, and none is added to it."""
    model = Heard()
    agent = Agent(model)
    call(agent, "set_chat_history", [user("a"), {"role": "assistant", "content": "x" * 20_000}])
    call(agent, "add_chat_history", user("c"))
    agent.run("d")
    agent.run("e")
    assert model.last() == ["a", "x" * 20_000, "c", "e"]
    session = Session()
    agent.attach_session(session).run("f")
    assert model.last() == ["f"]
    call(agent.detach_session(), "reset_chat_history")
    agent.run("g")
    assert model.last() == ["g"]


@pytest.mark.parametrize("name", ["set_chat_history", "add_chat_history"])
def test_a_list_with_a_bad_message_changes_nothing(name: str) -> None:
    """A1.9: also the good ones before it."""
    session = Session().append_message(user("a"))
    for target in (Agent(Heard(), session), session):
        with pytest.raises(KeyError):
            getattr(target, name)([user("b"), {"role": "user"}])
    assert texts(session.full_chat_history) == ["a"]


# --- a request ------------------------------------------------------------------------------


def test_a_request_holds_the_window_and_not_what_left_it() -> None:
    """A9.7: replaced, not extended; each request again."""
    model = Heard("one", "two", "three")
    session = Session().set_limit(messages=2)
    agent = Agent(model, session)
    agent.run("a")
    agent.run("b")
    assert model.last() == ["a", "one", "b"]
    agent.run("c")
    assert model.last() == ["b", "two", "c"]
    assert texts(session.full_chat_history) == ["a", "one", "b", "two", "c", "three"]


def test_the_prompt_holds_instructions_memo_and_summary() -> None:
    """U5.1, U5.2, U3.9."""
    model = Heard()
    session = Session().append_message({"role": "system", "content": "Be brief."})
    session.change(memo={"name": "Ann", "last_resize": {}}, summary="They met.")
    Agent(model, session, info=AgentInfo(name="a", prompt="You help.")).run("hi")
    system = model.requests[0][0]["content"]
    assert system.startswith("You help.\n\nBe brief.")
    assert '"name": "Ann"' in system
    assert "last_resize" not in system
    assert system.endswith("They met.")
    assert model.last() == ["hi"]


@pytest.mark.parametrize("kind", ["sync", "async", "stream"])
def test_a_model_is_a_callable_or_streams(kind: str) -> None:
    """Answer 12, A7.1: each within a running loop too."""

    async def answers(messages: Rows) -> str:
        return str(messages[-1]["content"]) + "!"

    scripted = ScriptedModel(says("a", "!"), says("a", "!"))
    models: dict[str, Any] = {
        "sync": lambda messages: messages[-1]["content"] + "!",
        "async": answers,
        "stream": scripted,
    }
    agent = Agent(models[kind], Session())

    async def inside() -> str:
        return agent.run("a")

    assert agent.run("a") == asyncio.run(inside()) == "a!"
    assert agent.session is not None
    assert texts(agent.session.messages) == ["a", "a!", "a", "a!"]


def test_a_streaming_model_gets_a_provider_view() -> None:
    """U3.1, answer 12: with what the agent's info says."""
    model = ScriptedModel(says("fine"))
    session = Session().append_message({"role": "assistant", "content": "I came first"})
    Agent(model, session, info=AgentInfo(name="a", temperature=0.5, prompt="P")).run("hi")
    (request,) = model.requests
    assert (request.model, request.system, request.temperature) == ("fake-model", "P", 0.5)
    assert request.messages[0].role == "user", "U3.2"
    assert request.messages[-1].content == [{"type": "text", "text": "hi"}]


# --- what is recorded -----------------------------------------------------------------------


def test_success_records_both_sides_then_judges_a_resize() -> None:
    """A9.8: once, with both in it, and after the answer."""
    seen: list[list[Any]] = []
    session = Session(policy_handler=lambda full, *_: seen.append(texts(full)))
    assert Agent(Heard("yes"), session).run("sure?") == "yes"
    assert seen == [["sure?", "yes"]]
    assert [m.role for m in session.messages] == ["user", "assistant"]
    assert session._turns == 1


@pytest.mark.parametrize("answer", ["", " \n"])
def test_an_empty_answer_adds_no_assistant_message(answer: str) -> None:
    """A9.8."""
    session = Session()
    assert Agent(Heard(answer), session).run("hello?") == answer
    assert texts(session.messages) == ["hello?"]


@pytest.mark.parametrize(
    "model",
    [
        Heard(RuntimeError("down")),
        Heard(7),
        ScriptedModel([TextDelta("half"), ModelError("down")]),
        ScriptedModel([TextDelta("half")]),
    ],
    ids=["raises", "no text", "breaks", "ends"],
)
def test_a_failed_request_records_nothing(model: Any) -> None:
    """A9.8: no half answer, no question without one, and nothing is judged."""
    session = Session(policy_handler=lambda *_: pytest.fail("judged"))
    with pytest.raises((RuntimeError, TypeError, ModelError)):
        Agent(model, session).run("hi")
    assert session.full_chat_history == []


def test_a_cancelled_request_records_nothing() -> None:
    """A9.8, U4.4."""
    session, begun = Session(), asyncio.Event()

    async def never(messages: Rows) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "late"

    async def cancel() -> None:
        task = asyncio.create_task(Agent(never, session).async_run("hi"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert session.full_chat_history == []


def test_an_answer_for_a_session_that_was_emptied_is_not_recorded() -> None:
    """U4.4; one that was detached meanwhile still gets its answer."""
    session = Session()
    agent = Agent(lambda messages: (session.reset_chat_history(), "late")[1], session)
    assert agent.run("hi") == "late"
    assert session.full_chat_history == []
    agent = Agent(lambda messages: (agent.detach_session(), "mine")[1], session)
    agent.run("hi")
    assert texts(session.full_chat_history) == ["hi", "mine"]


def test_a_resize_that_fails_reaches_the_caller_with_the_answer_recorded() -> None:
    """A4.6, A9.8."""

    def fails(*_: Any) -> Any:
        raise RuntimeError("no")

    session = Session(policy_handler=fails)
    with pytest.raises(RuntimeError, match="no"):
        Agent(Heard(), session).run("hi")
    assert texts(session.messages) == ["hi", "ok"]


PARTS = {"question": "why?", "form": {"id": [7, {"x": "deep"}]}, "none": None}


@pytest.mark.parametrize(
    ("paths", "mode", "expected"),
    [
        ([], "all", "question: why?\nform:\n  id:\n  - 7\n  - x: deep\nnone: null"),
        (["question"], "first", "why?"),
        ("question", "first", "why?"),
        (["missing", "form.id.1.x", "question"], "first", "deep"),
        (["/form/id/1/x"], "first", "deep"),
        (["form.id[1].x"], "first", "deep"),
        (["form/id"], "first", "- 7\n- x: deep"),
        (["question", "missing", "form/id/0"], "all", "question: why?\nform/id/0: 7"),
    ],
)
def test_what_is_recorded_of_the_input(paths: Any, mode: str, expected: str) -> None:
    """A9.9: a dict as YAML; the model gets all of it."""
    model = Heard()
    session = Session().set_settings("session.record.input.paths", paths)
    session.set_settings("session.record.input.mode", mode)
    Agent(model, session).run(PARTS)
    assert session.messages[0].content == expected
    assert "why?" in model.last()[-1]
    assert "deep" in model.last()[-1]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [('{"reply": "hi", "why": "so"}', "hi"), ("no JSON", "no JSON"), ('{"x": 1}', '{"x": 1}')],
)
def test_what_is_recorded_of_the_output(answer: str, expected: str) -> None:
    """A9.9: all of what the paths do not fit, so that nothing is lost; the caller gets it all."""
    output = {"paths": ["reply", "why"], "mode": "first"}
    session = Session({"session": {"record": {"output": output}}})
    assert Agent(Heard(answer), session).run("q") == answer
    assert texts(session.messages) == ["q", expected]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_record_handler_replaces_the_default(is_async: bool) -> None:
    """A9.9: entirely; what is falsy records nothing."""
    results: list[Result] = []
    answers: list[Any] = [None, [], [{"role": "critic", "content": "mine"}]]

    def handler(result: Result) -> Any:
        results.append(result)
        return answers.pop(0)

    async def async_handler(result: Result) -> Any:
        return handler(result)

    session = Session({"session.record.input.paths": ["x"]})
    agent = Agent(Heard(), session)
    assert agent.set_record_handler(async_handler if is_async else handler) is agent
    for _ in range(3):
        agent.run({"x": 1})
    assert texts(session.full_chat_history) == ["mine"]
    assert (results[0].input, results[0].output, results[0].session) == ({"x": 1}, "ok", session)


def test_hooks_see_the_request_and_the_result() -> None:
    """Answer 12: a request that a hook returns is sent instead; what was typed is recorded."""
    results: list[tuple[str, int]] = []
    model, session = Heard(), Session()

    async def louder(request: ModelRequest) -> Any:
        message = Message("user", [{"type": "text", "text": "LOUD"}])
        return ModelRequest(model=request.model, messages=[message])

    agent = Agent(model, session).before_request(louder).before_request(lambda request: None)
    agent.after_request(lambda result: results.append((result.output, len(session.messages))))
    agent.run("quiet")
    assert model.last() == ["LOUD"]
    assert texts(session.messages) == ["quiet", "ok"]
    assert results == [("ok", 2)]


# --- a store --------------------------------------------------------------------------------


class Store:
    """The least that a store is (G4)."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.ttl: Any = None
        self.saved: list[str | None] = []

    def create(self, id: str | None = None, ttl: Any = None, metadata: Any = None) -> Session:
        session = Session(id=id)
        session.change(metadata=metadata)
        self.ttl = ttl
        return self.sessions.setdefault(session.get_id(), session)

    def get(self, id: str) -> Session:
        if id not in self.sessions:
            raise SessionNotFoundError(f"There is no session {id!r}", id=id)
        return self.sessions[id]

    async def save(self, session: Session) -> None:
        self.saved.append(session.id)


def test_an_agent_with_a_store_makes_sessions_and_goes_on_with_them() -> None:
    """G5.5: TTL, metadata, state; a request with its id goes on."""
    store, model = Store(), Heard("one", "two")
    agent = Agent(model, store=store, info=AgentInfo(name="helper"))
    agent.run("hello")
    ((id, session),) = store.sessions.items()
    assert (store.ttl, session.metadata["created_by"]) == (24 * 3600, "helper")
    assert session.metadata["agent_version"]
    assert session.get("initial_input_length") == 5
    assert session.get("session_start_time")
    agent.run("again", id)
    assert model.last() == ["hello", "one", "again"]
    assert texts(session.messages) == ["hello", "one", "again", "two"]
    assert store.saved == [id, id]
    agent.run("another")
    assert len(store.sessions) == 2


def test_an_unknown_id_is_an_error_and_makes_nothing() -> None:
    """G5.5, G4.5; without a store no id can be found."""
    store, model = Store(), Heard()
    with pytest.raises(SessionNotFoundError):
        Agent(model, store=store).run("hi", "nobody")
    with pytest.raises(InvalidInputError, match="store"):
        Agent(model).run("hi", "nobody")
    with pytest.raises(SessionNotFoundError):
        Agent(model, Session(id="mine"), store).run("hi", "nobody")
    assert (store.sessions, model.requests) == ({}, [])


def test_a_bound_session_goes_before_the_store() -> None:
    """A9.2, G5.5: also by its own id."""
    store, session = Store(), Session(id="mine")
    agent = Agent(Heard(), session, store)
    agent.run("a")
    agent.run("b", "mine")
    assert texts(session.messages) == ["a", "ok", "b", "ok"]
    assert store.sessions == {}


@pytest.mark.parametrize("empty", ["", " \n", {}])
def test_empty_input_asks_nobody(empty: Any) -> None:
    """G5.5: and makes no session."""
    store, model = Store(), Heard()
    with pytest.raises(InvalidInputError):
        Agent(model, store=store).run(empty)
    assert (store.sessions, model.requests) == ({}, [])


# --- tools and the history that is sent -----------------------------------------------------


def find(pattern: str) -> list[str]:
    """Find files."""
    if pattern == "bad":
        raise OSError("no such folder")
    return ["a.el", pattern]


async def count() -> dict[str, int]:
    return {"files": 2}


def test_every_tool_call_and_result_is_recorded() -> None:
    """G5.5, G5.6: raw results too, and the model reads them in order, with the ids of its calls."""
    model = ScriptedModel(
        [TextDelta("looking"),
         *uses(("1", "find", {"pattern": "*.el"}), ("2", "find", {"pattern": "bad"}))],
        uses(("3", "count", {}), ("4", "nothing", {}), ("5", "find", {})),
        says("two"),
    )  # fmt: skip
    store, results = MemoryStore(), list[Result]()
    schema = {"type": "object", "properties": {"pattern": {"type": "string"}}}
    agent = Agent(model, store=store).after_request(results.append)
    agent.add_tool(find, input_schema={**schema, "required": ["pattern"]}).add_tool(count)
    assert agent.run("how many?") == "two"
    session = results[0].session
    assert session is not None
    entries = session.get_history(0)[::-1]
    assert [e.type for e in entries] == [
        "message", "message", "tool_call", "tool_call", "tool_result", "tool_result",
        "tool_call", "tool_call", "tool_call", "tool_result", "tool_result", "tool_result",
        "message",
    ]  # fmt: skip
    told = [get_tool_result_content(e)[0] for e in entries if e.type == "tool_result"]
    assert [(t.tool, t.success, t.result) for t in told] == [
        ("find", True, ["a.el", "*.el"]), ("find", False, None),
        ("count", True, {"files": 2}), ("nothing", False, None), ("find", False, None),
    ]  # fmt: skip
    assert [t.error for t in told][:2] == ["", "no such folder"]
    assert "Nothing was run" in told[3].error
    assert "pattern" in told[4].error
    last = model.requests[-1].messages
    assert [r.tool_use_id for m in last for r in tool_results_of(m)] == ["1", "2", "3", "4", "5"]
    assert [m.role for m in last] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        *["tool"] * 3,
    ]
    assert [tool.name for tool in model.requests[0].tools] == ["find", "count"]
    assert model.requests[0].tools[0].description == "Find files."
    agent.run("and now?", session.id)
    assert [r.tool_use_id for m in model.requests[-1].messages for r in tool_results_of(m)] == [
        "1", "2", "3", "4", "5",
    ]  # fmt: skip


def test_a_model_that_never_answers_is_stopped_and_nothing_is_recorded() -> None:
    """A9.8, G5.5."""
    model, session = ScriptedModel(*[uses(("1", "count", {}))] * 9), Session()
    agent = Agent(model, session, info=AgentInfo(name="a", steps=3)).add_tool(count)
    with pytest.raises(ModelError, match="3 requests"):
        agent.run("hi")
    assert (len(model.requests), session.messages) == (3, [])


def test_a_tool_use_that_cannot_be_read_is_told_so() -> None:
    """G5.5: and it is not run."""
    broken = ToolUseDone(id="1", name="count", input=None, raw='{"a":')
    model, session = ScriptedModel([broken, *uses()], says("ok")), Session()
    Agent(model, session).add_tool(count).run("hi")
    (result,) = [r for m in session.messages for r in tool_results_of(m)]
    assert (result.is_error, "Nothing was run" in str(result.content)) == (True, True)


def test_the_history_that_is_sent_has_a_limit() -> None:
    """G5.5: 0 sends no history; a limit cuts no tool call from its result (U2.2)."""
    model, session = ScriptedModel(), Session()
    session.add_message("user", "a")
    session.add_message("assistant", [{"type": "tool_use", "id": "c", "name": "t", "input": {}}])
    session.add_tool_result("c", "x").add_message("assistant", "b")
    agent = Agent(model, session)
    for limit, roles in [
        (0, ["user"]),
        (1, ["user", "assistant", "user"]),
        (2, ["user", "assistant", "user"]),
        (3, ["user", "assistant", "tool", "assistant", "user"]),
        (None, ["user", "assistant", "tool", "assistant", "user"]),
    ]:
        agent.set_history_limit(limit).set_record_handler(lambda _: None).run("now")
        assert [message.role for message in model.requests[-1].messages] == roles, limit
        assert text_of(model.requests[-1].messages[-1]) == "now"
    with pytest.raises(InvalidInputError):
        agent.set_history_limit(-1)


@pytest.mark.parametrize("make", [lambda _: MemoryStore(), SQLiteStore])
def test_any_store_of_ours_serves_an_agent(make: Callable[[Path], Any], tmp_path: Path) -> None:
    """G5.1, G5.2, G5.5: the session is found again, with all that is in it."""
    results: list[Result] = []
    with make(tmp_path / "sessions.db") as store:
        agent = Agent(Heard("one", "two"), store=store).after_request(results.append)
        agent.run("hello")
        made = results[0].session
        assert made is not None
        agent.run("again", made.id)
        found = store.get(made.get_id())
        assert texts(found.messages) == ["hello", "one", "again", "two"]
        assert found.ttl_seconds == 24 * 3600
        assert found.metadata["created_by"] == "assistant"
        assert (found.get("initial_input_length"), len(found.get_history(0))) == (5, 4)
        try:
            agent.run("x", "other")
        except SessionNotFoundError:
            store.create("other")
        assert agent.run("x", "other") == "ok"


def test_the_names_are_where_they_should_be() -> None:
    """Answer 12 and the appendix."""
    from tiro.agents import registry

    assert registry.AgentRegistry is AgentRegistry
    assert registry.AgentInfo is AgentInfo
