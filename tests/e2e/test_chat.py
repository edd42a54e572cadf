"""`tiro chat` as a person uses it: a real terminal with keys pressed, and a pipe."""

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import termios

import pytest

from tests.e2e import replies
from tests.e2e.command import Tiro
from tests.e2e.conftest import Piped
from tests.e2e.home import KEY_VARIABLE, Home
from tests.e2e.provider import API_KEY, MODEL, Provider
from tests.e2e.replies import Hold
from tests.e2e.tmux import TIRO_CHAT, Chat, Tmux
from tests.processes import is_known, only_child
from tests.sizes import PATIENCE

DONE, FAILED, WRONG_USE, NO_MODEL, CANCELLED, UNREAD = 0, 1, 2, 3, 130, 141


# --- in a terminal -------------------------------------------------------------------------


def test_answer_streams_as_light_markdown(chat: Chat, provider: Provider) -> None:
    """What has come is on the screen before the rest; marks became colours, 日本 is whole."""
    hold = Hold()
    provider.script(
        replies.stream(
            replies.chunk({"reasoning_content": "I ponder this at great length. " * 9}),
            replies.text_chunk("# The Plan\n- **first** 日本語 half "),
            hold,
            replies.text_chunk("`second` half\n"),
        )
    )
    chat.start()
    chat.say("tell me")
    screen = chat.wait_for("• first 日本語 half")
    assert "second" not in screen
    assert "\nThe Plan\n" in screen
    (thought,) = [line for line in screen.splitlines() if "ponder" in line]
    assert thought.startswith("· thinks: I ponder")
    assert thought.endswith("…")
    hold.release()
    chat.wait_for("• first 日本語 half second half")
    screen = chat.wait_for_prompt()
    assert "10 tokens in, 5 out" in screen
    assert "> tell me\n" in screen
    coloured = chat.tmux("capture-pane", "-p", "-e", "-t", "e")
    assert "\x1b[1mfirst" in coloured
    assert "\x1b[36msecond" in coloured


def test_escape_sequences_of_the_model_do_not_act(chat: Chat, provider: Provider) -> None:
    """In the answer, in a tool's input, in its result, and in the title of the session."""
    evil = "\x1b[2J\x1b]2;owned\x07"
    provider.script(
        replies.tools(("c1", "read_file", {"path": f"{evil}x"}), before=f"Look{evil} here. "),
        replies.text("Seen."),
    )
    chat.start()
    screen = chat.ask("what is this", "Seen.")
    assert "> what is this" in Tmux.screen(chat), "the screen was not cleared"
    assert "Look␛[2J␛]2;owned␇ here." in screen
    assert "· read_file ␛[2J" in screen
    assert "x: failed" in screen
    screen = chat.ask("/show", "[USER] what is this")
    assert "Look␛[2J" in screen
    assert "owned" not in chat.tmux("display-message", "-p", "-t", "e", "#{pane_title}")


def test_ctrl_c_stops_the_answer_and_the_next_one_comes(chat: Chat, provider: Provider) -> None:
    """B43; what was typed during the answer is not lost."""
    hold = Hold()
    provider.script(
        replies.stream(replies.text_chunk("So far so good, "), hold), replies.text("Here I am.")
    )
    chat.start()
    chat.say("go on for ever")
    chat.wait_for("So far so good,")
    chat.type("still the")
    chat.keys("C-c")
    screen = chat.wait_for("> still the")
    assert "· Cancelled" in screen
    hold.release()
    chat.ask("re?", "Here I am.")
    sent = [message["content"] for message in provider.last.messages]
    assert sent[0] == "go on for ever"
    assert sent[-1] == "still there?"


def test_steer_reaches_the_answer_that_comes(chat: Chat, provider: Provider) -> None:
    """What is typed beside it still waits for the prompt."""
    hold = Hold()
    provider.script(
        replies.stream(replies.text_chunk("So far so good, "), hold), replies.text("In French.")
    )
    chat.start()
    chat.ask("/steer x", "/steer is for while an answer comes")
    chat.say("go on")
    chat.wait_for("So far so good,")
    chat.say("/steer in French")
    chat.wait_for("· Told before the next step: in French")
    chat.type("later")
    hold.release()
    chat.wait_for("In French.")
    chat.wait_for("> later")
    assert provider.last.messages[-1]["content"] == "in French"
    assert len(provider.chats) == 2


def start_patiently(chat: Chat) -> None:
    """A busy machine may need more than a second for two keys, which then would not be "twice"."""
    patient = "import sys, tiro.chat.talk as t, tiro.cli; t.AGAIN_SECONDS = 300"
    chat.run(shlex.join([sys.executable, "-c", f"{patient}; sys.exit(tiro.cli.main(['chat']))"]))
    chat.wait_for("/help lists")


def test_second_ctrl_c_leaves_and_all_is_kept(chat: Chat, provider: Provider, home: Home) -> None:
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("So far so good, "), hold))
    start_patiently(chat)
    chat.say("go on for ever")
    chat.wait_for("So far so good,")
    pid = chat.server_pid()
    os.kill(pid, signal.SIGSTOP)  # else the first one is answered at once
    chat.keys("C-c")
    chat.wait_for("Stopping; Ctrl-C again leaves")
    chat.keys("C-c")
    os.kill(pid, signal.SIGCONT)
    assert chat.exit_code() == CANCELLED
    hold.release()
    (saved,) = home.session_files()
    assert "go on for ever" in saved.read_text()


def test_second_ctrl_c_leaves_also_after_the_answer(chat: Chat, provider: Provider) -> None:
    """The first one's cancel has ended the turn: "twice within a second" holds all the same."""
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("So far so good, "), hold))
    start_patiently(chat)
    chat.say("go on for ever")
    chat.wait_for("So far so good,")
    chat.keys("C-c")
    chat.wait_for("Cancelled;")
    chat.wait_for_prompt()
    chat.keys("C-c")
    assert chat.exit_code() == CANCELLED
    hold.release()


def test_ctrl_c_and_ctrl_d_at_the_prompt(chat: Chat, provider: Provider) -> None:
    """Ctrl-C drops the line that is typed, Ctrl-D ends."""
    chat.start()
    chat.type("half a thou")
    chat.wait_for("> half a thou")
    chat.keys("C-c")
    chat.wait_for_prompt()
    chat.ask("whole", "ok")
    assert provider.last.messages[-1]["content"] == "whole"
    chat.keys("C-d")
    assert chat.exit_code() == DONE


def test_killed_server_is_started_again(chat: Chat, provider: Provider) -> None:
    """B05: kill -9 in mid-answer; one line says so, and what was said is there again."""
    hold = Hold()
    provider.script(
        replies.text("I will remember."),
        replies.stream(replies.text_chunk("It begins thus: "), hold),
        replies.text("The whole story."),
        replies.text("Blue it was."),
    )
    chat.start()
    chat.ask("my colour is blue", "I will remember.")
    chat.say("tell me more")
    chat.wait_for("It begins thus:")
    os.kill(chat.server_pid(), signal.SIGKILL)
    chat.wait_for("The server ended (signal 9, SIGKILL)")
    chat.wait_for("Start it again and go on? [Y/n]")
    hold.release()
    chat.keys("Enter")
    screen = chat.wait_for("/retry asks the last question again")
    assert "3 messages are there again" in screen
    chat.ask("/retry", "The whole story.")
    chat.ask("which colour", "Blue it was.")
    sent = [message["content"] for message in provider.last.messages]
    assert sent == [
        "my colour is blue",
        "I will remember.",
        "tell me more",
        "The whole story.",
        "which colour",
    ]


def test_server_that_died_between_questions_loses_none(chat: Chat, provider: Provider) -> None:
    """The question that found it dead is asked of the next one."""
    provider.script(replies.text("One."), replies.text("Two."))
    chat.start()
    chat.ask("first", "One.")
    os.kill(chat.server_pid(), signal.SIGKILL)
    chat.say("second")
    chat.wait_for("Start it again and go on? [Y/n]")
    chat.keys("Enter")
    chat.wait_for("Two.")
    assert [m["content"] for m in provider.last.messages] == ["first", "One.", "second"]
    chat.wait_for_prompt()
    os.kill(chat.server_pid(), signal.SIGKILL)
    chat.say("third")
    chat.wait_until(lambda screen: screen.count("go on? [Y/n]") == 2, "the second question")
    chat.say("what?")
    chat.wait_until(lambda screen: screen.count("go on? [Y/n]") == 3, "the same question")
    chat.say("n")
    assert chat.exit_code() == FAILED
    assert "`tiro chat --continue` goes on with it" in chat.screen()


def test_question_of_a_sub_agent_names_it_and_its_work_is_marked(
    chat: Chat, provider: Provider, home: Home
) -> None:
    """M5.9: nobody says yes to another agent than they think."""
    home.write("ask-first.txt", "xylophone")
    provider.script(
        replies.tools(("d1", "delegate", {"agent": "explore", "task": "look"})),
        replies.tools(("c1", "read_file", {"path": "ask-first.txt"})),
        replies.text("It is there."),
        replies.text("It is found."),
    )
    chat.start()
    chat.say("find it")
    assert "explore: read_file ask-first.txt – read" in chat.wait_for("[r]eject (and why):")
    screen = chat.ask("o", "It is found.")
    assert "· ↳ read_file ask-first.txt: done" in screen
    assert screen.index("↳ read_file") < screen.index("delegate explore")


