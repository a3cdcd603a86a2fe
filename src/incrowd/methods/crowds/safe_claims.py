"""What sampled suppression claims, theorem by theorem, with what each claim needs and what it leaves open."""

from __future__ import annotations

import math
from fractions import Fraction

from incrowd.accounting.suppression.smooth import theorem6_delta
from incrowd.accounting.suppression.theorem1 import theorem1_delta
from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.schema import Schema
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.methods.crowds.parameters import Parameters

COINS = "the coins of the sample are known to nobody and forgotten"
BLIND = "recoding, levels and parameters were chosen without looking at the rows"
ONCE = "this release was not chosen among several runs"
LEDGER = "all releases about these people are charged to this ledger"
ROW_IS_PERSON = "each person has at most one row"
PERSON_COLUMN = "the person column tells people apart, and no person stands under two ids"

GROUPS = "what holds for a whole group: people like you can be described, with or without you"
_MEMBERS = "attackers who learn who is in the sample see those people's recoded rows in the crowd"


def assumptions(unit: Unit, *, sampled: bool) -> frozenset[str]:
    """Return what must be true outside our code."""
    who = PERSON_COLUMN if unit.kind is Kind.PERSON else ROW_IS_PERSON
    return frozenset({BLIND, ONCE, LEDGER, who} | ({COINS} if sampled else set()))


def claims(k: int, found: Parameters | None, columns: tuple[str, ...], unit: Unit) -> tuple[Claim, ...]:
    """Return all claims; `found` is None where every row was read, `columns` are the released ones."""
    made: list[Claim] = []
    if found is not None:
        made.append(_private(found, unit))
        if unit.max_rows == 1 and unit.adjacency is Adjacency.ADD_REMOVE:
            made.extend([_zero_knowledge(found, unit), *_theorem1(found, unit)])
    if unit.max_rows == 1:
        made.append(blending(k, unit))
    return (*made, k_anonymity(k, columns, unit))


def k_anonymity(k: int, columns: tuple[str, ...], unit: Unit) -> Claim:
    """Return the claim about the output's form, which anyone can recount."""
    several = unit.max_rows > 1
    people = {"people": math.ceil(k / unit.max_rows)} if several else {}
    return Claim(
        "k-anonymity",
        {"k": k, "columns": list(columns), **people},
        str(unit),
        "counted: every tuple over all released columns occurs at least k times",
        (Precondition("the written output was counted again", Status.CHECKED),),
        (
            *(["k counts rows: a class may be as few people as `people` says"] if several else []),
            "a class whose members agree in a sensitive value gives that value away",
            "a second release, or outside knowledge, can split classes",
        ),
    )


def pseudonyms(schema: Schema) -> tuple[Claim, ...]:
    """Return the claim that identifiers stand under keyed pseudonyms, if some do: a property of form, and no more."""
    columns = [column.name for column in schema.released if column.pseudonymous]
    if not columns:
        return ()
    return (
        Claim(
            "pseudonymization",
            {"columns": columns},
            str(schema.unit),
            "HMAC-SHA-256: without the key a pseudonym tells nothing about the value behind it",
            (Precondition("the key is kept apart, and nobody who receives the release knows it", Status.ASSUMED),),
            (
                "whoever holds the key, or can have values pseudonymized, can tell whose pseudonym it is",
                "rows of one value are linked, here and in every release made with the same key",
            ),
        ),
    )


def _private(found: Parameters, unit: Unit) -> Claim:
    theorem = "Li, Qardaji & Su 2010, Theorem 1, by the tight curve of sampled suppression"
    if unit.max_rows > 1:
        theorem += "; group privacy over a person's rows"
    if unit.adjacency is Adjacency.REPLACE:
        theorem += "; for replaced rows, by the better of the composed and the shifted curve"
    return Claim(
        "approximate differential privacy",
        {**_numbers(found), "epsilon": str(found.epsilon), "adjacency": str(unit.adjacency), "max_rows": unit.max_rows},
        str(unit),
        theorem,
        _conditions(unit, sampled=True),
        (GROUPS,),
    )


def _zero_knowledge(found: Parameters, unit: Unit) -> Claim:
    return Claim(
        "zero-knowledge with respect to random sampling",
        {**_numbers(found), "epsilon": str(found.epsilon)},
        str(unit),
        "Gehrke, Hay, Lui & Pass 2012, Theorem 1, by the exact worst case",
        _conditions(unit, sampled=True),
        (GROUPS,),
    )


def _theorem1(found: Parameters, unit: Unit) -> list[Claim]:
    """Return the published bounds at the same ε: a larger δ, for readers who check against the paper."""
    epsilon = Fraction(found.epsilon)
    if float(epsilon) < -math.log1p(-float(found.rate)) * (1 + 1e-12):
        return []
    published = _numbers(found) | {"epsilon": str(found.epsilon)}
    return [
        Claim(
            "approximate differential privacy, as published",
            {**published, "delta": repr(theorem1_delta(found.k, found.rate, epsilon))},
            str(unit),
            "Li, Qardaji & Su 2010, Theorem 1",
            _conditions(unit, sampled=True),
            (GROUPS,),
        ),
        Claim(
            "f-smooth differential privacy",
            {**published, "delta": repr(theorem6_delta(found.k, found.rate, epsilon))},
            str(unit),
            "Li, Qardaji & Su 2010, Theorem 6",
            _conditions(unit, sampled=True),
            (GROUPS, "the failure probability does not vanish as epsilon grows: it stays above rate to the k"),
        ),
    ]


def blending(k: int, unit: Unit) -> Claim:
    """Return the claim that everyone blends with k people or is ignored; it needs no secret coins."""
    return Claim(
        "crowd-blending",
        {"k": k, "epsilon": "0"},
        str(unit),
        "Gehrke, Hay, Lui & Pass 2012, Example 1",
        _conditions(unit, sampled=False),
        (GROUPS, _MEMBERS, "a second release from the same rows or the same sample: crowds do not compose"),
    )


def _numbers(found: Parameters) -> dict[str, object]:
    return {"k": found.k, "rate": str(found.rate), "delta": str(found.delta)}


def _conditions(unit: Unit, *, sampled: bool) -> tuple[Precondition, ...]:
    by_design = [
        Precondition("every released column belongs to the tuple that is counted", Status.PROVED),
        Precondition("rows are recoded one by one, by declared rules", Status.PROVED),
    ]
    if sampled:
        by_design.append(
            Precondition("each row has an independent coin whose rate is never above the stated one", Status.PROVED)
        )
    by_design.append(Precondition("no tuple of the written output occurs fewer than k times", Status.CHECKED))
    return (*by_design, *(Precondition(text, Status.ASSUMED) for text in sorted(assumptions(unit, sampled=sampled))))
