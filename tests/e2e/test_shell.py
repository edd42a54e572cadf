"""`run_command` in a real server: nothing hangs, nothing stays behind, no key leaks (B50, B51)."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Pending, Server
from tests.e2e.conftest import StartServer
from tests.e2e.provider import API_KEY, Provider
from tests.e2e.talk import ask, begin_ask, view
from tests.e2e.turns import events, joined
from tests.processes import CAN_LOOK, is_running, memory_bytes, peak_memory_bytes, wait_over
from tests.sizes import LIMITS

pytestmark = pytest.mark.skipif(not CAN_LOOK, reason="looks into /proc")


def allow(server: Server) -> list[dict[str, Any]]:
    """Say yes to every question, and give what was asked."""
    asked: list[dict[str, Any]] = []

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {"decision": "once"}

    server.on_request("tiro/permission/request", answer)
    return asked


def use(command: str, **given: Any) -> replies.Reply:
    return replies.tools(("c1", "run_command", {"command": command, **given}))


def begin(server: Server, provider: Provider, command: str, **given: Any) -> tuple[Pending, str]:
    """A turn whose command runs and has printed its first line: what that was."""
    allow(server)
    provider.script(use(command, **given))
    turn = begin_ask(server, "run it")
    server.wait_until(lambda: "\n" in joined(server.events(), "toolOutput"), "a first line")
    return turn, joined(server.events(), "toolOutput").partition("\n")[0]


def result_of(server: Server) -> dict[str, Any]:
    """The newest result of a tool."""
    rows = [m["content"] for m in view(server)["messages"] if m["role"] == "tool"]
    found: dict[str, Any] = rows[-1]
    return found


def test_a_command_is_shown_asked_about_streamed_and_told(
    server: Server, provider: Provider
) -> None:
    """B49: what is shown is exactly what runs."""
    asked = allow(server)
    command = "printf 'caf\\351\\n'; echo two >&2; exit 3"
    provider.script(use(command))
    found = events(server, ask(server, "run it"))
    assert [(a["preview"], a["effect"]) for a in asked] == [(command, "execute")]
    shown = [e.get("preview") for e in found if e["type"] == "toolUse" and e["status"] == "running"]
    assert shown == [command]
    assert joined(found, "toolOutput") == "café\ntwo\n"
    told = {"type": "tool_result", "tool_use_id": "c1", "content": "café\ntwo\n[exit code 3]"}
    assert result_of(server) == told
    assert provider.last.messages[-1]["content"] == told["content"]


def test_b50_requests_are_answered_while_a_command_reads_stdin(
    server: Server, provider: Provider
) -> None:
    go = server.home.workspace / "go"
    command = "echo up; cat; until test -e go; do sleep 0.02; done; cat; echo done"
    turn, _ = begin(server, provider, command)
    for _ in range(20):
        assert server.request("tiro/session/getAgent")["agent"]["name"] == "build"
    go.touch()
    turn.result()
    assert result_of(server)["content"] == "up\ndone\n[exit code 0]"


def test_b50_a_timed_out_command_tells_what_it_had_printed(
    server: Server, provider: Provider
) -> None:
    allow(server)
    command = "echo $$; yes | head -n 9999; sleep 300"
    for seconds in LIMITS:
        provider.script(use(command, timeout_seconds=seconds))
        ask(server, "run it")
        told = result_of(server)
        assert told["is_error"]
        assert f"[timed out after {seconds} seconds" in told["content"]
        pid, _, printed = told["content"].partition("\n")
        if printed.startswith("y\n"):
            break
    wait_over(int(pid))


def test_b51_a_background_child_is_told_and_ends_with_the_server(
    start: StartServer, provider: Provider
) -> None:
    server = start()
    allow(server)
    provider.script(use("sleep 300 & (setsid sleep 300 &) ; echo hi", timeout_seconds=300))
    ask(server, "run it")
    content = result_of(server)["content"]
    assert content.startswith("hi\n[exit code 0]\n[still running in the background: process ")
    pids = [int(pid) for pid in content.partition("process ")[2].partition(";")[0].split(",")]
    assert len(pids) == 2
    provider.script(use("echo next"))
    ask(server, "run another")
    assert result_of(server)["content"] == "next\n[exit code 0]"
    assert all(map(is_running, pids))
    server.shutdown()
    wait_over(*pids)


def test_a_cancelled_command_tells_its_output_so_far_and_leaves_nothing(
    server: Server, provider: Provider
) -> None:
    command = "setsid sleep 300 & echo $!; echo printed; trap '' TERM; sleep 300; sleep 300"
    turn, pid = begin(server, provider, command)
    server.wait_until(lambda: "printed" in joined(server.events(), "toolOutput"), "the rest")
    server.request("tiro/turn/cancel")
    assert turn.result()["stopReason"] == "cancelled"
    told = result_of(server)
    assert told["is_error"]
    assert told["content"].startswith(f"{pid}\nprinted\nCancelled by the user")
    wait_over(int(pid))
    provider.script(replies.text("still here"))
    assert ask(server, "and now?")["text"] == "still here"


@pytest.mark.parametrize("end", [Server.shutdown, Server.close_stdin, Server.kill])
def test_no_end_of_the_server_leaves_a_child(
    start: StartServer, provider: Provider, end: Callable[[Server], Any]
) -> None:
    server = start()
    command = "setsid sleep 300 & sleep 300 & echo $$ $!; sleep 300"
    _, pids = begin(server, provider, command)
    end(server)
    wait_over(*map(int, pids.split()))


def test_no_key_of_a_provider_is_in_the_environment(server: Server, provider: Provider) -> None:
    """U9.11: the server has it in its environment, the command has not."""
    allow(server)
    provider.script(use("env; printenv HOME"))
    ask(server, "run it")
    content = result_of(server)["content"]
    assert API_KEY not in content
    assert f"HOME={server.home.root}" in content


def test_a_key_that_tools_come_across_stays_here(start: StartServer, provider: Provider) -> None:
    """P9: a file, a command's output, in pieces too: not to the editor, the model, the disk.

    The key is one that a command prints, so that nothing else could tell it.
    """
    server, key_file = start(), "keys.yaml"
    home = server.home
    (home.root / "key").write_text(API_KEY)
    fake = home.fake(api_key_env=None, api_key_command=["cat", str(home.root / "key")])
    server.notify(
        "workspace/didChangeConfiguration", {"settings": {"tiro": {"providers": {"fake": fake}}}}
    )
    home.write(key_file, f"key: {API_KEY}\nname: old\n")
    allow(server)
    changed = {"path": key_file, "old_text": "old", "new_text": "new"}
    written = {"path": key_file, "content": "key: [secret]\nname: x\n"}
    first, rest = API_KEY[:9], API_KEY[9:]
    flood = f'yes "$(cat {key_file})" | head -n 9000'
    provider.script(
        replies.tools(("c1", "read_file", {"path": key_file})),
        replies.tools(("c2", "grep", {"pattern": "key: .*"})),
        use(f"printf {first}; sleep 0.2; echo {rest}; echo done; {flood}"),
        replies.tools(("c4", "edit_file", changed)),
        replies.tools(("c5", "write_file", written)),
        replies.text("done"),
    )
    ask(server, "look at the keys")
    server.request("tiro/session/save")
    results = [m["content"] for m in view(server)["messages"] if m["role"] == "tool"]
    assert all("[secret]" in result["content"] for result in results[:3])
    assert "holds a secret" in results[4]["content"]
    assert (home.workspace / key_file).read_text() == f"key: {API_KEY}\nname: new\n"
    assert "[secret]\ndone\n" in joined(server.events(), "toolOutput")
    seen = [server.events(), view(server), [chat.body for chat in provider.chats]]
    assert API_KEY not in json.dumps(seen)
    stored = home.contents(home.sessions)
    assert not [path for path, content in stored.items() if API_KEY.encode() in content]


def content(server: Server, seq: int, offset: int, limit: int | None) -> tuple[str, int]:
    given = {"seq": seq, "offset": offset, "limit": limit}
    piece = server.request("tiro/session/content", given)
    return piece["text"], piece["totalChars"]


def some_pages(server: Server, seq: int) -> tuple[int, str, str, str]:
    """How long a flood's output is, and of it the beginning, where it goes over, and the end."""
    first, total = content(server, seq, 0, 1006)
    assert total > 66_000_000
    middle, last = content(server, seq, 63_999_000, 2000), content(server, seq, total - 1000, 9999)
    assert content(server, seq, total, 10) == ("", total)
    return total, first, middle[0], last[0]


