"""A text in the person's own editor."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tiro.chat.editor import edited
from tiro.chat.lines import PipedLines
from tiro.errors import InvalidInputError


class Person(PipedLines):
    """Somebody is there."""

    is_person = True


def written(tmp_path: Path, program: str) -> str:
    """An editor that is this program, in a folder whose name has a space."""
    script = tmp_path / "an editor.py"
    script.write_text(f"import sys, os, signal\n{program}\n", "utf-8")
    return f'"{sys.executable}" "{script}" --wait'


def test_it_takes_words_of_its_own_and_gives_what_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`$VISUAL` wins; the file is gone afterwards; Ctrl-C in the editor ends nothing of ours."""
    program = (
        "path = sys.argv[2]\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "os.kill(os.getppid(), signal.SIGINT)\n"
        "text = open(path, encoding='utf-8').read()\n"
        "open(path, 'w', encoding='utf-8').write(text.upper() + path)"
    )
    monkeypatch.setenv("VISUAL", written(tmp_path, program))
    monkeypatch.setenv("EDITOR", "false")
    usual = signal.getsignal(signal.SIGINT)
    text, _, path = edited(Person(), "Größe ", ".md").partition(" ")
    assert (text, path.endswith(".md"), os.path.exists(path)) == ("GRÖSSE", True, False)
    assert signal.getsignal(signal.SIGINT) is usual


@pytest.mark.parametrize(
    ("editor", "told"),
    [
        ("/nowhere/editor", "'/nowhere/editor' cannot be started (No such file"),
        ("false", "failed with exit code 1"),
        ("'", "no command line"),
    ],
)
def test_one_that_fails_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, editor: str, told: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor)
    with pytest.raises(InvalidInputError) as raised:
        edited(Person(), "text", ".md")
    assert told in str(raised.value)


def test_a_pipe_edits_nothing() -> None:
    with pytest.raises(InvalidInputError, match="Nobody is there"):
        edited(PipedLines(), "text", ".md")
