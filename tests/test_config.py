"""Configuration to the letter of config.md: sources, precedence, problems, keys, directories."""

import asyncio
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiro.agents.permissions import PERMISSION_SETS, Rules
from tiro.assistant.model_choice import Models
from tiro.config import directories
from tiro.config.files import Config, load
from tiro.config.settings import Doubts, Settings
from tiro.errors import ModelNotConfiguredError
from tiro.models.model import ModelFacts, Price
from tiro.models.providers import Timeouts, offer

EVERYTHING = """
model: anthropic/claude-sonnet-4-5
providers:
  anthropic: {api: anthropic, base_url: "https://api.anthropic.com", api_key_env: A_KEY}
  mine:
    api: openai
    base_url: "http://127.0.0.1:9/v1"
    api_key: k-1
    headers: {X-A: b}
    proxy: "http://127.0.0.1:3128"
    timeout_seconds: 5
    default_model: m
    models:
      m:
        context_window: 8000
        max_output_tokens: 100
        price_per_million: {input: 1, output: 2.5, cache_read: 0.1}
agent: plan
session:
  max_history: 7
  mode: memo
  limit: {chars: 0, messages: 5}
  budget_ratio: 0.5
  resize: {every_n_turns: 3, max_messages_text_length: 100, max_keep_messages_count: 9}
  memo: {enabled: true, instruct: [a, b]}
  summary: {enabled: false, message_buffer_limit: 50, message_buffer_min: 5, model: openai/x}
  autosave: false
  titles: model
  fsync: message
  resume: latest
  ttl_seconds: 60
  redact: false
turn: {max_steps: 9, max_output_tokens: 100, budget: {tokens: 1000, usd: 0.5}}
permission_set: open
permission: {bash: allow, read: {"*.pem": ask, "*": allow}, "*": ask}
store: {kind: sqlite, path: /x}
log: {level: debug, file: /y}
"""


def loaded(directory: Path, text: str | bytes = "", *roots: Path, **editor_settings: Any) -> Config:
    """The configuration with this text in the user's file."""
    directory.mkdir(exist_ok=True)
    data = text if isinstance(text, bytes) else text.encode()
    (directory / "config.yaml").write_bytes(data)
    return load(directory, roots, editor_settings)


def workspace(root: Path, text: str) -> Path:
    """A workspace with this text in its own file."""
    (root / ".tiro").mkdir(parents=True)
    (root / ".tiro" / "config.yaml").write_text(text)
    return root


def only_problem(found: Config) -> str:
    assert len(found.problems) == 1, found.problems
    return found.problems[0]


# Defaults and the whole file


def test_defaults_are_those_of_the_document(config_dir: Path) -> None:
    found = load()
    settings = found.settings
    assert (found.problems, found.files) == ([], [])
    assert (settings.model, settings.agent, settings.permission_set) == (None, "build", "strict")
    session = settings.session
    assert (session.max_history, session.mode, session.budget_ratio) == (100, "lite", 0.75)
    assert (session.limit.chars, session.limit.messages) == (None, None)
    assert session.resize.every_n_turns == 8
    assert session.resize.max_messages_text_length is None  # U8.2: the shipped server has a budget
    assert (session.summary.enabled, session.summary.message_buffer_min) == (True, 10)
    assert session.summary.message_buffer_limit is None  # U8.4
    assert (session.autosave, session.titles, session.fsync) == (True, "first_line", "turn")
    assert (session.resume, session.ttl_seconds, session.redact) == ("ask", None, True)
    assert (settings.turn.max_steps, settings.turn.budget.usd) == (50, None)
    assert (settings.store.kind, settings.log.level) == ("files", "warning")
    assert list(settings.providers) == [
        *("anthropic", "openai", "openrouter", "ollama", "llamacpp", "local")
    ]


def test_every_key_of_the_document_is_taken(tmp_path: Path) -> None:
    found = loaded(tmp_path, EVERYTHING)
    settings = found.settings
    assert found.problems == []
    assert found.files == [tmp_path / "config.yaml"]
    mine = settings.providers["mine"]
    assert mine.models == {"m": ModelFacts(8000, 100, Price(1.0, 2.5, 0.1))}
    assert (mine.api_key, mine.headers, mine.timeout_seconds) == ("k-1", {"X-A": "b"}, 5.0)
    assert (mine.proxy, mine.default_model) == ("http://127.0.0.1:3128", "m")
    assert settings.session.memo.instruct == ["a", "b"]
    assert settings.session.limit.chars == 0
    assert settings.session.summary.model == "openai/x"
    assert settings.turn.budget.tokens == 1000
    assert settings.permission["read"] == {"*.pem": "ask", "*": "allow"}
    assert (settings.store.path, settings.log.file) == ("/x", "/y")
    assert settings.agent == "plan"


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "---\n", "session:\nturn: {}\n"])
def test_empty_file_and_empty_sections_change_nothing(tmp_path: Path, text: str) -> None:
    found = loaded(tmp_path, text)
    assert (found.settings, found.problems) == (load(tmp_path / "none").settings, [])
    assert found.files == [tmp_path / "config.yaml"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("session: {max_history: null}", lambda s: s.session.max_history is None),
        ("session: {budget_ratio: null}", lambda s: s.session.budget_ratio is None),
        ("agent: null", lambda s: s.agent == "build"),
        ("session: {mode: null}", lambda s: s.session.mode == "lite"),
        ("\ufeffagent: plan", lambda s: s.agent == "plan"),
        ("{agent: plan}", lambda s: s.agent == "plan"),
        ("model: openai/a/b", lambda s: s.model == "openai/a/b"),
        ("session: {budget_ratio: 1}", lambda s: s.session.budget_ratio == 1.0),
    ],
)
def test_values_that_need_care(tmp_path: Path, text: str, read: Any) -> None:
    found = loaded(tmp_path, text)
    assert read(found.settings)
    assert found.problems == []


