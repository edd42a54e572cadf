"""Images that a model can be shown, and those that a provider would refuse with every request."""

import asyncio
import base64
import contextlib
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from tests.tools.images import gif, jpeg, png, webp
from tests.tools.rooms import TOOLS, a_run, a_workspace, answer, put
from tiro.errors import ToolError
from tiro.tools.images import MAX_IMAGE_BYTES, image_kind, read_image
from tiro.tools.tool import ToolOutput

IMAGES = [
    ("PNG", png()),
    ("JPEG", jpeg()),
    ("GIF", gif()),
    ("WEBP", webp(b"VP8 ")),
    ("WEBP", webp(b"VP8L")),
    ("WEBP", webp(b"VP8X")),
]


@pytest.mark.parametrize(("kind", "data"), IMAGES)
def test_read_file_shows_an_image(tmp_path: Path, kind: str, data: bytes) -> None:
    """Whatever its name is."""
    put(tmp_path, "logo", data)
    run = a_run(a_workspace(tmp_path))

    async def read() -> ToolOutput:
        return await TOOLS["read_file"].run({"path": "logo"}, run)

    output = asyncio.run(read())
    assert output.content == f"logo ({kind} image, 3 x 2 pixels, {len(data)} bytes)"
    (block,) = output.images
    assert block["source"]["media_type"] == f"image/{kind.lower()}"
    assert base64.b64decode(block["source"]["data"]) == data


@pytest.mark.parametrize(("kind", "data"), IMAGES)
def test_a_damaged_image_is_refused(tmp_path: Path, kind: str, data: bytes) -> None:
    for size in (12, 16, len(data) - 2):
        put(tmp_path, "logo", data[:size])
        told = answer(a_workspace(tmp_path), "read_file", path="logo")
        assert f"begins like a {kind} image, but is cut off or damaged" in told


@pytest.mark.parametrize(
    "data",
    [png(8001, 1), gif(9000, 9000), jpeg(1, 10_000), png() + b"\0" * MAX_IMAGE_BYTES],
)
def test_an_image_that_no_provider_takes_is_refused(tmp_path: Path, data: bytes) -> None:
    put(tmp_path, "large", data)
    told = answer(a_workspace(tmp_path), "read_file", path="large")
    assert "a model can be shown 3,750,000 bytes and 8000 pixels a side at most" in told


def test_an_image_obeys_the_rules(tmp_path: Path) -> None:
    put(tmp_path, "logo", png())
    told = answer(a_workspace(tmp_path), "read_file", path="logo", may_read=lambda _: False)
    assert "rules do not allow" in told


def test_what_is_open_as_text_stays_text(tmp_path: Path) -> None:
    path = put(tmp_path, "logo", png())
    told = answer(a_workspace(tmp_path, buffers={path: "<svg/>"}), "read_file", path="logo")
    assert "1\t<svg/>" in told


@hypothesis.given(st.sampled_from([data for _, data in IMAGES]), st.binary(max_size=40), st.data())
def test_no_bytes_break_it(image: bytes, noise: bytes, draw: st.DataObject) -> None:
    place = draw.draw(st.integers(4, len(image)))
    data = image[:place] + noise
    if image_kind(data):
        with contextlib.suppress(ToolError):
            read_image("x", data, len(data))
