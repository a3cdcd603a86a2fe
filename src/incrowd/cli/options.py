"""The options of a command as one frozen dataclass, and those that several commands share."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from glob import escape as _escaped
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from incrowd.core.table import SourceOptions
from incrowd.engines.interruption import is_interruption
from incrowd.errors import IncrowdError, Interrupted, InvalidParameter, NotRefunded
from incrowd.workflows.events import VARIABLE as LOG
from incrowd.workflows.policy.ledger_place import STATE
from incrowd.workflows.policy.ledger_place import VARIABLE as LEDGER
from incrowd.workflows.policy.limits import limit_of

Options = TypeVar("Options")

EngineName = Annotated[
    str | None, typer.Option("--engine", metavar="NAME", help="local or spark; default: the policy's.")
]
Master = Annotated[
    str | None,
    typer.Option("--master", metavar="ADDRESS", help="The Spark cluster: spark://host:7077, yarn, local[4]."),
]
Remote = Annotated[
    str | None, typer.Option("--remote", metavar="ADDRESS", help="A Spark Connect server instead: sc://host:15002.")
]
IdempotencyKey = Annotated[
    str | None,
    typer.Option(
        "--idempotency-key",
        metavar="TEXT",
        help="The name of this run for schedulers: tried again, it is the same release, paid once.",
    ),
]
Recover = Annotated[
    str | None,
    typer.Option("--recover", metavar="HOW", help="deliver or discard a finished release that a kill hid."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
NoLimits = Annotated[
    bool,
    typer.Option("--no-limits", help="Read without limits of time and memory; for files that you trust."),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="ADDRESS",
        help="sqlite:///FILE or postgresql://USER@HOST/DATABASE; default: INCROWD_LEDGER, else the policy's, else "
        "ledger.sqlite in the folder for state.",
        rich_help_panel="Places",
    ),
]
Who = Annotated[str | None, typer.Option(metavar="NAME", help="Who decides; default: your user name.")]
_MOST = 10**9  # of a count: typing errors are refused
_KEYS = {"max-rows": "max_rows", "rows-per-person": "max_rows", "header-row": "header_row"}
"""Options that a policy writes under another key."""


_PANEL = "How the data is read"


def _reads(help_: str, metavar: str, name: str | None = None) -> Any:
    names = () if name is None else (name,)
    return typer.Option(*names, metavar=metavar, help=help_, rich_help_panel=_PANEL)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How a text file or a workbook is read; these options override the policy."""

    encoding: Annotated[str | None, _reads("Such as cp1252, latin-1 or utf-16.", "NAME")] = None
    delimiter: Annotated[str | None, _reads("Column delimiter of a text file; tab for a tab.", "CHARACTER")] = None
    decimal: Annotated[str | None, _reads("Decimal separator: . or ,", "CHARACTER")] = None
    thousands: Annotated[str | None, _reads("Thousands separator: . , ' or space.", "CHARACTER")] = None
    dates: Annotated[list[str], _reads("Date format, such as %d.%m.%Y; can be repeated.", "FORMAT")] = (
        dataclasses.field(default_factory=list)
    )
    nulls: Annotated[list[str], _reads("Text of a missing value, such as NA; can be repeated.", "TEXT")] = (
        dataclasses.field(default_factory=list)
    )
    totals: Annotated[list[str], _reads("First cell of a row of sums, left out; can be repeated.", "TEXT")] = (
        dataclasses.field(default_factory=list)
    )
    sheet: Annotated[str | None, _reads("Sheet of a workbook, by name or number.", "SHEET")] = None
    header_row: Annotated[str | None, _reads("Number of the line with the column names.", "NUMBER")] = None

    @property
    def source_options(self) -> SourceOptions:
        """How the source is read, by the command line."""
        return SourceOptions(
            encoding=self.encoding,
            delimiter=_NAMED_CHARACTERS.get(self.delimiter or "", self.delimiter),
            decimal=self.decimal,
            thousands=_NAMED_CHARACTERS.get(self.thousands or "", self.thousands),
            dates=tuple(self.dates),
            nulls=("", *self.nulls),
            totals=tuple(self.totals),
            sheet=self.sheet,
            header_row=whole_or_none(self.header_row, "header-row"),
        )


_NAMED_CHARACTERS = {"tab": "\t", "\\t": "\t", "space": " "}


