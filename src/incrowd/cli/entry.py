"""Where the process of the command line starts."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
import warnings
from contextlib import suppress
from typing import NoReturn

_OBJECTS = 50_000  # new objects before the garbage is looked through: a command ends before it pays
_INTERRUPTED = 130
_FOREIGN, _COMPARING = ("verify", "check", "profile", "report", "import"), ("assess",)
_UNLIMITED = "--no-limits"
_CLEARED = "\r\x1b[K\x1b[?25h"
"""Clears the line of a progress bar that was cut off, and shows the cursor again."""


def start() -> None:
    """Run the command line and leave with its exit code.

    Arrow imports pandas, if it is installed, as soon as it makes an array from a list, and that takes longer than a
    small release.  No verb needs it, so it is hidden from this process; a reader that does need it brings it back.
    NumPy's library for matrices starts a thread for every core, which spins for a while; its products here are short.
    Plugins of pydantic, for which it would look through all packages, have nothing to do with a policy.
    Imports make many objects that stay: looking for cycles among them after every 700 takes a tenth of a small release.
    Warnings of libraries speak to programmers, and may quote values: `python -W` shows them.
    """
    try:
        _open_closed()
        _keep_output()
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
        _write_no_core()
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        gc.set_threshold(_OBJECTS, 20, 20)
        _read_in_a_worker(sys.argv[1:])
        from incrowd.engines.hidden_pandas import hide_pandas

        hide_pandas()
        from incrowd.cli.main import VERBS, main

        if not VERBS.keys().isdisjoint(sys.argv[1:2]):
            from incrowd.cli.generated_methods import keep_generated_methods

            keep_generated_methods(sys.argv[1])
        _leave(main())
    except KeyboardInterrupt:  # before a command has started, or after it has ended
        print("incrowd: interrupted.", file=sys.stderr)
        sys.exit(_INTERRUPTED)


def _open_closed() -> None:
    """Lead standard streams that the caller closed to nowhere: a ledger must never get the number of one of them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


def _keep_output() -> None:
    """Keep standard output for what a command prints: what libraries in C print there goes to standard error.

    HiGHS prints some lines past its own settings.  C's buffer is written at the end of the process, when Python can
    hold back nothing, so descriptor 1 itself leads to standard error, and `sys.stdout` to a copy of what it was.
    """
    with suppress(OSError, AttributeError):  # no standard output, one that is no file, or no standard error
        if sys.stdout.fileno() != 1:
            return
        sys.stdout.flush()
        output = os.dup(1)
        os.dup2(2, 1)
        before = sys.stdout
        sys.stdout = open(  # noqa: SIM115, PTH123 - open as long as the process
            output, "w", buffering=1 if before.isatty() else -1, encoding=before.encoding, errors=before.errors
        )
        setattr(sys, "__stdout__", sys.stdout)  # noqa: B010 - the width of the terminal is read off it


def _leave(code: int) -> NoReturn:
    """End the process without the destructors of libraries, which take a sixth of a small release.

    In a worker one of them, with a thread still running, would abort.  Elsewhere threads that must end are awaited.
    """
    from incrowd.engines.worker import is_worker

    if threading.active_count() > 1 and not is_worker():
        sys.exit(code)
    atexit._run_exitfuncs()  # noqa: SLF001 - what the end of a process would run
    with suppress(OSError, ValueError):  # nobody reads any more
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _read_in_a_worker(words: list[str]) -> None:
    """Let a verb that reads files of others go on in a worker with limits, and leave with its exit code here.

    Comparisons with the original rows, which take a policy of one's own, have larger limits.
    """
    if not words or words[0] not in (*_FOREIGN, *_COMPARING) or _UNLIMITED in words:
        return
    from incrowd.engines.worker import COMPARED, LIMITED, fork_worker, is_off
    from incrowd.errors import IncrowdError

    if is_off():
        return
    compares = words[0] in _COMPARING or "--internal" in words
    try:
        code = fork_worker(COMPARED if compares else LIMITED)
    except IncrowdError as error:
        from incrowd.cli.main import fail

        if sys.stderr.isatty():
            print(_CLEARED, end="", file=sys.stderr)
        code = fail(str(error), type(error).__name__, error.exit_code, as_json="--json" in words)
    if code is not None:
        sys.exit(code)


def _write_no_core() -> None:
    """Let no crash write the memory of this process, and so rows, to a file; Windows writes none by itself."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
