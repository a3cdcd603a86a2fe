"""Suggestions: what a refused sentence could say instead, in its own numbers, with what that would mean."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from incrowd.workflows.rules.lexicon import Sense, Token
from incrowd.workflows.rules.rule import Rule, Zeros

EXAMPLES = (
    "minimum cell size 11",
    "threshold of 20",
    "at least 30 contributors",
    "k = 5",
    "5 or more people",
    "suppress counts below 5",
    "suppress counts of 7 or fewer",
    "cells below 10 are suppressed",
    "no cell less than 11 may be displayed",
    "counts of 7 or fewer become 0",
    "counts below 10 become 0",
    "counts below 5 are redacted",
    "counts of 1 to 4 are suppressed",
    "counts between 1 and 7 are suppressed",
    "counts below 5 except zero are suppressed",
    "counts of 0 to 4 are suppressed",
    "round to 5",
    "round to the nearest 10",
    "random rounding to base 3",
    "with secondary suppression",
    "with a 10 % sample",
    "sampling rate 0.1",
    "zeros are shown",
    "empty cells are hidden",
)
"""Sentences that are understood, one for each form; the last eight stand beside a minimum."""
_LEAST = 0.6


def for_unknown(unknown: Sequence[str], found: Iterable[Token], text: str) -> str:
    """Say which words are not understood, and the nearest phrase that is, with its meaning and what it leaves out."""
    if len(unknown) == 1 and unknown[0].isdecimal() and 1 < int(unknown[0][:7]) < 10**6:
        return _one_sided(unknown[0][:7])
    near = _same_counts(found) or _alike(text)
    named = [word for word in dict.fromkeys(unknown) if near is None or word not in near.split()]
    words = ", ".join(repr(word[:40]) for word in named or unknown)
    opening = f"{words} {'is' if len(named) == 1 else 'are'} not understood here."
    if near is None:
        return f"{opening} Say the rule in such words: {EXAMPLES[0]!r} ({_meaning(EXAMPLES[0])})."
    return (
        f"{opening} The nearest phrase that is: {near!r} ({_meaning(near)}). It says nothing of {words}: if that "
        "changes which counts are published, or how they look, the phrase means something else than the rule."
    )


def _one_sided(number: str) -> str:
    """Say that a number stands without a comparison, and both that it could mean."""
    below, upto = f"suppress counts below {number}", f"suppress counts of {number} or fewer"
    return (
        f"{number} stands here without saying which side of it is meant. Say {below!r} ({_meaning(below)}) or {upto!r} "
        f"({_meaning(upto)})."
    )


def without_action(text: str, minimum: int) -> str:
    """Say that a sentence names small counts, and not what becomes of them."""
    hide, zero = f"counts below {minimum} are suppressed", f"counts below {minimum} become 0"
    return (
        f"{text!r} says which counts, and not what becomes of them. Say {hide!r} ({_meaning(hide)}) or {zero!r} "
        f"({_meaning(zero)})."
    )


def without_number(text: str) -> str:
    """Say that a sentence names no count from which on cells are published."""
    near = _alike(text) if text else None
    example = near or EXAMPLES[0]
    return f"this names no minimum and no rounding. Say one, such as {example!r} ({_meaning(example)})."


def _same_counts(found: Iterable[Token]) -> str | None:
    """Return a phrase about the same counts: those that a sentence names, as it names them."""
    from incrowd.workflows.rules.statement import condition_of

    known = [token for token in found if token.kind in (Sense.UPPER, Sense.LOWER)]
    senses = {(each.low, each.high) for each in map(condition_of, known)} if known else set()
    if len(senses) != 1:
        return None
    low, high = senses.pop()
    if high is None:
        return f"minimum cell size {low}" if low and low > 1 else None
    if high < 1 or (low is not None and low > 1):
        return None
    return f"cells below {high + 1} are suppressed" if low is None else f"counts of {low} to {high} are suppressed"


def _alike(text: str) -> str | None:
    """Return the phrase that looks most like a sentence, with the sentence's number, or None if none looks like it."""
    numbers = re.findall(r"\d+", text)
    shapes = {re.sub(r"\d+", "n", each): each for each in EXAMPLES[:12]}
    near = difflib.get_close_matches(re.sub(r"\d+", "n", text), list(shapes), 1, _LEAST)
    if not near or len(numbers) != 1 or not 2 <= int(numbers[0][:7]) <= 10**6:
        return None
    return re.sub(r"\d+", numbers[0][:7], shapes[near[0]], count=1)


def _meaning(phrase: str) -> str:
    """Return what a phrase means, as it would be explained."""
    from incrowd.workflows.rules.grammar import read_rule

    rule: Rule = read_rule(phrase).rule
    unsaid = "; how empty cells look is not said" if rule.zeros is Zeros.UNSAID else ""
    return f"{rule.words}{unsaid}"