# Problems


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("sesion: {}", 1, "sesion is no setting (did you mean session?)"),
        ("\n\nfoo: 1", 3, "foo is no setting"),
        (
            "session: {\nmax_history: many}",
            2,
            "a whole number from 1 up to 1,000,000,000 or null, not 'many'",
        ),
        ("session:\n  max_history: 0", 2, "from 1 up to 1,000,000,000 or null, not 0"),
        ("session: {max_history: 1.5}", 1, "from 1 up to 1,000,000,000 or null, not 1.5"),
        ("session: {autosave: 1}", 1, "session.autosave must be true or false, not 1"),
        ("session: {mode: big}", 1, "session.mode must be lite or memo, not 'big'"),
        ("session: {fsync: no}", 1, "session.fsync must be message, never or turn, not false"),
        ("session: {budget_ratio: 2}", 1, "must be a number above 0 up to 1 or null, not 2"),
        ("session: {limit: {chars: -1}}", 1, "session.limit.chars must be a whole number from 0"),
        ("session: {limit: 5}", 1, "session.limit must be a section with keys, not 5"),
        ("session: [1]", 1, "session must be a section with keys, not [1]"),
        ("session: {memo: {instruct: {a: 1}}}", 1, 'text, a list of text or null, not {"a": 1}'),
        ("providers: {openai: {headers: {a: 1}}}", 1, "must be a table of text, not what is there"),
        ("turn: {budget: {usd: free}}", 1, "turn.budget.usd must be a number"),
        ("permission_set: lax", 1, "permission_set must be open or strict, not 'lax'"),
        ("permission: {bahs: allow}", 1, "is no permission key (did you mean bash?)"),
        ("permission: {webfetch: deny}", 1, "is no permission key; there are read, glob"),
        ("providers: [x]", 1, "providers must be a table of names"),
        ("providers: {x: 1}", 1, "providers.x must be a section with keys"),
        ("providers: {x: {base_url: 'http://a'}}", 1, "providers.x has no api"),
        ("providers: {x: {api: openai}}", 1, "providers.x has no base_url"),
        ("providers: {openai: {api: opnai}}", 1, "anthropic, local, openai or null, not 'opnai'"),
        ("agent: [a]", 1, 'agent must be text, not ["a"]'),
        ("log: {level: loud}", 1, "log.level must be debug, error, info or warning, not 'loud'"),
        ("? [a, b]\n: 1", None, "no valid YAML"),
        ("on: 1", 1, "is no setting"),
        ("1: 1", 1, "1 is no setting"),
        ("log: {level: 2026-01-01}", 1, "not '2026-01-01'"),
        ("log: {level: !!binary AAAA}", 1, "log.level must be debug"),
        ('"\\e[31m\\u202e": 1', 1, "'\\x1b[31m\\u202e' is no setting"),
        (f"{'k' * 300}: 1", 1, f"'{'k' * 56}... is no setting"),
        ('agent: "a\\e[31m"', 1, "agent must not hold the control character U+001B"),
        ('store: {path: "a\\0"}', 1, "store.path must not hold the control character U+0000"),
        ('agent: "\\u202e"', 1, "agent must not hold the control character U+202E"),
        ('session: {memo: {instruct: ["a", "\\a"]}}', 1, "instruct must not hold the control"),
        ('providers: {openai: {headers: {"a\\0": b}}}', 1, "headers must not hold the control"),
        ('providers: {"a\\e": {api: local}}', 1, "'a\\x1b' must not hold the control character"),
        ('providers: {openai: {models: {"m\\b": {}}}}', 1, "'m\\x08' must not hold the control"),
        (f"session: {{max_history: {'9' * 5000}}}", 1, "a whole number from 1 up to 1,000,000,000"),
        ("session: {max_history: 2_000_000_000}", 1, "up to 1,000,000,000 or null, not 2000000000"),
        (f"session: {{max_history: 1{':59' * 80_000}}}", 1, "must be a whole number from 1 up to"),
        ("session: {max_history: true}", 1, "must be a whole number from 1 up to"),
        ("session: {budget_ratio: .nan}", 1, "must be a number above 0 up to 1 or null"),
        ("session: {budget_ratio: .inf}", 1, "must be a number above 0 up to 1 or null"),
        ("session: {budget_ratio: true}", 1, "must be a number above 0 up to 1 or null, not true"),
        ("session: {ttl_seconds: .inf}", 1, "must be a number above 0 up to 1,000,000,000 or null"),
        ("providers: {openai: {timeout_seconds: .inf}}", 1, "above 0 up to 1,000,000,000 or null"),
        ("retention: {max_age_days: 1e300}", 1, "a number above 0 up to 36,500 or null"),
        ("turn: {budget: {usd: .nan}}", 1, "turn.budget.usd must be a number above 0"),
    ],
)
def test_one_wrong_key_is_told_and_costs_only_itself(
    tmp_path: Path, text: str, line: int | None, told: str
) -> None:
    found = loaded(tmp_path, text + "\n")
    problem = only_problem(found)
    where = str(tmp_path / "config.yaml") + (f", line {line}: " if line else "")
    assert problem.startswith(where), problem
    assert told in problem
    settings = msgspec.structs.replace(found.settings, doubts=Doubts())
    assert settings == load(tmp_path / "none").settings


@pytest.mark.parametrize(
    "wrong",
    ["10", "-1", "0", "1e30", ".nan", ".inf", "true", "'8k'", "9" * 30, "511", "1_000_000_001"],
)
def test_a_context_window_that_no_model_has_is_refused(tmp_path: Path, wrong: str) -> None:
    text = f"providers: {{openai: {{models: {{m: {{context_window: {wrong}}}}}}}}}"
    found = loaded(tmp_path, text)
    allowed = "a whole number from 512 up to 1,000,000,000 or null"
    assert f"m.context_window must be {allowed}, not " in only_problem(found)
    assert found.settings.providers["openai"].models["m"] == ModelFacts()


@pytest.mark.parametrize("wrong", ["-1", ".nan", ".inf", "true", "1_000_001"])
def test_a_price_that_nobody_asks_is_refused(tmp_path: Path, wrong: str) -> None:
    text = f"providers: {{openai: {{models: {{m: {{price_per_million: {{input: {wrong}}}}}}}}}}}"
    found = loaded(tmp_path, text)
    assert "input must be a number from 0 up to 1,000,000, not " in only_problem(found)


def test_deep_key_is_told_with_its_line(tmp_path: Path) -> None:
    text = "providers:\n openai:\n  models:\n   m:\n    context_window: big\n"
    problem = only_problem(loaded(tmp_path, text))
    assert ", line 5: providers.openai.models.m.context_window must be a whole" in problem


def test_wrong_keys_leave_the_others_alone(tmp_path: Path) -> None:
    text = "agent: plan\nsession:\n  max_history: x\n  mode: memo\n  foo: 1\nturn: {max_steps: 3}\n"
    found = loaded(tmp_path, text)
    assert len(found.problems) == 2
    settings = found.settings
    assert (settings.agent, settings.session.mode) == ("plan", "memo")
    assert (settings.turn.max_steps, settings.session.max_history) == (3, 100)


