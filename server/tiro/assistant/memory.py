"""The memory of the current session: resize, compaction, memo, summary, pins (A, N, M7.1).

Models are asked outside the session's lock; what they answer is committed in one step, or not at
all. The background summary starts when a turn has ended, so that no reply ever waits for it.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from tiro.agents.agent_info import AgentInfo
from tiro.agents.asking import NOBODY, Chat
from tiro.assistant.asked import Asked, overtaken
from tiro.assistant.draft import COMPACTION, Draft, Watch, preview_of, preview_of_nothing, stale
from tiro.assistant.memo_upkeep import Upkeep
from tiro.assistant.model_choice import Models, chosen_of
from tiro.assistant.pins import check_pins
from tiro.assistant.results import MemoryView, Preview, Resized
from tiro.assistant.running_turn import entered
from tiro.assistant.setbacks import Setbacks
from tiro.assistant.summary_upkeep import SummaryUpkeep
from tiro.errors import InvalidInputError, ResizeError, SessionInUseError
from tiro.models.model import Model
from tiro.session import history, policy, resize, summary
from tiro.session import memo as memos
from tiro.session.cap import cap_in
from tiro.session.core import Core
from tiro.session.messages import Usage
from tiro.session.policy import Budget, ResizeDecision
from tiro.session.resize import Plan, ResizeOutcome
from tiro.session.session import Session
from tiro.session.summary import MAX_CHARACTERS, Fold, Summarizer
from tiro.stores.notices import Notice

if TYPE_CHECKING:
    from tiro.assistant.assistant import Assistant

MAX_OUTPUT_TOKENS = 4_000
"""What a summary or a memo may take, at most a quarter of the model's window."""

NO_MEMO = (
    "The memo of this conversation is not up to date: {}. What it has not read is kept, and it is"
    " tried again with the next resize"
)

COMPACT = "compact"
"""The `force` of a preview that asks for a compaction."""

NOTHING = ResizeOutcome(None, 0)

log = logging.getLogger(__name__)


