"""Coarsen: a coarser table from a released one; it reads no rows and costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.core.cells import Cells
from incrowd.core.certificate import Certificate
from incrowd.core.domain import Type
from incrowd.core.plan import Plan
from incrowd.core.schema import Column, Schema
from incrowd.core.spreadsheet import MARK, is_guarded
from incrowd.core.steps.rows import Order, Recode
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import Step, fold
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.engines.writers.sinks import Folders, staged
from incrowd.errors import GuaranteeBroken, InvalidParameter, Refused
from incrowd.methods.shared.microdata import Microdata
from incrowd.methods.shared.outcome import COUNT, Histogram, Outcome
from incrowd.verifier.check import Certified
from incrowd.verifier.files import CERTIFICATE, file_of, tables_of
from incrowd.verifier.judge import numbers_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.coarsen.check import PARENTS, compare_parent, is_counted, read, root, text_of
from incrowd.workflows.coarsen.labels import Risen, raise_labels
from incrowd.workflows.coarsen.steps import Coarsen, CoarserColumn, Parent
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.certify import PlanFacts, derive_certificate
from incrowd.workflows.release.deliver import Destination, Released, write_files
from incrowd.workflows.verify.verify import verify

if TYPE_CHECKING:
    from incrowd.core.coins import Coins


NAME = "coarser table"
_FAULT = (
    "the coarser table was not made: {}. Nothing was published and nothing was charged. The release itself verifies, "
    "so this is a fault in the software: please report it."
)


@dataclass(frozen=True)
class Coarser:
    """A coarser table: columns at higher levels, and only some of the columns (none named: all of them)."""

    levels: Mapping[str, int] = field(default_factory=dict)
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceRelease:
    """A release that a coarser table is made from: its certificate and its file."""

    certificate: Certificate
    file: Path

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was done for the release."""
        return self.certificate.steps

    @property
    def levels(self) -> dict[str, int]:
        """The level at which each column was released; those that a private choice found stand in the evidence."""
        recoding = next(step for step in reversed(self.steps) if isinstance(step, Coarsen | Recode))
        chosen = self.certificate.evidence.get("levels", {})
        return {column.column: int(chosen.get(column.column, column.level)) for column in recoding.columns}


def coarsen(parent: Path, policy: Policy, request: Coarser, out: Path) -> Released:
    """Write a coarser table of a release, with a certificate of its own that names and holds its parent's.

    Nothing is charged: whatever is computed from what was released, by a rule that looks at nothing else, keeps every
    guarantee (post-processing), and a class of the coarser table is a union of classes.  The same table counted from
    rows would be a second release, which crowds do not allow.
    """
    source = read_source(parent, policy)
    columns, rise = _columns(source, policy, request)
    table = read(source.file).select([*columns, *([COUNT] if is_counted(source.steps) else [])])
    maps = {
        name: raise_labels(policy.schema[name], low, high, text_of(table[name].unique()).to_pylist())
        for name, (low, high) in rise.items()
        if low < high
    }
    step = Coarsen(
        tuple(CoarserColumn(name, rise[name][1], _pairs(maps[name]) if name in maps else None) for name in columns)
    )
    return _published(source, coarser_plan(source, step), policy, table, out)


def coarser_plan(source: SourceRelease, step: Coarsen) -> Plan:
    """Return the plan of a coarser table: it guarantees what its parent does, and reads the released table alone."""
    certificate = source.certificate
    stated = certificate.guarantee
    named = (certificate.method.name, certificate.id, certificate.digest())
    steps = (Parent(*named, certificate.steps), step)
    guarantee = fold(steps, stated.unit, stated.delta)
    if guarantee != stated:
        raise Refused("the release guarantees something else than its steps give. Verify it first.")
    return Plan(NAME, steps, guarantee, numbers_of(certificate.claims), partial(_output, steps))


def read_source(path: Path, policy: Policy) -> SourceRelease:
    """Return a release, or refuse one that is not what its certificate says, or not of this policy."""
    certificate = read_certificate(path)
    folder, tables = path if path.is_dir() else path.parent, tables_of(certificate)
    if _made_by(certificate) not in PARENTS or len(tables) != 1:
        raise InvalidParameter("only released rows and released counts can be made coarser, and this is neither.")
    if certificate.policy_hash != policy.hash:
        raise InvalidParameter(
            "this is not the policy of that release: its hash differs. Give the policy as it was then."
        )
    file = folder / tables[0].name
    if not file.is_file():
        raise InvalidParameter(f"{file} is not there: a coarser table is made from the released file itself.")
    if file_of(file) != tables[0]:
        raise Refused(f"{file} is not the file that its certificate names: its SHA-256 differs. Verify it first.")
    wrong = verify(folder / CERTIFICATE if path.is_dir() else path).failure
    if wrong is not None:
        raise Refused(
            f"this release does not verify, so nothing is made from it ({wrong.about}: {wrong.why}). Nothing was read "
            "from rows or charged. Run incrowd verify on it, and take the release as it was published."
        )
    return SourceRelease(certificate, file)


