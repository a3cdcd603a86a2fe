"""Loss: what a release costs, as a plain tree that accountants read.

The tree describes and never interprets: a better accountant may reread an old ledger and find a smaller number.
So a class here is never removed and its meaning never changes, and an accountant that meets a class it does not
know refuses.  All numbers are exact.  A loss is stated for the unit (and its adjacency) of the guarantee around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, cast

from incrowd.core.rounding import short
from incrowd.core.terms import KeyedText
from incrowd.errors import InvalidParameter, UnknownLoss

THE_ROWS = "the rows"
"""The name of a sample that is the dataset itself: others drew it, and every release from these rows uses it."""


@dataclass(frozen=True)
class Pure:
    """ε-differential privacy."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _not_negative(self.epsilon, "epsilon")


@dataclass(frozen=True)
class Approximate:
    """(ε, δ)-differential privacy."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        _not_negative(self.epsilon, "epsilon")
        _probability(self.delta, "delta")


@dataclass(frozen=True)
class Profile:
    """(ε, δ)-differential privacy at every one of several points at once."""

    points: tuple[tuple[Fraction, Fraction], ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise InvalidParameter("a privacy profile needs at least one point (epsilon, delta).")
        for epsilon, delta in self.points:
            _not_negative(epsilon, "epsilon")
            _probability(delta, "delta")


@dataclass(frozen=True)
class ZeroConcentrated:
    """ρ-zero-concentrated differential privacy."""

    rho: Fraction

    def __post_init__(self) -> None:
        _not_negative(self.rho, "rho")


@dataclass(frozen=True)
class Laplace:
    """Integer Laplace noise, P[z] ∝ e^(−|z|/scale), on one integer moved by at most `sensitivity`."""

    scale: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        _noise(self.scale, self.sensitivity)


@dataclass(frozen=True)
class Gaussian:
    """Integer Gaussian noise, P[z] ∝ e^(−z²/(2·scale²)), on one integer moved by at most `sensitivity`."""

    scale: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        _noise(self.scale, self.sensitivity)


@dataclass(frozen=True)
class Crowd:
    """(k, ε)-crowd-blending privacy: everyone blends with k people or is ignored.  Alone it has no finite ε."""

    k: int
    epsilon: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InvalidParameter("a crowd needs k of at least 1.")
        _not_negative(self.epsilon, "epsilon")


@dataclass(frozen=True)
class NoisyWhenSmall(Crowd):
    """The counts of all bins of a public partition: exact from k on, below k with noise that is ε-private.

    Counts j − 1 and j below k are told apart at a ratio of e^ε at most.  That is (k, ε)-crowd-blending, so whatever
    holds for a `Crowd` holds here; under a secret sample it is worth more, because in a bin of k or more people who are
    exchanged change nothing at all.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epsilon == 0:
            raise InvalidParameter("noise on small counts has an epsilon above 0; without noise they are suppressed.")


