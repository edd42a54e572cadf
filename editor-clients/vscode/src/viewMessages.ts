/**
 * What the Tiro view and the extension say to each other: types, and the words that both show.
 *
 * The extension owns the transcript; the view paints it and can be thrown away at any time.
 */

export type ToolStatus = "proposed" | "running" | "done" | "rejected" | "failed" | "cancelled";

/** The user's own prompt. */
export interface UserItem {
  kind: "user";
  id: string;
  text: string;
  /** One line for each attachment, such as `a.py:3-7`. */
  attachments: string[];
  /** What is to be known of one that the running answer has not taken. */
  mark?: string;
  /** Its number in the session, once it is stored. */
  seq?: number;
}

/** Text of the assistant. */
export interface TextItem {
  kind: "text";
  id: string;
  text: string;
  /** More text may follow. */
  isStreaming: boolean;
  /** A cancel or a failure ended it. */
  isInterrupted: boolean;
  /** Its number in the session, once it is stored. */
  seq?: number;
}

/** The model's reasoning, folded. */
export interface ThinkingItem {
  kind: "thinking";
  id: string;
  text: string;
  isStreaming: boolean;
}

/** One tool use in one line, its output folded below. */
export interface ToolItem {
  kind: "tool";
  id: string;
  name: string;
  /** The input in one short line. */
  summary: string;
  status: ToolStatus;
  /** The beginning of a file's change, as the lines of a diff; "" for none. */
  diff: string;
  output: string;
}

/** Something the user must know that is no message of the session. */
export interface NoticeItem {
  kind: "notice";
  id: string;
  level: "error" | "info";
  text: string;
  /** Commands offered beside the text. */
  actions: NoticeAction[];
}

export interface NoticeAction {
  label: string;
  command: ViewCommand;
}

export type Item = UserItem | TextItem | ThinkingItem | ToolItem | NoticeItem;

/** The commands a button in the view may run; nothing else is run for it. */
export const VIEW_COMMANDS = [
  "tiro.continueSession",
  "tiro.restartServer",
  "tiro.installServer",
  "tiro.showLog",
  "tiro.selectAgent",
  "tiro.selectModel",
  "tiro.contextSize",
  "tiro.doctor",
  "tiro.undoResize",
  "tiro.attach",
  "tiro.loadSession",
  "tiro.openSettings",
  "workbench.trust.manage",
] as const;
export type ViewCommand = (typeof VIEW_COMMANDS)[number];

/** What is done with a block of code. */
export type CodeAction = "copy" | "insert" | "apply";

export type Decision = "once" | "always" | "reject";

/** What the buttons of a question are called. */
export const DECISIONS = {
  once: "Allow Once",
  always: "Allow for This Session",
  reject: "Reject",
} as const satisfies Record<Decision, string>;

export type ClientState = "starting" | "ready" | "answering" | "stopped";

/** What stands around the transcript. */
export interface ViewStatus {
  state: ClientState;
  agent: string;
  model: string;
  tokens: string;
  /** The same in a sentence. */
  tokensSentence: string;
  /** The workspace is not trusted, so nothing is changed and no command is run. */
  isRestricted: boolean;
  /** What is being done right now, such as the load of a local model; "" for nothing. */
  activity: string;
  /** The seqs of the messages that stay in the window. */
  pins: readonly number[];
}

/** Something that will go along with the next prompt. */
export interface Chip {
  id: string;
  label: string;
  /** It follows the selection in the editor, and so it cannot be removed, only switched off. */
  isSelection: boolean;
  isOn: boolean;
}

/** Something that `@` in the prompt can name. */
export interface Mention {
  name: string;
  detail: string;
  /** What is sent back when it is chosen. */
  value: string;
}

/** What a tool would do, and the user is asked about; the answer may be given elsewhere, too. */
export interface QuestionItem {
  id: string;
  /** Who wants to run which tool. */
  title: string;
  /** What a change is about; "" where the lines say all. */
  subject: string;
  /** The beginning of what would be run, or of the diff. */
  lines: string[];
  /** Nothing of it is cut off. */
  isWhole: boolean;
  isDiff: boolean;
  /** The button that opens it in an editor; "" where there is no more to see. */
  more: string;
  /** What the lasting answer allows from then on, in words; where it is nothing it is not offered. */
  always: string[];
}

/** One step that changes the painted transcript, or where its reader is. */
export type TranscriptChange =
  | { type: "reset"; items: Item[]; hasEarlier: boolean }
  | { type: "prepend"; items: Item[]; hasEarlier: boolean }
  | { type: "put"; item: Item }
  | { type: "append"; id: string; delta: string }
  | { type: "seq"; id: string; seq: number }
  | { type: "remove"; id: string }
  | { type: "goTo"; id: string };

export type ToView =
  | TranscriptChange
  | { type: "status"; status: ViewStatus }
  | { type: "chips"; chips: Chip[] }
  | { type: "draft"; text: string }
  | { type: "focus" }
  | { type: "question"; question: QuestionItem | null; others: number }
  | { type: "focusQuestion" }
  | { type: "say"; text: string }
  | { type: "mentions"; query: string; mentions: Mention[] };

export type FromView =
  | { type: "ready" }
  | { type: "ask"; prompt: string }
  | { type: "steer"; text: string }
  | { type: "cancel" }
  | { type: "earlier"; before: string }
  | { type: "command"; command: string }
  | { type: "toggleSelection" }
  | { type: "removeChip"; id: string }
  | { type: "answer"; id: string; decision: Decision; message: string }
  | { type: "showQuestion"; id: string }
  | { type: "showChange"; id: string }
  | { type: "findMentions"; query: string }
  | { type: "mention"; value: string }
  | { type: "drop"; uris: string[] }
  | { type: "code"; action: CodeAction; text: string };
