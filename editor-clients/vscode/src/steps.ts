/** Commands about the steps of a turn: what the next one sends, and what to tell the running one. */

import * as vscode from "vscode";

import type { Parts } from "./commands";
import * as protocol from "./protocol";

/** Say something to the running turn, which takes it before its next step. */
export async function steer({ client, session }: Parts, given?: unknown) {
  const { turnId } = session;
  if (turnId === undefined) {
    void vscode.window.showInformationMessage("Tiro: Nothing is running");
    return undefined;
  }
  const text = typeof given === "string" ? given : await askForSteer();
  if (text === undefined || text.trim() === "") {
    return undefined;
  }
  session.paint(session.conversation.say(text));
  try {
    return await client.request(protocol.turnSteer, { text, turnId });
  } catch (error) {
    session.paint(session.conversation.unsay(text));
    throw error;
  }
}

/** Show what a draft would send, asked for where none is given; nothing is sent. */
export async function explainRequest({ client, documents }: Parts, given?: unknown) {
  const draft = typeof given === "string" ? given : await askForDraft();
  if (draft === undefined) {
    return undefined;
  }
  const result = await client.request(protocol.sessionExplain, { draft });
  await documents.show("next-request.json", JSON.stringify(result, null, 2));
  return result;
}

function askForSteer(): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: "Steer Tiro",
    prompt: "The answer that is being written takes it into account from its next step on",
  });
}

function askForDraft(): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: "Explain Next Request",
    prompt: "What a model would get with this prompt; nothing is sent",
    placeHolder: "Leave it empty for the conversation as it is",
  });
}
