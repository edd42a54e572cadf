"""Protocol sections 2, 3 and 6: sizes, statistics, and the exact text of `show`."""

from typing import Any

import pytest

from tests.e2e import replies
from tests.e2e.client import Server
from tests.e2e.provider import Provider
from tests.e2e.talk import add, ask, check_size, fill, result, use

# contextSize, statistics, show


def test_context_size_grows_with_text_and_adds_up(server: Server) -> None:
    def size(**params: Any) -> dict[str, Any]:
        found: dict[str, Any] = server.request("tiro/session/contextSize", params)
        return found

    empty = check_size(size())
    assert size()["contextWindow"] == 100_000
    assert size()["breakdown"]["system"] > 0
    assert size()["breakdown"]["tools"] > 0
    draft = check_size(size(draft="word " * 200))
    assert 150 <= draft - empty <= 400
    assert check_size(size(draft="漢" * 1000)) - empty >= 600
    add(server, "user", "question " * 100)
    add(server, "assistant", [{"type": "text", "text": "answer " * 100}, use("c1", path="x" * 400)])
    add(server, "tool", result("c1", "result " * 100))
    parts = size()["breakdown"]
    assert min(parts["user"], parts["assistant"], parts["toolUse"], parts["toolResult"]) >= 50
    before = parts["system"]
    add(server, "system", "rule " * 100)
    assert size()["breakdown"]["system"] >= before + 50
    check_size(size())


def test_statistics_count_the_window(server: Server, provider: Provider) -> None:
    add(server, "system", "rules")
    add(server, "user", "go")
    add(server, "assistant", [use("a", "glob"), use("b", "glob"), use("c", "grep")])
    add(server, "tool", [result("a"), result("b"), result("c")])
    add(server, "assistant", "done")
    counted = server.request("tiro/session/statistics")
    assert {k: counted[k] for k in ("user", "assistant", "tool", "system", "turns")} == {
        "user": 1,
        "assistant": 2,
        "tool": 3,
        "system": 1,
        "turns": 2,
    }
    assert counted["toolUses"] == {"glob": 2, "grep": 1}
    assert counted["tokens"] > 0
    provider.script(replies.text("ok", usage=replies.usage_chunk(100, 7, cached=40)))
    ask(server)
    usage = server.request("tiro/session/statistics")["usage"]
    assert (usage["inputTokens"], usage["cacheReadTokens"], usage["outputTokens"]) == (60, 40, 7)
    provider.script(replies.text("ok", usage=replies.usage_chunk(10, 3)))
    ask(server)
    usage = server.request("tiro/session/statistics")["usage"]
    assert (usage["inputTokens"], usage["cacheReadTokens"], usage["outputTokens"]) == (70, 40, 10)


def show(server: Server) -> Any:
    return server.request("tiro/session/show")["text"]


def lines(server: Server) -> list[str]:
    text = show(server)
    assert text.startswith("Session Summary:\n\n")
    return str(text).split("\n")[2:]


def test_show_of_an_empty_session_is_null(server: Server) -> None:
    shown = server.request("tiro/session/show")
    assert shown["text"] is None
    assert shown["statistics"] == server.request("tiro/session/statistics")


