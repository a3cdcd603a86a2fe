"""Transcripts: what each mechanism of a real release got and gave, and the same release forced to give it again.

`Recorder` and `Replayer` are coins.  Noise that they draw is a `Noise`: the sum with it is the outcome of a mechanism,
wherever it is formed.  A recorder writes down inputs, law and outcome; a replayer returns the outcome that was
recorded, and the two inputs give the divergence.  Selections, thresholds and noise of a sensitivity of its own are met
at the mechanism (`PLACES`, the only names of the product that are patched, and for tests only).

Other randomness (which rows of a person are kept, which fold a row goes to, seeds) is a function of the call and of the
place in it: two runs have the same, and a row that is added at the end changes no other row's.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Sample
from incrowd.mechanisms import selection
from incrowd.mechanisms.add_noise import AddLaplace, Threshold
from incrowd.mechanisms.polynomial import PolynomialNoise
from tests.coins import Pairs, SeededCoins
from tests.replay.laws import (
    CubeLaw,
    Divergence,
    GaussianLaw,
    LaplaceLaw,
    Law,
    Numbers,
    PolynomialLaw,
    SelectionLaw,
    ThresholdLaw,
)

_DEALT = 2**16
"""Rows are dealt to fewer folds and trees than this; keys and seeds have larger bounds."""


class Untraceable(AssertionError):
    """A release did something that a transcript cannot follow."""


class Unequal(AssertionError):
    """Two runs with the same outcomes differ in something that is not an outcome: the loss is infinite."""


@dataclass(frozen=True, eq=False)
class Event:
    """One mechanism: its law, what it got, and what it gave."""

    law: Law
    inputs: Numbers
    outcome: Any


@dataclass(frozen=True)
class Chance:
    """The randomness beside the mechanisms: the same for two neighbors.

    `together` deals all rows of a call to one fold or tree: where a row comes between others, the places of those
    behind it change, and nothing else may.  `runs` is how often a model is tried.
    """

    seed: int
    together: bool = False
    runs: int = 1


class Listener:
    """Coins whose noise is followed to the number that it is added to."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.tosses = self.draws = 0
        self.rates: list[Fraction] = []
        self.calls: Counter[str] = Counter()

    def noise(self, law: Law, inputs: Numbers, draw: Callable[[], Numbers]) -> Numbers:
        """Return a sum with noise."""
        raise NotImplementedError

    def event(self, law: Law, inputs: Numbers, draw: Callable[[SeededCoins], Any]) -> Any:
        """Return the outcome of a mechanism that is met as a whole."""
        raise NotImplementedError

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        """Toss coins, of which the first that is true ends the runs of a tuning."""
        if size != 1:
            raise Untraceable("an answer is randomized by coins of its own: its law is enumerated, not replayed.")
        self.tosses += 1
        return np.array([self.tosses >= self.chance.runs])

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        """Draw numbers, one for each place; a number of runs is always accepted."""
        fresh = self._fresh()
        if self.tosses and bound == self.chance.runs and size == 1:
            self.tosses = 0
            return np.zeros(1, np.int64)
        if self.chance.together and bound < _DEALT:
            return np.full(size, fresh.integers(0, bound), np.int64)
        return fresh.integers(0, bound, size, dtype=np.int64)

    def laplace(self, scale: Fraction, size: int) -> Any:
        return self._drawn(LaplaceLaw(scale), self._coins().laplace(scale, size))

    def gaussian(self, scale: Fraction, size: int) -> Any:
        return self._drawn(GaussianLaw(scale), self._coins().gaussian(scale, size))

    def cube(self, widths: tuple[int, ...], fine: int, scale: Fraction, size: int) -> Any:
        return self._drawn(CubeLaw(widths, fine, scale), self._coins().cube(widths, fine, scale, size))

    def decay(self, scale: Fraction, steps: NDArray[np.int64]) -> NoReturn:
        raise Untraceable("a selection is drawn outside of the mechanisms that the transcript follows (PLACES).")

    def outliers(self, scale: Fraction, least: int, size: int) -> Pairs:
        raise Untraceable(
            "noise of empty bins is drawn outside of the mechanisms that the transcript follows (PLACES)."
        )

    def sample(self, rate: Fraction) -> Sample:
        """Return a sample that has every row: what is drawn from it is compared with the loss inside the sample."""
        self.rates.append(rate)
        return WholeSample(rate)

    def _drawn(self, law: Law, values: Numbers) -> Noise:
        return Noise(self, law, values)

    def _fresh(self) -> np.random.Generator:
        """Return a stream of its own for each call from a place of the code; an empty table may have one less."""
        code = sys._getframe(2).f_code
        place = f"{code.co_filename.rpartition('/')[2]} {code.co_qualname}"
        self.calls[place] += 1
        return np.random.default_rng((self.chance.seed, *place.encode(), self.calls[place]))

    def _coins(self) -> SeededCoins:
        self.draws += 1
        return SeededCoins(self.chance.seed * 1_000_003 + self.draws)


