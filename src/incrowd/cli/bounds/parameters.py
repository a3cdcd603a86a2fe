"""The options that several calculators share, as exact text."""

from __future__ import annotations

from typing import Annotated

import typer

from incrowd.errors import InvalidParameter

K = Annotated[str | None, typer.Option("--k", metavar="COUNT", help="Least number of rows that is published.")]
Rate = Annotated[str | None, typer.Option("--rate", metavar="SHARE", help="Sampling rate, such as 0.1 or 1/7.")]
Epsilon = Annotated[str | None, typer.Option("--epsilon", metavar="NUMBER", help="ε of the whole release.")]
Delta = Annotated[str | None, typer.Option("--delta", metavar="NUMBER", help="δ of the whole release, such as 1e-8.")]
Replace = Annotated[bool, typer.Option("--replace", help="Protect what a row says instead of whether it is there.")]
Plot = Annotated[str | None, typer.Option("--plot", metavar="FILE", help="Draw the curve: .svg, .png or .html.")]


_MOST = 10**9


def whole(text: str, name: str) -> int:
    """Return the whole number a person wrote.

    >>> whole("20", "k")
    20
    """
    try:
        number = int(text) if len(text) < 20 else None
    except ValueError as error:
        raise InvalidParameter(f"{name} must be a whole number such as 20.") from error
    if number is None or abs(number) > _MOST:
        raise InvalidParameter(f"{name} can be at most a billion.")
    return number


def whole_or_none(text: str | None, name: str) -> int | None:
    """Return the whole number a person wrote, or None if none was given."""
    return None if text is None else whole(text, name)