def test_permission_is_asked_and_typed_lines_do_not_answer_it(
    chat: Chat, provider: Provider, home: Home
) -> None:
    """What was typed before the question was seen is no yes; a reason goes to the model."""
    home.write("ask-first.txt", "xylophone")
    hold = Hold()
    use = replies.calls_chunk(replies.call("c1", "read_file", {"path": "ask-first.txt"}))
    provider.script(
        replies.stream(replies.text_chunk("Wait. "), hold, use, finish="tool_calls"),
        replies.tools(("c2", "read_file", {"path": "ask-first.txt"})),
        replies.text("I know it now."),
    )
    chat.start()
    chat.say("what is in it")
    chat.wait_for("Wait.")
    chat.say("o")
    chat.say("yes")
    hold.release()
    screen = chat.wait_for("[r]eject (and why):")
    assert "read_file ask-first.txt – read" in screen
    assert "[a]lways adds to this session: read: ask-first.txt allow" in screen
    chat.say("r not yet")
    provider.wait_for(2)
    assert "not yet" in str(provider.last.messages[-1])
    assert "xylophone" not in str(provider.last.messages)
    chat.wait_until(lambda screen: screen.count("[r]eject (and why):") == 2, "the second question")
    chat.say("o")
    chat.wait_for("I know it now.")
    screen = chat.wait_for("> yes")
    assert "read_file ask-first.txt: rejected" in screen
    assert "read_file ask-first.txt: done" in screen
    assert "xylophone" in str(provider.chats[2].messages)
    provider.wait_for(4)
    assert provider.last.messages[-1]["content"] == "yes", "a lone key is no question, a word is"
    assert "typed where none stood: dropped" in chat.screen()
    chat.wait_for_prompt()
    provider.script(replies.tools(("c3", "read_file", {"path": "ask-first.txt"})))
    chat.say("once more")
    chat.wait_until(lambda screen: screen.count("[r]eject (and why):") == 3, "the third question")
    chat.keys("C-c")
    chat.wait_for("\n· Stopping; Ctrl-C again leaves")
    chat.wait_for_prompt()
    assert len(provider.chats) == 5


def test_slash_commands(chat: Chat, provider: Provider, home: Home) -> None:
    provider.script(replies.text("Blue."), replies.text("Loud."))
    notes = home.write("notes.txt", "xylophone")
    chat.start()
    chat.ask("/file notes.txt", "With your next question: notes.txt")
    chat.ask("Which colour?", "Blue.")
    assert "xylophone" in str(provider.last.messages)
    chat.ask("/agent plan", "plan answers from now on")
    screen = chat.ask("/agent", "* plan")
    assert "explore      Finds things in the workspace" in screen
    assert "compaction   Sums up" in screen
    chat.ask("/model", f"* fake/{MODEL}")
    chat.ask("/size", "attached files")
    chat.ask("/shwo", "did you mean /show?")
    chat.ask("/nonsense", "There is no command /nonsense; /help")
    chat.ask("/file /nowhere", "There is no file '/nowhere'")
    chat.ask("/save copy.json", f"Saved in {home.workspace}/copy.json"[:80])
    screen = chat.ask("/clear", "this is a new session, build answers")
    assert "Blue." not in screen
    assert "2 messages are kept in" in screen
    assert "Loud." in chat.ask("Which sound?", "Loud.")
    assert len(provider.last.messages) == 1
    first = min(home.session_files(), key=lambda path: len(path.name))
    chat.ask("/sessions", first.stem)
    screen = chat.ask(f"/load {first.stem}", "[USER] Which colour?")
    assert "Which colour?: 2 messages are loaded" in screen
    chat.ask("/search colour", f"{first.stem} #1 user: ")
    chat.ask("/export markdown talk.md", "Exported to")
    assert "Blue." in (home.workspace / "talk.md").read_text()
    chat.ask("/export word", "needs a format: ")
    chat.say("/quit")
    assert chat.exit_code() == DONE
    assert notes.exists()


def test_edits_are_shown_allowed_taken_back_and_made_again(
    chat: Chat, provider: Provider, home: Home, tiro: Tiro
) -> None:
    """P6: with one command, also from another process, long after the turn."""
    path = home.write("a.txt", "one\ntwo\n")

    def text() -> str:
        return path.read_text("utf-8")

    provider.script(
        replies.tools(("c1", "read_file", {"path": "a.txt"})),
        replies.tools(
            ("c2", "edit_file", {"path": "a.txt", "old_text": "two", "new_text": "2"}),
            ("c3", "run_command", {"command": "rm -f nothing  there"}),
            ("c4", "run_command", {"command": "touch never"}),
            ("c5", "run_command", {"command": "cat a.txt"}),
        ),
        replies.text("It is done."),
    )
    chat.start()
    chat.say("make it 2")
    screen = chat.wait_for("[r]eject (and why):")
    assert "-two" in screen
    assert "+2" in screen
    assert text() == "one\ntwo\n"
    for answer in ("o", "o", "r", "o"):
        chat.wait_for("[r]eject (and why):")
        chat.say(answer)
    chat.wait_for("It is done.")
    assert text() == "one\n2\n"
    screen = chat.ask("/edits", "+1 -1")
    assert "a.txt" in screen
    screen = chat.ask("/undo-edits", "Taken back in")
    assert "· What its commands did stays done: rm -f nothing there\n" in f"{screen}\n"
    assert text() == "one\ntwo\n"
    chat.ask("/redo-edits", "Made again in")
    assert text() == "one\n2\n"
    chat.ask("/redo-edits", "Nothing was taken back here")
    chat.say("/quit")
    listed = tiro("edits", "list")
    assert listed.stdout.count("\n") == 1
    assert "a.txt" in listed.stdout
    turn = json.loads(tiro("edits", "list", "--json").stdout)[0]["turnId"]
    home.write("a.txt", "mine\none\n2\n")
    undone = tiro("edits", "undo", turn)
    assert undone.stdout.startswith("Taken back in ")
    assert "What its commands did stays done: rm -f nothing there\n" in undone.stderr
    assert text() == "mine\none\ntwo\n"
    assert "(undone)" in tiro("edits", "list").stdout
    assert tiro("edits", "redo", "--yes").returncode == 0
    home.write("a.txt", "one\nsomething else\n")
    refused = tiro("edits", "undo", "--yes")
    assert refused.returncode == 1
    assert "overlaps with it in line 2 of" in refused.stderr
    assert text() == "one\nsomething else\n"
    assert "no edit" in tiro("edits", "undo", "nothing").stderr.lower()


