"""`incrowd ledger carve`: set a zero-concentrated account aside, for many questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from incrowd.cli.ledger.address import DEFAULT, Address, Dataset
from incrowd.cli.ledger.show import print_standing
from incrowd.cli.options import Json, takes


@dataclass(frozen=True)
class CarveOptions:
    """What `incrowd ledger carve` can be told."""

    dataset: Dataset
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="What the account is called.")]
    rho: Annotated[str, typer.Option(metavar="NUMBER", help="How much ρ the account holds.")]
    delta: Annotated[str, typer.Option(metavar="NUMBER", help="The δ at which its ε is charged, now and for all.")]
    ledger: Address = DEFAULT
    as_json: Json = False


@takes(CarveOptions)
def carve(options: CarveOptions) -> None:
    """Set a zero-concentrated account aside: its whole ε and δ are charged at once, then only ρ is counted.

    Questions that pay by `incrowd query --account ACCOUNT --rho NUMBER` get Gaussian noise. For many of them this is
    worth more than paying each with ε.
    """
    from incrowd.accounting.ledger.ledger import Ledger

    ledger = Ledger.open(options.ledger)
    ledger.carve(options.dataset, options.account, options.rho, options.delta)
    print_standing(ledger.standing(options.dataset), options.as_json)
