"""`session.titles`: the first line of the first prompt, or what the title agent writes (M4.5)."""

import json
from pathlib import Path

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import Provider
from tests.e2e.talk import ask, until, view
from tiro.agents.asking import Reply
from tiro.assistant.titles import usable_title

PROMPT = "How do I rename a function everywhere?\nIt is called foo."


@pytest.fixture
def naming(start: StartServer, home: Home) -> Server:
    home.write_config(session={"titles": "model"})
    return start()


def titled(server: Server, title: str) -> None:
    server.wait_notification("tiro/session/changed", lambda told: told["reason"] == "titled")
    assert view(server)["title"] == title


def test_the_title_agent_names_it_after_the_first_turn(naming: Server, provider: Provider) -> None:
    """M5.13; it is asked without tools, and once."""
    provider.script(replies.text("Use grep first."), replies.text('"Renaming a function."'))
    assert ask(naming, PROMPT)["text"] == "Use grep first."
    titled(naming, "Renaming a function")
    asked = provider.last
    assert asked.tool_names == []
    assert "50 characters" in asked.system
    assert "rename a function" in asked.messages[-1]["content"]
    assert "Use grep first." in asked.messages[-1]["content"]
    ask(naming, "and now?")
    assert len(provider.chats) == 3
    usage = naming.request("tiro/session/statistics")["usage"]
    assert usage["inputTokens"] > 0
    path = naming.request("tiro/session/save")["path"]
    assert json.loads(Path(path).read_text("utf-8"))["title"] == "Renaming a function"


def test_the_title_agent_can_be_the_user_s_own(
    start: StartServer, home: Home, provider: Provider
) -> None:
    """M5.3, M5.11: its prompt, and the parameters of its requests."""
    home.write_config(session={"titles": "model"})
    (home.config_dir / "agents").mkdir()
    front = "mode: primary\nhidden: true\ntemperature: 0.25\noptions: {seed: 7, max_tokens: 9}"
    (home.config_dir / "agents" / "title.md").write_text(f"---\n{front}\n---\nName it.")
    server = start()
    provider.script(replies.text("Yes."), replies.text("A name"))
    ask(server, PROMPT)
    titled(server, "A name")
    body = provider.last.body
    assert provider.last.system == "Name it."
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.25, 7, 9)


def test_the_answer_does_not_wait_and_the_user_s_own_title_wins(
    naming: Server, provider: Provider
) -> None:
    hold = replies.Hold()
    provider.script(replies.text("Yes."))
    provider.script(replies.Reply([replies.ROLE, hold, *replies.text("Late").steps[1:]]))
    assert ask(naming, PROMPT)["text"] == "Yes."
    hold.wait()
    assert view(naming)["title"] == "How do I rename a function everywhere?"
    naming.request("tiro/session/configure", {"title": "Mine"})
    hold.release()
    ask(naming, "again")
    assert view(naming)["title"] == "Mine"
    assert len(provider.chats) == 3


def test_settings_that_change_meanwhile_end_no_question(naming: Server, provider: Provider) -> None:
    """As with a summary; the title comes from who was asked."""
    hold = replies.Hold()
    provider.script(replies.text("Yes."), replies.stream(hold, replies.text_chunk("A name")))
    ask(naming, PROMPT)
    hold.wait()
    changed = {"providers": {"fake": {"headers": {"x-new": "1"}}}}
    naming.notify("workspace/didChangeConfiguration", {"settings": changed})
    assert naming.request("tiro/status")["problems"] == []
    hold.release()
    titled(naming, "A name")


def test_a_question_ends_with_its_session(naming: Server, provider: Provider) -> None:
    """Nobody could store the title any more."""
    hold = replies.Hold()
    provider.script(replies.text("Yes."), replies.stream(hold, replies.text_chunk("A name")))
    ask(naming, PROMPT)
    hold.wait()
    naming.request("tiro/session/new")
    assert provider.last.closed_by_client()
    hold.release()


def test_a_failure_leaves_the_first_line_and_is_tried_again(
    naming: Server, provider: Provider
) -> None:
    provider.script(
        replies.text("Yes."), replies.text("One line\nand another"), replies.text("No.")
    )
    provider.script(replies.text("Good title"))
    ask(naming, PROMPT)
    until(lambda: len(provider.chats) == 2)
    until(lambda: view(naming)["title"] == "How do I rename a function everywhere?")
    ask(naming, "again")
    titled(naming, "Good title")


def test_by_default_no_request_is_made(server: Server, provider: Provider) -> None:
    ask(server, PROMPT)
    assert view(server)["title"] == "How do I rename a function everywhere?"
    assert len(provider.chats) == 1


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Renaming", "Renaming"),
        ('  "Renaming."\n', "Renaming"),
        ("**Renaming**", "Renaming"),
        ("„Umbenennen“", "Umbenennen"),
        ("关于重命名", "关于重命名"),
        ("x" * 50, "x" * 50),
        ("x" * 51, None),
        ("", None),
        (" \n ", None),
        ("...", None),
        ("Here is a title:\nRenaming", None),
    ],
)
def test_what_is_a_title(text: str, title: str | None) -> None:
    """M5.13: one line, at most 50 characters, nothing else."""
    assert usable_title(Reply(text, "end_turn", [], None)) == title


def test_a_refusal_or_a_cut_answer_is_none() -> None:
    assert usable_title(Reply("Renaming", "refusal", [], None)) is None
    assert usable_title(Reply("Renaming", "max_tokens", [], None)) is None
    assert usable_title(Reply("Renaming", "tool_use", ["x"], None)) is None
