"""Explain: whether a suppression rule hides each person in a crowd, why not, and what a secret sample adds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from incrowd.accounting.suppression import tight_delta
from incrowd.accounting.suppression.inverses import smallest_epsilon
from incrowd.core.rounding import Number, exact, round_up
from incrowd.core.words import listed, short_up
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.workflows.rules.rule import Rounding, Rule, Zeros

_RATES = (Fraction(1, 100), Fraction(1, 20), Fraction(1, 10), Fraction(1, 5), Fraction(1, 2))
DELTA = Fraction(1, 10**6)
ADVICE = (
    "The method suppressed-histogram releases one table without totals. The method protected-table releases a table "
    "with its totals: it hides the further cells that are needed, and proves how uncertain each hidden cell stays for "
    "someone who knows only the table. incrowd check examines a table that you have."
)
_HEAD = """\
incrowd: 1
dataset:
  name: my-table                 # the budget is stored under this name
columns:                         # your columns, with all their possible values
  region: {role: quasi, categories: [north, south, east, west]}
  sex: {role: quasi, categories: [F, M]}
release:
  columns: [region, sex]"""


@dataclass(frozen=True)
class SampledGuarantee:
    """The guarantee of a rule after a secret sample: ε at a stated δ (None if there is none), and δ at ε = 1."""

    rate: Fraction
    epsilon: float | None
    delta: Fraction
    delta_at_one: float

    @classmethod
    def of(cls, k: int, rate: Fraction, delta: Fraction) -> SampledGuarantee:
        """Return the guarantee by the tight curve of sampled suppression."""
        try:
            epsilon: float | None = smallest_epsilon(delta, k, rate)
        except Infeasible:
            epsilon = None
        return cls(rate, epsilon, delta, tight_delta.delta(k, rate, 1))

    def to_json(self) -> dict[str, Any]:
        """Return the values for `--json`."""
        numbers = {"epsilon": self.epsilon, "delta": float(self.delta), "delta_at_epsilon_1": self.delta_at_one}
        return {"rate": str(self.rate), **numbers}


@dataclass(frozen=True)
class Explanation:
    """What a rule guarantees and what not, and the policy that is nearest to it."""

    rule: Rule
    reasons: tuple[str, ...]
    guarantees: tuple[str, ...]
    not_guaranteed: tuple[str, ...]
    overlap: str
    sampled: tuple[SampledGuarantee, ...]
    differences: tuple[str, ...]
    policy: str

    @property
    def answer(self) -> str:
        """Yes or no, in one sentence."""
        if self.rule.protects:
            return (
                f"Yes: one table by this rule hides each person in a crowd of at least {self.rule.k}, or ignores them."
            )
        return "No: this rule does not hide each person in a crowd."

    def to_json(self) -> dict[str, Any]:
        """Return the values for `--json`."""
        rule = self.rule
        return {
            "protects": rule.protects,
            "answer": self.answer,
            "reasons": list(self.reasons),
            "rule": f"{rule.words}.",
            "k": rule.k,
            "round": rule.base,
            "rounding": None if rule.base is None else str(rule.rounding),
            "small_counts": str(rule.small_counts),
            "zeros": str(rule.zeros),
            "published_beside": list(rule.obstacles),
            "rate": None if rule.rate is None else str(rule.rate),
            "guarantees": list(self.guarantees),
            "not_guaranteed": list(self.not_guaranteed),
            "overlap": self.overlap,
            "sampled": [guarantee.to_json() for guarantee in self.sampled],
            "advice": ADVICE,
            "policy_differs": list(self.differences),
            "policy": self.policy,
        }


def explain(rule: Rule, delta: Number = DELTA) -> Explanation:
    """Return what a rule guarantees and what not; no data is needed or read.

    Source: Gehrke, Hay, Lui & Pass 2012, Example 1: counts of at least k published exactly and all others as 0 are
    (k, 0)-crowd-blending.  A person in a cell of at least k can be exchanged for any other in it, and a person in a
    smaller one is ignored.  What is done to the published counts afterwards, such as rounding, is post-processing.
    After a secret sample it is Li, Qardaji & Su 2010, Theorem 1, by its tight curve.

    >>> explain(Rule(8, base=5)).answer
    'Yes: one table by this rule hides each person in a crowd of at least 8, or ignores them.'
    >>> [row.epsilon for row in explain(Rule(20)).sampled if row.rate == Fraction(1, 10)]
    [0.1829...]
    """
    limit = exact(delta, "delta")
    if not 0 < limit < 1:
        raise InvalidParameter("delta must lie strictly between 0 and 1, such as 1e-6.")
    rates = sorted({*_RATES, *([] if rule.rate is None else [rule.rate])}) if rule.protects else []
    return Explanation(
        rule=rule,
        reasons=_reasons(rule),
        guarantees=_guarantees(rule, limit),
        not_guaranteed=_limits(rule),
        overlap=overlap(rule),
        sampled=tuple(SampledGuarantee.of(rule.k, rate, limit) for rate in rates),
        differences=differences(rule),
        policy=policy_text(rule, limit),
    )


def _reasons(rule: Rule) -> tuple[str, ...]:
    """Return why a rule does not hide each person in a crowd; nothing where it does."""
    reasons = []
    if rule.zeros_apart:
        small = "1" if rule.threshold == 2 else f"1 to {rule.threshold - 1}"
        reasons.append(f"Zeros: a cell shows whether it holds nobody or {small}, so one person in a cell is visible.")
    if rule.k == 1:
        reasons.append(f"Rounding: a cell of one person can become {rule.base}, and an empty cell never does.")
    if rule.totals:
        reasons.append(f"Totals: a total counts the people in hidden cells, too. {_difference(rule, 'the total', 'v')}")
    if rule.percentages:
        reasons.append(
            "Percentages: 12 people and 60 % make a total of 20, which counts the people in hidden cells, too. "
            "Percentages that are computed from published counts are safe."
        )
    if rule.secondary:
        reasons.append(
            "Secondary suppression: the choice of further cells can depend on small counts, and this answer does not "
            "know which cells they are. Totals that add up published cells (incrowd coarsen) need none."
        )
    if rule.tables > 1:
        reasons.append("Further tables: the difference of two tables of the same people can show one person.")
    return tuple(reasons)


def _guarantees(rule: Rule, delta: Fraction) -> tuple[str, ...]:
    k = rule.k
    if rule.zeros_apart or k == 1:
        return _random_rounding(rule)
    opening = f"Without {listed(list(rule.obstacles))}, one" if rule.obstacles else "One"
    crowd = (
        f"{opening} such table is ({k}, 0)-crowd-blending: each person is either in a cell with at least {k - 1} "
        "others, or the table is the same as without that person (Gehrke, Hay, Lui & Pass 2012, "
        "Example 1). That needs cells that were chosen without the rows, and each person in one cell, once."
    )
    sentences = [crowd]
    if rule.round_first or rule.threshold == 1:
        sentences.append(
            f"Counts are rounded first, and {k} is the least count that can become {rule.multiple(k)}: k is {k}."
        )
    elif rule.base is not None:
        secret = ", if its randomness does not depend on who is in a cell" * (rule.rounding is Rounding.RANDOM)
        sentences.append(f"Rounding the published counts is post-processing, and changes nothing about that{secret}.")
    if rule.rate is not None and rule.protects:
        sentences.append(_after_sample(SampledGuarantee.of(k, rule.rate, delta), k))
    return tuple(sentences)


def _random_rounding(rule: Rule) -> tuple[str, ...]:
    """Return what rounding at random alone guarantees."""
    if rule.threshold > 1 or rule.rounding is not Rounding.RANDOM or rule.obstacles:
        return ()
    variation = (
        "One person more or less changes the distribution of the table by 1/{0} in total variation, if each cell is "
        "rounded with fresh secret randomness, up with probability remainder / {0}, and each person is in one cell, "
        "once. That is (0, 1/{0})-differential privacy, and a failure probability of 1/{0} is far too large."
    )
    return (variation.format(rule.base),)


def _after_sample(guarantee: SampledGuarantee, k: int) -> str:
    rate, delta = guarantee.rate, f"{float(guarantee.delta):g}"
    if guarantee.epsilon is None:
        floor = f"{float(rate) ** k:.3g}"
        return (
            f"After the secret sample there is no epsilon at delta {delta}: delta is never below {rate}^{k} = {floor}."
        )
    return (
        f"After the secret sample at rate {rate} it is ({short_up(round_up(guarantee.epsilon), 6)}, {delta})-"
        "differentially private, if rows are sampled independently and nobody knows which (Li, Qardaji & Su 2010, "
        "Theorem 1, by its tight bound)."
    )


def _limits(rule: Rule) -> tuple[str, ...]:
    limits = (
        "A second table of the same people, whatever its columns: crowds do not compose (see the example).",
        "Facts about a whole cell: a property that all its people share is disclosed for each of them.",
        "Sums and means: one person can be most of a sum. The rules for those are dominance and p %.",
        "Totals and percentages that are computed from rows, and not from the published cells.",
    )
    epsilon = "An epsilon: someone who knows all others in a cell learns about the last one by counting."
    return limits if rule.rate is not None and rule.protects else (epsilon, *limits)


def overlap(rule: Rule) -> str:
    """Return two tables by the rule whose difference shows one person, and the way out.

    >>> print(overlap(Rule(8)).partition(" Publish ")[0])
    Suppose 8 people live in v and one in w: a table by v and w together shows 9, a table by v shows 8. With nobody ...
    """
    example = _difference(rule, "a table by v and w together", "a table by v")
    same = "" if rule.rate is None else "Take two tables of one sample that holds all these people. "
    hides = "" if rule.base is None else " Rounding hides the person beside some counts, and not beside this one."
    return (
        f"{same}{example}{hides} Publish one table, of the joint cells, and derive every coarser table from it "
        "(incrowd coarsen); or draw a fresh secret sample for each."
    )


def _difference(rule: Rule, whole: str, part: str) -> str:
    """Return two numbers, published by the rule's own threshold and rounding, that differ by one person."""
    count = rule.telling_count
    alone, together = rule.multiple(count), rule.multiple(count + 1)
    people = "one person lives" if count == 1 else f"{count} people live"
    chance = f" with chance 1/{rule.base}" if rule.base is not None and rule.rounding is Rounding.RANDOM else ""
    return (
        f"Suppose {people} in v and one in w: {whole} shows {together}{chance}, {part} shows {alone}. With nobody in "
        f"w, both would show {alone}, so the difference discloses the person in w."
    )


