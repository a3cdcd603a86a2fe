"""Coarsen: a coarser table from a released one; it reads no rows and costs nothing."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa

from incrowd import __version__
from incrowd.core.cells import Cells
from incrowd.core.certificate import NONCE_BYTES, Certificate, release_id
from incrowd.core.domain import Type
from incrowd.core.schema import Column, Schema
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.engines.writers.sinks import Folders, publish, write_table
from incrowd.errors import InvalidParameter, Refused
from incrowd.methods.histograms.partition import text_of
from incrowd.methods.outcomes.histogram import COUNT, Histogram
from incrowd.methods.outcomes.microdata import Microdata
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.coarsening.labels import Risen, risen
from incrowd.workflows.forms.checks import steps_of
from incrowd.workflows.forms.coarsened.again import check_again
from incrowd.workflows.forms.coarsened.form import is_histogram
from incrowd.workflows.forms.coarsened.parent import COARSEN, carried, charged, step_of
from incrowd.workflows.forms.histogram.contents import read
from incrowd.workflows.policy import Policy
from incrowd.workflows.recount import require_written
from incrowd.workflows.report import public_report
from incrowd.workflows.result import Released
from incrowd.workflows.verify import read_certificate

_ENDINGS = ("order", "order by chosen levels", "publish counts")


@dataclass(frozen=True)
class Coarser:
    """What is wanted: columns at higher levels, and only some of the columns (none named: all of them)."""

    levels: Mapping[str, int] = field(default_factory=dict)
    columns: tuple[str, ...] = ()


def coarsen(parent: Path, policy: Policy, wanted: Coarser, out: Path) -> Released:
    """Write a coarser table of a release, with a certificate of its own that names and holds its parent's.

    Nothing is charged: whatever is computed from what was released, by a rule that looks at nothing else, keeps every
    promise (post-processing), and a class of the coarser table is a union of classes.  The same table counted from rows
    would be a second release, which crowds do not allow.
    """
    certificate = read_certificate(parent)
    file = _checked(certificate, parent if parent.is_dir() else parent.parent, policy)
    columns, rise = _columns(certificate, policy, wanted)
    table = read(file).select([*columns, *([COUNT] if is_histogram(certificate) else [])])
    maps = {
        name: risen(policy.schema[name], low, high, _met(table[name]))
        for name, (low, high) in rise.items()
        if low < high
    }
    outcome = _outcome(certificate, _recoded(table, maps))
    steps = [
        {"column": name, "level": rise[name][1], **({"labels": _pairs(maps[name])} if name in maps else {})}
        for name in columns
    ]
    step = {"step": COARSEN, "by": "released values", "columns": steps, "of": certificate.to_json()}
    return _published(certificate, step, outcome, (file, out))


def levels_of(certificate: Certificate) -> dict[str, int]:
    """Return the level at which each column was released, as the steps tell."""
    step = step_of(certificate)
    told = step["columns"] if step is not None else steps_of(certificate)["recode"]["columns"]
    chosen = certificate.evidence.get("levels", {})
    return {str(column["column"]): int(chosen.get(column["column"], column["level"])) for column in told}


def _checked(certificate: Certificate, folder: Path, policy: Policy) -> Path:
    """Return the released file, or refuse one that is not what its certificate says, or not of this policy."""
    if charged(certificate).chain[-1].get("step") not in _ENDINGS or len(certificate.outputs) != 1:
        raise InvalidParameter("only released rows and released counts can be made coarser, and this is neither.")
    if certificate.policy_hash != policy.hash:
        raise InvalidParameter(
            "this is not the policy of that release: its hash differs. Give the policy as it was then."
        )
    output = certificate.outputs[0]
    file = folder / str(output["name"])
    if not file.is_file():
        raise InvalidParameter(f"{file} is not there: a coarser table is made from the released file itself.")
    with file.open("rb") as opened:
        if hashlib.file_digest(opened, "sha256").hexdigest() != output["sha256"]:
            raise Refused(f"{file} is not the file that its certificate names: its SHA-256 differs. Verify it first.")
    return file


def _columns(certificate: Certificate, policy: Policy, wanted: Coarser) -> tuple[list[str], dict[str, tuple[int, int]]]:
    """Return the columns that are left, and from which level each rises to which."""
    released, levels = list(certificate.schema["released"]), levels_of(certificate)
    strange = [name for name in (*wanted.columns, *wanted.levels) if name not in released]
    if strange:
        raise InvalidParameter(f"{strange[0]!r} was not released; there are {', '.join(released)}.")
    columns = [name for name in released if not wanted.columns or name in wanted.columns]
    idle = [name for name in wanted.levels if name not in columns]
    if idle:
        raise InvalidParameter(f"a level is given for {idle[0]!r}, which --columns leaves out.")
    rise = {name: (levels[name], wanted.levels.get(name, levels[name])) for name in columns}
    for name, (low, high) in rise.items():
        if not low <= high <= policy.schema[name].hierarchy.height:
            raise InvalidParameter(
                f"{name!r} was released at level {low} and can rise to {policy.schema[name].hierarchy.height}, not to "
                f"{high}: a finer table would need rows."
            )
    if columns == released and all(low == high for low, high in rise.values()):
        raise InvalidParameter("nothing would change: give --levels above the released ones, or fewer --columns.")
    return columns, rise


def _met(column: pa.ChunkedArray) -> list[str | None]:
    labels: list[str | None] = text_of(column.unique()).to_pylist()
    return labels


def _recoded(table: pa.Table, maps: Mapping[str, Risen]) -> pa.Table:
    """Return the table with the labels of some columns replaced, and every text plain."""
    for place, name in enumerate(table.column_names):
        column = table[name].combine_chunks()
        if name in maps:
            column = pa.array([maps[name][label] for label in text_of(column).to_pylist()], pa.string())
        elif pa.types.is_dictionary(column.type):
            column = text_of(column)
        table = table.set_column(place, name, [column])
    return table


def _outcome(certificate: Certificate, table: pa.Table) -> Outcome:
    """Return the coarser table: counts added up, or rows in the order of their values."""
    if is_histogram(certificate):
        names = [name for name in table.column_names if name != COUNT]
        summed = table.group_by(names).aggregate([(COUNT, "sum")]).rename_columns([*names, COUNT])
        return Histogram(summed.sort_by([(name, "ascending") for name in names]))
    schema = Schema(tuple(Column(field.name, type=_type(field.type)) for field in table.schema))
    rate = Fraction(str(steps_of(charged(certificate))["sample"]["rate"]))
    weighted = charged(certificate).chain[-1].get("weights") is True
    return Microdata(LocalEngine().count(open_source(table), Cells.of(schema, {})), 1 / rate if weighted else None)


def _type(stored: pa.DataType) -> Type:
    kinds = {Type.INTEGER: pa.types.is_integer, Type.DATE: pa.types.is_date, Type.BOOLEAN: pa.types.is_boolean}
    decimal = pa.types.is_floating(stored) or pa.types.is_decimal(stored)
    return next((kind for kind, fits in kinds.items() if fits(stored)), Type.DECIMAL if decimal else Type.TEXT)


def _pairs(labels: Risen) -> list[list[str | None]]:
    return [[low, labels[low]] for low in sorted(labels, key=lambda label: (label is None, label or ""))]


def _published(parent: Certificate, step: Mapping[str, Any], outcome: Outcome, places: tuple[Path, Path]) -> Released:
    """Write file, certificate and report, compute the file a second time from the parent's, and let all appear."""
    parent_file, out = places
    written: list[Certificate] = []
    name = parent_file.name

    def write(stage: Folders) -> None:
        write_table(outcome.reader(), stage.public / name)
        content = (stage.public / name).read_bytes()
        output = {"name": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        certificate = _certificate(parent, step, outcome, output)
        (stage.public / "certificate.json").write_text(certificate.to_text(), encoding="utf-8")
        (stage.public / "report.html").write_text(public_report(certificate, outcome), encoding="utf-8")
        written.append(certificate)

    def check(stage: Folders) -> None:
        require_written(written[0], stage.public / name)
        problem = check_again(written[0], stage.public / name, parent_file)
        if problem is not None:
            raise Refused(f"the coarser table was not made: {problem.text}. Please report this.")

    publish(Folders(out), write, check)
    return Released(outcome, written[0])


def _certificate(
    parent: Certificate, step: Mapping[str, Any], outcome: Outcome, output: Mapping[str, Any]
) -> Certificate:
    columns = [str(column["column"]) for column in step["columns"]]
    claims, chain = carried(parent.claims, columns), (*parent.chain, step)
    private = Decimal(str(parent.accounting["spent"]["epsilon"])).is_finite()
    return replace(
        parent,
        id=release_id(secrets.token_bytes(NONCE_BYTES), parent.policy_hash, parent.guarantee, (claims, chain)),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        tool=f"incrowd {__version__}",
        claims=claims,
        chain=chain,
        outputs=(output,),
        schema={**parent.schema, "released": columns},
        evidence=outcome.evidence(parent.guarantee.unit, private=private),
        approvals=(),
        signature=None,
    )
