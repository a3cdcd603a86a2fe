"""Derivation: the δ at ε of a whole loss, from those of its parts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from incrowd.core.loss import (
    Approximate,
    BestRun,
    Crowd,
    Gaussian,
    GaussianRounds,
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
    samples_named,
)
from incrowd.core.unit import Adjacency, Unit
from incrowd.verifier.slow_accountant import contour, crowds, noise, tables
from incrowd.verifier.slow_accountant.crowds import TOLERANCE


@dataclass(frozen=True)
class Derived:
    """A δ that was derived: that of the loss, or where it is not the whole only one that the loss has at least."""

    delta: float
    whole: bool = True


def derive(
    loss: Loss, unit: Unit, epsilon: Fraction | Decimal | float, delta: Fraction | Decimal | float
) -> Derived | None:
    """Return δ of a loss at ε for a unit; None where nothing is known of it.

    `delta` is the one that is claimed: where a coarse derivation shows that much, no finer one is tried.

    >>> derive(Sampled(Fraction(1, 10), Crowd(20)), Unit(), 0.5, 1e-10)
    Derived(delta=2.63...e-11, whole=True)
    >>> derive(Sequence((Pure(Fraction(1, 2)), Pure(Fraction(1, 2)))), Unit(), Fraction(1), 0)
    Derived(delta=0.0, whole=True)
    """
    names = samples_named(loss)
    if len(set(names)) < len(names):
        return None  # a sample that is used twice betrays people
    return _Question(Fraction(epsilon), Fraction(delta), unit.adjacency).answer(loss)


def concentration(loss: Loss) -> Fraction | None:
    """Return ρ such that a loss is ρ-zero-concentrated, or None: ρ adds up on the same rows.

    Source: Bun & Steinke 2016, Proposition 1.4 for pure ε, which is ε²/2; Canonne, Kamath & Steinke 2020, Theorem 4
    for integer Gaussian noise.

    >>> concentration(Sequence((Pure(Fraction(1)), ZeroConcentrated(Fraction(1, 10)))))
    Fraction(3, 5)
    """
    match loss:
        case ZeroConcentrated(rho) | GaussianRounds(rho):
            return rho
        case Gaussian(scale, sensitivity):
            return Fraction(sensitivity) ** 2 / (2 * scale**2)
        case Sequence(parts):
            rhos = [rho for rho in map(concentration, parts) if rho is not None]
            return sum(rhos, Fraction(0)) if len(rhos) == len(parts) else None
    guarantee = noise.stated(loss)
    return guarantee.epsilon**2 / 2 if guarantee is not None and not guarantee.delta else None


@dataclass(frozen=True)
class _Question:
    """At which ε, which δ is claimed, and which two datasets are compared."""

    epsilon: Fraction
    delta: Fraction
    adjacency: Adjacency

    @property
    def x(self) -> float:
        return float(self.epsilon)

    @property
    def replaced(self) -> bool:
        return self.adjacency is Adjacency.REPLACE

    def at(self, epsilon: Fraction | float, delta: Fraction) -> _Question:
        return replace(self, epsilon=Fraction(epsilon), delta=delta)

    def answer(self, loss: Loss) -> Derived | None:
        guarantee = noise.stated(loss)
        if guarantee is not None and self.epsilon * Fraction(TOLERANCE) >= guarantee.epsilon:
            return Derived(noise.stated_delta(guarantee, self.epsilon))
        match loss:
            case Crowd() | Syntactic():
                return Derived(1.0)
            case Pure() | Approximate() | Laplace():
                return _derived(_spread_delta((loss,), self.x))
            case Profile(points):
                return Derived(min(noise.stated_delta(Approximate(*point), self.epsilon) for point in points))
            case ZeroConcentrated() | BestRun():
                return self._concentrated(loss)
            case Gaussian() | GaussianRounds():
                return self._gaussian(loss)
            case Sequence(parts):
                return _together(tuple(_flat(parts)), self)
            case Parallel(parts):
                return None if self.replaced else _worst(self.answer(part) for part in parts)
            case Grouped(size, inner):
                return _person(size, inner, self)
            case RobustlySampled():
                return _biased(loss, self)
            case Sampled(rate, Crowd() as crowd):
                return _crowd(rate, crowd, self)
            case Sampled(rate, inner):
                return _on_sample(rate, inner, self)

    def _gaussian(self, loss: Gaussian | GaussianRounds) -> Derived | None:
        if isinstance(loss, GaussianRounds):
            return Derived(noise.rounds_delta(loss.rho, loss.scale, loss.moved, self.x))
        return _derived(noise.gaussian_delta(loss.scale, loss.sensitivity, self.x))

    def _concentrated(self, loss: ZeroConcentrated | BestRun) -> Derived | None:
        """Return δ of a concentrated loss, or of the best of several runs; those of a pure one cost it twice."""
        if isinstance(loss, ZeroConcentrated):
            return Derived(noise.concentrated_delta(loss.rho, self.x))
        if isinstance(loss.inner, ZeroConcentrated):
            return Derived(noise.best_run_delta(loss.inner.rho, loss.gamma, self.x))
        return self.answer(Sequence((loss.inner, loss.inner)))


Curve = Callable[[float], float | None]
"""δ at ε for rows that are added or removed; None where it could not be derived."""


def _person(size: int, inner: Loss, question: _Question) -> Derived | None:
    """Return δ for a person with several rows, each with its own coin, from the δ of one row at ε/size.

    Removing the rows one by one, the i-th step multiplies what came before by e^(ε/m): δ·(1 + e^(ε/m) + … ).  A person
    may also have one row, so what one row shows at ε is shown at least.
    """
    if question.replaced and not (isinstance(inner, Sampled) and isinstance(inner.inner, Crowd)):
        return None  # a replaced person can have another number of rows
    times = math.fsum(math.exp(min(place * question.x / size, 700.0)) for place in range(size))
    single = question.at(question.epsilon / size, question.delta / Fraction(times)).answer(inner)
    if single is not None and single.whole:
        return Derived(min(1.0, single.delta * times))
    return _least((question.answer(inner),))


def _crowd(rate: Fraction, crowd: Crowd, question: _Question) -> Derived | None:
    """Return δ of a crowd on a secret sample, or at least that of its worst sizes if there are too many to try."""
    if isinstance(crowd, NoisyWhenSmall):
        derived = _moved(lambda x: crowds.noisy_delta(crowd.k, rate, x, float(crowd.epsilon)), question)
    elif crowd.epsilon:
        return None
    else:
        derived = _moved(lambda x: crowds.suppression_delta(crowd.k, rate, x), question)
    if derived is not None:
        return derived
    pairs = crowds.replaced_delta(crowd.k, rate, question.x) if question.replaced and not crowd.epsilon else None
    return Derived(crowds.suppression_floor(crowd.k, rate, question.x) if pairs is None else pairs, whole=False)


def _moved(curve: Curve, question: _Question) -> Derived | None:
    """Read a curve for rows added or removed; a replaced row is one removed and one added, if that is enough."""
    if not question.replaced:
        return _derived(curve(question.x))
    half = curve(question.x / 2.0)
    both = None if half is None else min(1.0, (1.0 + math.exp(min(question.x / 2.0, 700.0))) * half)
    return _derived(both if both is not None and both <= float(question.delta) * TOLERANCE else None)


def _biased(loss: RobustlySampled, question: _Question) -> Derived | None:
    """Return δ of a crowd on a biased sample; a replaced row is one removed and one added."""
    if loss.inner.epsilon:
        return None
    if not question.replaced:
        return _derived(crowds.biased_delta(loss, question.x))
    half = crowds.biased_delta(loss, question.x / 2.0)
    return _derived(None if half is None else min(1.0, (1.0 + math.exp(min(question.x / 2.0, 700.0))) * half))


def _on_sample(rate: Fraction, inner: Loss, question: _Question) -> Derived | None:
    """Return rate·δ(ln(1 + (e^ε − 1)/rate)): a row that is not drawn shows nothing; rate·δ(ε) for a replaced one."""
    if question.replaced:
        single = question.at(question.epsilon, min(Fraction(1), question.delta / rate)).answer(inner)
        return Derived(float(rate) * single.delta) if single is not None and single.whole else None
    before = math.log1p(math.expm1(question.x) / float(rate)) if question.x < 500.0 else question.x
    inside = question.at(before, min(Fraction(1), question.delta / rate)).answer(inner)
    return Derived(float(rate) * inside.delta) if inside is not None and inside.whole else None


def _together(parts: tuple[Loss, ...], question: _Question) -> Derived | None:
    """Return the least δ that a rule of composition gives; without one, what the worst crowd alone shows at least."""
    deltas = [
        delta
        for delta in (
            _tables(parts, question),
            _shared(parts, question),
            _spread_delta(parts, question.x),
            _sampled(parts, question),
            *_rhos(parts, question),
        )
        if delta is not None
    ]
    return Derived(min(1.0, *deltas)) if deltas else _least(question.answer(part) for part in parts if _crowded(part))


def _sampled(parts: tuple[Loss, ...], question: _Question) -> float | None:
    """Return δ of answers with Gaussian noise, each on a fresh sample; rows come and go."""
    answers = []
    for part, times in Counter(parts).items():
        match part:
            case Sampled(rate, Gaussian(scale, sensitivity), None) if not question.replaced:
                answers.append(contour.SampledGaussian(rate, scale, sensitivity, times))
            case _:
                return None
    return contour.sampled_delta(answers, question.x)


def _tables(parts: tuple[Loss, ...], question: _Question) -> float | None:
    """Return δ of releases by sampled suppression that are all alike, beside what has finitely many losses."""
    releases = {part for part in parts if isinstance(part, Sampled) and part.inner == Crowd(_k(part))}
    if len(releases) != 1:
        return None
    (release,) = releases
    k, rate = _k(release), release.rate
    others = tuple(part for part in parts if part != release)
    number, beside = len(parts) - len(others), _spread(others)
    if question.replaced:
        front = noise.stated(Sequence(others)) if others else Approximate(Fraction(0), Fraction(0))
        if front is None or front.epsilon > question.epsilon:
            return None
        left = question.at(question.epsilon - front.epsilon, question.delta - front.delta)
        split = _moved(lambda x: tables.tables_delta(k, rate, number, x), left)
        return None if split is None else float(front.delta) + split.delta
    if beside is None:
        return None
    if number == 1 and rate <= tables.HIGH and all(loss <= question.x for loss, _ in beside.masses):
        pairs = [(mass, crowds.suppression_delta(k, rate, question.x - loss)) for loss, mass in beside.masses]
        weighted = [mass * delta for mass, delta in pairs if delta is not None]
        return beside.infinite + math.fsum(weighted) if len(weighted) == len(pairs) else None
    return tables.tables_delta(k, rate, number, question.x, beside)


def _shared(parts: tuple[Loss, ...], question: _Question) -> float | None:
    """Return δ by sums: stated guarantees take their ε, and curves that are all alike share the rest equally."""
    curves = [part for part in parts if noise.stated(part) is None]
    guarantees = [guarantee for guarantee in map(noise.stated, parts) if guarantee is not None]
    taken, hidden = (
        sum((getattr(guarantee, name) for guarantee in guarantees), Fraction(0)) for name in ("epsilon", "delta")
    )
    if len(set(curves)) != 1 or taken > question.epsilon:
        return None
    left = question.at(
        (question.epsilon - taken) / len(curves), max(Fraction(0), question.delta - hidden) / len(curves)
    )
    single = left.answer(curves[0])
    return float(hidden) + len(curves) * single.delta if single is not None and single.whole else None


def _rhos(parts: tuple[Loss, ...], question: _Question) -> Iterator[float]:
    """Yield δ by adding up ρ: of all parts, and of those that state no ε, whose own is taken from the rest."""
    guarantees = [guarantee for guarantee in map(noise.stated, parts) if guarantee is not None]
    others = [concentration(part) for part in parts if noise.stated(part) is None]
    rhos = [rho for rho in others if rho is not None]
    if not rhos or len(rhos) < len(others):
        return
    hidden, taken = (
        float(sum(guarantee.delta for guarantee in guarantees)),
        sum((guarantee.epsilon for guarantee in guarantees), Fraction(0)),
    )
    rho = sum(rhos, Fraction(0))
    yield hidden + noise.concentrated_delta(
        rho + sum((guarantee.epsilon**2 for guarantee in guarantees), Fraction(0)) / 2, question.x
    )
    if taken <= question.epsilon:
        yield hidden + noise.concentrated_delta(rho, float(question.epsilon - taken))


def _spread_delta(parts: tuple[Loss, ...], epsilon: float) -> float | None:
    spread = _spread(parts)
    return None if spread is None else spread.delta(epsilon)


def _spread(parts: tuple[Loss, ...]) -> noise.LossSpread | None:
    """Return the losses of all parts together, or None if some part has infinitely many, or all have too many."""
    whole: noise.LossSpread | None = noise.NOTHING
    for part in parts:
        single = noise.spread_of(part)
        whole = None if whole is None or single is None else whole.beside(single)
    return whole


def _crowded(part: Loss) -> bool:
    """Whether the δ of a part is that of its worst crowd, and not merely a bound on it."""
    part = part.inner if isinstance(part, Grouped) else part
    return isinstance(part, Sampled) and isinstance(part.inner, Crowd)


def _k(sampled: Sampled) -> int:
    return sampled.inner.k if isinstance(sampled.inner, Crowd) else 1


def _flat(parts: Iterable[Loss]) -> Iterator[Loss]:
    for part in parts:
        yield from _flat(part.parts) if isinstance(part, Sequence) else (part,)


def _derived(delta: float | None) -> Derived | None:
    return None if delta is None else Derived(delta)


def _worst(blocks: Iterable[Derived | None]) -> Derived | None:
    """Return the largest δ of blocks of which a row lies in one; a lower bound if some block has only that."""
    all_blocks = list(blocks)
    derived = [one for one in all_blocks if one is not None]
    if not derived:
        return None
    return Derived(
        max(one.delta for one in derived), len(derived) == len(all_blocks) and all(one.whole for one in derived)
    )


def _least(derivations: Iterable[Derived | None]) -> Derived | None:
    """Return what is shown at least: whatever any of several derivations gives alone."""
    deltas = [one.delta for one in derivations if one is not None]
    return Derived(max(deltas), whole=False) if deltas else None
