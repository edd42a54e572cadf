"""Rules about paths: what a person means by them holds for tools and commands alike (M5, B48)."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.agents.every_tool import tools_by_name
from tests.agents.turns import a_turn, run, statuses, told
from tests.fakes import RecordingEditor, says, uses
from tiro.agents import walks
from tiro.agents.built_in import built_in_agents
from tiro.agents.gate import Gate
from tiro.agents.permissions import OPEN_SET, STRICT_SET, PermissionDecision, Rules
from tiro.tools.editor import PermissionAnswer, PermissionRequest
from tiro.tools.workspace import Workspace

AGENTS = {agent.name: agent for agent in built_in_agents()}
TOOLS = tools_by_name()
OUTSIDE_TOO: Any = {"external_directory": "allow"}


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace, a folder beside it and a home, each with a folder of keys."""
    for folder in ("ws", "ws/sub", "beside", "home"):
        for name in ("keys/k", "keys/deep/k", "notes/n"):
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).write_text("x\n")
    for name in ("kept.txt", "secret.txt", "other.txt", "src/a.py", "src/kept.txt"):
        (tmp_path / "ws" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "ws" / name).write_text("x\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "ws"


def gate_of(room: Path, config: Any, agent: str = "build", default: Any = STRICT_SET) -> Gate:
    rules = Rules(agent=AGENTS[agent].permission, config=config, default=default)
    return Gate(rules, Workspace(RecordingEditor(room)))


def decided(
    room: Path, config: Any, tool: str, given: dict[str, Any], agent: str = "build"
) -> PermissionDecision:
    gate = gate_of(room, config, agent)
    return gate.decide(gate.look(TOOLS[tool], given))


def ran(
    room: Path, config: Any, line: str, agent: str = "build", **given: Any
) -> PermissionDecision:
    line = line.replace("{base}", str(room.parent))
    return decided(room, config, "run_command", {"command": line, **given}, agent)


# What a pattern means

WS, SUB, BESIDE, HOME = "keys/{}", "sub/keys/{}", "../beside/keys/{}", "../home/keys/{}"
MEANT: dict[str, set[str]] = {
    "keys": {WS, SUB, BESIDE, HOME},
    "keys/": {WS, SUB, BESIDE, HOME},
    "KEYS/": {WS, SUB, BESIDE, HOME},
    "**/keys": {WS, SUB, BESIDE, HOME},
    "**/keys/**": {WS, SUB, BESIDE, HOME},
    "keys/**": {WS},
    "./keys": {WS},
    "/keys": {WS},
    "k[e]ys/**": {WS},
    "{keys,other}/**": {WS},
    "sub/../keys": {WS},
    "sub/keys": {SUB},
    "sub/k*s": {SUB},
    "*/keys/**": {SUB},
    "{base}/ws/keys": {WS},
    "{base}/ws/sub/keys/**": {SUB},
    "{base}/*/keys/**": {WS, BESIDE, HOME},
    "{base}/beside": {BESIDE},
    "{base}/{beside,home}/keys/": {BESIDE, HOME},
    "../beside/keys": {BESIDE},
    "../ws/keys": {WS},
    "~/keys": {HOME},
    "~/keys/**": {HOME},
    "{~/keys,sub/keys}": {HOME, SUB},
    "~": {HOME},
    ".": {WS, SUB},
}


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize("pattern", MEANT)
def test_what_denies_holds_for_what_a_person_means(room: Path, pattern: str, kind: str) -> None:
    """M5.6: a folder with all that is in it, for tools and commands, in the workspace or not."""
    table = {pattern.replace("{base}", str(room.parent)): kind}
    config = {**OUTSIDE_TOO, "bash": "allow", "read": table}
    for form in (WS, SUB, BESIDE, HOME):
        is_meant = form in MEANT[pattern]
        for name in ("k", "deep/k"):
            path = form.format(name)
            found = decided(room, config, "read_file", {"path": path})
            assert found.kind == (kind if is_meant else "allow"), path
            command = ran(room, config, f"/bin/cat {path}")
            assert command.kind == ("ask" if is_meant else "allow"), path
    assert decided(room, config, "read_file", {"path": "other.txt"}).kind == (
        kind if pattern == "." else "allow"
    )


EXACT: dict[str, set[str]] = {
    "keys": set(),
    "keys/": set(),
    "keys/*": {"keys/k"},
    "keys/**": {"keys/k", "keys/deep/k"},
    "Keys/**": set(),
    "{keys/k,keys/deep/k}": {"keys/k", "keys/deep/k"},
    "{base}/ws/keys/*": {"keys/k"},
    "../ws/keys/k": {"keys/k"},
    "**/../keys/k": set(),
    "~/keys/k": {"../home/keys/k"},
    "../beside/keys/k": {"../beside/keys/k"},
    "beside/keys/k": set(),
    ".": set(),
    "k": {"keys/k", "keys/deep/k", "../home/keys/k", "../beside/keys/k"},
}


@pytest.mark.parametrize("pattern", EXACT)
def test_what_allows_fits_exactly_what_it_says(room: Path, pattern: str) -> None:
    table = {pattern.replace("{base}", str(room.parent)): "allow", "*": "ask"}
    config = {**OUTSIDE_TOO, "read": table}
    for path in ("keys/k", "keys/deep/k", "../home/keys/k", "../beside/keys/k"):
        found = decided(room, config, "read_file", {"path": path})
        assert found.kind == ("allow" if path in EXACT[pattern] else "ask"), path


@pytest.mark.parametrize("pattern", ["app/[id]/**", "[id]", "app/[id]/k", "{base}/ws/app/[id]"])
def test_a_folder_with_brackets_in_its_name_is_denied_by_it(room: Path, pattern: str) -> None:
    """As those that stand for routes are called."""
    for name in ("app/[id]/k", "app/i/k", "app/x/k"):
        (room / name).parent.mkdir(parents=True)
        (room / name).touch()
    pattern = pattern.replace("{base}", str(room.parent))
    config: Any = {"bash": "allow", "read": {pattern: "deny"}, "write": {pattern: "allow"}}
    assert decided(room, config, "read_file", {"path": "app/[id]/k"}).kind == "deny"
    assert ran(room, config, "cat 'app/[id]/k'").kind == "ask"
    assert ran(room, config, "grep -r x app").kind == "ask"
    assert decided(room, config, "read_file", {"path": "app/x/k"}).kind == "allow"
    assert decided(room, config, "write_file", {"path": "app/[id]/k"}).kind == "ask"


def test_a_name_of_a_folder_above_the_workspace_denies_nothing_in_it(room: Path) -> None:
    for pattern in ("ws", "ws/", "**/ws/**", room.parent.name):
        config: Any = {"read": {pattern: "deny"}}
        assert decided(room, config, "read_file", {"path": "other.txt"}).kind == "allow"


def test_a_rule_of_one_root_holds_in_no_other(room: Path) -> None:
    """B48: an absolute rule says which."""
    other = room.parent / "beside"
    for kind in ("allow", "deny"):
        rules = Rules(config={"read": {f"{other}/keys/**": kind, "*": "ask"}}, default=OPEN_SET)
        gate = Gate(rules, Workspace(RecordingEditor(room, other)))
        for root, wanted in ((room, "ask"), (other, kind)):
            use = gate.look(TOOLS["read_file"], {"path": str(root / "keys/k")})
            assert gate.decide(use).kind == wanted


@pytest.mark.parametrize(
    "pattern", ["~/keys", "{base}/home/keys/**", "../home", "~/mine", "keys", "**/keys/**", "~"]
)
@pytest.mark.parametrize("key", ["external_directory", "*"])
def test_a_place_outside_may_be_denied_by_each_of_its_names(
    room: Path, pattern: str, key: str
) -> None:
    """M5.6: the condition `external_directory`."""
    (room.parent / "home/mine").symlink_to(room.parent / "home/keys")
    table = {pattern.replace("{base}", str(room.parent)): "deny", "*": "allow"}
    config = {"bash": "allow", key: table}
    for path in ("../home/keys/k", "~/keys/k"):
        assert decided(room, config, "read_file", {"path": path}).kind == "deny"
        assert ran(room, config, f"cat {path}").kind != "allow"
    assert ran(room, config, "cat k", cwd="../home/keys").kind != "allow"
    assert decided(room, config, "read_file", {"path": "../beside/notes/n"}).kind == "allow"
    assert ran(room, config, "cat ../beside/notes/n").kind == "allow"


def test_a_root_within_another_is_held_to_what_both_mean(room: Path) -> None:
    for roots in ((room, room / "sub"), (room / "sub", room)):
        for pattern, path, kind in (
            ("keys/**", "sub/keys/k", "deny"),
            ("sub/keys/**", "sub/keys/k", "deny"),
            ("keys/**", "keys/k", "deny"),
            ("sub/keys/**", "keys/k", "allow"),
        ):
            rules = Rules(config={"read": {pattern: "deny"}}, default=OPEN_SET)
            gate = Gate(rules, Workspace(RecordingEditor(*roots)))
            use = gate.look(TOOLS["read_file"], {"path": str(room / path)})
            assert gate.decide(use).kind == kind, (roots, pattern, path)


# Commands

WRITERS = [
    *("sed -i s/x/y/ {}", "cp other.txt {}", "echo x > {}", "echo x >> {}", "echo x | tee {}"),
    *("mv other.txt {}", "mv {} there", "rm {}", "rm -f ./{}", "touch {}", "truncate -s0 {}"),
    *("dd of={}", "install other.txt {}", "ln -sf other.txt {}", "chmod a+w {}", "patch {} x.diff"),
    *("cp -t . {}", "git checkout -- {}", "cd src && rm ../{}", "X=1 rm {}", "timeout 5 rm {}"),
    *("sort -o {} other.txt", "find . -fprint {}", "rm {base}/ws/{}", "rm src/../{}", "rm $X {}"),
    *("for f in {}; do rm $f; done", "sh -c 'rm {}'", "rm kept.*", "git -C src rm ../{}"),
]
BUILDERS: list[Any] = ["allow", {"*": "allow", "push": "deny"}]


@pytest.mark.parametrize("line", WRITERS)
def test_a_command_is_held_to_rules_about_writing_a_file(room: Path, line: str) -> None:
    """M5.8, B49: `edit: deny` of a file holds for `sed -i`, `cp`, `>`, `mv` and `rm` as well."""
    line = line.replace("{}", "kept.txt")
    for key in ("edit", "write"):
        for kind in ("deny", "ask"):
            for bash in BUILDERS:
                config = {"bash": bash, key: {"kept.txt": kind}, "external_directory": "allow"}
                found = ran(room, config, line)
                assert found.kind == "ask", (key, kind)
                gate = gate_of(room, config)
                given = {"command": line.replace("{base}", str(room.parent))}
                reasons = gate.reasons(gate.look(TOOLS["run_command"], given))
                told = f"{key}: kept.txt {kind} (named in a command)"
                assert told in [one.decision.rule for one in reasons], (key, kind)
        for agent in ("plan", "explore"):
            assert ran(room, {key: {"kept.txt": "deny"}}, line, agent).kind == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "cat " + "".join(f"{{{letter},X}}" for letter in "secret") + ".t{x,X}t{,X}",
        "for f in /*/*/*/*/*/zzz*; do cat $f; done",
        "cat > x " + "/*" * 90,
        "grep " * 300 + "> x",
        "rm -r " + " ".join(f"n{at}" for at in range(600)),
    ],
)
def test_a_line_that_may_stand_for_too_much_asks(
    room: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B49: nothing hides in many alternatives, and no pattern holds up the gate."""
    monkeypatch.setattr(walks, "MAX_ENTRIES", 500)
    config = {**OUTSIDE_TOO, "bash": "allow", "read": {"secret.txt": "deny"}}
    assert ran(room, config, line).kind == "ask"


def test_a_folder_that_is_denied_is_found_by_what_lies_in_it(room: Path) -> None:
    """B49: find names the files, and not the folder."""
    config = {"bash": "allow", "read": {"keys": "deny"}}
    for line in ("find . -name k -exec cat {} +", "cd keys && rg x", "cd keys/deep && grep -r x ."):
        assert ran(room, config, line).kind == "ask", line
    assert ran(room, config, "find . -name n -exec cat {} +").kind == "allow"


def test_a_variable_of_a_line_leads_where_it_leads(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", str(room.parent / "home"))
    config = {**OUTSIDE_TOO, "bash": "allow", "read": {"~/keys": "deny"}}
    for line in ("cat $HOME/keys/k", "cat ${PLACE}/keys/k", "cat ~/keys/k", "cat ~/k*/k > x"):
        assert ran(room, config, line).kind == "ask", line
    assert ran(room, config, "cat ~/notes/n").kind == "allow"
    monkeypatch.setenv("PLACE", "/of/a-key")
    assert "a-key" not in ran(room, {"bash": "allow"}, "cat $PLACE/../../../x > y").rule


@pytest.mark.parametrize(
    "line", ["cat kept.txt", "grep x kept.txt src/kept.txt", "head -1 kept.txt", "ls -l kept.txt"]
)
def test_who_may_not_write_a_file_may_read_it(room: Path, line: str) -> None:
    config = {"bash": "allow", "edit": {"kept.txt": "deny"}, "write": {"kept.txt": "deny"}}
    for agent in ("build", "plan", "explore"):
        assert ran(room, config, line, agent).kind == "allow"


@pytest.mark.parametrize(
    "line",
    [
        *("rm -r src", "rm -rf ./src/", "chmod -R a-w src", "mv src there", "cp src/a.py kept.txt"),
        *("cp -r src/. .", "rm -r .", "mv src/kept.txt .", "find -P src -name '*' -delete"),
        *("rm -r src > y", "cd x; rm -rf ./src 2>&1 | tee y"),
        *("find . -delete", "find src -type f -delete", "find . ( -name x -o -name y ) -delete"),
    ],
)
def test_a_command_that_changes_a_folder_is_held_to_what_is_in_it(room: Path, line: str) -> None:
    table = dict.fromkeys(("rm", "chmod", "mv", "cp", "find * -delete", "find"), "allow")
    for pattern in ("kept.txt", "src/kept.txt"):
        config = {"bash": table, "edit": {pattern: "deny"}}
        is_other = (pattern, line) == ("src/kept.txt", "cp src/a.py kept.txt")
        assert ran(room, config, line).kind == ("allow" if is_other else "ask"), pattern
    for line in ("rm -r notes", "mv notes there", "cp -r notes there", "rm -r src/a.py"):
        assert ran(room, {"bash": table, "edit": {"kept.txt": "deny"}}, line).kind == "allow"


@pytest.mark.parametrize(
    "line",
    [
        *("cat secret.txt", "head ./secret.txt", "grep x < secret.txt", "cp secret.txt b"),
        *("cd src && cat ../secret.txt", "grep -r x .", "tar cf a.tar .", "diff -r . src"),
        *("cat secret*", "sed p secret.txt", "sh -c 'cat secret.txt'", "cat {secret,x}.txt"),
        *("cat secre[t].txt", "cat secret.tx?", "for f in sec*; do cat $f; done", "cat $PWD/sec*"),
        *("grep -r x . > y", "for f in 1 2; do rg x; done", "(sleep 1; cp -r . x) 2>/dev/null"),
        *("find . -name 'secret.*' -exec cat {} +", "zip -r a.zip .", "rsync -a . there"),
    ],
)
def test_a_command_is_held_to_rules_that_ask_about_reading(room: Path, line: str) -> None:
    """M5.6: what asks for `read_file` asks for `cat`."""
    for pattern in ("secret.txt", "{secret,x}.txt", "SECRET.*", str(room / "secret.txt")):
        config = {"bash": "allow", "read": {pattern: "ask"}}
        found = ran(room, config, line)
        assert (found.kind, found.rule.partition(" ")[0]) == ("ask", "read:"), pattern
        assert ran(room, {"read": {pattern: "ask"}}, line, "plan").kind != "allow"


def test_a_rule_for_all_reading_holds_for_commands_that_do_nothing_else(room: Path) -> None:
    config: Any = {"bash": {"<read-only>": "allow", "make": "allow"}, "read": "ask"}
    assert ran(room, config, "cat other.txt").kind == "ask"
    assert ran(room, config, "ls").kind == "allow"
    assert ran(room, config, "make other.txt").kind == "allow"


@pytest.mark.parametrize("agent", ["build", "plan"])
@pytest.mark.parametrize(
    "line",
    [
        *("grep -r x .", "grep -r x", "rg x", "rg x src keys", "diff -r src sub", "egrep -r x src"),
        *("find . -name k -exec cat {} +", "find src -exec head -1 {} ';'", "rg x src | head"),
        *("git diff", "cd src && rg x", "fgrep -rl x .", "timeout 9 rg x"),
    ],
)
def test_a_rule_for_all_reading_holds_for_what_a_search_shows(
    room: Path, agent: str, line: str
) -> None:
    """M5.6: what asks for `cat` asks for what prints the same text."""
    subprocess.run(["git", "init", "-q", "."], cwd=room, check=True)
    subprocess.run(["git", "add", "src/a.py"], cwd=room, check=True)
    (room / "src/a.py").write_text("changed\n")
    bash = {"bash": {"<read-only>": "allow"}} if agent == "build" else {}
    for rule in ("ask", {"notes/**": "allow", "*": "ask"}):
        found = ran(room, {**bash, "read": rule}, line, agent)
        assert found.kind == "ask", found
    assert ran(room, bash, line, agent).kind == "allow"


def test_what_a_search_shows_of_files_that_may_be_read_asks_nobody(room: Path) -> None:
    config: Any = {"bash": {"<read-only>": "allow"}, "read": {"notes/**": "allow", "*": "ask"}}
    for line in ("grep -r x notes", "rg x notes", "find . -name k", "ls -R", "du -a ."):
        assert ran(room, config, line).kind == "allow", line


def test_an_answer_always_to_a_search_holds_for_it(room: Path) -> None:
    gate = gate_of(room, {"read": "ask"}, "plan")
    use = gate.look(TOOLS["run_command"], {"command": "grep -r x ."})
    assert len(gate.reasons(use)) == 1
    assert gate.decide(use, gate.grants(use)).kind == "allow"
    other = gate.look(TOOLS["run_command"], {"command": "grep -r x src"})
    assert gate.decide(other, gate.grants(use)).kind == "ask"


def test_a_rule_that_names_no_file_says_nothing_about_commands(room: Path) -> None:
    for key in ("edit", "write"):
        for kind in ("ask", "deny"):
            for rule in (kind, {"*": kind}, {"src/**": "allow", "*": kind}):
                assert ran(room, {"bash": "allow", key: rule}, "touch x").kind == "allow"


@pytest.mark.parametrize(
    "line", ["git add .env.example", "cp .env.example b", "touch x.env.example"]
)
def test_what_the_default_asks_of_tools_it_asks_of_no_command(room: Path, line: str) -> None:
    (room / ".env.example").touch()
    config = {"bash": dict.fromkeys(("git add", "cp", "touch"), "allow")}
    assert ran(room, config, line).kind == "allow"


def test_what_a_tool_may_write_a_command_may(room: Path) -> None:
    """The agent's own rule comes before that of the configuration, unless that denies."""
    rules = Rules(
        agent={"write": "allow", "edit": "allow", "bash": "allow"},
        config={"write": {"kept.txt": "ask"}, "edit": {"kept.txt": "ask"}},
        default=STRICT_SET,
    )
    gate = Gate(rules, Workspace(RecordingEditor(room)))
    use = gate.look(TOOLS["run_command"], {"command": "rm kept.txt"})
    assert gate.decide(use).kind == "allow"


def test_a_deny_of_a_file_is_found_behind_an_agents_deny_of_all(room: Path) -> None:
    rules = Rules(
        agent={"write": "deny", "bash": "allow"},
        config={"write": {"kept.txt": "deny"}},
        default=STRICT_SET,
    )
    for one in (rules, Rules(caller=rules, default=OPEN_SET)):
        gate = Gate(one, Workspace(RecordingEditor(room)))
        use = gate.look(TOOLS["run_command"], {"command": "rm kept.txt"})
        assert gate.decide(use).kind == "ask"


@pytest.mark.parametrize(
    "line",
    [
        *("cp -r ../home there", "grep -r x ../home", "rg x ../home", "tar cf a.tar ../home"),
        *("cp -r to-home there", "find ../home -exec cat {} +", "diff -r ../home ../beside"),
    ],
)
def test_a_folder_outside_is_looked_through_as_well(room: Path, line: str) -> None:
    """B48: who allows what lies outside allows nothing that is denied there."""
    (room / "to-home").symlink_to("../home")
    config = {**OUTSIDE_TOO, "bash": "allow", "read": {"~/keys/k": "deny"}}
    assert ran(room, config, line).kind == "ask"
    for free in ("cp -r ../beside there", "grep -r x ../beside", "rg x ../home/notes"):
        assert ran(room, config, free).kind == "allow"


def test_a_copy_from_outside_is_held_to_what_it_would_write(room: Path) -> None:
    (room.parent / "beside/kept.txt").touch()
    config = {**OUTSIDE_TOO, "bash": "allow", "edit": {"kept.txt": "deny"}}
    assert ran(room, config, "cp -r ../beside/. .").kind == "ask"
    assert ran(room, config, "cp -r ../beside/notes .").kind == "allow"


# Other names of a file


@pytest.mark.parametrize("tool", ["read_file", "edit_file", "write_file"])
def test_a_hard_link_of_a_denied_file_is_that_file(room: Path, tool: str) -> None:
    """B48: the same text by another name."""
    for name, target in (("a", "keys/k"), ("b", "../home/keys/k"), ("c", "secret.txt"), ("d", "n")):
        (room / "n").touch()
        os.link(room / target, room / name)
    key = TOOLS[tool].permission_key
    config: Any = {key: {"keys": "deny", "~/keys/**": "deny", "secret.txt": "deny"}}
    for name in ("a", "b", "c"):
        found = decided(room, config, tool, {"path": name})
        assert found.kind == "deny"
        assert "is another name of it" in found.rule
        line = f"cat {name}" if key == "read" else f"touch {name}"
        assert ran(room, {**config, "bash": "allow"}, line).kind == "ask"
    assert decided(room, config, tool, {"path": "d"}).kind in ("allow", "ask")
    assert ran(room, {**config, "bash": "allow"}, "cat d").kind == "allow"


def test_a_search_shows_nothing_of_a_hard_link_of_a_denied_file(room: Path) -> None:
    os.link(room / "secret.txt", room / "src/b.py")
    gate = gate_of(room, {"read": {"secret.txt": "deny"}})
    may_read = gate.readable(gate.look(TOOLS["grep"], {"pattern": "x"}))
    assert not may_read(room / "src/b.py")
    assert may_read(room / "src/a.py")
    config = {"bash": "allow", "read": {"secret.txt": "deny"}}
    assert ran(room, config, "grep -r x src").kind == "ask"


def test_a_hard_link_is_known_however_late_in_a_search_it_comes(
    room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search may take longer than the look at the folders of a command."""
    monkeypatch.setattr(walks, "MAX_SECONDS", -1)
    monkeypatch.setattr(walks, "ALWAYS", 0)
    os.link(room / "secret.txt", room / "src/b.py")
    gate = gate_of(room, {"read": {"secr*.txt": "deny"}})
    may_read = gate.readable(gate.look(TOOLS["grep"], {"pattern": "x"}))
    assert not may_read(room / "src/b.py")
    assert may_read(room / "src/a.py")


def test_a_rule_that_names_a_link_holds_for_what_it_leads_to(room: Path) -> None:
    """B48: the file is the same, whichever way it is reached."""
    (room / "to-notes").symlink_to("notes")
    (room.parent / "home/mine").symlink_to(room.parent / "beside")
    config: Any = {
        **OUTSIDE_TOO,
        "read": {"to-notes": "deny", "~/mine/keys": "deny"},
        "bash": "allow",
    }
    for path in ("notes/n", "to-notes/n", "../beside/keys/k", "~/mine/keys/k"):
        assert decided(room, config, "read_file", {"path": path}).kind == "deny", path
        assert (
            ran(room, config, f"cat {path}".replace("~", str(room.parent / "home"))).kind == "ask"
        )
    for path in ("sub/notes/n", "../beside/notes/n"):
        assert decided(room, config, "read_file", {"path": path}).kind == "allow", path


def test_the_question_says_that_other_names_keep_the_old_text(room: Path) -> None:
    """B55: a file is replaced whole, so a hard link of it is told of before that."""
    os.link(room / "kept.txt", room / "again.txt")
    for path, is_linked in (("again.txt", True), ("other.txt", False), ("new.txt", False)):
        gate = gate_of(room, {})
        shown = gate.look(TOOLS["write_file"], {"path": path, "content": "y"}).preview("+y")
        assert ("hard links" in str(shown)) is is_linked
    assert gate.look(TOOLS["read_file"], {"path": "again.txt"}).preview(None) is None


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "multi_edit"])
def test_a_read_only_file_is_told_before_anybody_is_asked(room: Path, tool: str) -> None:
    (room / "kept.txt").chmod(0o444)
    replacement = {"old_text": "x", "new_text": "y"}
    inputs: dict[str, dict[str, Any]] = {
        "write_file": {"content": "y"},
        "edit_file": {**replacement},
        "multi_edit": {"edits": [replacement]},
    }
    asked: list[PermissionRequest] = []

    async def ask(request: PermissionRequest) -> PermissionAnswer:
        asked.append(request)
        return PermissionAnswer("once")

    turn = a_turn(
        uses(
            ("r", "read_file", {"path": "kept.txt"}),
            ("c", tool, {"path": "kept.txt", **inputs[tool]}),
        ),
        says("x"),
        tools=[*TOOLS.values()],
        workspace=Workspace(RecordingEditor(room)),
        rules=Rules(default=STRICT_SET),
        ask=ask,
    )
    assert statuses(run(turn), "c")[-1] == "failed"
    assert asked == []
    assert "is read-only" in str(told(turn.session))
    assert (room / "kept.txt").read_text() == "x\n"


@pytest.mark.parametrize("agent", ["plan", "explore"])
@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("cat keys/k", "keys/k may not be read"),
        (
            "grep -r x .",
            "keys lies there and may not be read; search beside it, or use",
        ),
        ("cat {base}/ws/keys/k", "keys/k may not be read"),
    ],
)
def test_a_refusal_names_the_file_that_stands_in_the_way(
    room: Path, agent: str, line: str, told: str
) -> None:
    """M5.9: so that a model can search beside it."""
    found = ran(room, {"read": {"keys/**": "deny"}}, line, agent)
    assert found.kind == "deny"
    assert told in found.rule


@pytest.mark.parametrize("key", ["edit", "write"])
@pytest.mark.parametrize("tool", ["write_file", "edit_file", "multi_edit"])
@pytest.mark.parametrize("table", ["agent", "config", "workspace"])
def test_a_path_that_may_not_be_written_is_denied_to_every_tool(
    tmp_path: Path, key: str, tool: str, table: str
) -> None:
    (tmp_path / "docs").mkdir()
    permission: Any = {"edit": "allow", "write": "allow", key: {"docs/**": "deny", "*": "allow"}}
    tables: Any = {table: permission}
    gate = Gate(Rules(**tables), Workspace(RecordingEditor(tmp_path)))
    kinds = [gate.decide(gate.look(TOOLS[tool], {"path": path})).kind for path in ("docs/x", "x")]
    assert kinds == ["deny", "allow"]


def test_one_decision_for_all_under_a_key_says_nothing_about_the_other(tmp_path: Path) -> None:
    table: Any = {"edit": {"docs/**": "allow", "*": "deny"}, "write": "allow"}
    gate = Gate(Rules(config=table), Workspace(RecordingEditor(tmp_path)))
    assert gate.decide(gate.look(TOOLS["write_file"], {"path": "x"})).kind == "allow"


@pytest.mark.parametrize("key", ["grep", "glob"])
@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_a_search_leaves_out_what_a_rule_of_its_own_names(
    tmp_path: Path, key: str, kind: str
) -> None:
    for name in ("secrets/a", "b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    table: Any = {key: {"secrets/**": kind}}
    gate = Gate(Rules(config=table), Workspace(RecordingEditor(tmp_path)))
    use = gate.look(TOOLS[key], {"pattern": "*"})
    assert gate.decide(use).kind == "allow"
    may_read = gate.readable(use)
    assert [may_read(tmp_path / name) for name in ("secrets/a", "b")] == [False, True]
    named = gate.look(TOOLS[key], {"pattern": "*", "path": "secrets"})
    assert gate.decide(named).kind == kind
    assert gate.readable(named)(tmp_path / "secrets/a")