def test_edits_are_named_by_what_the_list_shows_and_others_are_asked_about(
    chat: Chat, tiro: Tiro, provider: Provider, home: Home
) -> None:
    """One of a turn's edits alone; without a name another session's turn only after a yes."""
    home.write_config(permission={"edit": "allow"}, providers={"fake": home.fake()})
    a, b = home.write("a.txt", "one\n"), home.write("b.txt", "two\n")

    def edit(name: str, old: str, new: str) -> tuple[str, str, dict[str, str]]:
        return name, "edit_file", {"path": name, "old_text": old, "new_text": new}

    provider.script(
        replies.tools(*[(f"r{name}", "read_file", {"path": name}) for name in ("a.txt", "b.txt")]),
        replies.tools(edit("a.txt", "one", "1"), edit("b.txt", "two", "2")),
        replies.text("It is done."),
    )
    tiro("ask", "make them numbers")
    nobody = tiro("edits", "undo")
    assert (nobody.returncode, nobody.stdout) == (WRONG_USE, "")
    assert "name an edit or a turn, or say --yes" in nobody.stderr
    (line,) = [line for line in tiro("edits", "list").stdout.splitlines() if "a.txt" in line]
    _, one, _, _, turn = line.split()[:5]
    assert tiro("edits", "undo", one).stdout == f"Taken back in {a}\n"
    assert (a.read_text(), b.read_text()) == ("one\n", "2\n")
    chat.start()
    chat.say("/undo-edits")
    assert "what another session did at" in chat.wait_for("[y/N]")
    chat.keys("Enter")
    chat.wait_for("Nothing was changed")
    chat.wait_for_prompt()
    chat.say("/undo-edits")
    chat.wait_until(lambda screen: screen.count("[y/N]") == 2, "the second question")
    chat.ask("y", "Taken back in")
    assert (a.read_text(), b.read_text()) == ("one\n", "two\n")
    chat.ask(f"/redo-edits {turn}", "Made again in")
    assert (a.read_text(), b.read_text()) == ("1\n", "2\n")


def test_output_of_a_command_is_shown(chat: Chat, provider: Provider) -> None:
    """How it ended, its first and last lines, and on demand all of it."""
    line = "seq 30; exit 3"
    provider.script(replies.tools(("c1", "run_command", {"command": line})), replies.text("Hm."))
    chat.start()
    chat.say("count")
    assert line in chat.wait_for("[r]eject (and why):")
    chat.type("q")
    chat.keys("C-d")
    chat.wait_for("[r]eject (and why): q\n· Type o to allow it once, a for the rest")
    chat.wait_until(lambda screen: screen.count("[r]eject (and why):") == 2, "the same question")
    screen = chat.ask("o", "Hm.")
    assert f"run_command {line}: failed, exit code 3\n  1\n  2\n  3\n" in screen
    assert "\n  … 21 lines between; /output shows all …\n  25\n" in screen
    assert "\n  30\n  [exit code 3]\n" in screen
    screen = chat.ask("/output", "\n30\n[exit code 3]\n")
    assert "\n3\n4\n5\n" in screen
    chat.ask("/output x", "/output takes the number of a message")
    chat.ask("/output 99", "no message")
    provider.script(replies.tools(("c2", "run_command", {"command": line})), replies.text("No."))
    chat.say("again")
    chat.wait_until(lambda screen: screen.count("[r]eject (and why):") == 3, "the next question")
    chat.say("/quit")
    assert chat.exit_code() == DONE
    assert len(provider.chats) == 3


