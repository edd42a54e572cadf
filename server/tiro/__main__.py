"""The command `tiro`, also as `python -m tiro`; to tell the version it loads nothing else."""

import contextlib
import sys

from tiro import __version__


def main() -> int:
    """Run the command line; returns the exit code."""
    if sys.argv[1:] == ["--version"]:
        with contextlib.suppress(OSError, AttributeError):  # `cli` says what is wrong with stdout
            sys.stdout.write(f"tiro {__version__}\n")
            sys.stdout.flush()
            return 0
    from tiro import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
