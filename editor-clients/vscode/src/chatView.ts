/**
 * The Tiro view: a page that paints what the session tells and sends back what the user does.
 *
 * It may be hidden or thrown away at any time; when it comes back it is painted from the start.
 * The page loads its own script and style and nothing else.
 */

import { randomBytes } from "node:crypto";

import * as vscode from "vscode";

import type { Attachments } from "./attachment";
import { useCode } from "./code";
import { messageOf } from "./failure";
import type { Forms } from "./forms";
import { placeOf } from "./items";
import { attachDropped, attachMention, findMentions } from "./mentions";
import { pageHtml } from "./page";
import { counted } from "./pick";
import type { Questions } from "./questions";
import type { Session } from "./session";
import { type FromView, type ToView, VIEW_COMMANDS } from "./viewMessages";

/** What is done with each message of the page. */
type Actions = { [T in FromView["type"]]: (message: Extract<FromView, { type: T }>) => unknown };

export class ChatView implements vscode.WebviewViewProvider, vscode.Disposable {
  static readonly id = "tiro.chat";

  readonly #subscriptions: vscode.Disposable[];
  #view: vscode.WebviewView | undefined;
  #isReady = false;
  #draft: string | undefined;
  /** Where in the page the focus goes as soon as it is ready. */
  #wantsFocus: "focus" | "focusQuestion" | undefined;

  /** The item that the reader is led to as soon as the page is ready. */
  #target: string | undefined;

