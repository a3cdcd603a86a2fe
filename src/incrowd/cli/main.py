"""The entry of the command line: every expected error becomes one message and an exit code."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Annotated

import typer

from incrowd import __version__
from incrowd.cli.output import wrapped
from incrowd.errors import IncrowdError, NotRefunded, PrintingFailed

_BAD_INPUT = 2
_UNEXPECTED = 70
_INTERRUPTED = 130
_SHOW_TRACEBACK = "INCROWD_TRACEBACK"
_COMPLETION = "_INCROWD_COMPLETE"
"""In the environment of a command that completes words for a shell."""
_ENDS: dict[int, Callable[[int, FrameType | None], object]] = {signal.SIGTERM: signal.default_int_handler}
if hasattr(signal, "SIGHUP"):  # Windows has none
    _ENDS[signal.SIGHUP] = lambda _number, _frame: signal.raise_signal(signal.SIGTERM)
"""How signals to end are taken: like Ctrl-C; a hangup is passed on, since a server that is terminated ends gently."""

VERBS = {
    "profile": "Show types and guessed roles of columns, with reasons, and which columns single people out.",
    "check": "Check whether a table can be published as it is. Exit 0 if yes, 1 if not.",
    "hierarchy": "Draft and check hierarchies.",
    "policy": "Check policy files, and print their JSON Schema.",
    "import": "Import a project of ARX, or metadata of τ-ARGUS, as a policy with hierarchies and data in a new folder.",
    "plan": "Show a release's guarantee, cost and expected output. Spends nothing. "
    "Exit 1 if a release would be refused.",
    "release": "Release a table under a policy.",
    "series": "Release the same table every period, under one budget.",
    "synth": "Compare ways to make synthetic rows.",
    "learn": "Learn a model under a policy.",
    "predict": "Write the prediction of a model for each row: `prediction`, and `p_CLASS` for every class.",
    "export": "Write a release in another format.",
    "query": "Answer one SQL query privately, within the policy's budget.",
    "coarsen": "Generalize a released table further. "
    "It reads no original rows, charges nothing and keeps every guarantee.",
    "verify": "Check a certificate: its files, every claim, recomputed independently, the charge and the signature.",
    "assess": "Compare a release with the original rows: rows released, information loss, disclosure risk, utility.",
    "attack": "Attack a release and compare the success rate with a baseline and a control group.",
    "estimate": "Estimate the original frequency of each category from a table released with method pram.",
    "local": "Surveys with local randomization.",
    "collect": "Collect locally randomized reports of a survey.",
    "graph": "Profile, release, assess and attack a graph.",
    "report": "Write the report of a release as one self-contained page.",
    "rule": "Say whether a suppression rule for tables of counts protects each person: by which theorem, or why not.",
    "bounds": "Calculate guarantees: give all but one parameter, get the missing one.",
    "ledger": "Privacy budgets and ledger entries.",
    "access": "Manage who may query a server: roles, tokens and passwords.",
    "consent": "Record consent, and show its consequences for releases.",
    "serve": "Answer queries over HTTP, and of PostgreSQL clients with --postgres, until stopped.",
    "studio": "Open a folder in the browser: from a table to a signed, verified release, without a network.",
    "config": "Where a command looks for its ledger and keeps its state, and who decided that.",
    "doctor": "Say what is installed and what each verb needs; "
    "test random numbers, clock, locks and rights of this machine.",
}
"""Every verb, in the order of the help, with the paragraph that its own help begins with.

