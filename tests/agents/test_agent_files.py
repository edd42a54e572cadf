"""Agents as Markdown files (M5.11)."""

import errno
from pathlib import Path
from typing import Any

import pytest

from tiro.agents.agent_files import AgentFiles, asking, read_agents
from tiro.agents.permissions import OPEN_SET, STRICT_SET, Rules


def files_of(folder: Path, files: dict[str, str], root: Path | None = None) -> AgentFiles:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return read_agents(folder, root)


def kind(permission: Any, key: str, subject: str | None = None) -> str:
    """What the rules say within the set that the server ships."""
    return Rules(agent=permission, default=STRICT_SET).decide(key, subject).kind


FULL = """---
description: Reviews changes
mode: Primary
hidden: false
temperature: 0.2
top_p: 1
color: "#aabbcc"
model: openai/gpt-x
steps: 7
permission:
  edit: deny
---

You review.

Twice.
"""


def test_every_field_of_the_front_matter(tmp_path: Path) -> None:
    """M5.3, M5.11; answer 26: the mode is read without regard to case."""
    found = files_of(tmp_path / "agents", {"reviewer.md": FULL})
    assert found.problems == []
    (agent,) = found.agents
    assert (agent.name, agent.description, agent.mode) == ("reviewer", "Reviews changes", "primary")
    assert (agent.temperature, agent.top_p, agent.color) == (0.2, 1.0, "#aabbcc")
    assert (agent.model, agent.steps, agent.hidden, agent.native) == ("openai/gpt-x", 7, 0, 0)
    assert agent.prompt == "You review.\n\nTwice."
    assert kind(agent.permission, "edit", "a.py") == "deny"
    assert kind(agent.permission, "bash", "ls") == "ask"


def test_options_are_parameters_and_those_that_are_not_sent_are_told(tmp_path: Path) -> None:
    """M5.3: `options`; what a repository brings switches nothing on."""
    given = (
        "options: {seed: 7, top_k: 40, stop: [END], reasoning: {effort: high}, max_tokens: 9,"
        " stream: false, n: 2, max_completion_tokens: many, when: !!binary AAAA, bad: .nan}"
    )
    files = {"a.md": f"---\n{given}\n---\nHi"}
    own = files_of(tmp_path / "agents", files)
    assert own.agents[0].options == {
        "seed": 7, "top_k": 40, "stop": ["END"], "reasoning": {"effort": "high"}, "max_tokens": 9,
    }  # fmt: skip
    told = [problem.partition("a.md, line 2: options.")[2] for problem in own.problems]
    assert told == [
        "stream is Tiro's own to say; it is ignored",
        "n is Tiro's own to say; it is ignored",
        "max_completion_tokens must be a whole number from 1; it is ignored",
        "when is nothing that JSON can say; it is ignored",
        "bad is nothing that JSON can say; it is ignored",
    ]
    theirs = files_of(tmp_path / ".tiro/agents", files, tmp_path)
    assert theirs.agents[0].options == {"seed": 7, "top_k": 40, "max_tokens": 9}
    assert any("stop must be a number in an agent of a workspace" in p for p in theirs.problems)


@pytest.mark.parametrize("color", ["#aabbcc", "'#abc'", "red; x", "''", "'#12345'", "teal"])
def test_a_color_is_one_or_is_told(tmp_path: Path, color: str) -> None:
    """M5.3; without quotation marks a # begins a comment, and nothing is left."""
    found = files_of(tmp_path / "agents", {"a.md": f"---\ncolor: {color}\n---\nHi"})
    is_good = color in ("'#abc'", "teal")
    assert found.agents[0].color == (color.strip("'") if is_good else None)
    told = ["'#rrggbb' in quotes" in problem for problem in found.problems]
    assert told == ([] if is_good else [True])


@pytest.mark.parametrize("text", ["Just a text.\n", "", "--\nmode: all\n--\n", "---\nmode: all\n"])
def test_a_file_without_front_matter_is_not_loaded(tmp_path: Path, text: str) -> None:
    """M5.11."""
    found = files_of(tmp_path / "agents", {"a.md": text})
    assert found.agents == []
    assert "no front matter" in found.problems[0]


