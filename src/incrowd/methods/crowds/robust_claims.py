"""What suppression on a biased sample claims, with what each claim needs and what it leaves open."""

from __future__ import annotations

from incrowd.accounting.blending.robust import theorem2_delta, zero_knowledge_epsilon
from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.unit import Adjacency, Unit
from incrowd.methods.crowds import safe_claims
from incrowd.methods.crowds.parameters import Parameters
from incrowd.methods.crowds.robust import Robust

THEOREM = "Gehrke, Hay, Lui & Pass 2012, Theorem 2, by the exact worst case"


def assumptions(robust: Robust, unit: Unit) -> frozenset[str]:
    """Return what must be true outside our code: above all, how the rows were drawn.

    >>> from fractions import Fraction
    >>> sorted(assumptions(Robust(Fraction(1, 10), Fraction(1, 5)), Unit()))[-2]
    "the rows are a random sample: each person was drawn by an own coin, with a chance from 1/10 to 1/5 that ...
    """
    if robust.probability is not None:
        return safe_claims.assumptions(unit, sampled=True)
    return safe_claims.assumptions(unit, sampled=False) | {_drawn(robust)}


def claims(found: Parameters, robust: Robust, columns: tuple[str, ...], unit: Unit) -> tuple[Claim, ...]:
    """Return all claims of released rows, the strongest first; `columns` are the released ones."""
    crowds = (safe_claims.blending(found.k, unit), safe_claims.k_anonymity(found.k, columns, unit))
    return (*private_claims(found, robust, unit), *crowds)


def private_claims(found: Parameters, robust: Robust, unit: Unit) -> tuple[Claim, ...]:
    """Return what the biased sample adds to a crowd: differential privacy, and zero-knowledge in two forms."""
    numbers = {"k": found.k, **robust.told(), "delta": str(found.delta), "epsilon": str(found.epsilon)}
    conditions = _conditions(robust, assumptions(robust, unit))
    made = [
        Claim(
            "approximate differential privacy",
            {**numbers, "adjacency": str(unit.adjacency), "max_rows": unit.max_rows},
            str(unit),
            THEOREM
            if unit.adjacency is Adjacency.ADD_REMOVE
            else f"{THEOREM}; a replaced row is one removed, one added",
            conditions,
            (safe_claims.GROUPS,),
        )
    ]
    if unit.adjacency is Adjacency.ADD_REMOVE:
        kind = "zero-knowledge with respect to robust sampling"
        published = {
            "delta": repr(theorem2_delta(found.k, robust.bias)),
            "epsilon": repr(zero_knowledge_epsilon(0, robust.bias)),
        }
        closed = "Gehrke, Hay, Lui & Pass 2012, Theorem 2, with its constants"
        made.append(Claim(kind, numbers, str(unit), THEOREM, conditions, (safe_claims.GROUPS,)))
        made.append(
            Claim(
                f"{kind}, as published", {**numbers, **published}, str(unit), closed, conditions, (safe_claims.GROUPS,)
            )
        )
    return tuple(made)


def _conditions(robust: Robust, assumed: frozenset[str]) -> tuple[Precondition, ...]:
    here = "each row has an independent coin, whose chance hangs on that row alone and lies between low and high"
    before = "the ledger lets nothing else be released from these rows"
    return (
        Precondition("every released column belongs to the tuple that is counted", Status.PROVED),
        Precondition("rows are recoded one by one, by declared rules", Status.PROVED),
        Precondition(before, Status.CHECKED) if robust.probability is None else Precondition(here, Status.PROVED),
        Precondition("no tuple of the written output occurs fewer than k times", Status.CHECKED),
        *(Precondition(text, Status.ASSUMED) for text in sorted(assumed)),
    )


def _drawn(robust: Robust) -> str:
    bias = robust.bias
    but = f", but for {bias.irregular} with a chance up to {bias.max_rate}" if bias.irregular else ""
    known = "" if not bias.irregular else " of the others"
    return (
        f"the rows are a random sample: each person was drawn by an own coin, with a chance from {bias.low} to "
        f"{bias.high} that depends on that person's own data alone{but}; nobody knows who{known} was drawn, and people "
        "did not choose themselves"
    )