def test_tab_completes_commands_ids_agents_and_paths(chat: Chat, home: Home) -> None:
    home.write("a-long-name.txt", "x")
    chat.start()
    chat.ask("hello", "ok")
    (saved,) = home.session_files()
    for typed, completed in (
        ("/ret", "> /retry"),
        ("/load sess", f"> /load {saved.stem}"),
        ("/agent pl", "> /agent plan"),
        ("/model fa", f"> /model fake/{MODEL}"),
        ("/file a-lo", "> /file a-long-name.txt"),
    ):
        chat.type(typed)
        chat.keys("Tab")
        chat.wait_for(completed)
        chat.keys("C-u")


def test_lines_are_continued_pasted_and_remembered(
    chat: Chat, provider: Provider, home: Home
) -> None:
    """A backslash or a paste makes one text of lines; the arrow keys find it, also later."""
    chat.start()
    chat.say("one \\")
    chat.ask("two", "ok")
    assert provider.last.messages[-1]["content"] == "one \ntwo"
    chat.tmux("set-buffer", "three\nfour")
    chat.tmux("paste-buffer", "-p", "-r", "-t", "e")
    chat.wait_for("four")
    assert len(provider.chats) == 1, "a pasted line break sends nothing"
    chat.keys("Enter")
    provider.wait_for(2)
    assert provider.last.messages[-1]["content"] == "three\nfour"
    chat.wait_for_prompt()
    chat.say(f"is {API_KEY} a good key")
    provider.wait_for(3)
    chat.wait_for_prompt()
    chat.keys("C-d")
    assert chat.exit_code() == DONE
    (file,) = (home.root / "state").rglob("*.jsonl")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert API_KEY not in file.read_text()
    again = Chat(home)
    try:
        again.start("--continue", ready="messages are loaded")
        again.wait_for_prompt()
        again.keys("Up", "Up")
        again.wait_for("three")
        again.keys("Enter")
        provider.wait_for(4)
        assert provider.last.messages[-1]["content"] == "three\nfour"
        assert provider.last.messages[0]["content"] == "one \ntwo"
    finally:
        again.close()


def test_no_color_is_plain(chat: Chat, provider: Provider) -> None:
    """NO_COLOR: the answer's own words, harmless still."""
    provider.script(replies.text("# A **bold** \x1b[31mword"))
    chat.start(NO_COLOR="1")
    chat.ask("hello", "# A **bold** ␛[31mword")
    coloured = chat.tmux("capture-pane", "-p", "-e", "-t", "e")
    assert "\x1b" not in coloured


def test_failing_model_is_told_and_the_chat_goes_on(chat: Chat, provider: Provider) -> None:
    provider.script(replies.error(400, "bad \x1b[2Jweather"), replies.text("Better."))
    chat.start()
    chat.ask("look", "bad ␛[2Jweather")
    chat.ask("/retry", "Better.")
    assert [m["content"] for m in provider.last.messages] == ["look"]


def test_refused_summary_is_told_above_the_line_that_is_typed(
    chat: Chat, provider: Provider, home: Home
) -> None:
    """Issue of the memory, 5: at once, and the line stays with its cursor where it was."""
    home.write_config(
        providers={"fake": home.fake()},
        session={"max_history": 2, "summary": {"enabled": True}},
    )
    hold = Hold()
    blank = replies.stream(hold, replies.text_chunk(" "))
    provider.otherwise(lambda r: replies.text("An answer") if r.tool_names else blank)
    chat.start()
    chat.ask("one", "An answer")
    chat.ask("two", "An answer")
    hold.wait()
    chat.type("half a ne")
    chat.keys("Left", "Left")
    chat.wait_for("> half a ne")
    hold.release()
    screen = chat.wait_for("The summary cannot be used: it is empty")
    assert screen.rstrip().endswith("\n> half a ne")
    chat.type("li")
    chat.wait_for("> half a line")
    chat.keys("Enter")
    chat.wait_until(lambda screen: screen.count("An answer") == 3, "the answer")
    assert any(one.messages[-1]["content"] == "half a line" for one in provider.chats)
    assert chat.wait_for_prompt().count("The summary cannot be used") == 1


# --- in a pipe -----------------------------------------------------------------------------


def test_pipe_answers_each_line_and_ends(piped: Piped, provider: Provider) -> None:
    """The answers as they are on stdout, nothing else; one session."""
    provider.script(replies.text("# One"), replies.text("**Two**"))
    done = piped("first\n\n  second \\\nline\n")
    assert (done.returncode, done.stdout, done.stderr) == (DONE, "# One\n**Two**\n", "")
    assert [m["content"] for m in provider.last.messages] == ["first", "# One", "second \nline"]