@pytest.mark.parametrize(
    ("mode", "is_read_as", "told"),
    [
        ("subagent", "subagent", ""),
        ("ALL", "all", ""),
        ("wizard", "all", "'wizard'"),
        ("''", "all", "''"),
    ],
)
def test_an_unknown_mode_means_all(tmp_path: Path, mode: str, is_read_as: str, told: str) -> None:
    """M5.11; what is none is told with its place."""
    found = files_of(tmp_path / "agents", {"a.md": f"---\nmode: {mode}\n---\nx"})
    (agent,) = found.agents
    assert agent.mode == is_read_as
    where = f"{tmp_path}/agents/a.md, line 2: mode must be primary, subagent or all, not"
    assert found.problems == ([f"{where} {told}; it is taken for all"] if told else [])


def test_empty_front_matter_and_windows_line_ends_will_do(tmp_path: Path) -> None:
    found = files_of(tmp_path / "agents", {"a.md": "---\n---\nHi", "b.md": "---\n---"})
    assert [(a.name, a.prompt, a.permission) for a in found.agents] == [
        ("a", "Hi", None),
        ("b", "", None),
    ]
    (tmp_path / "agents" / "c.md").write_bytes(b"\xef\xbb\xbf---\r\nmode: primary\r\n---\r\nHi\r\n")
    assert read_agents(tmp_path / "agents").agents[2].mode == "primary"


def test_a_wrong_value_costs_only_itself_and_names_its_line(tmp_path: Path) -> None:
    text = "---\ndescription: d\ntemperature: hot\nflavour: x\nsteps: 0\n---\nHi"
    found = files_of(tmp_path / "agents", {"a.md": text})
    (agent,) = found.agents
    assert (agent.description, agent.temperature, agent.steps) == ("d", None, None)
    lines = [problem.partition("a.md")[2] for problem in found.problems]
    assert lines[0].startswith(", line 3: temperature must be")
    assert lines[1].startswith(", line 4: flavour says nothing")
    assert lines[2].startswith(", line 5: steps must be")


@pytest.mark.parametrize(
    "front",
    [
        "permission: {bash: dney}",
        "permission: maybe",
        "permission: {bsh: deny}",
        "permission: deny\npermissions: allow",
        "permission: {bash: deny}\npermission: {edit: deny}",
        "tools: [reed]",
        "tools: 7",
        "tools: {bash: maybe}",
        "permission: [",
        "- a\n- b",
    ],
)
def test_an_agent_whose_rules_cannot_be_read_is_not_loaded(tmp_path: Path, front: str) -> None:
    """A lost denial would be a hole; who selects it by name is told that it is not there."""
    found = files_of(tmp_path / "agents", {"a.md": f"---\n{front}\n---\nHi"})
    assert found.agents == []
    assert len(found.problems) == 1
    assert "not loaded" in found.problems[0]


def test_all_faults_of_a_file_are_told_at_once_with_what_was_meant(tmp_path: Path) -> None:
    """Whoever corrects one after the other has to load it as often."""
    front = (
        "desription: d\ntemperature: hot\ntools: [reed, bsh]\npermission: {bahs: deny, edit: alow}"
    )
    found = files_of(tmp_path / "agents", {"a.md": f"---\n{front}\n---\nHi"})
    assert found.agents == []
    told = [problem.partition("a.md")[2] for problem in found.problems]
    assert told[0] == (
        ", line 2: desription says nothing about an agent (did you mean description?);"
        " it is ignored"
    )
    assert told[1].startswith(", line 3: temperature must be")
    assert [one.partition(";")[0] for one in told[2:]] == [
        ": permission: bahs is no permission key (did you mean bash?)",
        ": permission: edit: must be allow, ask, deny or a table of patterns, not 'alow'",
        ": there is no tool 'reed' (did you mean read?)",
        ": there is no tool 'bsh' (did you mean bash?)",
    ]
    assert all(one.endswith("; the agent is not loaded") for one in told[2:])


