/**
 * The one session, as this window knows it: its transcript, its numbers, its running turn.
 *
 * The truth is the server's; after every start it is read again with `tiro/session/get`.
 */

import * as vscode from "vscode";

import type { Prompt } from "./attachment";
import type { Client, ConnectionState } from "./client";
import { tokensTexts } from "./contextSize";
import { Conversation } from "./conversation";
import { Endings } from "./endings";
import { actionsForError, messageOf, ServerStoppedError } from "./failure";
import { whenIdle } from "./idle";
import { attachmentLabel } from "./items";
import { LastSession } from "./lastSession";
import { messagesOf } from "./messages";
import { changeNotice } from "./notices";
import * as protocol from "./protocol";
import { resume } from "./resume";
import type { ClientState, NoticeAction, TranscriptChange, ViewStatus } from "./viewMessages";

/** How many messages are shown at once; earlier ones come on demand. */
export const PAGE_MESSAGES = 100;

/** What this window shows of the session, and all that it does with it. */
export class Session implements vscode.Disposable {
  readonly conversation = new Conversation();
  readonly #transcript = new vscode.EventEmitter<TranscriptChange[]>();
  readonly #status = new vscode.EventEmitter<ViewStatus>();
  readonly #returned = new vscode.EventEmitter<Prompt>();
  readonly onTranscript = this.#transcript.event;
  readonly onStatus = this.#status.event;
  /** A prompt that was not taken and goes back to where it was written. */
  readonly onReturned = this.#returned.event;
  readonly #subscriptions: vscode.Disposable[];
  /** The turn that runs, from its first event on. */
  turnId: string | undefined;

  #id: string | null = null;
  #agent: string | null = null;
  #model: string | null = null;
  #title = "";
  #pins: readonly number[] = [];
  #contextSize: protocol.ContextSize | undefined;
  #isAsking = false;
  #activity = "";
  #failedTurn: string | undefined;

