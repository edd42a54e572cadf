"""The command `tiro`, also as `python -m tiro`; to tell the version it loads nothing else."""

import sys

from tiro import __version__


def main() -> int:
    """Run the command line; returns the exit code."""
    if sys.argv[1:] == ["--version"]:
        sys.stdout.write(f"tiro {__version__}\n")
        return 0
    from tiro import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
