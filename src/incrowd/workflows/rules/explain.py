"""Explain: what a suppression rule promises today, what it does not, and what a secret sample in front would add."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from incrowd.accounting.budget import shown_up
from incrowd.accounting.suppression import tight_delta
from incrowd.accounting.suppression.inverses import smallest_epsilon
from incrowd.core.rounding import Number, exact, round_up
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.workflows.rules.grammar import RuleReading, read_rule
from incrowd.workflows.rules.overlap import overlap
from incrowd.workflows.rules.rule import Rounding, Rule, Zeros

_RATES = (Fraction(1, 100), Fraction(1, 20), Fraction(1, 10), Fraction(1, 5), Fraction(1, 2))
DELTA = Fraction(1, 10**6)
_HEAD = """\
incrowd: 1
dataset:
  name: my-table                 # spending is kept under this name, for good
columns:                         # your columns, with all their possible values
  region: {role: quasi, categories: [north, south, east, west]}
  sex: {role: quasi, categories: [F, M]}
release:
  method: suppressed-histogram
"""


@dataclass(frozen=True)
class SampledPromise:
    """What the rule promises behind a secret sample: ε at the asked δ (None if there is none), and δ at ε = 1."""

    rate: Fraction
    epsilon: float | None
    delta: Fraction
    delta_at_one: float

    def to_json(self) -> dict[str, Any]:
        """Return the plain form printed by `--json`."""
        return {
            "rate": str(self.rate),
            "epsilon": self.epsilon,
            "delta": float(self.delta),
            "delta_at_epsilon_1": self.delta_at_one,
        }


@dataclass(frozen=True)
class Explanation:
    """A rule in other words: what it guarantees, what not, and the policy that says it."""

    rule: Rule
    reading: str
    guarantees: tuple[str, ...]
    not_guaranteed: tuple[str, ...]
    overlap: str
    sampled: tuple[SampledPromise, ...]
    notes: tuple[str, ...]
    differences: tuple[str, ...]
    policy: str

    def to_json(self) -> dict[str, Any]:
        """Return the plain form printed by `--json`."""
        rule = self.rule
        return {
            "k": rule.minimum,
            "round": rule.base,
            "rounding": None if rule.base is None else str(rule.rounding),
            "rate": None if rule.rate is None else str(rule.rate),
            "zeros": str(rule.zeros),
            "secondary_suppression": rule.secondary,
            "crowd_blending": rule.blending,
            "reading": self.reading,
            "guarantees": list(self.guarantees),
            "not_guaranteed": list(self.not_guaranteed),
            "overlap": self.overlap,
            "sampled": [promise.to_json() for promise in self.sampled],
            "notes": list(self.notes),
            "policy_differs": list(self.differences),
            "policy": self.policy,
        }


def explain(rule: str | Rule, delta: Number = DELTA) -> Explanation:
    """Return what a rule promises, given in words or in numbers; no data is needed or looked at.

    Source: Gehrke, Hay, Lui & Pass 2012, Example 1: counts of at least k published exactly and all others as 0 are
    (k, 0)-crowd-blending.  Whoever is in a cell of at least k can be exchanged for any other in it, and whoever is in
    a smaller one is ignored.  What is done to the published counts afterwards, such as rounding, is post-processing.
    Behind a secret sample it is Li, Qardaji & Su 2010, Theorem 1, by its tight curve.

    >>> explain("counts of 7 or fewer become 0, then round to 5").rule.minimum
    8
    >>> [promise.epsilon for promise in explain("minimum cell size 20").sampled if promise.rate == Fraction(1, 10)]
    [0.1829...]
    """
    reading = read_rule(rule) if isinstance(rule, str) else RuleReading(rule)
    found, wanted = reading.rule, exact(delta, "delta")
    if not 0 < wanted < 1:
        raise InvalidParameter("delta must lie strictly between 0 and 1, such as 1e-6.")
    rates = sorted({*_RATES, *([found.rate] if found.rate is not None else [])})
    return Explanation(
        rule=found,
        reading=f"{found.words}.",
        guarantees=_guarantees(found, wanted),
        not_guaranteed=_limits(found),
        overlap=overlap(found),
        sampled=tuple(_sampled(found.minimum, rate, wanted) for rate in rates) if found.blending else (),
        notes=(*reading.notes, *_notes(found)),
        differences=differences(found),
        policy=policy_text(found, wanted),
    )


def _sampled(k: int, rate: Fraction, delta: Fraction) -> SampledPromise:
    try:
        epsilon: float | None = smallest_epsilon(delta, k, rate)
    except Infeasible:
        epsilon = None
    return SampledPromise(rate, epsilon, delta, tight_delta.delta(k, rate, 1))


def _guarantees(rule: Rule, delta: Fraction) -> tuple[str, ...]:
    k = rule.minimum
    if rule.zeros is Zeros.SHOWN:
        nothing = (
            f"Nothing about single people: a cell shows whether it holds nobody or 1 to {k - 1}, so whoever is alone "
            "in a cell shows. Publish empty cells and suppressed ones alike."
        )
        return (nothing,)
    if k == 1:
        return _rounded_alone(rule)
    blended = (
        f"One such table is ({k}, 0)-crowd-blending: each person either looks exactly like at least {k - 1} others in "
        "the table, or leaves it as it would be without that person (Gehrke, Hay, Lui & Pass 2012, Example 1). That "
        "needs cells that were chosen without looking at the rows, and each person in one cell, once."
    )
    if rule.secondary:
        return (f"Of the minimum alone, in a table without totals and without secondary suppression: {blended}",)
    found = [blended]
    if rule.base is not None:
        found.append(_POST[rule.rounding is Rounding.RANDOM])
    if rule.rate is not None:
        found.append(_behind_sample(k, rule.rate, delta))
    return tuple(found)


_POST = {
    False: "Rounding needs only counts that may be published: it is post-processing, and changes nothing about that.",
    True: "Rounding at random is post-processing, and changes nothing about that, if its coins do not depend on who is "
    "in a cell; coins made from keys of the people in it do.",
}


def _rounded_alone(rule: Rule) -> tuple[str, ...]:
    """Say what rounding alone promises where a single person can change what is published."""
    base = rule.base
    nothing = (
        f"No crowd: a cell of one person can show as {base}, and an empty one never does, so a {base} can show that "
        "somebody is there."
    )
    if rule.rounding is not Rounding.RANDOM:
        return (nothing,)
    chance = (
        f"For what it is worth: if each cell has fresh coins that nobody knows and is rounded up with chance remainder "
        f"/ {base}, one person more or less changes the law of the published table by 1/{base} in total variation, "
        f"which is (0, 1/{base})-differential privacy, for one table and each person in one cell, once. A delta of "
        f"1/{base} is far above what is held acceptable."
    )
    return (nothing, chance)


def _behind_sample(k: int, rate: Fraction, delta: Fraction) -> str:
    promise = _sampled(k, rate, delta)
    if promise.epsilon is None:
        return (
            f"Behind the secret sample at rate {rate} there is no epsilon at delta {float(delta):g}: delta is never "
            f"below rate to the k, {float(rate) ** k:.3g}."
        )
    return (
        f"Behind the secret sample at rate {rate} it is ({shown_up(round_up(promise.epsilon))}, {float(delta):g})-"
        "differentially private, if each row has a coin of its own and nobody knows who was drawn (Li, Qardaji & Su "
        "2010, Theorem 1, by its tight curve)."
    )


_SECONDARY = (
    "Secondary suppression is not modelled here: neither which further cells are withheld, nor what totals leave open "
    "about them. Published totals count the people of withheld cells too, so one person more changes a total by one; "
    "and which further cells are withheld can depend on small counts, so it is no post-processing. Derive totals from "
    "published cells (incrowd coarsen), and no secondary suppression is needed."
)


def _limits(rule: Rule) -> tuple[str, ...]:
    limits = [
        "A second table of the same people, whatever its columns: crowds do not add up (see the example).",
        "What holds for a whole cell: if all its people share a property, the table tells it about each of them.",
        "Sums and means: one person can be most of a sum. Dominance and p % rules are about those, and not covered.",
        "Margins and totals that were computed from rows rather than from the published cells: they are other tables.",
    ]
    if rule.secondary:
        limits.insert(0, _SECONDARY)
    if rule.rate is None:
        limits.insert(0, "An epsilon: who knows all others in a cell learns the last one by counting.")
    return tuple(limits)


def _notes(rule: Rule) -> tuple[str, ...]:
    if rule.zeros is not Zeros.UNSAID:
        return ()
    unsaid = (
        "the rule does not say how empty cells look. It is read so that they look like suppressed ones; if a true 0 is "
        f"shown while 1 to {rule.minimum - 1} is marked, whoever is alone in a cell shows."
    )
    return (unsaid,)


def policy_text(rule: Rule, delta: Fraction) -> str:
    """Return a policy that releases one table of counts by the rule; with the rule's secret sample, if it has one.

    Where the policy says something else than the rule, comments above it say what.

    >>> print(policy_text(Rule(8, base=5, zeros=Zeros.HIDDEN), Fraction(1, 10**6)).split("release:")[1])
    <BLANKLINE>
      method: suppressed-histogram
      columns: [region, sex]
      k: 8
      rate: 1                        # every row; a rate below 1 gives an epsilon
      round: 5
    budget:
      unbounded: a suppression rule without a secret sample has no epsilon
    <BLANKLINE>
    """
    lines = ["  columns: [region, sex]", f"  k: {_least(rule)}"]
    if rule.rate is None:
        lines.append("  rate: 1                        # every row; a rate below 1 gives an epsilon")
    else:
        lines += [f"  rate: {rule.rate}", f"  target: {{delta: {_feasible(rule, delta)}}}"]
    if rule.base is not None:
        lines.append(f"  round: {rule.base}")
    if rule.rate is None:
        lines += ["budget:", "  unbounded: a suppression rule without a secret sample has no epsilon"]
    comments = [f"# differs from the rule: {each}\n" for each in differences(rule)]
    if rule.zeros is Zeros.UNSAID:
        comments.append(
            "# the rule does not say how withheld cells look: here they are published as 0, like empty ones\n"
        )
    return "".join(comments) + _HEAD + "\n".join(lines) + "\n"


def _least(rule: Rule) -> int:
    """Return the k of the policy: the rule's minimum, or where it publishes every count, what it rounds to."""
    return rule.minimum if rule.minimum > 1 else rule.base or 2