def test_key_given_twice_is_told_and_the_later_one_holds(tmp_path: Path) -> None:
    found = loaded(tmp_path, "session:\n  mode: memo\n  max_history: 5\n  mode: lite\n")
    assert ", line 4: session.mode is given twice" in only_problem(found)
    assert found.settings.session.mode == "lite"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"a: [1\nb: 2\n", ", line 1: this is no valid YAML (the bracket that opens here"),
        (b"b: 2\na: {x: 1\n\n", ", line 2: this is no valid YAML (the bracket that opens"),
        (b'a: 1\nb: "x\nc: 2\n', ", line 2: this is no valid YAML (the quotes that open here"),
        (b"a: 1\nfoo\nb: 2\n", ", line 2: this is no valid YAML (this is no `key: value`"),
        (b"agent: plan\n\tx: 1\n", ", line 2: this is no valid YAML (a tab cannot indent"),
        (b"session:\n\tx: 1\n", ", line 2: this is no valid YAML (a tab cannot indent"),
        (b"a: 1\nb: @x\n", ", line 2: this is no valid YAML (a text that begins with @ needs"),
        (b"a: 1\nb: x: y\n", ", line 2: this is no valid YAML (a text with a colon needs"),
        (b"s:\n  a: 3\n b: 4\n", ", line 3: this is no valid YAML"),
        (b"a: 1\n---\nb: 2\n", "no valid YAML"),
        (b"- a\n", ' must hold keys and values, not ["a"]'),
        (b"just text\n", " must hold keys and values, not 'just text'"),
        (b"agent: caf\xe9\n", ", line 1: this is not UTF-8"),
        (b"x: 1\n\xff", ", line 2: this is not UTF-8"),
        (b"\0" * 100, ", line 1: YAML cannot hold the character U+0000"),
        (b"a: 1\nb: \x1b[31m\n", ", line 2: YAML cannot hold the character U+001B"),
        (b'agent: "\\ud83d"\n', ", line 1: this is no valid YAML"),
        (b"a: &a {x: 1}\nb: {<<: *a}\n", ", line 2: this is no valid YAML (`<<` is not"),
        (b"x: !!python/object:os.system a\n", "no valid YAML"),
        (b"[" * 5000, "deeper than 100 levels"),
        (b"a: " + b"[" * 101 + b"]" * 101, ", line 1: this is nested deeper than 100 levels"),
        (b"#" * 250_001, " holds more YAML than 250,000 characters"),
        (b"model: " + b"x" * 250_001, " holds more YAML than 250,000 characters"),
        (b"a: &a [*a]\n", ", line 1: an alias stands within what it is the name of"),
        (b"agent: plan\n? &a {b: *a}\n: 1\n", ", line 2: an alias stands within"),
        (b"\n".join(b"k%d: 1" % n for n in range(5001)), "this stands for more than 10,000 values"),
        (b"#" * 1_000_001, " is larger than 1,000,000 bytes"),
    ],
)
def test_file_that_cannot_be_used_is_told_and_defaults_hold(
    tmp_path: Path, data: bytes, told: str
) -> None:
    found = loaded(tmp_path, data)
    problem = only_problem(found)
    assert problem.startswith(f"{tmp_path / 'config.yaml'}")
    assert told in problem
    assert "; the whole file is ignored" in problem
    assert "\n" not in problem
    assert found.files == [tmp_path / "config.yaml"], "it is there, whatever is in it"
    settings = msgspec.structs.replace(found.settings, unread=None, doubts=Doubts())
    assert settings == load(tmp_path / "no").settings


BROKEN = "it: [is broken\n"
EVERYONE, NOBODY = ("anthropic", "openai", "ollama", "local"), ()


@pytest.mark.parametrize(
    ("text", "doubted", "is_model_doubted"),
    [
        (f"model: local\n{BROKEN}", EVERYONE, False),
        (f"providers: {{}}\n{BROKEN}", EVERYONE, False),
        ("model:local/small\n", EVERYONE, False),
        (f"agent: plan\n{BROKEN}", NOBODY, False),
        ("model: [local/small]", NOBODY, True),
        ("modle: local/small", NOBODY, True),
        ("Model: local/small", NOBODY, True),
        ("default_model: local/small", NOBODY, True),
        ("modle: local/x\nmodel: local/small", NOBODY, False),
        ("provider: ollama", EVERYONE, False),
        ("providers: [ollama]", EVERYONE, False),
        ("providers: {openai: http://127.0.0.1:1}", ("openai",), False),
        ("providers: {openai: {api: opnai}}", ("openai",), False),
        ("providers: {openai: {url: http://127.0.0.1:1}}", ("openai",), False),
        ("providers: {openai: {base_urll: http://127.0.0.1:1}}", ("openai",), False),
        ("providers: {openai: {temperature: 1}}", NOBODY, False),
        ("agnet: plan", NOBODY, False),
    ],
)
def test_a_slip_about_who_hears_a_prompt_lets_nobody_else_hear_it(
    tmp_path: Path, text: str, doubted: tuple[str, ...], is_model_doubted: bool
) -> None:
    """Whoever chose a local provider must not reach a hosted one by a misspelt word."""
    doubts = loaded(tmp_path, text).settings.doubts
    assert tuple(name for name in EVERYONE if doubts.about(name)) == doubted
    assert (doubts.model is not None) == is_model_doubted
    for told in filter(None, (doubts.everyone, doubts.model, *doubts.providers.values())):
        assert told.startswith(str(tmp_path / "config.yaml"))


def test_what_stands_above_a_slip_is_certain(tmp_path: Path) -> None:
    root = workspace(tmp_path / "ws", "model: ollama/x")
    mine = {"api": "openai", "base_url": "http://127.0.0.1:1"}
    found = loaded(tmp_path / "cfg", f"model: [{BROKEN}", root, providers={"mine": mine})
    assert found.settings.doubts.about("mine") is None
    assert found.settings.doubts.about("ollama") is not None
    found = loaded(tmp_path / "cfg", "modle: a/b", root)
    assert (found.settings.model, found.settings.doubts) == ("ollama/x", Doubts())


def test_a_broken_file_of_a_workspace_may_have_named_a_model(tmp_path: Path) -> None:
    root = workspace(tmp_path / "ws", f"model: ollama/x\n{BROKEN}")
    found = loaded(tmp_path / "cfg", "model: openai/x", root)
    assert (found.settings.model, found.settings.doubts.about("openai")) == (None, None)
    assert str(root) in (found.settings.doubts.model or "")
    assert loaded(tmp_path / "cfg", "", root, model="openai/x").settings.model == "openai/x"


