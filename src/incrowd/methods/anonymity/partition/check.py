"""The file of a table in privately chosen boxes: counted again as safe microdata is, and whom its proof protects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Anonymity, ApproximatePrivacy, Pseudonymity
from incrowd.core.plan import Output
from incrowd.core.schema import Role
from incrowd.core.statement import Statement
from incrowd.core.steps.choices import SuppressChosen
from incrowd.core.steps.rows import KeepRows, Recode
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import Step
from incrowd.core.unit import Adjacency
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.partition.steps import ArrangeBoxes, ChooseCuts
from incrowd.methods.anonymity.safe import check as safe
from incrowd.methods.outcomes.anonymized import Partitioned
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one
from incrowd.verifier.files import columns_of

STEPS: tuple[type[Step], ...] = (KeepRows, ChooseCuts, SecretSample, Recode, SuppressChosen, ArrangeBoxes)
CLAIMS: tuple[type[Claim], ...] = (ApproximatePrivacy, Anonymity, Pseudonymity)
ORDER = (maybe(KeepRows), one(ChooseCuts), one(SecretSample), one(Recode), one(SuppressChosen), one(ArrangeBoxes))


def contradiction(statement: Statement) -> Problem | None:
    """Return that other columns are recoded or cut than released, or that the cuts are proved for nobody here."""
    unit, cuts = statement.basis.unit, statement.basis.need(ChooseCuts)
    if unit.max_rows > 1 or unit.adjacency is not Adjacency.ADD_REMOVE:
        return Problem("it is proved for units of one row, added or removed, and for no others")
    if cuts.depth < 1 or not cuts.columns or cuts.columns != statement.of_role(Role.QUASI):
        return Problem("the columns that are cut are not the quasi-identifiers, each once and in their order")
    return safe.contradiction(statement)


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Count the file: its columns and its rarest tuple."""
    (file,) = files
    same = columns_of(file) == statement.released
    problem = None if same else Problem("the file's columns are not those that the certificate says are released")
    yield CheckOutcome("columns in the file", problem, "they are the released ones, and no others")
    yield safe.crowds(statement, smallest_class(file, statement.released))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Return that some tuple of an output in memory is rare, or None."""
    if not isinstance(output, Partitioned):
        return Problem("it is not a table in boxes")
    rare = len(output.counts) and int(output.counts.min()) < statement.basis.need(SuppressChosen).k
    return Problem("some tuple occurs too rarely") if rare else None


def reopen(statement: Statement, files: tuple[Path, ...]) -> Partitioned:
    """Count the published file, as anyone can; every column is text."""
    names = statement.released
    text = pa.schema([(name, pa.string()) for name in names])
    batches = [batch.cast(text) for batch in open_source(str(files[0])).batches(list(names))]
    table = pa.Table.from_batches(batches, schema=text)
    columns, codes = {}, []
    for name in names:
        encoded = table.column(name).combine_chunks().dictionary_encode()
        columns[name] = encoded.dictionary
        codes.append(encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False))
    return Partitioned.of(columns, codes, np.ones(len(table), np.int64))