def test_b51_a_flood_is_bounded_in_memory_and_kept_with_both_ends(
    start: StartServer, provider: Provider
) -> None:
    """U9.10: the model gets the beginning and the end, the editor all of it up to a bound."""
    server = start()
    allow(server)
    ask(server, "warm up")
    before = memory_bytes(server.process.pid)
    provider.script(use("echo first; yes | head -c 200000000; echo last"))
    done = ask(server, "run it")
    grown = peak_memory_bytes(server.process.pid) - before
    assert grown < 80_000_000
    told = result_of(server)["content"]
    assert told.startswith("first\ny\n")
    lost = "[of the 200,000,011 bytes that it printed, 134,000,011 in the middle are kept nowhere]"
    assert told.endswith(f"y\nlast\n{lost}\n[exit code 0]")
    assert len(told) < 51_000
    shown = next(e for e in events(server, done) if e["type"] == "toolResult")
    assert shown["truncated"]
    kept = some_pages(server, shown["seq"])
    first, middle, last = kept[1:]
    assert first == "first\n" + "y\n" * 500
    assert "\n[… 134,000,011 of 200,000,011 bytes left out here …]\n" in middle
    assert last.endswith(f"y\nlast\n{lost}\n[exit code 0]")
    assert peak_memory_bytes(server.process.pid) - before < 80_000_000
    assert len(content(server, shown["seq"], 0, None)[0]) == 4_000_000, "all is never one answer"
    assert server.largest_notification < 1 << 20
    row = next(m for m in view(server)["messages"] if m["role"] == "tool")
    assert row["metadata"]["tiro"] == {"output_chars": kept[0]}
    saved = Path(server.request("tiro/session/save")["path"])
    assert saved.stat().st_size < 100_000
    server.shutdown()
    again = start()
    again.request("tiro/session/load", {"path": str(saved)})
    assert some_pages(again, shown["seq"]) == kept
    assert len(str(again.request("tiro/session/explain")["messages"])) < 100_000


