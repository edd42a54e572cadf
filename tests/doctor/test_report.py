"""What `tiro doctor` says of the directories."""

import pytest

from tiro.doctor.examine import examine
from tiro.doctor.report import RELATIVE, report


@pytest.mark.parametrize("given", ["cfg", "~/cfg", "/nowhere/cfg", ""])
def test_a_directory_that_depends_on_the_folder_is_told(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever starts an editor elsewhere would miss the sessions."""
    monkeypatch.setenv("TIRO_CONFIG_DIR", given)
    assert (RELATIVE in report(examine({}))) == (given == "cfg")
