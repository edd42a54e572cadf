"""Two processes in one directory, used in turn and at the same time (B11, B13)."""

import threading
import time
from pathlib import Path

import pytest

from tests.e2e import replies
from tests.e2e.client import RpcError, Server
from tests.e2e.conftest import StartServer, Tell
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.replies import Hold
from tests.e2e.talk import add, ask, begin_ask, everything, latest, stored, view, window, words
from tests.e2e.warm import WarmProcess
from tests.sizes import PATIENCE, sized


def test_b11_one_session_used_in_turn(start: StartServer, provider: Provider) -> None:
    first, second = start(), start()
    ask(first, "one")
    id_ = first.request("tiro/session/save")["id"]
    assert second.request("tiro/session/load", {"id": id_})["total"] == 2
    ask(second, "two")
    second.request("tiro/session/save")
    ask(first, "three")
    first.request("tiro/session/save")
    asked = [m["content"] for m in provider.last.messages if m["role"] == "user"]
    assert asked == ["one", "two", "three"]
    assert add(second, "user", "four")["seq"] == 7
    expected = ["one", "ok", "two", "ok", "three", "ok", "four"]
    assert words(second) == expected
    first.kill()
    second.kill()
    assert latest(start()) == expected


def test_b11_what_is_asked_elsewhere_is_told_to_an_idle_client(
    start: StartServer, provider: Provider
) -> None:
    """U9.8, P4: no request of its own is needed, and the own changes are no news."""
    first, second = start(), start()
    ask(first, "one")
    second.request("tiro/session/load", {"id": view(first)["id"]})
    ask(second, "two")
    changed = first.wait_notification("tiro/session/changed")
    assert (changed["reason"], changed["total"]) == ("changedOnDisk", 4)
    assert words(first) == ["one", "ok", "two", "ok"]
    provider.script(replies.text("back"))
    ask(first, "three")
    assert second.wait_notification("tiro/session/changed")["total"] == 6
    assert words(second) == words(first) == ["one", "ok", "two", "ok", "three", "back"]


def test_b11_the_watch_outlives_a_disk_that_fails_for_a_while(
    start: StartServer, home: Home
) -> None:
    """A network disk may answer ESTALE or EIO, and then again what it did before."""
    first, second = start(), start()
    add(first, "user", "one")
    first.request("tiro/session/save")
    sessions, aside = home.sessions, home.sessions.with_name("aside")
    sessions.rename(aside)
    sessions.symlink_to(sessions)  # ELOOP
    wait_for_log(first, "of others")
    sessions.unlink()
    aside.rename(sessions)
    second.request("tiro/session/load", {"id": view(first)["id"]})
    add(second, "user", "two")
    assert first.wait_notification("tiro/session/changed")["total"] == 2
    assert first.stderr_path.read_text().count("of others") == 1


