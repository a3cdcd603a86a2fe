"""`incrowd ledger grant`: add to a budget, or allow an analyst a part of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.ledger.address import DEFAULT, Address, Dataset, Who, Why, make_folder, person
from incrowd.cli.ledger.show import print_standing
from incrowd.cli.options import Json, takes
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.core.unit import Unit


@dataclass(frozen=True)
class LedgerGrantOptions:
    """What `incrowd ledger grant` can be told."""

    dataset: Dataset
    why: Why
    epsilon: Annotated[str, typer.Option(metavar="NUMBER", help="ε to add; for an analyst, the ε allowed.")] = "0"
    delta: Annotated[str, typer.Option(metavar="NUMBER", help="δ to add; for an analyst, the δ allowed.")] = "0"
    unbounded: Annotated[
        str | None, typer.Option(metavar="REASON", help="Let releases without an ε pass from now on, for this reason.")
    ] = None
    analyst: Annotated[str | None, typer.Option(metavar="NAME", help="Set this analyst's allowance instead.")] = None
    until: Annotated[str | None, typer.Option(metavar="DATE", help="Last day of the analyst's allowance.")] = None
    new: Annotated[bool, typer.Option("--new", help="Make a new dataset, and the ledger if it is not there.")] = False
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --new: protect people, known by this column.")
    ] = None
    max_rows: Annotated[str, typer.Option(metavar="COUNT", help="With --person: rows that one person may have.")] = "1"
    replace: Annotated[bool, typer.Option("--replace", help="With --new: protect what a unit says.")] = False
    who: Who = None
    ledger: Address = DEFAULT
    as_json: Json = False


@takes(LedgerGrantOptions)
def grant(options: LedgerGrantOptions) -> None:
    """Add to the budget of a dataset, for good, or set an analyst's allowance.

    This is the only way to change a budget. With --new the dataset, and if need be the ledger, is made first.
    """
    from incrowd.accounting.ledger.ledger import Ledger

    _check(options)
    grant_it = _allowance(options, options.analyst) if options.analyst is not None else _addition(options)
    ledger = _with_new_dataset(options) if options.new else Ledger.open(options.ledger)
    grant_it(ledger)
    print_standing(ledger.standing(options.dataset), options.as_json)


def _addition(options: LedgerGrantOptions) -> Callable[[Ledger], object]:
    from incrowd.accounting.budget import Budget

    more, who = Budget.of(options.epsilon, options.delta, options.unbounded), person(options.who)
    return lambda ledger: ledger.grant(options.dataset, more, who, options.why)


def _allowance(options: LedgerGrantOptions, analyst: str) -> Callable[[Ledger], object]:
    from incrowd.accounting.budget import Allowance

    allowance = Allowance.of(analyst, options.epsilon, options.delta, _day(options.until))
    who = person(options.who)
    return lambda ledger: ledger.allow(options.dataset, allowance, who, options.why)


def _with_new_dataset(options: LedgerGrantOptions) -> Ledger:
    from incrowd.accounting.ledger.datasets import Declaration
    from incrowd.accounting.ledger.ledger import Ledger

    declaration = Declaration(options.dataset, _unit(options))
    make_folder(options.ledger)
    ledger = Ledger.create(options.ledger)
    overview = ledger.show()
    if options.dataset in {*overview.shared, *(standing.dataset for standing in overview.datasets)}:
        raise InvalidParameter(
            f"the ledger already knows dataset {options.dataset}: leave out --new to add to its budget."
        )
    ledger.register(declaration)
    return ledger


def _unit(options: LedgerGrantOptions) -> Unit:
    from incrowd.cli.bounds.parameters import whole
    from incrowd.core.unit import Adjacency, Kind, Unit

    adjacency = Adjacency.REPLACE if options.replace else Adjacency.ADD_REMOVE
    if options.person is None:
        return Unit(adjacency=adjacency)
    return Unit(Kind.PERSON, adjacency, options.person, whole(options.max_rows, "max-rows"))


def _check(options: LedgerGrantOptions) -> None:
    if options.new and options.analyst is not None:
        raise InvalidParameter("make the dataset known first (--new), then allow an analyst a part of it (--analyst).")
    if not options.new and (options.person is not None or options.replace or options.max_rows != "1"):
        raise InvalidParameter("the unit of privacy is declared once, with --new; it cannot be changed later.")
    if options.until is not None and options.analyst is None:
        raise InvalidParameter("a budget is for good; --until belongs to an analyst's allowance (--analyst).")
    if options.unbounded is not None and options.analyst is not None:
        raise InvalidParameter(
            "releases without an ε are a matter of the dataset's budget, not of an analyst's allowance."
        )
    if not options.why.strip():
        raise InvalidParameter("write why, for those who will read the ledger.")
    if options.analyst is None and options.unbounded is None and options.epsilon == options.delta == "0":
        raise InvalidParameter("nothing is granted: give --epsilon, --delta or --unbounded.")


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InvalidParameter("a day is written like 2030-12-31.") from error