@dataclass(frozen=True)
class Syntactic:
    """A property of the output table such as k-anonymity: an honest name, and no epsilon.

    A parameter is an exact number or a key, or a list of names.
    """

    criterion: str
    parameters: tuple[tuple[str, str | tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Sequence:
    """All of `parts`, on the same rows."""

    parts: tuple[Loss, ...]


@dataclass(frozen=True)
class Parallel:
    """Each of `parts` on its own block of a partition of the record domain that was fixed without looking at rows."""

    parts: tuple[Loss, ...]


@dataclass(frozen=True)
class Sampled:
    """`inner`, computed on a secret Poisson sample of the rows.

    `sample` names a sample that outlives the release; None means fresh coins, used once and forgotten.
    """

    rate: Fraction
    inner: Loss
    sample: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise InvalidParameter("a sampling rate lies strictly between 0 and 1.")


@dataclass(frozen=True)
class RobustlySampled:
    """`inner` on a secret sample whose rates differ from person to person.

    All but `irregular` people have a rate between `low` and `high`; nobody's rate is above `max_rate`.  A sample called
    `THE_ROWS` was drawn before the rows came here: then nothing else can be released from them.
    """

    low: Fraction
    high: Fraction
    irregular: int
    max_rate: Fraction
    inner: Crowd
    sample: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high < 1 or not self.high <= self.max_rate <= 1:
            raise InvalidParameter("biased sampling needs 0 < low ≤ high < 1 and high ≤ max_rate ≤ 1.")
        if self.irregular < 0:
            raise InvalidParameter("the number of irregular people cannot be negative.")
        if type(self.inner) is not Crowd:
            raise InvalidParameter("only a crowd is known to survive biased sampling.")


@dataclass(frozen=True)
class Grouped:
    """`inner` holds for one row; the unit has at most `size` rows, each decided by its own independent coin."""

    size: int
    inner: Loss

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InvalidParameter("a unit has at least one row.")


@dataclass(frozen=True)
class BestRun:
    """The best of K independent runs of `inner`, each of which publishes a score of its own, and nothing of the others.

    K is secret and follows the logarithmic law: P[K = k] = (1 − γ)^k / (k · ln(1/γ)) for k = 1, 2, ….
    """

    gamma: Fraction
    inner: Loss

    def __post_init__(self) -> None:
        if not 0 < self.gamma < 1:
            raise InvalidParameter("the law of the number of runs has a gamma strictly between 0 and 1.")
        if not isinstance(self.inner, (Pure, ZeroConcentrated)):
            raise InvalidParameter("a random number of runs is priced where each is ε- or ρ-private alone.")


Loss = (
    Pure
    | Approximate
    | Profile
    | ZeroConcentrated
    | Laplace
    | Gaussian
    | Crowd
    | NoisyWhenSmall
    | Syntactic
    | Sequence
    | Parallel
    | Sampled
    | RobustlySampled
    | Grouped
    | BestRun
)


def walk(loss: Loss) -> Iterator[Loss]:
    """Yield the loss and everything below it.

    >>> [type(part).__name__ for part in walk(Sampled(Fraction(1, 10), Crowd(20)))]
    ['Sampled', 'Crowd']
    """
    yield loss
    if isinstance(loss, (Sequence, Parallel)):
        for part in loss.parts:
            yield from walk(part)
    elif isinstance(loss, (Sampled, RobustlySampled, Grouped, BestRun)):
        yield from walk(loss.inner)


def samples_named(loss: Loss) -> tuple[str, ...]:
    """Return the names of the samples that outlive the release, in order, repeated if used repeatedly."""
    return tuple(
        part.sample for part in walk(loss) if isinstance(part, (Sampled, RobustlySampled)) and part.sample is not None
    )


def stated(loss: Loss) -> Approximate | None:
    """Return the exact (ε, δ) of a loss made of guarantees: sums on the same rows, the worst block of a partition.

    Exact, so that ten charges of 0.1 fill a budget of 1.  None if some part has a curve instead.

    >>> stated(Sequence((Pure(Fraction(1, 10)),) * 10)).epsilon
    Fraction(1, 1)
    """
    match loss:
        case Pure(epsilon):
            return Approximate(epsilon, Fraction(0))
        case Approximate():
            return loss
        case Laplace(scale, sensitivity):
            return Approximate(sensitivity / scale, Fraction(0))
        case BestRun(_, Pure(epsilon)):
            return Approximate(2 * epsilon, Fraction(0))
        case Grouped(size, inner) if (row := stated(inner)) is not None and not row.delta:
            return Approximate(size * row.epsilon, Fraction(0))
        case Sequence(parts) | Parallel(parts) if parts:
            guarantees = [guarantee for part in parts if (guarantee := stated(part)) is not None]
            join = max if isinstance(loss, Parallel) else sum
            if len(guarantees) == len(parts) and (delta := join(part.delta for part in guarantees)) <= 1:
                return Approximate(Fraction(join(part.epsilon for part in guarantees)), Fraction(delta))
    return None


class Rule(KeyedText):
    """A rule by which an accountant bounds a loss; several name a rule and what was then done to its bound."""

    STATED = "as-stated", "as stated"
    SUMS = "sums", "sums"
    CONCENTRATED = "zero-concentrated", "zero-concentrated"
    ACCOUNT = "zero-concentrated-account", "zero-concentrated account"
    RUNS = "best-run", "best of a random number of runs"
    LAPLACE = "integer-laplace", "integer Laplace noise"
    GAUSSIAN = "integer-gaussian", "integer Gaussian noise"
    DISTRIBUTION = "privacy-loss-distribution", "privacy loss distribution"
    SUPPRESSION = "sampled-suppression", "sampled suppression, tight bound"
    COMPOSED_SUPPRESSION = "sampled-suppression-composed", "sampled suppression, composed envelope"
    CROWD = "sampled-crowd", "crowd-blending after sampling, exact worst case"
    NOISY_CROWD = "sampled-noisy-counts", "noisy small counts after sampling, tight bound"
    BIASED_CROWD = "biased-sample-crowd", "crowd-blending after biased sampling, exact worst case"
    AMPLIFIED = "amplified", "amplified by sampling"
    GROUPED = "grouped-rows", "group privacy over a person's rows"
    NONE = "unbounded", "no finite bound"


def _not_negative(value: Fraction, name: str) -> None:
    if value < 0:
        raise InvalidParameter(f"{name} cannot be negative.")


def _probability(value: Fraction, name: str) -> None:
    if not 0 <= value <= 1:
        raise InvalidParameter(f"{name} is a probability: between 0 and 1.")


def _noise(scale: Fraction, sensitivity: int) -> None:
    if scale <= 0:
        raise InvalidParameter("the scale of noise must be positive.")
    if sensitivity < 1:
        raise InvalidParameter("the sensitivity must be a whole number of at least 1.")


TAGS: dict[str, type] = {
    "pure": Pure,
    "approximate": Approximate,
    "profile": Profile,
    "zero-concentrated": ZeroConcentrated,
    "laplace": Laplace,
    "gaussian": Gaussian,
    "crowd": Crowd,
    "noisy-when-small": NoisyWhenSmall,
    "syntactic": Syntactic,
    "sequence": Sequence,
    "parallel": Parallel,
    "sampled": Sampled,
    "robustly-sampled": RobustlySampled,
    "grouped": Grouped,
    "best-run": BestRun,
}
_TAG_OF = {cls: tag for tag, cls in TAGS.items()}


def to_json(loss: Loss) -> dict[str, Any]:
    """Return the plain form of a loss.

    >>> to_json(Sampled(Fraction(1, 10), Crowd(20)))
    {'loss': 'sampled', 'rate': '1/10', 'inner': {'loss': 'crowd', 'k': 20, 'epsilon': '0'}, 'sample': None}
    """
    tag = _TAG_OF.get(type(loss))
    if tag is None:
        raise UnknownLoss(f"a loss of class {type(loss).__name__} cannot be written down: no tag is declared for it.")
    return {"loss": tag} | {field.name: _plain(getattr(loss, field.name)) for field in fields(loss)}


def from_json(plain: Mapping[str, Any]) -> Loss:
    """Read what `to_json` wrote; an unknown class or field is refused.

    >>> from_json({"loss": "pure", "epsilon": "1/2"})
    Pure(epsilon=Fraction(1, 2))
    """
    tag = plain.get("loss")
    cls = TAGS.get(tag) if isinstance(tag, str) else None
    if cls is None:
        raise UnknownLoss(f"the loss class {tag!r} is not known here; a newer version of incrowd may know it.")
    names = [field.name for field in fields(cls)]
    if set(plain) != {"loss", *names}:
        raise UnknownLoss(f"a loss of class {tag!r} has exactly the fields {', '.join(names)}.")
    try:
        return cast("Loss", cls(**{name: _READ[name](plain[name]) for name in names}))
    except (TypeError, ValueError, KeyError, ZeroDivisionError, AttributeError) as error:
        raise InvalidParameter(f"a loss of class {tag!r} holds a field that cannot be read.") from error


def _plain(value: Any) -> Any:
    match value:
        case Fraction():
            return str(value)
        case tuple():
            return [_plain(item) for item in value]
        case None | str() | int():
            return value
        case _:
            return to_json(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _fraction(value: object) -> Fraction:
    return Fraction(short(_text(value)))


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _points(value: Any) -> tuple[tuple[Fraction, Fraction], ...]:
    return tuple((_fraction(epsilon), _fraction(delta)) for epsilon, delta in value)


def _pairs(value: Any) -> tuple[tuple[str, str | tuple[str, ...]], ...]:
    return tuple((_text(name), _parameter(parameter)) for name, parameter in value)


def _parameter(value: Any) -> str | tuple[str, ...]:
    return tuple(map(_text, value)) if isinstance(value, list) else _text(value)


_READ: dict[str, Callable[[Any], Any]] = {
    "epsilon": _fraction,
    "delta": _fraction,
    "rho": _fraction,
    "scale": _fraction,
    "rate": _fraction,
    "low": _fraction,
    "high": _fraction,
    "max_rate": _fraction,
    "gamma": _fraction,
    "k": _whole,
    "sensitivity": _whole,
    "size": _whole,
    "irregular": _whole,
    "criterion": _text,
    "sample": _optional_text,
    "points": _points,
    "parameters": _pairs,
    "parts": lambda value: tuple(from_json(part) for part in value),
    "inner": from_json,
}
