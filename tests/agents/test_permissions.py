"""Permission rules as a table (M5.6 to M5.12)."""

import itertools
from typing import Any

import pytest

from tests.fakes import fake_tool
from tiro.agents.built_in import EXPLORE_PERMISSION, PLAN_PERMISSION
from tiro.agents.permissions import (
    OPEN_SET,
    STRICT_SET,
    PermissionDecision,
    Rules,
    decide,
    merge,
    narrowing,
    problem_of,
    strictest,
)

UNREAD = PermissionDecision("ask", "*: ask, since config.yaml cannot be used", "config")
PY_ONLY: Any = {"read": [("*.py", "allow"), ("*", "deny")]}


@pytest.mark.parametrize(
    ("permission", "tool", "given", "kind", "rule"),
    [
        (None, "read_file", {}, "allow", "no rule: allow"),
        ({}, "run_command", {}, "allow", "no rule: allow"),
        ("deny", "grep", {}, "deny", "*: deny"),
        ({"*": "deny", "grep": "allow"}, "grep", {}, "allow", "grep: allow"),
        ({"*": "deny", "grep": "allow"}, "glob", {}, "deny", "*: deny"),
        ({"read": "ask"}, "list_files", {}, "ask", "read: ask"),
        ({"edit": "deny"}, "multi_edit", {}, "deny", "edit: deny"),
        ({"edit": "deny"}, "write_file", {}, "allow", "no rule: allow"),
        ({"write": "deny"}, "write_file", {}, "deny", "write: deny"),
        ({"bash": "ask"}, "run_command", {"command": "ls"}, "ask", "bash: ask"),
        (PY_ONLY, "read_file", {"path": "a/b.py"}, "allow", "read: *.py allow"),
        (PY_ONLY, "read_file", {"path": "b.PY"}, "deny", "read: * deny"),
        (PY_ONLY, "read_file", {}, "deny", "read: * deny"),
        ({"read": {"src/*": "ask"}}, "read_file", {"path": "src/a"}, "ask", "read: src/* ask"),
        ({"read": {"src/*": "ask"}}, "read_file", {"path": "src/a/b"}, "allow", "no rule: allow"),
        ({"read": {"src/**": "ask"}}, "read_file", {"path": "src/a/b"}, "ask", "read: src/** ask"),
        ({"read": {"a": "ask"}, "*": "deny"}, "read_file", {"path": "b"}, "deny", "*: deny"),
        ({"read": [("*", "ask"), ("*.md", "allow")]}, "read_file", {"path": "x.md"}, "allow", None),
        ({"fetch": "deny"}, "fetch", {}, "deny", "fetch: deny"),
    ],
)
def test_one_table(permission: Any, tool: str, given: Any, kind: str, rule: str | None) -> None:
    found = decide(permission, tool, given)
    assert found.kind == kind
    assert rule is None or found.rule == rule


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".env", "deny"),
        ("a/prod.env", "deny"),
        (".env.local", "deny"),
        (".ENV", "deny"),
        ("a/.Env.LOCAL", "deny"),
        (".env.example", "allow"),
        ("a/.env.example", "allow"),
        ("environment", "allow"),
        ("./.env", "deny"),
        ("a/../.env", "deny"),
        (".env/", "deny"),
        ("../x/.env", "deny"),
        ("/etc/.env", "deny"),
    ],
)
@pytest.mark.parametrize("sets", [OPEN_SET, STRICT_SET])
def test_files_with_secrets_are_banned_however_written(path: str, kind: str, sets: Any) -> None:
    """M5.7, and U8.5: the strict set keeps it."""
    assert decide(sets, "read_file", {"path": path}).kind == kind


