"""The names that programs may rely on, each with the arguments that it was promised with."""

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tiro
from tiro import Message, Session, TiroError
from tiro.errors import InvalidInputError, SessionFormatError
from tiro.stores.formats import export_session, import_session

NO = "()"
HISTORY = "(messages)"
LIMITS = "(chars=None, messages=None)"
LIMITS_AND_TURNS = "(chars=None, messages=None, every_n_turns=None)"

SESSION: dict[str, str] = {
    **dict.fromkeys(
        ["get_messages", "summarize", "statistics", "text_length", "context_size", "get_id"], NO
    ),
    **dict.fromkeys(["get_agent", "to_json", "to_yaml"], NO),
    "recent_messages": "(max_messages=500)",
    "append_message": "(message)",
    "add_message": "(role, content, **extra)",
    "add_tool_result": "(tool_use_id, result, is_error=False)",
    "clear": "(keep_memo=False)",
    "rewind": "(to_seq)",
    "edit_message": "(seq, content)",
    "pin": "(seq, pinned=True)",
    "update_summary": "(text)",
    "set_policy_handler": "(policy)",
    "set_resize_handlers": "(type, handler)",
    "set_attachment_summary_handler": "(handler)",
    "set_memo_update_handler": "(handler)",
    "configure": "(mode=None, limit=None, every_n_turns=None)",
    "set_limit": LIMITS,
    "use_lite": LIMITS_AND_TURNS,
    "use_memo": LIMITS_AND_TURNS,
    "set_settings": "(key, value)",
    "trim_if_needed": "(limit, min_keep)",
    "set": "(key, value)",
    "get": "(key, default=None)",
    "lookup": "(key)",
    "delete": "(key)",
    "add_entry": "(entry)",
    "get_history": "(limit=0)",
    "set_agent": "(name)",
    "load_json": "(text)",
    "load_yaml": "(text)",
}
PAIRS = {
    "set_chat_history": HISTORY,
    "add_chat_history": HISTORY,
    "reset_chat_history": "(drop_memo=False)",
    "judge_resize": "(force=False)",
    "resize": "(force=False)",
    "compact": "(summarizer)",
}
"""Names that wait for a model, or go with one that does: `async_…` is the other half."""
FIELDS = [
    "id", "agent", "title", "model", "max_history", "memo", "summary", "summary_in_progress",
    "pins", "metadata", "created_at", "updated_at", "settings", "_turns", "_last_resize_turn",
    "_memo_cursor", "messages", "current_chat_history", "full_chat_history", "archive",
    "newest_message",
]  # fmt: skip
OTHERS = {
    "tiro.provider_view": "(window, archive=(), *, merge=False, thinking=False)",
    "tiro.estimate_tokens": "(text, model=None)",
    "tiro.stores.formats.export_session": "(session, format)",
    "tiro.stores.formats.import_session": "(text, format=None)",
    "tiro.agents.prompt.build_system_prompt": "(prompt, memo=None, summary=None)",
    "tiro.session.summary.before_turn": "(session, summarizer=None, manager=None)",
    "tiro.session.summary.Summarizer": "(provider, model, summary_model=None…)",
    "tiro.session.summary.Summarizer.summarize_async": "(evicted, previous_summary, callback)",
    "tiro.session.summary.Summarizer.fire_and_forget":
        "(session, session_manager, evicted_messages, previous_summary)",
    "tiro.Entry": "(…id=…, …type, …timestamp=…, …content, …metadata=…)",
    "tiro.session.entries.new_message_entry": "(role, text)",
    "tiro.session.entries.new_tool_call_entry": "(tool, parameters=None)",
    "tiro.session.entries.new_tool_result_entry": "(tool, result=None, error=None)",
    "tiro.session.entries.get_message_content": "(entry)",
    "tiro.session.entries.get_tool_call_content": "(entry)",
    "tiro.session.entries.get_tool_result_content": "(entry)",
    "tiro.session.entries.Entry.to_json": NO,
    "tiro.session.entries.Entry.from_json": "(text)",
    "tiro.stores.manager.SessionManager": "(directory, *, agents=None, …)",
    "tiro.stores.manager.SessionManager.create": "(max_history=…, agent=None, id=None)",
    "tiro.stores.manager.SessionManager.get": NO,
    "tiro.stores.manager.SessionManager.reset": NO,
    "tiro.stores.manager.SessionManager.set_current": "(session)",
    "tiro.stores.manager.SessionManager.get_or_create": "(key)",
    "tiro.stores.manager.SessionManager.save": "(session, file=None)",
    "tiro.stores.manager.SessionManager.load": "(file)",
    "tiro.stores.manager.SessionManager.list_saved": NO,
    "tiro.stores.manager.SessionManager.list": "(…)",
    "tiro.stores.manager.SessionManager.invalidate": "(key)",
    "tiro.agents.agent.AgentRegistry.get": "(name)",
    "tiro.agents.agent.AgentRegistry.names": "(hidden=False)",
    "tiro.agents.agent.AgentRegistry.list": NO,
    "tiro.agents.agent.AgentRegistry.register": "(agent)",
    "tiro.agents.agent.AgentRegistry.unregister": "(name)",
    "tiro.agents.agent.AgentRegistry.set_default": "(name)",
    "tiro.agents.registry.AgentRegistry": "(…)",
    "tiro.agents.permissions.decide": "(permission, tool, input, …)",
    "tiro.agents.permissions.merge": "(*tables)",
    "tiro.agents.permissions.PermissionDecision": "(kind, rule, …)",
    "tiro.agents.agent.AgentInfo": "(…)",
    "tiro.agents.agent.Agent": "(model, session=None, store=None, info=None)",
    "tiro.agents.agent.Agent.attach_session": "(session=None, *, mode=None)",
    "tiro.agents.agent.Agent.detach_session": NO,
    "tiro.agents.agent.Agent.get_session": NO,
    "tiro.agents.agent.Agent.set_record_handler": "(handler)",
    "tiro.agents.agent.Agent.set_history_limit": "(limit)",
    "tiro.agents.agent.Agent.add_tool":
        "(function, name=None, description=None, input_schema=None)",
    "tiro.agents.agent.Agent.before_request": "(hook)",
    "tiro.agents.agent.Agent.after_request": "(hook)",
    "tiro.agents.agent.Agent.set_chat_history": HISTORY,
    "tiro.agents.agent.Agent.add_chat_history": HISTORY,
    "tiro.agents.agent.Agent.reset_chat_history": "(drop_memo=False)",
    "tiro.agents.agent.Agent.async_set_chat_history": HISTORY,
    "tiro.agents.agent.Agent.async_add_chat_history": HISTORY,
    "tiro.agents.agent.Agent.async_reset_chat_history": "(drop_memo=False)",
    "tiro.agents.agent.Agent.run": "(text, session_id=None)",
    "tiro.agents.agent.Agent.async_run": "(text, session_id=None)",
}  # fmt: skip
ERRORS = [
    "AgentNotFoundError", "BudgetExceededError", "ContextOverflowError", "EditConflictError",
    "InvalidInputError", "InvalidMessageError", "InvalidSessionIdError", "ModelError",
    "ModelNotConfiguredError", "ResizeError", "SessionChangedError",
    "SessionExistsError", "SessionFormatError", "SessionInUseError", "SessionNotFoundError",
    "StorageError", "TurnInProgressError", "TurnNotFoundError",
]  # fmt: skip


