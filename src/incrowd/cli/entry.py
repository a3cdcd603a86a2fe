"""Where the process of the command line starts."""

from __future__ import annotations

import gc
import os
import sys

_OBJECTS = 50_000
_INTERRUPTED = 130


def start() -> None:
    """Run the command line and leave with its exit code.

    Arrow imports pandas, if it is installed, as soon as it makes an array from a list, and that takes longer than a
    small release.  No verb needs it, so it is hidden from this process; a reader that does need it brings it back.
    NumPy's library for matrices starts a thread for every core, which spins for a while; its products here are short.
    Imports make many objects that stay: looking for cycles among them after every 700 takes a tenth of a small release.
    """
    try:
        _write_no_core()
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        gc.set_threshold(_OBJECTS, 20, 20)
        from incrowd.engines.readers.reader import hide_pandas

        hide_pandas()
        from incrowd.cli.main import main

        sys.exit(main())
    except KeyboardInterrupt:  # before a command has started, or after it has ended
        print("incrowd: interrupted.", file=sys.stderr)
        sys.exit(_INTERRUPTED)


def _write_no_core() -> None:
    """Let no crash write the memory of this process, and so rows, to a file; Windows writes none by itself."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
