"""The published table of a survey, read again; and what shuffling saves, summed up a second time."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim
from incrowd.core.codec import digest
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step
from incrowd.core.unit import Adjacency, Kind
from incrowd.methods.local.survey.output import COLUMNS, NONE, SurveyTable, rows_of
from incrowd.methods.local.survey.steps import CollectReports, LocalPrivacy, ShuffledPrivacy, ShuffleReports
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one

STEPS: tuple[type[Step], ...] = (CollectReports, ShuffleReports)
CLAIMS: tuple[type[Claim], ...] = (LocalPrivacy, ShuffledPrivacy)
ORDER = (one(CollectReports), maybe(ShuffleReports))
_TOLERANCE = 1 + 1e-6
_NEAR = 0.99
"""A claim's ε is at most 1 % larger than that of the batch, or its δ is: sums over rounded counts are this near."""
_FAR = 14.0
_MOST, _MOST_OF_RESPONSE = 1_000_000, 20_000
_DIGITS = 10
"""Counts keep so many binary digits: one more than those of whoever made the claim."""


def contradiction(statement: Statement) -> Problem | None:
    """Return that a column is said to be released, or that the unit is another one, or None."""
    if statement.released:
        return Problem("a survey releases no column of a table")
    unit = statement.basis.unit
    if unit.kind is not Kind.REPORT or unit.adjacency is not Adjacency.REPLACE:
        return Problem("local privacy is guaranteed to one report of one person, replaced")
    return None


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look whether the table holds the weights of the steps, and nothing else."""
    file, definition = files
    step = statement.basis.need(CollectReports)
    wrong = None if _read(file) == rows_of(step) else Problem("the table holds other weights than the steps")
    yield CheckOutcome("weights in the file", wrong, "they are those of the steps, whose ratios are at most e^epsilon")
    yield CheckOutcome("definition", _another(definition, step), "its digest is the one that reports and steps name")


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a table in memory against the steps."""
    rows = [row for batch in output.batches() for row in batch.to_pylist()]
    same = rows == rows_of(statement.basis.need(CollectReports))
    return None if same else Problem("the table holds other weights than the steps")


def reopen(statement: Statement, files: tuple[Path, ...]) -> SurveyTable:  # noqa: ARG001 - the shape of every check
    """Read the published table."""
    rows, text = _read(files[0]), files[1].read_text(encoding="utf-8")
    return SurveyTable(pa.table({name: pa.array([row[name] for row in rows], pa.string()) for name in COLUMNS}), text)


def _another(definition: Path, step: CollectReports) -> Problem | None:
    """Return that the published definition is not that of the steps: its digest, weights, scripts or ε are others."""
    public = json.loads(definition.read_text(encoding="utf-8"))
    weights = [
        {name: each.get(name) for name in COLUMNS[3:]} for asked in public["questions"] for each in asked["randomizers"]
    ]
    told = [{name: None if row[name] == NONE else row[name] for name in COLUMNS[3:]} for row in rows_of(step)]
    same = digest("incrowd survey 1", public) == step.survey and public["epsilon"] == str(step.epsilon)
    same = same and public.get("purpose") == step.purpose
    if same and weights == told and public["scripts"] == dict(step.scripts):
        return None
    return Problem("the published definition is not the one that the steps name")


def recompute(claim: Claim, basis: ClaimBasis) -> Problem | None:
    """Sum up δ of a shuffled batch again, by the counts of both kinds of clones, one by one."""
    if not isinstance(claim, ShuffledPrivacy):
        return None
    if claim.people > (_MOST if claim.values is None else _MOST_OF_RESPONSE):
        return Problem("a batch of so many people is not summed up again", undecided=True)
    ratio, epsilon = float(basis.need(CollectReports).ratio), float(claim.epsilon)

    def derived(at: float) -> float:
        if claim.values is None:
            return clones_delta(ratio, claim.people, at)
        return response_delta(ratio, claim.people, at, claim.values)

    if derived(epsilon) > float(claim.delta) * _TOLERANCE:
        return Problem(f"at its epsilon the batch has a delta of {derived(epsilon):.6g}, and the claim says less")
    if epsilon and derived(epsilon * _NEAR) <= float(claim.delta) * _NEAR:
        return Problem("its epsilon is larger than that of such a batch")
    return None