def bomb(first: str, step: str) -> str:
    """A small text that stands for a thousand million values under `model` and the like."""
    lines = [f"- &a0 {first}", *(f"- &a{n} {step.format(f'*a{n - 1}')}" for n in range(1, 10))]
    return "x:\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "step",
    [
        "[" + ", ".join(["{0}"] * 9) + "]",
        "{{" + ", ".join(f"k{n}: {{0}}" for n in range(9)) + "}}",
        "{{" + ", ".join(f"[k{n}, {{0}}]: 1" for n in range(9)) + "}}",
        "{{<<: [" + ", ".join(["{0}"] * 9) + "], k: 1}}",
    ],
)
@pytest.mark.parametrize(
    "key",
    [*("model", "agent", "permission", "session", "providers", "turn"), "providers: {x: {headers"],
)
def test_aliases_that_stand_for_very_much_are_refused(tmp_path: Path, step: str, key: str) -> None:
    """A repository's file of a few hundred bytes must not keep every command from its work."""
    closing = "}" * key.count("{")
    text = bomb("[y, y]", step) + f"{key}: *a9{closing}\n"
    problem = only_problem(load(tmp_path, [workspace(tmp_path / "ws", text)]))
    assert problem.startswith(str(tmp_path / "ws" / ".tiro" / "config.yaml") + ", line ")
    assert "this stands for more than 10,000 values, each alias written out" in problem


@pytest.mark.parametrize("key", ["model", "permission", "session", "turn", "agent"])
def test_a_long_text_is_not_taken_very_often(tmp_path: Path, key: str) -> None:
    """Nine thousand times 100 kB would be written out to say what is wrong with them."""
    text = f"x: &x {'y' * 100_000}\n{key}: [{', '.join(['*x'] * 9_000)}]\n"
    assert "stands for more than 10,000 values" in only_problem(loaded(tmp_path, text))


def test_aliases_may_say_something_more_than_once(tmp_path: Path) -> None:
    text = "permission: {edit: &mine {'docs/**': allow}, write: *mine}"
    found = loaded(tmp_path, text)
    assert found.problems == []
    assert found.settings.permission["write"] == {"docs/**": "allow"}


def test_a_date_is_text_where_text_belongs(tmp_path: Path) -> None:
    text = "providers: {openai: {headers: {anthropic-version: 2023-06-01}, default_model: 1.5-pro}}"
    found = loaded(tmp_path, text)
    assert found.problems == []
    assert found.settings.providers["openai"].headers == {"anthropic-version": "2023-06-01"}


def test_of_very_many_wrong_keys_the_first_are_told_and_how_many_there_are(tmp_path: Path) -> None:
    """Each is a notice of its own in an editor."""
    found = loaded(tmp_path, "".join(f"key{n}: 1\n" for n in range(4_000)))
    assert len(found.problems) == 21
    assert found.problems[0].endswith(", line 1: key0 is no setting; it is ignored")
    assert found.problems[-1] == "3,980 more keys and values are wrong; correct these first"


def test_a_long_value_is_not_told_as_a_whole(tmp_path: Path) -> None:
    problem = only_problem(loaded(tmp_path, f"model: {'x' * 200_000}"))
    assert len(problem) < 500


@pytest.mark.parametrize("name", ["config.yaml", ".tiro/config.yaml"])
def test_a_link_that_leads_nowhere_is_told(tmp_path: Path, name: str) -> None:
    """Somebody put settings there, and may believe that they hold."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(tmp_path / "away.yaml")
    found = load(tmp_path, [tmp_path])
    problem = only_problem(found)
    assert problem.startswith(
        f"{tmp_path / name} cannot be read: it is a link to what is not there"
    )
    assert found.settings.unread is not None


def test_a_directory_that_is_a_link_to_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "cfg").symlink_to(tmp_path / "away")
    told = f"cannot be read: {tmp_path / 'cfg'} is a link to what is not there"
    assert told in only_problem(load(tmp_path / "cfg"))


def test_a_link_to_itself_and_a_device_are_told(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").symlink_to(tmp_path / "config.yaml")
    assert "cannot be read (Too many levels" in only_problem(load(tmp_path))
    (tmp_path / "config.yaml").unlink()
    (tmp_path / "config.yaml").symlink_to("/dev/zero")
    assert "is no regular file" in only_problem(load(tmp_path))


def test_a_file_of_another_user_is_told_and_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a directory that others may write to, anybody could name a command that prints a key."""
    (tmp_path / "config.yaml").write_text("agent: plan")
    asked = os.fstat

    def other(descriptor: int) -> os.stat_result:
        fields = list(asked(descriptor))
        fields[stat.ST_UID] = os.getuid() + 1
        return os.stat_result(fields)

    monkeypatch.setattr(os, "fstat", other)
    found = load(tmp_path)
    assert "config.yaml belongs to another user; the whole file is ignored" in only_problem(found)
    assert found.settings.agent == "build"


@pytest.mark.parametrize(
    "given",
    [
        {"agent": "a\0"},
        {"session": {"max_history": True}},
        {"session": {"max_history": 10**30}},
        {"session": {"budget_ratio": float("nan")}},
        {"session": {"ttl_seconds": float("inf")}},
        {"turn": {"max_steps": -1}},
        {"store": {"path": "\ud800"}},
        {"log": {"level": 10}},
        {"ses\0sion": {}},
    ],
)
def test_wrong_settings_of_an_editor_are_told_by_key(tmp_path: Path, given: dict[str, Any]) -> None:
    found = load(tmp_path, [], given)
    assert only_problem(found).startswith("The editor's settings: ")
    assert only_problem(found).isprintable()
    assert found.settings == load(tmp_path).settings


def test_file_that_is_a_pipe_or_a_folder_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    assert "is no regular file" in only_problem(load(tmp_path))
    os.remove(tmp_path / "config.yaml")
    os.mkdir(tmp_path / "config.yaml")
    assert "config.yaml" in only_problem(load(tmp_path))


def test_config_directory_that_is_a_file_is_told(tmp_path: Path) -> None:
    """B15: CFG is a file; the server works all the same."""
    (tmp_path / "cfg").write_text("")
    found = load(tmp_path / "cfg")
    assert "its folder is a file" in only_problem(found)
    assert load(tmp_path / "missing" / "deeper").problems == []


def test_unreadable_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "config.yaml").write_text("agent: plan")
    monkeypatch.setattr(os, "open", refuse)
    assert "cannot be read (Permission denied)" in only_problem(load(tmp_path))


@given(st.integers(0, len(EVERYTHING)), st.integers(0, 40), st.text(max_size=6))
def test_damaged_text_never_raises(at: int, length: int, put_in: str) -> None:
    """Whatever a typing error does to a file, it is told and the rest holds."""
    with tempfile.TemporaryDirectory() as folder:
        text = EVERYTHING[:at] + put_in + EVERYTHING[at + length :]
        found = loaded(Path(folder), text.encode("utf-8", "replace"))
    assert isinstance(found.settings.session.max_history, int | None)
    assert all("\n" not in problem for problem in found.problems)


