"""One function a method: params in, the assistant asked, the result as a wire type out.

Every handler takes the desk it works at and its typed params. Errors are the assistant's own; they
become JSON-RPC errors in `rpc.py`. Which handlers wait for those before them stands in `types.py`.
"""

import contextlib
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import msgspec

from tiro.assistant.turns import new_turn_id
from tiro.protocol import types
from tiro.protocol.connection import Connection
from tiro.protocol.from_wire import absolute, from_wire_attachments, given, text_or_none
from tiro.protocol.wire import (
    to_wire,
    to_wire_agent,
    to_wire_edit,
    to_wire_edits_turn,
    to_wire_explained,
    to_wire_hit,
    to_wire_pruned,
    to_wire_row,
    to_wire_trash_row,
    to_wire_view,
)
from tiro.stores.retention import Rule

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant


class Desk(NamedTuple):
    """What a handler works with."""

    assistant: "Assistant"
    connection: Connection


Handler = Callable[[Desk, Any], Coroutine[Any, Any, Any]]
HANDLERS: dict[str, Handler] = {}
H = TypeVar("H", bound=Handler)


def handles(method: str) -> Callable[[H], H]:
    """Put a handler into the table under its method."""

    def put(handler: H) -> H:
        HANDLERS[method] = handler
        return handler

    return put


# --- the session ----------------------------------------------------------------------------------


async def view(desk: Desk) -> types.SessionView:
    """The current session with its window."""
    return to_wire_view(desk.assistant, await desk.assistant.page())


@handles("tiro/session/get")
async def session_get(desk: Desk, params: types.GetParams) -> types.SessionView:
    """The session, with its window or a page of its history."""
    rows = await desk.assistant.page(params.limit, params.before_seq, params.all)
    return to_wire_view(desk.assistant, rows)


@handles("tiro/session/content")
async def session_content(desk: Desk, params: types.ContentParams) -> types.ContentResult:
    """A long block in pieces."""
    piece = await desk.assistant.content(params.seq, params.block, params.offset, params.limit)
    return to_wire(types.ContentResult, piece)


@handles("tiro/session/show")
async def session_show(desk: Desk, params: types.Empty) -> types.ShowResult:
    """The session as text."""
    text, statistics = await desk.assistant.show(), await desk.assistant.statistics()
    return types.ShowResult(text, to_wire(types.Statistics, statistics))


@handles("tiro/session/statistics")
async def session_statistics(desk: Desk, params: types.Empty) -> types.Statistics:
    """Counts over the window, usage over the session."""
    return to_wire(types.Statistics, await desk.assistant.statistics())


@handles("tiro/session/new")
async def session_new(desk: Desk, params: types.NewParams) -> types.SessionView:
    """End the session and begin another one."""
    await desk.assistant.new(params.id, params.title, params.agent, params.max_history)
    await desk.connection.turns_answered()
    return await view(desk)


@handles("tiro/session/clear")
async def session_clear(desk: Desk, params: types.Empty) -> types.ClearResult:
    """End the session and begin an empty one."""
    cleared = await desk.assistant.saved.clear()
    await desk.connection.turns_answered()
    return types.ClearResult(cleared.cleared, text_or_none(cleared.saved_as))


@handles("tiro/session/addMessage")
async def session_add_message(desk: Desk, params: dict[str, Any]) -> types.AddResult:
    """Add a message; the params are the message."""
    return to_wire(types.AddResult, await desk.assistant.messages.add(params))


@handles("tiro/session/addToolResult")
async def session_add_tool_result(desk: Desk, params: types.AddToolResultParams) -> types.AddResult:
    """Answer a tool use."""
    added = await desk.assistant.messages.answer(
        params.tool_use_id, params.content, bool(params.is_error)
    )
    return to_wire(types.AddResult, added)


@handles("tiro/session/getId")
async def session_get_id(desk: Desk, params: types.Empty) -> types.GetIdResult:
    """The session's id, made now if need be."""
    return types.GetIdResult(await desk.assistant.get_id())


@handles("tiro/session/getAgent")
async def session_get_agent(desk: Desk, params: types.Empty) -> types.AgentResult:
    """The session's agent."""
    return types.AgentResult(to_wire_agent(desk.assistant, desk.assistant.agent()))


@handles("tiro/session/setAgent")
async def session_set_agent(desk: Desk, params: types.SetAgentParams) -> types.AgentResult:
    """Select an agent, or none."""
    agent = await desk.assistant.set_agent(params.name)
    return types.AgentResult(to_wire_agent(desk.assistant, agent))


