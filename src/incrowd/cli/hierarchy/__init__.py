"""`incrowd hierarchy`: make hierarchies, and find out what is wrong with them."""

import typer

from incrowd.cli.hierarchy.build import build
from incrowd.cli.hierarchy.check import check

hierarchy = typer.Typer(help="Make hierarchies, and find out what is wrong with them.", no_args_is_help=True)
hierarchy.command("check")(check)
hierarchy.command("build")(build)
