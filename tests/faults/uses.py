"""Uses of the product that together come to every place where it asks the system for something."""

import contextlib
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e import command
from tests.e2e.client import TIRO, Server
from tests.e2e.home import Home
from tests.e2e.provider import API_KEY
from tests.e2e.warm import WarmProcess
from tests.faults.stage import OTHER_PICTURE, PICTURE, Stage
from tests.models.hub import Hub
from tests.tools.images import png

Use = Callable[[Stage], None]
SETTINGS = {
    "permission": {"edit": "allow", "write": "allow", "bash": "allow"},
    "log": {"level": "info", "file": "tiro.log"},
    "session": {"summary": {"enabled": False}},
}


def furnish(home: Home) -> None:
    """A workspace with files, settings and agents of its own."""
    home.write_config(**SETTINGS)
    agent = "---\ndescription: mine\n---\nYou are mine.\n"
    (home.config_dir / "agents").mkdir()
    (home.config_dir / "agents" / "mine.md").write_text(agent)
    home.write(".tiro/agents/theirs.md", agent)
    home.write(".tiro/config.yaml", "agent: build\n")
    home.write("AGENTS.md", "Be brief.\n")
    home.write("a.txt", "".join(f"line {n}\n" for n in range(20)))
    home.write("sub/.gitignore", "*.o\n")
    home.write("sub/b.txt", "line b\n")
    home.write("p.png", png())
    (home.root.parent / "given.json").write_text('[{"role": "user", "content": "given"}]')
    for folder in (home.sessions, home.sessions / "blobs"):
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / ".left.json.999999999-1.tmp").write_bytes(b"left by a killed process")
    state = home.root / "state" / "tiro"
    state.mkdir(parents=True)
    (state / "tiro.log").write_bytes(b"full\n" * 250_000)
    subprocess.run(["git", "init", "-q", home.workspace], check=True)


def hello(stage: Stage) -> None:
    """A server starts, takes two messages and a turn, and ends."""
    server = stage.serve()
    stage.add(server, "one")
    stage.add(server, "two")
    stage.ask(server, "three")


def saved(stage: Stage) -> None:
    """Everything that a user does with sessions."""
    server = stage.serve()
    stage.add(server, "one")
    stage.ask(server, "two")
    stage.add(server, "three", [{"type": "text", "text": "three"}, PICTURE])
    stage.tell("save", server, "tiro/session/save")
    out = stage.root / "out"
    stage.tell("save as", server, "tiro/session/save", {"path": str(out / "copy.json")})
    for kind in ("json", "markdown"):
        given = {"format": kind, "path": str(out / f"exported.{kind}")}
        stage.tell(f"export {kind}", server, "tiro/session/export", given)
    stage.add(server, "four")
    stage.tell("list", server, "tiro/session/list")
    stage.tell("search", server, "tiro/session/search", {"query": "three"})
    stage.tell("resize", server, "tiro/session/resize", {"force": "lite"})
    id_ = (stage.tell("getId", server, "tiro/session/getId") or {}).get("id")
    time.sleep(0.4)  # a snapshot is written in an idle moment
    stage.tell("clear", server, "tiro/session/clear")
    stage.add(server, "five", [{"type": "text", "text": "five"}, OTHER_PICTURE])
    stage.tell("search five", server, "tiro/session/search", {"query": "five"})
    other = (stage.tell("getId", server, "tiro/session/getId") or {}).get("id")
    if id_ and stage.tell("load", server, "tiro/session/load", {"id": id_}):
        stage.add(server, "six")
    if other and other != id_:
        deleted = stage.tell("delete", server, "tiro/session/delete", {"id": other})
        if deleted is None or deleted.get("deleted"):
            stage.seen.kept.discard("five")
    given = {"path": str(stage.root / "given.json")}
    stage.tell("import", server, "tiro/session/import", given)
    stage.tell("load copy", server, "tiro/session/load", {"path": str(out / "copy.json")})
    if not stage.tell("load again", server, "tiro/session/load", {"id": id_}):
        stage.tell("clear again", server, "tiro/session/clear")
    stage.tell("search again", server, "tiro/session/search", {"query": "five"})