@handles("tiro/session/configure")
async def session_configure(desk: Desk, params: types.ConfigureParams) -> types.SessionView:
    """Change limits, title and mode of the session."""
    await desk.assistant.configure(given(params))
    return await view(desk)


@handles("tiro/session/contextSize")
async def session_context_size(desk: Desk, params: types.ContextSizeParams) -> types.ContextSize:
    """The size of the next request."""
    return to_wire(types.ContextSize, desk.assistant.context_size(params.draft or ""))


@handles("tiro/session/explain")
async def session_explain(desk: Desk, params: types.ExplainParams) -> types.ExplainResult:
    """The next request, without sending it."""
    attachments = from_wire_attachments(params.attachments, desk.connection.buffers.encoding)
    explained = await desk.assistant.explain(params.draft, attachments, params.agent, params.model)
    return to_wire_explained(explained)


@handles("tiro/session/save")
async def session_save(desk: Desk, params: types.SaveParams) -> types.SaveResult:
    """Write the session's file, or a copy."""
    saved = await desk.assistant.saved.save(absolute(params.path))
    return types.SaveResult(str(saved.path), saved.id, saved.bytes)


@handles("tiro/session/load")
async def session_load(desk: Desk, params: types.LoadParams) -> types.SessionView:
    """Make a saved session the current one."""
    await desk.assistant.load(absolute(params.path), params.id, params.latest)
    await desk.connection.turns_answered()
    return to_wire_view(desk.assistant, await desk.assistant.page(params.limit))


@handles("tiro/session/list")
async def session_list(desk: Desk, params: types.ListParams) -> types.ListResult:
    """The saved sessions, newest first."""
    rows, total = await desk.assistant.saved.list(params.query, params.limit, params.offset)
    return types.ListResult([to_wire_row(row) for row in rows], total)


@handles("tiro/session/delete")
async def session_delete(desk: Desk, params: types.DeleteParams) -> types.DeletedResult:
    """Delete a saved session."""
    deletion = desk.assistant.deletion
    delete = deletion.delete if params.for_good else deletion.discard
    return types.DeletedResult(await delete(params.id))


@handles("tiro/session/rename")
async def session_rename(desk: Desk, params: types.RenameParams) -> types.Empty:
    """Give a saved session a title."""
    await desk.assistant.saved.rename(params.id, params.title)
    return types.Empty()


@handles("tiro/session/prune")
async def session_prune(desk: Desk, params: types.PruneParams) -> types.PruneResult:
    """Move old sessions to the trash, or say which those would be."""
    deletion = desk.assistant.deletion
    plan = await deletion.plan(Rule(params.older_than_days, params.keep_under_bytes))
    if params.dry_run:
        return to_wire_pruned(plan)
    gone = await deletion.prune(plan.going, contextlib.nullcontext())
    return to_wire_pruned(plan.with_only(gone))


@handles("tiro/trash/list")
async def trash_list(desk: Desk, params: types.TrashListParams) -> types.TrashListResult:
    """The deleted sessions, deleted last first."""
    rows, total = await desk.assistant.deletion.deleted(params.limit, params.offset)
    return types.TrashListResult([to_wire_trash_row(row) for row in rows], total)


@handles("tiro/trash/restore")
async def trash_restore(desk: Desk, params: types.RestoreParams) -> types.RestoreResult:
    """Bring a session back."""
    restored = await desk.assistant.deletion.restore(params.id)
    return types.RestoreResult(restored.id, restored.path, restored.id != restored.was_id)


@handles("tiro/trash/empty")
async def trash_empty(desk: Desk, params: types.EmptyTrashParams) -> types.EmptyTrashResult:
    """Remove what is in the trash for good."""
    return types.EmptyTrashResult(await desk.assistant.deletion.empty(params.id))


@handles("tiro/session/search")
async def session_search(desk: Desk, params: types.SearchParams) -> types.SearchResult:
    """Search all sessions, as the requests before it left them; nobody waits for this one."""
    await desk.connection.requests_before()
    async with desk.connection.progress("Tiro is reading saved sessions") as report:
        hits = await desk.assistant.saved.search(
            params.query,
            params.limit,
            lambda done, total: report(f"{done} of {total}", done / total),
        )
    return types.SearchResult([to_wire_hit(hit) for hit in hits])


@handles("tiro/session/export")
async def session_export(desk: Desk, params: types.ExportParams) -> types.ExportResult:
    """A session in another format, as a file or as text."""
    done = await desk.assistant.export(
        params.format, params.id, absolute(params.path), params.redact
    )
    redacted = done.was_redacted or msgspec.UNSET
    notes = done.losses or msgspec.UNSET
    if done.path is not None:
        return types.ExportResult(path=str(done.path), redacted=redacted, notes=notes)
    return types.ExportResult(text=done.text or "", redacted=redacted, notes=notes)


