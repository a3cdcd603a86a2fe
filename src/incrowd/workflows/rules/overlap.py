"""Overlap: two tables that both follow a rule, and the one person whose presence they show together."""

from __future__ import annotations

from incrowd.workflows.rules.rule import Rounding, Rule

_WAY_OUT = (
    "So release one table, of the joint cells, and derive every coarser table from what was released (incrowd "
    "coarsen); or draw a fresh secret sample for each."
)


def overlap(rule: Rule) -> str:
    """Return two published numbers, by the rule's own minimum and rounding, that differ by one person's presence.

    Where rounding hides that person beside the smallest count that is published, this is said, and a larger count is
    taken, beside which it does not.

    >>> print(overlap(Rule(8)).partition(" So ")[0])
    Suppose 8 people live in v and one in w. A table by {v, w} together says 9, a table by v says 8; had nobody ...
    >>> print(overlap(Rule(8, 5)).partition(" So ")[0])
    Suppose 8 people live in v and one in w. A table by {v, w} together says 10, a table by v says 10: rounding ...
    """
    smallest, telling = max(rule.minimum, 1), telling_count(rule)
    hidden = "" if telling == smallest else _hidden(rule, smallest)
    return f"{_drawn(rule)}{hidden}{_betrayed(rule, telling, again=bool(hidden))} {_WAY_OUT}"


def telling_count(rule: Rule) -> int:
    """Return the least published count that one person more changes, after rounding.

    >>> telling_count(Rule(8)), telling_count(Rule(8, 5)), telling_count(Rule(8, 5, rounding=Rounding.DOWN))
    (8, 12, 9)
    """
    base = rule.base
    start = max(rule.minimum, 1)
    if base is None:
        return start
    if rule.rounding is Rounding.RANDOM:
        return -(-start // base) * base
    return next(count for count in range(start, start + base) if rule.multiple(count) != rule.multiple(count + 1))


def _drawn(rule: Rule) -> str:
    return "" if rule.rate is None else "Take two tables from one and the same sample, in which all these people are. "


def _hidden(rule: Rule, count: int) -> str:
    if rule.rounding is Rounding.RANDOM:
        return ""
    shown = rule.multiple(count)
    return (
        f"Suppose {_people(count)} in v and one in w. A table by {{v, w}} together says {shown}, a table by v says "
        f"{shown}: rounding hides the one person there. Elsewhere it does not: "
    )


def _betrayed(rule: Rule, count: int, *, again: bool) -> str:
    opening = "suppose" if again else "Suppose"
    alone, together = rule.multiple(count), rule.multiple(count + 1)
    if rule.base is not None and rule.rounding is Rounding.RANDOM:
        return (
            f"Suppose {_people(count)} in v and one in w. A table by v says {count}, for multiples of {rule.base} "
            f"stay as they are; a table by {{v, w}} together says {count} or, with chance 1/{rule.base}, {together}. "
            f"Had nobody lived in w, both would say {count}: a {together} shows that the person is there."
        )
    both = f"had nobody lived in w, both would say {alone}"
    halves = ", halves up" if rule.base is not None and rule.base % 2 == 0 and rule.rounding is Rounding.NEAREST else ""
    rounded = f" (rounded from {count + 1} and {count}{halves})" if rule.base is not None else ""
    return (
        f"{opening} {_people(count)} in v and one in w. A table by {{v, w}} together says {together}, a table by v "
        f"says {alone}{rounded}; {both}. Both tables follow the rule, and their difference shows that the person is "
        "there."
    )


def _people(count: int) -> str:
    return f"{count} people live" if count != 1 else "one person lives"
