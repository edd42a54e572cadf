"""What a rule for commands speaks for: everyday lines, and never what a table has wrong."""

import os
import shlex
import shutil
import string
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tiro.agents.command_rules import READ_ONLY, subjects_of
from tiro.tools.command_line import parse_command_line
from tiro.tools.command_risks import risk_of
from tiro.tools.known_options import GIT_WRITERS, PROGRAMS
from tiro.tools.readers import GIT_READERS, READERS, only_reads
from tiro.tools.reading import Reader

EVERYDAY = {
    READ_ONLY: """
        ls -la; ls -lah sub; ls -1; tree -L 2 -I node_modules; tree -aL 2; du -sh .; df -h
        cat -n a.txt; head -n 20 a.txt; head -20 a.txt; head -c -1 a.txt; tail -n +5 a.txt
        tail -5 a; wc -l a.txt; sort -k 2 -n a.txt; sort -t, -k2nr a.txt; sort -u a.txt
        uniq -c a.txt; cut -d: -f1,3 a.txt; cut -d , -f 2 a.txt; comm -12 a b; diff -u a b
        diff -U3 a b; cmp a b; nl -ba a.txt; grep -n -C3 foo a.txt; grep -nE 'a|b' a.txt
        grep -e foo -e bar a.txt; grep -m 1 foo a.txt; grep -A 2 -B 2 foo a.txt
        sed -n 1,20p a.txt; file a.txt; stat a.txt; stat -c %s a.txt
        find . -name '*.py' -not -path './x/*'; find src -type f -mtime -3
        find . -maxdepth 2 -size +10k; pwd; which git; echo done; date +%F; test -f a.txt; seq 1 3
        git status -sb; git status -uno; git log --oneline -10; git log -n 5 --stat
        git log --since=yesterday --author=me; git branch -a
        git remote -v; git diff --stat HEAD~1; git diff HEAD~1 --stat; git diff --cached --stat
        git diff -M --stat; git show --stat HEAD; git show HEAD --name-only
        git show --oneline --stat HEAD; git rev-parse --short HEAD; git ls-files
        git describe --tags; git shortlog -sn; git blame -L 1,5 a.txt; git blame -L1,5 a.txt
        printf '%s\\n' a; printf '%5d|' 3
        jq . a.json; jq -r '.scripts.test' package.json; cat a.json | jq -c '.[]'; egrep 'a|b' a.txt
        docker ps; docker ps -a --format '{{.Names}}'; docker images -q; python3 --version
        node --version; git reflog -5; grep -c '' a.txt; id -u; hostname; od -c a.txt; uptime
        paste -sd, a.txt; fold -w 80 a.txt; sleep 1
    """,
    "git *": """
        git diff; git diff -U5 HEAD~2 -- a.txt; git show abc1234; git log -p -3 -- a.txt
        git log -Sfoo; git log -S foo --oneline; git log -iGfoo; git log -L1,5:a.txt
        git log --graph; git add -A; git add .; git commit -m 'fix: it'; git commit -am 'fix it'
        git commit --amend; git commit --amend --no-edit; git push; git push -u origin main
        git pull --rebase; git fetch -p; git checkout -b topic; git checkout -- a.txt
        git switch -c topic; git stash; git stash pop; git rebase main; git rebase --continue
        git merge --no-ff topic; git reset --hard HEAD~1; git branch -d topic; git tag -a v1 -m v1
        git restore --staged a.txt; git rm --cached a.txt; git cherry-pick abc1234
        git revert HEAD; git clone --depth 1 https://host/a.git; git grep -n x
        git worktree add sub/w topic; git mv a b; git clean -nd; git show HEAD:a.txt; git init
    """,
    "npm test": """
        npm test; npm test -- -u; npm test -- --coverage; npm test -- a.test.js -t 'a b'
    """,
    "npm *": """
        npm test; npm ci; npm install; npm install --save-dev jest; npm i -D jest
        npm ls --depth 0; npm outdated; npm audit; npm -v; npm test -w pkg
        npm install -w pkg jest; npm t --silent
    """,
    "npm run *": """
        npm run build; npm run lint -- --fix; npm run test -- --watch; npm run a:b
    """,
    "pytest": """
        pytest; pytest -q; pytest -x -vv; pytest tests/test_a.py::test_b; pytest -k 'a and not b'
        pytest -rA; pytest -n auto; pytest -n4; pytest --lf; pytest --tb=short -q
        pytest -m 'not slow'; pytest --cov=pkg --cov-branch; pytest --maxfail 1 tests
        pytest -s tests; pytest --co -q; pytest --durations=10; pytest --version; pytest -ra
    """,
    "pytest *": "pytest tests; pytest -q; pytest -xvs tests/a.py; pytest -k a --lf",
    "python -m pytest *": "python -m pytest tests; python -m pytest -q -x",
    "cargo *": """
        cargo build; cargo build --release; cargo test; cargo test -- --nocapture; cargo test name
        cargo test -p a --lib -- --test-threads=1 name; cargo clippy -- -D warnings; cargo check
        cargo clippy --all-targets --all-features -- -D warnings -A dead_code; cargo fmt --check
        cargo fmt --all -- --check; cargo clippy -- -Dwarnings; cargo build -j 4; cargo build -j4
        cargo tree -p a; cargo doc --no-deps; cargo update; cargo add serde --features derive
        cargo clippy --fix --allow-dirty; cargo --version; cargo bench; cargo clean
    """,
    "make": """
        make; make test; make -j4; make -j 4 all; make -k; make -n; make -B a; make -s -j8 test
    """,
    "make *": "make; make test; make -j4 all",
    "cmake --build *": """
        cmake --build build; cmake --build build -j 4; cmake --build build --target a
    """,
    "ctest": """
        ctest; ctest -V; ctest -R name; ctest -j4; ctest --output-on-failure -j 4
    """,
    "ninja": "ninja; ninja -j4; ninja test; ninja -v",
    "gcc": """
        gcc -Wall -c a.c; gcc -Wall -Wextra -Wpedantic -O2 -g -c a.c
        gcc -std=c11 -Iinc -DX=1 -c a.c; gcc -I inc -c a.c; gcc a.c -lm
        gcc -fsanitize=address -g3 a.c; gcc --version; gcc -Werror a.c
        gcc -O0 -Wno-unused -fPIC -shared a.c; gcc -Lsub a.c -lfoo; gcc -E a.c
        gcc -W -pthread a.c
    """,
    "clang++": "clang++ -std=c++20 -Wall -Weverything -O3 -c a.cc",
    "ls": "ls; ls -la; ls sub; ls -R; ls -lt --color=never",
    "grep": """
        grep foo a.txt; grep -rn foo .; grep -rni foo src --include='*.py'; grep -C 3 -n foo a.txt
        grep -v '^#' a.txt; grep -o 'a.*b' a.txt; grep -c foo a.txt; grep -rl foo sub
        grep -w foo a.txt; grep -rnE 'def (a|b)' src; grep -r --exclude-dir=node_modules foo .
        grep -efoo a.txt
    """,
    "rg": """
        rg foo; rg -n foo src; rg -tpy foo; rg -t py foo; rg -g '*.py' foo; rg -C2 foo; rg --files
    """,
    "curl": """
        curl -s http://127.0.0.1:9/; curl -XPOST http://127.0.0.1:9/; curl -I http://127.0.0.1:9/
        curl -X POST -d '{"a": 1}' -H 'Content-Type: a/b' http://127.0.0.1:9/
        curl -d '{"url": "http://a/[1]"}' https://a/; curl localhost:3000/a; curl -s localhost
        curl -sSf -m5 http://a/; curl -H 'From: a@b.c' http://a/
    """,
    "tar *": """
        tar xf a.tar; tar xzf a.tgz; tar czvf a.tgz sub; tar -tf a.tar; tar tvf a.tar; tar -xzf a
    """,
    "mypy": """
        mypy .; mypy --strict src; mypy -p pkg; mypy src tests --ignore-missing-imports
    """,
    "ruff": """
        ruff check .; ruff check --fix; ruff format --check .; ruff check --select I src
        ruff format
    """,
    "black": "black .; black --check src; black -l 100 src; black --diff a.py",
    "pip": """
        pip install -e .; pip install -r requirements.txt; pip list; pip install -U pip
        pip show a
    """,
    "eslint": """
        eslint .; eslint --fix src; eslint --ext .js,.ts src; eslint --max-warnings 0 src
    """,
    "npx prettier": "npx prettier --check .",
    "vitest": "vitest; vitest run; vitest run a.test.ts --coverage; vitest -t name",
    "tox": "tox; tox -e py311; tox run -e py311; tox -p",
    "just": "just; just test; just --list",
    "npx jest": "npx jest; npx jest -u; npx jest --coverage a.test.js",
    "npx tsc": "npx tsc --noEmit",
    "prettier": "prettier --check .; prettier -w src",
    "tsc": "tsc; tsc --noEmit; tsc -p .; tsc --noEmit -p tsconfig.json; tsc -w",
    "jest": "jest; jest a.test.js; jest --coverage -t 'a b'; jest -u; jest --watch",
    "go *": """
        go build ./...; go test ./...; go test -v -run TestX ./pkg; go test -race -count=1 ./...
        go vet .; go mod tidy; go fmt ./...; go list -m all; go doc fmt; go version
        go get example.com/a
    """,
    "mvn": """
        mvn -q test; mvn clean install -DskipTests; mvn -B verify -pl a -am; mvn test -Dtest=A
    """,
    "./gradlew": """
        ./gradlew build; ./gradlew test --tests A; ./gradlew clean build -x test --info
    """,
    "dotnet": "dotnet build; dotnet test -c Release --no-build; dotnet restore",
    "jq": """
        jq . a.json; jq -r '.a[]' a.json; jq -c .a a.json; jq --arg x 1 '.[$x]' a.json
    """,
    "xxd": "xxd a.bin; xxd -l16 a.bin; xxd -p a.bin",
    "python scripts/*": "python scripts/a.py; python scripts/a.py --any -c thing",
    "python -u scripts/*": "python -u scripts/a.py thing",
    "npx tsx scripts/*": "npx tsx scripts/a.ts thing",
    "uv run scripts/*": "uv run scripts/a.py thing",
    "./scripts/*.sh": "./scripts/a.sh; ./scripts/a.sh thing",
    "pytest tests/*": "pytest tests/a.py; pytest tests/a.py -k foo -x; pytest tests/a tests/b -q",
    "python -m pytest tests/*": "python -m pytest tests/a.py -k foo; python -m pytest tests/a.py",
    "rm -rf build/*": "rm -rf build/x; rm -rf build/x build/y; rm -rf build/x -v",
    "rm *.pyc": "rm a.pyc; rm a.pyc b.pyc; rm a.pyc -f",
    "cp src/* docs/*": "cp src/a.py docs/b; cp src/a.py docs/b -v",
    "git add src/*": "git add src/a.py src/b.py; git add src/a.py -v",
    "git commit src/*": "git commit src/a.py -m thing",
    "npm run test:*": "npm run test:unit",
    "poetry run pytest": "poetry run pytest -q; poetry run pytest -k a tests",
    "uv run pytest *": "uv run pytest -q; uv run pytest tests",
}
"""What people write into their rules, and the lines that they expect not to be asked about."""