@handles("tiro/session/import")
async def session_import(desk: Desk, params: types.ImportParams) -> types.ImportResult:
    """Make an exported session the current one."""
    _, notes = await desk.assistant.saved.import_from(
        absolute(params.path), params.text, params.format, params.once
    )
    await desk.connection.turns_answered()
    shown = to_wire_view(desk.assistant, await desk.assistant.page(params.limit))
    fields = {name: getattr(shown, name) for name in shown.__struct_fields__}
    return types.ImportResult(**fields, notes=list(notes) or msgspec.UNSET)


@handles("tiro/session/rewind")
async def session_rewind(desk: Desk, params: types.RewindParams) -> types.SessionView:
    """Take back the messages after one."""
    await desk.assistant.messages.rewind(params.to_seq)
    return await view(desk)


@handles("tiro/session/editMessage")
async def session_edit_message(desk: Desk, params: types.EditMessageParams) -> types.SessionView:
    """Give a message another wording."""
    await desk.assistant.messages.edit(params.seq, params.content)
    return await view(desk)


@handles("tiro/session/judgeResize")
async def session_judge_resize(desk: Desk, params: types.ForceParams) -> types.JudgeResult:
    """What a resize would do."""
    decision = await desk.assistant.memory.judge(params.force)
    return types.JudgeResult(to_wire(types.Decision, decision))


@handles("tiro/session/resize")
async def session_resize(desk: Desk, params: types.ForceParams) -> types.ResizeResult:
    """Bring the window under its limits."""
    return to_wire(types.ResizeResult, await desk.assistant.memory.resize(params.force))


@handles("tiro/session/compact")
async def session_compact(desk: Desk, params: types.Empty) -> types.ResizeResult:
    """Fold the window into the summary."""
    return to_wire(types.ResizeResult, await desk.assistant.memory.compact())


@handles("tiro/session/previewResize")
async def session_preview_resize(desk: Desk, params: types.ForceParams) -> types.PreviewResult:
    """What a resize would do, as a draft."""
    return to_wire(types.PreviewResult, await desk.assistant.memory.preview(params.force))


@handles("tiro/session/applyResize")
async def session_apply_resize(desk: Desk, params: types.ApplyResizeParams) -> types.ResizeResult:
    """Do what a preview showed, as the user edited it."""
    memory = desk.assistant.memory
    resized = await memory.apply(params.draft_id, params.memo, params.summary)
    return to_wire(types.ResizeResult, resized)


@handles("tiro/session/undoResize")
async def session_undo_resize(desk: Desk, params: types.Empty) -> types.SessionView:
    """Take back the last resize or compaction."""
    await desk.assistant.memory.undo()
    return await view(desk)


@handles("tiro/session/pin")
async def session_pin(desk: Desk, params: types.PinParams) -> types.PinResult:
    """Hold a message in the window, or let it go."""
    return types.PinResult(await desk.assistant.memory.pin(params.seq, params.pinned))


@handles("tiro/memo/get")
async def memo_get(desk: Desk, params: types.Empty) -> types.MemoResult:
    """Memo and summary."""
    return to_wire(types.MemoResult, desk.assistant.memory.get())


@handles("tiro/memo/set")
async def memo_set(desk: Desk, params: types.MemoSetParams) -> types.MemoResult:
    """Write memo or summary."""
    return to_wire(types.MemoResult, await desk.assistant.memory.set(params.memo, params.summary))


@handles("tiro/state/get")
async def state_get(desk: Desk, params: types.StateGetParams) -> types.StateGetResult:
    """One value of the state, or all of it."""
    if params.key is None:
        return types.StateGetResult(state=desk.assistant.session.state)
    found, value = await desk.assistant.state.get(params.key)
    return types.StateGetResult(found=found, value=value)


@handles("tiro/state/set")
async def state_set(desk: Desk, params: types.StateSetParams) -> types.Empty:
    """Set a key of the state."""
    await desk.assistant.state.set(params.key, params.value)
    return types.Empty()


@handles("tiro/state/delete")
async def state_delete(desk: Desk, params: types.StateDeleteParams) -> types.DeletedResult:
    """Delete a key of the state."""
    return types.DeletedResult(await desk.assistant.state.delete(params.key))


# --- turns, agents, models ------------------------------------------------------------------------


