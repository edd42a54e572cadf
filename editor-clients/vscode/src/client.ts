/**
 * The connection to the server: start, stop, restart, and what state it is in.
 *
 * A server that dies is started again, a few times; one that is missing, or dies again and again, is
 * reported once, with a Restart button.
 */

import * as vscode from "vscode";
import type { InitializeResult } from "vscode-languageclient/node";

import { initializationOptions, serverCommand, serverSettings } from "./config";
import { shownDiagnostics } from "./diagnostics";
import { FIRST_STEPS, messageOf, ServerStoppedError } from "./failure";
import type { Keys } from "./keys";
import type { QuietLanguageClient } from "./languageClient";
import { findServerCommand, ServerMissingError, type ServerProcess, startServer } from "./launch";
import type { NotificationType, RequestType } from "./method";
import { askPermission } from "./permission";
import { Preview } from "./preview";
import { Progress } from "./progress";
import * as protocol from "./protocol";
import { Questions } from "./questions";
import { showMessage } from "./serverMessages";
import type { SessionDocuments } from "./sessionDocument";
import { warnAboutVersion } from "./version";

const STOP_TIMEOUT_MS = 3_000;
/** A program that does not answer `initialize` for so long is no Tiro server. */
const START_TIMEOUT_MS = 60_000;
/** So long a server whose connection ended has for its own end. */
const END_TIMEOUT_MS = 30_000;

/** So many times within so long a server that died is started again, as VS Code's own client does it. */
const MAX_RESTARTS = 4;
const RESTARTS_WITHIN_MS = 180_000;

type Help = Readonly<Record<string, string>>;
/** Buttons under the word that it does not run, and their commands. */
const HELP: Help = { Restart: "tiro.restartServer", "Show Log": "tiro.showLog" };
const FIRST_HELP: Help = Object.fromEntries(FIRST_STEPS.map(({ label, command }) => [label, command]));

export type ConnectionState = "starting" | "ready" | "stopped";

/** The one connection of this window. */
export class Client implements vscode.Disposable {
  readonly #stateChanged = new vscode.EventEmitter<ConnectionState>();
  readonly #turnEvent = new vscode.EventEmitter<protocol.TurnEvent>();
  readonly #sessionChanged = new vscode.EventEmitter<protocol.SessionChanged>();
  readonly #progress = new Progress();
  readonly onStateChanged = this.#stateChanged.event;
  readonly onTurnEvent = this.#turnEvent.event;
  readonly onSessionChanged = this.#sessionChanged.event;
  /** What the server is busy with, in words; "" when that is over. */
  readonly onProgress = this.#progress.onText;
  readonly questions = new Questions();

  #state: ConnectionState = "stopped";
  #missing: ServerMissingError | undefined;
  #language: QuietLanguageClient | undefined;
  #process: ServerProcess | undefined;
  #starting: Promise<void> | undefined;
  #restarting: Promise<void> | undefined;
  /** When servers died that were started again. */
  #deaths: number[] = [];
  /** Whether it should run; the end of one that should not is no news. */
  #isWanted = false;

