"""Calculators, as `incrowd.bounds`: give all but one of the parameters of a guarantee, get the missing one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from incrowd.core.rounding import Number
from incrowd.core.unit import Adjacency
from incrowd.workflows.bounds.amplification import Amplification, AmplifyQuestion, solve_amplification
from incrowd.workflows.bounds.crowd import CrowdBound, CrowdQuestion
from incrowd.workflows.bounds.crowd import solve as solve_crowd
from incrowd.workflows.bounds.safe import SafeBound, SafeQuestion
from incrowd.workflows.bounds.safe import solve as solve_safe

if TYPE_CHECKING:
    from incrowd.core.guarantee import Guarantee
    from incrowd.workflows.bounds.composition import Composition

__all__ = ["amplify", "compose", "crowd", "safe"]


class SafeGiven(TypedDict, total=False):
    """What `safe` takes: three of the first four; `replace` protects what a row says, not whether it is there."""

    k: int
    rate: Number
    epsilon: Number
    delta: Number
    replace: bool
    rows_per_person: int


class CrowdGiven(TypedDict, total=False):
    """What `crowd` takes; with one of the last three the sample is biased, and `rate` is the lowest regular rate."""

    k: int
    rate: Number
    crowd_epsilon: Number
    epsilon: Number
    delta: Number
    high_rate: Number
    irregular: int
    max_rate: Number


class AmplifyGiven(TypedDict, total=False):
    """What `amplify` takes: two of the first three; the last two are 0 if they are not given."""

    rate: Number
    epsilon: Number
    sampled_epsilon: Number
    delta: Number
    sampled_delta: Number


def safe(**given: Unpack[SafeGiven]) -> SafeBound:
    """Say what sampling in secret, recoding, and publishing what occurs at least k times guarantees.

    >>> safe(k=20, rate=0.1, epsilon=0.5).delta < 3e-11
    True
    """
    plain: dict[str, Any] = dict(given)
    adjacency = Adjacency.REPLACE if plain.pop("replace", False) else Adjacency.ADD_REMOVE
    return solve_safe(SafeQuestion(**plain, adjacency=adjacency))


def crowd(**given: Unpack[CrowdGiven]) -> CrowdBound:
    """Say what a (k, ε)-crowd-blending mechanism guarantees after a secret sample.

    >>> round(crowd(k=20, rate=0.1).epsilon, 4)
    0.1054
    """
    return solve_crowd(CrowdQuestion(**given))


def amplify(**given: Unpack[AmplifyGiven]) -> Amplification:
    """Say what a secret Poisson sample saves a differentially private mechanism.

    >>> round(amplify(rate=0.1, epsilon=1).sampled_epsilon, 4)
    0.1586
    """
    return solve_amplification(AmplifyQuestion(**given))


def compose(
    guarantees: Iterable[Guarantee | str | Path], *, epsilon: Number | None = None, delta: Number | None = None
) -> Composition:
    """Say what several releases about the same rows guarantee together, all of them fixed before the first one.

    A guarantee is a `Guarantee`, such as `certificate.guarantee` or `plan(policy).guarantee`, or the file of a
    certificate.
    """
    from incrowd.workflows.bounds.composition import solve_composition
    from incrowd.workflows.verify.verify import read_certificate

    read = (read_certificate(Path(each)).guarantee if isinstance(each, str | Path) else each for each in guarantees)
    return solve_composition(tuple(read), epsilon, delta)