Each is a module of this folder and, in it, a function or a group of that name.  The help of all of them imports none.
"""

_ELSEWHERE = {"import": ("importing", "import_project")}
"""Verbs whose name is a word of Python."""


def application(words: Sequence[str] | None = None) -> typer.Typer:
    """Return the command line: all of it, or what some words need of it.

    That is the verb that stands first, alone; or, where no word is a verb, the names of all of them, for help and
    mistakes.
    """
    app = typer.Typer(
        help="Hide everyone in a crowd, and prove it: policy in, certified release out.",
        epilog="Exit codes: 0 done or passed, 1 refused or failed a check, 2 bad input, 70 unexpected error, "
        "130 interrupted.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_start)
    named = words is not None and _COMPLETION not in os.environ and VERBS.keys().isdisjoint(words)
    for verb in words[:1] if words and words[0] in VERBS else VERBS:
        if named:
            app.command(verb, help=VERBS[verb])(_nothing)
            continue
        module, name = _ELSEWHERE.get(verb, (verb, verb))
        command = getattr(import_module(f"incrowd.cli.{module}"), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=verb)
        else:
            app.command(verb)(command)
    return app


def _nothing() -> None:
    """Stand for a verb where only its name is asked for."""


def _print_version(requested: bool) -> None:
    if requested:
        print(f"incrowd {__version__}")
        raise typer.Exit


def _start(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Hide everyone in a crowd, and prove it: policy in, certified release out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 refused, 2 bad input, 70 unexpected, 130 interrupted.

    An error is one message on standard error; with `--json` it is one JSON object there, with `error` and `kind`.

    >>> main(["--version"])
    incrowd ...
    0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    try:
        with _stoppable():
            command = typer.main.get_command(application(words))
            code = command.main(args=words, prog_name="incrowd", standalone_mode=False)
        sys.stdout.flush()
    except IncrowdError as error:
        return fail(str(error), type(error).__name__, error.exit_code, as_json)
    except typer.Abort:
        code = _INTERRUPTED
    except (BrokenPipeError, SystemExit) as ended:
        if isinstance(ended, SystemExit) and not ended.code:  # so Typer ends what it told to a shell
            return 0
        _drop_output()  # the reader closed the pipe (`incrowd … | head`), which Typer turns into SystemExit
        return 0
    except Exception as error:  # noqa: BLE001 (the last resort; an exception's own text may hold data)
        return _usage_error(error, as_json) or _unprinted(error, as_json) or _unexpected(error, as_json)
    if code == _INTERRUPTED:  # Typer turns Ctrl-C into this code without a word
        return fail("interrupted.", "Interrupted", _INTERRUPTED, as_json)
    return code if isinstance(code, int) else 0


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let a request to end, and a terminal that is closed, stop a command as Ctrl-C does: in order, and with a word."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {end: signal.getsignal(end) for end in _ENDS if signal.getsignal(end) is signal.SIG_DFL}
    for number in before:
        signal.signal(number, _ENDS[number])
    try:
        yield
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)


def _usage_error(error: Exception, as_json: bool) -> int | None:
    """Report what the command line could not parse; None if the error is of another kind."""
    describe = getattr(error, "format_message", None)
    if describe is None:
        return None
    if not describe():  # a bare `incrowd bounds`, whose help was just printed
        return _BAD_INPUT
    context = getattr(error, "ctx", None)
    hint = f" See '{context.command_path} --help'." if context is not None else ""
    return fail(f"{describe().rstrip('.')}.{hint}", "Usage", _BAD_INPUT, as_json)


def _unprinted(error: Exception, as_json: bool) -> int | None:
    """Report a standard output that takes no more, such as a file on a full disk; None if the error is another."""
    if not isinstance(error, OSError):
        return None
    try:
        sys.stdout.flush()  # what could not be written is still there, and fails again
    except OSError as failure:
        _drop_output()
        lost = PrintingFailed(
            f"standard output cannot be written: {failure.strerror or 'no reason given'}. What this command released, "
            "wrote or charged stands (`incrowd ledger show`). Make room, or send the output elsewhere."
        )
        return fail(str(lost), type(lost).__name__, lost.exit_code, as_json)
    return None


def _drop_output() -> None:
    """Lead what is still to be printed nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unexpected(error: Exception, as_json: bool) -> int:
    if os.environ.get(_SHOW_TRACEBACK):
        import traceback

        traceback.print_exception(error)
    cause = (
        "out of memory: give the command more memory."
        if isinstance(error, MemoryError)
        else f"an unexpected error stopped this command ({type(error).__name__}). This is a bug in incrowd. "
        f"Set {_SHOW_TRACEBACK}=1 to see the trace. It may contain data: read it before you share it."
    )
    # the charge that is not refunded is a note of the error, see `performing`; other notes may hold data
    spent = [note for note in getattr(error, "__notes__", ()) if isinstance(note, NotRefunded)]
    return fail(" ".join([cause, *spent]), "Unexpected", _UNEXPECTED, as_json)


def fail(message: str, kind: str, code: int, as_json: bool) -> int:
    """Print one message on standard error and return the exit code."""
    if as_json:
        print(json.dumps({"error": message, "kind": kind}, ensure_ascii=False), file=sys.stderr)
    else:
        text = f"incrowd: {message}"
        print("\n".join(wrapped(text)) if sys.stderr.isatty() else text, file=sys.stderr)
    return code
