"""The strict checks of the local provider: each rule of the contract refuses what breaks it."""

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.contract import openai_faults, strict_json
from tests.e2e.provider import API_KEY, Provider
from tests.e2e.replies import Break, Hold, Reply
from tests.sizes import PATIENCE

USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be kind"}


def use(*ids: str, arguments: Any = "{}", name: str = "read_file") -> dict[str, Any]:
    calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_ in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(id_: str, content: Any = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def faults(*messages: Any, **more: Any) -> list[str]:
    body = {"model": "m", "messages": list(messages), **more}
    return openai_faults(json.dumps(body).encode())


def tool(**changed: Any) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    }
    function = {"name": "read_file", "description": "Read", "parameters": schema, **changed}
    return {"type": "function", "function": function}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [SYSTEM, USER],
        [USER, {"role": "assistant", "content": "hello"}, USER],
        [USER, use("a"), result("a")],
        [USER, use("a", "b"), result("a"), result("b"), USER],
        [USER, {**use("a"), "content": "I look"}, result("a")],
        [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        [
            {
                "role": "user",
                "content": [{"type": "image_url", "image_url": {"url": "https://x.test/a"}}],
            }
        ],
    ],
)
def test_a_good_request_has_no_faults(messages: list[Any]) -> None:
    assert faults(*messages, stream=True, tools=[tool()]) == []


@pytest.mark.parametrize(
    ("messages", "part"),
    [
        ([], "empty array"),
        ([SYSTEM], "first message that is not system"),
        ([{"role": "assistant", "content": "x"}, USER], "must be from the user"),
        ([USER, {"role": "assistant", "content": "x"}], "last message"),
        ([USER, SYSTEM, USER], "at the beginning"),
        ([{"role": "owner", "content": "x"}], "unknown role"),
        (["hi"], "unknown role"),
        ([{"role": "user", "content": ""}], "blank"),
        ([{"role": "user", "content": " \n"}], "blank"),
        ([{"role": "user", "content": None}], "got null"),
        ([{"role": "user", "content": []}], "non-empty array"),
        ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "blank"),
        ([{"role": "user", "content": [{"type": "thinking", "text": "x"}]}], "Invalid value"),
        ([{"role": "user", "content": 5}], "expected one of"),
        ([{**USER, "seq": 4}], "Additional properties"),
        ([USER, {"role": "assistant", "content": ""}, USER], "blank"),
        ([USER, {"role": "assistant", "content": None}, USER], "got null"),
        ([USER, {**use("a"), "content": ""}, result("a")], "blank"),
        ([USER, {**use("a"), "tool_calls": []}, USER], "too short"),
        ([USER, use("a")], "did not have response"),
        ([USER, use("a"), USER], "did not have response"),
        ([USER, use("a", "b"), result("a"), USER], "did not have response"),
        ([USER, use("a"), result("a"), result("a")], "not open"),
        ([USER, result("a")], "not open"),
        ([USER, use("a"), result("b"), result("a")], "not open"),
        ([USER, use("a"), USER, result("a")], "not open"),
        ([USER, use("a", "b"), result("b"), result("a")], "answered before"),
        ([USER, use("a"), result("a"), use("a"), result("a")], "used twice"),
        ([USER, use("a", "a"), result("a")], "used twice"),
        ([USER, use(""), result("")], "id is empty"),
        ([USER, use("a" * 41), result("a" * 41)], "too long"),
        ([USER, use("a", arguments={}), result("a")], "no string"),
        ([USER, use("a", arguments=""), result("a")], "not JSON"),
        ([USER, use("a", arguments="[]"), result("a")], "no JSON object"),
        ([USER, use("a", arguments="{"), result("a")], "not JSON"),
        ([USER, use("a", name="a b"), result("a")], "function.name"),
        ([USER, use("a"), result("a", "")], "blank"),
        ([USER, use("a"), result("a", None)], "got null"),
        ([USER, use("a"), {"role": "tool", "content": "x"}], "tool_call_id"),
    ],
)
def test_a_broken_history_is_refused(messages: list[Any], part: str) -> None:
    assert any(part in fault for fault in faults(*messages)), faults(*messages)


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"model": ""}, "model"),
        ({"sessionId": "x"}, "Unrecognized"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"max_tokens": 0}, "minimum"),
        ({"max_tokens": True}, "minimum"),
        ({"temperature": 3}, "out of range"),
        ({"response_format": {"type": "json_schema", "schema": {}}}, "response_format"),
        ({"tools": []}, "too short"),
        ({"tools": [{"type": "custom"}]}, "'function'"),
        ({"tools": [{"type": "function"}]}, "Missing required"),
        ({"tools": [tool(), tool()]}, "twice"),
        ({"tools": [tool(name="no spaces")]}, "function.name"),
        ({"tools": [tool(description=4)]}, "description"),
        ({"tools": [tool(effect="read")]}, "Unknown parameter"),
        ({"tools": [tool(parameters={"type": "string"})]}, "Invalid schema"),
        ({"tools": [tool(parameters={"type": "object", "required": ["x"]})]}, "required"),
        (
            {"tools": [tool(parameters={"type": "object", "properties": {"a": {"type": "file"}}})]},
            "not valid under",
        ),
        (
            {
                "tools": [
                    tool(parameters={"type": "object", "properties": {"a": {"type": "array"}}})
                ]
            },
            "missing items",
        ),
    ],
)
def test_a_broken_request_is_refused(more: dict[str, Any], part: str) -> None:
    found = faults(USER, **more)
    assert any(part in fault for fault in found), found


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": "\\ud83d"}',
        b'{"a": "\\udca9\\ud83d"}',
        b'{"\\ud83d": 1}',
        b'{"a": "\xff"}',
        b'{"a": NaN}',
        b'{"a": 1, "a": 2}',
        b'{"a": "\xed\xa0\xbd"}',
        b"{",
        b"",
    ],
)
def test_what_is_no_strict_json_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        strict_json(raw)
    assert len(openai_faults(raw)) == 1


