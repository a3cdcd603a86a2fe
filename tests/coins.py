"""Coins for tests only: scripted, seeded, and coins that come up in every possible way."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins, Sample
from incrowd.noise.chance import rational
from incrowd.noise.integers import gaussian, laplace, outliers
from incrowd.noise.positioned import PositionedSample
from incrowd.noise.toss import Words, below, decay, toss
from tests.slow_cube import slow_cube

Outcome = TypeVar("Outcome", bound=Hashable)
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class ScriptedSample:
    """A sample whose members, positions or ids, are written down."""

    rate: Fraction
    members: frozenset[int]

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        return np.array([row in self.members for row in range(start, stop)], dtype=np.bool_)

    def of(self, ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
        return np.array([int(row) in self.members for row in ids], dtype=np.bool_)


class ScriptedCoins:
    """Coins that come up as written, method by method; asking for more than was written is an error."""

    def __init__(self, members: Iterable[int] = (), **script: Iterable[int]) -> None:
        self.members = frozenset(members)
        self.script = {name: deque(values) for name, values in script.items()}

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        return self._next("bernoulli", size).astype(np.bool_)

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        values = self._next("below", size)
        assert (values < bound).all(), "the script of `below` does not keep to its bound"
        return values

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return self._next("laplace", size)

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return self._next("gaussian", size)

    def cube(self, widths: tuple[int, ...], fine: int, scale: Fraction, size: int) -> NDArray[np.int64]:
        return self._next("cube", size * len(widths)).reshape(size, len(widths))

    def decay(self, scale: Fraction, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        return self._next("decay", steps.size).astype(np.bool_)

    def outliers(self, scale: Fraction, least: int, size: int) -> Pairs:
        return _outliers(self.laplace(scale, size), least)

    def sample(self, rate: Fraction) -> Sample:
        return ScriptedSample(rate, self.members)

    @property
    def used_up(self) -> bool:
        return not any(self.script.values())

    def _next(self, name: str, size: int) -> NDArray[np.int64]:
        left = self.script.get(name, deque())
        assert len(left) >= size, f"the script of `{name}` is too short"
        return np.array([left.popleft() for _ in range(size)], dtype=np.int64)


@dataclass(frozen=True)
class SeededCoins:
    """The real samplers, and that of cubes as it was, on reproducible words: for golden tests, never for releases."""

    seed: int
    _words: Words = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_words", seeded_words(self.seed))

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        return toss(self._words, rational(probability), size)

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        return below(self._words, bound, size)

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return laplace(self._words, scale, size)

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return gaussian(self._words, scale, size)

    def cube(self, widths: tuple[int, ...], fine: int, scale: Fraction, size: int) -> NDArray[np.int64]:
        return slow_cube(self._words, widths, fine, scale, size)

    def decay(self, scale: Fraction, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        return decay(self._words, scale, steps)

    def outliers(self, scale: Fraction, least: int, size: int) -> Pairs:
        return outliers(self._words, scale, least, size)

    def sample(self, rate: Fraction) -> Sample:
        return PositionedSample(rate, self._words(4).tobytes(), self._words(4).tobytes())


def seeded_words(seed: int) -> Words:
    """Return uniform words that are the same for the same seed."""
    generator = np.random.default_rng(seed)
    return lambda size: generator.integers(0, 2**64, size=size, dtype=np.uint64)


class Abandoned(Exception):
    """This run does not end within the rounds that are looked at."""


class Branching:
    """A choice among alternatives that, run after run, comes up in every possible way."""

    def __init__(self) -> None:
        self.path: list[tuple[int, tuple[float, ...]]] = []
        self.depth = 0

    def choose(self, chances: Iterable[float]) -> int:
        """Return the alternative of this run, one with a positive chance."""
        if self.depth == len(self.path):
            options = tuple(chances)
            self.path.append((next(i for i, chance in enumerate(options) if chance > 0), options))
        self.depth += 1
        return self.path[self.depth - 1][0]

    def chance(self) -> float:
        """Return the chance of this run."""
        return math.prod(options[choice] for choice, options in self.path)

    def advance(self) -> bool:
        """Go to the next run; return whether there is one."""
        self.depth = 0
        while self.path:
            choice, options = self.path.pop()
            later = [i for i in range(choice + 1, len(options)) if options[i] > 0]
            if later:
                self.path.append((later[0], options))
                return True
        return False


def law(run: Callable[[Branching], Outcome]) -> dict[Outcome, float]:
    """Return the probability of every outcome of `run`, except of runs that are abandoned."""
    branching = Branching()
    chances: defaultdict[Outcome, list[float]] = defaultdict(list)
    while True:
        with suppress(Abandoned):
            chances[run(branching)].append(branching.chance())
        if not branching.advance():
            return {outcome: math.fsum(parts) for outcome, parts in chances.items()}


@dataclass
class EveryCoin:
    """Coins that come up in every possible way.

    Noise is looked at between −reach and reach; what lies beyond counts as the end.  Only the first `rounds` calls of
    `below` are answered, later ones abandon the run: a rejection sampler's law is then the law of its rounds, up to a
    common factor.
    """

    branching: Branching
    reach: int = 8
    rounds: int = 100

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        return self._coins([float(probability)] * size)

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        self.rounds -= 1
        if self.rounds < 0:
            raise Abandoned
        return np.array([self.branching.choose([1 / bound] * bound) for _ in range(size)], dtype=np.int64)

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        a = math.exp(-1 / scale)
        inner = [(1 - a) / (1 + a) * a ** abs(z) for z in range(1 - self.reach, self.reach)]
        end = a**self.reach / (1 + a)
        return self._integers([end, *inner, end], size)

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        weights = [math.exp(-(z**2) / (2 * float(scale) ** 2)) for z in range(-self.reach, self.reach + 1)]
        return self._integers([weight / math.fsum(weights) for weight in weights], size)

    def cube(self, widths: tuple[int, ...], fine: int, scale: Fraction, size: int) -> NDArray[np.int64]:
        points = cube_points(widths, self.reach)
        weights = [math.exp(-cube_radius(point, widths, fine) / scale) for point in points]
        masses = [weight / math.fsum(weights) for weight in weights]
        chosen = [points[self.branching.choose(masses)] for _ in range(size)]
        return np.array(chosen, dtype=np.int64).reshape(size, len(widths))

    def decay(self, scale: Fraction, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        return self._coins([math.exp(-int(n) / scale) for n in steps])

    def outliers(self, scale: Fraction, least: int, size: int) -> Pairs:
        return _outliers(self.laplace(scale, size), least)

    def sample(self, rate: Fraction) -> Sample:
        raise NotImplementedError

    def _coins(self, chances: list[float]) -> NDArray[np.bool_]:
        return np.array([self.branching.choose([1 - p, p]) for p in chances], dtype=np.bool_)

    def _integers(self, masses: list[float], size: int) -> NDArray[np.int64]:
        return np.array([self.branching.choose(masses) - self.reach for _ in range(size)], dtype=np.int64)


def law_of(run: Callable[[Coins], Outcome], reach: int = 8, rounds: int = 100) -> dict[Outcome, float]:
    """Return the probability of every outcome of a mechanism, as far as `reach` and `rounds` go."""
    return law(lambda branching: run(EveryCoin(branching, reach, rounds)))


def largest_loss(one: dict[Outcome, float], other: dict[Outcome, float]) -> float:
    """Return the largest |ln(P/Q)| over all outcomes; infinite if an outcome is possible under one law only."""
    if one.keys() != other.keys():
        return math.inf
    return max(abs(math.log(one[outcome] / other[outcome])) for outcome in one)


def cube_points(widths: tuple[int, ...], reach: int) -> list[tuple[int, ...]]:
    """Return the integer vectors within ±reach · width_j."""
    return list(itertools.product(*(range(-reach * width, reach * width + 1) for width in widths)))


def cube_radius(point: tuple[int, ...], widths: tuple[int, ...], fine: int) -> int:
    """Return the largest ⌈fine · |x_j| / width_j⌉."""
    return max(-(-fine * abs(x) // width) for x, width in zip(point, widths, strict=True))


def _outliers(noise: NDArray[np.int64], least: int) -> Pairs:
    where = np.flatnonzero(noise >= least)
    return where, noise[where]
