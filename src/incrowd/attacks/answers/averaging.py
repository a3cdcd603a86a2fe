"""Averaging: ask the same question again and again, and let the noise cancel out."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from incrowd.attacks.finding import Finding, Rate, Risk

Ask = Callable[[], float]


def averaging(questions: list[tuple[Ask, int]], repeats: int, outside: list[tuple[Ask, int]] | None = None) -> Finding:
    """Ask each question several times, and take the rounded mean for the truth.

    Knows: nothing.  `questions` are ways to ask, each with the true whole number.  Success: the rounded mean is exactly
    the truth.  Blind guess: the first answer alone, rounded.  Outsiders: questions about data in which the person is
    not, `outside`, where there are such.

    Meaningless for questions whose truth is known anyway; and where the same question gets the same kept answer, the
    success stays that of one answer, which is the point.

    Source: the averaging attack is as old as noise; Dinur & Nissim 2003 say how much noise is needed.
    """
    told = [[ask() for _ in range(repeats)] for ask, _ in questions]
    truths = [truth for _, truth in questions]
    right = [round(fmean(each)) == truth for each, truth in zip(told, truths, strict=True)]
    first = [round(each[0]) == truth for each, truth in zip(told, truths, strict=True)]
    beyond = None
    if outside:
        beyond = Rate(sum(round(fmean(ask() for _ in range(repeats))) == truth for ask, truth in outside), len(outside))
    story: tuple[str, ...] = ()
    if any(right):
        place = right.index(True)
        story = (
            f"The attacker asks one question {repeats} times; the first answer is {told[place][0]:g}.",
            f"The mean of all answers is {fmean(told[place]):g}.",
            f"Rounded, that is the true number: {truths[place]}.",
        )
    knows = f"nothing, but may ask {repeats} times"
    success, blind = (Rate(sum(each), len(each)) for each in (right, first))
    return Finding("averaging", Risk.INFERENCE, knows, success, blind, beyond, story)