def _covers(rule: str, line: str) -> bool:
    return all(one.is_covered_by(rule) for one in subjects_of(parse_command_line(line)))


@pytest.mark.parametrize("rule", EVERYDAY)
def test_everyday_lines_do_not_ask(rule: str) -> None:
    lines = [line.strip() for line in EVERYDAY[rule].replace("\n", ";").split(";")]
    asking = [line for line in lines if line and not _covers(rule, line)]
    assert asking == []


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        ("rm -rf build/*", "rm -rf build/x src; rm build/x -rf src; rm -rf build/x ."),
        (
            "rm -rf build/*",
            "rm -rf build/x -v src; rm -rf build/x build/../src; rm -rf build/x -- s",
        ),
        ("rm *.pyc", "rm a.pyc README.md; rm a.pyc -- b.pyc c; rm a.pyc -- -f"),
        ("cp src/* docs/*", "cp src/a.py docs/y notes.txt src; cp src/a.py docs/y -t src"),
        ("git add src/*", "git add src/a.py README.md; git add src/a.py ."),
        ("pytest tests/*", "pytest tests/a.py src; pytest tests/a.py -k foo src"),
        ("python -m black src/*", "python -m black src/a.py b.py"),
    ],
)
def test_a_pattern_of_paths_speaks_for_no_other_path(rule: str, lines: str) -> None:
    assert [line for line in lines.split("; ") if _covers(rule, line)] == []


