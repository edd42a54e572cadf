// A scripted OpenAI-style provider on loopback; the prompt's words say what it answers.
//
//   think …  reasons before it answers        tool …   reads a.py first, then answers
//   slow …   words, one every 25 ms, until    refuse … is refused with HTTP 400
//            it is told to finish: then 200 in all, or as many as were said
//   markdown … headings, lists, code           empty …  answers with nothing
//   edit FILES reads them, has "one" replaced by "ONE" in each, then answers
//   number … is answered with how many requests have come
//   diagnostics … asks what is wrong in a.py first, then answers
import http from "node:http";

const WORDS = 200;
const PAUSE_MS = 25;

const TOOLS = [
  { word: "tool", name: "read_file" },
  { word: "diagnostics", name: "diagnostics" },
];

const MARKDOWN = `## What it does

The file \`a.py\` prints a **greeting**, and _nothing_ else:

\`\`\`python
def greet(name):
    print(f"hello, {name}")
\`\`\`

1. It defines one function.
2. It calls it with *your* name.
   - a nested remark
   - <img src=x onerror=alert(1)> is shown, not run

| part | lines | ~~old~~ |
|:-----|------:|---------|
| \`greet\` | 2 | no |
| the call | 1 | **no** |

- [x] it was read
- [ ] it was run

> Quoted from the manual.

See [the documentation](https://example.org/docs) for more.`;

/** Start it; resolves with its URL, the requests it got, and ways to finish slow answers and to end it. */
export async function startProvider() {
  const requests = [];
  /** How many words each slow answer has said, whether it is to finish, and whether nobody listens any more. */
  const slow = [];
  const finish = () => {
    for (const one of slow) {
      one.isToFinish = true;
    }
  };
  const server = http.createServer((request, response) => {
    if (request.url.endsWith("/requests")) {
      sendJson(response, 200, requests);
      return;
    }
    if (request.url.endsWith("/slow")) {
      sendJson(response, 200, slow);
      return;
    }
    if (request.url.endsWith("/finish")) {
      finish();
      sendJson(response, 200, {});
      return;
    }
    if (request.method === "GET") {
      sendJson(response, 200, { object: "list", data: [{ id: "echo", object: "model" }, { id: "other", object: "model" }] });
      return;
    }
    let body = "";
    request.setEncoding("utf8").on("data", (part) => (body += part));
    request.on("end", () => {
      const asked = JSON.parse(body);
      requests.push(asked);
      void answer(asked, response, { number: requests.length, slow });
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    requests,
    slow,
    finish,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function answer(asked, response, state) {
  const last = asked.messages.at(-1);
  const prompt = textOf(asked.messages.findLast(({ role }) => role === "user"));
  if (prompt.startsWith("refuse")) {
    sendJson(response, 400, { error: { message: "This prompt is refused by the script" } });
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (delta, finish = null) => {
    asked.answeredAt ??= Date.now();
    const choice = { index: 0, delta, finish_reason: finish };
    response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [choice] })}\n\n`);
  };
  if (prompt.startsWith("think")) {
    send({ reasoning_content: "First I look at the question. " });
    send({ reasoning_content: "Then I answer it." });
  }
  const calls = editCalls(prompt, asked.messages);
  if (calls.length > 0) {
    send({ tool_calls: calls.map((call, index) => ({ index, id: `call_${call.name}_${index}`, type: "function", function: call })) });
    send({}, "tool_calls");
    endStream(response);
    return;
  }
  const wanted = TOOLS.find(({ word }) => prompt.startsWith(word));
  if (wanted !== undefined && last.role === "user") {
    const call = { name: wanted.name, arguments: JSON.stringify({ path: "a.py" }) };
    send({ tool_calls: [{ index: 0, id: "call_1", type: "function", function: call }] });
    send({}, "tool_calls");
  } else {
    await sendText(prompt, send, response, state);
    send({}, "stop");
  }
  endStream(response);
}

function endStream(response) {
  response.write('data: {"choices": [], "usage": {"prompt_tokens": 42, "completion_tokens": 7, "total_tokens": 49}}\n\n');
  response.end("data: [DONE]\n\n");
}

/** The tool uses of the next step of `edit FILES`: all are read, then all are edited. */
function editCalls(prompt, messages) {
  const [word, ...files] = prompt.split("\n")[0].split(" ");
  if (word !== "edit") {
    return [];
  }
  const done = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  const steps = [
    (path) => ({ name: "read_file", arguments: JSON.stringify({ path }) }),
    (path) => ({ name: "edit_file", arguments: JSON.stringify({ path, old_text: "one", new_text: "ONE" }) }),
  ];
  const step = steps[done.filter(({ role }) => role === "assistant").length];
  return step === undefined ? [] : files.map(step);
}

async function sendText(prompt, send, response, { number, slow }) {
  if (prompt.startsWith("slow")) {
    const one = { words: 0, isToFinish: false, isLeft: false };
    slow.push(one);
    while (!response.destroyed && (one.words < WORDS || !one.isToFinish)) {
      send({ content: `word${one.words} ` });
      one.words += 1;
      await new Promise((resolve) => setTimeout(resolve, one.isToFinish ? 0 : PAUSE_MS));
    }
    one.isLeft = response.destroyed;
  } else if (prompt.startsWith("markdown")) {
    for (const part of MARKDOWN.match(/[\s\S]{1,9}/g)) {
      send({ content: part });
    }
  } else if (prompt.startsWith("number")) {
    send({ content: `This is request ${number}` });
  } else if (!prompt.startsWith("empty")) {
    send({ content: "You said: " });
    send({ content: prompt.split("\n")[0] });
  }
}

function textOf(message) {
  const content = message?.content ?? "";
  return typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("\n");
}

function sendJson(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}
