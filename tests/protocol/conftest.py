"""Async tests run in a fresh event loop each; nothing may be left running in it."""

import asyncio
import inspect
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests."""
    test: Any = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    given = pyfuncitem.funcargs
    names = inspect.signature(test).parameters
    asyncio.run(asyncio.wait_for(test(**{name: given[name] for name in names}), 20))
    return True