def test_there_are_many_everyday_lines() -> None:
    assert sum(lines.count(";") for lines in EVERYDAY.values()) >= 150


def _options(reader: Reader) -> Iterator[str]:
    """All that may be options with a value in the next word."""
    yield from (f"-{letter}" for letter in reader.flags + reader.valued + _text(reader))
    yield from (f"-{name}" for name in reader.single.split())
    yield from (f"--{name}" for name in reader.long.split())


def _text(reader: Reader) -> str:
    return reader.text + reader.deep_text


def _extended(reader: Reader) -> Iterator[tuple[str, ...]]:
    """Words with an option that is not known, in all the places where one might hide."""
    known = {*reader.flags, *reader.valued, *_text(reader), *reader.deep.split()}
    unknown = [letter for letter in string.ascii_letters if letter not in known]
    unknown = [letter for letter in unknown if letter not in reader.single.split()]
    for option in _options(reader):
        yield option, "--evil"
        yield option, "--", "--evil=x"
        yield option, "-", "x", "--evil"
        yield option, f"-{unknown[0]}"
    for letter in (*reader.flags, *reader.valued):
        for other in unknown:
            yield f"-{letter}{other}", "x"
        yield f"-{letter}1./{unknown[0]}", "x"


def test_an_option_that_is_not_known_hides_nowhere() -> None:
    """B49: not as the value of another one, behind one, in one, or behind `--`, in no program."""
    passed = [
        (name, *words)
        for name, reader in READERS.items()
        for words in _extended(reader)
        if only_reads((name, *words), deep=True) is not None
    ]
    passed += [
        ("git", name, *words)
        for name, reader in GIT_READERS.items()
        for words in _extended(reader)
        if only_reads(("git", name, *words), deep=True) is not None
    ]
    programs = [((name,), known) for name, known in PROGRAMS.items()]
    writers = [(("git", name), known) for name, known in GIT_WRITERS.items()]
    for names, known in (*programs, *writers):
        verb = tuple(known.verbs.split()[:1])
        passed += [
            (*names, *verb, *words)
            for words in _extended(known.options)
            if risk_of((*names, *verb, *words), len(names)) is None
        ]
    assert passed == []


