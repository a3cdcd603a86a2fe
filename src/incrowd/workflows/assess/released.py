"""Released: the tables of a release, read from its files, with the levels in its certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from incrowd.core.certificate import Certificate
from incrowd.core.claims.claim import Claim
from incrowd.core.displacement import Displacement
from incrowd.core.steps.around import ConsentGate, HoldOut, gate_of
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.step import Step, walk
from incrowd.core.table import Rows
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.outcome import Outcome, ReleasedTuples
from incrowd.verifier.files import CERTIFICATE, tables_of
from incrowd.verifier.judge import statement_of
from incrowd.workflows.attack.publication import masks_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.rows import open_release
from incrowd.workflows.registry import check_of, linked_method_names

Levels = Mapping[str, tuple[int, ...]]
"""The known levels of columns; labels are searched there first."""


@dataclass(frozen=True)
class ReadRelease:
    """The tables of a release, the levels of their columns, and the method and policy if known."""

    tables: tuple[ReleasedTuples, ...]
    levels: Levels = field(default_factory=dict)
    method: str | None = None
    policy: str | None = None
    name: str = "release"
    claims: tuple[Claim, ...] = ()
    whole: bool = True
    """Whether all rows of the data took part: none was held out."""
    gate: ConsentGate | None = None
    """The people who consented, where the release checked consent."""
    masks: Mapping[str, Displacement] = field(default_factory=dict)
    """The columns whose values were moved, and how far, as the published steps say."""

    @classmethod
    def of(cls, rows: Rows, levels: Levels | None = None) -> ReadRelease:
        """Return rows as a release without a certificate: each row is a person's."""
        names = list(rows.names)
        batches = list(rows.batches(names))
        table = (
            pa.Table.from_batches(batches) if batches else pa.table({name: pa.array([], pa.string()) for name in names})
        )
        return cls((ReleasedTuples.of(table, faithful=True),), levels or {})


def read_release(release: Path) -> ReadRelease:
    """Read a release: its folder, or a file; a file that a certificate in its folder names is read with it."""
    folder = release if release.is_dir() else release.parent
    if not (folder / CERTIFICATE).is_file():
        return ReadRelease.of(open_release(release))
    certificate = read_certificate(folder)
    named = [file.name for file in tables_of(certificate)]
    if not release.is_dir() and release.name not in (*named, CERTIFICATE):
        return ReadRelease.of(open_release(release))
    return released_of(certificate, folder)


def released_of(certificate: Certificate, folder: Path) -> ReadRelease:
    """Read the files that a certificate names, which lie in one folder."""
    if certificate.method.name in linked_method_names():
        raise InvalidParameter(
            "these are linked tables, which are compared as a whole: give their folder to incrowd assess."
        )
    files = tuple(folder / Path(file.name).name for file in tables_of(certificate))
    if not files or not all(file.is_file() for file in files):
        raise InvalidParameter(f"the published files are not beside the certificate in {folder}: put them there.")
    output = check_of(certificate.method.name).reopen(statement_of(certificate), files)
    if not isinstance(output, Outcome):
        raise InvalidParameter("this release has no table that could be compared with its data: see its certificate.")
    tables = output.released_tuples()
    whole = not any(isinstance(step, HoldOut) for step in certificate.steps)
    about = (certificate.method.name, certificate.policy_hash, folder.name, certificate.claims)
    return ReadRelease(
        tables, levels_of(certificate), *about, whole, gate_of(certificate.steps), masks_of(certificate.steps)
    )


def levels_of(certificate: Certificate) -> Levels:
    """Return the levels in the steps, and those in the evidence, where rows chose them."""
    levels = levels_of_steps(certificate.steps)
    chosen = certificate.evidence.get("levels", {})
    if isinstance(chosen, Mapping):
        levels |= {
            str(name): tuple(level) if isinstance(level, list | tuple) else (int(level),)
            for name, level in chosen.items()
        }
    return levels


def levels_of_steps(steps: tuple[Step, ...]) -> dict[str, tuple[int, ...]]:
    """Return the levels that steps recode columns to."""
    recodings = [column for step in walk(steps) if isinstance(step, Recode) for column in step.columns]
    return {column.column: (column.level,) for column in recodings if column.highest is None}
