"""The accountant: the tightest sound ε or δ of a loss, and the rule that gave it.

Each class of loss has its rules below; where several are sound the smallest number wins.  A class without a rule is
refused.  Nothing here reads data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from incrowd.accounting import additive, distribution
from incrowd.accounting.blending import crowd_losses
from incrowd.accounting.bound import INFINITE, LossBound, delta_at, epsilon_at, least_epsilon, shares_of
from incrowd.accounting.concentrated import (
    approximate_rho_of,
    delta_of_rho,
    delta_of_runs,
    epsilon_of_rho,
    epsilon_of_runs,
    rho_of,
)
from incrowd.accounting.people import person_delta, smallest_person_epsilon
from incrowd.core.loss import (
    Approximate,
    BestRun,
    Crowd,
    Gaussian,
    GaussianRounds,
    Grouped,
    Laplace,
    Loss,
    LossRule,
    Parallel,
    Profile,
    Pure,
    RobustlySampled,
    Sampled,
    Sequence,
    Syntactic,
    ZeroConcentrated,
    samples_named,
    stated,
    walk,
)
from incrowd.core.rounding import Number, exact, float_down, float_up, round_up
from incrowd.core.unit import Adjacency
from incrowd.errors import DoesNotCompose, Infeasible, InvalidParameter, SampleReused, UnknownLoss

_NOTHING = LossBound(0.0, ())
_REMEMBERED = 4096
"""How many bounds are cached: plan, charge, claims and report need the same ones."""


@dataclass(frozen=True)
class Spend:
    """What a guarantee costs: exact amounts, rounded up; ε is infinite for guarantees without one."""

    epsilon: Decimal
    delta: Decimal
    rule: tuple[LossRule, ...]


def charge_of(loss: Loss, delta: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Spend:
    """Return what the ledger charges for a loss stated at `delta`.

    With δ = 0 a guarantee that has a δ of its own is charged at that one.

    >>> charge_of(Sampled(Fraction(1, 10), Crowd(20)), "1e-9").rule
    (<LossRule.SUPPRESSION: 'sampled-suppression'>,)
    >>> charge_of(Syntactic("k-anonymity", (("k", "5"),)), 0).epsilon
    Decimal('Infinity')
    """
    at = exact(delta, "delta") or least_delta(loss)
    bound = epsilon(loss, at, adjacency)
    guarantee = stated(loss)
    if guarantee is not None and guarantee.delta <= at and float_up(guarantee.epsilon) <= bound.value:
        return Spend(round_up(guarantee.epsilon), round_up(at), bound.rule)
    return Spend(Decimal("Infinity") if math.isinf(bound.value) else round_up(bound.value), round_up(at), bound.rule)


def epsilon(loss: Loss, delta: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> LossBound:
    """Return the least proved ε at `delta`; infinite where no rule gives one.

    >>> epsilon(Sequence((Pure(Fraction(1)), Pure(Fraction(2)))), 0)
    LossBound(value=3.0, rule=(<LossRule.SUMS: 'sums'>,))
    """
    at = _stated_delta(delta)
    _refuse_misused_samples(loss)
    if _without_epsilon(loss):
        return INFINITE
    bound, guarantee = _epsilon(loss, at, adjacency), stated(loss)
    if guarantee is not None and guarantee.delta <= at and float_up(guarantee.epsilon) <= bound.value:
        return LossBound(float_up(guarantee.epsilon), (LossRule.SUMS,) if isinstance(loss, Sequence) else bound.rule)
    return bound


def delta(loss: Loss, epsilon: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> LossBound:
    """Return the least proved δ at `epsilon`; 1 where no rule gives one.

    >>> delta(Approximate(Fraction(1), Fraction(1, 100)), 1)
    LossBound(value=0.01, rule=(<LossRule.STATED: 'as-stated'>,))
    """
    at = _stated_epsilon(epsilon)
    _refuse_misused_samples(loss)
    return _delta(loss, at, adjacency)


def epsilon_by_rule(loss: Loss, delta: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> tuple[LossBound, ...]:
    """Return what every sound rule says of ε at `delta`, the tightest first.

    >>> epsilon_by_rule(Sequence((Pure(Fraction(1)), Pure(Fraction(2)))), 0)
    (LossBound(value=3.0, rule=(<LossRule.SUMS: 'sums'>,)),)
    """
    if not isinstance(loss, Sequence) or not loss.parts:
        return (epsilon(loss, delta, adjacency),)
    _refuse_misused_samples(loss)
    return tuple(sorted(_in_sequence(loss, _stated_delta(delta), adjacency)))


def delta_by_rule(loss: Loss, epsilon: Number, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> tuple[LossBound, ...]:
    """Return what every sound rule says of δ at `epsilon`, the tightest first."""
    if not isinstance(loss, Sequence) or not loss.parts:
        return (delta(loss, epsilon, adjacency),)
    _refuse_misused_samples(loss)
    return tuple(sorted(_sequence_deltas(loss, _stated_epsilon(epsilon), adjacency)))


def least_delta(loss: Loss) -> Fraction:
    """Return the δ below which a loss has no finite ε (0 if there is none, or none is known)."""
    match loss:
        case Approximate(delta=stated):
            return stated
        case Profile(points):
            return min(stated for _, stated in points)
        case Sampled(rate, Crowd(k)):
            return rate**k
        case Sampled(rate, inner):
            return rate * least_delta(inner)
        case Sequence(parts):
            return sum((least_delta(part) for part in parts), Fraction(0))
        case Parallel(parts):
            return max((least_delta(part) for part in parts), default=Fraction(0))
    return Fraction(0)


@lru_cache(maxsize=_REMEMBERED)
def _epsilon(loss: Loss, delta: Fraction, adjacency: Adjacency) -> LossBound:
    match loss:
        case Pure() | Approximate() | BestRun(inner=Pure()) if (guarantee := stated(loss)) is not None:
            return LossBound(epsilon_at(guarantee, delta), _rule(loss, LossRule.STATED))
        case Profile(points):
            return min(LossBound(epsilon_at(Approximate(*point), delta), (LossRule.STATED,)) for point in points)
        case ZeroConcentrated() | BestRun(inner=ZeroConcentrated()):
            return LossBound(_run_epsilon(loss, delta) if delta else math.inf, _rule(loss, LossRule.CONCENTRATED))
        case Laplace():
            return LossBound(additive.laplace_epsilon(loss, float_down(delta)), (LossRule.LAPLACE,))
        case Gaussian():
            least = additive.gaussian_epsilon(loss, float_down(delta)) if delta else math.inf
            return LossBound(least, (LossRule.GAUSSIAN,))
        case GaussianRounds():
            least = additive.rounds_epsilon(loss, float_down(delta)) if delta else math.inf
            return LossBound(least, (LossRule.GAUSSIAN_ROUNDS,))
        case Sequence(parts):
            return _sequence_epsilon(loss, delta, adjacency) if parts else _NOTHING
        case Parallel(parts):
            _partition_needs_add_remove(adjacency)
            return max((_epsilon(part, delta, adjacency) for part in parts), default=_NOTHING)
        case Crowd() | Syntactic():
            return INFINITE
        case Sampled() | RobustlySampled() if (bound := crowd_losses.epsilon_of(loss, delta, adjacency)) is not None:
            return bound
        case Grouped(size, inner):
            _rows_must_come_and_go(inner, adjacency)
            return _person_epsilon(inner, delta, size, adjacency)
        case Sampled():
            below = float_down(delta)
            least = least_epsilon(lambda x: _delta(loss, x, adjacency).value, below)
            return LossBound(least, _delta(loss, least, adjacency).rule) if math.isfinite(least) else INFINITE
    raise UnknownLoss(
        f"the accountant has no rule for a loss of class {type(loss).__name__}: use a newer version of incrowd."
    )


@lru_cache(maxsize=_REMEMBERED)
def _delta(loss: Loss, epsilon: float, adjacency: Adjacency) -> LossBound:
    match loss:
        case Pure() | Approximate() | BestRun(inner=Pure()) if (guarantee := stated(loss)) is not None:
            return LossBound(delta_at(guarantee, epsilon), _rule(loss, LossRule.STATED))
        case Profile(points):
            return min(LossBound(delta_at(Approximate(*point), epsilon), (LossRule.STATED,)) for point in points)
        case ZeroConcentrated() | BestRun(inner=ZeroConcentrated()):
            return LossBound(_run_delta(loss, epsilon), _rule(loss, LossRule.CONCENTRATED))
        case Laplace():
            return LossBound(additive.laplace_delta(loss, epsilon), (LossRule.LAPLACE,))
        case Gaussian():
            return LossBound(additive.gaussian_delta(loss, epsilon), (LossRule.GAUSSIAN,))
        case GaussianRounds():
            return LossBound(additive.rounds_delta(loss, epsilon), (LossRule.GAUSSIAN_ROUNDS,))
        case Sequence():
            return _rounds_delta(loss, epsilon, adjacency) or min(_sequence_deltas(loss, epsilon, adjacency))
        case Parallel(parts):
            _partition_needs_add_remove(adjacency)
            return max((_delta(part, epsilon, adjacency) for part in parts), default=_NOTHING)
        case Crowd() | Syntactic():
            return LossBound(1.0, INFINITE.rule)
        case Sampled() | RobustlySampled() if (bound := crowd_losses.delta_of(loss, epsilon, adjacency)) is not None:
            return bound
        case Sampled(rate, inner):
            return _on_sample(rate, inner, epsilon, adjacency)
        case Grouped(size, inner):
            _rows_must_come_and_go(inner, adjacency)
            value = person_delta(_row_curve(inner, adjacency), epsilon, size)
            return LossBound(value, (*_delta(inner, epsilon / size, adjacency).rule, LossRule.GROUPED))
    raise UnknownLoss(
        f"the accountant has no rule for a loss of class {type(loss).__name__}: use a newer version of incrowd."
    )


def _rule(loss: Loss, alone: LossRule) -> tuple[LossRule, ...]:
    return (LossRule.RUNS if isinstance(loss, BestRun) else alone,)


def _run_epsilon(loss: ZeroConcentrated | BestRun, delta: Fraction) -> float:
    if isinstance(loss, ZeroConcentrated):
        return epsilon_of_rho(loss.rho, delta)
    rho = rho_of(loss.inner)
    return math.inf if rho is None else epsilon_of_runs(rho, loss.gamma, delta)


def _run_delta(loss: ZeroConcentrated | BestRun, epsilon: float) -> float:
    if isinstance(loss, ZeroConcentrated):
        return delta_of_rho(loss.rho, epsilon)
    rho = rho_of(loss.inner)
    return 1.0 if rho is None else delta_of_runs(rho, loss.gamma, epsilon)


def _person_epsilon(inner: Loss, delta: Fraction, size: int, adjacency: Adjacency) -> LossBound:
    """Multiply a pure guarantee by the number of rows; search a curve, and return only an ε that was evaluated."""
    if not delta:
        single = _epsilon(inner, delta, adjacency)
        return (
            LossBound(float_up(size * Fraction(single.value)), (*single.rule, LossRule.GROUPED))
            if math.isfinite(single.value)
            else single
        )
    try:
        least = smallest_person_epsilon(_row_curve(inner, adjacency), delta, size)
    except Infeasible:
        return INFINITE
    return LossBound(least, (*_delta(inner, least / size, adjacency).rule, LossRule.GROUPED))


def _row_curve(inner: Loss, adjacency: Adjacency) -> Callable[[Fraction], float]:
    def log_delta(epsilon: Fraction) -> float:
        value = _delta(inner, float_down(epsilon), adjacency).value
        return math.log(value) + 1e-15 if value > 0.0 else -math.inf

    return log_delta


def _on_sample(rate: Fraction, inner: Loss, epsilon: float, adjacency: Adjacency) -> LossBound:
    """Amplify (Poisson sampling); for a replaced row, which shows nothing where it is not sampled, δ alone.

    Whoever is told whether the row was sampled sees with chance `rate` what `inner` shows, and else nothing.
    """
    if adjacency is Adjacency.REPLACE:
        single = _delta(inner, epsilon, adjacency)
        return LossBound(float_up(rate) * single.value * (1.0 + 1e-15), (*single.rule, LossRule.AMPLIFIED))
    before = math.log1p(math.expm1(epsilon) / float_up(rate)) if epsilon < 500.0 else epsilon
    inside = _delta(inner, before * (1.0 - 1e-15), adjacency)
    return LossBound(float_up(rate) * inside.value * (1.0 + 1e-15), (*inside.rule, LossRule.AMPLIFIED))


def _sequence_epsilon(loss: Sequence, delta: Fraction, adjacency: Adjacency) -> LossBound:
    """Return the least ε; of Gaussian noise that was composed no other rule gives less, so none is tried."""
    noisy = any(isinstance(part, Gaussian | GaussianRounds) for part in walk(loss))
    composed = _composed_distribution(loss, delta, adjacency) if noisy and len(loss.parts) > 1 else None
    if composed is not None and math.isfinite(composed.value):
        return composed
    return min(_in_sequence(loss, delta, adjacency), key=lambda bound: bound.value)


def _in_sequence(loss: Sequence, delta: Fraction, adjacency: Adjacency) -> list[LossBound]:
    return [
        bound
        for bound in (
            _sums(loss, delta, adjacency),
            _concentrated(loss, delta, adjacency),
            _composed_distribution(loss, delta, adjacency),
            crowd_losses.composed_epsilon(loss, delta, adjacency),
        )
        if bound is not None
    ]


def _sums(loss: Sequence, delta: Fraction, adjacency: Adjacency) -> LossBound:
    shares = shares_of(delta, tuple(least_delta(part) for part in loss.parts))
    if shares is None:
        return INFINITE
    alike = Counter(zip(loss.parts, shares, strict=True))
    costs = {pair: _epsilon(*pair, adjacency).value for pair in alike}
    if not all(map(math.isfinite, costs.values())):
        return INFINITE
    return LossBound(
        float_up(sum((times * Fraction(costs[pair]) for pair, times in alike.items()), Fraction(0))),
        (LossRule.SUMS,),
    )


def _concentrated(loss: Sequence, delta: Fraction, adjacency: Adjacency) -> LossBound | None:
    """Add up ρ and convert it at the δ that remains after those of stated guarantees, which add up, too."""
    concentrated = approximate_rho_of(loss, adjacency)
    if concentrated is None or delta <= concentrated[1]:
        return None
    rho, hidden = concentrated
    return LossBound(epsilon_of_rho(rho, delta - hidden), (LossRule.CONCENTRATED,))


def _composed_distribution(loss: Sequence, delta: Fraction, adjacency: Adjacency) -> LossBound | None:
    composed = distribution.epsilon(loss, float_down(delta), adjacency)
    return None if composed is None else LossBound(composed, (LossRule.DISTRIBUTION,))


def _rounds_delta(loss: Sequence, epsilon: float, adjacency: Adjacency) -> LossBound | None:
    """Return δ of Gaussian noise that was composed by its loss distribution, which no other rule beats; else None."""
    if not any(isinstance(part, Gaussian | GaussianRounds) for part in walk(loss)):
        return None
    composed = distribution.delta(loss, epsilon, adjacency) if len(loss.parts) > 1 else None
    return None if composed is None or composed >= 1.0 else LossBound(composed, (LossRule.DISTRIBUTION,))


def _sequence_deltas(loss: Sequence, epsilon: float, adjacency: Adjacency) -> list[LossBound]:
    bounds = [LossBound(_sums_delta(loss, epsilon, adjacency), (LossRule.SUMS,))]
    concentrated = approximate_rho_of(loss, adjacency)
    if concentrated is not None:
        rho, hidden = concentrated
        value = min(1.0, float_up(hidden + Fraction(delta_of_rho(rho, epsilon))))
        bounds.append(LossBound(value, (LossRule.CONCENTRATED,)))
    distributed = distribution.delta(loss, epsilon, adjacency)
    if distributed is not None:
        bounds.append(LossBound(distributed, (LossRule.DISTRIBUTION,)))
    composed = crowd_losses.composed_delta(loss, epsilon, adjacency)
    return [*bounds, composed] if composed is not None else bounds


def _sums_delta(loss: Sequence, epsilon: float, adjacency: Adjacency) -> float:
    """Search the least δ whose sums of ε stay within `epsilon`; only a δ that was evaluated is returned."""
    floor = least_delta(loss)
    if _sums(loss, floor, adjacency).value <= epsilon:
        return float_up(floor)
    low, high = -745.0, 0.0
    for _ in range(50):
        middle = (low + high) / 2.0
        enough = _sums(loss, floor + Fraction(math.exp(middle)), adjacency).value <= epsilon
        low, high = (low, middle) if enough else (middle, high)
    return min(1.0, float_up(floor + Fraction(math.exp(high))))


def _stated_delta(delta: Number) -> Fraction:
    at = exact(delta, "delta")
    if not 0 <= at < 1:
        raise InvalidParameter("delta lies in [0, 1).")
    return at


def _stated_epsilon(epsilon: Number) -> float:
    at = exact(epsilon, "epsilon")
    if at < 0:
        raise InvalidParameter("epsilon cannot be negative.")
    return float_down(at)


def _refuse_misused_samples(loss: Loss) -> None:
    named = samples_named(loss)
    if len(set(named)) < len(named):
        raise SampleReused(
            "two parts of this guarantee use the same secret sample; together they can reveal who is in it. "
            "Draw a fresh sample for each, or release the joint cells once and compute both from the release."
        )
    for part in walk(loss):
        if isinstance(part, Sampled) and sum(isinstance(below, Crowd) for below in walk(part.inner)) > 1:
            raise SampleReused(
                "two crowds under one secret sample do not compose: their difference can reveal one person. "
                "Draw a fresh sample for each."
            )
        if isinstance(part, Sampled | RobustlySampled) and any(isinstance(below, Grouped) for below in walk(part)):
            raise DoesNotCompose(
                "a secret sample decides row by row, so a person with several rows is in it more often than one row "
                "is. Write Grouped around the sample, not on it."
            )


def _without_epsilon(loss: Loss) -> bool:
    match loss:
        case Crowd() | Syntactic():
            return True
        case Sequence(parts) | Parallel(parts):
            return any(map(_without_epsilon, parts))
        case Grouped(inner=inner):
            return _without_epsilon(inner)
        case Sampled(inner=inner):
            return any(isinstance(part, Syntactic) for part in walk(inner))
    return False


def _rows_must_come_and_go(inner: Loss, adjacency: Adjacency) -> None:
    """Refuse replaced people with several rows unless rows are in sampled crowds: their numbers of rows may differ.

    In sampled suppression what one row added or removed can do is a marginal of what one row replaced can do; other
    guarantees made for replaced rows say nothing about rows that come or go.
    """
    crowds_only = isinstance(inner, Sampled) and isinstance(inner.inner, Crowd)
    if adjacency is Adjacency.REPLACE and not crowds_only:
        raise DoesNotCompose(
            "a replaced person can have another number of rows; this guarantee covers replaced rows only. State it "
            "for rows added and removed."
        )


def _partition_needs_add_remove(adjacency: Adjacency) -> None:
    if adjacency is not Adjacency.ADD_REMOVE:
        raise DoesNotCompose(
            "blocks of a partition cost their maximum only when rows are added or removed; a replaced row can move "
            "between blocks. State the guarantee for added and removed rows, or compose in sequence."
        )
