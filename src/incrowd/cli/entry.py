"""Where the process of the command line starts."""

from __future__ import annotations

import resource
import sys


def start() -> None:
    """Run the command line and leave with its exit code.

    Arrow imports pandas, if it is installed, as soon as it makes an array from a list, and that takes longer than a
    small release.  No verb needs it, so it is hidden from this process; a reader that does need it brings it back.
    """
    _write_no_core()
    from incrowd.engines.readers.reader import hide_pandas

    hide_pandas()
    from incrowd.cli.main import main

    sys.exit(main())


def _write_no_core() -> None:
    """Let no crash write the memory of this process, and so rows, to a file."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
