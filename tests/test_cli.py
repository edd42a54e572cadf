"""The command line itself: what it accepts, what it says, its exit codes; no server is started."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tiro import __version__, arguments, cli, errors
from tiro.exits import ABOUT, Exit
from tiro.protocol import types

COMMANDS = ["serve", "replay", "ask", "chat", "sessions", "edits", "local", "doctor", "schema"]
ALL_COMMANDS = [
    *COMMANDS,
    *(f"sessions {name}" for name in ("list", "show", "search", "export", "import", "delete")),
    *(f"sessions {name}" for name in ("rename", "restore", "trash", "prune")),
    *(f"edits {name}" for name in ("list", "undo", "redo")),
    *(f"local {name}" for name in ("list", "pull", "use", "remove")),
]


def check(
    capsys: pytest.CaptureFixture[str], line: str, code: int, *, out: str = "", err: str = ""
) -> None:
    """The exit code of this line, and what its two outputs hold."""
    assert cli.main(shlex.split(line)) == code
    said = capsys.readouterr()
    assert out in said.out
    assert err in said.err
    if code == Exit.WRONG_USE:
        assert not said.out
        assert said.err.startswith("tiro: ")
        assert len(said.err.splitlines()) == 1, "one sentence, no usage and no traceback"


@pytest.mark.parametrize(
    "line",
    [
        "fly",
        "ask",
        "ask hello --nonsense",
        "ask hello --file",
        "ask '  '",
        "ask ''",
        "ask hello --file /nowhere/at/all",
        "ask hello --file /",
        "sessions fly",
        "sessions list --limit many",
        "sessions list --limit -1",
        "sessions show",
        "sessions show latest --json --summary",
        "sessions delete",
        "sessions restore",
        "sessions rename latest",
        "sessions prune --older-than soon",
        "sessions prune --older-than 0d",
        "sessions prune --older-than 1e30d",
        "sessions prune --keep-under 9999999999999GB",
        "sessions prune --keep-under 5parsecs",
        "sessions search",
        "sessions search word --limit many",
        "sessions export",
        "sessions import",
        "sessions import /nowhere/at/all",
        "local fly",
        "local use",
        "serve now",
        "serve --record",
        "replay",
        "replay FILE --port many",
        "doctor please",
        "schema please",
    ],
)
def test_bad_line_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], line: str
) -> None:
    check(capsys, line, Exit.WRONG_USE)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--bogus", "there is no option --bogus; see `tiro --help`"),
        ("bogus", "there is no command 'bogus'; see `tiro --help`"),
        ("sesions list", "there is no command 'sesions', did you mean sessions? see `tiro --help`"),
        ("edits ud", "there is no command 'ud', did you mean undo? see `tiro edits --help`"),
        (
            "ask --modle=x hi",
            "there is no option --modle, did you mean --model? see `tiro ask --help`",
        ),
        ("doctor please", "'please' is one word too many; see `tiro doctor --help`"),
    ],
)
def test_bad_line_leads_on(capsys: pytest.CaptureFixture[str], line: str, told: str) -> None:
    """One line: the nearest word, and the help of just that command."""
    check(capsys, line, Exit.WRONG_USE, err=f"tiro: {told}\n")


@pytest.mark.parametrize("command", ["", *ALL_COMMANDS])
def test_every_command_tells_the_same_exit_codes(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """One table, in the README too; a word that no command knows is the same failure everywhere."""
    assert cli.main([*command.split(), "--help"]) == Exit.DONE
    told = capsys.readouterr().out
    table = {int(code): about for code, about in re.findall(r"^  (\d+) +(.+)$", told, re.M)}
    assert table == ABOUT
    assert set(table) == set(Exit)
    assert cli.main([*command.split(), "--no-such-option"]) == Exit.WRONG_USE


def test_readme_has_the_table_of_exit_codes() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    assert all(f"{code} {about}" in readme for code, about in ABOUT.items())


def test_bad_line_names_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, "fly", Exit.WRONG_USE, err="'fly'")
    check(capsys, "ask hello --file /nowhere", Exit.WRONG_USE, err="'/nowhere'")
    check(capsys, "ask hello --file /", Exit.WRONG_USE, err="'/' is a directory")


@pytest.mark.parametrize("line", ["", "sessions", "local"])
def test_missing_command_shows_the_help_with_examples(
    capsys: pytest.CaptureFixture[str], line: str
) -> None:
    """It is a wrong command line all the same, so nothing of it goes to stdout."""
    assert cli.main(shlex.split(line)) == Exit.WRONG_USE
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("usage: tiro")
    assert "examples:\n  tiro" in said.err
    assert arguments.EXIT_CODES in said.err
    assert cli.main([*shlex.split(line), "--help"]) == Exit.DONE
    assert capsys.readouterr().out == said.err


@pytest.mark.parametrize("command", ["pull", "use", "remove"])
def test_unknown_local_model_is_one_sentence_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """As an unknown session is; 3 is for a question that no model can answer."""
    assert cli.main(["local", command, "nothing-like-it"]) == Exit.FAILED
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("tiro: ")
    assert "'nothing-like-it'" in said.err
    assert len(said.err.splitlines()) == 1


def test_directory_is_no_model_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    check(capsys, f"local pull {tmp_path}", Exit.WRONG_USE, err="is a directory")


@pytest.mark.parametrize("command", ALL_COMMANDS)
def test_help_has_an_example_of_the_command(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert cli.main([*shlex.split(command), "--help"]) == Exit.DONE
    said = capsys.readouterr().out
    assert f"\n  tiro {command}" in said
    assert all(f"tiro {command}" in line for line in said.split("\n") if line.startswith("  tiro "))


def test_help_names_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == Exit.DONE
    said = capsys.readouterr().out
    assert all(f"\n    {command} " in said for command in COMMANDS)
    assert all(f"{code} " in said for code in (0, 1, 2, 3, 130))


def test_examples_are_lines_that_we_accept(capsys: pytest.CaptureFixture[str]) -> None:
    for examples in (
        arguments.EXAMPLES,
        arguments.SERVE_EXAMPLES,
        arguments.REPLAY_EXAMPLES,
        arguments.ASK_EXAMPLES,
        arguments.SESSIONS_EXAMPLES,
        arguments.LOCAL_EXAMPLES,
    ):
        for example in examples.splitlines():
            words = shlex.split(example.split("tiro ", 1)[1].partition("  ")[0].partition(" | ")[0])
            assert cli.parser().parse_args(words).act


def test_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, "--version", Exit.DONE, out=f"tiro {__version__}\n")


def test_version_loads_next_to_nothing() -> None:
    """The bar is 3 x an idle Python: what --version loads decides it, not a clock."""
    code = "import sys; from tiro.__main__ import main; main(); print(*sys.modules)"
    command = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    heavy = {"argparse", "msgspec", "asyncio", "json", "pygls", "httpx", "subprocess", "pathlib"}
    assert not heavy & loaded
    assert not {name for name in loaded if name.startswith(("tiro.session", "tiro.protocol"))}


def test_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tiro", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"tiro {__version__}\n"


def test_schema_is_json_with_every_method(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schema"]) == Exit.DONE
    schema = json.loads(capsys.readouterr().out)
    assert json.dumps(schema).count("tiro/session/get") >= 1
    text = json.dumps(schema)
    assert not [name for name in types.METHODS if f'"{name}"' not in text]


def test_local_list_shows_the_default_and_honest_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["local", "list"]) == Exit.DONE
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("* smollm2-135m")
    assert "not pulled" in first
    assert "no tools" in first


def test_local_file_comes_goes_and_is_chosen(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`pull PATH`, `use`, `remove` on a file of the user's own."""
    (tmp_path / "mine.gguf").write_bytes(b"GGUF" + bytes(4096))
    check(capsys, f"local pull {tmp_path}/mine.gguf", Exit.DONE, out="mine")
    check(capsys, "local use mine", Exit.DONE)
    check(capsys, "local list", Exit.DONE, out="* mine")
    check(capsys, "local remove mine", Exit.DONE, out="mine is removed")
    check(capsys, "local remove mine", Exit.FAILED, err="'mine'")
    check(capsys, "local list", Exit.DONE, out="* smollm2-135m")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.TiroError, Exit.FAILED),
        (errors.SessionNotFoundError, Exit.FAILED),
        (errors.ModelError, Exit.NO_MODEL),
        (BrokenPipeError, Exit.UNREAD),
        (errors.ModelNotConfiguredError, Exit.NO_MODEL),
        (errors.InvalidInputError, Exit.WRONG_USE),
        (KeyboardInterrupt, Exit.CANCELLED),
    ],
)
def test_error_has_an_exit_code_and_no_traceback(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
    code: int,
) -> None:
    def fail(given: object) -> int:
        raise error("It is broken")

    monkeypatch.setattr(cli, "doctor", fail)
    assert cli.main(["doctor"]) == code
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    assert said.err in ("", "tiro: It is broken\n")


def test_what_the_system_refuses_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """B15: also where nobody has better words for it."""
    check(capsys, f"local pull {'n' * 300}", Exit.FAILED, err="could not be used: File name too")
    assert cli.main(["local", "pull", "n" * 300]) == Exit.FAILED
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1


def test_a_count_may_be_larger_than_any_there_is() -> None:
    assert arguments.count("20") == 20
    assert 10**12 < arguments.count("9" * 5000) < 2**63
