"""The memory in `tiro chat`: see what would go, edit it, apply it, take it back; the meter."""

import shlex

import pytest

from tests.e2e import replies
from tests.e2e.conftest import Piped
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.tmux import Chat

SUMMARY = "They asked about a colour and a sound."
LONG = "Blue, and here is why: " + "it is what it is. " * 30
QUESTION = "[d]rop:"


@pytest.fixture
def editor(home: Home) -> str:
    """An editor that shows the text and takes a typed line in its place."""
    script = home.root / "my editor.sh"
    lines = 'cat "$1"; printf "\\nTyped: "; read -r line; [ "$line" = "!" ] && exit 3'
    script.write_text(f'{lines}\nprintf "%s" "$line" > "$1"; stat -c %a "$1" "$(dirname "$1")"\n')
    return f"sh {shlex.quote(str(script))}"


def test_preview_is_dropped_then_edited_applied_and_taken_back(
    chat: Chat, provider: Provider, editor: str
) -> None:
    """Issue of the memory: see what would be compacted before it happens, edit, apply, undo."""
    answers = (LONG, "Loud.", SUMMARY, SUMMARY, "So it is.")
    provider.script(*map(replies.text, answers))
    chat.start(VISUAL=editor, EDITOR="false")
    chat.ask("Which colour?", "Blue")
    chat.ask("Which sound?", "Loud.")
    chat.say("/preview")
    screen = chat.wait_for(QUESTION)
    assert "4 messages would leave the window: " in screen
    assert "#1 user: Which colour?\n#2 assistant: Blue, and here" in screen
    assert f"In their place, the summary:\n{SUMMARY}" in screen
    chat.ask("d", "Nothing has changed")
    chat.say("/preview")
    chat.wait_until(lambda screen: screen.rstrip().endswith(QUESTION), "the question")
    chat.say("e")
    assert f"{SUMMARY}\nTyped:" in chat.wait_for("Typed:")
    chat.say("Sounds matter.")
    chat.wait_for("The summary is as you wrote it, and not applied yet")
    chat.say("e")
    assert "Sounds matter.\nTyped:" in chat.wait_for("Typed:")
    chat.say("Colours matter, sounds do not.")
    chat.wait_until(lambda screen: screen.rstrip().endswith(QUESTION), "the question")
    chat.say("a")
    screen = chat.wait_for("Out of the window: 4 messages, about ")
    assert "\n700\n" in screen  # nobody else reads what is edited
    chat.wait_for_prompt()
    chat.ask("And now?", "So it is.")
    assert [m["content"] for m in provider.last.messages] == ["And now?"]
    assert "Colours matter, sounds do not." in provider.last.system
    screen = chat.ask("/undo", "4 messages are in the window again")
    assert "#1 user: Which colour?" in screen
    assert "No summary now" in screen
    chat.ask("And then?", "ok")
    assert len(provider.last.messages) == 7
    assert "Colours matter" not in provider.last.system


def test_memo_is_edited_until_it_is_json(chat: Chat, provider: Provider, editor: str) -> None:
    """What was typed is not lost for a slip in it; Ctrl-C at the question leaves all as it was."""
    chat.start(VISUAL=editor)
    chat.say("/memo edit")
    chat.wait_for("{}\nTyped:")
    chat.say('{"colour": blue}')
    chat.wait_for("The memo is not JSON")
    chat.say("y")
    assert chat.wait_for("blue}\nTyped:").count('{"colour": blue}') >= 2
    chat.say('{"colour": "blue"}')
    chat.wait_for("The memo is as you wrote it")
    chat.wait_for_prompt()
    chat.say("/memo edit")
    chat.wait_for('"colour": "blue"\n}\nTyped:')
    chat.say(" ")
    chat.wait_for("The text is empty")
    chat.keys("C-c")
    chat.wait_for("Stopped")
    chat.ask("And now?", "ok")
    assert '"colour": "blue"' in provider.last.system


def test_pipe_sees_a_preview_and_nobody_decides(piped: Piped, provider: Provider) -> None:
    provider.script(*map(replies.text, (LONG, SUMMARY)))
    lines = ("/preview", "Which colour?", "/preview", "/preview lite", "/size", "And?")
    done = piped("\n".join((*lines, "/preview it")) + "\n")
    assert done.stderr.count("Nothing would change") == 2
    assert "2 messages would leave the window: " in done.stdout
    assert SUMMARY in done.stdout
    assert done.stderr.count("Nothing has changed") == 1
    assert "/preview takes nothing, or one of compact" in done.stderr
    assert len(provider.last.messages) == 3
    assert "Nobody is there to edit" in piped("/memo edit\n").stderr
    assert "/memo takes nothing, or edit" in piped("/memo it\n").stderr


def test_size_names_no_model_that_is_not_chosen(piped: Piped, home: Home) -> None:
    home.write_config(model=None, providers={"fake": home.fake()})
    done = piped("/size\n")
    assert "No model is chosen yet" in done.stderr
    assert "None" not in done.stderr


def test_size_tells_its_parts_and_how_sure_it_is(piped: Piped, provider: Provider) -> None:
    """Before the first report nothing is known of its error; the parts add up."""
    provider.script(replies.text("ok", usage=replies.usage_chunk(1_600)))
    done = piped("/size\nWhich colour?\n/size\n")
    first, second = done.stdout.split("ok\n")
    assert "not yet checked by a report:" in first
    assert ", give or take " in second
    head, *parts = second.splitlines()
    counts = [int(part.split()[-2].replace(",", "")) for part in parts]
    assert int(head.split(" about ")[1].split()[0].replace(",", "")) == sum(counts)
    assert sum(int(part.split()[-1].rstrip("%")) for part in parts) in range(97, 104)