COPIES = [
    *("{}~", "{}.~1~", "{}.~12~", "#{}#", ".#{}", "{}.swp", "{}.swo", "{}.un~", ".{}.swp"),
    *("{}.swn", ".{}.un~", "{}.bak", "{}.BAK", "{}.bak2", "{}-bak", "{}_bak", "{}.orig", "{}.old"),
    *("{}_old", "{}.backup", "{}-backup", "{}.save", "{}.save.1", "{}.tmp", "{}.new", "{}.rej"),
    *("{}.1", "{}.20260101", "{}.2026-01-01T10:00", "{}.dpkg-old", "{}.rpmsave", "{}.kate-swp"),
    *("{} copy", "{} copy 2", "{} - Copy", "{} - Copy (2)", "{} (copy)", "{} (another copy)"),
    *("{} (3rd copy)", "{} (1)", "{}(1)", "Copy of {}", "Copy (2) of {}", "copy_of_{}"),
    *("backup_{}", "{}___jb_tmp___", "{}___jb_old___", "{},v", "{};1", "~${}", "{}.copy"),
    *("!home!me!ws!{}~", "%home%me%ws%{}", "%home%me%{}.swp", "#!home!me!{}#", "#%home%{}#"),
    *("{}.bak~", "#{}.orig#", "Copy of {}.bak", "{}~~", "sub/{}~", "sub/#{}#", "../x/{}.bak"),
    *("{}.bak-2024", "{}.backup_2024", "{}.old.2", "{}-bak-2026-01-01_10.30", "{} (copy 2)"),
    *("{} 2", "{} 13", "{} (Kopie)", "{} (Kopie 2)", "{} - Kopie", "{} — копия", "{} (コピー)"),
    *(
        "Kopie von {}",
        "Copie de {}",
        "{} copie",
        "{} kopia 2",
        "{}のコピー",
        "{} .bak",
        "{} ",
        "{}.",
    ),
    *("{} (Copy)", "{}.crswap", "{}.kate-swp2", "{}.ucf-dist", "{}_BACKUP_1234", "{}_REMOTE_1"),
]


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_of_what_is_denied_is_denied(copy: str) -> None:
    """M5.7: what an editor left beside a file holds what the file held."""
    own: Any = {"read": {"secrets.yaml": "deny", "id_*": "deny", "*": "allow"}}
    rules = Rules(always={"read": "allow"}, agent=own, default=OPEN_SET)
    for name in (".env", "prod.env", ".envrc", "Secrets.yaml", "id_rsa", ".ENV"):
        assert rules.decide("read", copy.format(name)).kind == "deny", name


@pytest.mark.parametrize(
    "middle", [" 2", " copy", " (Kopie)", " - Copy (2)", "(1)", "_copy", " copy 3"]
)
def test_what_a_file_manager_adds_stands_before_the_ending(middle: str) -> None:
    """M5.7: `secrets copy.yaml`."""
    rules = Rules(agent={"read": {"secrets.yaml": "deny", "*": "allow"}})
    assert rules.decide("read", f"a/secrets{middle}.yaml").kind == "deny"
    assert rules.decide("read", f"a/other{middle}.yaml").kind == "allow"


def test_other_copies_are_not_denied() -> None:
    table: Any = {"read": {"secrets.yaml": "deny", "id": "deny", "*": "allow"}}
    rules = Rules(agent=table, default=OPEN_SET)
    names = (
        ".env.example",
        "environment~",
        "env.py~",
        "a.py.bak",
        "secrets.yaml.md",
        "Copy of a",
        "secrets 2.py",
    )
    for name in (*names, "secrets", "id-1", "a~", "#", "~", "##", ".#", "!!", "(1)"):
        assert rules.decide("read", name).kind == "allow", name


def test_a_pattern_that_names_copies_counts_before_what_is_denied_of_the_file() -> None:
    table: Any = {"write": {"*.bak": "allow", "a.txt": "deny", "*": "deny"}}
    for name, kind in (("a.txt.bak", "allow"), ("b.txt.bak", "allow"), ("a.txt~", "deny")):
        assert decide(table, "write_file", {"path": name}).kind == kind
    found = decide({"read": {"a": "deny", "*": "ask"}}, "read_file", {"path": "x/a~"})
    assert found.rule == "read: a deny (which holds for a copy of x/a too)"


