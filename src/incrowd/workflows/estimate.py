"""Frequencies: how often categories occurred before they were changed at random, from what was published alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.pram.channel import Channel, Matrix, Randomize, invertible
from incrowd.methods.perturbation.shared.steps import maskings
from incrowd.verifier.files import placed
from incrowd.workflows.certificates import read_certificate

if TYPE_CHECKING:
    from incrowd.core.certificate import Certificate

_NORMAL = 1.959964  # the two-sided 95 % quantile of the normal law


@dataclass(frozen=True)
class FrequencyEstimate:
    """Estimated frequencies of categories before they were changed, with covariances over the coins."""

    counts: NDArray[np.float64]
    covariance: NDArray[np.float64]

    @cached_property
    def deviations(self) -> NDArray[np.float64]:
        """The standard deviation of each estimate."""
        return np.sqrt(np.maximum(0.0, np.diag(self.covariance)))


def estimate(matrix: Matrix, released: NDArray[np.int64]) -> FrequencyEstimate:
    """Return unbiased estimates of how often each category occurred, from how often each was released.

    T̂ = P⁻ᵀ T*, whose covariance is P⁻ᵀ [Σ_k T_k (diag p_k − p_k p_kᵀ)] P⁻¹, with the estimates in place of T.

    Source: Gouweleeuw, Kooiman, Willenborg & de Wolf 1998; the covariance is a plug-in estimate.

    >>> estimate(((0.75, 0.25), (0.25, 0.75)), np.array([60, 40])).counts.round(6).tolist()
    [70.0, 30.0]
    """
    probabilities = np.array([[float(entry) for entry in row] for row in matrix])
    if not invertible(matrix):
        raise InvalidParameter("this matrix cannot be inverted: the frequencies behind it cannot be estimated.")
    inverse = np.linalg.inv(probabilities)
    counts = inverse.T @ released.astype(np.float64)
    spread = sum(
        max(0.0, count) * (np.diag(row) - np.outer(row, row)) for count, row in zip(counts, probabilities, strict=True)
    )
    return FrequencyEstimate(np.asarray(counts, np.float64), inverse.T @ spread @ inverse)


@dataclass(frozen=True)
class Frequencies:
    """The categories of some columns together, how often each was published, and estimates of how often it occurred."""

    columns: tuple[str, ...]
    labels: tuple[tuple[str | None, ...], ...]
    released: NDArray[np.int64]
    estimate: FrequencyEstimate

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield for each category the estimate and an interval that holds what occurred in about 95 % of releases."""
        for place, label in enumerate(self.labels):
            value, spread = float(self.estimate.counts[place]), _NORMAL * float(self.estimate.deviations[place])
            low, high = (min(max(0.0, end), float(self.released.sum())) for end in (value - spread, value + spread))
            yield {
                "category": dict(zip(self.columns, label, strict=True)),
                "released": int(self.released[place]),
                "estimate": value,
                "low": low,
                "high": high,
            }

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, with the covariance of the estimates over the randomness."""
        return {
            "columns": list(self.columns),
            "frequencies": list(self.lines()),
            "covariance": self.estimate.covariance.tolist(),
        }


def estimate_frequencies(release: Path) -> tuple[Frequencies, ...]:
    """Estimate from the folder of a release how often each category occurred before it was changed at random."""
    folder = release if release.is_dir() else release.parent
    certificate = read_certificate(release)
    (file,) = placed(certificate, folder, None)
    return tuple(_frequencies(channel, file) for channel in _channels(certificate))


def _channels(certificate: Certificate) -> Iterator[Channel]:
    masks = tuple(maskings(certificate.steps))
    random = [step for step in masks if isinstance(step, Randomize)]
    if not random:
        raise InvalidParameter(
            "nothing in this release was changed at random by known probabilities: there is nothing to estimate."
        )
    if any(step.suppresses_rows for step in masks) or any(step.household is not None for step in random):
        raise InvalidParameter(
            "rows were suppressed, or households changed as one: the file does not show enough to estimate frequencies."
        )
    for step in random:
        others = {name for other in masks if other is not step for name in other.changes}
        for channel in step.channels:
            if others & set(channel.columns):
                raise InvalidParameter(
                    f"{channel.columns[0]!r} was changed by another step too: its frequencies cannot be estimated."
                )
            if channel.probabilities is not None:
                yield channel


def _frequencies(channel: Channel, file: Path) -> Frequencies:
    codes = []
    for batch in open_source(str(file)).batches(list(channel.columns)):
        code = np.zeros(len(batch), np.int64)
        for column, labels in zip(batch.columns, channel.labels, strict=True):
            plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            place = pc.index_in(pc.cast(plain, pa.string()), value_set=pa.array(labels, pa.string()))
            if place.null_count:
                raise InvalidParameter("the file shows values that its certificate does not name.")
            code = code * len(labels) + place.to_numpy(zero_copy_only=False)
        codes.append(code)
    released = np.bincount(np.concatenate([np.zeros(0, np.int64), *codes]), minlength=channel.size).astype(np.int64)
    matrix = channel.probabilities
    if matrix is None:
        raise InvalidParameter("the certificate does not hold the probabilities, so nothing can be estimated.")
    return Frequencies(channel.columns, tuple(product(*channel.labels)), released, estimate(matrix, released))
