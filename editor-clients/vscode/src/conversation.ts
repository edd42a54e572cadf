/**
 * The transcript as this window shows it: stored messages and the events of the running turn.
 *
 * Pure: every method returns the changes that a view has to paint. An event costs the same in a
 * long conversation as in a short one.
 */

import type { Ending } from "./endings";
import { itemsOf, markUnanswered, numbered } from "./items";
import type { Message } from "./messages";
import { BROKEN_OFF, endNotice, type Notice, resizeNotice, SAID_TOO_LATE, SAID_WAITS } from "./notices";
import type { FinishedEvent, ResizeEvent, StoredEvent, TextEvent, ThinkingEvent, ToolUseEvent, TurnEvent } from "./protocol";
import { type Change, ToolUses } from "./toolUses";
import { TurnEnds } from "./turnEnds";
import type { Item, NoticeAction, NoticeItem, TextItem, ThinkingItem, TranscriptChange, UserItem } from "./viewMessages";

/** How many items a view gets at once. */
const PAGE_ITEMS = 100;

export class Conversation {
  #items: Item[] = [];
  readonly #tools = new ToolUses();
  #streaming: TextItem | ThinkingItem | undefined;
  #prompt: UserItem | undefined;
  /** What was said to the running turn and is not yet part of the session. */
  #said: UserItem[] = [];
  /** The texts of the message that is being written. */
  #unstored: TextItem[] = [];
  #hasAnswered = false;
  #oldestSeq: number | undefined;
  readonly #ends = new TurnEnds();
  #made = 0;

  get items(): readonly Item[] {
    return this.#items;
  }

  /** Whether the session holds messages older than those shown. */
  get hasEarlier(): boolean {
    return this.#oldestSeq !== undefined && this.#oldestSeq > 1;
  }

  /** How turns of this session ended, where that was told. */
  get endings(): readonly Ending[] {
    return this.#ends.endings;
  }

  get oldestSeq(): number | undefined {
    return this.#oldestSeq;
  }

  /** What an item of this window shows of a file's change; one that was read from the session is asked for there. */
  changeOf(itemId: string): Change | undefined {
    return this.#tools.change(itemId);
  }

