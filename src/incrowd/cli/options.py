"""The options of a command as one frozen dataclass, and those that several commands share."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from incrowd.engines.interruption import is_interruption
from incrowd.errors import Interrupted, InvalidParameter
from incrowd.workflows.policy.limits import limit_of

Options = TypeVar("Options")

EngineName = Annotated[
    str | None, typer.Option("--engine", metavar="NAME", help="local or spark; by default as the policy says.")
]
Master = Annotated[
    str | None,
    typer.Option("--master", metavar="ADDRESS", help="The Spark cluster: spark://host:7077, yarn, local[4]."),
]
Remote = Annotated[
    str | None, typer.Option("--remote", metavar="ADDRESS", help="A Spark Connect server instead: sc://host:15002.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
DEFAULT = "sqlite:///.incrowd/ledger.sqlite"

Address = Annotated[
    str,
    typer.Option(
        "--ledger",
        metavar="ADDRESS",
        help="sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
        envvar="INCROWD_LEDGER",
    ),
]
Who = Annotated[str | None, typer.Option(metavar="NAME", help="Who decides; the user of this machine if not given.")]
_MOST = 10**9
_KEYS = {"max-rows": "max_rows", "rows-per-person": "max_rows"}
"""Options that a policy writes under another key."""


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
                command(options(**values))
            except (KeyboardInterrupt, RuntimeError) as error:
                if not is_interruption(error):
                    raise
                # Click would turn it into an exit code without a word, and a charge must not be lost without one.
                raise Interrupted(" ".join(["stopped before the end.", *getattr(error, "__notes__", ())])) from None

        hints = get_type_hints(options, include_extras=True)
        parameters = [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=hint)
            for field, hint in ((field, hints[field.name]) for field in dataclasses.fields(options))  # type: ignore[arg-type]
        ]
        # The command line is built from the signature: it must show the fields, not `**values`.
        run.__dict__.pop("__wrapped__", None)
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}
        run.__doc__ = _reflowed(command.__doc__ or "")
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate


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
    """Return who acts: the name given, or the user of this machine.

    >>> person("data protection officer")
    'data protection officer'
    """
    if who is not None:
        return who
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise InvalidParameter("this machine does not know who you are: give --who.") from error


def _reflowed(text: str) -> str:
    # A help page breaks lines by its own width, so a paragraph must be one line.
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty
