/**
 * `@tiro` in VS Code's own Chat view, where there is one: another face of the same session.
 *
 * What is asked there is a turn like any other; the Tiro view shows it too. VS Code keeps a chat
 * history of its own, which is not used: the session is the one that counts.
 */

import * as vscode from "vscode";

import type { Client } from "./client";
import { messageOf } from "./failure";
import { summaryOf } from "./items";
import { questionId } from "./permissionText";
import type { Attachment, ToolUseEvent, TurnEvent, TurnResult } from "./protocol";
import { nativeModel } from "./nativeModel";
import type { Session } from "./session";

export const PARTICIPANT = "tiro.chat-participant";
const WRITING_TOOLS = ["write_file", "edit_file"];

/** What a slash command asks when nothing is written after it. */
const PROMPTS: Readonly<Record<string, string>> = {
  explain: "Explain this.",
  fix: "Fix what is wrong here.",
};

/** The end of an answer, for what is offered after it. */
interface Ended extends vscode.ChatResult {
  readonly metadata?: { readonly stopReason: TurnResult["stopReason"] };
}

/** Offer `@tiro`; nothing where VS Code has no Chat or is too old for it. */
export function registerNativeChat(client: Client, session: Session, icon: vscode.Uri): vscode.Disposable {
  const chat = vscode.chat as Partial<typeof vscode.chat> | undefined;
  if (chat?.createChatParticipant === undefined) {
    return vscode.Disposable.from();
  }
  const participant = chat.createChatParticipant(PARTICIPANT, (request, _context, stream, token) =>
    answer(client, session, { request, stream, token }),
  );
  participant.iconPath = icon;
  participant.followupProvider = { provideFollowups: followups };
  return vscode.Disposable.from(participant, nativeModel());
}

interface Asked {
  request: vscode.ChatRequest;
  stream: vscode.ChatResponseStream;
  token: vscode.CancellationToken;
}

async function answer(client: Client, session: Session, { request, stream, token }: Asked): Promise<Ended> {
  if (request.command === "new") {
    await vscode.commands.executeCommand("tiro.newSession");
    stream.markdown("The old session is saved; this is a new one.");
    return {};
  }
  if (session.isAnswering) {
    return failed("Tiro is still answering; wait for it, or cancel it in the Tiro view.");
  }
  const prompt = promptOf(request);
  if (prompt.trim() === "") {
    return failed("Write what you want to know.");
  }
  const told = new Telling(stream);
  const listening = vscode.Disposable.from(
    client.onTurnEvent((event) => {
      told.take(event);
    }),
    client.questions.onChanged(() => {
      told.ask(client.questions.oldest?.item.id);
    }),
  );
  const cancelling = token.onCancellationRequested(() => void session.cancel().catch(() => undefined));
  try {
    const result = await session.ask({ prompt, attachments: request.references.flatMap(attachmentOf) });
    told.end(result);
    return result === undefined ? failed(told.failure) : { metadata: { stopReason: result.stopReason } };
  } catch (error) {
    return failed(messageOf(error));
  } finally {
    listening.dispose();
    cancelling.dispose();
  }
}

/** Paints the events of one turn. */
export class Telling {
  failure = "There is no answer; the Tiro view says why.";
  #isThinking = false;
  #hasWritten = false;
  /** The line of each tool use, by the id of a question about it. */
  readonly #lines = new Map<string, string>();
  #asked: string | undefined;

  constructor(private readonly stream: Pick<vscode.ChatResponseStream, "markdown" | "progress" | "button">) {}

  take(event: TurnEvent): void {
    switch (event.type) {
      case "text":
        this.#isThinking = false;
        this.stream.markdown(event.delta);
        return;
      case "thinking":
        if (!this.#isThinking) {
          this.#isThinking = true;
          this.stream.progress("Thinking");
        }
        return;
      case "toolUse":
        this.#toolUse(event);
        return;
      case "retry":
        this.stream.progress(`Trying again in ${event.waitSeconds} s: ${event.reason}`);
        return;
      case "finished":
        this.failure = event.error?.message ?? this.failure;
        return;
      default:
        return;
    }
  }

  /** Say how it ended, where the text does not. */
  end(result: TurnResult | undefined): void {
    if (result?.stopReason === "cancelled") {
      this.stream.markdown("\n\n*Cancelled. What had arrived is kept.*");
    }
    if (this.#hasWritten) {
      this.stream.button({ command: "tiro.undoEdits", title: "Undo Edits" });
    }
  }

  /** The user is asked this question; about most tool uses that are proposed nobody is. */
  ask(id: string | undefined): void {
    const line = this.#lines.get(id ?? "");
    if (line !== undefined && id !== this.#asked) {
      this.#asked = id;
      this.stream.progress(`${line} (asks for your permission)`);
    }
  }

  #toolUse({ turnId, toolUse: { id, name, input }, status }: ToolUseEvent): void {
    const line = `${name} ${summaryOf(input)}`;
    this.#lines.set(questionId(turnId, id), line);
    if (status === "running") {
      this.stream.progress(line);
    } else if (status === "rejected" || status === "failed") {
      this.stream.progress(`${line} (${status})`);
    }
    this.#hasWritten ||= status === "done" && WRITING_TOOLS.includes(name);
  }
}

/** What is asked; the name of the participant, which the chat has taken already, may stand there once more. */
export function promptOf({ command, prompt }: Pick<vscode.ChatRequest, "command" | "prompt">): string {
  return [PROMPTS[command ?? ""], prompt.replace(/^\s*@tiro(?:\s+|$)/, "")].filter(Boolean).join("\n\n");
}

/** A file, a selection or a text of the request, as the server takes it. */
export function attachmentOf({ value }: vscode.ChatPromptReference): Attachment[] {
  if (value instanceof vscode.Uri) {
    return value.scheme === "file" ? [{ kind: "file", path: value.fsPath }] : [];
  }
  if (value instanceof vscode.Location) {
    const { start, end } = value.range;
    return [{ kind: "selection", path: value.uri.fsPath, range: { start: place(start), end: place(end) } }];
  }
  return typeof value === "string" ? [{ kind: "text", text: value }] : [];
}

function place({ line, character }: vscode.Position) {
  return { line, character };
}

function followups({ metadata }: Ended): vscode.ChatFollowup[] {
  const isCut = metadata?.stopReason === "max_steps" || metadata?.stopReason === "max_tokens";
  return isCut ? [{ prompt: "continue", label: "Go on where it stopped" }] : [];
}

function failed(message: string): Ended {
  return { errorDetails: { message } };
}
