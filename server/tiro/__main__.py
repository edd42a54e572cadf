"""`python -m tiro` is the command `tiro`."""

import sys

from tiro import cli

sys.exit(cli.main())
