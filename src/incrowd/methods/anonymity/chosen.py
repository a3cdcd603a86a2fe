"""What a release claims whose recoding was chosen privately before the sample was drawn, and what that needs."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Sequence, Syntactic
from incrowd.core.schema import Schema
from incrowd.methods.crowds import safe_claims
from incrowd.methods.crowds.parameters import Parameters

_THEOREM = "Li, Qardaji & Su 2010, §4: a private choice of the recoding, then sampled suppression by its tight curve"
_GROUPS = "what holds for a whole group: people like you can be described, with or without you"


@dataclass(frozen=True)
class Choice:
    """A private choice in the words of its method: its ε, what must have been blind, and what its proof rests on."""

    epsilon: Fraction
    because: str
    blind: str
    moved: str
    fresh: str
    left_open: str


def promise(schema: Schema, loss: Sequence, found: Parameters, choice: Choice) -> Guarantee:
    """Promise from the schema alone; what was drafted from rows leaves nothing but k-anonymity."""
    if schema.drafted:
        form = Syntactic("k-anonymity", (("k", str(found.k)), ("drafted from rows", ", ".join(schema.drafted))))
        return Guarantee(form, schema.unit, "counted in the output; what was drafted from rows voids the rest")
    assumed = safe_claims.assumptions(schema.unit, sampled=True) - {safe_claims.BLIND} | {choice.blind}
    return Guarantee(loss, schema.unit, choice.because, assumed, found.delta)


def claims(
    promised: Guarantee, schema: Schema, found: Parameters, choice: Choice, epsilon: Decimal
) -> tuple[Claim, ...]:
    """Return the claims: differential privacy of choice and release together, and the form of the output."""
    names = tuple(column.name for column in schema.released)
    form = (safe_claims.k_anonymity(found.k, names, schema.unit), *safe_claims.pseudonyms(schema))
    return form if schema.drafted else (_private(promised, found, choice, epsilon), *form)


def _private(promised: Guarantee, found: Parameters, choice: Choice, epsilon: Decimal) -> Claim:
    return Claim(
        "approximate differential privacy",
        {
            "k": found.k,
            "rate": str(found.rate),
            "delta": str(found.delta),
            "epsilon": str(epsilon),
            "choosing": str(choice.epsilon),
            "adjacency": str(promised.unit.adjacency),
            "max_rows": promised.unit.max_rows,
        },
        str(promised.unit),
        _THEOREM,
        (
            Precondition("every released column belongs to the tuple that is counted", Status.PROVED),
            Precondition(choice.moved, Status.PROVED),
            Precondition(choice.fresh, Status.PROVED),
            Precondition("no tuple of the written output occurs fewer than k times", Status.CHECKED),
            *(Precondition(text, Status.ASSUMED) for text in sorted(promised.assumes)),
        ),
        (_GROUPS, choice.left_open),
    )
