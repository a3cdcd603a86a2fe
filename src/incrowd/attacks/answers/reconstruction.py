"""Reconstruction: many answers about subsets of people, each a little wrong, together give nearly everybody's bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.errors import InvalidParameter

Bits = NDArray[np.int64]
Ask = Callable[[NDArray[np.bool_]], float | None]
"""A count of the people of a subset whose bit is 1, with noise; None where the answer is refused."""


def reconstruction(ask: Ask, secrets: Bits, queries: int, seed: int = 0) -> Finding:
    """Ask for the counts of random subsets, and solve for the bits by linear programming.

    Knows: who is in the data, so that subsets can be asked for.  Success: a bit is guessed right.  Blind guess: the
    commoner bit, for everybody.  There are no outsiders: nobody else has a bit.

    Meaningless where nearly all bits are the same: the blind guess is right too.

    Source: Dinur & Nissim 2003; Dwork, McSherry & Talwar 2007 (linear programming).
    """
    if secrets.ndim != 1 or not len(secrets):
        raise InvalidParameter("reconstruction needs the people's bits, to judge what was guessed.")
    subsets = np.random.default_rng(seed).random((queries, len(secrets))) < 0.5
    told = [ask(subset) for subset in subsets]
    answered = np.array([each is not None for each in told])
    answers = np.array([each for each in told if each is not None], float)
    guess = decoded(subsets[answered], answers) if answered.any() else np.zeros(len(secrets), np.int64)
    commoner = int(secrets.mean() >= 0.5)
    success, blind = (
        Rate(int((each == secrets).sum()), len(secrets)) for each in (guess, np.full(len(secrets), commoner))
    )
    story = (
        f"The attacker asks about {queries} subsets of {len(secrets)} people; {int(answered.sum())} are answered.",
        "The answers are equations with small errors; the bits that fit them best are found by linear programming.",
        f"{success.hits} of {success.of} bits are right; calling everybody {commoner} would have got {blind.hits}.",
    )
    return Finding("reconstruction", Risk.INFERENCE, "who is in the data", success, blind, None, story)


def decoded(subsets: NDArray[np.bool_], answers: NDArray[np.float64]) -> Bits:
    """Return the bits whose subset counts lie nearest to the answers, in the sum of absolute errors, then rounded.

    >>> decoded(np.array([[True, False], [True, True]]), np.array([1.1, 0.9])).tolist()
    [1, 0]
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, eye, hstack, vstack

    queries, people = subsets.shape
    matrix, one = csr_matrix(subsets.astype(float)), eye(queries, format="csr")
    found = linprog(
        np.concatenate([np.zeros(people), np.ones(queries)]),
        A_ub=vstack([hstack([matrix, -one]), hstack([-matrix, -one])]),
        b_ub=np.concatenate([answers, -answers]),
        bounds=[(0.0, 1.0)] * people + [(0.0, None)] * queries,
        method="highs",
    )
    return np.asarray(found.x[:people] >= 0.5, np.int64)


def hadamard(ask: Ask, people: int) -> Bits:
    """Reconstruct with one question for each row of Hadamard's matrix: as many as people, up to a power of two.

    From counts with error at most E at most 16 E² + 1 bits are wrong: each count gives a sum of signs within 2E, and
    each wrong bit costs a quarter of the squared error's mean.  A question that is refused counts as 0.

    Source: Dwork & Yekhanin 2008.
    """
    from scipy.linalg import hadamard as matrix

    size = 1 << max(0, people - 1).bit_length()
    signs = matrix(size)
    everyone = _told(ask(np.ones(people, bool)))
    sums = np.array([2.0 * _told(ask(row[:people] > 0)) - everyone for row in signs])
    guess = signs.T @ sums / size
    return np.asarray(guess[:people] >= 0.5, np.int64)


def _told(answer: float | None) -> float:
    return 0.0 if answer is None else answer
