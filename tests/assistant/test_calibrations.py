"""What is kept of calibrations: one a model, for the next process, whatever the file says."""

import json
from pathlib import Path

import pytest

from tests.stores.faults import FaultyDisk
from tiro.assistant.calibrations import FILE_NAME, Calibrations

WEIGHTS = (200.0, 100.0, 50.0)


def learned(directory: Path, model: str = "fake/a", reports: int = 5) -> Calibrations:
    calibrations = Calibrations(directory)
    for _ in range(reports):
        calibrations.of(model).observe(WEIGHTS, 455)
    calibrations.save()
    return calibrations


def test_a_model_has_one_calibration_and_the_next_process_goes_on_from_it(tmp_path: Path) -> None:
    before = learned(tmp_path)
    assert before.of("fake/a") is before.of("fake/a")
    after = Calibrations(tmp_path)
    assert after.of("fake/a").learned() == before.of("fake/a").learned()
    assert after.of("fake/b").learned() is None


def test_what_other_models_taught_stays(tmp_path: Path) -> None:
    learned(tmp_path, "fake/a")
    learned(tmp_path, "fake/b")
    after = Calibrations(tmp_path)
    assert after.of("fake/a").learned() == after.of("fake/b").learned() is not None


def test_nothing_is_written_without_news(tmp_path: Path) -> None:
    learned(tmp_path, reports=0)
    assert not (tmp_path / FILE_NAME).exists()
    learned(tmp_path).save()
    (tmp_path / FILE_NAME).unlink()
    again = Calibrations(tmp_path)
    again.of("fake/a")
    again.save()
    assert not (tmp_path / FILE_NAME).exists()


SOUND = {"factors": [1, 1, 1], "spread": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "error_percent": 1.0}


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{",
        "[1]",
        "\udcff",
        json.dumps({"fake/a": {"factors": [1, 1, 1]}}),
        json.dumps({"fake/a": {**SOUND, "factors": [0, 1, 1]}}),
        json.dumps({"fake/a": {**SOUND, "factors": [1e300, 1, 1]}}),
        json.dumps({"fake/a": {**SOUND, "spread": [[0, 0, 0]] * 3}}),
        json.dumps({"fake/a": {**SOUND, "spread": [[1, 1e9, 0], [0, 1, 0], [0, 0, 1]]}}),
        json.dumps({"fake/a": {**SOUND, "error_percent": -1}}),
    ],
)
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, damage: str) -> None:
    (tmp_path / FILE_NAME).write_bytes(damage.encode("utf-8", "surrogateescape"))
    assert Calibrations(tmp_path).of("fake/a").learned() is None
    assert learned(tmp_path).of("fake/a").learned() is not None
    assert Calibrations(tmp_path).of("fake/a").learned() is not None


def test_a_disk_that_refuses_costs_nothing_else(tmp_path: Path) -> None:
    disk = FaultyDisk()
    disk.fail()
    calibrations = Calibrations(tmp_path / "no" / "such", disk)
    calibrations.of("fake/a").observe(WEIGHTS, 455)
    calibrations.save()
    assert calibrations.of("fake/a").learned() is not None