  constructor(
    private readonly client: Client,
    memory: vscode.Memento,
    private readonly last = new LastSession(memory),
    private readonly endings = new Endings(memory),
  ) {
    client.onConnected((facts) => resume(client, this, last, facts?.resume));
    this.#subscriptions = [
      client.onStateChanged((state) => {
        this.#connectionChanged(state);
      }),
      client.onTurnEvent((event) => {
        this.#turnEvent(event);
      }),
      client.onSessionChanged((change) => {
        void this.#sessionChanged(change);
      }),
      client.onProgress((text) => {
        this.#setActivity(text);
      }),
    ];
  }

  get id(): string | null {
    return this.#id;
  }

  /** What lists name it by; "" for none. */
  get title(): string {
    return this.#title;
  }

  /** The seqs of the messages that stay in the window, whatever its limits are. */
  get pins(): readonly number[] {
    return this.#pins;
  }

  get isAnswering(): boolean {
    return this.#isAsking || this.turnId !== undefined;
  }

  status(): ViewStatus {
    return {
      state: this.#clientState(),
      agent: this.#agent ?? "",
      model: this.#model ?? "",
      ...tokensTexts(this.#contextSize),
      isRestricted: !vscode.workspace.isTrusted,
      activity: this.#activity,
      pins: this.#pins,
    };
  }

  /** Send a prompt; resolves when the turn is over, whatever its end. */
  async ask(asked: Prompt): Promise<protocol.TurnResult | undefined> {
    if (this.isAnswering) {
      this.giveBack(asked);
      this.tell("info", "Tiro is still answering: wait for it, or cancel it.");
      return undefined;
    }
    this.#isAsking = true;
    this.paint(this.conversation.ask(asked.prompt, asked.attachments.map(attachmentLabel)));
    this.#fireStatus();
    try {
      const result = await this.client.request(protocol.turnStart, asked);
      this.#contextSize = result.contextSize;
      return result;
    } catch (error) {
      this.#askFailed(asked, error);
      return undefined;
    } finally {
      this.#isAsking = false;
      this.turnId = undefined;
      this.#setActivity("");
    }
  }

  /** Show changes of the conversation. */
  paint(changes: TranscriptChange[]): void {
    if (changes.length > 0) {
      this.#transcript.fire(changes);
    }
  }

  /** Throws while a turn runs, for what a turn excludes. */
  checkIdle(): void {
    if (this.isAnswering) {
      throw new Error("Tiro is still answering: wait for it, or cancel it");
    }
  }

  /** Tell the user something in the transcript that is no message. */
  tell(level: "error" | "info", text: string, actions: NoticeAction[] = []): void {
    this.paint(this.conversation.notice(level, text, actions));
  }

  /** Put a prompt back to where it was written. */
  giveBack(prompt: Prompt): void {
    this.#returned.fire(prompt);
  }

  async cancel(): Promise<boolean> {
    const { cancelled } = await this.client.request(protocol.turnCancel, {});
    return cancelled;
  }

  /** Read the session again and show it. */
  async refresh(): Promise<void> {
    this.show(await this.client.request(protocol.sessionGet, { limit: PAGE_MESSAGES }));
  }

  /** Show what `get`, `new`, or `load` answered, and remember it for the next start. */
  show(view: protocol.SessionView): void {
    this.#id = view.id;
    this.#agent = view.agent;
    this.#model = view.model ?? this.#model;
    this.#know(view);
    this.last.remember({ id: view.id, path: view.path });
    this.paint(this.conversation.reset(messagesOf(view).slice(-PAGE_MESSAGES), this.endings.of(view.id)));
    this.#fireStatus();
  }

  /** Read again what stands around the transcript. */
  async readFacts(): Promise<void> {
    this.#know(await this.client.request(protocol.sessionGet, { limit: 1 }));
    this.#fireStatus();
  }

  /** Show the messages before the oldest one shown. */
  async showEarlier(limit = PAGE_MESSAGES): Promise<void> {
    const beforeSeq = this.conversation.oldestSeq;
    if (beforeSeq === undefined) {
      return;
    }
    const params = { limit, beforeSeq };
    const view = await this.client.request(protocol.sessionGet, params);
    this.paint(this.conversation.prepend(messagesOf(view)));
  }

  /** The user chose who answers from now on. */
  choose(chosen: { agent?: string | null; model?: string }): void {
    this.#agent = chosen.agent ?? this.#agent;
    this.#model = chosen.model ?? this.#model;
    this.#fireStatus();
  }

  /** Read from the server which agent and model would answer now. */
  async readDefaults(): Promise<void> {
    const [{ model }, agents] = await Promise.all([
      this.client.requestNow(protocol.status, {}),
      this.#agent === null ? this.client.requestNow(protocol.agentsList, {}) : undefined,
    ]);
    this.#model = model ?? this.#model;
    this.#agent ??= agents?.default ?? null;
    this.#fireStatus();
  }

  dispose(): void {
    vscode.Disposable.from(...this.#subscriptions, this.#transcript, this.#status, this.#returned).dispose();
  }

  #connectionChanged(state: ConnectionState): void {
    if (state === "stopped") {
      this.turnId = undefined;
      this.#activity = "";
      this.paint(this.conversation.breakOff());
      this.endings.keep(this.#id, this.conversation.endings);
    }
    this.#fireStatus();
  }

  #turnEvent(event: protocol.TurnEvent): void {
    if (event.type === "started") {
      this.turnId = event.turnId;
      this.#agent = event.agent;
      this.#model = event.model;
      if (event.sessionId !== this.#id) {
        this.#id = event.sessionId;
        this.last.remember({ id: event.sessionId, path: null });
      }
      this.#setActivity("");
    } else if (event.type === "usage") {
      this.#contextSize = event.contextSize;
      this.#fireStatus();
    } else if (event.type === "retry") {
      this.#setActivity(`Trying again in ${event.waitSeconds} s: ${event.reason}`);
    }
    this.paint(this.conversation.apply(event));
    if (event.type === "finished") {
      this.turnId = undefined;
      this.endings.keep(this.#id, this.conversation.endings);
      this.#failedTurn = event.error ? event.turnId : undefined;
      if (this.#title === "") {
        void this.readFacts().catch(() => undefined); // the first turn gives the session its title
      }
      this.#fireStatus();
    }
  }

  /** The turn request failed; its last event may have told so already. */
  #askFailed(asked: Prompt, error: unknown): void {
    const withdrawn = this.conversation.withdrawPrompt();
    this.paint(withdrawn);
    if (withdrawn.length > 0) {
      this.giveBack(asked);
    }
    const isTold = this.#failedTurn !== undefined || (withdrawn.length === 0 && error instanceof ServerStoppedError);
    this.#failedTurn = undefined;
    if (!isTold) {
      this.tell("error", messageOf(error), actionsForError(error));
    }
  }

  async #sessionChanged({ reason, id, contextSize, why }: protocol.SessionChanged): Promise<void> {
    this.#contextSize = contextSize;
    if (reason === "changedOnDisk" || reason === "expired") {
      await whenIdle(this, () => this.refresh());
    } else if (reason === "renamed") {
      this.#id = id;
      this.last.remember({ id, path: null });
    }
    if (reason === "titled") {
      await this.readFacts();
    }
    const notice = changeNotice(reason, id, why);
    if (notice !== undefined) {
      this.tell(notice.level, notice.text, notice.actions);
    }
    this.#fireStatus();
  }

  #know({ title, pins, contextSize }: protocol.SessionView): void {
    this.#title = title ?? "";
    this.#pins = pins;
    this.#contextSize = contextSize;
  }

  #clientState(): ClientState {
    return this.client.state === "ready" && this.isAnswering ? "answering" : this.client.state;
  }

  #setActivity(text: string): void {
    this.#activity = text;
    this.#fireStatus();
  }

  #fireStatus(): void {
    this.#status.fire(this.status());
  }
}
