"""Attacks on answers: an analyst asks for numbers, rather than reading a published table."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.errors import InvalidParameter

Repeat = Callable[[], float]
"""Ask one query again: a number with noise."""
Bits = NDArray[np.int64]
Ask = Callable[[NDArray[np.bool_]], float | None]
"""A count of the people of a subset whose bit is 1, with noise; None where the answer is refused."""


def averaging(
    questions: list[tuple[Repeat, int]], repeats: int, control: list[tuple[Repeat, int]] | None = None
) -> Finding:
    """Ask each query several times, and take the rounded mean as the truth.

    Knows: nothing.  `questions` are ways to ask, each with the true whole number.  Success: the rounded mean is exactly
    the truth.  Baseline: the first answer alone, rounded.  The control group are queries about data without the
    person, `control`, if any are passed.

    Meaningless for queries whose truth is known anyway.  Where a repeated query gets the same stored answer, the
    success stays that of one answer: that is the defense.

    Source: Dinur & Nissim 2003 say how much noise is needed against repeated queries.
    """
    answers = [[ask() for _ in range(repeats)] for ask, _ in questions]
    truths = [truth for _, truth in questions]
    right, first = (
        [round(estimate(replies)) == truth for replies, truth in zip(answers, truths, strict=True)]
        for estimate in (fmean, itemgetter(0))
    )
    story: tuple[str, ...] = ()
    if any(right):
        place = right.index(True)
        story = (
            f"The attacker asks one query {repeats} times; the first answer is {answers[place][0]:g}.",
            f"The mean of all answers is {fmean(answers[place]):g}.",
            f"Rounded, that is the true number: {truths[place]}.",
        )
    success, baseline = (Rate(sum(hits), len(hits)) for hits in (right, first))
    others = [round(fmean(ask() for _ in range(repeats))) == truth for ask, truth in control or ()]
    knows, control_rate = f"nothing, but may ask {repeats} times", Rate(sum(others), len(others)) if others else None
    return Finding("averaging", Risk.INFERENCE, knows, success, baseline, control_rate, story)


def reconstruction(ask: Ask, secrets: Bits, queries: int, seed: int = 0) -> Finding:
    """Ask for the counts of random subsets, and solve for the bits by linear programming.

    Knows: who is in the data, so that subsets can be asked for.  Success: a bit is guessed right.  Baseline: the
    commoner bit, for everybody.  There is no control group: nobody else has a bit.

    Meaningless where nearly all bits are the same: the baseline is right too.

    Source: Dinur & Nissim 2003; Dwork, McSherry & Talwar 2007 (linear programming).
    """
    if secrets.ndim != 1 or not len(secrets):
        raise InvalidParameter("reconstruction needs the people's bits, to judge its guesses.")
    subsets = np.random.default_rng(seed).random((queries, len(secrets))) < 0.5
    replies = [ask(subset) for subset in subsets]
    answered = np.array([reply is not None for reply in replies])
    answers = np.array([reply for reply in replies if reply is not None], float)
    guess = decoded(subsets[answered], answers) if answered.any() else np.zeros(len(secrets), np.int64)
    commoner = int(secrets.mean() >= 0.5)
    success, baseline = (Rate(int((bits == secrets).sum()), len(secrets)) for bits in (guess, np.array(commoner)))
    story = (
        f"The attacker asks about {queries} subsets of {len(secrets)} people; {int(answered.sum())} are answered.",
        "The answers are equations with small errors; linear programming finds the bits that fit them best.",
        f"{success.hits} of {success.of} bits are right; calling everybody {commoner} would get {baseline.hits}.",
    )
    return Finding("reconstruction", Risk.INFERENCE, "who is in the data", success, baseline, None, story)


def decoded(subsets: NDArray[np.bool_], answers: NDArray[np.float64]) -> Bits:
    """Return the bits whose subset counts lie nearest to the answers, in the sum of absolute errors, then rounded.

    >>> decoded(np.array([[True, False], [True, True]]), np.array([1.1, 0.9])).tolist()
    [1, 0]
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, eye, hstack, vstack

    queries, people = subsets.shape
    matrix, one = csr_matrix(subsets.astype(float)), eye(queries, format="csr")
    solution = linprog(
        np.concatenate([np.zeros(people), np.ones(queries)]),
        A_ub=vstack([hstack([matrix, -one]), hstack([-matrix, -one])]),
        b_ub=np.concatenate([answers, -answers]),
        bounds=[(0.0, 1.0)] * people + [(0.0, None)] * queries,
        method="highs",
    )
    return np.asarray(solution.x[:people] >= 0.5, np.int64)


def hadamard(ask: Ask, people: int) -> Bits:
    """Reconstruct with one query for each row of a Hadamard matrix: as many as people, up to a power of two.

    From counts with error at most E, at most 16 E² + 1 bits are wrong: each count gives a sum of signs within 2E, and
    each wrong bit costs a quarter of the mean squared error.  A refused query counts as 0.

    Source: Dwork & Yekhanin 2008.
    """
    from scipy.linalg import hadamard as matrix

    size = 1 << max(0, people - 1).bit_length()
    signs = matrix(size)
    total = ask(np.ones(people, bool)) or 0.0
    sums = np.array([2.0 * (ask(row[:people] > 0) or 0.0) - total for row in signs])
    guess = signs.T @ sums / size
    return np.asarray(guess[:people] >= 0.5, np.int64)
