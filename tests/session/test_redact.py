"""Shapes of keys in what is shown and exported (U9.11): found where they stand, few mistakes."""

import pytest

from tiro import Message, Session
from tiro.session.json_text import decode, encode
from tiro.session.redact import Redactor, redact_shapes, redact_shapes_in
from tiro.session.secrets import redact

BODY = "b64DATA0+/" * 6
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n{BODY}\n-----END RSA PRIVATE KEY-----"
RUN = "a1B2c3D4e5F6g7H8i9J0"


def join(*parts: str) -> str:
    """A key in pieces in this file, so that no scanner takes it for one."""
    return "".join(parts)


KEYS = [
    join("sk-", "ant-api03-", RUN, "_", RUN, "-AA"),
    join("sk-", "proj-", RUN, RUN),
    join("sk-", "or-v1-", "0123456789abcdef" * 4),
    join("sk-", "0123456789abcdef" * 2),
    join("ghp", "_", RUN, "a1B2c3D4e5F6g7H8"),
    join("github", "_pat_", RUN, "_", RUN),
    join("glpat", "-", RUN),
    join("AKIA", "IOSFODNN7EXAMPL3"),
    join("xoxb", "-1234567890-", RUN),
    join("AIza", "SyA1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q"),
    join("hf", "_", RUN, RUN),
    join("eyJ", "hbGciOiJIUzI1NiJ9.eyJ", "zdWIiOiIxMjM0In0.", RUN),
]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_a_known_service_is_taken_out_wherever_it_stands(key: str) -> None:
    """U9.11: alone, in a sentence, in code, in a URL, in JSON in a string."""
    for form in ("{}", "key={}", "it is {}, ok", 'x = "{}"', "f({})", "a\n{}\nb", "`{}`", "({}.)"):
        assert redact_shapes(form.format(key)) == form.format("[secret]")
    quoted = encode(encode({"key": key}).decode()).decode()
    assert redact_shapes(quoted) == quoted.replace(key, "[secret]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"a {PEM} b", "a [secret] b"),
        (encode({"k": PEM}).decode(), '{"k":"[secret]"}'),
        ("\n".join(f"{i}\t{line}" for i, line in enumerate(PEM.split("\n"))), "0\t[secret]"),
        (PEM[:150], "[secret]"),
        (f"{PEM}\n{PEM}", "[secret]\n[secret]"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer [secret]"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic [secret]"),
        ('{"Authorization":"Bearer abcdefghij"}', '{"Authorization":"Bearer [secret]"}'),
        (r"{\"Authorization\": \"abcdefghij\"}", r"{\"Authorization\": \"[secret]\"}"),
        ("curl -H 'Bearer 0123456789abcdef='", "curl -H 'Bearer [secret]'"),
        ("https://u:pa55@host/x", "https://u:[secret]@host/x"),
        ("postgres://u:p%40ss@db:5432/x", "postgres://u:[secret]@db:5432/x"),
        ("redis://:hunter2@h", "redis://:[secret]@h"),
        ("GET /x?a=1&api_key=abc12345&b=2", "GET /x?a=1&api_key=[secret]&b=2"),
        ("?token=abcdefgh==#x", "?token=[secret]#x"),
        (f"aws_secret_access_key = {RUN * 2}", "aws_secret_access_key = [secret]"),
    ],
)
def test_a_value_is_taken_out_and_its_name_stays(text: str, shown: str) -> None:
    """U9.11: a reader sees what stood there."""
    assert redact_shapes(text) == shown
    assert redact_shapes(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "class='sk-fading-circle sk-circle10 sk-toggleable-content-arrow-2'",
        "task-1234567890abcdef1234 and desk-0123456789abcdef0123",
        "if line.startswith('-----BEGIN PRIVATE KEY-----'): pass",
        "-----BEGIN PUBLIC KEY-----\n" + BODY * 3 + "\n-----END PUBLIC KEY-----",
        "the bearer of this letter; Bearer authentication-is-required-here",
        "An Authorization: it needs one",
        "https://example.org:8080/a@b and http://host/path:x@y",
        "https://$USER:${PASSWORD}@host and https://u:<password>@host",
        "f(key=value_of_this_call) or page?keyword=abcdefghijk&page=3",
        "?token=${TOKEN_FROM_ENV}",
        "ghp_short AKIAshort hf_hub_download_with_a_name npm_config_registry",
        "iVBORw0KGgo/AKIA0123456789ABCDEF+AIza" + RUN * 3,
        "git commit 0123456789abcdef0123456789abcdef01234567",
        "xoxo-my-love-letters",
        "eyJhbGciOiJIUzI1NiJ9",
    ],
)
def test_what_only_resembles_a_key_stays(text: str) -> None:
    """U9.11: names, mentions, placeholders and image data are no keys."""
    assert redact_shapes(text) == text


