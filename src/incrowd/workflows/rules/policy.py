"""Policy: the policy that says a rule, with placeholders where only the data holder knows."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from incrowd.workflows.rules.rule import Rule

_HEAD = """\
incrowd: 1
dataset:
  name: my-table                 # spending is kept under this name, for good
columns:                         # your columns, with all the values there can be
  region: {role: quasi, categories: [north, south, east, west]}
  sex: {role: quasi, categories: [F, M]}
release:
  method: suppressed-histogram
"""


def policy_text(rule: Rule, delta: Fraction) -> str:
    """Return a policy that releases one table of counts by the rule; with the rule's secret sample, if it has one.

    >>> from incrowd.workflows.rules.rule import Rule
    >>> print(policy_text(Rule(8, base=5), Fraction(1, 10**6)).split("release:")[1])
    <BLANKLINE>
      method: suppressed-histogram
      columns: [region, sex]
      k: 8
      rate: 1                        # every row; with a rate below 1 there is an epsilon
      round: 5
    budget:
      unbounded: a suppression rule without a secret sample has no epsilon
    <BLANKLINE>
    """
    lines = ["  columns: [region, sex]", f"  k: {rule.minimum}"]
    if rule.rate is None:
        lines.append("  rate: 1                        # every row; with a rate below 1 there is an epsilon")
    else:
        lines += [f"  rate: {rule.rate}", f"  target: {{delta: {_feasible(rule, delta)}}}"]
    if rule.base is not None:
        lines.append(f"  round: {rule.base}")
    if rule.rate is None:
        lines += ["budget:", "  unbounded: a suppression rule without a secret sample has no epsilon"]
    return _HEAD + "\n".join(lines) + "\n"


def _feasible(rule: Rule, delta: Fraction) -> str:
    """Return δ as it is written, or the next power of ten that some ε reaches: none lies below rate to the k."""
    if rule.rate is not None:
        floor = rule.minimum * math.log10(rule.rate)
        if math.log10(delta) <= floor + 1e-9:
            delta = min(Fraction(10) ** (math.floor(floor + 1e-9) + 1), (1 + Fraction(10**floor)) / 2)
    return f"{float(delta):g}"