@pytest.mark.parametrize("copy", ["src/a.key~", "src/.a.key.swp", "src/a.key.bak"])
def test_a_deny_of_a_file_holds_for_its_copies_before_whatever_stands_after_it(copy: str) -> None:
    """M5.7: of patterns that fit the file or its copy, the first decides about the copy."""
    pairs: Any = [("*.key", "deny"), ("src/*", "allow"), ("**", "ask"), ("*", "allow")]
    for ordered in itertools.permutations(pairs):
        first = next(kind for pattern, kind in ordered if pattern != "*")
        assert decide({"read": ordered}, "read_file", {"path": copy}).kind == first, ordered


def test_what_git_leaves_of_a_merge_is_a_copy() -> None:
    """M5.7: `git mergetool` writes its number before the ending."""
    rules = Rules(agent={"read": {"secrets.yaml": "deny", "*": "allow"}})
    for side in ("BACKUP", "BASE", "LOCAL", "REMOTE"):
        assert rules.decide("read", f"a/secrets_{side}_1234.yaml").kind == "deny"
        assert rules.decide("read", f"a/secrets_{side}.yaml").kind == "allow"


def test_for_a_name_that_no_file_has_no_shape_is_looked_for() -> None:
    """It would take as long as its length squared, which for 200,000 letters is minutes."""
    for unit in ("~", "#", ".bak", "(1) copy ", "!a%", ".1", "- Copy (2) of ", "_BASE_1"):
        assert decide(OPEN_SET, "read_file", {"path": unit * 100_000}).kind == "allow"


def test_a_ban_takes_no_notice_of_case_and_a_grant_does() -> None:
    """B48: on a disk that takes `Keys` and `keys` for one name no rule is passed by; M5.6."""
    rules: Any = {
        "read": {"Keys/*": "deny", "a/*": "ask", "sub/*": "allow", "*": "ask"},
        "*": "ask",
    }
    for path, kind in (("keys/x", "deny"), ("A/x", "ask"), ("sub/x", "allow"), ("SUB/x", "ask")):
        assert decide(rules, "read_file", {"path": path}).kind == kind
    table: Any = {"bash": {"rm": "deny", "git status": "allow", "*": "ask"}}
    for command, kind in (("RM -r x", "deny"), ("/bin/Rm x", "deny"), ("GIT status", "ask")):
        assert decide(table, "run_command", {"command": command}).kind == kind


@pytest.mark.parametrize(
    ("rule", "command", "is_covered"),
    [
        ("make", "make -k -j4 all", True),
        ("make", "make -f build.mk", False),
        ("make *", "make -f build.mk", False),
        ("make -f build.mk", "make -f build.mk all", True),
        ("make -f build.mk", "make -f build.mk -f other.mk", False),
        ("make -f *", "make -f build.mk -s", True),
        ("npm", "npm test", True),
        ("npm", "npm run build", False),
        ("npm r*", "npm run-script evil", False),
        ("npm *", "npm run-script evil", False),
        ("npm -s *", "npm -s exec evil", False),
        ("npm -s *", "npm -s run evil", False),
        ("npm -s test", "npm -s test", True),
        ("npm run *", "npm run build", True),
        ("npm run *", "npm run build --script-shell=x", False),
        ("uv run *", "uv run x", False),
        ("uv *", "uv -q run x", False),
        ("pytest -*", "pytest -pevil", False),
        ("pytest *", "pytest -pevil", False),
        ("curl -s* *", "curl -sKx http://127.0.0.1/", False),
        ("git r*", "git rebase -x x", False),
        ("python scripts/*", "python scripts/a.py -c x", True),
        ("python scripts/*", "python scripts/../evil.py", False),
        ("python *", "python evil.py", False),
        ("npm run build", "npm run build", True),
        ("npm run build", "npm run build -- --config x", False),
        ("yarn", "yarn build", False),
        ("yarn build", "yarn build", True),
        ("pytest *", "pytest -x -k 'a or b' tests", True),
        ("pytest * tests", "pytest -p tests", False),
        ("pytest -p x", "pytest -p x -q", True),
        ("git", "git commit -qm x", True),
        ("git", "git rebase -x x", False),
        ("git notes", "git notes list", True),
        ("git notes", "git notes add -F x", False),
        ("my-tool", "my-tool -x --any thing", True),
        ("my-tool", "my-tool --exec=thing", False),
        ("my-tool --exec=*", "my-tool --exec=thing", True),
        ("/usr/bin/make", "/usr/bin/make -f x", False),
    ],
)
def test_a_rule_covers_what_it_writes_out_and_harmless_options(
    rule: str, command: str, is_covered: bool
) -> None:
    """B49: of a program that is known; any other is vouched for by whoever names it."""
    table: Any = {"bash": {rule: "allow", "*": "ask"}}
    expected = "allow" if is_covered else "ask"
    assert decide(table, "run_command", {"command": command}).kind == expected


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("make all", "allow"),
        ("make --eval='$(shell rm x)'", "ask"),
        ("make --eval 'rm x'", "ask"),
        ("tar -xf x --to-command rm", "deny"),
        ("find . -exec rm x", "deny"),
        ("git rebase -x rm HEAD", "deny"),
        ("npm run build", "allow"),
        ("my-tool --exec rm", "deny"),
    ],
)
def test_who_allows_the_rest_is_asked_about_what_may_hide_a_denied_command(
    command: str, kind: str
) -> None:
    """B49: a `*` that allows beside other patterns."""
    table: Any = {"bash": {"rm": "deny", "*": "allow"}}
    assert decide(table, "run_command", {"command": command}).kind == kind