def test_a_value_is_copied_with_all_its_strings_but_no_other_change() -> None:
    """U9.11: an export goes through this."""
    value = {"a": [KEYS[0], 1, 2.5, None, True], KEYS[0]: 1, KEYS[1]: 2, "n": {"b": (KEYS[2],)}}
    shown = redact_shapes_in(value)
    assert shown == {
        "a": ["[secret]", 1, 2.5, None, True],
        "[secret]": 1,
        "[secret]-2": 2,
        "n": {"b": ["[secret]"]},
    }
    assert KEYS[0] in value, "the given value stays as it is"


def test_show_holds_no_key_not_even_its_beginning() -> None:
    """U9.11: taken out before the line is cut, so that no half of a key is left."""
    session = Session()
    session.append_message(Message("user", "x" * 60 + " " + KEYS[0]))
    session.append_message(Message("user", f"{PEM}\nafter"))
    shown = session.summarize() or ""
    assert "[secret]" in shown
    assert "sk-ant" not in shown
    assert shown.endswith("[USER] [secret]\\nafter")
    assert KEYS[0] in session.messages[0]["content"]


def test_exact_values_go_the_longest_first() -> None:
    """U9.11: a key that begins like another leaves no rest."""
    assert redact("a key-12-long key-12", ["key-12", "key-12-long", ""]) == "a [secret] [secret]"


@pytest.mark.parametrize(
    ("secret", "is_taken"),
    [
        ("a-real-key-1", True),
        ('quo"ted\\key', True),
        ("schlüssel-ß", True),
        ("short", False),
        ("metadata", False),
        ("tool_use", False),
        ("thinking", False),
        ("developer", False),
        ("2026-11-28", False),
        ("20261128", False),
    ],
)
def test_no_key_costs_a_file(secret: str, is_taken: bool) -> None:
    """U9.11: a dummy key that is a word of the format, or a time, is no secret."""
    value = {"metadata": {"tool_use": secret, "x": {f"a {secret}": [f"{secret}!"]}}}
    mark = "[secret]" if is_taken else secret
    expected = {"metadata": {"tool_use": mark, "x": {f"a {mark}": [f"{mark}!"]}}}
    assert decode(Redactor([secret]).json(encode(value))) == expected


def test_a_key_of_digits_is_taken_out_of_text_and_not_out_of_numbers() -> None:
    """A number without some of its digits would be no JSON."""
    key = "12345678901234567890"
    value = {"text": f'"{key}\\', "n": int(key + "5"), "x": [int(key), f"{key}"]}
    redacted = decode(Redactor([key]).json(encode(value)))
    assert redacted == {"text": '"[secret]\\', "n": int(key + "5"), "x": [int(key), "[secret]"]}


def test_a_key_is_found_in_a_text_that_is_json() -> None:
    """B52: what a provider answers, and a file that a tool read, are often JSON."""
    key = 'quo"ted\\key'
    said = encode({"error": f"wrong key {key}"}).decode()
    shown = '{"error":"wrong key [secret]"}'
    assert redact(said, [key]) == shown
    assert decode(Redactor([key]).json(encode({"content": said}))) == {"content": shown}


@pytest.mark.parametrize("before", ["\n", "\\", "\\\n", '"', "\t\\", "\x01", "nightly-key-1"])
def test_an_escape_before_a_key_is_no_part_of_it(before: str) -> None:
    """U9.11: a line break and "ightly-key-1" is not the key, and stays; a file stays JSON."""
    redactor = Redactor(["nightly-key-1", "tail-key-12\\", "0001-key-1"])
    for text in ("ightly-key-1", "nightly-key-1", "tail-key-12\\" * 2, "-key-1"):
        value = {"a": before + text, before + text: [1]}
        shown = redactor.text(before + text)
        assert decode(redactor.json(encode(value))) == {"a": shown, shown: [1]}


def test_two_keys_as_names_stay_two_fields() -> None:
    """U9.11: nothing is lost in a file because it was said under a key, whatever stands there."""
    redactor = Redactor(["key-number-1", "key-number-2"])
    value = {"key-number-1": 1, "[secret]-2": 2, "key-number-2": 3, "x": {"key-number-1": 4}}
    shown = decode(redactor.json(encode(value)))
    assert shown == {"[secret]": 1, "[secret]-2": 2, "[secret]-3": 3, "x": {"[secret]": 4}}


def test_lines_stay_lines() -> None:
    """A session file has a line for each message, a journal one for each change."""
    lines = [b'{"messages":[', encode(["a-real-key-1\n"]) + b",", encode({"b": "\n"}), b"]}"]
    shown = Redactor(["a-real-key-1"]).json(b"\n".join(lines))
    assert shown.split(b"\n") == [lines[0], b'["[secret]\\n"],', *lines[2:]]
