/** The commands of the palette: one function each. */

import * as vscode from "vscode";

import { askAbout, askAboutFile, attachProblems, explainCode, fixCode } from "./askAbout";
import { type Attachments, fileAt, fileAttachment, selectionAttachment } from "./attachment";
import type { ChatView } from "./chatView";
import type { Client } from "./client";
import { showChange } from "./changes";
import { doctor } from "./doctor";
import { redoEdits, undoEdits } from "./edits";
import { exportSession, importSession, searchSessions } from "./exchange";
import { messageOf } from "./failure";
import type { Forms } from "./forms";
import { editMessage, pinMessage, retry, rewind, unpinMessage } from "./history";
import { applyResize, compactSession, contextSize, editMemory, previewResize, undoResize } from "./memory";
import { installServer } from "./install";
import { type Keys, removeKey, setKey } from "./keys";
import { menuPicks } from "./pick";
import type * as protocol from "./protocol";
import type { Session } from "./session";
import type { SessionDocuments } from "./sessionDocument";
import type { SessionsTree } from "./sessionsTree";
import { explainRequest, steer } from "./steps";
import {
  clearSession,
  continueSession,
  deleteSession,
  emptyTrash,
  loadSession,
  newSession,
  renameSession,
  saveSession,
  saveSessionAs,
  showDeletedSessions,
  showSession,
} from "./wholeSession";
import { selectAgent, selectModel, showCurrentAgent } from "./who";

/** What the commands work on. */
export interface Parts {
  client: Client;
  keys: Keys;
  session: Session;
  view: ChatView;
  attachments: Attachments;
  documents: SessionDocuments;
  forms: Forms;
  tree: SessionsTree;
  log: vscode.LogOutputChannel;
}

type Command = (parts: Parts, ...args: unknown[]) => unknown;

const COMMANDS: Readonly<Record<string, Command>> = {
  "tiro.ask": ask,
  "tiro.askAbout": askAbout,
  "tiro.askAboutFile": askAboutFile,
  "tiro.explainCode": explainCode,
  "tiro.fixCode": fixCode,
  "tiro.steer": steer,
  "tiro.cancel": cancel,
  "tiro.nextAttention": nextAttention,
  "tiro.showSession": showSession,
  "tiro.clearSession": clearSession,
  "tiro.newSession": newSession,
  "tiro.saveSession": saveSession,
  "tiro.saveSessionAs": saveSessionAs,
  "tiro.renameSession": renameSession,
  "tiro.loadSession": loadSession,
  "tiro.deleteSession": deleteSession,
  "tiro.showDeletedSessions": showDeletedSessions,
  "tiro.emptyTrash": emptyTrash,
  "tiro.refreshSessions": ({ tree }) => {
    tree.refresh();
  },
  "tiro.continueSession": continueSession,
  "tiro.searchSessions": searchSessions,
  "tiro.exportSession": exportSession,
  "tiro.importSession": importSession,
  "tiro.showCurrentAgent": showCurrentAgent,
  "tiro.selectAgent": selectAgent,
  "tiro.selectModel": selectModel,
  "tiro.contextSize": contextSize,
  "tiro.previewResize": previewResize,
  "tiro.applyResize": applyResize,
  "tiro.undoResize": undoResize,
  "tiro.compactSession": compactSession,
  "tiro.editMemory": editMemory,
  "tiro.applyForm": ({ forms }) => forms.apply(),
  "tiro.dropForm": ({ forms }) => forms.drop(),
  "tiro.pinMessage": pinMessage,
  "tiro.unpinMessage": unpinMessage,
  "tiro.rewind": rewind,
  "tiro.editMessage": editMessage,
  "tiro.retry": retry,
  "tiro.explainRequest": explainRequest,
  "tiro.showChange": showChange,
  "tiro.undoEdits": undoEdits,
  "tiro.redoEdits": redoEdits,
  "tiro.attachSelection": attachSelection,
  "tiro.attachFile": attachFile,
  "tiro.attachProblems": attachProblems,
  "tiro.attach": attach,
  "tiro.restartServer": ({ client }) => client.restart(),
  "tiro.stopServer": ({ client }) => client.stop(),
  "tiro.installServer": ({ client }) => installServer(client),
  "tiro.setKey": setKey,
  "tiro.removeKey": removeKey,
  "tiro.doctor": doctor,
  "tiro.getStarted": () =>
    vscode.commands.executeCommand("workbench.action.openWalkthrough", "tiro.tiro-vscode#tiro.start", false),
  "tiro.showLog": ({ log }) => {
    log.show();
  },
  "tiro.openSettings": () =>
    vscode.commands.executeCommand("workbench.action.openSettings", "@ext:tiro.tiro-vscode"),
  "tiro.menu": menu,
};

