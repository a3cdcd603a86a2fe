"""`incrowd ledger close`: nothing more is released from a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from incrowd.cli.ledger.address import DEFAULT, Address, Dataset, Who, Why, person
from incrowd.cli.ledger.show import print_standing
from incrowd.cli.options import Json, takes


@dataclass(frozen=True)
class CloseOptions:
    """What `incrowd ledger close` can be told."""

    dataset: Dataset
    why: Why
    retire: Annotated[bool, typer.Option("--retire", help="Record that the data was destroyed.")] = False
    who: Who = None
    ledger: Address = DEFAULT
    as_json: Json = False


@takes(CloseOptions)
def close(options: CloseOptions) -> None:
    """Close a dataset for good; with --retire, record that its data was destroyed."""
    from incrowd.accounting.ledger.ledger import Ledger

    ledger = Ledger.open(options.ledger)
    end = ledger.retire if options.retire else ledger.close
    end(options.dataset, person(options.who), options.why)
    print_standing(ledger.standing(options.dataset), options.as_json)