def test_a_surrogate_pair_is_good_json() -> None:
    assert strict_json(b'"\\ud83d\\ude42"') == "\U0001f642"


# The server itself


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as running:
        yield running


class Client:
    """A plain HTTP client, as far as these tests need one."""

    response: http.client.HTTPResponse

    def __init__(self, provider: Provider) -> None:
        self.http = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=PATIENCE)

    def post(self, body: Any, **headers: str) -> http.client.HTTPResponse:
        given = {"Authorization": f"Bearer {API_KEY}", "Content-Type": "application/json"}
        given.update({key.replace("_", "-"): value for key, value in headers.items()})
        self.http.request("POST", "/v1/chat/completions", json.dumps(body), given)
        self.response = self.http.getresponse()
        return self.response

    def close(self) -> None:
        self.response.close()
        self.http.close()


@pytest.fixture
def client(provider: Provider) -> Iterator[Client]:
    with contextlib.closing(Client(provider)) as opened:
        yield opened


GOOD = {"model": "m", "messages": [USER], "stream": True}


def test_the_script_is_answered_in_order_and_recorded(provider: Provider, client: Client) -> None:
    provider.script(replies.text("on", "e"), replies.plain("two"))
    first = client.post(GOOD).read()
    second = client.post(GOOD).read()
    assert b'"content": "on"' in first
    assert first.endswith(replies.DONE)
    assert json.loads(second)["choices"][0]["message"]["content"] == "two"
    assert b'"ok"' in client.post(GOOD).read()
    assert [r.body for r in provider.chats] == [GOOD] * 3
    assert provider.refused == []


def test_a_refusal_is_400_and_keeps_the_script(provider: Provider, client: Client) -> None:
    provider.script(replies.text("kept"))
    refusal = client.post({**GOOD, "messages": []})
    assert refusal.status == 400
    assert "empty array" in json.loads(refusal.read())["error"]["message"]
    assert len(provider.refused) == 1
    assert b"kept" in client.post(GOOD).read()


def test_a_wrong_key_or_content_type_is_refused(provider: Provider, client: Client) -> None:
    wrong_key = client.post(GOOD, Authorization="Bearer wrong")
    assert (wrong_key.status, bool(wrong_key.read())) == (401, True)
    wrong_type = client.post(GOOD, Content_Type="text/plain")
    assert (wrong_type.status, bool(wrong_type.read())) == (400, True)


def test_models_are_listed(provider: Provider, client: Client) -> None:
    client.http.request("GET", "/v1/models", headers={"Authorization": f"Bearer {API_KEY}"})
    client.response = client.http.getresponse()
    rows = json.loads(client.response.read())["data"]
    assert [row["id"] for row in rows] == ["fake-model"]


def test_each_step_is_one_chunk(provider: Provider, client: Client) -> None:
    provider.script(Reply([b"a", b"bc", b"d"]))
    response = client.post(GOOD)
    response.chunked = False
    whole = b"1\r\na\r\n2\r\nbc\r\n1\r\nd\r\n0\r\n\r\n"
    assert response.fp.read(len(whole)) == whole


def test_a_hold_waits_until_it_is_released(provider: Provider, client: Client) -> None:
    hold = Hold()
    provider.script(Reply([b"a", hold, b"b"]))
    response = client.post(GOOD)
    hold.wait()
    assert response.read(1) == b"a"
    assert not provider.last.answered.is_set()
    hold.release()
    assert response.read() == b"b"
    assert provider.last.answered.wait(PATIENCE)


def test_a_break_ends_the_answer_early(provider: Provider) -> None:
    provider.script(Reply([b"a", Break()]), Reply([b"a", Break(reset=True)]))
    for _ in range(2):
        client = Client(provider)
        with (
            pytest.raises((http.client.IncompleteRead, ConnectionError)),
            contextlib.closing(client),
        ):
            client.post(GOOD).read()


def test_a_client_that_goes_away_is_seen(provider: Provider, client: Client) -> None:
    provider.script(Reply([b"a", Hold()]))
    response = client.post(GOOD)
    assert response.read(1) == b"a"
    client.close()
    assert provider.last.closed_by_client()


def test_a_client_that_goes_away_with_bytes_unread_is_seen(
    provider: Provider, client: Client
) -> None:
    hold = Hold()
    provider.script(Reply([b"a", b"b" * 100_000, hold]))
    assert client.post(GOOD).read(1) == b"a"
    hold.wait()
    client.close()
    assert provider.last.closed_by_client()