def test_a_word_more_than_a_program_may_get_hides_behind_no_option() -> None:
    """B49: what would be written to (`uniq a b`), also if the table takes it for a value."""
    readers = {name: known for name, known in READERS.items() if known.most == 1}
    readers |= {name: known.options for name, known in PROGRAMS.items() if known.options.most == 1}
    assert len(readers) >= 2
    for name, reader in readers.items():
        for option in _options(reader):
            assert risk_of((name, option, "a", "b"), 1) is not None
            assert risk_of((name, "a", option), 1) is not None, "some systems write to that"
            assert risk_of((name, "a", "b"), 2) is not None


def test_real_programs_only_read_with_what_the_tables_list(tmp_path: Path) -> None:
    """B49: each option of one letter, alone and with what may stand behind it."""
    (tmp_path / "a.txt").write_text("a\n")
    lines = [
        (name, option, "a.txt", "X")
        for name, reader in READERS.items()
        if shutil.which(name)
        for option in (
            *(f"-{letter}" for letter in (*reader.flags, *reader.valued, *_text(reader))),
            *(f"-{letter}1X" for letter in (*reader.valued, *_text(reader))),
            *(f"-{letter}oX" for letter in _text(reader)),
        )
    ]
    tried = [line for line in lines if only_reads(line, deep=True) is not None]
    assert len(tried) > 150
    script = "".join(
        f"{text} >/dev/null 2>&1 </dev/null; test -e X && echo {shlex.quote(text)}; rm -f X\n"
        for text in map(shlex.join, tried)
    )
    done = subprocess.run(["sh"], cwd=tmp_path, input=script, capture_output=True, text=True)
    assert (done.stdout, os.listdir(tmp_path)) == ("", ["a.txt"])
    assert (tmp_path / "a.txt").read_text() == "a\n"


@pytest.mark.parametrize(
    "line",
    ["rm x", "poetry run rm x", "uv -q run rm x", "npx rm x", "npm exec rm x", "npm exec -- rm x",
     "python -m rm x", "uv run python -m rm x", "npm run -- rm"],
)  # fmt: skip
def test_what_denies_sees_the_command_that_another_runs(line: str) -> None:
    (subject,) = subjects_of(parse_command_line(line))
    assert subject.may_be("rm *")


@pytest.mark.parametrize("line", ["npm install rm", "pytest rm", "poetry add rm", "git add rm"])
def test_what_denies_takes_no_other_word_for_a_command(line: str) -> None:
    (subject,) = subjects_of(parse_command_line(line))
    assert not subject.may_be("rm *")