def test_ban_holds_whatever_else_allows_it() -> None:
    """M5.6: across tables a deny wins; M5.12: no session can lift it."""
    found = decide(
        {"read": "allow"},
        "read_file",
        {"path": ".env"},
        always={"read": "allow"},
        config="allow",
        default=OPEN_SET,
    )
    assert (found.kind, found.source) == ("deny", "default")


@pytest.mark.parametrize(
    ("tables", "kind", "source"),
    [
        ({}, "allow", "default"),
        ({"default": "ask"}, "ask", "default"),
        ({"default": "ask", "config": "allow"}, "allow", "config"),
        ({"config": "allow", "agent": "ask"}, "ask", "agent"),
        ({"agent": "ask", "always": "allow"}, "allow", "session"),
        ({"agent": "ask", "always": "allow", "config": "deny"}, "deny", "config"),
        ({"workspace": "allow", "default": "ask"}, "ask", "default"),
        ({"workspace": "ask", "config": "allow"}, "ask", "workspace"),
        ({"workspace": "ask", "config": "deny"}, "deny", "config"),
        ({"workspace": "ask", "always": "allow"}, "ask", "workspace"),
        ({"workspace": "deny", "always": "allow"}, "deny", "workspace"),
        ({"unread": UNREAD, "always": "allow"}, "ask", "config"),
        ({"unread": UNREAD, "workspace": "deny"}, "deny", "workspace"),
        ({"unread": UNREAD, "default": "deny"}, "deny", "default"),
    ],
)
def test_precedence_of_tables(tables: Any, kind: str, source: str) -> None:
    found = Rules(**tables).decide("grep", None)
    assert (found.kind, found.source) == (kind, source)


@pytest.mark.parametrize(
    ("tables", "is_offered"),
    [
        ({}, True),
        ({"agent": {"read": "deny"}}, False),
        ({"agent": {"*": "deny"}}, False),
        ({"agent": {"*": "deny", "read": "ask"}}, True),
        ({"agent": {"read": [("*.md", "allow"), ("*", "deny")]}}, True),
        ({"agent": {"read": [("*.md", "deny"), ("*", "deny")]}}, False),
        ({"agent": {"read": [("*.md", "deny")]}}, True),
        ({"config": {"read": "deny"}}, False),
        ({"workspace": {"read": "deny"}}, False),
    ],
)
def test_offer(tables: Any, is_offered: bool) -> None:
    """M5.10: allow and ask are offered."""
    assert Rules(**tables).offers(fake_tool(permission_key="read")) is is_offered


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ([], {}),
        (["deny"], {"*": "deny"}),
        ([{"*": "allow", "a": "ask"}, {"*": "deny"}], {"a": "ask", "*": "deny"}),
        ([{"*": "allow"}, {"b": "deny"}], {"b": "deny", "*": "allow"}),
        ([{"a": [("x", "allow")]}, {"a": "deny"}], {"a": "deny"}),
        ([{"a": "deny"}, {"a": {"x": "allow"}}], {"a": [("x", "allow")]}),
        (
            [{"a": [("*", "deny"), ("x", "allow"), ("*", "allow")]}],
            {"a": [("x", "allow"), ("*", "deny")]},
        ),
        ([None, {"a": "ask"}], {"a": "ask"}),
    ],
)
def test_merge_has_one_wildcard_at_the_end(tables: Any, expected: Any) -> None:
    """M5.8: the trap was that two wildcards survived and allow won."""
    merged = merge(*tables)
    assert merged == expected
    assert "*" not in list(merged)[:-1]