def test_a_workspace_that_is_not_trusted_runs_nothing(start: StartServer) -> None:
    server = start(initialize=False)
    server.initialize(trusted=False)
    tools = str(server.request("tiro/session/explain")["tools"])
    assert "read_file" in tools
    assert "run_command" not in tools


def test_a_rejected_command_is_not_run(server: Server, provider: Provider) -> None:
    server.on_request(
        "tiro/permission/request", lambda _: {"decision": "reject", "message": "not now"}
    )
    provider.script(use("touch ran"))
    ask(server, "run it")
    assert "not now" in result_of(server)["content"]
    assert not os.path.exists(server.home.workspace / "ran")


def test_b48_a_folder_outside_is_asked_about_by_where_it_leads(
    server: Server, provider: Provider
) -> None:
    """The command runs in the folder that was shown, whatever becomes of its name meanwhile."""
    shown, other = server.home.root / "shown", server.home.root / "other"
    for folder in (shown, other):
        folder.mkdir()
    link = server.home.workspace / "link"
    link.symlink_to(shown)
    asked: list[dict[str, Any]] = []

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        link.unlink()
        link.symlink_to(other)
        return {"decision": "once"}

    server.on_request("tiro/permission/request", answer)
    provider.script(use("pwd -P", cwd="link"))
    ask(server, "run it there")
    assert len(asked) == 1
    assert str(shown) in str(asked[0])
    assert result_of(server)["content"] == f"{shown.resolve()}\n[exit code 0]"
    server.on_request("tiro/permission/request", lambda _: {"decision": "reject"})
    provider.script(use("touch ran", cwd=".."))
    ask(server, "and there")
    assert not (server.home.root / "ran").exists()