def found(path: str) -> Any:
    """What stands at a dotted path: a module's, or a class' own."""
    parts, module = path.split("."), ""
    for index in range(len(parts), 0, -1):
        module = ".".join(parts[:index])
        try:
            value: Any = import_module(module)
            break
        except ModuleNotFoundError:
            continue
    for name in path.removeprefix(module).split(".")[1:]:
        value = getattr(value, name)
    return value


def shape(function: Callable[..., Any]) -> str:
    """The arguments with their defaults, without types and `self`."""
    signature = inspect.signature(function)
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    return str(inspect.Signature(plain))


def takes(function: Callable[..., Any], promised: str) -> None:
    """Compare with the arguments promised; `…` is anything."""
    assert re.fullmatch(re.escape(promised).replace("…", ".*"), shape(function)), shape(function)


@pytest.mark.parametrize(("name", "promised"), [*SESSION.items(), *PAIRS.items()])
def test_a_session_has_its_methods(name: str, promised: str) -> None:
    takes(getattr(Session, name), promised)


@pytest.mark.parametrize(("name", "promised"), PAIRS.items())
def test_what_waits_for_a_model_has_two_forms(name: str, promised: str) -> None:
    """A7.2: the sync name is one line over the async one."""
    twin = getattr(Session, f"async_{name}")
    assert inspect.iscoroutinefunction(twin)
    takes(twin, promised)


@pytest.mark.parametrize("name", FIELDS)
def test_a_session_has_its_fields(name: str) -> None:
    assert hasattr(Session(), name)


def test_a_session_is_made_with_its_handlers() -> None:
    """A2.8."""
    takes(
        Session,
        "(settings=None, *, id=None, max_history=None, agent=None, policy_handler=None,"
        " resize_handlers=None, attachment_summary_handler=None, memo_update_handler=None,"
        " clock=…, new_id=…)",
    )


@pytest.mark.parametrize(("path", "promised"), OTHERS.items())
def test_every_other_name_is_where_it_was_promised(path: str, promised: str) -> None:
    takes(found(path), promised)


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_at_the_root(name: str) -> None:
    assert issubclass(getattr(tiro, name), TiroError)
    assert name in tiro.__all__


def test_the_root_has_its_names() -> None:
    assert {"Session", "Message", "Entry", "TiroError", "provider_view", "estimate_tokens"} <= {
        *tiro.__all__
    }
    assert tiro.__version__


def test_a_message_reads_like_a_mapping() -> None:
    """Answer 12: also `seq`, on messages of a session; unknown fields are kept in `extra`."""
    session = Session().append_message({"role": "user", "content": "hi", "x": 1})
    message = session.messages[0]
    assert (message["role"], message["content"], message["seq"]) == ("user", "hi", 1)
    assert message.extra == {"x": 1}
    assert session.append_message(Message("assistant", "yes")) is session


@pytest.mark.parametrize("format", ["json", "yaml", "jsonl", "agently", "agently-yaml"])
def test_a_session_is_exported_and_imported_without_a_store(format: str, tmp_path: Path) -> None:
    """U7.4: the format is recognised by its content, and the messages are equal."""
    session = Session(id="mine")
    for n in range(3):
        session.add_message("user", f"frage {n} ü").add_message("assistant", "antwort")
    text = export_session(session, format)
    for again in (import_session(text), import_session(text, format)):
        assert [m["content"] for m in again.messages] == [m["content"] for m in session.messages]
        assert again.id == "mine"
        again.add_message("user", "one more")
        assert again.messages[-1].seq == 7


def test_what_has_no_id_gets_one_and_what_is_no_session_is_refused() -> None:
    assert import_session('{"messages": [{"role": "user", "content": "hi"}]}').id
    with pytest.raises(SessionFormatError):
        import_session("[1, 2")
    with pytest.raises(InvalidInputError, match="json"):
        export_session(Session(), "papyrus")
