"""Choice: the best randomizer for a domain and an ε, by its expected error, beside the optimum that nobody beats."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.hashed import SIZES, HadamardResponse, LocalHashing
from incrowd.methods.local.mechanisms.numbers import Duchi, Mixture, Numeric, Window, best_mixture, best_window
from incrowd.methods.local.mechanisms.options import OptionBits
from incrowd.methods.local.mechanisms.randomizer import Categorical, Family, LevelTree, Randomness, Response
from incrowd.methods.local.mechanisms.ratio import Weights
from incrowd.methods.local.mechanisms.sets import LONGEST, OptimalUnary, SubsetSelection, SymmetricUnary

NEAR = Fraction(51, 50)
"""Among randomizers whose error is within 2 % of the least, the one with the smallest reports is taken."""
_SEED_BITS = 53  # a seed is drawn in the browser too, where whole numbers end at 2⁵³


def optimum(size: int, epsilon: float) -> float:
    """Return the least error that any ε-local report allows: the sum of variances of all shares, times n.

    It holds for unbiased estimates, and people who are drawn at random from evenly spread values.

    Source: Ye & Barg 2018, min over w of (d − 1)² (w e^ε + d − w)² / (d (e^ε − 1)² w (d − w)).

    >>> round(optimum(2, 1.0), 6)
    2.341347
    """
    e = math.exp(epsilon)
    near = size / (e + 1.0)
    widths = {min(size - 1, max(1, width)) for width in (math.floor(near), math.ceil(near))}
    top = (size - 1) ** 2 / (size * (e - 1.0) ** 2)
    return min(top * (w * e + size - w) ** 2 / (w * (size - w)) for w in widths)


def randomizers(size: int, weights: Weights, half: Weights | None = None) -> Iterator[Categorical]:
    """Yield every randomizer of a domain with some weights, each at its best width; `half` are those of ε / 2."""
    yield Response(size, weights)
    if size <= LONGEST:
        if half is not None:
            yield SymmetricUnary(size, half)
        yield OptimalUnary(size, weights)
        yield best_subset(size, weights)
    yield HadamardResponse(size, weights)
    yield best_hashing(size, weights)


def best_subset(size: int, weights: Weights) -> SubsetSelection:
    """Return subset selection with the width of least error: one of the two next to d / (r + 1).

    >>> best_subset(100, Weights.below(Fraction(1))).width
    27
    """
    near = Fraction(size) / (weights.value + 1)
    widths = {min(size - 1, max(1, width)) for width in (math.floor(near), math.ceil(near))}
    return min(
        (SubsetSelection(size, weights, width) for width in sorted(widths)), key=lambda selection: selection.error
    )


def best_hashing(size: int, weights: Weights) -> LocalHashing:
    """Return local hashing with as many hashed values as give the least error; powers of primes alone are tried.

    >>> best_hashing(1000, Weights.below(Fraction(1))).width
    4
    """
    fit = (width for width in SIZES if width <= 2 * weights.value + 8 and _seed_bits(size, width) <= _SEED_BITS)
    tried = [LocalHashing(size, weights, width) for width in fit]
    if not tried:
        raise InvalidParameter("so many values cannot be hashed into numbers of 53 bits: shorten the words.")
    return min(tried, key=lambda hashing: hashing.error)


def _seed_bits(size: int, width: int) -> float:
    places = 1
    while width**places < size:
        places += 1
    return (places + 1) * math.log2(width)


def best(size: int, weights: Weights, half: Weights | None = None) -> Categorical:
    """Return the randomizer of least expected error, or one within 2 % of it whose reports are smaller.

    >>> best(2, Weights(3, 1)).family, best(1000, Weights.below(Fraction(1))).family
    (<Family.RESPONSE: 'response'>, <Family.HASHING: 'local-hashing'>)
    """
    tried = list(randomizers(size, weights, half))
    least = min(randomizer.error for randomizer in tried)
    return min(
        (randomizer for randomizer in tried if randomizer.error <= NEAR * least),
        key=lambda randomizer: (randomizer.bits, randomizer.error),
    )


def categorical(family: Family | None, size: int, weights: Weights, half: Weights) -> Categorical:
    """Return the randomizer of a family at its best width, or the best of all where none is named."""
    if family is None:
        return best(size, weights, half)
    fitting = [randomizer for randomizer in randomizers(size, weights, half) if randomizer.family is family]
    if not fitting:
        raise InvalidParameter(
            f"{family} does not fit a question of {size} values. Leave mechanism out, or name another."
        )
    return fitting[0]


def numeric(family: Family | None, size: int, weights: Weights) -> Numeric:
    """Return the randomizer of numbers of a family at its best width; the mixture is the best of all.

    >>> numeric(None, 100, Weights.below(Fraction(1))).family
    <Family.MIXTURE: 'mixture'>
    """
    match family:
        case Family.DUCHI:
            return Duchi(size, weights)
        case Family.WINDOW:
            return best_window(size, weights)
        case Family.MIXTURE | None:
            return best_mixture(size, weights)
    raise InvalidParameter(f"{family} does not fit a number. Leave mechanism out, or write duchi, window or mixture.")


def options(size: int, most: int, epsilon: Fraction) -> OptionBits:
    """Return the randomizer of several answers, of which `most` may be chosen: ε is divided among options that differ.

    >>> options(6, 2, Fraction(2)).width
    4
    """
    width = min(size, 2 * most)
    return OptionBits(size, Weights.below(epsilon / width), width)


def tree(size: int, steps: tuple[int, ...], weights: Weights, half: Weights) -> LevelTree:
    """Return the tree whose levels have the best randomizer each.

    >>> [level.size for level in tree(64, (16, 4, 1), Weights(3, 1), Weights(3, 2)).levels]
    [4, 16, 64]
    """
    return LevelTree(size, steps, tuple(best(-(-size // step), weights, half) for step in steps))


def randomizer_of(randomness: Randomness) -> Categorical | Numeric:
    """Return the randomizer whose weights were told, or refuse weights that no randomizer has.

    >>> randomizer_of(Randomness(Family.RESPONSE, 2, 3, 1)).ratio
    Fraction(3, 1)
    """
    weights, width, share = Weights(randomness.own, randomness.other), randomness.width, randomness.share
    simple = {cls.family: cls for cls in (Response, SymmetricUnary, OptimalUnary, HadamardResponse, Duchi)}
    wide = {cls.family: cls for cls in (LocalHashing, SubsetSelection, OptionBits, Window)}
    if randomness.family in simple and width is None and share is None:
        return simple[randomness.family](randomness.size, weights)
    if randomness.family in wide and width is not None and share is None:
        return wide[randomness.family](randomness.size, weights, width)
    if randomness.family is Family.MIXTURE and width is not None and share is not None:
        return Mixture(randomness.size, weights, width, share)
    raise InvalidParameter("no randomizer has such weights.")
