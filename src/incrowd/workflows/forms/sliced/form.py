"""Several tables as a form: what is recounted in their files, and what their steps and claims must say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from incrowd.core.cells import Cells
from incrowd.core.certificate import Certificate, Claim
from incrowd.core.schema import Column, Schema
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.engines.readers.sources import open_source
from incrowd.methods.outcomes.microdata import Microdata
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.methods.outcomes.sliced import Sliced
from incrowd.workflows.files import PUBLISH_TABLES, paths_of
from incrowd.workflows.forms.checks import steps_of
from incrowd.workflows.forms.form import Form, Look, Problem
from incrowd.workflows.forms.microdata.form import suppressed_below
from incrowd.workflows.forms.sliced import claims, steps


class _Sliced:
    """Several tables, a file each; in none of them is a tuple over its columns rare."""

    name = "sliced"
    ending = PUBLISH_TABLES

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        return claims.check_claim(claim, certificate)

    def check_complete(self, certificate: Certificate) -> Problem | None:
        return claims.check_complete(certificate)

    def check_steps(self, certificate: Certificate) -> Problem | None:
        return steps.check_steps(certificate)

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        paths = paths_of(certificate, file)
        columns = [list(open_source(str(path)).names) for path in paths]
        problem = _strange(certificate, columns)
        yield Look("columns in the files", problem, "they are those of the groups, and no others")
        if problem is None:
            sizes = [smallest_class(path, tuple(names)) for path, names in zip(paths, columns, strict=True)]
            least = min((size for size in sizes if size is not None), default=None)
            k = suppressed_below(certificate)
            told = f"the rarest tuple of a table occurs {least} times, k is {k}" if least else "there are no rows"
            yield Look("crowds in the files", Problem(told) if least is not None and least < k else None, told)
            yield from _joint(certificate, [_rows(path) for path in paths])

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        if not isinstance(outcome, Sliced):
            return Problem("these are not several tables")
        if (strange := _strange(certificate, [list(table.schema.names) for table in outcome.tables])) is not None:
            return strange
        least = [int(table.counts.counts.min()) for table in outcome.tables if len(table)]
        rare = min(least, default=suppressed_below(certificate)) < suppressed_below(certificate)
        split = (look.problem for look in _joint(certificate, [len(table) for table in outcome.tables]))
        return Problem("some tuple occurs too rarely") if rare else next(split, None)

    def reopen(self, certificate: Certificate, file: Path) -> Sliced:
        tables = tuple(map(_table, paths_of(certificate, file)))
        return Sliced(tables, tuple(map(str, certificate.schema["released"])))


def _strange(certificate: Certificate, columns: list[list[str]]) -> Problem | None:
    """Return that the tables have other columns than the groups that were given, or than groups that can be chosen."""
    told, released = steps_of(certificate), [str(name) for name in certificate.schema["released"]]
    given = told[PUBLISH_TABLES].get("groups")
    if given is not None:
        return None if columns == given else Problem("the columns of the tables are not those of the groups")
    once = sorted(name for names in columns for name in names) == sorted(released)
    ordered = all(names == [name for name in released if name in names] for names in columns)
    small = all(0 < len(names) <= int(told[steps.CHOOSE]["size"]) for names in columns)
    return None if once and ordered and small else Problem("the tables do not hold every released column once")


def _joint(certificate: Certificate, rows: list[int]) -> Iterator[Look]:
    """Where the steps tell of one release that was split, look whether the tables can be that: all have its rows."""
    if steps_of(certificate)[PUBLISH_TABLES]["sample"] == "joint":
        unlike = Problem("the tables have different numbers of rows, so they are not parts of one release")
        yield Look("rows in the files", unlike if len(set(rows)) > 1 else None, "each table has as many rows")


def _rows(path: Path) -> int:
    source = open_source(str(path))
    return sum(len(batch) for batch in source.batches(source.names))


def _table(path: Path) -> Microdata:
    source = open_source(str(path))
    schema = Schema(tuple(Column(name) for name in source.names))
    return Microdata(LocalEngine().count(source, Cells.of(schema, {})))


SLICED: Form = _Sliced()
