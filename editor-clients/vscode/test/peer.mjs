// A stand-in for the server, for what the real one does not do of its own accord yet or seldom:
// it reports progress, tells about changes, and floods the view.
import {
  createMessageConnection,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-languageserver-protocol/node";

const FLOOD_EVENTS = 2_000;

const connection = createMessageConnection(
  new StreamMessageReader(process.stdin),
  new StreamMessageWriter(process.stdout),
);
const contextSize = { tokens: 10, errorPercent: null, contextWindow: null, ratio: null, breakdown: {} };
const agent = { name: "build", description: "", mode: "primary", hidden: false, native: true, model: null, tools: [] };
let turns = 0;
let cancelled = false;

function sessionView() {
  return { id: null, title: null, agent: null, model: null, messages: [], total: 0, archived: 0, pins: [], path: null, contextSize, busy: null };
}

connection.onRequest("initialize", () => ({
  capabilities: {
    experimental: { tiro: { protocolVersion: 1, serverVersion: "0", methods: [], resume: { setting: "new", latest: null } } },
  },
}));
connection.onRequest("shutdown", () => null);
connection.onNotification("exit", () => process.exit(0));
connection.onRequest("tiro/session/get", sessionView);
connection.onRequest("tiro/session/load", sessionView);
connection.onRequest("tiro/status", () => ({ model: "peer/model", provider: "peer", problems: [] }));
connection.onRequest("tiro/agents/list", () => ({ agents: [agent], default: "build" }));
connection.onRequest("tiro/turn/cancel", () => {
  cancelled = true;
  return { cancelled: true };
});
connection.onRequest("tiro/turn/start", async ({ prompt }) => {
  turns += 1;
  cancelled = false;
  const turnId = `turn-${turns}`;
  let n = 0;
  const tell = (type, fields) =>
    connection.sendNotification("tiro/turn/event", { sessionId: "peer", turnId, n: (n += 1), type, ...fields });
  await tell("started", { agent: "build", model: "peer/model", seq: 2 * turns - 1 });
  await (SCRIPTS[prompt.split(" ")[0]] ?? (() => undefined))(tell);
  await tell("text", { delta: "The end." });
  const stopReason = cancelled ? "cancelled" : "end_turn";
  await tell("finished", { stopReason, error: null });
  return { turnId, stopReason, text: "", firstSeq: 1, lastSeq: 2, steps: 1, usage: {}, contextSize };
});
connection.listen();

const SCRIPTS = {
  async progress(tell) {
    const value = (fields) => connection.sendNotification("$/progress", { token: "load", value: fields });
    await connection.sendRequest("window/workDoneProgress/create", { token: "load" });
    await value({ kind: "begin", title: "Loading the model", percentage: 0 });
    await value({ kind: "report", message: "3 of 9 files", percentage: 33 });
    await until(() => cancelled);
    await value({ kind: "end" });
    await tell("text", { delta: "Loaded. " });
  },

  async changed() {
    for (const reason of ["saveFailed", "saveResumed", "titled"]) {
      await connection.sendNotification("tiro/session/changed", { reason, id: "peer", total: 1, contextSize });
    }
  },

  async flood(tell) {
    for (let number = 0; number < FLOOD_EVENTS; number += 1) {
      await tell("text", { delta: `n${number} ${number % 20 === 19 ? "\n\n" : ""}` });
    }
  },
};

async function until(condition) {
  while (!condition()) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
