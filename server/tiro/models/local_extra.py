"""The package that embedded models need, and how it is installed beside this Tiro."""

import shlex
import sys
from importlib.util import find_spec

EXTRA = "local"
PACKAGE = "xllamacpp"


def is_installed() -> bool:
    """Whether embedded models can run."""
    return find_spec(PACKAGE) is not None


def install_command() -> str:
    """The command that brings it, for the Python that runs this: Tiro is in no package index."""
    wanted = shlex.quote(_requirement())
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install --python {python} {wanted}"
    return f"{python} -m pip install {wanted}"


def _requirement() -> str:
    """As this Tiro's own metadata asks for it, in the exact version that it is made for."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        told = requires("tiro") or []
    except PackageNotFoundError:  # run from its sources
        return PACKAGE
    for line in told:
        requirement, _, marker = line.partition(";")
        if "extra" in marker and EXTRA in marker and requirement.startswith(PACKAGE):
            return requirement.strip()
    return PACKAGE
