/**
 * The settings of VS Code, as the server wants them.
 *
 * Only what the user has set is sent: an unset or emptied setting leaves the word to config.yaml.
 */

import * as vscode from "vscode";

/** The part of a VS Code configuration that is read here. */
export type Configuration = Pick<vscode.WorkspaceConfiguration, "get">;

/** VS Code setting (without `tiro.`) → key of the config file. */
export const MIRRORED: readonly (readonly [string, readonly string[]])[] = [
  ["model", ["model"]],
  ["agent", ["agent"]],
  ["session.maxHistory", ["session", "max_history"]],
  ["session.mode", ["session", "mode"]],
  ["session.autosave", ["session", "autosave"]],
  ["session.resume", ["session", "resume"]],
  ["turn.maxSteps", ["turn", "max_steps"]],
];

/** What is attached to a prompt without being asked for. */
export type AutomaticAttachment = "selection" | "none";

type Settings = Record<string, unknown>;

/** The command that starts the server; empty means find one. */
export function serverCommand(configuration = tiroConfiguration()): string[] {
  const value = configuration.get<unknown>("server.command");
  return Array.isArray(value) ? value.filter((part) => typeof part === "string") : [];
}

/** What goes along with a prompt when the user attached nothing. */
export function automaticAttachment(configuration = tiroConfiguration()): AutomaticAttachment {
  return configuration.get<string>("attach") === "none" ? "none" : "selection";
}

/** Whether a document that Tiro changed is saved, if all in it was saved before. */
export function savesEditedFiles(configuration = tiroConfiguration()): boolean {
  return configuration.get<unknown>("saveEditedFiles") !== false;
}

/** The server's settings: `tiro.settings` as it stands, single settings over it. */
export function serverSettings(configuration = tiroConfiguration()): Settings {
  const settings = copy(configuration.get<Settings | null>("settings") ?? {});
  for (const [name, path] of MIRRORED) {
    const value = configuration.get<unknown>(name);
    if (value !== null && value !== undefined && value !== "") {
      setAt(settings, path, value);
    }
  }
  return settings;
}

/** The `initializationOptions` of the protocol. */
export function initializationOptions(isTrusted: boolean, configuration = tiroConfiguration()) {
  return {
    settings: serverSettings(configuration),
    features: { permissionRequest: true, turnEvents: true, diagnostics: true },
    workspaceTrusted: isTrusted,
  };
}

function tiroConfiguration(): Configuration {
  return vscode.workspace.getConfiguration("tiro");
}

/** VS Code hands out a read-only proxy, which structuredClone refuses. */
function copy(settings: Settings): Settings {
  return JSON.parse(JSON.stringify(settings)) as Settings;
}

function setAt(settings: Settings, path: readonly string[], value: unknown): void {
  const [key = "", ...rest] = path;
  if (rest.length === 0) {
    settings[key] = value;
    return;
  }
  const inner = settings[key];
  const nested: Settings = isSettings(inner) ? inner : {};
  settings[key] = nested;
  setAt(nested, rest, value);
}

function isSettings(value: unknown): value is Settings {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