  #begin: (facts: protocol.Experimental | undefined) => Promise<void> = () => Promise.resolve();

  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly documents: SessionDocuments,
    private readonly keys: Pick<Keys, "environment">,
  ) {}

  /** What is done after every connect, before any other request; it must not throw. */
  onConnected(begin: (facts: protocol.Experimental | undefined) => Promise<void>): void {
    this.#begin = begin;
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Why there is no server to start; undefined where there is one, or nobody has looked yet. */
  get missing(): Error | undefined {
    return this.#missing;
  }

  /** Start the server; failures are told to the user, not thrown. */
  async start(): Promise<void> {
    this.#isWanted = true;
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    await this.#starting;
  }

  /** End the server in order: shutdown, exit, and after a while the signal. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    if (this.#state === "starting") {
      // There is nothing to lose yet, and it may never answer.
      this.#process?.child.kill();
    }
    await this.#starting;
    const [language, server] = [this.#language, this.#process];
    this.#language = undefined;
    this.#process = undefined;
    this.#setState("stopped");
    if (language?.isRunning() === true) {
      await language.stop(STOP_TIMEOUT_MS).catch((error: unknown) => {
        this.log.warn(`Stopping the server: ${String(error)}`);
      });
    }
    await language?.dispose().catch(() => undefined);
    server?.child.kill();
  }

  /** What is asked meanwhile waits for the next server. */
  async restart(): Promise<void> {
    this.#deaths = [];
    const restarting = this.stop().then(() => this.start());
    this.#restarting = restarting;
    await restarting;
  }

  /** Ask the server; waits while it is starting. */
  async request<P, R>(type: RequestType<P, R>, params: P, token?: vscode.CancellationToken): Promise<R> {
    await this.#restarting;
    await this.#starting;
    return this.requestNow(type, params, token);
  }

  /** Ask the server without waiting for the end of its start; for what belongs to the start. */
  async requestNow<P, R>(type: RequestType<P, R>, params: P, token?: vscode.CancellationToken): Promise<R> {
    const language = this.#language;
    if (language === undefined) {
      throw new ServerStoppedError(this.#missing);
    }
    try {
      return await language.sendRequest(type.method, params, ...(token === undefined ? [] : [token]));
    } catch (error) {
      throw this.#language === language ? error : new ServerStoppedError(this.#missing, this.#isWanted && this.#restarting !== undefined);
    }
  }

  /** Tell the server the settings of now. */
  async sendSettings(): Promise<void> {
    if (this.#language !== undefined) {
      await this.#language.sendNotification("workspace/didChangeConfiguration", {
        settings: serverSettings(),
      });
    }
  }

  dispose(): void {
    const emitters = [this.#stateChanged, this.#turnEvent, this.#sessionChanged, this.#progress];
    vscode.Disposable.from(...emitters, this.questions).dispose();
  }

  async #start(): Promise<void> {
    if (this.#state !== "stopped") {
      return;
    }
    this.#missing = undefined;
    this.#setState("starting");
    try {
      const language = await this.#connect();
      this.#language = language;
      const facts = factsOf(language.initializeResult);
      warnAboutVersion(facts, this.log);
      await this.#begin(facts);
      if (this.#isConnectedTo(language)) {
        this.#setState("ready");
      }
    } catch (error) {
      const server = this.#process;
      this.#process = undefined;
      this.#missing = error instanceof ServerMissingError ? error : undefined;
      this.#setState("stopped");
      await this.#reportFailedStart(server, error);
    }
  }

  async #connect(): Promise<QuietLanguageClient> {
    const command = await findServerCommand(serverCommand());
    this.log.info(`Starting ${command.join(" ")}`);
    const cwd = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
    const server = await startServer(command, cwd, { ...process.env, ...(await this.keys.environment()) });
    this.#process = server;
    const timer = setTimeout(() => server.child.kill("SIGKILL"), START_TIMEOUT_MS);
    try {
      const { createLanguageClient } = await import("./languageClient.js"); // while the server starts
      const language = createLanguageClient({
        server,
        log: this.log,
        initializationOptions: initializationOptions(vscode.workspace.isTrusted),
        progress: this.#progress,
        onClosed: () => void this.#closed(server),
      });
      this.#listen(language);
      await language.start();
      return language;
    } finally {
      clearTimeout(timer);
    }
  }

  #listen(language: QuietLanguageClient): void {
    const on = <P>(type: NotificationType<P>, emitter: vscode.EventEmitter<P>) => {
      language.onNotification(type.method, (params: P) => {
        emitter.fire(params);
      });
    };
    on(protocol.turnEvent, this.#turnEvent);
    on(protocol.sessionChanged, this.#sessionChanged);
    language.onNotification("window/showMessage", showMessage);
    const answer = <P, R>(type: RequestType<P, R>, by: (params: P, token: vscode.CancellationToken) => R | Promise<R>) => {
      language.onRequest<unknown, Error>(type.method, by);
    };
    answer(protocol.permissionRequest, (params, token) =>
      askPermission(params, token, this.onTurnEvent, new Preview(this.documents), this.questions),
    );
    answer(protocol.editorDiagnostics, shownDiagnostics);
  }

  /** The connection ended and nobody here asked for it. */
  async #closed(server: ServerProcess): Promise<void> {
    const language = this.#language;
    if (this.#process !== server || language === undefined) {
      return;
    }
    this.#language = undefined;
    this.#process = undefined;
    const isAgain = this.#mayStartAgain();
    const timer = setTimeout(() => server.child.kill("SIGKILL"), END_TIMEOUT_MS); // one that lives on without us
    void server.ended.then(() => { clearTimeout(timer); });
    const again = isAgain ? server.ended.then(() => (this.#isWanted ? this.start() : undefined)) : undefined;
    this.#restarting = again;
    this.#setState("stopped");
    const text = `The Tiro server stopped (${await server.ended})`;
    if (again === undefined) {
      this.#reportFailure(text, server.lastWords());
      return;
    }
    this.log.error([text, server.lastWords()].filter(Boolean).join(": "));
    await again;
  }

  #mayStartAgain(): boolean {
    const now = Date.now();
    this.#deaths = this.#deaths.filter((at) => now - at < RESTARTS_WITHIN_MS);
    if (!this.#isWanted || this.#deaths.length === MAX_RESTARTS) {
      return false;
    }
    this.#deaths.push(now);
    return true;
  }

  #isConnectedTo(language: QuietLanguageClient): boolean {
    return this.#language === language;
  }

  async #reportFailedStart(server: ServerProcess | undefined, error: unknown): Promise<void> {
    if (server === undefined) {
      this.#reportFailure(messageOf(error), "", this.#missing === undefined ? HELP : FIRST_HELP);
      return;
    }
    server.child.kill();
    const how = await server.ended;
    this.#reportFailure(`The Tiro server did not start (${how})`, server.lastWords());
  }

  #reportFailure(message: string, detail: string, help: Help = HELP): void {
    if (!this.#isWanted) {
      return;
    }
    const text = detail !== "" ? `${message}: ${detail}` : message;
    this.log.error(text);
    void vscode.window.showErrorMessage(text, ...Object.keys(help)).then((choice) => {
      const command = help[choice ?? ""];
      return command === undefined ? undefined : vscode.commands.executeCommand(command);
    });
  }

  #setState(state: ConnectionState): void {
    if (this.#state !== state) {
      this.#state = state;
      this.#stateChanged.fire(state);
    }
  }
}

function factsOf(result: InitializeResult | undefined): protocol.Experimental | undefined {
  const experimental = result?.capabilities.experimental as { tiro?: protocol.Experimental } | undefined;
  return experimental?.tiro;
}