@given(st.binary(max_size=60))
def test_any_bytes_never_raise(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        loaded(Path(folder), data)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    *("session", "limit", "chars", "mode", "turn", "budget", "permission", "read"),
                    *("providers", "openai", "models", "m", "api_key", "headers", "model", "x"),
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["session", "turn", "permission", "providers", "model", "log"]), json_values
    )
)
def test_any_editor_settings_never_raise(settings: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = load(Path(folder), [], settings)
    rules = Rules(config=found.settings.permission)
    assert rules.decide("read", "a").kind in ("allow", "ask", "deny")


# Addresses


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            "localhost:8080/v1",
            "needs http:// or https:// in front, such as http://localhost:8080/v1",
        ),
        ("'127.0.0.1:1'", "such as http://127.0.0.1:1"),
        ("'[::1]:80/v1'", "such as http://[::1]:80/v1"),
        ("models.example.org/v1", "such as https://models.example.org/v1"),
        ("u:SECRET@localhost:8/v1?key=SECRET", "such as http://localhost:8/v1"),
        ("SECRET", "needs http:// or https:// in front, such as http://127.0.0.1:8080/v1"),
        ("''", "needs http:// or https:// in front"),
        ("12", "must be an address such as http://127.0.0.1:8080/v1, not 12"),
        ("true", "must be an address such as http://127.0.0.1:8080/v1, not true"),
        ("[SECRET]", "must be an address such as http://127.0.0.1:8080/v1, not what is there"),
        ("htp://a/v1", "must begin with http:// or https://, not with htp://"),
        ("http://a:99999/v1", "has a wrong port: after the colon comes a number from 1 to 65535"),
        ("http://a:8080v1", "has a wrong port"),
        ("http://a:0/v1", "has a wrong port"),
        ("'http://['", "is no address"),
        ("http://", "is no address"),
        ("'http://my host/v1'", "is no address"),
    ],
)
def test_a_wrong_address_is_told_and_nothing_is_sent_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, told: str
) -> None:
    """Not to the built-in address either: whoever writes another one does not mean that one."""
    monkeypatch.setenv("OPENAI_API_KEY", "k-123456")
    text = f"providers:\n  openai:\n    base_url: {written}\n"
    found = loaded(tmp_path, text)
    problem = only_problem(found)
    assert problem.startswith(f"{tmp_path / 'config.yaml'}, line 3: providers.openai.base_url ")
    assert told in problem
    assert problem.endswith("; nothing is sent there until it is corrected")
    assert "SECRET" not in problem
    assert "api.openai.com" not in found.settings.providers["openai"].base_url
    models = Models(found.settings.providers, {}, tmp_path)
    with pytest.raises(ModelNotConfiguredError, match="openai, whose key is set, cannot be used"):
        asyncio.run(models.choose(None))


@pytest.mark.parametrize("written", ["proxy.test:3128", "12", "ftp://proxy.test"])
def test_a_wrong_proxy_is_told_and_nothing_goes_around_it(tmp_path: Path, written: str) -> None:
    text = f"providers: {{openai: {{api_key: k, proxy: '{written}'}}}}"
    text = text.replace("'12'", "12")
    found = loaded(tmp_path, text)
    assert "providers.openai.proxy " in only_problem(found)
    with pytest.raises(ModelNotConfiguredError, match="check its proxy setting"):
        asyncio.run(Models(found.settings.providers, {}, tmp_path).choose(None))


@pytest.mark.parametrize(
    "written", ["https://u:p@a.test:1/v1?k=1", "HTTP://a_b/v1", "http://[::1]:80", "http://ünï.de"]
)
def test_an_odd_address_may_be_a_good_one(tmp_path: Path, written: str) -> None:
    found = loaded(
        tmp_path, f"providers: {{openai: {{base_url: '{written}', proxy: 'socks5://p:1'}}}}"
    )
    assert found.problems == []
    assert found.settings.providers["openai"].base_url == written


@pytest.mark.parametrize(
    "written",
    [
        *("localhost:6379", "http://h:1", "redis://u:SECRET@h:abc/0", "redis://u:SECRET@[x", "12"),
        *("redis://h:0", "redis://u:SECRET@h:99999", "'redis://my host'", "'unix://'", "''"),
    ],
)
def test_a_wrong_store_is_told_and_none_is_taken_in_its_place(tmp_path: Path, written: str) -> None:
    """U9.5: with file, line and path; the server starts, and no password is told."""
    found = loaded(tmp_path, f"store:\n  kind: redis\n  url: {written}\n")
    problem = only_problem(found)
    assert problem.startswith(f"{tmp_path / 'config.yaml'}, line 3: store.url must be an address")
    assert problem.endswith("; nothing is stored there until it is corrected")
    assert "SECRET" not in problem
    assert found.settings.store.url
    assert ("SECRET" in found.settings.secrets()) == ("SECRET" in written)


@pytest.mark.parametrize(
    "written",
    ["redis://:p@h:1/2?x=1", "rediss://[::1]", "unix:///a/b", "unix://u:p@/a", "redis://"],
)
def test_a_good_store_is_taken(tmp_path: Path, written: str) -> None:
    found = loaded(tmp_path, f"store: {{kind: redis, url: '{written}'}}")
    assert found.problems == []
    assert found.settings.store.url == written


# Rules that cannot be understood


def rules_of(found: Config) -> Rules:
    """The rules that hold for an agent with none of its own."""
    settings = found.settings
    return Rules(
        config=settings.permission,
        default=PERMISSION_SETS[settings.permission_set],
        workspace=settings.workspace_permission,
        unread=settings.unread,
    )


@pytest.mark.parametrize(
    "data",
    [
        b"permission: {read: {'*.pem': deny}\nagent: plan\n",
        b"permission:\n  read: deny\n bash: deny\n",
        b"- permission: {read: deny}\n",
        "permission: {read: deny}".encode("utf-16"),
        b"# caf\xe9\npermission: {read: deny}",
        b"#" * 1_000_001,
    ],
)
@pytest.mark.parametrize("is_workspace", [False, True])
def test_a_file_that_cannot_be_used_allows_nothing_unasked(
    tmp_path: Path, data: bytes, is_workspace: bool
) -> None:
    """It may hold denials, and nobody knows of what; also against what the editor allows."""
    root = workspace(tmp_path / "ws", "")
    (root / ".tiro/config.yaml").write_bytes(data if is_workspace else b"")
    mine = b"" if is_workspace else data
    found = loaded(tmp_path / "cfg", mine, root, permission={"*": "allow"})
    problem = only_problem(found)
    told = "; the whole file is ignored, and as it may forbid something, everything asks"
    assert told in problem
    for key in ("read", "glob", "bash", "write"):
        decision = rules_of(found).decide(key, "a.pem")
        assert decision.kind == "ask"
        assert "config.yaml cannot be used" in decision.rule
        assert decision.source == ("workspace" if is_workspace else "config")
    assert rules_of(found).decide("read", ".env").kind == "deny", "an ask lifts no denial"


