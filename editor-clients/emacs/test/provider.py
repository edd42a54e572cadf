"""The strict local provider for tests that run in Emacs: what the model says stands in the prompt.

`stream N` gives N words, `slow N` the same with a wait after the tenth, `read FILE` a use of
read_file and then what it gave, `edit FILES` has "one" replaced by "ONE" in each, `break` half an
answer and a lost connection; other prompts are echoed whole, and a request without tools is
answered with two words. The first line of the output is the base URL and the key. Each line of the
input is answered by one: `go on` ends all waits of slow answers, `refused?` asks for the requests
that a real provider would have refused since the last one, told as JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.e2e import replies
from tests.e2e.provider import API_KEY, Provider, Recorded

HELD: list[replies.Hold] = []
"""What slow answers wait for."""


def text_of(message: dict[str, Any]) -> str:
    """The text of one request message."""
    content = message["content"] or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def words(count: int, *waits: replies.Hold) -> replies.Reply:
    """An answer of that many words, ten a line; the waits are after the first line."""
    steps: list[replies.Step] = [
        replies.text_chunk(f"word{n}" + ("\n" if n % 10 == 9 else " ")) for n in range(count)
    ]
    return replies.stream(*steps[:10], *waits, *steps[10:])


def edits(request: Recorded, files: list[str], run: str) -> replies.Reply:
    """Read the files, then edit them and run a command, then say what the tools said."""
    prompts = [n for n, message in enumerate(request.messages) if message["role"] == "user"]
    results = [text_of(message) for message in request.messages[prompts[-1] + 1 :]]
    results = [text for text in results if text]
    if not results:
        return replies.tools(*[(f"r{n}", "read_file", {"path": f}) for n, f in enumerate(files)])
    if len(results) == len(files):
        given = {"old_text": "one", "new_text": "ONE"}
        uses = [(f"e{n}", "edit_file", {"path": f, **given}) for n, f in enumerate(files)]
        return replies.tools(*uses, *([("x", "run_command", {"command": run})] if run else []))
    return replies.text("Edited: ", *results[len(files) :])


def answer(request: Recorded) -> replies.Reply:
    """Say what the newest user message asks for."""
    if not request.body.get("tools"):  # a summary, a title
        return replies.text("They talked.")
    newest = request.messages[-1]
    asked = next(text_of(m) for m in reversed(request.messages) if m["role"] == "user")
    if asked.startswith("edit "):
        files, _, run = asked.partition(" and run ")
        return edits(request, files.split()[1:], run)
    if newest["role"] == "tool":
        return replies.text("It says: ", text_of(newest))
    prompt = text_of(newest)
    word, _, rest = prompt.partition(" ")
    match word:
        case "stream":
            return words(int(rest))
        case "slow":
            HELD.append(replies.Hold())
            return words(int(rest), HELD[-1])
        case "read":
            return replies.tools(("call-1", "read_file", {"path": rest}), before="I look.")
        case "break":
            return replies.Reply([replies.text_chunk("half an answer"), replies.Break()])
        case _:
            return replies.text("You said: ", prompt)


def say(line: str) -> None:
    """Write one line."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until the input ends."""
    with Provider() as provider:
        provider.otherwise(answer)
        say(f"{provider.base_url} {API_KEY}")
        for line in sys.stdin:
            if line.strip() == "go on":
                while HELD:
                    HELD.pop().release()
                say("")
            else:
                say(json.dumps(provider.refused))
                provider.requests.clear()


if __name__ == "__main__":
    main()