def test_pipe_takes_commands(piped: Piped, provider: Provider) -> None:
    provider.script(replies.text("Better."))
    done = piped("first\n/show\n/quit\nnever\n")
    assert (done.returncode, done.stderr) == (DONE, "")
    assert done.stdout.startswith("Better.\n#1 [USER] first\n")
    assert len(provider.chats) == 1


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("third", NO_MODEL, "bad weather"),
        ("/fly", WRONG_USE, "There is no command /fly"),
        ("/file nowhere", WRONG_USE, "There is no file 'nowhere'"),
    ],
)
def test_pipe_ends_with_the_first_line_that_fails(
    piped: Piped, provider: Provider, line: str, code: int, told: str
) -> None:
    """What follows may build on it; nothing is skipped in silence."""
    provider.script(replies.text("One."), replies.text("Two."), replies.error(400, "bad weather"))
    done = piped(f"first\n\nsec\\\nond\n{line}\nnever\n")
    assert (done.returncode, done.stdout) == (code, "One.\nTwo.\n")
    assert told in done.stderr
    assert "(stopped at line 5; nothing after it was read)" in done.stderr
    assert all(request.messages[-1]["content"] != "never" for request in provider.chats)


def test_the_first_model_that_can_be_used_is_named(chat: Chat, home: Home) -> None:
    """Nobody is asked for it before there is a question; then it is told once."""
    home.write_config(model=None, providers={"fake": home.fake()})
    chat.start()
    assert "answers with the first model that can be used" in chat.screen()
    chat.ask("hello", f"That was fake/{MODEL}; /model chooses another")
    chat.ask("again", "ok")
    assert chat.screen().count("That was fake") == 1


def test_refused_question_comes_back(chat: Chat, provider: Provider, home: Home) -> None:
    """It was stored nowhere: /retry asks it, not the one before, and so does the Up key."""
    keyless = home.fake(api_key_env="SURELY_NOT_SET")
    home.write_config(providers={"fake": keyless, "good": home.fake()})
    chat.start()
    chat.ask("hello there", "/retry asks it again, the Up key brings it back")
    chat.ask(f"/model good/{MODEL}", "answers from now on")
    chat.ask("/retry", "ok")
    assert [m["content"] for m in provider.last.messages] == ["hello there"]


def test_empty_session_is_not_saved(piped: Piped, home: Home) -> None:
    """Else it would be the latest, and hide the one that somebody wants to go on with."""
    done = piped("first\n")
    (saved,) = home.session_files()
    done = piped("/save copy.json\n")
    assert (done.returncode, done.stdout) == (WRONG_USE, "")
    assert "Nothing was said yet, so there is nothing to save" in done.stderr
    assert home.session_files() == [saved]
    assert not (home.workspace / "copy.json").exists()


def test_pipe_tells_what_is_left_after_a_compaction(piped: Piped, provider: Provider) -> None:
    provider.script(replies.text("Blue, and here is why: it is."), replies.text("Blue."))
    done = piped("Which colour?\n/compact\n/show\n/memo\n/retry\n")
    assert "2 messages are folded into the summary: " in done.stderr
    assert "All that was said has left the window; /memo shows" in done.stderr
    assert "No question of yours is in the window" in done.stderr
    assert done.stdout.endswith("it is.\nBlue.\n")
    done = piped("/sessions\n", "--continue")
    assert "Which colour?: 0 messages in the window, 2 in the archive" in done.stderr
    assert re.search(r" 2  Which colour\?$", done.stdout, re.MULTILINE)


def test_pipe_names_takes_back_and_moves_the_session(
    piped: Piped, provider: Provider, home: Home
) -> None:
    provider.script(*[replies.text("Blue."), replies.text("Loud."), replies.text("Soft.")])
    done = piped(
        "Which colour?\n/rename My\x1b talk\nWhich sound?\n/rewind\n/show\n/export json talk.json\n"
        "/new\n/import talk.json\nAnd now?\n/rewind 1\n/show\n/rewind 9\n"
    )
    assert "The session's title is now: My␛ talk" in done.stderr
    assert "2 messages are taken back; no model sees them again" in done.stderr
    assert "Message '9' is not in the window" in done.stderr
    said = [message["content"] for message in provider.last.messages]
    assert said == ["Which colour?", "Blue.", "And now?"]
    assert done.stdout.endswith("Soft.\nThe session is empty\n")
    assert json.loads((home.workspace / "talk.json").read_text())["title"] == "My\x1b talk"


def test_pipe_asks_again_as_often_as_wanted(piped: Piped, provider: Provider, home: Home) -> None:
    """What is taken back leaves a gap in the numbers, in the next process too."""
    theirs = home.write("precious.txt", "my only notes")
    done = piped("aaa\nbbb\n/retry\n/retry\n/rewind\n/save precious.txt\n")
    assert done.stderr.count("2 messages are taken back") == 1
    assert [m["content"] for m in provider.last.messages] == ["aaa", "ok", "bbb"]
    assert "precious.txt' holds something else; choose another name" in done.stderr
    assert theirs.read_text() == "my only notes"
    assert [path.name for path in home.workspace.iterdir() if "precious" in path.name] == [
        "precious.txt"
    ]
    done = piped("ccc\n/retry\n/retry\n/save copy.json\n", "--continue")
    assert done.returncode == DONE, done.stderr
    assert [m["content"] for m in provider.last.messages] == ["aaa", "ok", "ccc"]


