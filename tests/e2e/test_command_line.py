"""`tiro ask`, `tiro sessions` and `tiro doctor` as a person types them, with a real server."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

import pytest
import yaml

from tests.e2e import replies
from tests.e2e.command import Tiro
from tests.e2e.home import Home
from tests.e2e.provider import API_KEY, Provider
from tests.e2e.replies import Hold
from tests.processes import is_known, only_child
from tests.sizes import PATIENCE

DONE, FAILED, WRONG_USE, NO_MODEL, CANCELLED, UNREAD = 0, 1, 2, 3, 130, 141


def began(
    home: Home, *words: str, ready: Callable[[], object] | None = None
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tiro", *words],
        cwd=home.workspace,
        env=home.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=ready,
    )


def test_ask_prints_the_answer_and_nothing_else(tiro: Tiro, provider: Provider) -> None:
    provider.script(replies.text("Forty", "-two."))
    done = tiro("ask", "What is it?")
    assert (done.returncode, done.stdout, done.stderr) == (DONE, "Forty-two.\n", "")
    assert provider.last.messages[-1]["content"] == "What is it?"


def test_ask_sends_files_and_stdin(tiro: Tiro, provider: Provider, home: Home) -> None:
    home.write("notes.txt", "the secret word is xylophone")
    done = tiro("ask", "Which?", "--file", "notes.txt", "--file", "-", given="piped: glockenspiel")
    assert done.returncode == DONE
    sent = json.dumps(provider.last.messages)
    assert "xylophone" in sent
    assert "glockenspiel" in sent


def test_ask_reads_the_question_from_stdin(tiro: Tiro, provider: Provider) -> None:
    assert tiro("ask", "-", given="Piped in?").returncode == DONE
    assert provider.last.messages[-1]["content"] == "Piped in?"


def test_ask_shows_tools_on_stderr_only(tiro: Tiro, provider: Provider, home: Home) -> None:
    home.write("a.txt", "alpha")
    provider.script(
        replies.tools(("call_1", "read_file", {"path": "a.txt"})), replies.text("It says alpha.")
    )
    done = tiro("ask", "What does a.txt say?")
    assert done.stdout == "It says alpha.\n"
    assert "read_file" in done.stderr
    assert "a.txt" in done.stderr


def test_ask_starts_afresh_unless_told_to_continue(tiro: Tiro, provider: Provider) -> None:
    tiro("ask", "First")
    tiro("ask", "Second")
    assert len(provider.last.messages) == 1
    tiro("ask", "Third", "--continue")
    said = [message["content"] for message in provider.last.messages]
    assert said[0] == "Second"
    assert said[-1] == "Third"


@pytest.mark.parametrize("store", ["files", "sqlite"])
@pytest.mark.parametrize("words", [("ask", "Third", "--continue"), ("chat", "--continue")])
def test_a_question_to_a_damaged_session_is_asked_in_a_new_one(
    tiro: Tiro, provider: Provider, home: Home, store: str, words: tuple[str, ...]
) -> None:
    """The damaged one is named and stays as it is; no older one is taken in its place."""
    home.write_config(store={"kind": store})
    tiro("ask", "First")
    tiro("ask", "Second")
    damage_newest(home, store)
    done = tiro(*words, given="Third" if words[0] == "chat" else "")
    assert (done.returncode, done.stdout) == (DONE, "ok\n")
    assert "damaged" in done.stderr
    assert "tiro sessions verify --repair" in done.stderr
    assert [message["content"] for message in provider.last.messages] == ["Third"]
    tiro("ask", "Fourth", "--continue")
    said = [message["content"] for message in provider.last.messages]
    assert (said[0], said[-1]) == ("Third", "Fourth")


def damage_newest(home: Home, store: str) -> None:
    """As a disk does: somewhere in the middle of what was stored last."""
    if store == "files":
        newest = max(home.sessions.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        newest.write_bytes(newest.read_bytes()[:-40])
        return
    with closing(sqlite3.connect(home.config_dir / "sessions.db")) as sql, sql:
        which = "(SELECT max(number) FROM sessions)"
        sql.execute(f"UPDATE snapshots SET data = substr(data, 1, 40) WHERE session = {which}")


@pytest.mark.parametrize("words", [("ask", "Third", "--continue"), ("chat", "--continue")])
def test_a_question_is_asked_where_there_is_no_session_to_go_on_with(
    tiro: Tiro, words: tuple[str, ...]
) -> None:
    done = tiro(*words, given="Third" if words[0] == "chat" else "")
    assert (done.returncode, done.stdout) == (DONE, "ok\n")
    assert done.stderr == "· No session is saved yet; this is a new one\n"


def test_ask_json_is_events_and_a_result(tiro: Tiro, provider: Provider) -> None:
    provider.script(replies.text("Yes."))
    lines = [json.loads(line) for line in tiro("ask", "Well?", "--json").stdout.splitlines()]
    assert lines[0]["type"] == "started"
    assert "".join(line["delta"] for line in lines if line["type"] == "text") == "Yes."
    assert lines[-2]["type"] == "finished"
    assert lines[-1]["type"] == "result"
    assert lines[-1]["text"] == "Yes."


def test_ask_unknown_agent_is_one_sentence(tiro: Tiro) -> None:
    done = tiro("ask", "Hello", "--agent", "nobody")
    assert done.returncode == FAILED
    assert done.stdout == ""
    assert "nobody" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_ask_without_a_model_says_what_to_do(tiro: Tiro, home: Home) -> None:
    home.write_config(model="nowhere/at-all")
    done = tiro("ask", "Hello")
    assert done.returncode == NO_MODEL
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_ask_of_a_refusing_provider_fails_without_the_key(tiro: Tiro, provider: Provider) -> None:
    """B52: the provider's own words may hold the key; nobody is shown it."""
    provider.script(replies.error(401, f"Incorrect API key provided: {API_KEY}"))
    done = tiro("ask", "Hello")
    assert done.returncode == NO_MODEL
    assert API_KEY not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_ctrl_c_cancels_and_keeps_what_had_come(tiro: Tiro, provider: Provider, home: Home) -> None:
    """B43: the answer so far is shown and stored; the exit code says that it was cancelled."""
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("So far "), hold, replies.text_chunk("no")))
    asking = began(home, "ask", "Slowly")
    try:
        hold.wait()
        assert asking.stdout
        assert asking.stdout.read(7) == "So far "
        asking.send_signal(signal.SIGINT)
        rest, complaint = asking.communicate(timeout=PATIENCE)
    finally:
        hold.release()
        asking.kill()
    assert asking.returncode == CANCELLED
    assert (rest, complaint) == ("\n", "")
    assert "[assistant] So far" in tiro("sessions", "show", "latest").stdout


