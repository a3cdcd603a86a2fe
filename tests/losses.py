"""Hypothesis strategies for losses and guarantees."""

from fractions import Fraction

from hypothesis import strategies as st

from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import (
    Approximate,
    BestRun,
    Crowd,
    Gaussian,
    Grouped,
    Laplace,
    Loss,
    NoisyWhenSmall,
    Parallel,
    Profile,
    Pure,
    RobustlySampled,
    Sampled,
    Sequence,
    Syntactic,
    ZeroConcentrated,
    walk,
)
from incrowd.core.terms import Assumption, Theorem
from incrowd.core.unit import Adjacency, Kind, Unit

epsilons = st.fractions(min_value=0, max_value=10, max_denominator=1000)
deltas = st.fractions(min_value=0, max_value=1, max_denominator=10**9)
rates = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000), max_denominator=1000)
scales = st.fractions(min_value=Fraction(1, 10), max_value=1000, max_denominator=100)
names = st.one_of(st.none(), st.text(min_size=1, max_size=8))
theorems = st.sampled_from(["a", "b", "c d"]).map(lambda key: Theorem(f"test-{key}", f"theorem {key}"))
assumptions = st.sampled_from(["a", "b", "c d"]).map(lambda key: Assumption(f"test-{key}", f"assumption {key}"))
crowds = st.builds(Crowd, st.integers(1, 500), epsilons)


@st.composite
def biased(draw: st.DrawFn) -> RobustlySampled:
    low, high, top = sorted(draw(st.lists(rates, min_size=3, max_size=3)))
    return RobustlySampled(low, high, draw(st.integers(0, 5)), top, draw(crowds), draw(names))


@st.composite
def guaranteed(draw: st.DrawFn) -> Guarantee:
    """Return a guarantee; where a person has several rows, its loss groups at least so many."""
    loss, unit = draw(losses), draw(units)
    if unit.kind is Kind.NODE and any(isinstance(part, Parallel) for part in walk(loss)):
        unit = Unit()
    if unit.max_rows > 1:
        loss = Grouped(unit.max_rows + draw(st.integers(0, 3)), loss)
    delta = draw(st.fractions(min_value=0, max_value=Fraction(1, 2), max_denominator=10**9))
    because, assumes = draw(st.lists(theorems, max_size=2)), draw(st.frozensets(assumptions, max_size=3))
    return Guarantee(loss, unit, tuple(because), assumes, delta)


leaves: st.SearchStrategy[Loss] = st.one_of(
    st.builds(Pure, epsilons),
    st.builds(Approximate, epsilons, deltas),
    st.builds(Profile, st.lists(st.tuples(epsilons, deltas), min_size=1, max_size=4).map(tuple)),
    st.builds(ZeroConcentrated, epsilons),
    st.builds(Laplace, scales, st.integers(1, 50)),
    st.builds(Gaussian, scales, st.integers(1, 50)),
    crowds,
    st.builds(NoisyWhenSmall, st.integers(1, 500), epsilons.filter(bool)),
    st.builds(Syntactic, st.text(max_size=10), st.lists(st.tuples(st.text(), st.text()), max_size=3).map(tuple)),
    biased(),
    st.builds(BestRun, rates, st.one_of(st.builds(Pure, epsilons), st.builds(ZeroConcentrated, epsilons))),
)
losses: st.SearchStrategy[Loss] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Sequence, st.lists(inner, min_size=1, max_size=4).map(tuple)),
        st.builds(Parallel, st.lists(inner, min_size=1, max_size=4).map(tuple)),
        st.builds(Sampled, rates, inner, names),
        st.builds(Grouped, st.integers(1, 20), inner),
    ),
    max_leaves=8,
)
units = st.one_of(
    st.builds(Unit, st.sampled_from([Kind.ROW, Kind.EDGE, Kind.NODE]), st.sampled_from(Adjacency)),
    st.builds(Unit, st.just(Kind.PERSON), st.sampled_from(Adjacency), st.text(min_size=1), st.integers(1, 9)),
)
guarantees = guaranteed()