@pytest.mark.parametrize(
    ("tool", "path", "kind"),
    [
        ("write_file", "a.py", "deny"),
        ("edit_file", "a.py", "deny"),
        ("multi_edit", "a.py", "deny"),
        ("write_file", ".tiro/plan/x.md", "allow"),
        ("write_file", "sub/.tiro/plan/x.md", "deny"),
        ("write_file", ".tiro/plan/../../x.md", "deny"),
        ("write_file", ".tiro/plan/deep/x.md", "deny"),
        ("read_file", "a.py", "allow"),
    ],
)
def test_plan_changes_nothing_but_plans(tool: str, path: str | None, kind: str) -> None:
    """M5.8: write_file has a key of its own, and is restricted all the same."""
    assert decide(PLAN_PERMISSION, tool, {"path": path, "command": "ls"}).kind == kind


@pytest.mark.parametrize(
    ("tool", "path", "kind"),
    [
        ("read_file", "a.py", "allow"),
        ("read_file", ".env", "deny"),
        ("grep", "a", "allow"),
        ("glob", "a", "allow"),
        ("write_file", ".tiro/plan/x.md", "deny"),
        ("edit_file", "a", "deny"),
        ("run_command", None, "deny"),
        ("delegate", None, "deny"),
        ("something_new", None, "deny"),
    ],
)
def test_explore_only_reads(tool: str, path: str | None, kind: str) -> None:
    """M5.9."""
    assert decide(EXPLORE_PERMISSION, tool, {"path": path}).kind == kind


@pytest.mark.parametrize("tool", ["run_command", "write_file", "edit_file"])
def test_strict_set_asks(tool: str) -> None:
    """U8.5."""
    assert decide(STRICT_SET, tool, {"path": "a", "command": "ls"}).kind == "ask"
    assert decide(OPEN_SET, tool, {"path": "a", "command": "ls"}).kind == "allow"
    assert STRICT_SET["external_directory"] == STRICT_SET["doom_loop"] == "ask"


@pytest.mark.parametrize(
    ("permission", "told"),
    [
        (None, None),
        ("ask", None),
        ({"read": "ask", "bash": {"git *": "allow"}, "x": [["a", "deny"]]}, None),
        ("maybe", "must be allow, ask, deny or a table"),
        (5, "not 5"),
        ({"read": False}, "read: must be"),
        ({"read": {"a": "no"}}, "read: must be allow, ask or deny, not 'no'"),
        ({"read": ["a"]}, "read: must be a table of patterns"),
        ({"read": {"": "deny"}}, "read: must not have an empty pattern"),
    ],
)
def test_problem_of_what_somebody_wrote(permission: Any, told: str | None) -> None:
    found = problem_of(permission)
    assert (found is None) == (told is None)
    assert told is None or told in str(found)


def test_narrowing_takes_away_what_allows() -> None:
    assert narrowing("allow") is None
    assert narrowing("ask") == "ask"
    assert narrowing({"a": "allow", "b": "deny"}) == {"b": "deny"}


def test_strictest_takes_the_first_of_equals() -> None:
    first, second = PermissionDecision("ask", "1"), PermissionDecision("ask", "2")
    assert strictest(first, second, PermissionDecision("allow", "3")) is first
