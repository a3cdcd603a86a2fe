"""Steps: whether the steps of several tables say what the guarantee and the schema say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Certificate
from incrowd.core.loss import Crowd, Grouped, Loss, Pure, Sampled, Sequence, Syntactic
from incrowd.workflows.files import PUBLISH_TABLES, tables_of
from incrowd.workflows.forms.checks import drafted_of, steps_of, whole
from incrowd.workflows.forms.form import Problem

CHOOSE = "choose groups"
_PERSON = "keep rows of each person"
_UNREADABLE = (KeyError, TypeError, ValueError, ZeroDivisionError)


@dataclass(frozen=True)
class Told:
    """What the steps tell: crowds, samples, tables, and the ε of a choice if there was one."""

    k: int
    rate: Fraction
    tables: int
    samples: int
    choosing: Fraction | None

    @classmethod
    def of(cls, certificate: Certificate) -> Told:
        """Read the steps, or raise KeyError, TypeError or ValueError."""
        steps = steps_of(certificate)
        tables, sample = tables_of(certificate), steps[PUBLISH_TABLES]["sample"]
        if not tables or sample not in ("fresh", "joint"):
            raise ValueError("no number of tables, or a sample that is not known")
        choosing = Fraction(str(steps[CHOOSE]["epsilon"])) if CHOOSE in steps else None
        return cls(
            whole(steps["suppress"]["k"]),
            Fraction(str(steps["sample"]["rate"])),
            tables,
            tables if sample == "fresh" else 1,
            choosing,
        )

    def loss(self, rows: int) -> Loss:
        """Return the loss of such steps for units of so many rows."""
        row: Loss = Sampled(self.rate, Crowd(self.k))
        row = Grouped(rows, row) if rows > 1 else row
        parts = ((Pure(self.choosing),) if self.choosing is not None else ()) + (row,) * self.samples
        return parts[0] if len(parts) == 1 else Sequence(parts)


def check_steps(certificate: Certificate) -> Problem | None:
    """Return where the steps contradict the guarantee or the schema, or None."""
    unit = certificate.guarantee.unit
    names = [str(step.get("step")) for step in certificate.chain]
    between = ["sample", "recode", "suppress", PUBLISH_TABLES]
    chosen = [CHOOSE] if CHOOSE in names else []
    if names != [*chosen, *([_PERSON] if unit.column is not None else []), *between]:
        return Problem("these steps are not known here", undecided=True)
    try:
        steps, told = steps_of(certificate), Told.of(certificate)
        person = steps.get(_PERSON, {"column": unit.column, "rows": unit.max_rows})
        if (person["column"], person["rows"]) != (unit.column, unit.max_rows):
            return Problem("the rows kept of each person are not those of the guarantee's unit")
        if [each["column"] for each in steps["recode"]["columns"]] != list(certificate.schema["released"]):
            return Problem("the recoded columns are not the released ones")
        if certificate.guarantee.loss != _promised(steps, told, unit.max_rows):
            return Problem("these steps do not give such a guarantee")
        return _groups(certificate, steps) or _choice(certificate, steps)
    except _UNREADABLE:
        return Problem("the steps cannot be read")


def _promised(steps: Mapping[str, Mapping[str, Any]], told: Told, rows: int) -> Loss:
    drafted = drafted_of(steps["recode"]["columns"])
    if drafted:
        return Syntactic("k-anonymity", (("k", str(told.k)), ("drafted from rows", ", ".join(drafted))))
    return told.loss(rows)


def _groups(certificate: Certificate, steps: Mapping[str, Mapping[str, Any]]) -> Problem | None:
    """Return that groups which were given do not hold every released column once."""
    given = steps[PUBLISH_TABLES].get("groups")
    if (given is None) != (CHOOSE in steps):
        return Problem("the groups were neither given nor chosen, or both")
    if given is None:
        return None
    named = [name for group in given for name in group]
    if sorted(named) != sorted(certificate.schema["released"]) or len(given) != tables_of(certificate):
        return Problem("the groups do not hold every released column once")
    return None


def _choice(certificate: Certificate, steps: Mapping[str, Mapping[str, Any]]) -> Problem | None:
    """Return that one unit can move the score of a grouping by more than the step of the choice says.

    One row moves the association of two columns by less than 2, and a group of s columns has s·(s − 1)/2 pairs: most
    are kept together where as many groups as possible are full.
    """
    if CHOOSE not in steps:
        return None
    unit, size, columns = certificate.guarantee.unit, whole(steps[CHOOSE]["size"]), len(certificate.schema["released"])
    if size < 2 or math.ceil(columns / size) != tables_of(certificate):
        return Problem("there are not as many tables as groups of that size take")
    full, left = divmod(columns, size)
    pairs = full * size * (size - 1) // 2 + left * (left - 1) // 2
    replaced = 1 if str(unit.adjacency) == "add-remove" else 2
    if whole(steps[CHOOSE]["sensitivity"]) < 2 * pairs * unit.max_rows * replaced:
        return Problem("one person can move the score of a grouping by more than the steps say")
    return None
