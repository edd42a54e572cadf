"""The model changes in mid-conversation (B61), and signed thinking survives everything (B35)."""

import json
from typing import Any

import pytest

from tests.e2e import anthropic_replies, replies
from tests.e2e.anthropic_replies import redacted_block, text_block, thinking_block, use_block
from tests.e2e.client import Server
from tests.e2e.conftest import StartServer
from tests.e2e.home import Home
from tests.e2e.provider import API_KEY, MODEL, Provider
from tests.e2e.replies import Break, Hold, Reply
from tests.e2e.talk import add, ask, begin_ask, stored, use, window, words

CLAUDE, FAKE = f"claude/{MODEL}", f"fake/{MODEL}"
PNG = "iVBORw0KGgo="
SIGNED = [
    {"type": "thinking", "thinking": "Let me \u2028é漢🙂 see", "signature": "Eq+/aa=="},
    {"type": "redacted_thinking", "data": "Ab+/bb=="},
    {"type": "thinking", "thinking": "", "signature": "Eq+/cc=="},
]


def signed_answer(tool_id: str = "toolu_1") -> Reply:
    """Thinking of every kind, then text, then a tool use."""
    return anthropic_replies.answer(
        thinking_block(0, "Let me \u2028é", "漢🙂 see", signature="Eq+/aa=="),
        redacted_block(1, "Ab+/bb=="),
        thinking_block(2, signature="Eq+/cc=="),
        text_block(3, "I look."),
        use_block(4, tool_id, "glob", '{"patt', 'ern": "*"}'),
        stop="tool_use",
    )


def sent_thinking(provider: Provider) -> list[Any]:
    """The thinking blocks of the newest request, in their order."""
    return [
        block
        for message in provider.last.messages
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"].endswith("thinking")
    ]


# B35


def test_b35_signed_thinking_comes_back_byte_for_byte_also_after_a_kill(
    start: StartServer, home: Home, provider: Provider
) -> None:
    home.write_config(model=CLAUDE)
    server = start()
    provider.script(signed_answer(), anthropic_replies.text("Done."))
    assert ask(server, "look")["text"] == "Done."
    assert sent_thinking(provider) == SIGNED
    blocks = provider.last.messages[1]["content"]
    assert [block["type"] for block in blocks] == [
        "thinking", "redacted_thinking", "thinking", "text", "tool_use",
    ]  # fmt: skip
    before = provider.last.messages[1]
    for end in ("save", "kill"):
        path = server.request("tiro/session/save")["path"] if end == "save" else None
        server.kill()
        server = start()
        server.request("tiro/session/load", {"path": path} if path else {"latest": True})
        assert ask(server, "and now?")["text"] == "ok"
        assert provider.last.messages[1] == before
        assert provider.refused == []


def test_b35_keys_of_a_saved_block_may_come_in_another_order(
    start: StartServer, home: Home, provider: Provider
) -> None:
    home.write_config(model=CLAUDE)
    server = start()
    provider.script(signed_answer(), anthropic_replies.text("Done."))
    ask(server, "look")
    path = home.sessions / server.request("tiro/session/save")["path"]
    server.shutdown()
    path.write_text(json.dumps(stored(path), sort_keys=True), "utf-8")
    server = start()
    server.request("tiro/session/load", {"path": str(path)})
    ask(server, "and now?")
    assert sent_thinking(provider) == SIGNED


def test_b35_thinking_that_was_cut_before_its_signature_is_never_sent(
    server: Server, provider: Provider
) -> None:
    cut = thinking_block(0, "hm", signature="s")[:-2]
    signed = thinking_block(0, "hm", signature="s")[:-1]
    whole = [*thinking_block(0, "one", signature="s1"), *thinking_block(1, "two", signature=None)]
    for steps in (cut, signed, whole):
        provider.script(Reply([anthropic_replies.start(), *steps, Break()]))
        assert begin_ask(server, "go", model=CLAUDE).error().kind == "modelFailed"
    assert words(server) == ["go", "hm", "go", "hm", "go", "one two"]
    assert ask(server, "again", model=CLAUDE)["text"] == "ok"
    assert sent_thinking(provider) == [{"type": "thinking", "thinking": "one", "signature": "s1"}]


def test_b35_an_edited_thought_is_not_sent(server: Server, provider: Provider) -> None:
    provider.script(anthropic_replies.answer(thinking_block(0, "a", signature="s"),
                                             text_block(1, "b")))  # fmt: skip
    done = ask(server, model=CLAUDE)
    changed = [{"type": "thinking", "thinking": "c", "signature": "s"},
               {"type": "text", "text": "d"}]  # fmt: skip
    server.request("tiro/session/editMessage", {"seq": done["lastSeq"], "content": changed})
    assert ask(server, "again", model=CLAUDE)["text"] == "ok"
    assert sent_thinking(provider) == []


def test_b35_what_a_client_claims_to_be_thinking_is_not_sent(
    server: Server, provider: Provider
) -> None:
    block = {"type": "thinking", "thinking": "mine", "signature": "forged"}
    add(server, "user", "hi")
    content = [block, {"type": "text", "text": "x"}]
    add(server, "assistant", content, metadata={"tiro": {"model": CLAUDE}})
    assert ask(server, "again", model=CLAUDE)["text"] == "ok"
    assert sent_thinking(provider) == []


# B61


