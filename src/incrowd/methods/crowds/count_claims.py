"""What histograms claim, theorem by theorem, with what each claim needs and what it leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.unit import Adjacency, Unit
from incrowd.methods.crowds.parameters import Parameters
from incrowd.methods.crowds.safe_claims import assumptions

_GROUPS = "what holds for a whole group: people like you can be described, with or without you"
_MEMBERS = "attackers who learn who is in the sample see the exact counts of their crowds"
_OVERLAP = (
    "a second table from the same rows or the same sample, whatever its columns: crowds do not compose, and the "
    "difference of two overlapping tables can be one person"
)
_REPLACED = {True: "by the better of the composed and the shifted curve", False: "as one removed and one added"}
_EVERY_BIN = "every bin of the partition gets noise of its own, the empty ones too"
_DECLARED = "the bins in the written output are those of the declaration"
_UNKNOWN = {
    _EVERY_BIN: (
        "every bin that occurs gets noise of its own, and is listed only if its noisy count reaches a threshold that "
        "one person alone reaches with a chance of delta at most"
    ),
    _DECLARED: "no count in the written output is below the threshold",
}
_SUMS = "margins computed from rows: add up the published counts instead"


@dataclass(frozen=True)
class Small:
    """What becomes of counts below k: zero, or noise of a stated ε."""

    k: int
    noise: Fraction | None

    @property
    def epsilon(self) -> Fraction:
        """The ε inside a crowd."""
        return self.noise or Fraction(0)

    @property
    def source(self) -> str:
        """The example that says what such counts are worth."""
        return f"Gehrke, Hay, Lui & Pass 2012, Example {1 if self.noise is None else 2}"

    @property
    def curve(self) -> str:
        """The theorem for such counts on a secret sample."""
        if self.noise is None:
            return "Li, Qardaji & Su 2010, Theorem 1, by the tight curve of sampled suppression"
        return "Gehrke, Hay, Lui & Pass 2012, Theorem 1, by the tight curve of noisy small counts on a sample"


def crowd_claims(small: Small, found: Parameters | None, unit: Unit) -> tuple[Claim, ...]:
    """Return the claims of a histogram whose counts from k on are exact; `found` is None where every row was read."""
    made: list[Claim] = []
    if found is not None:
        made.append(_private(small, found, unit))
        if unit.max_rows == 1 and unit.adjacency is Adjacency.ADD_REMOVE:
            made.append(_zero_knowledge(small, found, unit))
    if unit.max_rows == 1:
        made.append(_blending(small, unit))
    return tuple(made)


def noise_claim(kind: str, numbers: Mapping[str, object], theorem: str, unit: Unit, assumed: frozenset[str]) -> Claim:
    """Return the claim of a histogram in which every count has noise."""
    return Claim(
        kind,
        {**numbers, "adjacency": str(unit.adjacency), "max_rows": unit.max_rows},
        str(unit),
        theorem,
        (
            Precondition(_EVERY_BIN, Status.PROVED),
            Precondition("rows are recoded one by one, by declared rules", Status.PROVED),
            Precondition(_DECLARED, Status.CHECKED),
            *(Precondition(text, Status.ASSUMED) for text in sorted(assumed)),
        ),
        (_GROUPS,),
    )


def of_unknown_bins(claim: Claim) -> Claim:
    """Return the claim for bins that were found while reading: the empty ones are not known, and a threshold hides.

    >>> claim = Claim("", {}, "", "", (Precondition(_DECLARED, Status.CHECKED),))
    >>> of_unknown_bins(claim).preconditions[0].text
    'no count in the written output is below the threshold'
    """
    needs = tuple(replace(each, text=_UNKNOWN.get(each.text, each.text)) for each in claim.preconditions)
    return replace(claim, preconditions=needs)


def _private(small: Small, found: Parameters, unit: Unit) -> Claim:
    theorem = small.curve + ("; group privacy over a person's rows" if unit.max_rows > 1 else "")
    if unit.adjacency is Adjacency.REPLACE:
        theorem += f"; for replaced rows, {_REPLACED[small.noise is None]}"
    return Claim(
        "approximate differential privacy",
        {**_numbers(small, found), "adjacency": str(unit.adjacency), "max_rows": unit.max_rows},
        str(unit),
        theorem,
        _conditions(small, unit, sampled=True),
        (_GROUPS, _SUMS),
    )


def _zero_knowledge(small: Small, found: Parameters, unit: Unit) -> Claim:
    return Claim(
        "zero-knowledge with respect to random sampling",
        _numbers(small, found),
        str(unit),
        "Gehrke, Hay, Lui & Pass 2012, Theorem 1: a simulator releases the same from a sample of everyone else",
        _conditions(small, unit, sampled=True),
        (_GROUPS, _SUMS),
    )


def _blending(small: Small, unit: Unit) -> Claim:
    return Claim(
        "crowd-blending",
        {"k": small.k, "epsilon": str(small.epsilon)},
        str(unit),
        small.source,
        _conditions(small, unit, sampled=False),
        (_GROUPS, _MEMBERS, _OVERLAP, _SUMS),
    )


def _numbers(small: Small, found: Parameters) -> dict[str, object]:
    noise = {} if small.noise is None else {"noise": str(small.noise)}
    return {
        "k": found.k,
        **noise,
        "rate": str(found.rate),
        "epsilon": str(found.epsilon),
        "delta": str(found.delta),
    }


def _conditions(small: Small, unit: Unit, *, sampled: bool) -> tuple[Precondition, ...]:
    by_design = [
        Precondition("the bins are fixed by the declaration, and each row counts in one bin, once", Status.PROVED),
        Precondition("rows are recoded one by one, by declared rules", Status.PROVED),
    ]
    if small.noise is not None:
        by_design.append(Precondition("every count below k gets noise, that of every empty bin too", Status.PROVED))
    if sampled:
        by_design.append(
            Precondition("each row has an independent coin whose rate is never above the stated one", Status.PROVED)
        )
    by_design.append(
        Precondition("bins and counts of the written output are such as these steps can make", Status.CHECKED)
    )
    return (*by_design, *(Precondition(text, Status.ASSUMED) for text in sorted(assumptions(unit, sampled=sampled))))
