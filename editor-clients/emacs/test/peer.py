"""A stand-in for `tiro serve` that does on demand what the real server does rarely or not yet.

It speaks the protocol over stdio; the prompt says what happens: `permission`, `flood N`, `die`,
`stale`, `progress`, `changed REASON`, `refused TEXT` (a resize without its memo), `message TEXT`,
`unknown`, `fail`, `edit JSON` (a workspace edit), `diff N` (a permission request that shows N added
lines), `diagnostics PATH`, `question TEXT`, `document URI`. Other prompts are echoed.
"""

import json
import os
import sys
import threading
from typing import Any

frames = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
sending = threading.Lock()
answers: dict[str, Any] = {}
answered = threading.Condition()
waiting: list[int] = []


def send(**message: Any) -> None:
    """Write one frame."""
    body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
    with sending:
        frames.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        frames.flush()


def read() -> dict[str, Any] | None:
    """Read one frame; None at the end of the input."""
    length = 0
    while (line := sys.stdin.buffer.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    body = sys.stdin.buffer.read(length)
    return json.loads(body) if length else None


def ask(method: str, **params: Any) -> Any:
    """Send a request to the editor and wait for its answer."""
    id_ = f"q{len(answers)}"
    answers[id_] = None
    send(id=id_, method=method, params=params)
    with answered:
        answered.wait_for(lambda: answers[id_] is not None, 60)
    return answers[id_]


def event(turn_id: str, type_: str, **fields: Any) -> None:
    """Send one turn event."""
    params = {"sessionId": "session-1", "turnId": turn_id, "n": 1, "type": type_, **fields}
    send(method="tiro/turn/event", params=params)


def permission(turn_id: str, _: str) -> None:
    """Ask for permission and tell the answer."""
    given = ask(
        "tiro/permission/request",
        turnId=turn_id,
        toolUse={"id": "c1", "name": "shell", "input": {"command": "ls -la"}},
        agent="build",
        rule="bash: ask",
        effect="execute",
        always=["bash: ls -la allow"],
        preview="ls -la",
    )
    event(turn_id, "text", delta=f"answer {json.dumps(given)}")


def edit(turn_id: str, wanted: str) -> None:
    """Ask for a workspace edit and tell the answer."""
    given = ask("workspace/applyEdit", label="Tiro", edit=json.loads(wanted))
    event(turn_id, "text", delta=f"answer {json.dumps(given)}")


def diff(turn_id: str, count: str) -> None:
    """Ask for permission with a diff of so many lines."""
    lines = "".join(f"+line {n}\n" for n in range(int(count)))
    ask(
        "tiro/permission/request",
        turnId=turn_id,
        toolUse={"id": "c1", "name": "edit_file", "input": {"path": "a.txt"}},
        agent="build",
        rule="edit: ask",
        effect="write",
        always=[],
        preview=f"--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-old\n{lines}",
    )


def flood(turn_id: str, count: str) -> None:
    """Send many deltas, and a request in the midst of them."""
    for n in range(int(count)):
        event(turn_id, "text", delta=f"{n} ")
        if n == int(count) // 2:
            threading.Thread(target=ask, args=("window/workDoneProgress/create",)).start()


def die(turn_id: str, _: str) -> None:
    """End in mid-answer with words on stderr."""
    event(turn_id, "text", delta="half an ans")
    os.write(2, b"warming up\nthe disk is on fire\n")
    os._exit(3)


def stale(turn_id: str, _: str) -> None:
    """Send an event of another turn and one of this."""
    event("turn-of-before", "text", delta="STALE")
    event(turn_id, "text", delta="fresh")


def progress(_: str, __: str) -> None:
    """Report long work."""
    for value in (
        {"kind": "begin", "title": "Loading tiny", "percentage": 0},
        {"kind": "report", "message": "weights", "percentage": 50},
        {"kind": "end"},
    ):
        send(method="$/progress", params={"token": "t", "value": value})


def changed(_: str, reason: str) -> None:
    """Tell that the session changed."""
    params = {"reason": reason, "id": "session-1", "total": 1, "contextSize": None}
    send(method="tiro/session/changed", params=params)


def refused(turn_id: str, text: str) -> None:
    """Tell of a resize whose memo was not taken."""
    sizes = {"tokensBefore": 90, "tokensAfter": 90}
    event(turn_id, "resize", decision={"type": "lite"}, evicted=0, memoRefused=text, **sizes)


def message(_: str, text: str) -> None:
    """Show a message."""
    send(method="window/showMessage", params={"type": 2, "message": text})


def question(turn_id: str, text: str) -> None:
    """Ask with two answers to choose from and tell the one that came."""
    actions = [{"title": "First"}, {"title": "Second"}]
    given = ask("window/showMessageRequest", type=3, message=text, actions=actions)
    event(turn_id, "text", delta=f"answer {json.dumps(given)}")


def document(turn_id: str, uri: str) -> None:
    """Have a document shown, at its second line, and tell the answer."""
    place = {"line": 1, "character": 0}
    given = ask("window/showDocument", uri=uri, selection={"start": place, "end": place})
    event(turn_id, "text", delta=f"answer {json.dumps(given)}")


def unknown(turn_id: str, _: str) -> None:
    """Ask what no client knows and tell the answer."""
    event(turn_id, "text", delta=f"answer {json.dumps(ask('tiro/of/tomorrow'))}")


def diagnostics(turn_id: str, path: str) -> None:
    """Ask what is wrong, in one file or in all, and tell the answer."""
    given = ask("tiro/editor/diagnostics", **({"path": path} if path else {}))
    event(turn_id, "text", delta=f"answer {json.dumps(given)}")


DEEDS = {
    "permission": permission,
    "flood": flood,
    "edit": edit,
    "diff": diff,
    "die": die,
    "stale": stale,
    "progress": progress,
    "changed": changed,
    "refused": refused,
    "message": message,
    "question": question,
    "document": document,
    "unknown": unknown,
    "diagnostics": diagnostics,
}


def turn(request_id: int, turn_id: str, prompt: str) -> None:
    """Do what the prompt says and answer the request."""
    event(turn_id, "started", agent="build", model="peer/one", seq=1)
    word, _, rest = prompt.partition(" ")
    if word == "fail":
        event(turn_id, "finished", stopReason="error", error={})
        error = {"code": -32032, "message": "The provider refused", "data": {"kind": "x"}}
        send(id=request_id, error=error)
        return
    if word in DEEDS:
        DEEDS[word](turn_id, rest)
    else:
        event(turn_id, "text", delta=f"You said: {prompt}")
    event(turn_id, "finished", stopReason="end_turn")
    send(id=request_id, result={"turnId": turn_id, "stopReason": "end_turn", "contextSize": None})


def respond(request: dict[str, Any], number: int) -> None:
    """Answer one request of the editor."""
    method, params = request["method"], request.get("params") or {}
    results: dict[str, Any] = {
        "initialize": {
            "capabilities": {"positionEncoding": "utf-32", "experimental": {"tiro": {}}}
        },
        "tiro/session/get": {"id": "session-1", "messages": [], "total": 0},
        "tiro/turn/cancel": {"cancelled": True},
    }
    if method == "tiro/turn/start":
        arguments = (request["id"], f"turn-{number}", params["prompt"])
        threading.Thread(target=turn, args=arguments, daemon=True).start()
    elif method == "tiro/session/getId":  # the answer and more in one write
        result = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"id": "session-1"}})
        more = {"type": 3, "message": "right behind the answer"}
        note = json.dumps({"jsonrpc": "2.0", "method": "window/showMessage", "params": more})
        with sending:
            for body in (result.encode(), note.encode()):
                frames.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            frames.flush()
    elif method == "tiro/session/compact":  # waits until it is cancelled
        waiting.append(request["id"])
    else:
        send(id=request["id"], result=results.get(method))


def main() -> None:
    """Serve until the input ends."""
    number = 0
    while (frame := read()) is not None and frame.get("method") != "exit":
        number += 1
        if "method" not in frame:
            with answered:
                answers[frame["id"]] = frame.get("result") or frame.get("error") or {}
                answered.notify_all()
        elif frame["method"] == "$/cancelRequest" and waiting:
            error = {"code": -32800, "message": "The request was cancelled"}
            send(id=waiting.pop(), error=error)
        elif "id" in frame:
            respond(frame, number)
    os._exit(0)


if __name__ == "__main__":
    main()