def worked(stage: Stage) -> None:
    """A turn with each tool, what it changed taken back and made again."""
    server = stage.serve()
    gone = stage.home.workspace / "gone"
    gone.mkdir()
    (gone / "x").write_text("x")
    attached = [{"kind": "file", "path": str(stage.home.workspace / "a.txt")}]
    stage.ask(server, "do read", attachments=attached)
    done = stage.ask(server, "do write")
    stage.ask(server, "do run")
    stage.ask(server, "do git")
    stage.tell("edits", server, "tiro/edits/list")
    if done:
        stage.tell("next", server, "tiro/edits/next")
        stage.tell("undo", server, "tiro/edits/undo", {"turnId": done["turnId"]})
        stage.tell("redo", server, "tiro/edits/redo", {"turnId": done["turnId"]})
    stage.tell("agents", server, "tiro/agents/list")
    stage.tell("explain", server, "tiro/session/explain", {"draft": "x", "attachments": attached})
    given = {"tool": "run_command", "input": {"command": "cat a.txt"}}
    stage.tell("permission", server, "tiro/permissions/explain", given)


def at_once(stage: Stage) -> None:
    """Two servers with one session."""
    one, two = stage.serve(), stage.serve()
    stage.add(one, "one")
    id_ = (stage.tell("getId", one, "tiro/session/getId") or {}).get("id")
    if id_:
        stage.tell("load", two, "tiro/session/load", {"id": id_})
    stage.add(two, "two")
    stage.add(one, "three")
    stage.tell("save", two, "tiro/session/save")


def in_database(stage: Stage) -> None:
    """The same in a SQLite store."""
    stage.home.write_config(**SETTINGS, store={"kind": "sqlite"})
    saved(stage)


def elsewhere(stage: Stage) -> None:
    """Another LSP client, a provider whose key a command prints, over TLS that nobody speaks."""
    home = stage.home
    kept = {"api_key_env": None, "api_key_command": f"echo {API_KEY}"}
    address = "https://127.0.0.1:9/v1"
    providers = {"fake": home.fake(**kept), "tls": home.fake(base_url=address)}
    home.write_config(**{**SETTINGS, "permission": {"write": "ask"}}, providers=providers)
    features = {"permissionRequest": False, "turnEvents": False}
    capabilities = {"window": {"showDocument": {"support": True}}}
    server = stage.serve(features=features, capabilities=capabilities)
    server.on_request("window/showDocument", lambda _: {"success": True})
    server.on_request(
        "window/showMessageRequest", lambda asked: (asked.get("actions") or [None])[0]
    )
    stage.ask(server, "do write")
    stage.ask(server, "do x", model="tls/fake-model")
    stage.tell("models", server, "tiro/models/list")


