"""What prompt caches need: each request begins with the bytes of the one before (U5.2, N5.3)."""

import json
import re
from itertools import pairwise
from typing import Any

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider, Recorded
from tests.e2e.styles import Style, both_styles
from tests.e2e.talk import add, ask, result, text_of, use
from tests.e2e.test_resume import notices, problems

MARK = re.compile(rb',"cache_control":\{[^}]*\}')


def parts(request: Recorded) -> tuple[bytes, bytes]:
    """The messages of a request up to the end of the last one, and all else, byte for byte.

    The marks of a cache are no part of what it knows; they move on with the conversation.
    """
    raw = MARK.sub(b"", request.raw)
    start = raw.index(b'"messages":[')
    decoder = json.JSONDecoder()
    text = raw.decode()
    begin = len(raw[:start].decode()) + len('"messages":')
    _, end = decoder.raw_decode(text, begin)
    return text[begin : end - 1].encode(), (text[:begin] + text[end:]).encode()


def check_grows(requests: list[Recorded]) -> None:
    for before, after in pairwise(requests):
        (old, old_rest), (new, new_rest) = parts(before), parts(after)
        assert new[: len(old)] == old
        assert new_rest == old_rest


def turns(server: Server, style: Style, provider: Provider) -> None:
    """Turns of all kinds, with and without tools, and what a client adds between them."""
    server.home.write("a.txt", "content é漢🙂\n")
    for n in range(3):
        provider.script(style.tools((f"t{n}", "read_file", {"path": "a.txt"})), style.text("Read."))
        ask(server, f"read it {n}", model=style.model)
        provider.script(style.text(f"answer {n}"))
        ask(server, f"and now {n}?", model=style.model)
        add(server, "user", "by the way")
        add(server, "assistant", [use(f"c{n}", path="a.txt", n=1.0, deep={"z": 1, "a": [2]})])
        add(server, "user", [result(f"c{n}")])


@both_styles
def test_each_request_begins_with_the_one_before(
    server: Server, provider: Provider, style: Style
) -> None:
    turns(server, style, provider)
    assert len(provider.chats) == 9
    check_grows(provider.chats)


@both_styles
def test_memo_summary_and_restart_change_no_byte(
    start: StartServer, provider: Provider, style: Style
) -> None:
    """Nothing depends on the clock, on the process or on the order of a memo's keys."""
    server = start()
    memo: dict[str, Any] = {"b": 1, "a": {"d": [1, 2], "c": None}, "é": "漢"}
    server.request("tiro/memo/set", {"memo": memo, "summary": "What was said."})
    turns(server, style, provider)
    server.request("tiro/session/save")
    server.shutdown()
    again = start()
    again.request("tiro/session/load", {"latest": True})
    again.request("tiro/memo/set", {"memo": dict(reversed(memo.items()))})
    turns(again, style, provider)
    assert len(provider.chats) == 18
    check_grows(provider.chats)


def test_the_token_budget_evicts_in_large_steps(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U8.3: half of the budget at a time, so that the requests between share their beginning."""
    models = {"fake-model": {"context_window": 4_600}}
    home.write_config(providers={"fake": home.fake(models=models)})
    server = start()
    for n in range(24):
        ask(server, f"question {n} " + "some words and more of them " * 20)
    firsts = [text_of(request.messages[0]["content"])[:11] for request in provider.chats]
    changes = sum(one != other for one, other in pairwise(firsts))
    assert 1 <= changes <= 6


def test_instructions_that_change_do_so_between_turns(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """U5: a turn that edits AGENTS.md itself keeps the beginning of its requests.

    What is wrong with such a file is told once, at the next prompt at the latest.
    """
    home.write("AGENTS.md", "Say please.\n")
    server = start()
    server.on_request("tiro/permission/request", lambda _: {"decision": "once"})
    edit = {"path": "AGENTS.md", "old_text": "please", "new_text": "thanks"}
    read = replies.tools(("r1", "read_file", {"path": "AGENTS.md"}))
    provider.script(read, replies.tools(("e1", "edit_file", edit)), replies.text("Done."))
    ask(server, "be kind")
    assert home.workspace.joinpath("AGENTS.md").read_text() == "Say thanks.\n"
    check_grows(provider.chats)
    assert "Say please." in provider.last.system
    ask(server, "and now?")
    assert "Say thanks." in provider.last.system
    home.write("AGENTS.md", "x" * 2_000_000)
    for _ in range(2):
        ask(server, "still there?")
    assert 1_000 < provider.last.system.count("x") <= 31_000, "its beginning, as of any long file"
    assert len(notices(server, "AGENTS.md is longer than")) == 1
    assert len(problems(server, "AGENTS.md is longer than")) == 1
