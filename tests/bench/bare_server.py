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


@server.feature("bare/prompt")
async def prompt(params: Any) -> dict[str, str]:
    """Each line of a stream, sent on as a notification."""
    import httpx  # no part of a bare server's start

    async with (
        httpx.AsyncClient(verify=False) as client,  # plain HTTP on this machine
        client.stream("POST", params.url, content=b"{}") as response,
    ):
        async for line in response.aiter_lines():
            server.protocol.notify("bare/line", {"line": line})
    return {}


if __name__ == "__main__":
    server.start_io()