  readonly #actions: Actions = {
    ready: () => {
      this.#paintAll();
    },
    ask: ({ prompt }) => this.session.ask({ prompt, attachments: this.attachments.take() }),
    steer: ({ text }) => this.#steer(text),
    cancel: () => this.session.cancel(),
    earlier: ({ before }) => this.#showEarlier(before),
    toggleSelection: () => {
      this.attachments.toggleSelection();
    },
    removeChip: ({ id }) => {
      this.attachments.remove(id);
    },
    answer: ({ id, decision, message }) => {
      this.questions.find(id)?.answer({ decision, ...(message === "" ? {} : { message }) });
    },
    findMentions: async ({ query }) => {
      this.#post({ type: "mentions", query, mentions: await findMentions(query) });
    },
    mention: ({ value }) => attachMention(value, this.attachments),
    drop: ({ uris }) => attachDropped(uris, this.attachments),
    code: async ({ action, text }) => {
      await useCode(action, text, this.forms);
      if (action === "copy") {
        this.#post({ type: "say", text: "Copied" });
      }
    },
    showChange: ({ id }) => vscode.commands.executeCommand("tiro.showChange", id),
    showQuestion: ({ id }) => this.questions.find(id)?.showMore(),
    command: ({ command }) =>
      (VIEW_COMMANDS as readonly string[]).includes(command)
        ? vscode.commands.executeCommand(command)
        : undefined,
  };

  constructor(
    private readonly root: vscode.Uri,
    private readonly session: Session,
    private readonly attachments: Attachments,
    private readonly questions: Questions,
    private readonly forms: Forms,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.#subscriptions = [
      vscode.window.registerWebviewViewProvider(ChatView.id, this),
      session.onTranscript((changes) => {
        changes.forEach((change) => {
          this.#post(change);
        });
      }),
      session.onStatus((status) => {
        this.#post({ type: "status", status });
        this.#showTitle();
      }),
      session.onReturned((returned) => {
        this.#draft = returned.prompt;
        attachments.giveBack(returned.attachments);
        this.#giveBackDraft();
      }),
      attachments.onChanged(() => {
        this.#post({ type: "chips", chips: attachments.chips() });
      }),
      questions.onChanged(() => {
        this.#showQuestion();
      }),
      questions.onWanted(() => {
        void this.#leadTo("focusQuestion");
      }),
    ];
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    this.#isReady = false;
    const media = vscode.Uri.joinPath(this.root, "media");
    const scripts = vscode.Uri.joinPath(this.root, "dist");
    view.webview.options = { enableScripts: true, localResourceRoots: [media, scripts] };
    view.webview.onDidReceiveMessage((message: FromView) => {
      this.#receive(message).catch((error: unknown) => {
        this.log.error(`The view: ${messageOf(error)}`);
        void vscode.window.showErrorMessage(`Tiro: ${messageOf(error)}`);
      });
    });
    view.onDidDispose(() => {
      if (this.#view === view) {
        this.#view = undefined;
        this.#isReady = false;
        this.questions.setInView(false);
      }
    });
    view.onDidChangeVisibility(() => {
      this.questions.setInView(view.visible);
    });
    this.questions.setInView(view.visible);
    view.webview.html = pageHtml({
      style: view.webview.asWebviewUri(vscode.Uri.joinPath(media, "chat.css")).toString(),
      script: view.webview.asWebviewUri(vscode.Uri.joinPath(scripts, "chat.js")).toString(),
      source: view.webview.cspSource,
      nonce: randomBytes(16).toString("base64url"),
    });
  }

  /** Bring the view to the front, with the cursor in its input. */
  reveal(): Promise<void> {
    return this.#leadTo("focus");
  }

  /** Bring the view to the front, at the message with this number. */
  async goTo(seq: number): Promise<void> {
    const { conversation } = this.session;
    const missing = (conversation.oldestSeq ?? 0) - seq;
    if (missing > 0) {
      await this.session.showEarlier(missing);
    }
    this.#target = placeOf(conversation.items, seq);
    await vscode.commands.executeCommand(`${ChatView.id}.focus`);
    this.#goToTarget();
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) {
      subscription.dispose();
    }
  }

  async #receive(message: FromView): Promise<void> {
    await (this.#actions[message.type] as (message: FromView) => unknown)(message);
  }

  async #leadTo(place: "focus" | "focusQuestion"): Promise<void> {
    this.#wantsFocus = place;
    await vscode.commands.executeCommand(`${ChatView.id}.focus`);
    this.#giveFocus();
  }

  /** What this window knows already, else what the server has. */
  async #showEarlier(before: string): Promise<void> {
    const { conversation } = this.session;
    const known = conversation.before(before);
    if (known !== undefined) {
      this.#post(known);
    } else if (conversation.items[0]?.id === before) {
      await this.session.showEarlier();
    }
  }

  #paintAll(): void {
    this.#isReady = true;
    this.#showTitle();
    this.#post(this.session.conversation.snapshot());
    this.#post({ type: "status", status: this.session.status() });
    this.#post({ type: "chips", chips: this.attachments.chips() });
    this.#showQuestion();
    this.#giveBackDraft();
    this.#giveFocus();
    this.#goToTarget();
  }

  #showQuestion(): void {
    const { oldest, count } = this.questions;
    this.#post({ type: "question", question: oldest?.item ?? null, others: Math.max(0, count - 1) });
    if (this.#view !== undefined) {
      const tooltip = `${counted(count, "question")} waiting for your answer`;
      this.#view.badge = count > 0 ? { value: count, tooltip } : undefined;
    }
  }

  /** What the turn did not take goes back to where it was written. */
  async #steer(text: string): Promise<void> {
    const taken = await vscode.commands.executeCommand("tiro.steer", text);
    if (taken === undefined) {
      this.session.giveBack({ prompt: text, attachments: [] });
    }
  }

  #showTitle(): void {
    if (this.#view !== undefined) {
      this.#view.description = this.session.title;
    }
  }

  #giveBackDraft(): void {
    if (this.#isReady && this.#draft !== undefined) {
      this.#post({ type: "draft", text: this.#draft });
      this.#draft = undefined;
    }
  }

  #giveFocus(): void {
    if (this.#isReady && this.#wantsFocus !== undefined) {
      this.#post({ type: this.#wantsFocus });
      this.#wantsFocus = undefined;
    }
  }

  /** The page may not know the message yet, so it gets all that is known here. */
  #goToTarget(): void {
    if (this.#isReady && this.#target !== undefined) {
      const { items, hasEarlier } = this.session.conversation;
      this.#post({ type: "reset", items: [...items], hasEarlier });
      this.#post({ type: "goTo", id: this.#target });
      this.#target = undefined;
    }
  }

  /** A page that is not ready yet gets everything at once when it is. */
  #post(message: ToView): void {
    if (this.#isReady) {
      void this.#view?.webview.postMessage(message);
    }
  }
}
