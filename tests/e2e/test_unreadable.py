"""An answer of the client that nobody can read is a refusal, and its user is told."""

import json

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.provider import Provider
from tests.e2e.talk import ask

YES = '{"decision": "once"}'
DEEP = {levels: "[" * levels + "]" * levels for levels in (300, 100_000)}

BODIES = {
    "deep": f'{{"jsonrpc": "2.0", "id": ID, "result": {DEEP[300]}}}',
    "very deep": f'{{"jsonrpc": "2.0", "id": ID, "result": {DEEP[100_000]}}}',
    "deep before its id": f'{{"result": {DEEP[300]}, "jsonrpc": "2.0", "id": ID}}',
    "deep beside the decision": f'{{"jsonrpc": "2.0", "id": ID, "result": {{"decision": "once",'
    f' "message": "\\"id\\": 1 ]}}", "more": {DEEP[300]}}}}}',
    "a deep error": f'{{"jsonrpc": "2.0", "id": ID, "error": {{"data": {DEEP[300]}}}}}',
    "no JSON": f'{{"jsonrpc": "2.0", "id": ID, "result": {YES[:-1]},}}}}',
    "cut off": '{"jsonrpc": "2.0", "id": ID, "result": {"decision": "on',
    "without result": '{"jsonrpc": "2.0", "id": ID}',
    "without version": f'{{"id": ID, "result": {YES}}}',
    "another decision": '{"jsonrpc": "2.0", "id": ID, "result": {"decision": "perhaps"}}',
    "no decision": '{"jsonrpc": "2.0", "id": ID, "result": [1]}',
}


@pytest.mark.parametrize("name", BODIES)
def test_an_answer_that_cannot_be_read_is_a_refusal(
    server: Server, provider: Provider, name: str
) -> None:
    """What comes after it under the same id counts no more."""

    def answer(_: object) -> object:
        server.send_body(BODIES[name].replace("ID", str(server.requests[-1]["id"])).encode())
        return json.loads(YES)

    server.on_request("tiro/permission/request", answer)
    provider.script(
        replies.tools(("w1", "write_file", {"path": "new.txt", "content": "x"})),
        replies.text("ok"),
    )
    assert ask(server, "go on")["stopReason"] == "end_turn"
    assert not (server.home.workspace / "new.txt").exists()
    told = [params["message"] for params in server.named("window/showMessage")]
    assert [text for text in told if "write_file" in text and "cannot be read" in text]
    server.reset_handlers()