@handles("tiro/turn/start")
async def turn_start(desk: Desk, params: types.TurnStartParams) -> types.TurnResult:
    """Ask, and answer when the turn is over."""
    attachments = from_wire_attachments(params.attachments, desk.connection.buffers.encoding)
    assistant, id = desk.assistant, new_turn_id()
    result = await desk.connection.run_turn(
        lambda: assistant.start_turn(id, params.prompt, attachments, params.agent, params.model),
        lambda: assistant.cancelled_turn(id),
    )
    return types.TurnResult(
        turn_id=result.turn_id,
        stop_reason=cast("types.StopReason", result.outcome.stop_reason),  # else it raises
        text=result.outcome.text,
        first_seq=result.outcome.first_seq,
        last_seq=result.outcome.last_seq,
        steps=result.outcome.steps,
        usage=to_wire(types.Usage, result.outcome.usage),
        context_size=to_wire(types.ContextSize, result.context_size),
    )


@handles("tiro/turn/cancel")
async def turn_cancel(desk: Desk, params: types.TurnCancelParams) -> types.TurnCancelResult:
    """Stop the running turn."""
    return types.TurnCancelResult(
        await desk.connection.cancel_turn(desk.assistant.turns, params.turn_id)
    )


@handles("tiro/turn/steer")
async def turn_steer(desk: Desk, params: types.TurnSteerParams) -> types.TurnSteerResult:
    """Say something to the running turn, or to the one that is starting."""
    await desk.connection.turns_started()
    desk.assistant.turns.steer(params.text, params.turn_id)
    is_stored = desk.assistant.manager.is_stored(desk.assistant.session)
    return types.TurnSteerResult(queued=True, stored=msgspec.UNSET if is_stored else False)


@handles("tiro/agents/list")
async def agents_list(desk: Desk, params: types.AgentsListParams) -> types.AgentsListResult:
    """The agents a user may select, or all."""
    agents = await desk.assistant.list_agents(bool(params.all))
    rows = [to_wire_agent(desk.assistant, agent) for agent in agents]
    return types.AgentsListResult([row for row in rows if row], desk.assistant.setup.agents.default)


@handles("tiro/models/list")
async def models_list(desk: Desk, params: types.Empty) -> types.ModelsListResult:
    """The models of every provider."""
    rows = [to_wire(types.ModelRow, row) for row in await desk.assistant.list_models()]
    return types.ModelsListResult(rows, desk.assistant.current_model())


@handles("tiro/models/set")
async def models_set(desk: Desk, params: types.ModelsSetParams) -> types.ModelsSetResult:
    """Choose the session's model."""
    return types.ModelsSetResult(await desk.assistant.set_model(params.name))


@handles("tiro/edits/list")
async def edits_list(desk: Desk, params: types.EditsListParams) -> types.EditsListResult:
    """The edits of the user's files."""
    edits = await desk.assistant.edits.list(params.limit, params.turn_id)
    return types.EditsListResult([to_wire_edit(edit) for edit in edits])


@handles("tiro/edits/next")
async def edits_next(desk: Desk, params: types.Empty) -> types.EditsNextResult:
    """What would be taken back next, and what made again."""
    edits, id = desk.assistant.edits, desk.assistant.session.id
    undo, redo = await edits.next("undone", id), await edits.next("made", id)
    return types.EditsNextResult(undo=to_wire_edits_turn(undo), redo=to_wire_edits_turn(redo))


@handles("tiro/edits/undo")
async def edits_undo(desk: Desk, params: types.EditParams) -> types.EditResult:
    """Take back an edit, or a turn's."""
    done = await desk.assistant.edits.undo(params.id, params.turn_id, desk.assistant.session.id)
    return types.EditResult(list(map(str, done.paths)), list(done.commands))


@handles("tiro/edits/redo")
async def edits_redo(desk: Desk, params: types.EditParams) -> types.EditResult:
    """Make again what was undone."""
    done = await desk.assistant.edits.redo(params.id, params.turn_id, desk.assistant.session.id)
    return types.EditResult(list(map(str, done.paths)), list(done.commands))


@handles("tiro/permissions/explain")
async def permissions_explain(
    desk: Desk, params: types.PermissionsExplainParams
) -> types.PermissionsExplainResult:
    """Whether a tool use would run, and why."""
    found = await desk.assistant.explain_permission(params.agent, params.tool, params.input)
    first = found[0].decision
    rules = [types.PermissionRule(x.decision.rule, x.decision.source, x.about) for x in found]
    return types.PermissionsExplainResult(first.kind, first.rule, first.source, rules)


@handles("tiro/status")
async def status(desk: Desk, params: types.Empty) -> types.StatusResult:
    """How this server is set up."""
    now = await desk.assistant.status()
    return types.StatusResult(
        version=now.version,
        python=now.python,
        config_files=list(map(str, now.config_files)),
        sessions_directory=str(now.sessions_directory),
        model=now.model,
        provider=now.provider,
        problems=now.problems,
    )