def wait_for_log(server: Server, text: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while text not in server.stderr_path.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert text in server.stderr_path.read_text()


@pytest.mark.timeout(600)  # with --long
def test_b11_messages_of_both_are_kept_without_any_save(
    start: StartServer, home: Home, warmth: WarmProcess | None
) -> None:
    home.write_config(session={"max_history": 100_000})
    first, second = start(), start()
    add(first, "user", "from the first 0")
    second.request("tiro/session/load", {"id": view(first)["id"]})
    for n in range(1, sized(fast=5, normal=12, long=500)):
        add(second, "user", f"from the second {n}")
        add(first, "user", f"from the first {n}")
    total = words(first)
    assert len(total) == len(set(total)) == 2 * sized(fast=5, normal=12, long=500) - 1
    first.kill()
    second.kill()
    assert everything(home, warmth) == set(total)


@pytest.mark.timeout(600)  # with --long
def test_b11_both_at_the_same_time_lose_nothing(
    start: StartServer, home: Home, record_property: Tell, warmth: WarmProcess | None
) -> None:
    home.write_config(session={"max_history": 100_000})
    first, second = start(), start()
    add(first, "user", "begin")
    second.request("tiro/session/load", {"id": view(first)["id"]})
    said: set[str] = {"begin"}
    refused: set[str | None] = set()

    def talk(server: Server, name: str) -> None:
        for n in range(sized(fast=5, normal=10, long=500)):
            try:
                add(server, "user", f"{name} {n}")
                said.add(f"{name} {n}")
                server.request("tiro/session/save")
            except RpcError as error:
                refused.add(error.kind)

    threads = [threading.Thread(target=talk, args=a) for a in ((first, "a"), (second, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    first.kill()
    second.kill()
    assert refused <= {"sessionInUse"}
    record_property("saves", len(said) - 1)
    assert everything(home, warmth) >= said


def test_b11_a_session_that_answers_elsewhere_is_in_use(
    start: StartServer, provider: Provider
) -> None:
    first, second = start(), start()
    add(first, "user", "one")
    id_ = view(first)["id"]
    second.request("tiro/session/load", {"id": id_})
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    turn = begin_ask(first, "two")
    first.wait_event("text", delta="half")
    error = second.error("tiro/turn/start", {"prompt": "three"})
    assert (error.code, error.kind) == (-32011, "sessionInUse")
    assert error.data["pid"] == first.process.pid
    assert error.data["host"]
    told = {"role": "user", "content": "meanwhile"}
    assert second.error("tiro/session/addMessage", told).kind == "sessionInUse"
    assert view(second)["total"] >= 1
    hold.release()
    assert turn.result()["text"] == "half"
    assert ask(second, "three")["text"] == "ok"
    assert words(second) == ["one", "two", "half", "three", "ok"]


def test_b43_a_turn_that_waits_for_another_process_is_cancelled_at_once(
    start: StartServer, provider: Provider
) -> None:
    """It waits up to a second; had the cancel waited as long, the turn would be `sessionInUse`."""
    first, second = start(), start()
    add(first, "user", "one")
    second.request("tiro/session/load", {"id": view(first)["id"]})
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("half"), hold))
    turn = begin_ask(first, "two")
    first.wait_event("text", delta="half")
    waiting = begin_ask(second, "three")
    assert second.request("tiro/turn/cancel") == {"cancelled": True}
    assert waiting.result()["stopReason"] == "cancelled"
    hold.release()
    assert turn.result()["text"] == "half"
    assert ask(second, "four")["text"] == "ok"
    assert words(second) == ["one", "two", "half", "four", "ok"]


def test_b11_a_dead_holder_holds_nothing(start: StartServer, provider: Provider) -> None:
    first, second = start(), start()
    add(first, "user", "one")
    second.request("tiro/session/load", {"id": view(first)["id"]})
    provider.script(replies.stream(replies.text_chunk("half"), Hold()))
    begin_ask(first, "two")
    first.wait_event("text", delta="half")
    first.kill()
    assert ask(second, "three")["text"] == "ok"
    assert words(second)[:2] == ["one", "two"]
    assert words(second)[-2:] == ["three", "ok"]


def test_b11_changes_that_were_overtaken_are_kept_beside(
    start: StartServer, home: Home, warmth: WarmProcess | None
) -> None:
    first = start()
    add(first, "user", "begin")
    id_ = first.request("tiro/session/save")["id"]
    second = start(settings={"session": {"autosave": False}})
    second.request("tiro/session/load", {"id": id_})
    add(second, "user", "never saved yet")
    add(first, "user", "meanwhile")
    first.request("tiro/session/save")
    second.request("tiro/session/save")
    first.kill()
    second.kill()
    assert everything(home, warmth) >= {"begin", "never saved yet", "meanwhile"}


def test_b11_what_another_process_deletes_loses_no_new_message(
    start: StartServer, home: Home, warmth: WarmProcess | None
) -> None:
    first, second = start(), start()
    add(first, "user", "begin")
    id_ = first.request("tiro/session/save")["id"]
    second.request("tiro/session/load", {"id": id_})
    first.request("tiro/session/clear")
    assert first.request("tiro/session/delete", {"id": id_}) == {"deleted": True}
    assert add(second, "user", "written after")["stored"] is True
    second.kill()
    first.kill()
    assert "written after" in everything(home, warmth)


def test_b11_a_copy_made_by_hand_is_a_file_of_its_own(start: StartServer, home: Home) -> None:
    server = start()
    add(server, "user", "one")
    path = Path(server.request("tiro/session/save")["path"])
    copy = path.with_name("copy.json")
    copy.write_bytes(path.read_bytes())
    add(server, "user", "two")
    server.request("tiro/session/load", {"path": str(copy)})
    add(server, "user", "three")
    assert server.request("tiro/session/save")["path"] == str(copy)
    assert [m["content"] for m in stored(copy)["messages"]] == ["one", "three"]
    server.request("tiro/session/load", {"path": str(path)})
    assert words(server) == ["one", "two"]


def test_b13_an_id_taken_meanwhile_becomes_the_next_one(start: StartServer) -> None:
    first, second = start(), start()
    for _ in range(20):
        one = first.request("tiro/session/getId")["id"]
        two = second.request("tiro/session/getId")["id"]
        if one == two:
            break
        first.request("tiro/session/new")
        second.request("tiro/session/new")
    assert one == two, "neither has claimed a file"
    add(first, "user", "first")
    add(second, "user", "second")
    changed = second.wait_notification(
        "tiro/session/changed", lambda params: params["reason"] == "renamed"
    )
    assert changed["id"] == view(second)["id"] == f"{two}-01"
    assert view(first)["id"] == one
    third = start()
    third.request("tiro/session/load", {"id": one})
    assert words(third) == ["first"]
    third.request("tiro/session/load", {"id": f"{one}-01"})
    assert words(third) == ["second"]


def test_many_requests_at_once_keep_the_file_whole(start: StartServer, home: Home) -> None:
    server = start()
    pending = []
    for n in range(50):
        pending.append(server.begin("tiro/session/addMessage", {"role": "user", "content": f"{n}"}))
        pending.append(server.begin("tiro/session/save"))
    for one in pending:
        one.result()
    assert words(server) == [str(n) for n in range(50)]
    server.kill()
    assert latest(start()) == [str(n) for n in range(50)]
    assert len(home.session_files()) == 1


def test_permissions_hold_whatever_the_umask(start: StartServer, home: Home) -> None:
    server = start(umask=0)
    ask(server)
    server.request("tiro/session/save")
    server.request("tiro/session/clear")
    assert home.sessions.stat().st_mode & 0o777 == 0o700
    assert server.shutdown() == 0  # until then files may come and go
    for path in home.sessions.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path


def test_the_window_after_a_restart_is_what_the_model_gets(
    start: StartServer, provider: Provider
) -> None:
    server = start()
    server.home.write("a.txt", "RESULT")
    provider.script(replies.tools(("c1", "read_file", {"path": "a.txt"}), before="look"))
    ask(server, "one")
    before = window(server)
    assert server.shutdown() == 0
    again = start()
    again.request("tiro/session/load", {"latest": True})
    assert window(again) == before
    sent = provider.last.messages
    ask(again, "two")
    assert provider.last.messages[: len(sent)] == sent
