"""Learn a model under a policy, into a folder or in memory; predict with a model for the rows of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from incrowd.core.table import SourceOptions
from incrowd.engines.columns import require
from incrowd.engines.readers.sources import open_source
from incrowd.engines.writers.sinks import write_table
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.models import LearnedModel
from incrowd.workflows.policy.policy import Policy, PolicyLike, load_policy
from incrowd.workflows.registry import LEARNING
from incrowd.workflows.release.deliver import Destination, PublishedRelease, Released
from incrowd.workflows.release.prepare import load_for
from incrowd.workflows.release.tables import ReleaseTerms, release_in_memory, release_to

if TYPE_CHECKING:
    from incrowd.core.table import Progress

PRIVATE = "predictions about rows that are private are as private as these rows: the file is yours, not a release"


@dataclass(frozen=True)
class Learned(Released):
    """A model in memory with its certificate."""

    @property
    def model(self) -> LearnedModel:
        """The model: its predictions cost nothing."""
        model: LearnedModel = self.result.model
        return model


def require_learning(policy: Policy, target: str | None = None) -> None:
    """Refuse a policy that releases no model, or one that predicts another column."""
    method = policy.plan.method
    if method not in LEARNING:
        raise InvalidParameter(
            f"a model is learned by the methods {', '.join(LEARNING)}, and the policy says {method!r}. Write such a "
            "method with its target_column under release:. Nothing was charged."
        )
    declared = getattr(policy.method, "target_column", None)
    if target is not None and target != declared:
        raise InvalidParameter(
            f"the policy's model predicts {declared or 'no column'}, not {target}: write target_column: {target} under "
            "release: of a classifier or regressor. Nothing was charged."
        )


def learn_model(data: object, policy: PolicyLike, *, searched: bool = False) -> Learned:
    """Learn a model from a file or a frame under a policy, in memory: charged before a row is read.

    `searched` says that a search chose the policy's parameters by scores of these rows: the certificate then states
    that the choice has no ε.
    """
    read = load_for(policy, data)
    require_learning(read)
    return Learned(*release_in_memory(data, read, terms=ReleaseTerms(searched=searched)))


def learn_to(
    data: object, policy: PolicyLike, folder: Path, target: str | None = None, progress: Progress | None = None
) -> PublishedRelease:
    """Learn a model into a folder: the model, its numbers as a table, report and certificate appear together."""
    read = load_policy(policy)
    require_learning(read, target)
    return release_to(data, read, Destination(folder), progress)


def predict(model: str | Path, data: object, options: SourceOptions | None = None) -> pa.RecordBatchReader:
    """Return a model's prediction for each row of a file or a frame, in the order of the rows, batch by batch."""
    learned = LearnedModel.load(model)
    names = [column.name for column in learned.columns]
    types = {column.name: column.type for column in learned.columns}
    source = open_source(data, options or SourceOptions(types=types))
    require(source.names, names)
    empty = learned.predicted(pa.table({name: pa.array([], pa.string()) for name in names}))
    return pa.RecordBatchReader.from_batches(empty.schema, _predictions(learned, source.batches(names), names))


def predict_to(model: str | Path, data: object, file: Path, options: SourceOptions | None = None) -> int:
    """Write a model's prediction for each row into a new file, and return the number of rows."""
    if file.exists():
        raise InvalidParameter(f"{file} exists already, and nothing is overwritten: name a new file.")
    reader, rows = predict(model, data, options), 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in reader:
            rows += len(batch)
            yield batch

    write_table(pa.RecordBatchReader.from_batches(reader.schema, counted()), file)
    return rows


def _predictions(
    model: LearnedModel, batches: Iterator[pa.RecordBatch], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from model.predicted(pa.Table.from_batches([batch]).select(list(names))).to_batches()