def differences(rule: Rule) -> tuple[str, ...]:
    """Return in what the policy means something else than the rule; nothing where it says the same.

    >>> differences(Rule(8, base=5, zeros=Zeros.HIDDEN))
    ()
    >>> differences(Rule(5, zeros=Zeros.SHOWN))
    ('the rule shows empty cells; the policy publishes them like withheld ones, as 0.',)
    """
    found = []
    if rule.minimum == 1:
        found.append(f"the rule withholds no count; the policy publishes counts below {_least(rule)} as 0.")
    if rule.zeros is Zeros.SHOWN:
        found.append("the rule shows empty cells; the policy publishes them like withheld ones, as 0.")
    if rule.base is not None and rule.rounding is not Rounding.NEAREST:
        way = "at random" if rule.rounding is Rounding.RANDOM else str(rule.rounding)
        found.append(f"the rule rounds {way}; the policy rounds to the nearest multiple, halves up.")
    if rule.secondary:
        found.append("the rule withholds further cells; the policy does not, and publishes no totals.")
    return tuple(found)


def _feasible(rule: Rule, delta: Fraction) -> str:
    """Return δ as it is written, or the next power of ten that some ε reaches: none lies below rate to the k."""
    if rule.rate is not None:
        floor = _least(rule) * math.log10(rule.rate)
        if math.log10(delta) <= floor + 1e-9:
            delta = min(Fraction(10) ** (math.floor(floor + 1e-9) + 1), (1 + Fraction(10**floor)) / 2)
    return f"{float(delta):g}"
