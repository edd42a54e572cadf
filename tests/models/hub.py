"""A hub of model files on this machine: ranges, cut connections, odd answers."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Behaviour = Callable[["Asked"], None]


class Asked(BaseHTTPRequestHandler):
    """One request; the hub's next behaviour answers it."""

    server: "Hub"
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # the base class's name for it
        self.server.asked.append((self.path, self.headers.get("range")))
        behaviour = self.server.behaviours.pop(0) if self.server.behaviours else gives
        behaviour(self)
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests' output is for the tests."""

    def head(self, status: int, length: int | None, **headers: str) -> None:
        self.send_response(status)
        if length is not None:
            self.send_header("content-length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("connection", "close")
        self.end_headers()


class Hub(ThreadingHTTPServer):
    """Serves one file at every path; `behaviours` are used up one a request, then all is well."""

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.content = content
        self.etag = '"v1"'
        self.behaviours: list[Behaviour] = []
        self.asked: list[tuple[str, str | None]] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def url(self, path: str = "/model.gguf") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


def gives(asked: Asked, cut_after: int | None = None) -> None:
    """The file, or the part that is asked for while it is the same file."""
    content, start = asked.server.content, 0
    wanted = asked.headers.get("range")
    is_same = asked.headers.get("if-range") in (None, asked.server.etag)
    if wanted and is_same:
        start = int(wanted.removeprefix("bytes=").split("-")[0])
    if start > len(content):
        asked.head(416, 0)
        return
    rest = content[start:]
    if wanted and is_same:
        span = f"bytes {start}-{len(content) - 1}/{len(content)}"
        asked.head(206, len(rest), etag=asked.server.etag, content_range=span)
    else:
        asked.head(200, len(rest), etag=asked.server.etag)
    asked.wfile.write(rest if cut_after is None else rest[:cut_after])


def cuts(after: int) -> Behaviour:
    """The connection breaks after so many bytes."""
    return lambda asked: gives(asked, cut_after=after)


def refuses(status: int, **headers: str) -> Behaviour:
    return lambda asked: asked.head(status, 0, **headers)


def ignores_ranges(asked: Asked) -> None:
    asked.head(200, len(asked.server.content))
    asked.wfile.write(asked.server.content)


def gives_another_part(asked: Asked) -> None:
    content = asked.server.content
    asked.head(206, len(content), content_range=f"bytes 0-{len(content) - 1}/{len(content)}")
    asked.wfile.write(content)


def says_no_length(asked: Asked) -> None:
    asked.head(200, None)
    asked.wfile.write(asked.server.content)


def gives_a_web_page(asked: Asked) -> None:
    page = b"<html>Log in to the guest network</html>"
    asked.head(200, len(page), content_type="text/html")
    asked.wfile.write(page)
