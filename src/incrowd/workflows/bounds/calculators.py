"""Calculators, as incrowd.bounds: give all but one of the parameters of a guarantee, get the missing one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from dataclasses import replace as dataclasses_replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast, get_type_hints

from incrowd.accounting import accountant
from incrowd.accounting.amplification import amplify as after_sampling
from incrowd.accounting.amplification import before_sampling
from incrowd.core.loss import TAGS, Approximate, Gaussian, Grouped, Laplace, Loss, Parallel, Pure, Sampled, Sequence
from incrowd.core.rounding import Number, exact
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.workflows.bounds.crowd import CrowdBound, CrowdQuestion
from incrowd.workflows.bounds.crowd import solve as solve_crowd
from incrowd.workflows.bounds.parameters import missing_one, stated_epsilon
from incrowd.workflows.bounds.safe import SafeBound, SafeQuestion
from incrowd.workflows.bounds.safe import solve as solve_safe

if TYPE_CHECKING:
    from incrowd.core.guarantee import Guarantee
    from incrowd.workflows.bounds.composition import Composition

_RELATIVE = 1e-12  # two logarithms up to 745 are subtracted: their rounding is below 4·10⁻¹³
RULE = "amplification by Poisson sampling (Li, Qardaji & Su 2010, Theorem 3, for standard (ε, δ))"


@dataclass(frozen=True)
class AmplifyQuestion:
    """Two of `rate`, `epsilon` and `sampled_epsilon`, to solve for the third.

    `epsilon` and `delta` are those of the mechanism on its sample, the sampled ones those of sampling and mechanism.
    """

    rate: Number | None = None
    epsilon: Number | None = None
    sampled_epsilon: Number | None = None
    delta: Number | None = None
    sampled_delta: Number | None = None


@dataclass(frozen=True)
class Amplification:
    """The guarantee of a mechanism on its sample, and of sampling and mechanism together."""

    rate: float
    epsilon: float
    delta: float
    sampled_epsilon: float
    sampled_delta: float
    solved: str
    rule: str = RULE

    def to_json(self) -> dict[str, Any]:
        """Return the values for `--json`."""
        return dict(vars(self))


def solve_amplification(question: AmplifyQuestion) -> Amplification:
    """Solve for the guarantee after sampling, the guarantee before it, or the largest rate.

    >>> found = solve_amplification(AmplifyQuestion(rate="0.1", epsilon=1, delta="1e-6"))
    >>> round(found.sampled_epsilon, 6), found.solved
    (0.158565, 'sampled_epsilon')
    """
    solved = missing_one(
        {"rate": question.rate, "epsilon": question.epsilon, "sampled_epsilon": question.sampled_epsilon}
    )
    match solved:
        case "sampled_epsilon":
            return _after(question)
        case "epsilon":
            return _before(question)
    return _largest_rate(question)


def _after(question: AmplifyQuestion) -> Amplification:
    _belongs(question.sampled_delta, "sampled-delta", "sampled-epsilon")
    rate, epsilon, delta = _rate(question.rate), _epsilon(question.epsilon, "epsilon"), _delta(question.delta)
    after, failing = after_sampling(epsilon, delta, rate)
    return Amplification(float(rate), float(epsilon), float(delta), after, failing, "sampled_epsilon")


def _before(question: AmplifyQuestion) -> Amplification:
    _belongs(question.delta, "delta", "epsilon")
    rate, after = _rate(question.rate), _epsilon(question.sampled_epsilon, "sampled-epsilon")
    failing = _delta(question.sampled_delta)
    before, allowed = before_sampling(after, failing, rate)
    return Amplification(float(rate), before, allowed, float(after), float(failing), "epsilon")


def _largest_rate(question: AmplifyQuestion) -> Amplification:
    _belongs(question.sampled_delta, "sampled-delta", "a rate; when the rate is asked for, give delta")
    before, after = _epsilon(question.epsilon, "epsilon"), _epsilon(question.sampled_epsilon, "sampled-epsilon")
    if not 0 < after < before:
        raise Infeasible("sampled-epsilon must be above 0 and below epsilon: sampling lowers epsilon, but never to 0.")
    rate = Fraction(math.exp(_log_expm1(after) - _log_expm1(before)) * (1.0 - _RELATIVE))
    if rate <= 0:
        raise Infeasible("no sampling rate lowers epsilon to sampled-epsilon: allow a larger one.")
    delta = _delta(question.delta)
    _, failing = after_sampling(before, delta, rate)
    return Amplification(float(rate), float(before), float(delta), float(after), failing, "rate")


def _epsilon(number: Number | None, name: str) -> Fraction:
    return stated_epsilon("" if number is None else number, name)


def _rate(number: Number | None) -> Fraction:
    return exact("" if number is None else number, "rate")


def _delta(number: Number | None) -> Fraction:
    return Fraction(0) if number is None else exact(number, "delta")


def _belongs(number: Number | None, name: str, partner: str) -> None:
    if number is not None:
        raise InvalidParameter(f"{name} can only be given together with {partner}.")


def _log_expm1(epsilon: Fraction) -> float:
    value = float(epsilon)
    return math.log(math.expm1(value)) if value < 30.0 else value + math.log1p(-math.exp(-value))


__all__ = ["Approximate", "Gaussian", "Laplace", "Pure", "Sampled", "amplify", "compose", "crowd", "pld", "safe"]


class SafeParameters(TypedDict, total=False):
    """Parameters of `safe`: three of the first four; `replace` means replace-one adjacency."""

    k: int
    rate: Number
    epsilon: Number
    delta: Number
    replace: bool
    rows_per_person: int


class CrowdParameters(TypedDict, total=False):
    """Parameters of `crowd`; with one of the last three the sample is biased, and `rate` is the lowest regular rate."""

    k: int
    rate: Number
    crowd_epsilon: Number
    epsilon: Number
    delta: Number
    high_rate: Number
    irregular: int
    max_rate: Number


class AmplifyParameters(TypedDict, total=False):
    """Parameters of `amplify`: two of the first three; the last two are 0 by default."""

    rate: Number
    epsilon: Number
    sampled_epsilon: Number
    delta: Number
    sampled_delta: Number


def safe(**parameters: Unpack[SafeParameters]) -> SafeBound:
    """Return the guarantee of secret sampling, recoding, and suppressing combinations below k rows.

    >>> safe(k=20, rate=0.1, epsilon=0.5).delta < 3e-11
    True
    """
    plain: dict[str, Any] = dict(parameters)
    adjacency = Adjacency.REPLACE if plain.pop("replace", False) else Adjacency.ADD_REMOVE
    return solve_safe(SafeQuestion(**plain, adjacency=adjacency))


def crowd(**parameters: Unpack[CrowdParameters]) -> CrowdBound:
    """Return the guarantee of a (k, ε)-crowd-blending mechanism on a secret sample.

    >>> round(crowd(k=20, rate=0.1).epsilon, 4)
    0.1054
    """
    return solve_crowd(CrowdQuestion(**parameters))


def amplify(**parameters: Unpack[AmplifyParameters]) -> Amplification:
    """Return the guarantee of a differentially private mechanism on a secret Poisson sample.

    >>> round(amplify(rate=0.1, epsilon=1).sampled_epsilon, 4)
    0.1586
    """
    return solve_amplification(AmplifyQuestion(**parameters))


def compose(
    guarantees: Iterable[Guarantee | Loss | str | Path], *, epsilon: Number | None = None, delta: Number | None = None
) -> Composition:
    """Return the joint guarantee of several releases of the same rows, all fixed before the first one.

    A guarantee is a `Guarantee`, such as `certificate.guarantee` or `plan(policy).guarantee`, the file of a
    certificate, or a loss such as `Laplace(2)`, which then holds for the unit of the others: rows added or removed by
    default.

    >>> compose([Laplace(2), Laplace(4, sensitivity=2)], delta=0).epsilon
    1.0
    >>> round(compose([Sampled(0.01, Gaussian(1))] * 1000, delta="1e-6").epsilon, 3)
    2.125
    """
    from incrowd.core.guarantee import Guarantee
    from incrowd.workflows.bounds.composition import STATED, solve_composition
    from incrowd.workflows.certificates import read_certificate

    read = [read_certificate(Path(item)).guarantee if isinstance(item, str | Path) else item for item in guarantees]
    unit = next((item.unit for item in read if isinstance(item, Guarantee)), Unit())
    whole = [item if isinstance(item, Guarantee) else Guarantee(_loss(item), unit, (STATED,)) for item in read]
    return solve_composition(tuple(whole), epsilon, delta)


@dataclass(frozen=True)
class PrivacyLoss:
    """The privacy loss of noisy answers that were fixed in advance: δ at every ε, ε at every δ, both rounded up."""

    loss: Sequence
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def delta(self, epsilon: Number) -> float:
        """Return δ at ε."""
        return accountant.delta(self.loss, epsilon, self.adjacency).value

    def epsilon(self, delta: Number) -> float:
        """Return the least ε at δ."""
        return accountant.epsilon(self.loss, delta, self.adjacency).value


def pld(losses: Iterable[Loss], *, replace: bool = False) -> PrivacyLoss:
    """Return the privacy loss distribution of noisy answers, by the accountant that plans and ledgers use.

    >>> answers = pld([Gaussian(10)] * 4)
    >>> round(answers.epsilon("1e-6"), 3), answers.delta(1) < 1e-6
    (0.834, True)
    """
    return PrivacyLoss(Sequence(tuple(map(_loss, losses))), Adjacency.REPLACE if replace else Adjacency.ADD_REMOVE)


def _loss(loss: Any) -> Loss:
    """Return a loss with exact numbers; a person may write 2, 0.1 or "1/3"."""
    if type(loss) not in TAGS.values():
        raise InvalidParameter(
            "compose takes guarantees, files of certificates, or losses such as Pure(1), Laplace(2) or Gaussian(10)."
        )
    hints = get_type_hints(type(loss))
    exactly: dict[str, Any] = {
        item.name: exact(getattr(loss, item.name), item.name) for item in fields(loss) if hints[item.name] is Fraction
    }
    if isinstance(loss, Sampled | Grouped):
        exactly["inner"] = _loss(loss.inner)
    elif isinstance(loss, Sequence | Parallel):
        exactly["parts"] = tuple(map(_loss, loss.parts))
    return cast("Loss", dataclasses_replace(loss, **exactly))