def policy_text(rule: Rule, delta: Fraction) -> str:
    """Return the policy that is nearest to a rule; comments above it say where it differs.

    >>> print(policy_text(Rule(8, base=5), Fraction(1, 10**6)).split("sex]")[1])
    <BLANKLINE>
      method: suppressed-histogram
      k: 8
      round: 5
      rate: 1                        # every row; a rate below 1 gives an epsilon
    budget:
      unbounded: a suppression rule without a secret sample has no epsilon
    <BLANKLINE>
    """
    comments = [f"#   {difference}" for difference in differences(rule)]
    comments = ["# differs from the rule:", *comments] if comments else []
    rate, least = rule.rate, _least(rule)
    if _has_totals(rule):
        rounding = ["  protect: rounding", f"  base: {rule.base}"]
        lines = ["  method: protected-table", *(rounding if rule.threshold == 1 else [f"  minimum: {least}"])]
    else:
        lines = ["  method: suppressed-histogram", f"  k: {least}"]
        lines += [] if rule.base is None else [f"  round: {rule.base}"]
        lines += ["  rate: 1                        # every row; a rate below 1 gives an epsilon"] * (rate is None)
    if rate is None or _has_totals(rule):
        lines += ["budget:", "  unbounded: a suppression rule without a secret sample has no epsilon"]
    else:
        lines += [f"  rate: {rate}", f"  delta: {_feasible(least, rate, delta)}"]
    return "\n".join([*comments, _HEAD, *lines, ""])


