"""Import: a project of another program, told apart by the ending of its name."""

from __future__ import annotations

from pathlib import Path

from incrowd.errors import InvalidParameter
from incrowd.workflows.imports.argus import read_argus
from incrowd.workflows.imports.arx import read_arx
from incrowd.workflows.imports.project import ImportedProject


def read_project(path: Path, data: Path | None = None, *, limited: bool = True) -> ImportedProject:
    """Read a project of ARX (`.deid`) or metadata of τ-ARGUS (`.rda`)."""
    match path.suffix.lower():
        case ".deid":
            if data is not None:
                raise InvalidParameter("an ARX project holds its data: leave --data out.")
            return read_arx(path, limited=limited)
        case ".rda":
            return read_argus(path, data)
    raise InvalidParameter(f"{path.name} is neither a project of ARX (.deid) nor metadata of τ-ARGUS (.rda).")