@pytest.mark.parametrize("line", ["*", ">", "$", "(", "#"])
def test_line_without_words_asks(line: str) -> None:
    (subject,) = subjects_of(parse_command_line(line))
    assert not subject.is_covered_by("ls")
    assert not subject.is_covered_by("*")


@pytest.mark.parametrize(
    "line",
    ["timeout 5 git push", "git --no-pager push", "time git push", "nice -n 5 git --no-pager push",
     "git -C sub push", "CI=1 git push 2>&1"],
)  # fmt: skip
def test_what_denies_sees_the_command_within_another(line: str) -> None:
    (subject,) = subjects_of(parse_command_line(line))
    assert subject.may_be("git push")


@pytest.mark.parametrize(
    "line",
    ["curl '[f-f]ile:/a/%2eenv'", "curl '{f}ile:/x'", "curl -s 'fil[e-e]:/x'", "curl file:/x",
     "curl -H -d '{f}ile:/x'", "curl -sd x '{f}ile:/x'", "curl gopher://h/x", "curl ftp://h/x",
     "curl 'http://h/{a,b}'", "curl 'http://h/[1-9]'", "curl -g '[f-f]ile:/x'", "curl h/x",
     "curl -d a -H b '{f}ile:/x' http://h/", "curl 'localhost{:,/}x'", "curl localhostx",
     "curl -Gd x -m 5 'file:/x'", "curl -m5 '{f}ile:/x'", "curl --data=x '{f}ile:/x'"],
)  # fmt: skip
def test_curl_gets_nothing_but_plain_pages(line: str) -> None:
    """B49: its own patterns spell addresses that no rule sees."""
    (subject,) = subjects_of(parse_command_line(line))
    assert not subject.is_covered_by("curl")
    assert not subject.is_covered_by("curl *")


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        ("cargo publish", "cargo -q publish; cargo +nightly publish; cargo --color never publish"),
        ("npm publish", "npm -s publish; npm --loglevel silent publish; npm publish --tag a"),
        ("yarn publish *", "yarn --silent publish; yarn publish"),
        ("pip install", "pip -q install x; pip3 install x; pip3.11 -v install x"),
        (
            "make deploy",
            "make -s deploy; make all deploy; make -j 4 a b deploy; gmake x; /bin/make deploy",
        ),
        ("systemctl stop", "systemctl --user stop x; systemctl -M a stop x"),
        ("gh pr merge", "gh pr -R x merge 1; gh -R x pr merge 1; gh pr merge"),
        ("git push --force", "git push origin --force; git -c a=b push -q --force"),
        ("rm *", "hyperfine rm x; cross-env A=1 rm x; tini -- rm x; watchexec rm x"),
        ("rm", "chronic rm x; dotenv rm x; cpulimit -l 5 -- rm x; caffeinate rm x"),
        (
            "rm -rf *",
            "rm -rf a; rm -fr a; rm -r -f a; rm --force -R a; rm a -rf; rm -rfv a; rm --rec -f a",
        ),
        (
            "git push --force",
            "git push -f; git push -qf origin main; git push --forc; sudo git push -f",
        ),
        ("git push -f", "git push --force; git push origin --force"),
        (
            "git push --force",
            "git push --force-with-lease; git push --f; git push origin +main; git push --mirror",
        ),
        ("git push --force-with-lease", "git push -f; git push origin +a:b; git push --force"),
        (
            "git push --delete",
            "git push -d o b; git push origin :b; git push o +:b; git push --del o b",
        ),
        (
            "git commit --no-verify",
            "git commit -nm x; git commit -m x -n; git commit --no-ver; sudo git commit -an",
        ),
        ("git commit -n", "git commit --no-verify -m x; git commit --no-v; git commit -nm x"),
        ("git commit --no-v*", "git commit -n -m x"),
        ("git * --no-verify", "git commit -n"),
        ("git commit --amend", "git commit --am; git commit --a"),
        ("git add -A", "git add --all; git add --al; git add -Av; git add --no-ignore-removal"),
        ("git add --all", "git add -A"),
        ("git branch --move", "git branch -m a b; git branch -M a b"),
        ("cp -r", "cp -a a b; cp -R a b; cp --archive a b; cp --r a b; cp -ax a b"),
        ("rm -r -f", "rm --r --f x; rm -rfffffffffff x"),
        ("rsync --delete", "rsync -a --delete-after a b; rsync --del a b"),
        ("sed -i", "sed -i.bak s/a/b/ f; sed -ni.bak p f; sed --in-place=.bak p f; sed -Ei p f"),
        (
            "docker run -v",
            "docker run -v/:/x i; docker run --vol /:/x i; docker run --mount a i",
        ),
        ("docker run --volume", "docker run -v/:/x i; docker run --volume=/:/x i"),
        ("terraform apply -auto-approve", "terraform apply --auto-approve"),
        ("terraform apply --auto-approve", "terraform apply -auto-approve"),
        ("git commit -F", "git commit --file x; git commit -Fx"),
        ("npm install -g", "npm i --global x; npm add -g x; npm install --location=global x"),
        ("curl -o", "curl -O h; curl -ox h; curl --output x h; curl --remote-name h"),
        ("find -exec", "find . -execdir rm {} +; find . -ok rm {} +"),
        ("git branch -D *", "git branch -D a; git branch --delete --force a"),
        ("git clean -fdx", "git clean -xfd; git clean -x -df; sudo git clean -xdf"),
        ("npm install", "npm i; npm add x; npm in x; npm -s instal x; npm isntall; npm install x"),
        ("npm i", "npm install; npm i x; npm add x"),
        ("npm publish", "npm publ; npm pub --tag a"),
        ("npm run *", "npm run-script x; npm rum x"),
        ("npm exec", "npm x y; npm exec y"),
        ("pnpm add *", "pnpm i; pnpm install x; pnpm add x"),
        ("kubectl delete", "kubectl -n x delete pod y; KUBECTL --context=a delete"),
    ],
)
def test_what_denies_sees_through_options(rule: str, lines: str) -> None:
    """B49: an option that does no harm hides no command."""
    missed = [
        line
        for line in lines.replace("gmake x; ", "").split("; ")
        if not any(one.may_be(rule) for one in subjects_of(parse_command_line(line)))
    ]
    assert missed == []


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        ("git push", "git stash push; git log push; git commit -m push; git add . push"),
        ("cargo publish", "cargo test publish; cargo build -p publish; cargo"),
        ("npm publish", "npm install publish; npm run publish; npm test"),
        ("pip install", "pip show install; pip list"),
        ("rm -rf *", "rm -r a; rm a; rm -f a; echo -rf; cp -rf a b"),
        ("git push --force", "git push; git push --follow-tags; git push a main:b"),
        ("git commit -n", "git commit -m x; git commit --amend; git commit -am -x"),
        ("--force", "git push --force"),
        ("-rf *", "rm -rf a"),
        ("git push -n", "git push --no-verify"),
        ("cp -a", "cp -r a b"),
        ("git push --delete", "git push origin a:b"),
        ("npm install", "npm ci; npm test; npm run i; npm ls; npm init; npm info x; npm it"),
        ("python -c", "python x.py -c y; python a.py b -c"),
        ("go test -race", "go test -cover -a ./...; go test -trace x"),
    ],
)
def test_what_denies_takes_no_argument_for_what_is_done(rule: str, lines: str) -> None:
    for line in lines.split("; "):
        assert not any(one.may_be(rule) for one in subjects_of(parse_command_line(line))), line


