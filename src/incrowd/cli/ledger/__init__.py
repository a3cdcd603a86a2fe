"""`incrowd ledger`: budgets and entries."""

import typer

from incrowd.cli.ledger.carve import carve
from incrowd.cli.ledger.check import check
from incrowd.cli.ledger.close import close
from incrowd.cli.ledger.grant import grant
from incrowd.cli.ledger.show import show

ledger = typer.Typer(help="Budgets and entries: what was promised about whom, and what is left.", no_args_is_help=True)
ledger.command("show")(show)
ledger.command("grant")(grant)
ledger.command("carve")(carve)
ledger.command("close")(close)
ledger.command("check")(check)
