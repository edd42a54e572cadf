"""Where the embedded model's file lies for the tests that really run it."""

import importlib.util
import os
from pathlib import Path
from typing import NoReturn

import pytest

from tiro.config.directories import cache_directory
from tiro.models.local import LocalModels
from tiro.models.weights import DEFAULT_MODEL

CACHE = cache_directory()
"""Read before a test has a home of its own: the file is large and brought once a machine."""


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker of tests that run a real model."""
    config.addinivalue_line("markers", "local: runs the real embedded model")


@pytest.fixture(scope="session")
def real_cache() -> Path:
    """A cache directory that holds the default model."""
    if importlib.util.find_spec("xllamacpp") is None:
        _cannot_run("what runs embedded models is not installed")
    if not LocalModels(CACHE).has(DEFAULT_MODEL.name):
        _cannot_run("the embedded model is not here, bring it with: tiro local pull")
    return CACHE


def _cannot_run(reason: str) -> NoReturn:
    """A machine of somebody's own may be without; in CI a test that is not run is a failure."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