/** Register all commands; what one of them throws is shown, not lost. */
export function registerCommands(parts: Parts): vscode.Disposable {
  const registrations = Object.entries(COMMANDS).map(([id, command]) =>
    vscode.commands.registerCommand(id, async (...args: unknown[]) => {
      try {
        return await command(parts, ...args);
      } catch (error) {
        parts.log.error(`${id}: ${messageOf(error)}`);
        void vscode.window.showErrorMessage(`Tiro: ${messageOf(error)}`);
        return undefined;
      }
    }),
  );
  return vscode.Disposable.from(...registrations);
}

/** Without arguments it asks for the prompt; code actions give one, and what goes along. */
async function ask({ session, view, attachments }: Parts, given?: unknown, along?: unknown) {
  const prompt = typeof given === "string" ? given : await askForPrompt();
  if (prompt === undefined || prompt.trim() === "") {
    return undefined;
  }
  await view.reveal();
  const taken = Array.isArray(along) ? (along as protocol.Attachment[]) : attachments.take();
  return session.ask({ prompt, attachments: taken });
}

function askForPrompt(): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: "Ask Tiro",
    prompt: "The selection goes along; the answer appears in the Tiro view",
    placeHolder: "What do you want to know?",
  });
}

async function cancel({ session }: Parts): Promise<{ cancelled: boolean }> {
  const cancelled = await session.cancel();
  if (!cancelled) {
    tell("Nothing is running");
  }
  return { cancelled };
}

function nextAttention({ client }: Parts): boolean {
  const isShown = client.questions.showOldest();
  if (!isShown) {
    tell("No question waits for an answer");
  }
  return isShown;
}

async function attachSelection({ attachments, view }: Parts): Promise<void> {
  const selection = selectionAttachment();
  if (selection === undefined) {
    tell("Nothing is selected");
    return;
  }
  attachments.add(selection);
  await view.reveal();
}

async function attachFile({ attachments, view }: Parts, given?: unknown): Promise<void> {
  const file =
    given instanceof vscode.Uri ? fileAt(given) : fileAttachment();
  if (file === undefined) {
    tell("No file is open");
    return;
  }
  attachments.add(file);
  await view.reveal();
}

/** The view's attach button: the active file, or files that are chosen. */
async function attach({ attachments, view }: Parts): Promise<void> {
  const current = fileAttachment();
  const files = await vscode.workspace.findFiles("**/*", undefined, 2_000);
  const others = files.map((uri) => ({
    label: vscode.workspace.asRelativePath(uri),
    value: fileAt(uri),
  }));
  const first =
    current === undefined ? [] : [{ label: "$(file) Current File", value: current }];
  const picks = await vscode.window.showQuickPick([...first, ...others], {
    title: "Attach Files",
    placeHolder: "They go along with the next prompt",
    canPickMany: true,
  });
  if (picks !== undefined) {
    picks.forEach(({ value }) => {
      attachments.add(value);
    });
    await view.reveal();
  }
}

async function menu({ client, session }: Parts): Promise<void> {
  const { agent, model, tokens } = session.status();
  const pick = await vscode.window.showQuickPick(menuPicks({ isAnswering: session.isAnswering, isMissing: client.missing !== undefined }), {
    title: "Tiro",
    placeHolder: [agent, model, tokens].filter((part) => part !== "").join(" · "),
  });
  if (pick !== undefined) {
    await vscode.commands.executeCommand(pick.value);
  }
}

function tell(text: string): void {
  void vscode.window.showInformationMessage(`Tiro: ${text}`);
}
