"""`incrowd bounds`: the calculators; give all but one of the parameters, get the missing one."""

import typer

from incrowd.cli.bounds.amplify import amplify
from incrowd.cli.bounds.compose import compose
from incrowd.cli.bounds.crowd import crowd
from incrowd.cli.bounds.safe import safe

bounds = typer.Typer(
    help="Calculate promises: give all but one of the parameters, get the missing one.", no_args_is_help=True
)
bounds.command("safe")(safe)
bounds.command("crowd")(crowd)
bounds.command("amplify")(amplify)
bounds.command("compose")(compose)
