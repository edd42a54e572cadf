"""GGUF files from an address or a path.

What an address has given is kept when the connection is cut, and the next attempt goes on there.
"""

import asyncio
import os
import re
from itertools import count
from pathlib import Path

import httpx

from tiro.errors import InvalidInputError
from tiro.models.model import Progress, bare_url
from tiro.models.part_file import (
    Brought,
    Expected,
    Meter,
    OnProgress,
    PartFile,
    failure,
    megabytes,
    unreachable,
)
from tiro.models.retries import Sleep
from tiro.models.transport import keep_secrets_out_of_the_log

MAX_STALLS = 4
"""How many attempts in a row may bring nothing before it is given up."""
CONNECT_SECONDS = 15.0
SILENCE_SECONDS = 60.0

_UNREACHED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError)


class _CutOffError(Exception):
    """The server is busy or lost its place; asking again may go on from here."""


async def from_address(
    url: str,
    target: Path,
    expected: Expected,
    on_progress: OnProgress,
    *,
    http: httpx.AsyncBaseTransport | None = None,
    sleep: Sleep = asyncio.sleep,
) -> Brought:
    """Download, going on where an earlier attempt was cut off."""
    part = PartFile(target)
    with part.opened():
        async with _client(url, http) as client:
            await _fetch_all(client, url, part, expected, on_progress, sleep)
        return await asyncio.to_thread(part.put_in_place, expected, bare_url(url))


async def from_path(
    source: Path, target: Path, expected: Expected, on_progress: OnProgress
) -> Brought:
    """Copy a file of the user's."""
    part = PartFile(target)
    with part.opened():
        part.drop()
        with source.open("rb") as reader:
            size = os.fstat(reader.fileno()).st_size
            part.check_room(size)
            await part.copy_from(reader, size, on_progress)
        return await asyncio.to_thread(part.put_in_place, expected, str(source))


async def _fetch_all(
    client: httpx.AsyncClient,
    url: str,
    part: PartFile,
    expected: Expected,
    on_progress: OnProgress,
    sleep: Sleep,
) -> None:
    """Fetch until all is there; only attempts that bring nothing are counted.

    Where not even the first one reaches the server, the next ones would not, either.
    """
    stalls = 0
    for attempt in count():
        before = part.size
        try:
            await _fetch(client, url, part, expected, on_progress)
            return
        except (_CutOffError, httpx.TransportError) as error:
            if attempt == 0 and isinstance(error, _UNREACHED):
                raise unreachable(bare_url(url)) from error
            stalls = 0 if part.size > before else stalls + 1
            if stalls >= MAX_STALLS or isinstance(error, httpx.UnsupportedProtocol):
                kept = f", {megabytes(part.size)} are kept for the next attempt"
                raise failure(
                    f"The download from {bare_url(url)!r} was cut off "
                    f"({str(error) or type(error).__name__}){kept if part.size else ''}",
                    retryable=True,
                ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise failure(f"Nothing can be downloaded from {bare_url(url)!r}") from error
        on_progress(Progress("The connection was cut off, going on"))
        await sleep(2.0**stalls - 1)


async def _fetch(
    client: httpx.AsyncClient,
    url: str,
    part: PartFile,
    expected: Expected,
    on_progress: OnProgress,
) -> None:
    """One request for what is missing."""
    offset = part.size
    headers = {"accept-encoding": "identity"}
    if offset and part.version:
        headers |= {"range": f"bytes={offset}-", "if-range": part.version}
    async with client.stream("GET", url, headers=headers) as response:
        if response.status_code == 416 and offset == expected.bytes:
            return
        offset = _begin_or_go_on(response, url, part, offset)
        length = int(response.headers.get("content-length", 0))
        total = offset + length if length else expected.bytes
        if expected.bytes not in (None, total):
            part.drop()
            raise failure(
                f"The file at {bare_url(url)!r} has {total:,} bytes instead of "
                f"{expected.bytes:,}, it is not the model"
            )
        part.check_room(length)
        meter = Meter("Downloading", on_progress)
        with part.path.open("ab", buffering=0) as file:
            async for chunk in response.aiter_raw():
                file.write(chunk)
                offset += len(chunk)
                meter.tell(offset, total)


def _begin_or_go_on(response: httpx.Response, url: str, part: PartFile, offset: int) -> int:
    """Where the answer's bytes belong: behind what is there, or at the beginning."""
    status = response.status_code
    if status == 206 and _range_start(response) == offset:
        return offset
    if status in (206, 416):
        part.drop()
        raise _CutOffError("the server gave another part than was asked for")
    if status in (408, 429) or status >= 500:
        raise _CutOffError(f"HTTP {status}")
    if status != 200:
        raise failure(f"The address {bare_url(url)!r} gives no file (HTTP {status})", status=status)
    part.begin(response.headers.get("etag", ""))
    return 0


def _range_start(response: httpx.Response) -> int | None:
    found = re.match(r"bytes (\d+)-", response.headers.get("content-range", ""))
    return int(found[1]) if found else None


def _client(url: str, http: httpx.AsyncBaseTransport | None) -> httpx.AsyncClient:
    try:
        host = httpx.URL(url).host
    except httpx.InvalidURL:
        raise InvalidInputError(f"{bare_url(url)!r} is no address") from None  # it quotes the whole
    keep_secrets_out_of_the_log()
    return httpx.AsyncClient(
        timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
        follow_redirects=True,
        trust_env=not (host == "localhost" or host.startswith("127.")),
        transport=http,
    )