def test_a_broken_file_without_rules_asks_no_more_than_before(tmp_path: Path) -> None:
    found = loaded(tmp_path, "agent: [plan\nsession: {mode: memo}\n")
    assert only_problem(found).endswith("; the whole file is ignored")
    assert rules_of(found).decide("read", "a").kind == "allow"
    (tmp_path / "file").write_text("")
    assert load(tmp_path / "file").settings.unread is None, "there is no file to be read"


@pytest.mark.parametrize(
    ("text", "told", "denied", "others"),
    [
        ("{bash: dney}", "permission.bash must be allow, ask, deny or", "bash", "allow"),
        ("{bash: no}", "permission.bash must be allow, ask, deny or", "bash", "allow"),
        ("{bash: }", "permission.bash must be allow, ask, deny or", "bash", "allow"),
        ("{bash: [deny]}", "permission.bash must be a table of patterns", "bash", "allow"),
        ("{read: {'*.pem': dney}}", "permission.read must be allow, ask", "read", "allow"),
        ("{read: {'': ask}}", "permission.read must not have an empty", "read", "allow"),
        (
            "{read: {'{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}': ask}}",
            "must not have a pattern with more than 64 alternatives",
            "read",
            "allow",
        ),
        ("dney", "permission must be allow, ask, deny or a table, not 'dney'", "read", "deny"),
        ("[bash]", 'permission must be allow, ask, deny or a table, not ["bash"]', "read", "deny"),
        ("{'*': nope}", "permission.* must be allow, ask, deny or", "read", "deny"),
    ],
)
@pytest.mark.parametrize("is_workspace", [False, True])
def test_a_rule_that_cannot_be_read_counts_as_deny(
    tmp_path: Path, text: str, told: str, denied: str, others: str, is_workspace: bool
) -> None:
    """A denial with a typing error is no permission."""
    text = f"permission: {text}\n"
    root = workspace(tmp_path / "ws", text if is_workspace else "")
    found = loaded(tmp_path / "cfg", "" if is_workspace else text, root)
    problem = only_problem(found)
    assert told in problem
    assert ", line 1: " in problem
    assert problem.endswith("; it counts as deny")
    assert rules_of(found).decide(denied, "a.pem").kind == "deny"
    assert rules_of(found).decide("glob", "a").kind == others


@pytest.mark.parametrize(
    ("key", "pattern", "why"),
    [
        ("read", r"keys\**", "has a backslash; write /"),
        ("edit", "$HOME/keys", "has a variable"),
        ("write", "${HOME}/keys", "has a variable"),
        ("read", "~nobody-at-all/keys", "names a user who is not known"),
        ("grep", "keys/*/../x", "has .. behind a wildcard"),
        ("glob", "[z-a].txt", "that no character fits"),
        ("read", r"a\0b", "has a backslash"),
        ("external_directory", "docs/**", "names no path outside; begin with /, ~/ or ../"),
        ("read", "{,}", "stands for nothing"),
    ],
)
@pytest.mark.parametrize("kind", ["allow", "deny"])
def test_a_pattern_that_can_cover_nothing_is_told(
    tmp_path: Path, key: str, pattern: str, why: str, kind: str
) -> None:
    """M5.6: what somebody wrote to be forbidden is not left open without a word."""
    found = loaded(tmp_path / "cfg", f"permission: {{{key}: {{'{pattern}': {kind}, x: ask}}}}")
    problem = only_problem(found)
    assert f"permission.{key} has a pattern that can cover nothing" in problem
    assert why in problem
    assert problem.endswith("; it has no effect")
    assert rules_of(found).decide("read", "a").kind == "allow"


@pytest.mark.parametrize(
    "pattern",
    [
        "keys/",
        "~/keys",
        "~",
        ".",
        "/",
        "/etc/**",
        "../x",
        "{a,b}/**",
        "[a-z]",
        "[!a]*",
        "a/../b",
        "**",
    ],
)
def test_a_pattern_that_can_cover_something_is_not_told(tmp_path: Path, pattern: str) -> None:
    text = f"permission: {{read: {{'{pattern}': deny}}, bash: {{'echo $HOME': deny}}}}"
    assert loaded(tmp_path / "cfg", text).problems == []


def test_a_wrong_pattern_leaves_the_others_of_its_key(tmp_path: Path) -> None:
    text = "permission: {read: {'*.pem': dney, '*.md': ask, 7: deny}}"
    rules = rules_of(loaded(tmp_path, text))
    asked = [rules.decide("read", name).kind for name in ("a.pem", "a.md", "7", "a.txt")]
    assert asked == ["deny", "ask", "deny", "allow"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{bahs: deny}", "deny"),
        ("{Bash: deny}", "deny"),
        ("{run_command: deny}", "deny"),
        ("{bahs: dney}", "deny"),
        ("{bahs: allow}", "ask"),
        ("{bahs: deny, bash: ask}", "ask"),
    ],
)
def test_a_key_that_means_another_one_forbids_what_it_says(
    tmp_path: Path, text: str, kind: str
) -> None:
    """It never allows, and never speaks against the key itself."""
    found = loaded(tmp_path, f"permission: {text}")
    assert "is no permission key (did you mean bash?)" in " ".join(found.problems)
    assert rules_of(found).decide("bash", "ls").kind == kind


@pytest.mark.parametrize(
    "text",
    ["permission: {read: deny}\npermission: {bash: ask}", "permission: {read: deny, read: allow}"],
)
def test_rules_given_twice_allow_nothing_unasked(tmp_path: Path, text: str) -> None:
    """One of them is lost, and it may have been the denial."""
    found = loaded(tmp_path, text)
    problem = only_problem(found)
    assert problem.endswith("given twice; this one holds, and until one is gone everything asks")
    assert rules_of(found).decide("read", "a").kind == "ask"


# Precedence


