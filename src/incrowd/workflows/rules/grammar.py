"""Grammar: a rule read from the sentence in which it is written; strictly, so that nothing is guessed."""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter
from incrowd.workflows.rules import phrases

_MOST = 10**6
_LONGEST = 500
_ALIKE = 0.7
_SIGNS = {"≤": "<=", "≥": ">=", "–": "-", "−": "-", "per cent": "%", "percent": "%", "=<": "<="}
_CLAUSES = re.compile(r"\s*(?:;|,(?!\d)|(?<!\d),|\.(?=\s|$))\s*|\s+(?:and|then)\s+")
_MAGNITUDES = re.compile(
    r"dominance|\bp\s*(?:%|-percent)|\(\s*n\s*,\s*k\s*\)|\bn,\s?k\b|concentration|p/q|prior.posterior"
)
_FORMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("least", phrases.LEAST),
    ("below", phrases.BELOW),
    ("below, to zero", phrases.BELOW_ZERO),
    ("up to", phrases.UP_TO),
    ("up to, to zero", phrases.UP_TO_ZERO),
    ("one to", phrases.ONE_TO),
    ("round", phrases.ROUND),
    ("zeros shown", phrases.ZEROS_SHOWN),
    ("zeros hidden", phrases.ZEROS_HIDDEN),
)


class Zeros(StrEnum):
    """Whether a reader can tell an empty cell from a suppressed one."""

    HIDDEN = "hidden"
    UNSAID = "unsaid"
    SHOWN = "shown"


@dataclass(frozen=True)
class Rule:
    """Counts of at least `minimum` are published, smaller ones are not; then rounded to `base`, if there is one.

    `rate` is that of a secret sample drawn in front of the counting, if there is one.

    >>> Rule(8, base=5).minimum
    8
    """

    minimum: int
    base: int | None = None
    rate: Fraction | None = None
    zeros: Zeros = Zeros.UNSAID

    def __post_init__(self) -> None:
        if not 2 <= self.minimum <= _MOST:
            raise InvalidParameter(
                "a rule needs a minimum of at least 2, and of at most a million: a minimum of 1 publishes every count."
            )
        if self.base is not None and not 2 <= self.base <= _MOST:
            raise InvalidParameter("counts are rounded to a whole number of at least 2, such as 5 or 10.")
        if self.rate is not None and not 0 < self.rate < 1:
            raise InvalidParameter("a sample keeps a share strictly between 0 and 1, such as 10 % or 1/20.")


def minimum_after_rounding(minimum: int, base: int) -> int:
    """Return the least count that shows when counts are rounded first and compared with a minimum afterwards.

    A count of at least m − base/2 is rounded to m, the first multiple of the base that is not below the minimum; where
    half a base could be rounded either way, it is taken to be rounded up, which promises less.

    >>> minimum_after_rounding(10, 5), minimum_after_rounding(11, 5), minimum_after_rounding(10, 10)
    (8, 13, 5)
    """
    shown = math.ceil(Fraction(minimum, base)) * base
    return math.ceil(Fraction(2 * shown - base, 2))


_ZEROS = {"below, to zero": Zeros.HIDDEN, "up to, to zero": Zeros.HIDDEN, "one to": Zeros.SHOWN}


@dataclass(frozen=True)
class RuleReading:
    """A rule as it was understood, and what of the sentence deserves a second look."""

    rule: Rule
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Clause:
    form: str
    number: int = 0


@dataclass(frozen=True)
class _Parts:
    """The clauses of a sentence, in order."""

    clauses: tuple[_Clause, ...]
    rate: Fraction | None


def read_rule(sentence: str) -> RuleReading:
    """Return the rule that a sentence says, or refuse it with the nearest phrase that is understood.

    >>> read_rule("counts of 7 or fewer become 0, then round to 5").rule
    Rule(minimum=8, base=5, rate=None, zeros=<Zeros.HIDDEN: 'hidden'>)
    >>> read_rule("k = 5 with 10 % sample").rule.rate
    Fraction(1, 10)
    >>> read_rule("minimal sell size 11")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: 'minimal sell size 11' is not understood. The nearest phrase that is: ...
    """
    text = _normal(sentence)
    if _MAGNITUDES.search(text):
        raise InvalidParameter(
            "dominance rules and p % rules protect sums and magnitudes, of which one contributor can be most; what is "
            "explained here are rules about counts. Give the rule for counts, such as 'minimum cell size 10'."
        )
    parts = _parts(text)
    thresholds = [each for each in parts.clauses if not each.form.startswith(("round", "zeros"))]
    rounded = [each for each in parts.clauses if each.form == "round"]
    if len(thresholds) != 1 or len(rounded) > 1:
        raise InvalidParameter(
            f"a rule has one minimum and rounds at most once; this sentence says {len(thresholds)} minima and "
            f"{len(rounded)} roundings. Write one, such as 'counts of 7 or fewer become 0, then round to 5'."
        )
    return _assembled(thresholds[0], rounded[0] if rounded else None, parts)


