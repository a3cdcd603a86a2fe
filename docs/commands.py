"""Bring the command reference up to date with the command line: `python docs/commands.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from incrowd.cli.main import application

PAGE = Path(__file__).parent / "reference" / "cli.md"
_END = "<!-- end of options -->"


def commands() -> dict[str, Any]:
    """Return every command by its full name."""
    return dict(_below(typer.main.get_command(application()), "incrowd"))


def updated(page: str) -> str:
    """Return the page with the help and options of every command as they are now; the words around them stay."""
    for path, command in commands().items():
        start, block = _start(path), _block(path, command)
        before, found, rest = page.partition(start)
        page = before + block + rest.partition(_END)[2] if found else f"{page.rstrip()}\n\n## {path}\n\n{block}\n"
    return page


def _below(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    if not inner:
        yield path, command
    for name, each in inner.items():
        yield from _below(each, f"{path} {name}")


def _start(path: str) -> str:
    return f"<!-- options of {path} -->"


def _block(path: str, command: Any) -> str:
    rows = [f"| {_shown(parameter)} | {parameter.help} |" for parameter in command.params]
    help_text = re.sub(r"(?<![\w`])(--[a-z][a-z-]*)", r"`\1`", command.help)
    return "\n".join([_start(path), help_text, "", "| option | meaning |", "|---|---|", *rows, _END])


def _shown(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    value = "" if parameter.is_flag else f" {parameter.metavar or 'VALUE'}"
    names = [parameter.opts[0], *parameter.secondary_opts]
    return ", ".join(f"`{name}{value}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
