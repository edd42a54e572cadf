/**
 * The Tiro view: a page that paints what the session tells and sends back what the user does.
 *
 * It may be hidden or thrown away at any time; when it comes back it is painted from the start.
 * The page loads its own script and style and nothing else.
 */

import { randomBytes } from "node:crypto";

import * as vscode from "vscode";

import type { Attachments } from "./attachment";
import { messageOf } from "./failure";
import { pageHtml } from "./page";
import type { Session } from "./session";
import { type FromView, type ToView, VIEW_COMMANDS } from "./viewMessages";

export class ChatView implements vscode.WebviewViewProvider, vscode.Disposable {
  static readonly id = "tiro.chat";

  readonly #subscriptions: vscode.Disposable[];
  #view: vscode.WebviewView | undefined;
  #isReady = false;
  #draft: string | undefined;
  #wantsFocus = false;

  constructor(
    private readonly root: vscode.Uri,
    private readonly session: Session,
    private readonly attachments: Attachments,
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
      }
    });
    view.webview.html = pageHtml({
      style: view.webview.asWebviewUri(vscode.Uri.joinPath(media, "chat.css")).toString(),
      script: view.webview.asWebviewUri(vscode.Uri.joinPath(scripts, "chat.js")).toString(),
      source: view.webview.cspSource,
      nonce: randomBytes(16).toString("base64url"),
    });
  }

  /** Bring the view to the front, with the cursor in its input. */
  async reveal(): Promise<void> {
    this.#wantsFocus = true;
    await vscode.commands.executeCommand(`${ChatView.id}.focus`);
    this.#giveFocus();
  }

  dispose(): void {
    for (const subscription of this.#subscriptions) {
      subscription.dispose();
    }
  }

  async #receive(message: FromView): Promise<void> {
    switch (message.type) {
      case "ready":
        this.#paintAll();
        return;
      case "ask":
        await this.session.ask({ prompt: message.prompt, attachments: this.attachments.take() });
        return;
      case "steer":
        await this.#steer(message.text);
        return;
      case "cancel":
        await this.session.cancel();
        return;
      case "earlier":
        await this.session.showEarlier();
        return;
      case "toggleSelection":
        this.attachments.toggleSelection();
        return;
      case "removeChip":
        this.attachments.remove(message.id);
        return;
      case "command":
        if ((VIEW_COMMANDS as readonly string[]).includes(message.command)) {
          await vscode.commands.executeCommand(message.command);
        }
        return;
    }
  }

  #paintAll(): void {
    this.#isReady = true;
    this.#showTitle();
    this.#post(this.session.conversation.snapshot());
    this.#post({ type: "status", status: this.session.status() });
    this.#post({ type: "chips", chips: this.attachments.chips() });
    this.#giveBackDraft();
    this.#giveFocus();
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
    if (this.#isReady && this.#wantsFocus) {
      this.#wantsFocus = false;
      this.#post({ type: "focus" });
    }
  }

  /** A page that is not ready yet gets everything at once when it is. */
  #post(message: ToView): void {
    if (this.#isReady) {
      void this.#view?.webview.postMessage(message);
    }
  }
}