def _made_by(certificate: Certificate) -> str:
    """Return the method of the release that all of a table came from."""
    first = certificate.steps[0]
    return first.charged.method if isinstance(first, Parent) else certificate.method.name


def _columns(source: SourceRelease, policy: Policy, request: Coarser) -> tuple[list[str], dict[str, tuple[int, int]]]:
    """Return the remaining columns, and the released and the coarser level of each."""
    released, levels = list(source.certificate.schema.released), source.levels
    unknown_names = [name for name in (*request.columns, *request.levels) if name not in released]
    if unknown_names:
        raise InvalidParameter(f"{unknown_names[0]!r} was not released; there are {', '.join(released)}.")
    columns = [name for name in released if not request.columns or name in request.columns]
    idle = [name for name in request.levels if name not in columns]
    if idle:
        raise InvalidParameter(f"a level is given for {idle[0]!r}, which --columns does not name.")
    rise = {name: (levels[name], request.levels.get(name, levels[name])) for name in columns}
    for name, (low, high) in rise.items():
        if not low <= high <= policy.schema[name].hierarchy.height:
            raise InvalidParameter(
                f"{name!r} was released at level {low} and can rise to {policy.schema[name].hierarchy.height}, not to "
                f"{high}: a finer table would need rows."
            )
    if columns == released and all(low == high for low, high in rise.values()):
        raise InvalidParameter("nothing would change: give --levels above the released ones, or fewer --columns.")
    return columns, rise


def _output(steps: tuple[Step, ...], table: pa.Table, coins: Coins | None = None) -> Outcome:  # noqa: ARG001
    """Return the coarser table: counts added up, or rows in the order of their values; no randomness is drawn."""
    for place, name in enumerate(table.column_names):
        table = table.set_column(place, name, [_raise_column(steps, name, table[name].combine_chunks())])
    if is_counted(steps):
        names = [name for name in table.column_names if name != COUNT]
        summed = table.group_by(names).aggregate([(COUNT, "sum")]).rename_columns([*names, COUNT])
        return Histogram(summed.sort_by([(name, "ascending") for name in names]))
    schema = Schema(tuple(Column(field.name, type=_type(field.type)) for field in table.schema))
    return Microdata(LocalEngine().count(open_source(table), Cells.of(schema, {})), _weight(root(steps)))


def _weight(steps: tuple[Step, ...]) -> Fraction | None:
    """Return the weight of every row, where the release has weights."""
    rates = [1 / step.rate for step in steps if isinstance(step, SecretSample)]
    return rates[0] if any(isinstance(step, Order) and step.weights for step in steps) else None


def _raise_column(steps: tuple[Step, ...], name: str, column: pa.Array) -> pa.Array:
    """Return a column with its labels replaced, if they rise, and every text plain."""
    risen_to = {risen.column: risen.labels for step in steps if isinstance(step, Coarsen) for risen in step.columns}
    labels = risen_to.get(name)
    if labels is not None:
        maps = dict(labels)
        return pa.array([maps[label] for label in text_of(column).to_pylist()], pa.string())
    return text_of(column) if pa.types.is_dictionary(column.type) else column


def _type(stored: pa.DataType) -> Type:
    kinds = {Type.INTEGER: pa.types.is_integer, Type.DATE: pa.types.is_date, Type.BOOLEAN: pa.types.is_boolean}
    decimal = pa.types.is_floating(stored) or pa.types.is_decimal(stored)
    return next((kind for kind, fits in kinds.items() if fits(stored)), Type.DECIMAL if decimal else Type.TEXT)


def _pairs(labels: Risen) -> tuple[tuple[str | None, str | None], ...]:
    return tuple((low, labels[low]) for low in sorted(labels, key=lambda label: (label is None, label or "")))


def _published(source: SourceRelease, plan: Plan, policy: Policy, table: pa.Table, out: Path) -> Released:
    """Write file, report and certificate, compute the file a second time from the parent's, and let all appear."""
    output, parent = _output(plan.steps, table), source.certificate
    columns = replace(
        parent.schema, released=tuple(name for name in output.schema.names if name in parent.schema.released)
    )
    certificate = derive_certificate(parent, PlanFacts.of(plan, policy.hash), output, columns)
    with staged(Folders(out)) as stage:
        ending = source.file.suffix.removeprefix(".")
        destination = Destination(out, f"{MARK}.{ending}" if is_guarded(source.file) else ending)
        try:
            certificate = write_files(certificate, output, stage.public, destination)
        except GuaranteeBroken:
            raise GuaranteeBroken(_FAULT.format("it does not keep the guarantee of the release")) from None
        files = tuple(stage.public / file.name for file in tables_of(certificate))
        problem = compare_parent(Certified(certificate, files), Certified(parent, (source.file,)))
        if problem is not None:
            raise GuaranteeBroken(_FAULT.format(problem.text))
    return Released(output, certificate)
