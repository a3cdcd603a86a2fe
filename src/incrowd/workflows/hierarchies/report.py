"""Report: what is wrong with a hierarchy file, or with any of a policy's, alone and beside the data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from incrowd.core.hierarchy import arx
from incrowd.core.schema import Column, Role
from incrowd.core.table import Rows
from incrowd.engines.columns import require
from incrowd.errors import InvalidParameter
from incrowd.workflows.hierarchies.lines import faults
from incrowd.workflows.hierarchies.outside import outside
from incrowd.workflows.hierarchies.problem import Fault
from incrowd.workflows.policy.policy import Policy


@dataclass(frozen=True)
class Report:
    """Every problem by name; `checked` says what was looked at."""

    checked: tuple[str, ...]
    problems: tuple[Fault, ...]

    @property
    def passed(self) -> bool:
        """Whether there is none."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        problems = [asdict(problem) for problem in self.problems]
        return {"passed": self.passed, "checked": list(self.checked), "problems": problems}


def check_file(path: Path, delimiter: str, rows: Rows | None, column: str | None) -> Report:
    """Look for everything that is wrong with a hierarchy file, and for values of the data that it lacks."""
    lines = arx.parse(_read(path), delimiter).rows
    found = faults(lines)
    if rows is None:
        return Report((path.name,), found)
    name = column or path.stem
    require(rows.names, [name])
    if found:
        return Report((path.name,), found)
    return Report((path.name, name), outside(rows, [Column(name, hierarchy=arx.ArxTable(lines).hierarchy())]))


def check_policy(policy: Policy, rows: Rows | None) -> Report:
    """Look for values of the data that are outside what a policy declares; its files were read with it."""
    columns = [column for column in policy.schema.columns if column.role is not Role.IDENTIFIER]
    names = tuple(column.name for column in columns)
    if rows is None:
        return Report(names, ())
    require(rows.names, names)
    return Report(names, outside(rows, columns))


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InvalidParameter(f"{path} cannot be read: {error.strerror or 'no reason given'}.") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"{path} is not UTF-8 text: save it as UTF-8.") from None