State = Annotated[
    str | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Where ledger, internal files and fingerprints are kept; default: INCROWD_STATE, else .incrowd beside "
        "the policy.",
        rich_help_panel="Places",
    ),
]
Log = Annotated[
    str | None,
    typer.Option(
        "--log",
        metavar="PLACE",
        help="Log every step: json (on standard error), a file, or otlp:ADDRESS for OpenTelemetry; default: "
        "INCROWD_LOG, else none.",
        rich_help_panel="Places",
    ),
]
_SERVERS = ("incrowd.cli.serve", "incrowd.cli.studio")
_PLACED = ("policy", "survey", "ledger")
"""A command with one of these options reads or writes state, and so takes --ledger and --state; a server does, too."""


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Turn a function of one frozen dataclass into a command with one option per field.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Greeting:
    ...     name: Annotated[str, typer.Option(help="Whom to greet.")] = "you"
    >>> @takes(Greeting)
    ... def greet(greeting: Greeting) -> None:
    ...     print(f"hello, {greeting.name}")
    >>> greet(name="crowd")
    hello, crowd
    """

    def decorate(command: Callable[[Options], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(**values: Any) -> None:
            try:
                with (
                    _environment(LEDGER, (values.get if "ledger" in hints else values.pop)("ledger", None)),
                    _environment(STATE, values.pop("state", None)),
                    _environment(LOG, values.pop("log", None)),
                    _recorded(command),
                ):
                    command(options(**values))
            except (KeyboardInterrupt, RuntimeError) as error:
                if not is_interruption(error):
                    raise
                # Click would turn it into an exit code without a word, and a charge must not be lost without one.
                spent = [note for note in getattr(error, "__notes__", ()) if isinstance(note, NotRefunded)]
                raise Interrupted(" ".join(["interrupted.", *spent])) from None

        hints = {name: _completed(name, hint) for name, hint in get_type_hints(options, include_extras=True).items()}
        parameters = [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=hint)
            for field, hint in ((field, hints[field.name]) for field in _ordered(options))
        ]
        places: dict[str, Any] = {"log": Log}
        if command.__module__ in _SERVERS or any(parameter.name in _PLACED for parameter in parameters):
            places = {"ledger": Address, "state": State, **places}
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in places.items()
            if name not in hints
        ]
        # The command line is built from the signature: it must show the fields, not `**values`.
        run.__dict__.pop("__wrapped__", None)
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}
        run.__doc__ = _reflowed(command.__doc__ or "")
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


@contextmanager
def _environment(variable: str, value: str | None) -> Iterator[None]:
    """Set a variable, if there is a value, for everything that a command starts, processes included, until it ends."""
    before = os.environ.get(variable)
    if value is not None:
        os.environ[variable] = value
    try:
        yield
    finally:
        if value is not None:
            os.environ.pop(variable)
        if value is not None and before is not None:
            os.environ[variable] = before


@contextmanager
def _recorded(command: Callable[..., None]) -> Iterator[None]:
    """Record the steps of a command where its log says; a server logs requests instead, and no steps of queries."""
    place = os.environ.get(LOG)
    if not place or command.__module__ in _SERVERS:
        yield
        return
    from incrowd.workflows.events import recorded, recorder_at, step

    words = dict.fromkeys(["incrowd", command.__module__.rpartition(".")[2], command.__name__])
    ended: typer.Exit | None = None
    with recorded(recorder_at(place, sys.stderr)), step(" ".join(words)) as facts:
        try:
            yield
        except typer.Exit as exit_:
            facts["exit"], ended = exit_.exit_code, exit_
        except IncrowdError as error:
            facts["exit"] = error.exit_code
            raise
    if ended is not None:
        raise ended


def _ordered(options: type) -> list[dataclasses.Field[Any]]:
    """Return the fields of a command's options, those that it shares with others last."""
    return sorted(dataclasses.fields(options), key=lambda field: bool(field.kw_only))


def policy_files(incomplete: str) -> list[str]:
    """Return the policies below a partly typed path, for shell completion.

    >>> policy_files("no-such-folder/")
    []
    """
    from incrowd.workflows.policy.document import is_policy

    folder, _, start = incomplete.rpartition("/")
    files = sorted(Path(f"{folder}/" if folder or incomplete.startswith("/") else ".").glob(f"{_escaped(start)}*"))
    return [f"{incomplete[: len(incomplete) - len(start)]}{file.name}" for file in files if is_policy(file)]


def _words(*choices: str) -> Callable[[str], list[str]]:
    return lambda incomplete: [word for word in choices if word.startswith(incomplete)]


_COMPLETIONS: dict[str, Callable[[str], list[str]]] = {
    "policy": policy_files,
    "engine": _words("local", "spark"),
    "form": _words("parquet", "csv", "tsv"),
    "classical": _words("size-control=", "audited", "perturbed-copy=", "random-sample="),
}
"""What a shell offers for an option, by the name of its field; files and folders, where nothing is said here."""


def _completed(name: str, hint: Any) -> Any:
    """Return the type of an option, whose values a shell can complete if it is known which there are."""
    for option in getattr(hint, "__metadata__", ()):
        if isinstance(option, typer.models.OptionInfo) and name in _COMPLETIONS:
            option.autocompletion = _COMPLETIONS[name]
    return hint


def whole(text: str, name: str) -> int:
    """Return the whole number a person wrote.

    >>> whole("20", "k")
    20
    """
    try:
        number = int(text) if len(text) < 20 else None
    except ValueError as error:
        raise InvalidParameter(f"{name} must be a whole number such as 20.") from error
    most = min(_MOST, limit_of(_KEYS.get(name, name)))
    if number is None or abs(number) > most:
        raise InvalidParameter(f"{name} can be at most {most:,}.")
    return number


def whole_or_none(text: str | None, name: str) -> int | None:
    """Return the whole number a person wrote, or None if none was given."""
    return None if text is None else whole(text, name)


def person(who: str | None) -> str:
    """Return the acting person: the given name, or the user name.

    >>> person("data protection officer")
    'data protection officer'
    """
    if who is not None:
        return who
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise InvalidParameter("your user name is unknown: give --who.") from error


def _reflowed(text: str) -> str:
    # A help page breaks lines by its own width, so a paragraph must be one line.
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty
