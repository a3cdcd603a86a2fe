"""Questions: what can be asked, how an answer becomes whole numbers, and by which randomizer it is reported."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.hashed import Galois, LocalHashing
from incrowd.methods.local.mechanisms.memoized import Memoized
from incrowd.methods.local.mechanisms.numbers import Numeric
from incrowd.methods.local.mechanisms.options import OptionBits
from incrowd.methods.local.mechanisms.randomizer import MOST, Categorical, LevelTree, Randomness, Values

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

PARTS = 2**20
"""An answer between two points of a grid goes to one of them by a coin of so many parts."""
SKIPPED = -1
"""The code of a skipped question whose answer is drawn at random."""
RANDOM = "random"
SEPARATOR = ";"
"""Stands between several answers to one question."""
_LAST_LETTER = 0xFFFF
_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])(-[0-9]{2})?")
_DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")


class Asks(StrEnum):
    """What a question asks for."""

    CHOICE = "choice"
    SEVERAL = "several"
    NUMBER = "number"
    ORDERED = "ordered"
    MONTH = "month"
    WORD = "word"


@dataclass(frozen=True)
class SurveyQuestion:
    """What every question has: a name, its words, and a randomizer of its whole numbers.

    `skip` says what an empty answer stands for: one of the categories, or an answer drawn evenly at random, which is
    then randomized like any other.  So a report of a person who skipped is a mixture of the reports of those who did
    not, and the ratio of any two reports stays the same.

    `epsilon` is the part of the survey's ε that this answer may lose, where every question is answered.
    """

    asks: ClassVar[Asks]

    name: str
    text: str
    randomizer: Any
    skip: str | None = field(default=None, kw_only=True)
    epsilon: Fraction | None = field(default=None, kw_only=True)

    def _check_skip(self) -> None:
        if self.skip not in (None, RANDOM):
            raise InvalidParameter(f"skip of {self.name!r} is `random`: an answer is drawn evenly where none is given.")

    @property
    def values(self) -> int:
        """How many whole numbers an answer can be."""
        size: int = self.randomizer.size
        return size

    def filled(self, codes: Values, coins: Coins) -> Values:
        """Return codes with an evenly drawn one for each that was skipped."""
        skipped = np.flatnonzero(codes == SKIPPED)
        if not len(skipped):
            return codes
        filled = codes.copy()
        filled[skipped] = coins.below(self.values, len(skipped))
        return filled

    def _skips(self, answer: str) -> bool:
        return answer == "" and self.skip == RANDOM

    @property
    def ratio(self) -> Fraction:
        """By how much a report is likelier for one answer than for another, at most."""
        ratio: Fraction = self.randomizer.ratio
        return ratio

    @property
    def randomizers(self) -> tuple[Categorical | Numeric, ...]:
        """The randomizers of all levels."""
        return (self.randomizer,)

    @property
    def randomness(self) -> tuple[Randomness, ...]:
        """The weights of the randomizers."""
        return tuple(randomizer.randomness for randomizer in self.randomizers)

    def codes(self, answers: Sequence[str]) -> Values:
        """Return answers as whole numbers, or refuse one that is none without repeating it."""
        raise NotImplementedError

    def randomize(self, codes: Values, coins: Coins) -> Any:
        """Return one report for each answer."""
        return self.randomizer.randomize(codes, coins)

    def plain(self, reports: Any) -> list[Any]:
        """Return reports as JSON has them."""
        plain: list[Any] = self.randomizer.plain(reports)
        return plain

    def read(self, plain: Sequence[Any]) -> Any:
        """Read reports, or refuse what no report of this question can be."""
        return self.randomizer.read(plain)

    def public(self) -> dict[str, Any]:
        """Return what a page needs to ask and to randomize; whole numbers are text, since they can be large."""
        randomizers = [_public(randomizer) for randomizer in self.randomizers]
        return {
            "name": self.name,
            "text": self.text,
            "asks": str(self.asks),
            "randomizers": randomizers,
            **self._domain(),
            **({} if self.skip is None else {"skip": self.skip}),
            **({} if self.epsilon is None else {"epsilon": str(self.epsilon)}),
        }

    def _domain(self) -> dict[str, Any]:
        raise NotImplementedError

    def _refuse(self) -> InvalidParameter:
        return InvalidParameter(
            f"an answer to {self.name!r} is outside of what the survey asks for. Correct it; nothing was randomized."
        )


@dataclass(frozen=True)
class ChoiceQuestion(SurveyQuestion):
    """One of several answers; "no answer" is one of them if the survey says so."""

    asks: ClassVar[Asks] = Asks.CHOICE

    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.randomizer, Categorical) or len(set(self.labels)) != len(self.labels):
            raise InvalidParameter(f"{self.name!r} has each category once, and a randomizer of categories.")
        if self.randomizer.size != len(self.labels):
            raise InvalidParameter(f"the randomizer of {self.name!r} does not have as many values as there are labels.")
        if self.skip is not None and self.skip not in self.labels:
            raise InvalidParameter(
                f"skip of {self.name!r} is one of its categories: it is reported in place of silence."
            )

    def codes(self, answers: Sequence[str]) -> Values:
        places = {label: place for place, label in enumerate(self.labels)}
        try:
            return np.array([places[answer or self.skip or ""] for answer in answers], np.int64)
        except KeyError:
            raise self._refuse() from None

    def _domain(self) -> dict[str, Any]:
        return {"labels": list(self.labels)}

    @property
    def randomizers(self) -> tuple[Categorical | Numeric, ...]:
        """The randomizer, or the two of a memoized question: of permanent answers, and of reports of them."""
        made = self.randomizer
        return (made.permanent, made.again) if isinstance(made, Memoized) else (made,)


@dataclass(frozen=True)
class SeveralQuestion(SurveyQuestion):
    """Any number of several options up to `most`, none of them included: silence is an answer like any other."""

    asks: ClassVar[Asks] = Asks.SEVERAL

    labels: tuple[str, ...]
    most: int

    def __post_init__(self) -> None:
        made = self.randomizer
        if not isinstance(made, OptionBits) or made.size != len(self.labels) or len(set(self.labels)) != made.size:
            raise InvalidParameter(f"{self.name!r} has each option once, and a randomizer of options.")
        if any(label != label.strip(" ") or not label or SEPARATOR in label for label in self.labels):
            raise InvalidParameter(f"an option of {self.name!r} is a text without {SEPARATOR!r}, which stands between.")
        if self.skip is not None or not 1 <= self.most <= made.size or made.width != min(made.size, 2 * self.most):
            raise InvalidParameter(
                f"{self.name!r} says how many options may be chosen, and has no skip: choosing none is an answer."
            )

    def codes(self, answers: Sequence[str]) -> Values:
        codes = {answer: self._code(answer) for answer in set(answers)}
        return np.array([codes[answer] for answer in answers], np.int64)

    def _code(self, answer: str) -> int:
        chosen = [part.strip(" ") for part in answer.split(SEPARATOR)] if answer.strip(" ") else []
        places = [self.labels.index(label) if label in self.labels else -1 for label in chosen]
        if -1 in places or len(set(places)) < len(places) or len(places) > self.most:
            raise self._refuse()
        return sum(1 << place for place in places)

    def _domain(self) -> dict[str, Any]:
        return {"labels": list(self.labels), "most": str(self.most)}


@dataclass(frozen=True)
class NumberQuestion(SurveyQuestion):
    """A number between two bounds, on a grid of 2K cells; an answer inside a cell goes to one of its ends by a coin."""

    asks: ClassVar[Asks] = Asks.NUMBER

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.randomizer, Numeric) or self.low >= self.high:
            raise InvalidParameter(f"{self.name!r} lies between low and a larger high, with a randomizer of numbers.")
        self._check_skip()

    @property
    def values(self) -> int:
        return 2 * int(self.randomizer.size) * PARTS + 1

    def codes(self, answers: Sequence[str]) -> Values:
        cells = 2 * self.randomizer.size * PARTS / (self.high - self.low)
        codes = {answer: SKIPPED if self._skips(answer) else self._code(answer, cells) for answer in set(answers)}
        return np.array([codes[answer] for answer in answers], np.int64)

    def _code(self, answer: str, cells: Fraction) -> int:
        if _DECIMAL.fullmatch(answer) is None or not self.low <= (number := exact(answer)) <= self.high:
            raise self._refuse()
        return int((number - self.low) * cells + Fraction(1, 2))

    def randomize(self, codes: Values, coins: Coins) -> Any:
        points = (codes + coins.below(PARTS, len(codes))) // PARTS
        return self.randomizer.randomize(points - self.randomizer.size, coins)

    def _domain(self) -> dict[str, Any]:
        return {"low": str(self.low), "high": str(self.high)}


@dataclass(frozen=True)
class TreeQuestion(SurveyQuestion):
    """A question whose answers are reported at one level of a tree."""

    randomizer: LevelTree

    def __post_init__(self) -> None:
        if not all(isinstance(level, Categorical) for level in self.randomizer.levels):
            raise InvalidParameter(f"each level of {self.name!r} has a randomizer of its nodes.")
        self._check_skip()

    @property
    def randomizers(self) -> tuple[Categorical | Numeric, ...]:
        return self.randomizer.levels

    def public(self) -> dict[str, Any]:
        return super().public() | {"steps": [str(step) for step in self.randomizer.steps]}


@dataclass(frozen=True)
class OrderedQuestion(TreeQuestion):
    """A whole number from `first` on, of which ranges are asked."""

    asks: ClassVar[Asks] = Asks.ORDERED

    first: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if abs(self.first) > MOST:
            raise InvalidParameter(f"the numbers of {self.name!r} lie within 2^48 of zero.")

    @property
    def last(self) -> int:
        """The largest number."""
        return self.first + self.randomizer.size - 1

    def number(self, answer: str) -> int:
        """Return the whole number of an answer, or refuse what is none."""
        if re.fullmatch(r"-?[0-9]{1,9}", answer) is None:
            raise self._refuse()
        return int(answer)

    def label(self, number: int) -> str:
        """Return a whole number as an answer is written."""
        return str(number)

    def codes(self, answers: Sequence[str]) -> Values:
        codes = {answer: SKIPPED if self._skips(answer) else self._code(answer) for answer in set(answers)}
        return np.array([codes[answer] for answer in answers], np.int64)

    def _code(self, answer: str) -> int:
        number = self.number(answer)
        if not self.first <= number <= self.last:
            raise self._refuse()
        return number - self.first

    def _domain(self) -> dict[str, Any]:
        return {"first": self.label(self.first), "last": self.label(self.last)}


@dataclass(frozen=True)
class MonthQuestion(OrderedQuestion):
    """A date, of which the month is reported: months are counted from the year 0 on.

    >>> month_number("2024-02-29"), month_text(24_289)
    (24289, '2024-02')
    """

    asks: ClassVar[Asks] = Asks.MONTH

    def number(self, answer: str) -> int:
        number = month_number(answer)
        if number is None:
            raise self._refuse()
        return number

    def label(self, number: int) -> str:
        return month_text(number)


def month_number(text: str) -> int | None:
    """Return the number of the month of a date, written as 2024-02 or 2024-02-29; None if it is none."""
    match = _MONTH.fullmatch(text)
    return None if match is None else 12 * int(match[1]) + int(match[2]) - 1


def month_text(number: int) -> str:
    """Return a month as it is written."""
    return f"{number // 12:04}-{number % 12 + 1:02}"


@dataclass(frozen=True)
class WordQuestion(TreeQuestion):
    """A word of at most `length` letters of an alphabet; common ones are found from prefix to prefix."""

    asks: ClassVar[Asks] = Asks.WORD

    alphabet: str
    length: int

    def __post_init__(self) -> None:
        super().__post_init__()
        single = all(ord(letter) <= _LAST_LETTER for letter in self.alphabet)  # one unit of UTF-16, as in a browser
        if not single or len(set(self.alphabet)) != len(self.alphabet) or not self.alphabet or self.length < 1:
            raise InvalidParameter(f"the alphabet of {self.name!r} has each of its letters once.")
        if self.randomizer.size != (len(self.alphabet) + 1) ** self.length:
            raise InvalidParameter(f"the randomizer of {self.name!r} does not have as many values as there are words.")

    def codes(self, answers: Sequence[str]) -> Values:
        return np.array([SKIPPED if self._skips(answer) else self._code(answer) for answer in answers], np.int64)

    def _code(self, answer: str) -> int:
        base = len(self.alphabet) + 1
        if len(answer) > self.length or any(letter not in self.alphabet for letter in answer):
            raise self._refuse()
        code = 0
        for place in range(self.length):
            code = code * base + (self.alphabet.index(answer[place]) + 1 if place < len(answer) else 0)
        return code

    def word(self, node: int, letters: int) -> str:
        """Return the letters of a prefix of so many, as far as the word goes.

        >>> from incrowd.methods.local.choice import tree
        >>> from incrowd.methods.local.mechanisms.ratio import Weights
        >>> asked = WordQuestion("pet", "Your pet?", tree(27, (1,), Weights(3, 1), Weights(3, 2)), "ab", 3)
        >>> asked.word(int(asked.codes(["ba"])[0]), 3)
        'ba'
        """
        base, letters_back = len(self.alphabet) + 1, []
        for _ in range(letters):
            node, digit = divmod(node, base)
            letters_back.append(self.alphabet[digit - 1] if digit else "")
        return "".join(reversed(letters_back))

    def _domain(self) -> dict[str, Any]:
        return {"alphabet": self.alphabet, "length": str(self.length)}


def _public(randomizer: Categorical | Numeric) -> dict[str, str]:
    randomness = randomizer.randomness
    plain = {name: str(value) for name, value in vars(randomness).items() if value is not None}
    if isinstance(randomizer, LocalHashing):
        field = Galois(randomizer.width)
        plain |= {"prime": str(field.prime), "degree": str(field.degree), "modulus": str(field.modulus)}
    return plain
