"""What configuration decides, put together."""

from pathlib import Path

import pytest

from tiro.assistant.setup import Setup


@pytest.mark.parametrize(
    ("key", "is_secret"),
    [("sk-0123456789abcdef", True), ("scripted", False), ("my-local-model", False)],
)
def test_a_dummy_key_that_is_part_of_a_name_is_not_taken_out_of_files(
    tmp_path: Path, key: str, is_secret: bool
) -> None:
    """U9.11: exact values of keys stay out; a session's model and agent must survive a save."""
    provider = {"api": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": key}
    given = {"model": "scripted/my-local-model", "providers": {"scripted": provider}}
    setup = Setup.load(tmp_path, [], given)
    manager = setup.manager(tmp_path / "sessions", lambda notice: None)
    session = manager.create()
    session.change(model="scripted/my-local-model")
    session.add_message("user", f"the key is {key}")
    path = manager.save(session)
    loaded = manager.load(path)
    manager.close()
    assert loaded.model == "scripted/my-local-model"
    assert (key not in path.read_text()) == is_secret
