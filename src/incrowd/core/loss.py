"""Loss: what a release costs, as a plain tree that accountants read.

The tree describes and never interprets: a better accountant may reread an old ledger and compute a smaller number.
So no class here is ever removed and no meaning ever changes, and an accountant refuses a class that it does not know.
All numbers are exact.  A loss is stated for the unit (and its adjacency) of the guarantee around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache, partial
from typing import Any, cast, get_type_hints

from incrowd.core.codec import encode, read_as
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
class GaussianRounds:
    """Integer Gaussian noise on many integers, in rounds whose scales and sensitivities were fixed before the first.

    What is summed in a round may depend on earlier answers.  Of all rounds together: `rho` is half the sum of squares
    of move/scale over the integers that one unit moves, no scale is below `scale`, and at most `moved` integers move.
    """

    rho: Fraction
    scale: Fraction
    moved: int

    def __post_init__(self) -> None:
        _not_negative(self.rho, "rho")
        _noise(self.scale, self.moved)


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
    """A property of the output table such as k-anonymity: a name, and no epsilon.

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
            raise InvalidParameter("biased sampling is proved only for a crowd.")


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
            raise InvalidParameter(
                "a random number of runs has a known cost only if each run is ε- or ρ-private alone."
            )


Loss = (
    Pure
    | Approximate
    | Profile
    | ZeroConcentrated
    | Laplace
    | Gaussian
    | GaussianRounds
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


class LossRule(KeyedText):
    """A rule by which an accountant bounds a loss; several name a rule and what was then done to its bound."""

    STATED = "as-stated", "as stated"
    SUMS = "sums", "sums"
    CONCENTRATED = "zero-concentrated", "zero-concentrated"
    ACCOUNT = "zero-concentrated-account", "zero-concentrated account"
    RUNS = "best-run", "best of a random number of runs"
    LAPLACE = "integer-laplace", "integer Laplace noise"
    GAUSSIAN = "integer-gaussian", "integer Gaussian noise"
    GAUSSIAN_ROUNDS = "gaussian-rounds", "integer Gaussian noise in rounds fixed in advance"
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
    "gaussian-rounds": GaussianRounds,
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
        raise UnknownLoss(f"a loss of class {type(loss).__name__} cannot be stored: it has no tag.")
    return {"loss": tag} | {field.name: _plain(getattr(loss, field.name)) for field in fields(loss)}


def from_json(plain: Mapping[str, Any]) -> Loss:
    """Read what `to_json` wrote; an unknown class or field is refused.

    >>> from_json({"loss": "pure", "epsilon": "1/2"})
    Pure(epsilon=Fraction(1, 2))
    """
    tag = plain.get("loss")
    cls = TAGS.get(tag) if isinstance(tag, str) else None
    if cls is None:
        raise UnknownLoss(f"the loss class {tag!r} is unknown to this version of incrowd: use a newer version.")
    readers = _readers(cls)
    if set(plain) != {"loss", *readers}:
        raise UnknownLoss(f"a loss of class {tag!r} has exactly the fields {', '.join(readers)}.")
    try:
        return cast("Loss", cls(**{name: read(plain[name]) for name, read in readers.items()}))
    except (TypeError, ValueError, KeyError, ZeroDivisionError, AttributeError) as error:
        raise InvalidParameter(f"a loss of class {tag!r} holds a field that cannot be read.") from error


def _plain(value: Any) -> Any:
    match value:
        case tuple():
            return [_plain(item) for item in value]
        case Fraction() | str() | int() | None:
            return encode(value)
    return to_json(value)


@cache
def _readers(cls: type) -> dict[str, Callable[[Any], Any]]:
    """Return what reads each field of a loss class: a loss by its tag, anything else by its type."""
    own: dict[str, Callable[[Any], Any]] = {"inner": from_json, "parts": lambda parts: tuple(map(from_json, parts))}
    hints = get_type_hints(cls)
    return {item.name: own.get(item.name) or partial(read_as, hints[item.name]) for item in fields(cls)}
