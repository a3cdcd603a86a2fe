"""Where the process of the command line starts."""

from __future__ import annotations

import sys


def start() -> None:
    """Run the command line and leave with its exit code.

    Arrow imports pandas, if it is installed, as soon as it makes an array from a list, and that takes longer than a
    small release.  No verb needs it, so it is hidden from this process; a reader that does need it brings it back.
    """
    from incrowd.engines.readers.reader import hide_pandas

    hide_pandas()
    from incrowd.cli.main import main

    sys.exit(main())