def test_b61_a_conversation_goes_on_in_another_style_and_back(
    server: Server, provider: Provider
) -> None:
    ids = ["call|x:1", "y" * 60, "z" * 450]
    provider.script(replies.tools(*((i, "glob", {"pattern": "*"}) for i in ids)))
    ask(server, "one", model=FAKE)
    first = window(server)

    provider.script(signed_answer(), anthropic_replies.text("two"))
    assert server.request("tiro/models/set", {"name": CLAUDE}) == {"model": CLAUDE}
    assert ask(server, "two")["text"] == "two"
    uses = [b["id"] for b in provider.last.messages[1]["content"] if b["type"] == "tool_use"]
    results = [b.get("tool_use_id") for b in provider.last.messages[2]["content"]]
    assert uses == results[:3]
    assert len(set(uses)) == 3
    assert sent_thinking(provider) == SIGNED
    assert window(server)[: len(first)] == first

    for model in (FAKE, "claude/other-model"):
        assert ask(server, "three", model=model)["text"] == "ok"
        sent = provider.last.raw.decode()
        assert not any(part in sent for part in ("Eq+/", "Ab+/", "Let me", "redacted"))
    assert ask(server, "four", model=CLAUDE)["text"] == "ok"
    assert sent_thinking(provider) == SIGNED
    assert window(server)[: len(first)] == first
    assert "redacted" not in server.request("tiro/session/show")["text"]
    assert provider.refused == []


@pytest.mark.parametrize("model", [FAKE, CLAUDE])
def test_b61_a_model_without_images_or_tools_is_asked_without_them(
    server: Server, provider: Provider, model: str
) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    add(server, "user", [{"type": "text", "text": "see"}, image])
    add(server, "assistant", [use("c1", "glob", pattern="*")])
    add(server, "tool", {"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"})
    before = window(server)
    model = model.replace(MODEL, "blind-model")
    assert ask(server, "with all", model=model)["text"] == "ok"
    assert PNG in provider.last.raw.decode()
    style = anthropic_replies if model.startswith("claude") else replies
    provider.script(
        style.error(404, "No endpoints found that support image input"),
        style.error(400, "blind-model does not support tools"),
    )
    assert ask(server, "what was it?", model=model)["text"] == "ok"
    assert PNG not in provider.last.raw.decode()
    assert "takes no images" in provider.last.raw.decode()
    assert provider.last.tool_names == []
    assert window(server)[: len(before)] == before
    assert provider.refused == []


def test_b61_a_smaller_window_is_told_before_anything_is_sent(
    start: StartServer, home: Home, provider: Provider
) -> None:
    small = {"small": {"context_window": 3000}, MODEL: {"context_window": 100_000}}
    home.write_config(providers={"claude": home.claude(models=small)}, session={"max_history": 99})
    server = start()
    for number in range(6):
        ask(server, f"{number} " + "word " * 1500)
    done = ask(server, "short", model="claude/small")
    assert [e["type"] for e in server.events(done["turnId"])].count("resize") == 1
    assert provider.last.body["model"] == "small"
    assert len(provider.last.raw) < 40_000
    count = len(provider.chats)
    error = begin_ask(server, "word " * 9000, model="claude/small").error()
    assert error.kind == "contextOverflow"
    assert len(provider.chats) == count


def test_b61_a_change_while_it_answers_holds_from_the_next_turn_on(
    server: Server, provider: Provider
) -> None:
    hold = Hold()
    provider.script(replies.stream(replies.text_chunk("one"), hold))
    turn = begin_ask(server, "go", model=None)
    hold.wait()
    server.request("tiro/models/set", {"name": CLAUDE})
    hold.release()
    assert turn.result()["text"] == "one"
    assert not provider.last.is_anthropic
    assert ask(server, "next")["text"] == "ok"
    assert provider.last.is_anthropic


# One environment variable


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_key_in_the_environment_is_all_that_is_needed(
    start: StartServer, home: Home, provider: Provider, name: str
) -> None:
    """The addresses are those of the local provider; nothing else is configured."""
    provider.model_names = ["model-a", "model-b"]
    url = provider.root_url if name == "anthropic" else provider.base_url
    config = {"providers": {name: {"base_url": url}}}
    (home.config_dir / "config.yaml").write_text(json.dumps(config), "utf-8")
    server = start(env={f"{name.upper()}_API_KEY": API_KEY})
    done = ask(server, "hi")
    assert done["text"] == "ok"
    assert provider.last.is_anthropic == (name == "anthropic")
    assert server.events(done["turnId"])[0]["model"] == f"{name}/model-a"
    rows = server.request("tiro/models/list")["models"]
    assert [r["name"] for r in rows if r["available"]][:2] == [f"{name}/model-a", f"{name}/model-b"]


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_an_address_in_the_environment_is_where_its_key_goes(
    start: StartServer, home: Home, provider: Provider, name: str
) -> None:
    """As the providers' own libraries take it; a key of a gateway is nobody else's business.

    Quotes around a key are none of its own: `docker run --env-file` leaves them there.
    """
    provider.model_names = ["model-a"]
    (home.config_dir / "config.yaml").unlink()
    url = provider.root_url if name == "anthropic" else provider.base_url
    env = {f"{name.upper()}_API_KEY": f'"{API_KEY}"', f"{name.upper()}_BASE_URL": f"{url}/"}
    assert ask(start(env=env), "hi")["text"] == "ok"
    assert provider.last.is_anthropic == (name == "anthropic")


def test_the_system_prompt_and_the_last_message_are_cached(
    server: Server, provider: Provider
) -> None:
    ask(server, "one", model=CLAUDE)
    ask(server, "two", model=CLAUDE)
    body = provider.last.body
    assert provider.last.raw.count(b"cache_control") == 2
    assert "cache_control" in body["system"][-1]
    assert "cache_control" in body["messages"][-1]["content"][-1]
    first = provider.chats[0].body
    assert (body["system"], body["tools"]) == (first["system"], first["tools"])
    assert body["max_tokens"] == 8192
