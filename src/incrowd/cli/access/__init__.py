"""`incrowd access`: who may ask a server."""

import typer

from incrowd.cli.access.check import check
from incrowd.cli.access.grant import grant
from incrowd.cli.access.listing import listing
from incrowd.cli.access.password import password
from incrowd.cli.access.revoke import revoke
from incrowd.cli.access.rotate import rotate

access = typer.Typer(help="Who may ask a server: roles, tokens and passwords.", no_args_is_help=True)
access.command("grant")(grant)
access.command("password")(password)
access.command("rotate")(rotate)
access.command("revoke")(revoke)
access.command("list")(listing)
access.command("check")(check)
