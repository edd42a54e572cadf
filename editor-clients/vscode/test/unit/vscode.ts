/** A stand-in for the few parts of the `vscode` module that the pure tests need. */

export class EventEmitter<T> {
  readonly #listeners = new Set<(value: T) => void>();

  readonly event = (listener: (value: T) => void) => {
    this.#listeners.add(listener);
    return {
      dispose: () => {
        this.#listeners.delete(listener);
      },
    };
  };

  dispose(): void {
    this.#listeners.clear();
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  fire(value: T): void {
    for (const listener of [...this.#listeners]) {
      listener(value);
    }
  }
}

/** What the last message asked, and how to answer it. */
export const asked: { text: string; labels: string[]; answer: (label: string | undefined) => void }[] = [];

/** Where the focus of the window is told. */
export const windowState = new EventEmitter<{ focused: boolean }>();

export const window = {
  onDidChangeWindowState: windowState.event,
  showInformationMessage: (): Promise<string | undefined> => Promise.resolve(undefined),
  showWarningMessage: (text: string, ...labels: string[]) =>
    new Promise<string | undefined>((answer) => {
      asked.push({ text, labels, answer });
    }),
};

/** The commands that were run, with their arguments, but for the keys of `when` clauses. */
export const ran: unknown[][] = [];

export const commands = {
  executeCommand: (id: string, ...args: unknown[]) => {
    if (id !== "setContext") {
      ran.push([id, ...args]);
    }
    return Promise.resolve(undefined);
  },
};

export const Disposable = {
  from: (...all: { dispose: () => void }[]) => ({
    dispose: () => {
      for (const one of all) {
        one.dispose();
      }
    },
  }),
};

/** The documents that are open. */
export const textDocuments: unknown[] = [];

export const workspace = {
  textDocuments,
  getConfiguration: () => ({ get: () => undefined }),
};

/** What `languages.getDiagnostics` knows, file by file. */
export const problems: [{ scheme: string; fsPath: string }, unknown[]][] = [];

export const languages = {
  getDiagnostics: (uri?: { fsPath: string }) =>
    uri === undefined
      ? problems
      : problems.filter(([one]) => one.fsPath === uri.fsPath).flatMap(([, found]) => found),
};

export const DiagnosticSeverity = { Error: 0, Warning: 1, Information: 2, Hint: 3 };

export class Uri {
  constructor(
    readonly scheme: string,
    readonly fsPath: string,
  ) {}

  static file(fsPath: string): Uri {
    return new Uri("file", fsPath);
  }

  static parse(text: string): URL {
    return new URL(text);
  }
}

export class Location {
  constructor(
    readonly uri: Uri,
    readonly range: object,
  ) {}
}

export const StatusBarAlignment = { Right: 2 };

export class ThemeIcon {
  constructor(readonly id: string) {}
}

export class TreeItem {
  constructor(readonly label: string) {}
}
