"""Grammar: a rule read from the sentence in which it is written; what cannot be understood is not guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter
from incrowd.workflows.rules import suggestions
from incrowd.workflows.rules.lexicon import NUMBERS, Sense, Token, tokens, whole
from incrowd.workflows.rules.rule import Rounding, Rule, Zeros, minimum_after_rounding
from incrowd.workflows.rules.statement import Segment, gather

_LONGEST = 500
_SIGNS = {
    "≤": "<=",
    "≥": ">=",
    "=<": "<=",
    "–": "-",
    "—": " , ",
    "−": "-",
    "per cent": "%",
    "percent": "%",
    "’": "'",
    "‘": "'",
    "“": '"',
    "”": '"',
}
_ASIDE = re.compile(r"\(\s*(?:e\.?\s?g\.?|for example|such as|for instance)[^)\d<>]*\)")
_TWICE = re.compile(rf"\b(?P<word>{'|'.join(NUMBERS)})\s+\((?P<digits>\d{{1,7}})\)")
_MAGNITUDES = re.compile(
    r"dominance|\bp\s*(?:%|-percent)|\(\s*n\s*,\s*k\s*\)|\bn,\s?k\b|concentration|p/q|prior.posterior"
)
_SHARE = r"\d+(?:\.\d+)?\s*%|0?\.\d+|\d+\s*/\s*\d+|\d+\s+in\s+\d+"
_KIND = r"(?:(?:secret|random|simple|poisson)\s+)*"
_SAMPLE = re.compile(
    rf"(?P<after>\bthen\s+)?(?:\b(?:with|from|after|on|of|in|using|and)\s+)?(?:\ban?\s+)?{_KIND}"
    rf"(?:(?P<a>{_SHARE})\s+{_KIND}(?:sample|sampling)\b"
    rf"|\b(?:sample|sampling|sampled)(?:\s+rate)?(?:\s*(?:of|at|is|=))?\s*(?P<b>{_SHARE})"
    rf"|\brate(?:\s*(?:of|is|=|:))?\s*(?P<c>{_SHARE}))"
)


@dataclass(frozen=True)
class RuleReading:
    """A rule as it was understood, and what of the sentence deserves a second look."""

    rule: Rule
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Rounding:
    """What counts are rounded to, how, and whether that comes before suppression: True, False, or None if unsaid."""

    base: int
    way: Rounding
    first: bool | None


def read_rule(sentence: str) -> RuleReading:
    """Return the rule that a sentence says, or refuse it with the nearest phrase that is understood and its meaning.

    >>> read_rule("counts of 7 or fewer become 0, then round to 5").rule
    Rule(minimum=8, base=5, rate=None, zeros=<Zeros.HIDDEN: 'hidden'>, rounding=<Rounding.NEAREST: ...)
    >>> read_rule("k = 5 with 10 % sample").rule.rate
    Fraction(1, 10)
    >>> read_rule("minimal sell size 11")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: 'sell' is not understood here. The nearest phrase that is: 'minimum cell ...
    """
    text, rate = _without_sample(_normal(sentence))
    found = tuple(tokens(text))
    unknown = [token.text for token in found if token.kind is Sense.UNKNOWN]
    if unknown:
        raise InvalidParameter(suggestions.for_unknown(unknown, found, text))
    rounding, segments = _rounding(found), _segments(found)
    statements = [statement.resolved() for statement in gather(segments)]
    if not statements and rounding is None:
        raise InvalidParameter(suggestions.without_number(text))
    minima = {each.minimum for each in statements}
    if len(minima) > 1:
        raise InvalidParameter(
            f"a rule has one minimum; this sentence says {' and '.join(map(str, sorted(minima)))}. Write the one that "
            "holds for every cell, such as 'counts of 7 or fewer become 0, then round to 5'."
        )
    rule = Rule(
        min(minima) if minima else 1,
        None if rounding is None else rounding.base,
        rate,
        _zeros(found, [each.zeros for each in statements if each.zeros is not None]),
        Rounding.NEAREST if rounding is None else rounding.way,
        secondary=any(token.kind is Sense.SECONDARY for token in found),
    )
    notes = dict.fromkeys(note for each in statements for note in each.notes)
    if rounding is None:
        return RuleReading(rule, tuple(notes))
    ordered = _rounded_alone(rule) if not statements else _ordered(rule, rounding)
    return RuleReading(ordered.rule, (*notes, *ordered.notes))


def _normal(sentence: str) -> str:
    if not sentence.strip() or len(sentence) > _LONGEST:
        raise InvalidParameter(f"write the rule in one sentence of at most {_LONGEST} characters.")
    text = sentence.casefold()
    for sign, plain in _SIGNS.items():
        text = text.replace(sign, plain)
    if _MAGNITUDES.search(text):
        raise InvalidParameter(
            "dominance rules and p % rules protect sums and magnitudes, of which one contributor can be most; what is "
            "explained here are rules about counts. Give the rule for counts, such as 'minimum cell size 10'."
        )
    text = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", _ASIDE.sub(" ", text))
    text = _TWICE.sub(_once, text)
    text = re.sub(r"\b(if|when|where)\b([^.;]*?)\bthen\b", r"\1\2,", text)  # no step that comes after another
    return re.sub(r"\s+", " ", re.sub(r"[<>]=?", r" \g<0> ", text)).strip()


def _once(match: re.Match[str]) -> str:
    """Return a number that is said twice, as a word and in digits, once."""
    return match["word"] if whole(match["word"]) == whole(match["digits"]) else match[0]


def _without_sample(text: str) -> tuple[str, Fraction | None]:
    samples = list(_SAMPLE.finditer(text))
    if len(samples) > 1:
        raise InvalidParameter("this sentence names several samples; a rule has at most one, in front of the counting.")
    if not samples:
        return text, None
    if samples[0]["after"]:
        raise InvalidParameter(
            "a sample drawn after the counts were made protects nobody more than the rule does: what helps is a secret "
            "sample in front of the counting. Write it first, such as 'from a 10 % sample, minimum cell size 10'."
        )
    rate = _share(next(filter(None, samples[0].group("a", "b", "c"))))
    if not 0 < rate < 1:
        raise InvalidParameter("a sample keeps a share strictly between 0 and 1, such as 10 % or 1/20.")
    return _SAMPLE.sub(" , ", text), rate


def _share(text: str) -> Fraction:
    if text.endswith("%"):
        return exact(text[:-1].strip(), "the share") / 100
    top, _, bottom = text.replace(" in ", "/").replace(" ", "").partition("/")
    if bottom and not int(bottom):
        raise InvalidParameter("a sample of one row in none is none: write a share such as 1 in 10.")
    return exact(top, "the share") / (int(bottom) if bottom else 1)


_ENDS = (Sense.STOP, Sense.THEN, Sense.AFTER, Sense.BEFORE)


def _segments(found: Iterable[Token]) -> Iterator[Segment]:
    """Cut a sentence where a clause ends, and leave out what says nothing about which counts are published."""
    part: list[Token] = []
    denied = False
    for token in (*found, Token(Sense.STOP, "", "", {})):
        if token.kind not in _ENDS:
            part.append(token)
            continue
        segment = Segment.of(part, denied=denied)
        denied = segment is not None and segment.denied and token.text == "or"
        part = []
        if segment is not None:
            yield segment


def _rounding(found: tuple[Token, ...]) -> _Rounding | None:
    """Return how a sentence rounds, and when: after what `then`, `after`, `before` and `the rest` say, if they do."""
    places = [place for place, token in enumerate(found) if token.kind is Sense.ROUND]
    if not places:
        return None
    bases = {found[place].number() for place in places}
    if len(bases) > 1 or len(places) > 2:
        raise InvalidParameter(
            f"a rule rounds at most once; this sentence says {len(places)} roundings. Write one, such as 'round to 5'."
        )
    token = found[places[0]]
    base = token.number() or 0
    way = token.groups.get("way") or {"higher": "up", "lower": "down"}.get(token.groups.get("toward", ""))
    chance = token.groups.get("random") or token.groups.get("chance")
    rounding = Rounding.RANDOM if chance else Rounding(way) if way else Rounding.NEAREST
    Rule(2, base)  # refuse a number without a meaning before computing with it
    return _Rounding(base, rounding, _comes_first(found, places[0]))


def _comes_first(found: tuple[Token, ...], place: int) -> bool | None:
    """Return whether rounding comes before suppression; None where the sentence names it first and says no more."""
    sorts = [token.kind for token in found]
    threshold = next((at for at, kind in enumerate(sorts) if kind in (Sense.UPPER, Sense.LOWER)), len(sorts))
    before = sorts[:place]
    clause = before[max((at for at, kind in enumerate(before) if kind in _ENDS), default=-1) + 1 :]
    if Sense.REST in clause:
        return False
    for kind, first in ((Sense.AFTER, True), (Sense.BEFORE, False)):
        if kind in sorts:
            return first if sorts.index(kind) < place and place - sorts.index(kind) <= 2 else not first
    if place > threshold:
        return False
    return True if Sense.THEN in sorts else None


def _zeros(found: tuple[Token, ...], stated: list[Zeros]) -> Zeros:
    """Return how empty cells look: as small counts that become 0, else as it is said; refuse to hear both."""
    if any(token.kind is Sense.ZERO for token in found):
        return Zeros.HIDDEN
    said = {*stated, *(_look(found, place) for place, token in enumerate(found) if token.kind is Sense.ZEROS)}
    if len(said) > 1:
        raise InvalidParameter(
            "this sentence says both that empty cells are told apart from small counts and that they look alike. Say "
            "one: 'zeros are shown' or 'empty cells are hidden'."
        )
    return said.pop() if said else Zeros.UNSAID


def _look(found: tuple[Token, ...], place: int) -> Zeros:
    """Return how empty cells look by some words about them; `zeros and` says that they share what follows."""
    if found[place].sense != "same":
        return Zeros(found[place].sense)
    counts = next((token.kind for token in found[place:] if token.kind in (Sense.UPPER, Sense.LOWER)), None)
    return Zeros.HIDDEN if counts is Sense.UPPER else Zeros.SHOWN


def _rounded_alone(rule: Rule) -> RuleReading:
    """Return what a rule means that only rounds: counts that are rounded to 0 look like empty cells."""
    base = rule.base or 0
    if rule.zeros is Zeros.SHOWN:
        raise InvalidParameter("counts that are rounded to 0 look like empty cells: zeros cannot be told apart here.")
    least = minimum_after_rounding(1, base, rule.rounding)
    alone = replace(rule, minimum=least, zeros=Zeros.HIDDEN)
    if least == 1:
        return RuleReading(alone, (f"no count is withheld: a single person can already show as {base}.",))
    note = f"there is no minimum, and none is needed for this reading: a count below {least} is rounded to 0."
    return RuleReading(alone, (note,))


def _ordered(rule: Rule, rounding: _Rounding) -> RuleReading:
    """Return the rule with the least count that shows, given which of rounding and suppression comes first."""
    if rounding.first is False:
        return RuleReading(rule)
    stated, base = rule.minimum, rounding.base
    after = minimum_after_rounding(stated, base, rounding.way)
    if rounding.first is None:
        return _unordered(rule, after)
    if rule.zeros is Zeros.SHOWN:
        least = minimum_after_rounding(1, base, rounding.way)
        note = (
            "rounding comes first here, so the zeros that show are rounded ones, and what is marked is a rounded count "
            f"from {base} on. What can be told apart is whether a cell holds {least} or more."
        )
        return RuleReading(replace(rule, minimum=least, zeros=Zeros.HIDDEN), (note,))
    return RuleReading(replace(rule, minimum=after), (_after_rounding(stated, after, rule),))


def _after_rounding(stated: int, after: int, rule: Rule) -> str:
    """Say why the least count that shows is another one than the stated minimum, or the same."""
    shown = rule.multiple(after)
    chance = ", by chance," if rule.rounding is Rounding.RANDOM else ""
    opening = f"rounding comes first here, and the rounded count is compared with {stated}: "
    if after < stated:
        return opening + (
            f"a count of {after} already shows{chance} as {shown}, so the minimum falls to {after}. To keep {stated}, "
            "suppress first and round what is left."
        )
    if after > stated:
        return opening + (
            f"counts of {stated} to {after - 1} are rounded below it and withheld, a count of {after} shows as "
            f"{shown}, so the minimum rises to {after}."
        )
    return opening + f"a count of {after} shows{chance} as {shown} and no smaller one does, so the minimum stays."


def _unordered(rule: Rule, after: int) -> RuleReading:
    """Take the order of rounding and suppression that promises less, and say so."""
    if after == rule.minimum or rule.zeros is Zeros.SHOWN:
        return RuleReading(rule)
    note = (
        f"the sentence does not say whether counts are compared with {rule.minimum} before or after rounding. Before, "
        f"counts from {rule.minimum} on show; after, from {after} on. It is read as {min(rule.minimum, after)}, which "
        "promises less; say 'then' to settle it."
    )
    return RuleReading(replace(rule, minimum=min(rule.minimum, after)), (note,))
