"""Released: what a release shows, read from its files as anyone can, with the levels its certificate tells of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pyarrow as pa

from incrowd.core.certificate import Certificate
from incrowd.core.claims.claim import Claim
from incrowd.core.steps.around import ConsentGate, HoldOut, gate_of
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.step import walk
from incrowd.core.table import Rows
from incrowd.errors import InvalidParameter
from incrowd.methods.outcomes.outcome import Outcome, ReleasedTuples
from incrowd.verifier.files import CERTIFICATE, tables_of
from incrowd.verifier.judge import statement_of
from incrowd.workflows.policy.rows import open_release
from incrowd.workflows.registry import check_of
from incrowd.workflows.verify.verify import read_certificate

Levels = Mapping[str, tuple[int, ...]]
"""At which levels a column may be, as far as that is told; a label is looked for there first."""


@dataclass(frozen=True)
class ReadRelease:
    """The tables of a release, at which levels their columns are, and the method and policy if these are known."""

    tables: tuple[ReleasedTuples, ...]
    levels: Levels = field(default_factory=dict)
    method: str | None = None
    policy: str | None = None
    name: str = "release"
    claims: tuple[Claim, ...] = ()
    whole: bool = True
    """Whether all rows of the data took part: none was held out."""
    gate: ConsentGate | None = None
    """Whose rows could take part, where the release asked for consent."""

    @classmethod
    def of(cls, rows: Rows, levels: Mapping[str, int] | None = None) -> ReadRelease:
        """Take rows as they are read for those of a release whose certificate is not here: each is somebody's."""
        names = list(rows.names)
        batches = list(rows.batches(names))
        table = (
            pa.Table.from_batches(batches) if batches else pa.table({name: pa.array([], pa.string()) for name in names})
        )
        told = {name: (level,) for name, level in (levels or {}).items()}
        return cls((ReleasedTuples.of(table, faithful=True),), told)


def read_release(release: Path) -> ReadRelease:
    """Read a release: its folder, or a file of it; beside a certificate that names it a file is read as that says."""
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
    files = tuple(folder / Path(file.name).name for file in tables_of(certificate))
    if not files or not all(file.is_file() for file in files):
        raise InvalidParameter(f"the published files are not beside the certificate in {folder}: put them there.")
    output = check_of(certificate.method.name).reopen(statement_of(certificate), files)
    if not hasattr(output, "shown"):
        raise InvalidParameter(
            "what was released here is no table that could be held against the rows it came from: see its certificate."
        )
    shown = cast("Outcome", output).shown()
    whole = not any(isinstance(step, HoldOut) for step in certificate.steps)
    method, policy = certificate.method.name, certificate.policy_hash
    return ReadRelease(
        shown,
        levels_of(certificate),
        method,
        policy,
        folder.name,
        certificate.claims,
        whole,
        gate_of(certificate.steps),
    )


def levels_of(certificate: Certificate) -> Levels:
    """Return the levels that the steps tell, and those that the evidence does, where rows chose them."""
    told: dict[str, tuple[int, ...]] = {}
    for step in walk(certificate.steps):
        if isinstance(step, Recode):
            told |= {each.column: (each.level,) for each in step.columns if each.highest is None}
    found = certificate.evidence.get("levels", {})
    if isinstance(found, Mapping):
        told |= {
            str(name): tuple(level) if isinstance(level, list | tuple) else (int(level),)
            for name, level in found.items()
        }
    return told