def ignore_interrupts() -> None:
    """As a shell without job control starts what goes on in the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("is_in_background", [False, True])
def test_a_signal_that_ends_it_ends_the_turn_in_order(
    tiro: Tiro, provider: Provider, home: Home, number: signal.Signals, is_in_background: bool
) -> None:
    """As Ctrl-C does: what had come is shown and stored, and no server stays."""
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("So far "), hold, replies.text_chunk("no")))
    asking = began(home, "ask", "Slowly", ready=ignore_interrupts if is_in_background else None)
    try:
        hold.wait()
        assert asking.stdout
        assert asking.stdout.read(7) == "So far "
        server = only_child(asking.pid)
        asking.send_signal(number)
        rest, complaint = asking.communicate(timeout=PATIENCE)
    finally:
        hold.release()
        asking.kill()
    assert asking.returncode == CANCELLED
    assert (rest, complaint) == ("\n", "")
    assert not is_known(server)
    assert "[assistant] So far" in tiro("sessions", "show", "latest").stdout


def test_what_nohup_started_outlives_its_terminal(provider: Provider, home: Home) -> None:
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("So "), hold, replies.text_chunk("on")))
    asking = began(
        home, "ask", "Slowly", ready=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    try:
        hold.wait()
        os.kill(only_child(asking.pid), signal.SIGHUP)
        asking.send_signal(signal.SIGHUP)
        hold.release()
        answer, complaint = asking.communicate(timeout=PATIENCE)
    finally:
        hold.release()
        asking.kill()
    assert (asking.returncode, answer, complaint) == (DONE, "So on\n", "")


def test_closed_pipe_ends_the_turn_in_silence(provider: Provider, home: Home) -> None:
    """`tiro ask … | head -1`: no traceback, no log, and the provider is not kept busy."""
    home.write_config(log={"level": "debug"})
    hold = Hold()
    chunks = [replies.text_chunk("word " * 50) for _ in range(50)]
    provider.script(replies.stream(replies.text_chunk("first\n"), hold, *chunks, Hold()))
    asking = began(home, "ask", "Talk")
    assert asking.stdout
    assert asking.stderr
    assert asking.stdout.readline() == "first\n"
    asking.stdout.close()
    hold.release()
    complaint = asking.stderr.read()
    asking.stderr.close()
    assert asking.wait(PATIENCE) == UNREAD
    assert complaint == ""
    assert provider.last.closed_by_client()


def test_sessions_are_listed_shown_and_deleted(tiro: Tiro, provider: Provider) -> None:
    provider.script(replies.text("Blue."), replies.text("Loud."))
    tiro("ask", "Which colour?")
    tiro("ask", "Which sound?")
    listed = tiro("sessions", "list")
    assert listed.returncode == DONE
    ids = [line.split()[0] for line in listed.stdout.splitlines()]
    assert len(ids) == 2
    assert tiro("sessions", "show", ids[1]).stdout == "[user] Which colour?\n\n[assistant] Blue.\n"
    shown = tiro("sessions", "show", ids[1], "--summary")
    assert shown.stdout == "Session Summary:\n\n[USER] Which colour?\n[ASSISTANT] Blue.\n"
    assert json.loads(tiro("sessions", "show", ids[1], "--json").stdout)["total"] == 2
    assert json.loads(tiro("sessions", "list", "--json", "--limit", "1").stdout)["total"] == 2
    assert [line.split()[0] for line in tiro("sessions", "list", "sound").stdout.splitlines()] == [
        ids[0]
    ]
    unasked = tiro("sessions", "delete", "--for-good", ids[0], given="y\n")
    assert (unasked.returncode, unasked.stdout) == (WRONG_USE, "")
    assert "say --yes" in unasked.stderr
    deleted = tiro("sessions", "delete", "--for-good", "--yes", ids[0])
    assert (deleted.returncode, deleted.stdout) == (DONE, f"{ids[0]} is deleted for good\n")
    gone = tiro("sessions", "delete", ids[0])
    assert (gone.returncode, gone.stdout) == (FAILED, "")
    assert ids[0] in gone.stderr
    nothing = tiro("sessions", "list", "trombone")
    assert (nothing.returncode, nothing.stdout) == (DONE, "")
    assert "'trombone'" in nothing.stderr


def test_verify_tells_what_is_damaged_and_repairs_it(tiro: Tiro, home: Home) -> None:
    """U4, U9: exit code 1 while something is; a line says what, the next what a repair does."""
    assert tiro("sessions", "verify").returncode == DONE
    home.sessions.mkdir(parents=True, exist_ok=True)
    path = home.sessions / "torn.json"
    row = {"role": "user", "content": "Which colour?"}
    path.write_text(f'{{"messages": [{json.dumps(row)}, {{"ro', "utf-8")
    found = tiro("sessions", "verify")
    assert found.returncode == FAILED
    problem, remedy = found.stdout.splitlines()
    assert problem.startswith(f"{path}: ")
    assert remedy.startswith("  --repair: ")
    told = json.loads(tiro("sessions", "verify", "--json").stdout)
    assert [(f["path"], f["isRepaired"]) for f in told["findings"]] == [(str(path), False)]
    mended = tiro("sessions", "verify", "--repair")
    assert (mended.returncode, "1 message" in mended.stdout) == (DONE, True)
    assert "1 session read; damage in 1 place, mended in 1" in mended.stderr
    sound = tiro("sessions", "verify")
    assert (sound.stdout, "1 session read; all is sound" in sound.stderr) == ("", True)
    assert tiro("sessions", "vacuum").stdout == "There is nothing that nobody needs\n"
    assert tiro("sessions", "show", "torn").stdout == "[user] Which colour?\n"


def test_verify_looks_where_the_sessions_are_kept(tiro: Tiro, home: Home) -> None:
    """U9: what a session in SQLite has lost is told, and mended where that can be done."""
    home.write_config(store={"kind": "sqlite"})
    assert (tiro("sessions", "verify").returncode, tiro("ask", "Which?").returncode) == (DONE, DONE)
    path = home.config_dir / "sessions.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as sql:
        assert sql.execute("UPDATE changes SET lines = 'x' || lines").rowcount > 0
    for options, code in ((["--json"], FAILED), (["--repair", "--json"], DONE)):
        done = tiro("sessions", "verify", *options)
        told = json.loads(done.stdout)
        (finding,) = told["findings"]
        assert (done.returncode, told["sessions"]) == (code, 1)
        assert (finding["path"].startswith(str(path)), finding["isRepaired"]) == (True, not code)
    assert tiro("sessions", "verify").returncode == DONE


@pytest.mark.parametrize("command", ["list", "verify", "vacuum"])
def test_a_mistyped_store_is_told_where_sessions_are_looked_for(
    tiro: Tiro, home: Home, command: str
) -> None:
    """Those in files would be taken for all of them."""
    home.write_config(store={"kind": "reddis"})
    done = tiro("sessions", command)
    assert done.returncode == DONE
    assert "store.kind must be files, redis or sqlite, not 'reddis'" in done.stderr


def test_empty_list_says_so_beside_the_list(tiro: Tiro) -> None:
    done = tiro("sessions", "list")
    assert (done.returncode, done.stdout) == (DONE, "")
    assert done.stderr.startswith("No session is saved yet")
    assert json.loads(tiro("sessions", "list", "--json").stdout)["sessions"] == []


def test_session_is_shown_whole(tiro: Tiro, provider: Provider, home: Home) -> None:
    """Long lines, line breaks, what tools did, and what has left the window: nothing is cut."""
    long, many = "word " * 100, "".join(f"line {number}\n" for number in range(50))
    home.write("a.txt", many)
    provider.script(
        replies.tools(("call_1", "read_file", {"path": "a.txt"}), before="Let me look."),
        replies.text(long),
    )
    home.write_config(session={"max_history": 2})
    tiro("ask", "What does a.txt say?", "--file", "a.txt")
    text = tiro("sessions", "show", "latest").stdout
    assert text.startswith("[user] What does a.txt say?\n[attachment ")
    assert '[assistant] Let me look.\ntool_use: read_file {"path":"a.txt"}\n' in text
    assert "line 0" in text
    assert "line 49" in text
    assert text.endswith(f"\n\n[assistant] {long}\n")


def test_showing_a_session_changes_no_byte_of_it(tiro: Tiro, home: Home) -> None:
    tiro("ask", "Remember this")
    before = {path: path.read_bytes() for path in home.session_files()}
    assert before
    tiro("sessions", "show", "latest")
    tiro("sessions", "list")
    assert {path: path.read_bytes() for path in home.session_files()} == before


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("show", "nothing-like-it"), FAILED),
        (("show", "latest"), FAILED),
        (("show", "../../etc/passwd"), WRONG_USE),
        (("delete", "--yes", "../../etc/passwd"), WRONG_USE),
        (("delete", "--yes", "nothing-like-it"), FAILED),
        (("export", "nothing-like-it"), FAILED),
        (("search", "nothing-like-it"), FAILED),
        (("search", " "), WRONG_USE),
        (("import", "/nowhere/at/all"), WRONG_USE),
    ],
)
def test_unknown_or_unsafe_session_is_one_sentence(
    tiro: Tiro, words: tuple[str, ...], code: int
) -> None:
    done = tiro("sessions", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert len(done.stderr.splitlines()) == 1
    assert "$." not in done.stderr, "a JSON path is for programs"


@pytest.mark.parametrize("words", [("undo",), ("undo", "no"), ("redo",), ("redo", "no")])
def test_edits_that_are_not_there_fail(tiro: Tiro, words: tuple[str, ...]) -> None:
    """As every name does that nothing has; the line itself is right."""
    done = tiro("edits", *words)
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert len(done.stderr.splitlines()) == 1


def test_damaged_session_is_listed_and_refused(tiro: Tiro, home: Home) -> None:
    """B10: half a file is shown as damaged, and stays as it is."""
    home.sessions.mkdir(parents=True)
    broken = home.sessions / "half.json"
    broken.write_text('{"id": "half", "messages": [')
    assert "half" in tiro("sessions", "list").stdout
    done = tiro("sessions", "show", "half")
    assert (done.returncode, done.stdout) == (FAILED, "")
    assert broken.read_text() == '{"id": "half", "messages": ['


def test_sessions_are_searched_exported_and_imported(
    tiro: Tiro, provider: Provider, home: Home
) -> None:
    provider.script(replies.text("Blue\x1b[2J sky."), replies.text("Loud."))
    tiro("ask", "Which colour?")
    tiro("ask", "Which sound?")
    found = tiro("sessions", "search", "sky")
    assert found.returncode == DONE
    (line,) = found.stdout.splitlines()
    id = line.split()[0]
    assert line.endswith("assistant: Blue␛[2J sky.")
    (hit,) = json.loads(tiro("sessions", "search", "sky", "--json").stdout)
    assert (hit["id"], hit["seq"]) == (id, 2)
    nowhere = tiro("sessions", "search", "xylophone")
    assert (nowhere.returncode, nowhere.stdout) == (FAILED, "")
    assert "xylophone" in nowhere.stderr
    assert "Which colour?" in tiro("sessions", "export", id).stdout
    assert "Which sound?" in tiro("sessions", "export", "latest", "--format", "jsonl").stdout
    out = tiro("sessions", "export", id, "--format", "json", "--out", "talk.json")
    assert out.stdout == f"Exported to {home.workspace / 'talk.json'}\n"
    taken = tiro("sessions", "import", "talk.json")
    assert taken.returncode == DONE
    assert (taken.stdout, "here already" in taken.stderr) == (f"{id}: 2 messages\n", True)
    home.write("mine.json", json.dumps({"messages": [{"role": "user", "content": "Mine?"}]}))
    new = tiro("sessions", "import", "mine.json").stdout.partition(":")[0]
    assert tiro("sessions", "show", new).stdout == "[user] Mine?\n"
    assert tiro("sessions", "export", id, "--format", "word").returncode == WRONG_USE
    lossy = tiro("sessions", "export", id, "--format", "magent")
    assert json.loads(lossy.stdout)["messages"][0] == {"role": "user", "content": "Which colour?"}
    assert "magent has no place for: the title" in lossy.stderr
    home.write("no.json", "[1, 2")
    refused = tiro("sessions", "import", "no.json")
    assert (refused.returncode, refused.stdout) == (FAILED, "")
    assert len(refused.stderr.splitlines()) == 1


def test_doctor_names_a_broken_file_and_the_line_where_it_begins_to_be(
    tiro: Tiro, home: Home
) -> None:
    path = home.write_config()
    path.write_text("agent: build\nmodel: [a, b\nlog: {level: warning}\n")
    done = tiro("doctor")
    assert f"Config      {path}\n" in done.stdout
    assert f"Problem     {path}, line 2: this is no valid YAML" in done.stdout


def test_what_is_piped_in_goes_along_unasked(tiro: Tiro, provider: Provider) -> None:
    """Without `-` too, and the words need no quotes; an empty pipe is nothing."""
    assert tiro("ask", "Review", "this", given="+ glockenspiel").returncode == DONE
    assert "glockenspiel" in str(provider.last.messages[-1])
    assert "Review this" in str(provider.last.messages[-1])
    done = tiro("ask", "Which?")
    assert (done.returncode, done.stderr) == (DONE, "")
    assert provider.last.messages[-1]["content"] == "Which?"


def test_closed_or_silent_stdin_holds_up_nothing(home: Home, provider: Provider) -> None:
    command = f"{sys.executable} -m tiro ask"
    for line, told in (("Which? <&-", ""), ("Which?", "--file - waits for it"), ("- <&-", "empty")):
        with subprocess.Popen(
            f"{command} {line}",
            shell=True,
            cwd=home.workspace,
            env=home.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as asked:
            assert asked.stderr
            said = asked.stderr.read()
            assert asked.wait(PATIENCE) == (WRONG_USE if "- <" in line else DONE)
        assert told in said
        assert len(said.splitlines()) == bool(told)


def test_failed_tool_says_why(tiro: Tiro, provider: Provider) -> None:
    provider.script(replies.tools(("c1", "read_file", {"path": "nowhere.txt"})), replies.text("Oh"))
    _, failed, why = tiro("ask", "Read it").stderr.splitlines()
    assert failed == "· read_file nowhere.txt: failed"
    assert why.startswith("·   ")
    assert "nowhere.txt" in why


@pytest.mark.parametrize(
    ("name", "given", "refused"),
    [
        ("read_file", {"path": "ask-first.txt"}, "read_file ask-first.txt: rejected"),
        ("read_file", {"path": "../out.txt"}, "read_file ../out.txt: rejected"),
        ("run_command", {"command": "echo 'a b' && true"}, "run_command echo 'a b' && true: reje"),
    ],
)
def test_refused_tool_says_what_and_which_rule_would_allow_it(
    tiro: Tiro, provider: Provider, home: Home, name: str, given: dict[str, str], refused: str
) -> None:
    """The rule that is told is the one: with it in the configuration the tool runs."""
    home.write("ask-first.txt", "alpha")
    (home.workspace.parent / "out.txt").write_text("beta")
    provider.script(replies.tools(("c1", name, given)), replies.text("Oh"))
    done = tiro("ask", "Do it")
    assert done.returncode == DONE
    assert refused in done.stderr
    (told,) = re.findall(r"put in config\.yaml: permission: (\{.*\})$", done.stderr, re.M)
    ((key, rules),) = yaml.safe_load(told).items()
    home.write_config(permission={key: rules})
    provider.script(replies.tools(("c1", name, given)), replies.text("Oh"))
    again = tiro("ask", "Do it")
    assert "rejected" not in again.stderr
    assert "Nobody is here" not in again.stderr


def test_a_deny_that_a_command_names_has_no_rule_to_advise(
    tiro: Tiro, provider: Provider, home: Home
) -> None:
    home.write_config(permission={"bash": "allow"})
    provider.script(
        replies.tools(("c1", "run_command", {"command": "cat .env"})), replies.text("Oh")
    )
    done = tiro("ask", "Do it")
    assert "run_command cat .env: rejected" in done.stderr
    assert "No rule in config.yaml allows just this" in done.stderr


def test_export_takes_its_format_from_the_file(tiro: Tiro, home: Home, provider: Provider) -> None:
    tiro("ask", "Which colour?")
    for name, start in (
        ("x.json", "{"),
        ("x.YML", "id:"),
        ("x.jsonl", '{"'),
        ("x.md", "#"),
        ("x.txt", "#"),
    ):
        assert tiro("sessions", "export", "latest", "--out", name).returncode == DONE
        written = (home.workspace / name).read_text()
        assert start in written
    assert len((home.workspace / "x.jsonl").read_text().splitlines()) > 1
    json.loads((home.workspace / "x.json").read_text())
    assert (home.workspace / "x.md").read_text() == (home.workspace / "x.txt").read_text()
    same = [tiro("sessions", "export", "latest", "--format", f).stdout for f in ("md", "markdown")]
    assert same[0] == same[1] != ""


def test_latest_is_shown_and_not_deleted(tiro: Tiro, home: Home, provider: Provider) -> None:
    """The newest whole one is shown, whatever lies broken beside it."""
    tiro("ask", "Which colour?")
    (good,) = home.session_files()
    (home.sessions / "half.json").write_text('{"id": "half", "messages": [')
    cut = good.read_text()
    (home.sessions / "cut.json").write_text(cut.replace(good.stem, "cut")[: len(cut) * 2 // 3])
    done = tiro("sessions", "show", "latest")
    assert (done.returncode, done.stderr) == (DONE, "")
    assert "Which colour?" in done.stdout
    refused = tiro("sessions", "delete", "latest")
    assert (refused.returncode, refused.stdout) == (WRONG_USE, "")
    assert "delete wants an id" in refused.stderr
    assert good.exists()


def test_what_was_never_pulled_is_not_removed(tiro: Tiro) -> None:
    done = tiro("local", "remove", "qwen2.5-coder-1.5b")
    told = "tiro: qwen2.5-coder-1.5b is not here, nothing to remove\n"
    assert (done.returncode, done.stdout, done.stderr) == (FAILED, "", told)


def test_stdout_that_takes_nothing_is_one_sentence(
    tiro: Tiro, provider: Provider, home: Home
) -> None:
    """Full or closed: no traceback, exit code 1; also where each write goes out at once."""
    provider.script(replies.text("Blue."), *[replies.text("Loud.")] * 2)
    tiro("ask", "Which colour?")
    for words in ("sessions show latest", "sessions export latest", "ask Talk", "schema", "doctor"):
        with open("/dev/full", "wb") as full:
            check_stdout_is_told(tiro(*words.split(), stdout=full), words)
    for words, target, is_unbuffered in (
        ("sessions search colour", "/dev/full", True),
        ("ask Talk", "&-", False),
        ("schema", "&-", False),
        ("chat --help", "/dev/full", True),
        ("--version", "/dev/full", False),
        ("--version", "/dev/full", True),
        ("--version", "&-", False),
    ):
        done = subprocess.run(
            f'"{sys.executable}" -m tiro {words} >{target}',
            shell=True,
            cwd=home.workspace,
            env={**home.environment(), "PYTHONUNBUFFERED": "1" if is_unbuffered else ""},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
        )
        check_stdout_is_told(done, words)


def check_stdout_is_told(done: subprocess.CompletedProcess[str], words: str) -> None:
    assert done.returncode == FAILED, words
    assert re.fullmatch(r"tiro: Stdout (cannot be written|is closed)[^\n]*\n", done.stderr)


def test_stderr_that_takes_nothing_holds_up_nothing(
    tiro: Tiro, provider: Provider, home: Home
) -> None:
    """Full or closed: what is told beside the answer is lost, the answer and the code are not."""
    provider.script(*[replies.text("Better.")] * 2)
    given = "first\n/fly\n"
    with open("/dev/full", "wb") as full:
        into_full = tiro("chat", given=given, stderr=full)
    into_closed = subprocess.run(
        f'"{sys.executable}" -m tiro chat 2>&-',
        shell=True,
        cwd=home.workspace,
        env=home.environment(),
        input=given,
        stdout=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
    )
    for done in (into_full, into_closed):
        assert (done.returncode, done.stdout) == (WRONG_USE, "Better.\n")