class Memory:
    """What the assistant does to the memory of its current session."""

    def __init__(self, assistant: "Assistant", on_notice: Callable[[Notice], None]) -> None:
        self._assistant = assistant
        self.on_asking: Callable[[], None] = lambda: None
        """Called when a model is asked: from then on nobody need wait for what it was asked for."""
        self._draft: Draft | None = None
        self._summaries = SummaryUpkeep(assistant, on_notice)
        self._memo_setbacks = Setbacks()
        self._memo_upkeep = Upkeep(self.current, self._budget, self._memo_told)
        self._unpaid: tuple[Session | None, Usage] = (None, Usage())
        """What questions have cost that no change has told yet: they come under the next lock."""

    async def judge(self, force: bool | str | None = None) -> ResizeDecision | None:
        """What a resize would do; changes nothing."""
        session, budget = self._assistant.session, self._budget()
        return await policy.judge(session, session.settings, force, budget=budget)

    async def resize(self, force: bool | str | None = None) -> Resized:
        """Bring the window under its limits; ResizeError when it failed and nothing changed."""
        session = await self._up_to_date()
        with Asked(self._assistant, session, self.writing) as asked:
            plan = await self._planned(session, force)
            before = self._tokens()  # by the measure of the model that was asked
            if plan is None:
                return self._resized(session, NOTHING, before)
            return await self._committed(session, plan, before, asked.storing(session))

    async def preview(self, force: bool | str | None = None) -> Preview:
        """What a resize or, with `compact`, a compaction would do.

        Where it would do anything, it is kept as a draft for `apply`.
        """
        session = self._assistant.session
        with contextlib.suppress(SessionInUseError):  # then it shows what is known here
            await self._caught_up(session)
        self._drop_draft()
        watch = Watch(session)
        try:
            plan: Plan | Fold | None
            with Asked(self._assistant, session, self.writing):
                if force == COMPACT:
                    plan = await self._folded(session)
                else:
                    plan = await self._planned(session, force)
        except BaseException:
            watch.close()
            raise
        before = self._tokens()  # by the measure of the model that was asked, as `apply` has it
        if plan is None:
            watch.close()
            return preview_of_nothing(session, before)
        self._draft = draft = Draft(uuid4().hex, plan, watch, session.memo, session.summary)
        return preview_of(draft, before, self._assistant.measured(draft.tried()).tokens)

    async def apply(self, draft_id: str, memo: Any = None, summary: str | None = None) -> Resized:
        """Do what a preview showed, with the user's memo and summary in place of the draft's.

        Raises ResizeError (`stale`) for a draft that any change but added messages has overtaken.
        """
        session, draft, before = self._idle(), self._draft, self._tokens()
        if draft is None or draft.id != draft_id or draft.watch.session is not session:
            raise stale()
        async with self.writing(session):  # up to date with what other processes wrote
            if draft.is_stale():
                raise stale()
            self._drop_draft()
            outcome = draft.commit(memo, summary)
        self._assistant.tell_all(self._assistant.too_long())
        return self._resized(session, outcome, before)

    async def undo(self) -> Session:
        """Bring back window, memo and summary of before the last resize or compaction."""
        session = self._idle()
        async with self.writing(session):
            resize.undo(session)
        return session

    async def compact(self) -> Resized:
        """Fold the window into the summary (M7.1); ResizeError when nothing changed."""
        session = await self._up_to_date()
        if self._has_nothing_to_fold(session):
            return self._resized(session, NOTHING, self._tokens())
        with Asked(self._assistant, session, self.writing) as asked:
            summarizer, prompt = await self._compacting(session)
            before = self._tokens()  # by the measure of the model that is asked
            summarizer.storing = asked.storing
            window = {message.seq for message in session.newest_first}
            if not await summary.compact(session, summarizer, prompt):
                raise overtaken()
        evicted = len(window - {message.seq for message in session.newest_first})
        return self._resized(session, ResizeOutcome(COMPACTION, evicted), before)

    def get(self) -> MemoryView:
        """Memo and summary, and how far they have come."""
        session = self._assistant.session
        memo = session.memo
        return MemoryView(
            memo=memo,
            summary=session.summary,
            memo_cursor=session.memo_cursor,
            last_resize=memo.get(memos.BOOKKEEPING) if isinstance(memo, dict) else None,
            summary_in_progress=session.summary_in_progress,
        )

    async def set(self, memo: Any = None, summary: str | None = None) -> MemoryView:
        """Write memo and summary, those that are given."""
        fields = {"memo": memo, "summary": summary}
        given = {name: value for name, value in fields.items() if value is not None}
        async with self.writing(self._assistant.session) as session:
            if given:
                session.change(**given)
        self._assistant.tell_all(self._assistant.too_long())
        return self.get()

    async def pin(self, seq: int, pinned: bool) -> list[int]:
        """Hold a message in the window, or let it go; the pins afterwards (U2.8)."""
        budget = self._budget()
        async with self.writing(self._assistant.session) as session:
            before = list(session.pins)
            history.pin(session, seq, pinned)
            try:
                check_pins(session, budget if pinned else None)
            except InvalidInputError:
                session.change(pins=before)
                raise
        return list(session.pins)

    def use(self, session: Session, model: Model) -> None:
        """Let this model write the session's memo from now on."""
        chat = self._asking(session, model, memos.SCHEMA)
        cap = cap_in(session.meter.text, model.facts.context_window)
        session.handlers = msgspec.structs.replace(session.handlers, memo_model=chat, memo_cap=cap)

    async def after_turn(self, session: Session) -> None:
        """Start what a reply does not wait for: the summary, and the memo's rest; never raises.

        What fails goes on waiting, and a later turn tries again (N3.7).
        """
        if (reading := self._memo_upkeep.start(session)) is not None:
            self._assistant.turns.beside(reading)
        if self._unpaid[0] is session:
            try:
                await self._caught_up(session)
            except Exception as error:
                log.warning("What session %s cost is stored later: %s", session.id, error)
                return
        await self._summaries.start(session)

    async def close(self) -> None:
        """End what runs in the background; what it was about goes on waiting."""
        await self._memo_upkeep.close()
        await self._summaries.close()

    @contextlib.asynccontextmanager
    async def current(self, session: Core) -> AsyncIterator[None]:
        """The right to store what a model wrote: only into the current session (N4.8)."""
        manager = self._assistant.manager
        async with self.writing(session):
            if manager.current is not session or await self._is_deleted(session):
                raise ResizeError("It is not the current session any more", reason="overtaken")
            yield

    def _memo_told(self, session: Core, refused: str | None) -> None:
        """Count what came of reading into the memo; the first refusal in a row is told."""
        if refused is None:
            self._memo_setbacks.end(session)
        elif self._assistant.manager.current is session and self._memo_setbacks.is_first(session):
            self._assistant.say(NO_MEMO.format(refused))

    # --- how it is done ---

    def _idle(self) -> Session:
        """The current session, while no turn runs."""
        self._assistant.turns.refuse_another()
        return self._assistant.session

    async def _up_to_date(self) -> Session:
        """The current session as other processes left it; SessionInUseError where one answers."""
        await self._caught_up(self._idle())
        return self._idle()

    async def _caught_up(self, session: Session) -> None:
        """Take over what other processes wrote, and store what questions have cost."""
        async with self.writing(session):
            pass

    def _tokens(self) -> int:
        return self._assistant.context_size().tokens

    def _budget(self) -> Budget | None:
        return self._assistant.setup.budget(self._assistant.context_size())

    async def _planned(self, session: Session, force: bool | str | None) -> Plan | None:
        if session.settings.memo_is_enabled():
            self.use(session, (await self.chat(session)).model)
        try:
            return await resize.planned(session, session.settings, force, self._budget())
        except (KeyError, TypeError) as error:
            reason = str(error.args[0]) if error.args else str(error)
            raise ResizeError(f"The resize failed: {reason}", reason=reason) from error

    async def _folded(self, session: Session) -> Fold | None:
        """What a compaction would do, None for nothing."""
        if self._has_nothing_to_fold(session):
            return None
        return await summary.folded_window(session, *await self._compacting(session))

    def _has_nothing_to_fold(self, session: Session) -> bool:
        """Whether a compaction would do nothing; ResizeError where only pins are in its way."""
        if summary.foldable(session) or session.pending():
            return False
        if session.newest_first:
            raise _all_pinned()
        return True

    async def _compacting(self, session: Session) -> tuple[Summarizer, str]:
        """Who writes the summary of a compaction, and what it is told."""
        agent = self._assistant.setup.agents.needed("compaction")
        return await self.summarizer(session, agent), agent.prompt

    async def _committed(
        self,
        session: Session,
        plan: Plan,
        before: int,
        storing: contextlib.AbstractAsyncContextManager[Any],
    ) -> Resized:
        async with storing:
            outcome = resize.commit(session, plan)
        if outcome.decision is None:
            raise overtaken()
        return self._resized(session, outcome, before)

    def _resized(self, session: Session, outcome: ResizeOutcome, before: int) -> Resized:
        return Resized(
            decision=outcome.decision,
            evicted=outcome.evicted,
            total=len(session.newest_first),
            tokens_before=before,
            tokens_after=self._tokens(),
            memo=session.memo,
            summary=session.summary,
            memo_refused=outcome.memo_refused,
        )

    def _drop_draft(self) -> None:
        if self._draft is not None:
            self._draft.watch.close()
            self._draft = None

    async def summarizer(self, session: Session, agent: AgentInfo = NOBODY) -> Summarizer:
        """Who writes summaries for this session, in pieces that fit the model's window."""
        chat = await self.chat(session, agent, session.settings["session.summary.model"])
        window = chat.model.facts.context_window
        characters = MAX_CHARACTERS if window is None else max(1, min(MAX_CHARACTERS, window // 2))
        read_in = self._assistant.context_size().context_window
        cap = cap_in(session.meter.text, window, read_in)
        return Summarizer(chat, chat.model.name, max_characters=characters, cap=cap)

    async def chat(
        self, session: Session, agent: AgentInfo = NOBODY, model: str | None = None
    ) -> Chat:
        """For a question besides the turn: the agent's model, else this one or the session's."""

        async def choose(models: Models) -> Model:
            setup = self._assistant.setup
            wanted = agent.model or model or setup.model_of(session) or setup.settings.model
            if not models.is_at_hand(wanted):
                self.on_asking()
            return await models.choose(wanted)

        return self._asking(
            session, await chosen_of(lambda: self._assistant.models, choose), agent=agent
        )

    def _asking(
        self,
        session: Session,
        model: Model,
        schema: dict[str, Any] | None = None,
        agent: AgentInfo = NOBODY,
    ) -> Chat:
        window = model.facts.context_window
        most = MAX_OUTPUT_TOKENS if window is None else max(1, min(MAX_OUTPUT_TOKENS, window // 4))

        def count(usage: Usage) -> None:
            owner, before = self._unpaid
            self._unpaid = (session, before + usage if owner is session else usage)

        return Chat(model, count, most, lambda: self.on_asking(), schema, agent)

    @contextlib.asynccontextmanager
    async def writing(self, session: Core) -> AsyncIterator[Session]:
        """The session for one change: locked against other processes, and up to date."""
        assert isinstance(session, Session)
        async with entered(self._assistant.manager.changing(session)):
            yield session
            owner, usage = self._unpaid
            if owner is session and not await self._is_deleted(session):
                self._unpaid = (None, Usage())
                session.change(usage=session.usage + usage)

    async def _is_deleted(self, session: Core) -> bool:
        return await asyncio.to_thread(self._assistant.manager.live.is_deleted, session)


def _all_pinned() -> ResizeError:
    return ResizeError(
        "All messages of the window are pinned, so there is nothing to compact; let some go first",
        reason="all_pinned",
    )