@pytest.mark.parametrize(
    ("tools", "may", "may_not"),
    [
        ("[read, grep]", ["read", "grep"], ["glob", "edit", "write", "bash", "delegate"]),
        ("read_file, grep", ["read", "grep"], ["glob", "edit", "write", "bash", "delegate"]),
        ("{bash: false, write_file: false}", ["read", "edit", "glob"], ["bash", "write"]),
        ("{edit_file: true, multi_edit: false}", ["read"], ["edit"]),
        ("{'*': false, read: true}", ["read"], ["grep", "bash", "edit", "delegate"]),
        ("['*']", ["read", "bash", "edit"], []),
        ("[]", [], ["read", "glob", "grep", "edit", "write", "bash", "delegate"]),
    ],
)
def test_tools_only_take_away(
    tmp_path: Path, tools: str, may: list[str], may_not: list[str]
) -> None:
    """M5.11: naming a tool allows nothing that would have been asked about."""
    (agent,) = files_of(tmp_path / "agents", {"a.md": f"---\ntools: {tools}\n---\nHi"}).agents
    for key in may:
        assert kind(agent.permission, key, "a.py") == kind(None, key, "a.py")
    for key in may_not:
        assert kind(agent.permission, key, "a.py") == "deny"


def test_permissions_is_another_name_and_tools_narrow_it(tmp_path: Path) -> None:
    """Answer 26."""
    text = "---\npermissions: {bash: allow, edit: allow}\ntools: [bash]\n---\nHi"
    (agent,) = files_of(tmp_path / "agents", {"a.md": text}).agents
    assert kind(agent.permission, "bash", "ls") == "allow"
    assert kind(agent.permission, "edit", "a.py") == "deny"


def test_what_a_workspace_agent_allows_is_asked_about(tmp_path: Path) -> None:
    """M5.11, config: a checked-out repository is not trusted."""
    text = "---\npermission: {bash: allow, edit: {'*.md': allow, '*': deny}, read: deny}\n---\nHi"
    (agent,) = files_of(tmp_path / ".tiro/agents", {"a.md": text}, tmp_path).agents
    assert kind(agent.permission, "bash", "ls") == "ask"
    assert kind(agent.permission, "edit", "a.md") == "ask"
    assert kind(agent.permission, "edit", "a.py") == "deny"
    assert kind(agent.permission, "read", "a.py") == "deny"
    rules: list[Any] = ["allow", {"*": "allow"}, {"bash": {"*": "allow"}}]
    for rule in rules:
        assert Rules(agent=asking(rule), default=OPEN_SET).decide("bash", "ls").kind == "ask"


def test_files_that_lead_out_of_the_workspace_are_not_read(tmp_path: Path) -> None:
    """B48."""
    outside = tmp_path / "secret.md"
    outside.write_text("---\n---\nthe secret")
    root = tmp_path / "w"
    (root / ".tiro/agents").mkdir(parents=True)
    (root / ".tiro/agents/a.md").symlink_to(outside)
    found = read_agents(root / ".tiro/agents", root)
    assert found.agents == []
    assert "leads out of the workspace" in found.problems[0]


@pytest.mark.parametrize("name", [".env", "x.env", ".env.md", "notes"])
def test_a_link_to_what_is_no_markdown_to_be_read_is_not_followed(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / ".tiro/agents").mkdir(parents=True)
    (tmp_path / name).write_text("---\ndescription: hidden\n---\nhidden")
    (tmp_path / ".tiro/agents/x.md").symlink_to(f"../../{name}")
    found = read_agents(tmp_path / ".tiro/agents", tmp_path)
    assert found.agents == []
    assert f"leads to {name!r}" in found.problems[0]
    assert "hidden" not in found.problems[0]


def test_odd_folders_and_files(tmp_path: Path) -> None:
    """No folder, a file in its place, bytes that are no text, a directory named like an agent."""
    assert read_agents(tmp_path / "none") == AgentFiles([], [])
    (tmp_path / "file").write_text("x")
    assert read_agents(tmp_path / "file") == AgentFiles([], [])
    folder = tmp_path / "agents"
    (folder / "dir.md").mkdir(parents=True)
    (folder / "bytes.md").write_bytes(b"---\n---\n\xff\xfe\x00")
    (folder / "readme.txt").write_text("no agent")
    found = read_agents(folder)
    assert found.agents == []
    assert len(found.problems) == 2