@dataclass(frozen=True)
class WholeSample:
    """A sample in which every row is."""

    rate: Fraction

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        return np.ones(stop - start, np.bool_)

    def of(self, ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
        return np.ones(len(ids), np.bool_)


class Recorder(Listener):
    """Coins that write down every mechanism of a release."""

    def __init__(self, chance: Chance) -> None:
        super().__init__(chance)
        self.events: list[Event] = []

    def noise(self, law: Law, inputs: Numbers, draw: Callable[[], Numbers]) -> Numbers:
        total: Numbers = self._written(law, inputs, inputs + draw())
        return total

    def event(self, law: Law, inputs: Numbers, draw: Callable[[SeededCoins], Any]) -> Any:
        return self._written(law, inputs, draw(self._coins()))

    def _written(self, law: Law, inputs: Numbers, outcome: Any) -> Any:
        self.events.append(Event(law, np.array(inputs), outcome))
        return outcome.copy() if isinstance(outcome, np.ndarray) else outcome


class Replayer(Listener):
    """Coins that force every mechanism to the outcome that was recorded."""

    def __init__(self, chance: Chance, events: list[Event]) -> None:
        super().__init__(chance)
        self.events = events
        self.inputs: list[Numbers] = []

    def noise(self, law: Law, inputs: Numbers, draw: Callable[[], Numbers]) -> Numbers:
        return np.array(self._forced(law, inputs))

    def event(self, law: Law, inputs: Numbers, draw: Callable[[SeededCoins], Any]) -> Any:
        return self._forced(law, inputs)

    def _drawn(self, law: Law, values: Numbers) -> Noise:
        return Noise(self, law, np.zeros_like(values))

    def _forced(self, law: Law, inputs: Numbers) -> Any:
        place = len(self.inputs)
        if place == len(self.events):
            raise Unequal(f"the neighbor runs a mechanism more than the {place} that were recorded: {law}.")
        event = self.events[place]
        if law != event.law:
            raise Unequal(f"mechanism {place} is {law} for the neighbor, and was {event.law}.")
        if not isinstance(law, ThresholdLaw) and inputs.shape != event.inputs.shape:
            raise Unequal(
                f"mechanism {place} gets {inputs.shape} numbers for the neighbor, and got {event.inputs.shape}."
            )
        self.inputs.append(np.array(inputs))
        return law.carried(event.outcome, event.inputs, inputs) if isinstance(law, ThresholdLaw) else event.outcome

    def divergences(self) -> list[Divergence]:
        """Return what each mechanism lost, once the whole transcript was forced."""
        if len(self.inputs) < len(self.events):
            raise Unequal(f"the neighbor runs {len(self.inputs)} mechanisms, and {len(self.events)} were recorded.")
        return [
            event.law.divergence(event.inputs, inputs) for event, inputs in zip(self.events, self.inputs, strict=True)
        ]


class Noise:
    """Noise that has not been added yet; a sum with it is an outcome, and any other use is refused."""

    __array_priority__ = 1000.0

    def __init__(self, listener: Listener, law: Law, values: Numbers) -> None:
        self.listener, self.law, self.values = listener, law, np.asarray(values)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def size(self) -> int:
        return self.values.size

    def __len__(self) -> int:
        return len(self.values)

    def reshape(self, *shape: Any) -> Noise:
        changed = self.values.reshape(*shape)
        if isinstance(self.law, CubeLaw) and changed.shape != self.values.shape:
            raise Untraceable("a vector of noise is taken apart before it is added.")
        return Noise(self.listener, self.law, changed)

    def __getitem__(self, place: Any) -> Noise:
        return Noise(self.listener, self.law, self.values[place])

    def tolist(self) -> list[Noise]:
        return [self[place] for place in range(len(self.values))]

    def __add__(self, numbers: Any) -> Any:
        inputs = np.asarray(numbers)
        if inputs.shape != self.shape:
            raise Untraceable(f"noise of shape {self.shape} is added to numbers of shape {inputs.shape}.")
        total = self.listener.noise(self.law, inputs, lambda: self.values)
        return total if total.shape else total.item()

    __radd__ = __add__

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is np.add and method == "__call__" and len(inputs) == 2 and not options:
            return self + (inputs[0] if inputs[1] is self else inputs[1])
        raise Untraceable(f"noise goes through {ufunc.__name__} before it is added.")

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function is np.stack:
            return StackedNoise(arguments[0], options.get("axis", 0))
        raise Untraceable(f"noise goes through {function.__name__} before it is added.")

    def __array__(self, *arguments: Any, **options: Any) -> NoReturn:
        raise Untraceable("noise is turned into an array before it is added.")

    def __int__(self) -> NoReturn:
        raise Untraceable("noise is turned into a number before it is added: use tolist().")

    __index__ = __float__ = __int__


class StackedNoise:
    """Several noises, stacked: each part is added for itself."""

    __array_priority__ = 1000.0

    def __init__(self, parts: list[Noise], axis: int) -> None:
        self.parts, self.axis = list(parts), axis

    def reshape(self, shape: tuple[int, ...]) -> StackedNoise:
        if shape[self.axis] != len(self.parts):
            raise Untraceable("stacked noise is reshaped before it is added.")
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc is not np.add or method != "__call__" or options:
            raise Untraceable(f"noise goes through {ufunc.__name__} before it is added.")
        values = inputs[0] if inputs[1] is self else inputs[1]
        sums = [np.take(values, place, self.axis) + part for place, part in enumerate(self.parts)]
        return np.stack(sums, axis=self.axis)


def _selection(mechanism: Any) -> SelectionLaw:
    flips = isinstance(mechanism, selection.NoisyMax)
    return SelectionLaw(Fraction(mechanism.scale), mechanism.epsilon, flips)


def _choose(original: Any, mechanism: Any, scores: Any, coins: Any) -> Any:
    if not isinstance(coins, Listener):
        return original(mechanism, scores, coins)
    return coins.event(_selection(mechanism), np.asarray(scores), lambda real: original(mechanism, scores, real))


def _list(original: Any, mechanism: Threshold, counts: Any, coins: Any) -> Any:
    if not isinstance(coins, Listener):
        return original(mechanism, counts, coins)
    kind = LaplaceLaw if isinstance(mechanism.noise, AddLaplace) else GaussianLaw
    law = ThresholdLaw(kind(mechanism.noise.scale), mechanism.threshold)
    return coins.event(law, np.asarray(counts), lambda real: original(mechanism, counts, real))


@dataclass(frozen=True, eq=False)
class PolynomialDraw:
    """Polynomial noise that has not been added yet."""

    noise: PolynomialNoise
    sensitivity: Fraction
    listener: Listener
    original: Any = field(repr=False)

    def __add__(self, value: Any) -> int:
        law, inputs = PolynomialLaw(self.noise), np.array([int(value), self.sensitivity], dtype=object)
        value_of_coin = self.listener.event(
            law, inputs, lambda real: int(value) + self.original(self.noise, self.sensitivity, real)
        )
        return int(value_of_coin)

    __radd__ = __add__


def _smooth(original: Any, mechanism: PolynomialNoise, sensitivity: Fraction, coins: Any) -> Any:
    if not isinstance(coins, Listener):
        return original(mechanism, sensitivity, coins)
    return PolynomialDraw(mechanism, sensitivity, coins, original)


PLACES: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    (selection.Exponential, "release", _choose),
    (selection.NoisyMax, "release", _choose),
    (selection, "select_each", _choose),
    (Threshold, "release", _list),
    (PolynomialNoise, "draw", _smooth),
)
"""The mechanisms that are met as a whole; every other one adds noise of the coins."""


@contextmanager
def followed() -> Iterator[None]:
    """Follow mechanisms while a release runs on coins of this module."""
    places = [(owner, name, getattr(owner, name), new) for owner, name, new in PLACES]
    patches = [
        patch.object(holder, name, _wrapped(new, original))
        for owner, name, original, new in places
        for holder in ([owner] if isinstance(owner, type) else _importers(name, original))
    ]
    for item in patches:
        item.start()
    try:
        yield
    finally:
        for item in patches:
            item.stop()


def _wrapped(new: Callable[..., Any], original: Any) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        return new(original, *arguments)

    return run


def _importers(name: str, original: Any) -> list[Any]:
    modules = [module for key, module in sys.modules.items() if key.startswith("incrowd.")]
    return [module for module in modules if vars(module).get(name) is original]
