"""Where the process of the command line starts."""

from __future__ import annotations

import resource
import signal
import sys


def start() -> None:
    """Run the command line and leave with its exit code.

    A signal to end is taken like Ctrl-C, so that whatever was begun is closed and told.

    Arrow imports pandas, if it is installed, as soon as it makes an array from a list, and that takes longer than a
    small release.  No verb needs it, so it is hidden from this process; a reader that does need it brings it back.
    """
    _end_like_an_interrupt()
    _write_no_core()
    from incrowd.engines.readers.reader import hide_pandas

    hide_pandas()
    from incrowd.cli.main import main

    sys.exit(main())


def _end_like_an_interrupt() -> None:
    """Take SIGTERM and SIGHUP like Ctrl-C, unless whoever started this process lets it ignore them (nohup).

    A hangup is passed on as a request to terminate: a server has a handler of its own for that, and ends gently.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda _number, _frame: signal.raise_signal(signal.SIGTERM))


def _write_no_core() -> None:
    """Let no crash write the memory of this process, and so rows, to a file."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