def _assembled(threshold: _Clause, rounding: _Clause | None, parts: _Parts) -> RuleReading:
    minimum = threshold.number + (1 if threshold.form.startswith(("up to", "one to")) else 0)
    base = rounding.number if rounding else None
    notes: tuple[str, ...] = ()
    Rule(minimum, base)  # refuse numbers without a meaning before computing with them
    if rounding is not None and base is not None and parts.clauses.index(rounding) < parts.clauses.index(threshold):
        stated, minimum = minimum, minimum_after_rounding(minimum, base)
        early = (
            f"rounding comes first here, so a count of {minimum} already shows as {-(-stated // base) * base}: "
            f"the minimum is {minimum}, not {stated}. Suppress first, then round."
        )
        notes = (early,)
    zeros = _ZEROS.get(threshold.form, Zeros.UNSAID)
    for each in parts.clauses:
        if each.form.startswith("zeros"):
            zeros = Zeros.SHOWN if each.form == "zeros shown" else Zeros.HIDDEN
    return RuleReading(Rule(minimum, base, parts.rate, zeros), notes)


def _parts(text: str) -> _Parts:
    samples = list(phrases.SAMPLE.finditer(text))
    if len(samples) > 1:
        raise InvalidParameter("this sentence names several samples; a rule has at most one, in front of the counting.")
    if samples and samples[0]["after"]:
        raise InvalidParameter(
            "a sample drawn after the counts were made protects nobody more than the rule does: what helps is a secret "
            "sample in front of the counting. Write it first, such as 'from a 10 % sample, minimum cell size 10'."
        )
    rate = _share(next(filter(None, samples[0].group("a", "b", "c")))) if samples else None
    rest = phrases.SAMPLE.sub(" , ", text)
    clauses = tuple(_clause(clause) for clause in _CLAUSES.split(rest) if clause and clause.strip())
    return _Parts(clauses, rate)


def _clause(words: str) -> _Clause:
    clause = re.sub(r"^(?:and |then )*", "", re.sub(r"\s+", " ", words).strip(" .:"))
    for form, patterns in _FORMS:
        for pattern in patterns:
            found = re.fullmatch(pattern, clause)
            if found is not None:
                given = found.groupdict()
                number = given.get("n") or given.get("m")
                return _Clause(form, 0 if number is None else _whole(number))
    raise InvalidParameter(f"{clause[:80]!r} is not understood. The nearest phrase that is: {_nearest(clause)!r}.")


def _nearest(clause: str) -> str:
    """Return the phrase that looks most like a clause, or where none does, one that means a number the same way."""
    shapes = [_shape(each) for each in phrases.EXAMPLES]
    meant = [said for words, said in phrases.MEANT if words.search(clause)]
    if meant and not difflib.get_close_matches(_shape(clause), shapes, 1, _ALIKE):
        return meant[0]
    near = difflib.get_close_matches(_shape(clause), shapes, 1, 0.0)
    return next(each for each in phrases.EXAMPLES if _shape(each) == near[0])


def _shape(text: str) -> str:
    return re.sub(r"\d+", "n", text)


def _normal(sentence: str) -> str:
    if not sentence.strip() or len(sentence) > _LONGEST:
        raise InvalidParameter(f"write the rule in one sentence of at most {_LONGEST} characters.")
    text = sentence.casefold()
    for sign, plain in _SIGNS.items():
        text = text.replace(sign, plain)
    return re.sub(r"\s+", " ", re.sub(r"[<>]=?", r" \g<0> ", text)).strip()


def _whole(text: str) -> int:
    return phrases.NUMBERS[text] if text in phrases.NUMBERS else int(exact(text.replace(",", ""), "the number"))


def _share(text: str) -> Fraction:
    if text.endswith("%"):
        return exact(text[:-1].strip(), "the share") / 100
    top, _, bottom = text.replace(" in ", "/").replace(" ", "").partition("/")
    if bottom and not int(bottom):
        raise InvalidParameter("a sample of one row in none is none: write a share such as 1 in 10.")
    return exact(top, "the share") / (int(bottom) if bottom else 1)
