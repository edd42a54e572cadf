/**
 * API keys in VS Code's secret storage; the server gets them in its environment, and nobody else.
 *
 * They never stand in settings, logs or the session: the server keeps the values it knows out.
 */

import * as vscode from "vscode";

import type { Client } from "./client";

/** Who has a key, and the variable in which the server looks for it. */
const PROVIDERS = [
  { label: "Anthropic", variable: "ANTHROPIC_API_KEY" },
  { label: "OpenAI", variable: "OPENAI_API_KEY" },
  { label: "OpenRouter", variable: "OPENROUTER_API_KEY" },
] as const;
const OTHER = "Another variable";

/** The names of the variables that have a value; the values stand in the secret storage only. */
const NAMES_KEY = "tiro.keys";
const VARIABLE = /^[A-Z_][A-Z0-9_]*$/;
/** What would change which program runs, and is no key. */
const FORBIDDEN = /^(PATH|HOME|SHELL|LD_.*|DYLD_.*|PYTHON.*|NODE_.*)$/;

export class Keys {
  constructor(
    private readonly secrets: vscode.SecretStorage,
    private readonly names: vscode.Memento,
  ) {}

  /** What is added to the server's environment. */
  async environment(): Promise<Record<string, string>> {
    const pairs = await Promise.all(
      this.known.map(async (name) => [name, await this.secrets.get(secretOf(name))] as const),
    );
    return Object.fromEntries(pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
  }

  get known(): readonly string[] {
    return this.names.get<string[]>(NAMES_KEY) ?? [];
  }

  async set(name: string, value: string): Promise<void> {
    await this.secrets.store(secretOf(name), value);
    await this.names.update(NAMES_KEY, [...new Set([...this.known, name])].sort());
  }

  async remove(name: string): Promise<void> {
    await this.secrets.delete(secretOf(name));
    await this.names.update(NAMES_KEY, this.known.filter((one) => one !== name));
  }
}

/** Ask for a key and start the server with it. */
export async function setKey({ client, keys }: { client: Client; keys: Keys }): Promise<string | undefined> {
  const name = await chooseVariable(keys);
  if (name === undefined) {
    return undefined;
  }
  const value = await vscode.window.showInputBox({
    title: `The key for ${name}`,
    prompt: "It goes into VS Code's secret storage, and into the server's environment",
    password: true,
    ignoreFocusOut: true,
    validateInput: (text) => (text.trim() === "" ? "Paste the key" : undefined),
  });
  if (value === undefined) {
    return undefined;
  }
  await keys.set(name, value.trim());
  await client.restart();
  return name;
}

/** Forget a key and start the server without it. */
export async function removeKey({ client, keys }: { client: Client; keys: Keys }): Promise<string | undefined> {
  if (keys.known.length === 0) {
    void vscode.window.showInformationMessage("Tiro: No key is stored here");
    return undefined;
  }
  const name = await vscode.window.showQuickPick(keys.known, { title: "Forget a Key" });
  if (name !== undefined) {
    await keys.remove(name);
    await client.restart();
  }
  return name;
}

async function chooseVariable(keys: Keys): Promise<string | undefined> {
  const rows = PROVIDERS.map(({ label, variable }) => ({
    label,
    description: variable,
    detail: keys.known.includes(variable) ? "stored; a new one replaces it" : "",
  }));
  const other = { label: OTHER, description: "", detail: "the api_key_env of a provider in config.yaml" };
  const pick = await vscode.window.showQuickPick([...rows, other], { title: "Set an API Key: for whom?" });
  return pick?.label === OTHER ? askForVariable() : pick?.description;
}

function askForVariable(): Thenable<string | undefined> {
  return vscode.window.showInputBox({
    title: "The variable that config.yaml names as api_key_env",
    placeHolder: "WORK_API_KEY",
    validateInput: variableProblem,
  });
}

/** Why this can be no variable of a key. */
export function variableProblem(name: string): string | undefined {
  if (!VARIABLE.test(name)) {
    return "Capital letters, digits and _ only";
  }
  return FORBIDDEN.test(name) ? "This variable is not for keys" : undefined;
}

function secretOf(name: string): string {
  return `tiro.key.${name}`;
}