def damaged(stage: Stage) -> None:
    """Files with every kind of damage, looked at and mended."""
    at = stage.home.sessions
    one, two = sorted(path for path in at.glob("*.json") if not path.name.startswith("."))[:2]
    two.write_bytes(two.read_bytes()[: two.stat().st_size // 2])
    with one.with_suffix(".journal").open("ab") as journal:
        journal.write(b'{"n": 9, "torn')
    (at / "none.json").write_bytes(b"null")
    (at / "empty.json").write_bytes(b"")
    (at / "alone.journal").write_bytes(b"not one whole line")
    stage.run("sessions", "verify", "--repair")


def damaged_in_a_database(stage: Stage) -> None:
    """A database in which a change, a snapshot and a number are damaged."""
    stage.home.write_config(**SETTINGS, store={"kind": "sqlite"})
    for text in ("one", "two"):
        with Server(stage.home, warm=stage.warm) as server:
            server.initialize()
            server.request("tiro/session/addMessage", {"role": "user", "content": text})
            server.request("tiro/session/save")
            server.request("tiro/session/addMessage", {"role": "user", "content": "more"})
            server.kill()
    with contextlib.closing(sqlite3.connect(stage.home.config_dir / "sessions.db")) as sql, sql:
        sql.execute("UPDATE changes SET lines = ? WHERE session = 1", (b'{"n": 9',))
        sql.execute("UPDATE snapshots SET data = substr(data, 1, 40) WHERE session = 2")
    stage.run("sessions", "verify", "--repair")


def downloaded(stage: Stage) -> None:
    """A model from an address."""
    with Hub(b"GGUF" + bytes(100_000)) as hub:
        stage.run("local", "pull", hub.url("/own.gguf"))


def removed(stage: Stage) -> None:
    """A model that lies there, chosen and removed."""
    command.run(stage.home, "local", "pull", str(stage.root / "own.gguf"), warm=stage.warm)
    stage.run("local", "use", "own")
    stage.run("local", "remove", "own")


def replayed(stage: Stage) -> None:
    """A recording is made, and played."""
    path = stage.root / "bug.jsonl"
    given = [*TIRO, "serve", "--record", str(path)]
    with Server(stage.home, command=given, warm=stage.warm) as server:
        server.initialize()
        server.request("tiro/turn/start", {"prompt": "x"})
        server.shutdown()
    stage.interrupt("replay", str(path))


def at_the_keyboard(stage: Stage) -> None:
    """A chat in a terminal: lines that are kept, and a memo in the user's own editor."""
    editor = stage.root / "editor"
    editor.write_text('#!/bin/sh\nprintf \'{"a": 1}\' > "$1"\n')
    editor.chmod(0o755)
    typed = ("first\r", "/file a.txt\r", "second\r", "/memo edit\r", "/save\r", "\x04")
    stage.type(typed, "chat", env={"EDITOR": str(editor), "VISUAL": str(editor)})


def library(stage: Stage) -> None:
    """A program with stores of its own."""
    stage.run("-m", "tests.faults.program", str(stage.root / "stores"))


def recorded(stage: Stage) -> None:
    """A server that writes down all that it hears."""
    server = stage.serve("--record", str(stage.root / "bug.jsonl"))
    stage.add(server, "one")
    stage.ask(server, "do run")


def terminal(*words: str, given: str = "") -> Use:
    """A command, in a home with two sessions and some edits."""

    def use(stage: Stage) -> None:
        stage.seen.kept |= {"first", "second"}
        stage.run(*[word.replace("@", str(stage.root)) for word in words], given=given)

    return use


def live(root: Path, home: Home, warm: WarmProcess) -> None:
    """What commands work on: sessions and edits, made without a fault."""
    (root / "own.gguf").write_bytes(b"GGUF" + bytes(1000))
    for text in ("first", "second"):
        with Server(home, warm=warm) as server:
            server.initialize()
            server.on_request("tiro/permission/request", lambda _: {"decision": "once"})
            server.request("tiro/turn/start", {"prompt": f"{text} write"})
            server.request("tiro/session/save")
            server.shutdown()
    home.write("a.txt", "".join(f"line {n}\n" for n in range(20)))


USES: dict[str, Use] = {
    "start": hello,
    "sessions": saved,
    "turn with tools": worked,
    "two servers": at_once,
    "database": in_database,
    "record": recorded,
    "another client": elsewhere,
    "replay": replayed,
    "tiro chat in a terminal": at_the_keyboard,
    "library": library,
    "tiro ask": terminal("ask", "Q", "--file", "a.txt"),
    "tiro ask --continue": terminal("ask", "do write", "--continue"),
    "tiro chat": terminal("chat", "--continue", given="hi\n/show\n/save\n/quit\n"),
    "tiro sessions list": terminal("sessions", "list"),
    "tiro sessions show": terminal("sessions", "show", "latest"),
    "tiro sessions search": terminal("sessions", "search", "second"),
    "tiro sessions export": terminal(
        "sessions", "export", "latest", "--format", "markdown", "--out", "@/o.md"
    ),
    "tiro sessions import": terminal("sessions", "import", "@/given.json"),
    "tiro sessions verify": terminal("sessions", "verify"),
    "tiro sessions verify --repair": damaged,
    "tiro sessions verify --repair, in a database": damaged_in_a_database,
    "tiro edits list": terminal("edits", "list"),
    "tiro edits undo": terminal("edits", "undo"),
    "tiro local list": terminal("local", "list"),
    "tiro local pull": terminal("local", "pull", "@/own.gguf"),
    "tiro local pull URL": downloaded,
    "tiro local remove": removed,
    "tiro doctor": terminal("doctor"),
    "tiro doctor --json": terminal("doctor", "--json"),
}


LIVED_IN = {name for name in USES if name.startswith("tiro ")}
"""Those that need a home in which there are sessions already."""


def run(name: str, stage: Stage) -> None:
    """One use."""
    USES[name](stage)
    for server in stage.servers:
        if server.process.poll() is None:
            stage.listen(server)
