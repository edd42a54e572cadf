/** The commands in the real extension host, with the real server and a scripted provider. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import * as vscode from "vscode";

import type {
  AgentResult,
  ClearResult,
  ContextSize,
  ExplainResult,
  ExportResult,
  SaveResult,
  SearchResult,
  SessionView,
  TurnResult,
} from "../../src/protocol";
import { ask, askSlowly, finish, lastRequests, run, until } from "./tools";

const IDENTIFIER = "tiro.tiro-vscode";

suite("Tiro", () => {
  suiteSetup(async () => {
    await vscode.extensions.getExtension(IDENTIFIER)?.activate();
    await until(() => serverPids().length === 1, "the server runs");
  });

  setup(async () => {
    await run("workbench.action.closeAllEditors");
    await run<ClearResult>("tiro.clearSession");
  });

  test("the extension is the one under test, and it is active", () => {
    assert.equal(vscode.extensions.getExtension(IDENTIFIER)?.isActive, true);
  });

  test("an answer comes back", async () => {
    const result = await ask("hello");
    assert.equal(result?.stopReason, "end_turn");
    assert.equal(result.text, "You said: hello");
  });

  test("Show Session is the exact text, in a read-only document (M2.10, M6.2)", async () => {
    await ask("Find all .el files");
    await ask("tool please");
    const text = await run<string>("tiro.showSession");
    assert.equal(text.split("\n").slice(0, 6).join("\n"), SHOWN);
    const document = vscode.window.activeTextEditor?.document;
    assert.equal(document?.uri.scheme, "tiro");
    assert.equal(document.getText(), text);
    await vscode.commands.executeCommand("type", { text: "x" });
    assert.equal(document.getText(), text);
  });

  test("Show Session twice shows the new state in the same document", async () => {
    await ask("one");
    await run("tiro.showSession");
    const before = vscode.window.activeTextEditor?.document;
    await ask("two");
    const text = await run<string>("tiro.showSession");
    const after = vscode.window.activeTextEditor?.document;
    assert.equal(after?.uri.toString(), before?.uri.toString());
    await until(() => after?.getText() === text, "the document is brought up to date");
  });

  test("an empty session has no text (M2.10)", async () => {
    assert.equal(await run("tiro.showSession"), null);
  });

  test("Clear Session saves what was there (M6.1)", async () => {
    await ask("remember this");
    const { cleared, savedAs } = await run<ClearResult>("tiro.clearSession");
    assert.equal(cleared, 2);
    assert.match(readFileSync(savedAs ?? "", "utf8"), /remember this/);
    assert.deepEqual(await run("tiro.clearSession"), { cleared: 0, savedAs: null });
  });

  test("a saved session is loaded by its id and by its path (M4.5)", async () => {
    await ask("keep me");
    const { path, id } = await run<SaveResult>("tiro.saveSession");
    assert.ok(existsSync(path));
    for (const where of [id, path]) {
      await run("tiro.clearSession");
      const view = await run<SessionView>("tiro.loadSession", where);
      assert.equal(view.id, id);
      assert.equal(view.total, 2);
    }
  });

  test("an unknown session is an error, and the current one stays (M7.3)", async () => {
    await ask("still here");
    assert.equal(await run("tiro.loadSession", "session-19990101-000000"), undefined);
    assert.match(await run<string>("tiro.showSession"), /still here/);
  });

  test("a session is searched, exported, and comes back as another one (P12, U7.4)", async () => {
    await ask("the word quokka");
    const { id } = await run<SaveResult>("tiro.saveSession");
    const { hits } = await run<SearchResult>("tiro.searchSessions", "QUOKKA");
    assert.ok(hits.some((hit) => hit.id === id && hit.snippet === "the word quokka"));
    const path = join(tmpdir(), `${id}-${process.pid}.yaml`);
    assert.equal((await run<ExportResult>("tiro.exportSession", "yaml", path)).path, path);
    assert.match(readFileSync(path, "utf8"), /the word quokka/);
    const { id: other, total } = await run<SessionView>("tiro.importSession", path);
    assert.deepEqual([other, total], [`${id}-01`, 2]);
  });

  test("the agent is selected, shown and used (M6.3, M6.4)", async () => {
    const { agent } = await run<AgentResult>("tiro.selectAgent", "plan");
    assert.equal(agent?.name, "plan");
    assert.equal((await run<AgentResult>("tiro.showCurrentAgent")).agent?.name, "plan");
    await ask("who answers?");
    assert.equal((await run<AgentResult>("tiro.showCurrentAgent")).agent?.name, "plan");
  });

  test("Context Size is the sum of its parts (P7)", async () => {
    await ask("how long is it?");
    const { tokens, breakdown } = await run<ContextSize>("tiro.contextSize");
    const parts = Object.values<number>({ ...breakdown });
    assert.equal(
      tokens,
      parts.reduce((sum, part) => sum + part, 0),
    );
  });

  test("an answer is cancelled in mid-stream, and the next one comes (B43)", async () => {
    const { running } = await askSlowly();
    assert.deepEqual(await run("tiro.cancel"), { cancelled: true });
    const result = await running;
    assert.equal(result?.stopReason, "cancelled");
    assert.match(result.text, /^word0 /);
    assert.deepEqual(await run("tiro.cancel"), { cancelled: false });
    assert.equal((await ask("and now?"))?.text, "You said: and now?");
  });

  test("Steer reaches the running answer, and is nothing where none runs", async () => {
    assert.equal(await run("tiro.steer", "too early"), undefined);
    const { running } = await askSlowly();
    assert.deepEqual(await run("tiro.steer", "be short"), { queued: true });
    await finish();
    assert.equal((await running)?.text, "You said: be short");
    const text = await run<string>("tiro.showSession");
    assert.match(text, /\[USER\] be short\n\[ASSISTANT\] You said: be short$/);
  });

  test("what was meant for an answer that has ended does not steer the next one", async () => {
    const { showInputBox } = vscode.window;
    const { running: first } = await askSlowly();
    let next: Thenable<unknown> | undefined;
    vscode.window.showInputBox = async () => {
      await run("tiro.cancel");
      await first;
      next = (await askSlowly("slow again")).running;
      return "too late";
    };
    try {
      assert.equal(await run("tiro.steer"), undefined);
    } finally {
      vscode.window.showInputBox = showInputBox;
    }
    await run("tiro.cancel");
    await next;
    assert.doesNotMatch(await run<string>("tiro.showSession"), /too late/);
  });

  test("Explain Next Request shows what would be sent, and sends nothing (P11)", async () => {
    await ask("hello");
    const count = (await lastRequests()).length;
    const explained = await run<ExplainResult>("tiro.explainRequest", "and now?");
    assert.deepEqual(explained.messages, [
      { role: "user", content: "hello" },
      { role: "assistant", content: "You said: hello" },
      { role: "user", content: "and now?" },
    ]);
    const document = vscode.window.activeTextEditor?.document;
    assert.equal(document?.uri.scheme, "tiro");
    assert.deepEqual(JSON.parse(document.getText()), explained);
    assert.equal((await lastRequests()).length, count);
    assert.doesNotMatch(await run<string>("tiro.showSession"), /and now/);
  });

  test("a second prompt while one is answered is refused, and nothing of it is stored (B45, M6.5)", async () => {
    const { running } = await askSlowly();
    assert.equal(await ask("me too"), undefined);
    await run("tiro.cancel");
    await running;
    assert.doesNotMatch(await run<string>("tiro.showSession"), /me too/);
  });

  test("Clear Session in mid-answer ends it, and nothing of it comes later (B62)", async () => {
    const { running } = await askSlowly();
    await run<ClearResult>("tiro.clearSession");
    assert.equal((await running)?.stopReason, "cancelled");
    await ask("hello");
    const text = await run<string>("tiro.showSession");
    assert.equal(text, "Session Summary:\n\n[USER] hello\n[ASSISTANT] You said: hello");
  });

  test("a tool reads what the editor holds, not what the disk holds (B55, P5)", async () => {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    assert.ok(folder);
    const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(folder, "a.py"));
    const edit = new vscode.WorkspaceEdit();
    edit.insert(document.uri, new vscode.Position(0, 0), "# not saved yet\n");
    await vscode.workspace.applyEdit(edit);
    await ask("tool please");
    assert.match((await lastRequests()).at(-1) ?? "", /# not saved yet/);
    assert.ok(document.isDirty, "the edit was saved, so that this shows nothing");
    await vscode.window.showTextDocument(document);
    await run("workbench.action.files.revert");
  });

  test("a tool reads what the editor shows as wrong", async () => {
    const editor = await openFile("a.py");
    const range = new vscode.Range(1, 4, 1, 9);
    const problem = new vscode.Diagnostic(range, "not so", vscode.DiagnosticSeverity.Warning);
    problem.source = "checker";
    const collection = vscode.languages.createDiagnosticCollection("test");
    collection.set(editor.document.uri, [problem]);
    await ask("diagnostics please");
    collection.dispose();
    assert.match((await lastRequests()).at(-1) ?? "", /a\.py:2:5: warning: not so \[checker\]/);
  });

  test("the selection goes along with a prompt", async () => {
    const editor = await openFile("a.py");
    editor.selection = new vscode.Selection(0, 0, 1, 9);
    await ask("what is this?");
    assert.match((await lastRequests()).at(-1) ?? "", /def greet\(name\)/);
  });

  test("a code action of the server asks in our view", async () => {
    const editor = await openFile("a.py");
    const selection = new vscode.Range(0, 0, 1, 9);
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
      "vscode.executeCodeActionProvider",
      editor.document.uri,
      selection,
    );
    const action = actions.find(({ title }) => title === "Ask Tiro about this");
    assert.ok(action?.command, "the code action is offered");
    const result = await vscode.commands.executeCommand<TurnResult>(
      action.command.command,
      ...(action.command.arguments as unknown[]),
    );
    assert.equal(result.stopReason, "end_turn");
    assert.match((await lastRequests()).at(-1) ?? "", /def greet\(name\)/);
  });

  test("a changed setting reaches the running server (M3.1)", async () => {
    const configuration = vscode.workspace.getConfiguration("tiro");
    await configuration.update("session.maxHistory", 7, vscode.ConfigurationTarget.Global);
    await until(
      async () => (await run<SessionView>("tiro.newSession")).maxHistory === 7,
      "the server has the setting",
    );
    await configuration.update("session.maxHistory", undefined, vscode.ConfigurationTarget.Global);
  });

  test("a server killed in mid-answer is started again, and nothing is lost (P3, U9.3)", async () => {
    await ask("before the crash");
    const { running } = await askSlowly();
    const [pid] = serverPids();
    assert.ok(pid !== undefined, "no server runs");
    process.kill(pid, "SIGKILL");
    assert.equal(await running, undefined);
    assert.equal((await ask("after the crash"))?.stopReason, "end_turn");
    const text = await run<string>("tiro.showSession");
    assert.match(text, /\[USER\] before the crash\n.*\n\[USER\] slow/);
    assert.match(text, /\[USER\] after the crash/);
  });

  test("what is wrong in a setting is told with the way to it", async () => {
    const { showWarningMessage } = vscode.window;
    const told: string[][] = [];
    vscode.window.showWarningMessage = ((...words: string[]) => {
      told.push(words);
      return Promise.resolve(undefined);
    }) as unknown as typeof showWarningMessage;
    const configuration = vscode.workspace.getConfiguration("tiro");
    try {
      await configuration.update("settings", { session: { max_histroy: 3 } }, vscode.ConfigurationTarget.Global);
      await until(() => told.some(([text = ""]) => text.includes("session.max_histroy is no setting")), "it is told");
      assert.deepEqual(told.find(([text = ""]) => text.includes("max_histroy"))?.slice(1), ["Open Setting"]);
      assert.match(await run<string>("tiro.doctor"), /The editor's settings: session\.max_histroy is no setting/);
    } finally {
      vscode.window.showWarningMessage = showWarningMessage;
      await configuration.update("settings", undefined, vscode.ConfigurationTarget.Global);
    }
  });

  test("a restart while the server is starting leaves one server, too", async () => {
    const [old] = serverPids();
    const first = run("tiro.restartServer");
    await until(() => ![undefined, old].includes(serverPids()[0]), "the next server starts");
    await Promise.all([first, run("tiro.restartServer")]);
    await until(() => serverPids().length === 1, "one server is left");
    assert.equal((await ask("are you there?"))?.stopReason, "end_turn");
  });

  test("restarting twice at once leaves one server", async () => {
    await Promise.all([run("tiro.restartServer"), run("tiro.restartServer")]);
    await until(() => serverPids().length === 1, "one server is left");
    assert.equal((await ask("are you there?"))?.stopReason, "end_turn");
  });
});

const SHOWN = `Session Summary:

[USER] Find all .el files
[ASSISTANT] You said: Find all .el files
[USER] tool please
[TOOL] tool_use: read_file`;

async function openFile(name: string): Promise<vscode.TextEditor> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  assert.ok(folder);
  return vscode.window.showTextDocument(vscode.Uri.joinPath(folder, name));
}

/** The servers that belong to this extension host. */
function serverPids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const parent = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return Number(parent) === process.pid && command.includes("-m tiro serve");
      } catch {
        return false;
      }
    });
}
