"""What keeps a crowd together: crowd-blending beside and between differentially private promises.

Post-processing needs no rule: whom a release cannot tell apart or ignores, nothing computed from it can tell apart or
betray. Two crowd-blending releases have none: with k people v and one x, the counts of {v, x} together and of v and x
apart, both shown from k on, differ by exactly one if x is there, and x blends with nobody.
"""

from __future__ import annotations

from incrowd.core.loss import Crowd
from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter


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