def test_show_is_exact_to_the_letter(server: Server) -> None:
    add(server, "user", "Find all .el files")
    text = {"type": "text", "text": "I'll search for .el files using glob."}
    add(server, "assistant", [text, use("c1", "glob", pattern="*.el")])
    add(server, "tool", result("c1", "file1.el\nfile2.el\nfile3.el"))
    add(server, "assistant", "I found 3 Emacs Lisp files.")
    assert show(server) == (
        "Session Summary:\n"
        "\n"
        "[USER] Find all .el files\n"
        "[ASSISTANT] I'll search for .el files using glob.\n"
        "[TOOL] tool_use: glob\n"
        "[TOOL] tool_result: file1.el\\nfile2.el\\nfile3.el\n"
        "[ASSISTANT] I found 3 Emacs Lisp files."
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 77 + "..."),
        ("\U0001f642" * 80, "\U0001f642" * 80),
        ("\U0001f642" * 81, "\U0001f642" * 77 + "..."),
        ("a\r\nb\rc\nd", "a\\nb\\nc\\nd"),
        ("x" * 76 + "\n" + "y" * 2, "x" * 76 + "\\nyy"),
        ("x" * 76 + "\n" + "y" * 3, "x" * 76 + "\\" + "..."),
        ("\n" * 40, "\\n" * 40),
        ("a\u2028b\u0085c\x0bd", "a\u2028b\u0085c\x0bd"),
        ("  kept  ", "  kept  "),
    ],
)
def test_show_cuts_at_80_code_points_after_line_breaks(
    server: Server, text: str, shown: str
) -> None:
    add(server, "user", text)
    assert show(server) == f"Session Summary:\n\n[USER] {shown}"


def test_show_cuts_after_the_role_only(server: Server) -> None:
    add(server, "user", "go")
    add(server, "assistant", [use("c1", "n" * 90)])
    add(server, "tool", result("c1", "r" * 90))
    use_line = "tool_use: " + "n" * 90
    result_line = "tool_result: " + "r" * 90
    assert lines(server)[1:] == [
        f"[TOOL] {use_line[:77]}...",
        f"[TOOL] {result_line[:77]}...",
    ]


def test_show_of_every_kind_of_block(server: Server) -> None:
    image = {"type": "image", "source": {"type": "url", "media_type": "image/png", "url": "u"}}
    attachment = {"type": "attachment", "kind": "file", "path": "/a", "text": "t"}
    add(server, "system", "be kind")
    add(server, "user", [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}])
    add(server, "user", [{"type": "text", "text": "a"}, attachment, {"type": "novel"}])
    add(server, "assistant", [{"type": "thinking", "thinking": "secret"}])
    thinking = {"type": "thinking", "thinking": "secret"}
    add(server, "assistant", [thinking, {"type": "text", "text": "said"}, use("c1"), use("c2")])
    add(server, "tool", result("c1", [{"type": "text", "text": "one"}, image]))
    add(server, "tool", result("c2", "two"))
    add(server, "assistant", [use("c3", "glob")])
    assert lines(server) == [
        "[SYSTEM] be kind",
        "[USER] a\\n[image]\\nb",
        "[USER] a\\n[attachment]\\n[novel]",
        "[ASSISTANT] said",
        "[TOOL] tool_use: read_file",
        "[TOOL] tool_use: read_file",
        "[TOOL] tool_result: one\\n[image]",
        "[TOOL] tool_result: two",
        "[TOOL] tool_use: glob",
    ]


def test_show_counts_tool_calls_fields_as_tool_uses(server: Server) -> None:
    add(server, "user", "go")
    calls = [{"id": "c1", "type": "function", "function": {"name": "glob", "arguments": "{}"}}]
    add(server, "assistant", "looking", tool_calls=calls)
    assert lines(server) == ["[USER] go", "[ASSISTANT] looking", "[TOOL] tool_use: glob"]


def test_show_gives_the_newest_20_messages_not_lines(server: Server) -> None:
    for n in range(13):
        add(server, "user", f"q{n}")
        add(server, "assistant", [{"type": "text", "text": f"a{n}"}, use(f"c{n}", f"t{n}")])
        add(server, "tool", result(f"c{n}", f"r{n}"))
    shown = lines(server)
    assert shown[0] == "[ASSISTANT] a6"
    assert len(shown) == 7 * 3 + 6
    assert shown[-1] == "[TOOL] tool_result: r12"


def test_show_shows_the_window_only(server: Server) -> None:
    fill(server, "one", "two", "three")
    server.request("tiro/session/configure", {"maxHistory": 1})
    assert lines(server) == ["[USER] three"]
