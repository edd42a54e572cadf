"""Which values of a provider's settings are secret (B52)."""

from typing import Any

import pytest

from tiro.models.model import ProviderSettings
from tiro.models.provider_secrets import secrets_of


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"api_key": " key-1234\n"}, {" key-1234\n"}),
        ({"headers": {"X-Extra": "value-12"}}, {"value-12"}),
        ({"headers": {"authorization": "Bearer abc12345"}}, {"abc12345", "Bearer abc12345"}),
        ({"headers": {"anthropic-version": "2023-06-01", "X-Title": "My editor"}}, set()),
        ({"base_url": "https://user-name:pass%40word@h/v1"}, {"pass%40word"}),
        ({"base_url": "https://token-1234@h/v1"}, {"token-1234"}),
        ({"base_url": "https://h/v1?api-version=2024-02-01&api_key=abc12345"}, {"abc12345"}),
        ({"proxy": "http://u:password@h:1"}, {"password"}),
        ({"api_key": "short"}, set()),
    ],
)
def test_what_is_secret(given: dict[str, Any], found: set[str]) -> None:
    """Keys, passwords and tokens; not what everybody may read."""
    assert set(secrets_of(ProviderSettings(name="p", api="openai", **given))) == found
