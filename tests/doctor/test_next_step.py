"""The one thing to do next: what stands in the way of a prompt comes first."""

from typing import Any

import msgspec
import pytest

from tiro.doctor.findings import Findings, LocalFound, ProviderFound, SessionsFound, Unlisted
from tiro.doctor.next_step import ALL_IS_WELL, next_step
from tiro.doctor.report import report

SESSIONS = SessionsFound(
    directory="/c/sessions", is_writable=True, free_bytes=5 * 10**9, saved=3, damaged=[]
)
LOCAL = LocalFound(
    is_installed=True,
    install_command="/bin/python -m pip install llama==1",
    in_use="small",
    ready=["small"],
    known=["small", "large"],
)
FOUND = Findings(
    version="1.0",
    python="3.11",
    platform="Linux",
    config_directory="/c",
    config_files=["/c/config.yaml"],
    problems=[],
    sessions=SESSIONS,
    providers=[
        ProviderFound(name="keyless", address="https://a", models=[], missing_key="A_KEY"),
        ProviderFound(name="silent", address="https://b", models=[], reason="nothing answers"),
        ProviderFound(name="local", address="", models=["small"]),
    ],
    local=LOCAL,
    model="silent/one",
    model_because="it is set as `model`",
    agent="build",
    command="/bin/tiro",
    python_command="python",
    is_ready=True,
    next_step="",
)
BROKEN = {"problems": ["/c/config.yaml, line 2: agent is wrong"]}
READ_ONLY = {"sessions": msgspec.structs.replace(SESSIONS, is_writable=False)}
FULL = {"sessions": msgspec.structs.replace(SESSIONS, free_bytes=0)}
WITHOUT_LOCAL = {"local": msgspec.structs.replace(LOCAL, is_installed=False, ready=[])}
UNPULLED = {"model": "local/small", "local": msgspec.structs.replace(LOCAL, ready=[])}
DOUBT = {"doubt": "/c/config.yaml, line 1: modle is no setting"}
UNLISTED = {"unlisted": Unlisted("silent", ["on"])}
SILENT = [ProviderFound(name="silent", address="https://b", models=[], reason="no way there")]
NO_MODEL = {"is_ready": False, "model": None}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ALL_IS_WELL),
        (BROKEN, "Next: correct /c/config.yaml, line 2: agent is wrong"),
        (BROKEN | READ_ONLY, "Next: make /c/sessions writable"),
        (BROKEN | FULL, "Next: make room on the disk of /c/sessions: 0 B are free"),
        (BROKEN | READ_ONLY | UNPULLED, "Next: tiro local pull"),
        (BROKEN | UNPULLED | {"model": "local/large"}, "Next: tiro local pull large"),
        (BROKEN | NO_MODEL, "Next: tiro local pull"),
        (BROKEN | NO_MODEL | DOUBT, "Next: correct /c/config.yaml, line 1: modle is no setting"),
        (
            BROKEN | UNLISTED,
            "Next: check the name in `model`: silent does not list it, but silent/on",
        ),
        (
            NO_MODEL | WITHOUT_LOCAL,
            "Next: export ANTHROPIC_API_KEY=… or OPENAI_API_KEY=…, or: /bin/python -m pip install",
        ),
        ({"is_ready": False, "model": "keyless/one"}, "Next: export A_KEY=…"),
        (
            {"is_ready": False, "model_because": "nobody can be reached"},
            "Next: make silent answer (see above), or put in /c/config.yaml the line:"
            " model: local/small",
        ),
        (
            {
                "is_ready": False,
                "model_because": "no way there",
                "config_files": [],
                "providers": SILENT,
            },
            "Next: make silent answer (see above), or set another `model` in /c/config.yaml",
        ),
        (
            {"is_ready": False, "model_because": "no server answers at http://b"},
            "Next: start silent, or correct its `base_url`: no server answers at http://b",
        ),
        ({"is_ready": False, "model": "unknown/one"}, "Next: set `model`"),
        (
            {"is_ready": False, "model": "local/small"} | WITHOUT_LOCAL,
            "Next: /bin/python -m pip install llama==1",
        ),
    ],
)
def test_next_step(changes: dict[str, Any], expected: str) -> None:
    found = msgspec.structs.replace(FOUND, **changes)
    told = next_step(found)
    assert told.startswith(expected)
    whole = report(msgspec.structs.replace(found, next_step=told))
    assert whole.splitlines()[-1] == told
    assert whole.count("Next:") + whole.count(ALL_IS_WELL) == 1


def test_a_long_reason_stands_there_once() -> None:
    found = msgspec.structs.replace(
        FOUND, is_ready=False, providers=SILENT, model_because="no way there"
    )
    told = report(msgspec.structs.replace(found, next_step=next_step(found)))
    assert told.count("no way there") == 1
    assert "Model       silent/one (it cannot answer, see above)" in told
