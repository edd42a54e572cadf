/**
 * A language model that VS Code's Chat can list, so that `@tiro` works without any account.
 *
 * Chat wants a model before it hands a prompt to a participant. `@tiro` never uses it: the
 * server asks the model of the session. Who asks it directly is told so.
 */

import * as vscode from "vscode";

const VENDOR = "tiro";
const MAX_TOKENS = 100_000;
const TELL = "Begin with `@tiro`: then Tiro answers, with the session and the model that its view shows.";

/** What VS Code 1.104 and later has, and the API that we are checked against has not. */
interface Provider {
  provideLanguageModelChatInformation(): object[];
  provideLanguageModelChatResponse(
    model: unknown,
    messages: unknown,
    options: unknown,
    progress: vscode.Progress<vscode.LanguageModelTextPart>,
  ): Promise<void>;
  provideTokenCount(model: unknown, text: unknown): Promise<number>;
}

interface Registry {
  registerLanguageModelChatProvider?: (vendor: string, provider: Provider) => vscode.Disposable;
}

/** Offer the model; nothing where VS Code is too old for it. */
export function nativeModel(): vscode.Disposable {
  const registry = vscode.lm as Registry | undefined;
  const registration = registry?.registerLanguageModelChatProvider?.(VENDOR, PROVIDER);
  if (registration === undefined) {
    return vscode.Disposable.from();
  }
  // Chat lists a model once somebody asked for it; without, the first prompt finds none.
  void vscode.lm.selectChatModels({ vendor: VENDOR }).then(undefined, () => undefined);
  return registration;
}

const PROVIDER: Provider = {
  provideLanguageModelChatInformation: () => [
    {
      id: "session",
      name: "Tiro",
      family: VENDOR,
      version: "1",
      tooltip: "Answers to @tiro",
      maxInputTokens: MAX_TOKENS,
      maxOutputTokens: MAX_TOKENS,
      capabilities: { toolCalling: true },
      isUserSelectable: true,
    },
  ],
  provideLanguageModelChatResponse: (_model, _messages, _options, progress) => {
    progress.report(new vscode.LanguageModelTextPart(TELL));
    return Promise.resolve();
  },
  provideTokenCount: () => Promise.resolve(0),
};