def test_precedence_leaf_by_leaf(tmp_path: Path) -> None:
    root = workspace(
        tmp_path / "ws", "session: {max_history: 20, mode: memo, limit: {chars: 2}}\nagent: plan\n"
    )
    found = loaded(
        tmp_path / "cfg",
        "session: {max_history: 10, mode: lite, limit: {chars: 1, messages: 1}}\nagent: explore",
        root,
        session={"max_history": 30},
    )
    session = found.settings.session
    assert found.problems == []
    assert (session.max_history, session.mode, found.settings.agent) == (30, "memo", "plan")
    assert (session.limit.chars, session.limit.messages) == (2, 1)
    assert found.files == [tmp_path / "cfg/config.yaml", root / ".tiro/config.yaml"]


def test_first_root_beats_the_second(tmp_path: Path) -> None:
    one = workspace(tmp_path / "one", "agent: plan\nsession: {max_history: 1}")
    two = workspace(tmp_path / "two", "agent: build\nsession: {mode: memo}")
    settings = load(tmp_path, [one, two]).settings
    assert (settings.agent, settings.session.max_history) == ("plan", 1)
    assert settings.session.mode == "memo"


def test_editor_settings_beat_everything_and_are_named(tmp_path: Path) -> None:
    found = loaded(tmp_path, "agent: plan", agent="explore", session={"mode": 5}, odd=1)
    assert found.settings.agent == "explore"
    assert found.problems == [
        "The editor's settings: session.mode must be lite or memo, not 5; it is ignored",
        "The editor's settings: odd is no setting; it is ignored",
    ]


def test_wrong_value_above_leaves_the_value_below(tmp_path: Path) -> None:
    found = loaded(tmp_path, "session: {max_history: 7}", session={"max_history": "x"})
    assert found.settings.session.max_history == 7


def test_null_above_switches_off_what_stands_below(tmp_path: Path) -> None:
    found = loaded(tmp_path, "session: {limit: {chars: 7}}", session={"limit": {"chars": None}})
    assert found.settings.session.limit.chars is None


def test_permission_keys_merge_and_the_higher_table_of_a_key_wins(tmp_path: Path) -> None:
    found = loaded(
        tmp_path,
        "permission: {bash: ask, read: {a: deny, b: allow}}",
        permission={"read": {"c": "ask"}},
    )
    assert found.settings.permission == {"bash": "ask", "read": {"c": "ask"}}


def test_permission_may_be_one_decision(tmp_path: Path) -> None:
    assert loaded(tmp_path, "permission: deny").settings.permission == {"*": "deny"}


# The workspace is not trusted


@pytest.mark.parametrize(
    "text",
    [
        "providers: {openai: {base_url: 'http://evil'}}",
        "providers: {evil: {api: openai, base_url: 'http://evil'}}",
        "permission_set: open",
        "session: {autosave: false}",
        "session: {redact: false}",
        "session: {summary: {model: evil/x}}",
        "session: {memo: {enabled: true}}",
        "session: {budget_ratio: null}",
        "turn: {max_output_tokens: 1}",
        "turn: {budget: {usd: 1}}",
        "store: {kind: redis, url: 'redis://evil'}",
        "log: {file: /etc/x}",
        "permission: allow",
        "permission: {bash: allow}",
    ],
)
def test_workspace_may_not_set_what_could_hurt(tmp_path: Path, text: str) -> None:
    found = load(tmp_path, [workspace(tmp_path / "ws", text)])
    problem = only_problem(found)
    assert "workspace" in problem
    assert ".tiro/config.yaml, line 1: " in problem
    assert found.settings == load(tmp_path).settings


def test_workspace_may_set_its_subset(tmp_path: Path) -> None:
    text = """
agent: plan
model: openai/gpt-5
session: {max_history: 9, mode: memo, limit: {chars: 5}, resize: {every_n_turns: 2}}
turn: {max_steps: 4}
permission: {bash: deny, read: {"*.key": deny}}
"""
    found = load(tmp_path, [workspace(tmp_path / "ws", text)])
    settings = found.settings
    assert found.problems == []
    assert (settings.agent, settings.model, settings.turn.max_steps) == ("plan", "openai/gpt-5", 4)
    assert settings.session.resize.every_n_turns == 2
    assert settings.workspace_permission == {"bash": "deny", "read": {"*.key": "deny"}}
    assert settings.permission == {}


def test_workspace_may_name_only_a_configured_provider(tmp_path: Path) -> None:
    root = workspace(tmp_path / "ws", "model: evil/x")
    found = loaded(tmp_path / "cfg", "model: openai/a", root)
    assert "names no configured provider with 'evil/x'" in only_problem(found)
    assert found.settings.model == "openai/a"


def test_own_model_of_an_unknown_provider_is_told_and_sends_nothing_elsewhere(
    tmp_path: Path,
) -> None:
    found = loaded(tmp_path, "model: olama/llama3")
    assert "names no configured provider" in only_problem(found)
    assert found.settings.model == "olama/llama3"


def test_model_of_a_provider_from_another_source_is_known(tmp_path: Path) -> None:
    provider = {"api": "openai", "base_url": "http://127.0.0.1:1/v1"}
    found = loaded(tmp_path, "model: mine/x", providers={"mine": provider})
    assert (found.settings.model, found.problems) == ("mine/x", [])


def test_workspace_rules_never_widen(tmp_path: Path) -> None:
    """An ask of the workspace must not replace a deny of the user for the same key."""
    root = workspace(tmp_path / "ws", "permission: {read: {'*.pem': ask, '*.txt': deny}}")
    settings = loaded(tmp_path / "cfg", "permission: {read: {'*.pem': deny}}", root).settings
    rules = Rules(config=settings.permission, workspace=settings.workspace_permission)
    assert rules.decide("read", "a.pem").kind == "deny"
    assert rules.decide("read", "a.txt").kind == "deny"
    assert rules.decide("read", "a.md").kind == "allow"


def test_workspace_file_that_leads_out_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("agent: SECRET\n")
    root = tmp_path / "ws"
    (root / ".tiro").mkdir(parents=True)
    (root / ".tiro/config.yaml").symlink_to(tmp_path / "secret.yaml")
    found = load(tmp_path, [root])
    assert "leads out of the workspace" in only_problem(found)
    assert found.settings.agent == "build"


@pytest.mark.parametrize("name", [".env", ".env.yaml", "a.json"])
def test_workspace_file_that_leads_to_another_kind_is_not_read(tmp_path: Path, name: str) -> None:
    """M5.8: what is wrong with a file may be told to a model, with what stands there."""
    root = tmp_path / "ws"
    (root / ".tiro").mkdir(parents=True)
    (root / name).write_text("agent: [hidden\n")
    (root / ".tiro/config.yaml").symlink_to(f"../{name}")
    told = only_problem(load(tmp_path, [root]))
    assert f"leads to {name!r}" in told
    assert "hidden" not in told