def clones_delta(ratio: float, people: int, epsilon: float) -> float:
    """Return E[((p − α) A − (α p − 1) B)⁺] / n, (A, B) multinomial(n; 1/(p+1), 1/(p+1)), summed over A and then B.

    >>> round(clones_delta(math.e, 100, 0.5) * 1e6, 4)
    1.7024
    """
    alpha, total = math.exp(epsilon), 0.0
    if alpha >= ratio:
        return 0.0
    ones, masses = _likely(people, 1.0 / (ratio + 1.0))
    for one_, mass in zip(ones, masses, strict=True):
        others, weights = _likely(people - int(one_), 1.0 / ratio)
        excess = (ratio - alpha) * one_ - (alpha * ratio - 1.0) * others
        total += mass * float(weights @ np.maximum(excess, 0.0))
    return float(total) / people


def response_delta(ratio: float, people: int, epsilon: float, values: int) -> float:
    """Return the same for randomized response over d values: ((p − 1)(A − α B) − (α − 1) S)⁺ / n, S silent reports.

    Its mean given S, divided by S, does not grow with S: S is rounded down to ten binary digits.
    """
    alpha, share, total = math.exp(epsilon), values / (ratio + values - 1.0), 0.0
    if alpha >= ratio:
        return 0.0
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, people + 1)))])
    for number, mass in _rounded(*_likely(people - 1, share)).items():
        ones, chances = _likely(number, 1.0 / values)
        over = (ratio - 1.0) * ones - (alpha - 1.0) * number
        ones, chances, over = ones[over > 0.0], chances[over > 0.0], over[over > 0.0]
        if len(ones):
            lost = (ratio - 1.0) * alpha
            others, weights = _others(number - ones, 1.0 / (values - 1.0), int(over.max() / lost), logs)
            excess = np.maximum(over[:, None] - lost * others[None, :], 0.0)
            total += mass * share * float(chances @ (weights * excess).sum(axis=1)) / number
    return float(total)


def _others(
    rest: NDArray[np.int64], chance: float, most: int, logs: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return numbers up to `most`, and how likely each binomial number takes them, by logarithms of factorials."""
    least = int(rest.min()) * chance
    low = max(0, math.floor(least - _FAR * math.sqrt(least) - _FAR))
    others = np.arange(low, max(low, most) + 1)
    left = rest[:, None] - others[None, :]
    log = logs[rest][:, None] - logs[np.minimum(others, len(logs) - 1)] - logs[np.maximum(left, 0)]
    mass = np.exp(log + others * math.log(chance) + left * math.log1p(-chance))
    return others, np.where(left >= 0, mass, 0.0)


def _rounded(others: NDArray[np.int64], masses: NDArray[np.float64]) -> dict[int, float]:
    """Return how likely each number of silent reports is, one more than that of others, after it was rounded down."""
    found: dict[int, float] = {}
    for other, mass in zip(others.tolist(), masses.tolist(), strict=True):
        spare = max(0, (other + 1).bit_length() - _DIGITS)
        number = (other + 1) >> spare << spare
        found[number] = found.get(number, 0.0) + mass
    return found


def _likely(number: int, chance: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the likely values of a binomial number with their chances, by logarithms of factorials."""
    from scipy.special import gammaln, xlog1py, xlogy

    spread = _FAR * math.sqrt(number * chance * (1.0 - chance)) + _FAR
    low, high = max(0, math.floor(number * chance - spread)), min(number, math.ceil(number * chance + spread))
    counts = np.arange(low, high + 1)
    log = gammaln(number + 1) - gammaln(counts + 1) - gammaln(number - counts + 1)
    return counts, np.exp(log + xlogy(counts, chance) + xlog1py(number - counts, -chance))


def _read(file: Path) -> list[dict[str, str]]:
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        rows: list[dict[str, str]] = pq.read_table(file).to_pylist()
        return rows
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text, delimiter="\t" if file.suffix == ".tsv" else ","))
