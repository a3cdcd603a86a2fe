"""What keeps a crowd together: crowd-blending beside and between differentially private promises.

Post-processing needs no rule: whom a release cannot tell apart or ignores, nothing computed from it can tell apart or
betray. Two crowd-blending releases have none: with k people v and one x, the counts of {v, x} together and of v and x
apart, both shown from k on, differ by exactly one if x is there, and x blends with nobody.
"""

from __future__ import annotations

from incrowd.core.loss import Crowd, Pure
from incrowd.core.rounding import Number, exact
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter, Refused


def from_private(private: Pure, k: int, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Crowd:
    """Return the crowd-blending promise of an ε-private mechanism: (k, ε) for every k, since it ignores everyone.

    Source: Gehrke, Hay, Lui & Pass 2012, Proposition 1. Requires privacy for people added or removed: the exact
    number of people is perfectly private when people are only replaced, but shows whether a lone person is there.

    >>> from fractions import Fraction
    >>> from_private(Pure(Fraction(1, 2)), 10)
    Crowd(k=10, epsilon=Fraction(1, 2))
    """
    if adjacency is not Adjacency.ADD_REMOVE:
        raise InvalidParameter(
            "privacy for replaced people does not make anyone blend: a mechanism may still show how many there are. "
            "State its loss for people added or removed."
        )
    return Crowd(k, private.epsilon)


def to_private(crowd: Crowd, most_people: int) -> Pure:
    """Return the ε-privacy, for people added or removed, of a crowd promise on datasets too small for a crowd.

    If there are publicly at most `most_people` < k people, nobody finds k to blend with, so everyone is ignored.

    >>> to_private(Crowd(10), 9)
    Pure(epsilon=Fraction(0, 1))
    """
    if most_people >= crowd.k:
        raise Refused(
            f"a crowd of k = {crowd.k} fits among {most_people} people, and who blends in it is not ignored: "
            "crowd-blending alone has no finite epsilon. Sample secretly first."
        )
    return Pure(crowd.epsilon)


def with_private(crowd: Crowd, private_epsilon: Number, replaced_epsilon: Number | None = None) -> Crowd:
    """Return the joint promise of a crowd-blending release and private ones on the same rows: (k, ε + 2ε′).

    `private_epsilon` is ε′, the sum of the private releases' ε for people added or removed; `replaced_epsilon` the one
    for people replaced, if it is known to be below 2ε′ (a single count has ε′). Proof: who is ignored by the first is
    ignored by both, at ε + ε′. Whoever t can be exchanged for at ε costs the private part one replacement. So t's crowd
    stays whole at ε + max(ε′, replaced). The factor 2 is real: beside a suppressed count of {v, w}, a noisy histogram
    of v and w has a likelihood ratio of e^(2ε′) when one v becomes a w.

    Requires pure private releases whose ε′ is counted on the very rows the crowd is counted on (not amplified by a
    sample), with coins of their own. They may be chosen after seeing the crowd's release, never the other way round.

    >>> from fractions import Fraction
    >>> with_private(Crowd(20), "0.1")
    Crowd(k=20, epsilon=Fraction(1, 5))
    >>> with_private(Crowd(20), "0.1", replaced_epsilon="0.1")
    Crowd(k=20, epsilon=Fraction(1, 10))
    """
    private = exact(private_epsilon, "the private epsilon")
    replaced = 2 * private if replaced_epsilon is None else exact(replaced_epsilon, "the epsilon for replaced people")
    if private < 0 or replaced < 0:
        raise InvalidParameter("epsilon cannot be negative.")
    return Crowd(crowd.k, crowd.epsilon + max(private, min(replaced, 2 * private)))