def test_a_folder_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And read again; one that is not there, or is a file, is as good as empty."""

    def refuse(_: Path) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "file").write_text("")
    for name in ("none", "file"):
        assert read_agents(tmp_path / name) == AgentFiles([], [])
    monkeypatch.setattr(Path, "iterdir", refuse)
    found = read_agents(tmp_path)
    assert not found.is_whole
    (told,) = found.problems
    assert told == f"{tmp_path} cannot be read (Permission denied); no agent of it is loaded"


@pytest.mark.parametrize(
    ("front", "told"),
    [
        (
            "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            "b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
            "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n"
            "tools: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
            "permission: [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]",
            "line 5: this stands for more than 10,000 values, each alias written out",
        ),
        ("options: &a {b: *a}", "line 2: an alias stands within what it is the name of"),
        ("options: " + "[" * 900 + "]" * 900, "line 2: this is nested deeper than 100 levels"),
        (f"description: {'x' * 250_001}", "holds more YAML than 250,000 characters"),
        ("description: \x00", "line 2: YAML cannot hold the character U+0000"),
    ],
)
def test_front_matter_that_is_too_much_is_refused(tmp_path: Path, front: str, told: str) -> None:
    files = {"bad.md": f"---\n{front}\n---\nx", "good.md": "---\n---"}
    found = files_of(tmp_path / "agents", files)
    assert [agent.name for agent in found.agents] == ["good"]
    (problem,) = found.problems
    assert problem.startswith(str(tmp_path / "agents" / "bad.md"))
    assert told in problem
    assert problem.endswith("; the agent is not loaded")


def test_what_acts_on_a_screen_is_taken_from_no_file(tmp_path: Path) -> None:
    front = 'description: "\\e[31mred"\nmodel: "a/\\u202e"\n"\\a": 1\nmode: "\\e"'
    found = files_of(tmp_path / "agents", {"a.md": f"---\n{front}\n---\nx"})
    assert (found.agents[0].description, found.agents[0].model) == ("", None)
    assert all(problem.isprintable() for problem in found.problems)
    where = f"{tmp_path / 'agents' / 'a.md'}, line "
    assert sorted(problem.removeprefix(where)[:52] for problem in found.problems) == [
        "2: description must not hold the control character U",
        "3: model must not hold the control character U+202E;",
        "4: '\\x07' says nothing about an agent; it is ignored",
        "5: mode must not hold the control character U+001B; ",
    ]


def test_very_many_agents_are_not_all_loaded(tmp_path: Path) -> None:
    found = files_of(tmp_path, {f"a{n:03}.md": "---\nfoo: 1\n---\nx" for n in range(210)})
    assert len(found.agents) == 200
    assert found.problems[0] == f"{tmp_path} holds more than 200 agents; the others are not loaded"
    assert len(found.problems) == 21


def test_links_that_lead_nowhere_are_told_but_not_those_of_emacs(tmp_path: Path) -> None:
    (tmp_path / ".#a.md").symlink_to("me@here.1:2")
    (tmp_path / "a.md").symlink_to(tmp_path / "away.md")
    (told,) = read_agents(tmp_path).problems
    assert told.startswith(f"{tmp_path / 'a.md'} cannot be read: it is a link to what is not there")
    (tmp_path / "agents").symlink_to(tmp_path / "away")
    (told,) = read_agents(tmp_path / "agents").problems
    assert told.endswith("is a link to what is not there; no agent of it is loaded")


def test_a_pattern_that_can_cover_nothing_is_told(tmp_path: Path) -> None:
    """M5.6: and the agent is there, with all that its rules say otherwise."""
    text = "---\npermission: {read: {'$HOME/keys': deny, 'keys': deny}}\n---\nHi"
    found = files_of(tmp_path / "agents", {"a.md": text})
    (problem,) = found.problems
    assert "permission: read: a pattern can cover nothing: '$HOME/keys' has a variable" in problem
    assert problem.endswith("; it has no effect")
    assert kind(found.agents[0].permission, "read", "keys/k") == "deny"
