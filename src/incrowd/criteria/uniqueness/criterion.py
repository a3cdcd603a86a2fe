"""Population uniqueness: a criterion about all released classes together, by an estimate from the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim, Precondition, Status
from incrowd.core.rounding import Number, exact
from incrowd.core.terms import Assumption, Theorem
from incrowd.criteria.criterion import Mask, Monotone
from incrowd.criteria.demand import COUNTED, HOMOGENEITY, Form, TableDemand
from incrowd.criteria.measure import Bound, Meaning, Measured
from incrowd.criteria.partition import Partition
from incrowd.criteria.recount import Recount, WrittenTable, at_most
from incrowd.criteria.uniqueness import recount as slow
from incrowd.criteria.uniqueness.models import fit_pitman, snb_uniques
from incrowd.errors import InvalidParameter

Estimator = Literal["zayatz", "pitman", "snb", "dankar"]
"""How the number of unique people is estimated: by one of three models, or by the rule that chooses among them."""

_SMALL = 0.1
"""Up to this share of the population, Dankar's rule trusts Pitman's model."""
_SAMPLE = Precondition(
    Assumption("simple-random-sample", "the rows are a simple random sample of so many people"), Status.ASSUMED
)
_TOO_MANY = "there are more rows than people from whom they could come"
_WORDS = "a share of {} of the rows is unique by the estimate, its limit is {}"


@dataclass(frozen=True, kw_only=True)
class UniquenessClaim(Claim):
    """Few rows are alone in the population."""

    kind = "population uniqueness"
    sentence = "At most this share of the published rows is unique in the population, by an estimate."
    rank: ClassVar[int] = 42

    limit: Fraction
    among: int
    estimate: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class PopulationUniqueness(TableDemand):
    """The estimated share of released rows that are unique in a population of given size is at most a limit.

    `estimator` names the model, see `unique_share`.  No conclusion for coarser nodes holds.

    Source: Zayatz 1991; Hoshino 2001; Chen & Keller-McNulty 1998; Dankar, El Emam, Neisa & Roffey 2012.

    >>> PopulationUniqueness("0.01", 1000).met(Partition(np.array([1, 2, 7]))).tolist()
    [False, True, True]
    """

    keys: ClassVar[tuple[str, ...]] = ("unique", "unique among", "unique by")
    claimed: ClassVar[type[Claim]] = UniquenessClaim
    theorem: ClassVar[Theorem] = Theorem(
        "uniqueness-estimated",
        "Zayatz 1991, Hoshino 2001, Chen & Keller-McNulty 1998 and, between them, Dankar et al. "
        "2012: the share of released rows that are unique among so many people, by the estimate "
        "that is named",
    )

    meaning: ClassVar[Meaning] = Meaning(
        "population uniqueness",
        "the estimated share of rows that are alone with their quasi-identifiers in the population",
        Bound.AT_MOST,
    )

    limit: Number
    people: int
    estimator: Estimator = "zayatz"

    def __post_init__(self) -> None:
        if self.estimator not in get_args(Estimator):
            raise InvalidParameter(f"the estimator of unique people must be one of {', '.join(get_args(Estimator))}.")
        if not 0 <= exact(self.limit, "the share of unique people") <= 1:
            raise InvalidParameter("the share of unique people must lie between 0 and 1.")
        if self.people < 1:
            raise InvalidParameter("a population needs at least one person.")

    monotone = Monotone.NEVER

    whole = True

    def retained(self, partition: Partition, among: Mask) -> Mask:
        """Return all classes, or those of more than one row, which have no unique rows."""
        share = unique_share(partition.sizes[among], self.people, self.estimator)
        if share <= float(exact(self.limit, "the share of unique people")):
            return among
        return np.asarray(among & (partition.sizes > 1))

    def measures(self, partition: Partition) -> Iterator[Measured]:
        """Return the estimate, and how many rows are in classes that would have to go."""
        share = unique_share(partition.sizes, self.people, self.estimator) if len(partition) else None
        short = int(partition.sizes[~self.met(partition)].sum())
        yield Measured(self.meaning, float(exact(self.limit)), share, short)

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """The share, the people, and the model."""
        return str(exact(self.limit)), self.people, self.estimator

    def claim(self, form: Form) -> UniquenessClaim:
        """Claim it of all classes together, if the rows are a sample."""
        return UniquenessClaim(
            limit=exact(self.limit),
            among=self.people,
            estimate=self.estimator,
            theorem=(self.theorem,),
            **form.basis((*COUNTED, _SAMPLE), (HOMOGENEITY,)),
        )

    def recount(self, table: WrittenTable) -> Recount:
        """Estimate again, by another way to the same number."""
        sizes = table.sizes()
        share = slow.unique_share(sizes, self.people, self.estimator) if sizes else None
        if sizes and share is None:
            return Recount(_TOO_MANY, holds=False)
        return at_most(share, exact(self.limit), _WORDS)


def unique_share(sizes: NDArray[np.int64], people: int, estimator: Estimator = "zayatz") -> float:
    """Return an estimate of the share of the rows that are unique in a population of `people` people.

    Precondition: the rows are a simple random sample of the population.

    Source: as `estimate_uniques` says.

    >>> round(unique_share(np.array([1, 1, 2]), 4), 9)
    0.5
    """
    return estimate_uniques(sizes, people, estimator)[0]


def estimate_uniques(sizes: NDArray[np.int64], people: int, estimator: Estimator) -> tuple[float, Estimator]:
    """Return the estimated share of unique people, and the model that it comes from.

    Where the likelihood of Pitman's model has no maximum, or the equations of the slide negative binomial model (snb)
    have no solution, Zayatz's estimate replaces it.  Dankar's rule uses Pitman's model for samples of up to a tenth of
    the population; for larger ones the smaller of snb and Zayatz.  If the sample is the population, or no row is
    unique, nothing is estimated: the share is known.

    Source: Dankar, El Emam, Neisa & Roffey 2012, "Estimating the re-identification risk of clinical data sets".

    >>> estimate_uniques(np.array([1, 1, 1, 1]), 100, "dankar")[1]       # all alone: Pitman's model has no estimate
    'zayatz'
    """
    rows, alone = int(sizes.sum()), int((sizes == 1).sum())
    if rows > people:
        raise InvalidParameter(f"a sample of {rows} rows does not fit in a population of {people}: give its true size.")
    if not alone or rows == people:
        return alone / max(1, rows), estimator
    zayatz = _zayatz(sizes, people)
    if estimator == "pitman" or (estimator == "dankar" and rows <= _SMALL * people):
        pitman = fit_pitman(sizes)
        return (zayatz, "zayatz") if pitman is None else (min(1.0, pitman.uniques(people) / people), "pitman")
    snb = None if estimator == "zayatz" else snb_uniques(sizes, people)
    if snb is None or (estimator == "dankar" and zayatz < snb / people):
        return zayatz, "zayatz"
    return snb / people, "snb"


def _zayatz(sizes: NDArray[np.int64], people: int) -> float:
    """Return Zayatz's estimate, for rows of which some are unique.

    A class of i people leaves exactly one row in a sample of n of N with probability i·C(N−i, n−1)/C(N, n).  With s_i
    the share of classes of size i in the sample, standing for their share in the population, Bayes' rule gives the
    probability that a class of one row is a class of one person; times the share of rows that are alone.

    Source: Zayatz 1991.
    """
    rows = int(sizes.sum())
    distinct_sizes, times = np.unique(sizes, return_counts=True)
    logs = [
        _alone(int(size), rows, people) + math.log(number) for size, number in zip(distinct_sizes, times, strict=True)
    ]
    highest = max(logs)
    return math.exp(logs[0] - highest) / sum(math.exp(log - highest) for log in logs) * int(times[0]) / rows


def _alone(size: int, rows: int, people: int) -> float:
    """Return, up to a constant, the log of the probability that a class of `size` people leaves one row."""
    if people - size < rows - 1:
        return -math.inf
    ways = math.lgamma(people - size + 1) - math.lgamma(rows) - math.lgamma(people - size - rows + 2)
    return math.log(size) + ways