def test_pipe_explains_what_is_sent(piped: Piped, provider: Provider, home: Home) -> None:
    """P11: in lines, or all of it; nothing is sent for it."""
    home.write("AGENTS.md", "Be brief.")
    provider.script(replies.text("Blue."))
    done = piped("Which colour?\n/rewind\nWhich sound?\n/explain\n/explain json\n/explain it\n")
    short, _, whole = done.stdout.removeprefix("Blue.\nok\n").partition("\n{")
    assert short.startswith(f"To fake/{MODEL}, about ")
    assert "\ntools: read_file, " in short
    assert "[USER] Which sound?\n[ASSISTANT] ok\n" in short
    assert f"\n  no memo yet, no summary yet, with {home.workspace}/AGENTS.md\n" in short
    assert short.endswith("not sent, since you took it back: #1, #2")
    assert json.loads("{" + whole)["messages"][1]["content"] == "ok"
    assert "/explain takes nothing, or json" in done.stderr
    assert len(provider.chats) == 2


def test_pipe_handles_what_is_remembered(piped: Piped, provider: Provider, home: Home) -> None:
    """Size, pins, memo, compaction and its undo; /clear says who answers from then on."""
    provider.script(
        replies.text("Blue."), replies.text("Loud."), replies.text("They asked about a colour.")
    )
    lines = (
        *("/pin", "/memo", "/compact", "first", "second", "/size", "/pin 1", "/pin"),
        *("/pin -1", "/compact", "/memo", "/undo", "/agent plan", "/clear", "/undo"),
    )
    done = piped("\n".join(lines) + "\n")
    told = done.stderr + done.stdout
    assert "Traceback" not in told
    for sentence in (
        "No message is pinned",
        "Nothing is remembered yet",
        "Nothing is there to fold",
        "about",
        "your messages",
        "Pinned: 1",
        "#1 user: first",
        "4 messages are folded into the summary",
        "They asked about a colour.",
        "4 messages are in the window again",
        f"this is a new session, build answers with fake/{MODEL}",
    ):
        assert sentence in told
    assert done.returncode == FAILED
    assert len(provider.chats) == 3


