"""The baseline: pygls as it comes, with one handler that echoes and one that returns messages."""

from typing import Any

from pygls.lsp.server import LanguageServer

from tests.bench.messages import MESSAGES

server = LanguageServer("bare", "1")


@server.feature("bare/echo")
def echo(params: Any) -> dict[str, str]:
    """A small answer."""
    return {"id": "session-20250101-120000"}


@server.feature("bare/get")
def get(params: Any) -> dict[str, Any]:
    """A thousand messages of 1 kB."""
    return {"messages": MESSAGES, "total": len(MESSAGES)}


if __name__ == "__main__":
    server.start_io()