def _has_totals(rule: Rule) -> bool:
    return rule.totals or rule.percentages or rule.secondary


def _least(rule: Rule) -> int:
    """Return the k of the policy: the least published count, or what is rounded to, where that is 1."""
    return rule.least_published if rule.least_published > 1 else rule.base or 2


def _feasible(k: int, rate: Fraction, delta: Fraction) -> str:
    """Return δ as it is written, or the next power of ten that some ε reaches: none lies below rate to the k."""
    floor = k * math.log10(rate)
    if math.log10(delta) <= floor + 1e-9:
        delta = min(Fraction(10) ** (math.floor(floor + 1e-9) + 1), (1 + Fraction(10**floor)) / 2)
    return f"{float(delta):g}"


def differences(rule: Rule) -> tuple[str, ...]:
    """Return in what the nearest policy means something else than the rule; nothing where it means the same.

    >>> differences(Rule(8, base=5)), differences(Rule(5, zeros=Zeros.SHOWN))
    ((), ('the policy publishes empty cells and hidden ones alike, as 0.',))
    """
    hides = rule.threshold > 1
    if _has_totals(rule):
        applies = {
            "the policy hides further cells, so that no total discloses a hidden one.": hides and not rule.secondary,
            "the policy shows empty cells as 0, and leaves hidden ones empty.": hides and rule.zeros is Zeros.HIDDEN,
            "the policy does not round.": hides and rule.base is not None,
            "the policy rounds so that all totals add up.": not hides,
            "the policy publishes all totals, and no percentages.": rule.percentages or not rule.totals,
            "the policy draws no sample.": rule.rate is not None,
            "the policy publishes one table.": rule.tables > 1,
        }
    else:
        applies = {
            f"the policy publishes counts below {_least(rule)} as 0.": rule.least_published == 1,
            "the policy publishes empty cells and hidden ones alike, as 0.": rule.zeros is Zeros.SHOWN,
            "the policy rounds to the nearest multiple, halves up.": rule.rounding is not Rounding.NEAREST,
            "the policy publishes one table.": rule.tables > 1,
        }
    return tuple(text for text, present in applies.items() if present)