def test_what_a_search_finds_is_shown_by_its_number(piped: Piped, home: Home) -> None:
    """Issue 8: the jump from a hit; also to what has left the window."""
    said = [{"role": "user", "content": f"puffin {n}"} for n in range(1, 61)]
    home.write("talk.json", json.dumps({"id": "t", "messages": said, "max_history": 5}))
    done = piped("/import talk.json\n/search 30\n/show 30\n/show #99\n")
    assert "t #30 user: puffin 30" in done.stdout
    shown = [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert [line.split()[0] for line in shown] == [f"#{n}" for n in range(20, 40)]
    assert done.returncode == WRONG_USE
    assert "There is no message #99" in done.stderr


def test_file_that_cannot_go_along_is_refused_at_once(
    piped: Piped, provider: Provider, home: Home
) -> None:
    """It costs no question; what waits is dropped by `-`, by /clear, and when it is refused."""
    (home.workspace / "bad.bin").write_bytes(b"\x7fELF\0\0")
    for name in ("a.txt", "b.txt"):
        home.write(name, f"xylophone {name}")
    lines = "/file a.txt\n/file\n/file -\n/file b.txt\n/clear\nfirst\n/export md\n"
    done = piped(lines + "/search\n")
    assert done.stderr.count("With your next question: a.txt") == 2
    assert "With your next question: no file" in done.stderr
    assert "/search needs a word" in done.stderr
    assert "needs a format" not in done.stderr
    assert len(provider.chats) == 1
    assert "xylophone" not in str(provider.last.messages)
    assert "'bad.bin' is binary" in piped("/file bad.bin\n").stderr
    assert "'.' is a directory" in piped("/file .\n").stderr


def test_file_that_went_away_fails_one_question_only(
    chat: Chat, provider: Provider, home: Home
) -> None:
    going = home.write("going.txt", "xylophone")
    chat.start()
    chat.ask("/file going.txt", "With your next question: going.txt")
    going.unlink()
    chat.ask("first", "No file goes along any more")
    chat.ask("second", "ok")
    assert [m["content"] for m in provider.last.messages] == ["second"]


def test_pipe_denies_what_needs_a_person(piped: Piped, provider: Provider, home: Home) -> None:
    home.write("ask-first.txt", "xylophone")
    provider.script(replies.tools(("c1", "read_file", {"path": "ask-first.txt"})))
    done = piped("read it\n")
    assert "read_file ask-first.txt: rejected" in done.stderr
    assert 'permission: {read: {"ask-first.txt": allow}}' in done.stderr
    assert "xylophone" not in str(provider.last.messages)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--agent", "nobody"), FAILED, "nobody"),
        (("--model", "nowhere/at-all"), NO_MODEL, "nowhere"),
        (("--load", "nothing-like-it"), FAILED, "nothing-like-it"),
    ],
)
def test_what_is_not_there_is_one_sentence(
    piped: Piped, words: tuple[str, ...], code: int, told: str
) -> None:
    done = piped("hello\n", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert re.fullmatch(rf"tiro: .*{told}.*\n", done.stderr)


def test_pipe_without_a_model_says_what_to_do(piped: Piped, home: Home) -> None:
    home.write_config(providers={"fake": home.fake(api_key_env="SURELY_NOT_SET")})
    done = piped("hello\n")
    assert (done.returncode, done.stdout) == (NO_MODEL, "")
    assert "SURELY_NOT_SET" in done.stderr
    assert KEY_VARIABLE not in done.stderr


def test_closed_stdin_is_the_end(home: Home) -> None:
    command = shlex.join(TIRO_CHAT)
    done = subprocess.run(
        f"{command} <&-", shell=True, env=home.environment(), capture_output=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout, done.stderr) == (DONE, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_ends_a_pipe(
    provider: Provider, home: Home, number: signal.Signals
) -> None:
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("So far"), hold))
    with subprocess.Popen(
        TIRO_CHAT,
        cwd=home.workspace,
        env=home.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("slowly\nnever\n")
        process.stdin.flush()
        hold.wait()
        assert process.stdout.read(6) == "So far"
        server = only_child(process.pid)
        process.send_signal(number)
        assert process.wait(PATIENCE) == CANCELLED
    hold.release()
    assert len(provider.chats) == 1
    assert not is_known(server)
    (saved,) = home.session_files()
    assert "So far" in saved.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("is_asked", [False, True])
def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(
    chat: Chat, provider: Provider, home: Home, number: signal.Signals, is_asked: bool
) -> None:
    """At the prompt and during an answer, which is stored as far as it had come."""
    hold = Hold()
    provider.script(replies.text("Done"), replies.stream(replies.text_chunk("So far "), hold))
    chat.start()
    chat.say("first")
    chat.wait_for_prompt()
    if is_asked:
        chat.say("slowly")
        chat.wait_for("So far")
    server = only_child(chat.pid())
    os.kill(chat.pid(), number)
    assert chat.exit_code() == CANCELLED
    hold.release()
    tty = chat.tmux("display-message", "-p", "-t", "e", "#{pane_tty}").strip()
    with open(tty) as terminal:
        modes = termios.tcgetattr(terminal)[3]
    assert modes & termios.ECHO
    assert modes & termios.ICANON
    assert not is_known(server)
    (saved,) = home.session_files()
    assert ("So far" in saved.read_text()) == is_asked


@pytest.mark.parametrize(("is_full", "code"), [(True, FAILED), (False, UNREAD)])
def test_pipe_ends_when_nothing_can_be_shown(
    tiro: Tiro, provider: Provider, home: Home, is_full: bool, code: int
) -> None:
    """A full disk or a reader that went away; the turn is stopped, and all is kept."""
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("So far"), hold))
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "w") if is_full else os.fdopen(writer, "w") as stdout:
        done = tiro("chat", given="slowly\nnever\n", stdout=stdout)
    hold.release()
    told = r"tiro: Stdout cannot be written[^\n]*\n" if is_full else ""
    assert done.returncode == code
    assert re.fullmatch(told, done.stderr)
    assert provider.last.closed_by_client()
    assert len(provider.chats) == 1
    (saved,) = home.session_files()
    assert "slowly" in saved.read_text()
    assert "So far" in saved.read_text()


@pytest.mark.parametrize("line", ["/help", "/quit", "/export md"])
def test_command_that_cannot_be_shown_is_one_sentence(tiro: Tiro, line: str) -> None:
    with open("/dev/full", "w") as full:
        done = tiro("chat", given=f"/show\n{line}\n", stdout=full)
    assert done.returncode == FAILED
    assert re.fullmatch(r"tiro: Stdout cannot be written[^\n]*\n", done.stderr)


def test_pipe_does_not_wait_for_a_server_that_hangs(provider: Provider, home: Home) -> None:
    """One clear line; what was answered before is kept."""
    patient = "import signal, sys, tiro.cli, tiro.protocol.client as client"
    impatient = "signal.signal(signal.SIGUSR1, lambda *_: setattr(client, 'LIFE_SECONDS', 0.2))"
    program = f"{patient}; {impatient}; sys.exit(tiro.cli.main(['chat']))"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=home.workspace,
        env=home.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("first\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ok\n"
        process.send_signal(signal.SIGUSR1)
        os.kill(only_child(process.pid), signal.SIGSTOP)
        _, complaint = process.communicate("second\n", PATIENCE)
    assert process.returncode == FAILED
    assert "The server ended (it gave no sign of life any more)" in complaint
    assert [request.messages[-1]["content"] for request in provider.chats] == ["first"]
    (saved,) = home.session_files()
    assert "first" in saved.read_text()