# Providers and keys


def test_provider_that_is_overridden_keeps_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " k-123456 \n")
    found = loaded(tmp_path, "providers: {openai: {base_url: 'http://127.0.0.1:9/v1'}}")
    openai = found.settings.providers["openai"]
    assert (openai.base_url, openai.api, openai.api_key) == (
        "http://127.0.0.1:9/v1",
        "openai",
        "k-123456",
    )
    assert found.settings.secrets() == ["k-123456"]


def test_an_address_in_the_environment_gives_way_to_a_configured_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", " ")
    providers = loaded(tmp_path, "").settings.providers
    assert providers["openai"].base_url == "http://127.0.0.1:9/v1"
    assert providers["anthropic"].base_url == "https://api.anthropic.com"
    mine = "providers: {openai: {base_url: 'http://127.0.0.1:8/v1'}}"
    assert loaded(tmp_path, mine).settings.providers["openai"].base_url == "http://127.0.0.1:8/v1"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("http://h:1/v1/chat/completions", "http://h:1/v1"),
        ("http://me:SECRET@h:1/v1/chat/completions/?key=SECRET", "http://h:1/v1"),
        ("https://h/v1/messages", "https://h/v1"),
        ("https://h/v1/responses", "https://h/v1"),
    ],
)
def test_an_address_of_a_request_is_told_with_the_one_to_write(
    tmp_path: Path, written: str, meant: str
) -> None:
    """Documents of providers show it; the path would be there twice, and the answer a bare 404."""
    found = loaded(tmp_path, f"providers: {{mine: {{api: openai, base_url: '{written}'}}}}")
    problem = only_problem(found)
    assert "providers.mine.base_url must end before /" in problem
    assert f": write {meant};" in problem
    assert "SECRET" not in problem
    for api in ("openai", "anthropic"):
        provider = msgspec.structs.replace(found.settings.providers["mine"], api=api)
        assert "base_url" in (asyncio.run(offer(provider, Timeouts(1.0, 1.0))).fault or "")


def test_a_wrong_address_in_the_environment_is_told_and_nobody_else_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k-123456")
    monkeypatch.setenv("OPENAI_BASE_URL", "gateway.example.org/v1")
    found = loaded(tmp_path, "")
    assert "OPENAI_BASE_URL" in found.problems[0]
    assert "nothing is sent there" in found.problems[0]
    assert "api.openai.com" not in found.settings.providers["openai"].base_url


@pytest.mark.parametrize(
    ("given", "key"), [('"k-123456"', "k-123456"), ("'k-1'\n", "k-1"), ('"', '"')]
)
def test_quotes_around_a_key_in_the_environment_are_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", given)
    assert loaded(tmp_path, "").settings.providers["openai"].api_key == key


def test_nor_are_those_around_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`docker run --env-file` hands them over as they stand in the file."""
    monkeypatch.setenv("OPENAI_BASE_URL", '"http://127.0.0.1:9/v1" ')
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "''")
    found = loaded(tmp_path, "")
    assert found.problems == []
    assert found.settings.providers["openai"].base_url == "http://127.0.0.1:9/v1"
    assert found.settings.providers["anthropic"].base_url == "https://api.anthropic.com"


@pytest.mark.parametrize(
    ("entry", "key", "command"),
    [
        ("{}", "from-env", None),
        ("{api_key: mine}", "mine", None),
        ("{api_key_command: [echo, x]}", None, ["echo", "x"]),
        ("{api_key_command: echo x}", None, "echo x"),
        ("{api_key_env: OTHER}", "other", None),
        ("{api_key_env: UNSET}", None, None),
        ("{api_key: mine, api_key_command: echo x}", "mine", None),
    ],
)
def test_key_comes_from_the_nearest_place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    entry: str,
    key: str | None,
    command: Any,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-env")
    monkeypatch.setenv("OTHER", "other")
    settings = loaded(tmp_path, f"providers: {{openai: {entry}}}").settings
    assert settings.providers["openai"].api_key == key
    assert settings.key_commands.get("openai") == command


def test_secrets_never_show(tmp_path: Path) -> None:
    """B52: not in the repr of settings, not in a problem."""
    text = """
providers:
  a: {api: openai, base_url: "http://u:SECRET@h/?key=SECRET", api_key: SECRET, headers: {A: SECRET}}
  d: {api: openai, base_url: "http://[", proxy: "http://u:SECRET2@h:1"}
  b: {api: openai, base_url: x, api_key: [SECRET], headers: [SECRET], api_key_command: {SECRET: 1}}
  c: {api: openai, base_url: [SECRET], proxy: {a: SECRET}}
store: {url: [SECRET]}
"""
    found = loaded(tmp_path, text)
    assert len(found.problems) == 8
    assert "SECRET" not in repr(found)
    assert set(found.settings.secrets()) == {"SECRET", "SECRET2"}


# Directories


def test_config_directory_follows_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIRO_CONFIG_DIR", "~/ä b/tiro")
    home = Path(os.environ["HOME"])
    assert directories.config_directory() == home / "ä b/tiro"
    assert directories.sessions_directory() == home / "ä b/tiro/sessions"
    assert directories.sessions_directory(Path("/x")) == Path("/x/sessions")


def test_directories_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(os.environ["HOME"])
    monkeypatch.delenv("TIRO_CONFIG_DIR")
    assert directories.config_directory() == home / ".config/tiro"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/elsewhere")
    assert directories.config_directory() == Path("/elsewhere/tiro")
    assert directories.cache_directory() == home / ".cache/tiro"
    monkeypatch.delenv("HOME")
    assert directories.cache_directory().is_absolute()


def test_loading_makes_and_changes_nothing(tmp_path: Path) -> None:
    load(tmp_path / "cfg", [tmp_path / "ws"])
    assert list(tmp_path.iterdir()) == []


def test_settings_are_frozen() -> None:
    assert Settings.__struct_config__.frozen


@pytest.mark.parametrize(
    ("text", "key"),
    [("store: {kind: sqlitee}", "store.kind"), ("session: {ttl_seconds: x}", "ttl_seconds")],
)
def test_a_wrong_value_is_told_once(tmp_path: Path, text: str, key: str) -> None:
    problem = only_problem(loaded(tmp_path, text))
    assert key in problem
    assert "must be" in problem


@pytest.mark.parametrize("kind", ["files", "sqlite", "redis"])
def test_each_kind_of_store_is_taken_without_a_word(tmp_path: Path, kind: str) -> None:
    found = loaded(tmp_path, f"store: {{kind: {kind}, path: x}}")
    assert (found.problems, found.settings.store.kind) == ([], kind)