  /** The last items, for a view that has just been made; it asks for the others. */
  snapshot(): TranscriptChange {
    const items = this.#items.slice(-PAGE_ITEMS);
    return { type: "reset", items, hasEarlier: this.hasEarlier || items.length < this.#items.length };
  }

  /** Items before one, for a view that has it; undefined where none is known. */
  before(id: string): TranscriptChange | undefined {
    const end = this.#items.findIndex((item) => item.id === id);
    const start = Math.max(0, end - PAGE_ITEMS);
    const hasEarlier = this.hasEarlier || start > 0;
    return end <= 0 ? undefined : { type: "prepend", items: this.#items.slice(start, end), hasEarlier };
  }

  /** Show these messages with how their turns ended, and below them a prompt that the server does not have yet. */
  reset(messages: readonly Message[], endings: readonly Ending[] = []): TranscriptChange[] {
    const waiting = this.#prompt;
    this.#tools.forget();
    this.#items = itemsOf(messages, endings);
    markUnanswered(this.#items);
    this.#oldestSeq = messages[0]?.seq ?? undefined;
    this.#ends.reset(messages.at(-1)?.seq ?? 0, endings);
    this.#clearTurn();
    if (waiting !== undefined) {
      this.#prompt = waiting;
      this.#items.push(waiting);
    }
    return [this.snapshot()];
  }

  /** Show older messages above the others. */
  prepend(messages: readonly Message[]): TranscriptChange[] {
    const items = itemsOf(messages, this.endings);
    this.#items.unshift(...items);
    this.#oldestSeq = messages.length === 0 ? 1 : (messages[0]?.seq ?? 1);
    return [{ type: "prepend", items, hasEarlier: this.hasEarlier }];
  }

  /** Show the user's prompt before the server has it. */
  ask(text: string, attachments: string[]): TranscriptChange[] {
    this.#clearTurn();
    this.#prompt = { kind: "user", id: this.#newId(), text, attachments };
    return [this.#add(this.#prompt)];
  }

  /** The user says this to the running turn; it waits until the turn takes it. */
  say(text: string): TranscriptChange[] {
    const item: UserItem = { kind: "user", id: this.#newId(), text, attachments: [], mark: SAID_WAITS };
    this.#said.push(item);
    return [this.#add(item)];
  }

  /** The server did not take these words. */
  unsay(text: string): TranscriptChange[] {
    return this.#said.filter((said) => said.text === text).map((item) => this.#withdraw(item));
  }

  /** The server did not take the prompt: take it off the transcript again. */
  withdrawPrompt(): TranscriptChange[] {
    const prompt = this.#prompt;
    this.#prompt = undefined;
    return prompt === undefined ? [] : [this.#withdraw(prompt)];
  }

  /** One event of the running turn. */
  apply(event: TurnEvent): TranscriptChange[] {
    switch (event.type) {
      case "started":
        return this.#start(event.seq);
      case "text":
      case "thinking":
        return this.#stream(event);
      case "toolUse":
        return this.#toolUse(event);
      case "toolOutput":
        return this.#tools.output(event);
      case "toolResult":
        return this.#tools.result(event);
      case "stored":
        return this.#stored(event);
      case "resize":
        return this.#resized(event);
      case "finished":
        return this.#finish(event);
      default:
        return []; // the others tell about the session's numbers, not about its text
    }
  }

  /** The turn ended without its last event, as when the server died. */
  breakOff(): TranscriptChange[] {
    return [...this.#endStream(true), ...this.#leaveSaid(), ...(this.#ends.isRunning ? this.#end(BROKEN_OFF) : [])];
  }

  /** Tell the user something that is no message; told again at once, it takes its own place. */
  notice(level: NoticeItem["level"], text: string, actions: NoticeAction[] = []): TranscriptChange[] {
    const told = this.#items.slice(-1).filter((item) => item.kind === "notice" && item.level === level && item.text === text);
    return [...told.map((item) => this.#withdraw(item)), this.#add({ kind: "notice", id: this.#newId(), level, text, actions })];
  }

  #start(seq: number): TranscriptChange[] {
    const prompt = this.#prompt;
    this.#prompt = undefined;
    this.#ends.start(seq);
    return prompt === undefined ? [] : [numbered(prompt, seq)];
  }

  /** What made room by itself is told, and how that is taken back: only the last one can be. */
  #resized(event: ResizeEvent): TranscriptChange[] {
    const notice = resizeNotice(event);
    if (notice === undefined) {
      return [];
    }
    const [undo] = notice.actions.map(({ command }) => command);
    const older = this.#items.filter((item) => item.kind === "notice" && item.actions.some(({ command }) => command === undo));
    return [...older.map((item) => this.#withdraw(item)), ...this.notice(notice.level, notice.text, notice.actions)];
  }

  #stream(event: TextEvent | ThinkingEvent): TranscriptChange[] {
    const current = this.#streaming;
    this.#hasAnswered = true;
    if (current?.kind === event.type) {
      current.text += event.delta;
      return [{ type: "append", id: current.id, delta: event.delta }];
    }
    const changes = this.#endStream(false);
    const id = this.#newId();
    const item: TextItem | ThinkingItem =
      event.type === "text"
        ? { kind: "text", id, text: event.delta, isStreaming: true, isInterrupted: false }
        : { kind: "thinking", id, text: event.delta, isStreaming: true };
    this.#streaming = item;
    if (item.kind === "text") {
      this.#unstored.push(item);
    }
    return [...changes, this.#add(item)];
  }

  #toolUse(event: ToolUseEvent): TranscriptChange[] {
    const changes = this.#endStream(false);
    this.#hasAnswered = true;
    const { item, isNew } = this.#tools.use(event, () => this.#newId());
    return [...changes, isNew ? this.#add(item) : { type: "put", item: { ...item } }];
  }

  /** The second event tells that the prompt itself is stored. */
  #stored({ role, n, seq }: StoredEvent): TranscriptChange[] {
    this.#ends.stored(seq);
    if (role === "assistant") {
      return this.#unstored.splice(0).map((item) => numbered(item, seq));
    }
    const waiting = role === "user" && n > 2 ? this.#said[0] : undefined;
    if (waiting === undefined) {
      return [];
    }
    const said: UserItem = { kind: "user", id: this.#newId(), text: waiting.text, attachments: [], seq };
    return [...this.#endStream(false), this.#withdraw(waiting), this.#add(said)];
  }

  /** What the turn did not take stays to be read. */
  #leaveSaid(): TranscriptChange[] {
    return this.#said.splice(0).map((item) => {
      item.mark = SAID_TOO_LATE;
      return { type: "put", item: { ...item } };
    });
  }

  #finish(event: FinishedEvent): TranscriptChange[] {
    const isInterrupted = event.stopReason === "cancelled" || event.stopReason === "error";
    const changes = [...this.#endStream(isInterrupted), ...this.#leaveSaid()];
    const notice = this.#ends.isRunning ? endNotice(event, this.#hasAnswered) : undefined;
    this.#clearTurn();
    return [...changes, ...this.#end(notice)];
  }

  /** The turn is over: what is told about that is remembered for when the session is read again. */
  #end(notice?: Notice): TranscriptChange[] {
    this.#ends.end(notice);
    return notice === undefined ? [] : this.notice(notice.level, notice.text, notice.actions);
  }

  #endStream(isInterrupted: boolean): TranscriptChange[] {
    const item = this.#streaming;
    this.#streaming = undefined;
    if (item === undefined) {
      return [];
    }
    item.isStreaming = false;
    if (item.kind === "text") {
      item.isInterrupted = isInterrupted;
    }
    return [{ type: "put", item: { ...item } }];
  }

  #clearTurn(): void {
    this.#streaming = undefined;
    this.#prompt = undefined;
    this.#said = [];
    this.#unstored = [];
    this.#hasAnswered = false;
    this.#tools.endTurn();
  }

  #withdraw(item: Item): TranscriptChange {
    this.#said = this.#said.filter((said) => said !== item);
    this.#items = this.#items.filter((one) => one !== item);
    return { type: "remove", id: item.id };
  }

  #add(item: Item): TranscriptChange {
    this.#items.push(item);
    return { type: "put", item: { ...item } };
  }

  #newId(): string {
    this.#made += 1;
    return `live${this.#made}`;
  }
}