@pytest.mark.parametrize(
    "line",
    ["docker compose ps", "kubectl get pods", "awk '{print $1}' f", "bash scripts/x.sh",
     "python -c 'print(1)'", "find . -name x -delete", "git config -l"],
)  # fmt: skip
def test_rule_that_is_the_whole_command_covers_it(line: str) -> None:
    assert _covers(line, line)
    assert not _covers(line, f"{line} more")
    assert not _covers(line, f"env {line}")
    assert not _covers(line, f"echo x | {line}")
    assert not _covers(line, f"{line} > x")
    assert not _covers(line.rpartition(" ")[0], line)


@pytest.mark.parametrize(
    "line",
    ["tsx -e 'x'", "ts-node -e 'x'", "elixir -e 'x'", "ghc -e 'x'", "ipython -c 'x'", "R -e 'x'",
     "Rscript -e 'x'", "groovy -e 'x'", "guile -c 'x'", "ghc-9.2 -e x", "tsx --eval x",
     "concurrently 'touch x'", "hyperfine 'touch x'", "watchexec touch x", "tini touch x",
     "run-parts x"],
)  # fmt: skip
def test_language_runs_no_text_of_one_line(line: str) -> None:
    """B49: not by a rule that names the language, with or without the option."""
    assert not _covers(line.split()[0], line)
    assert not _covers(f"{line.split()[0]} *", line)
