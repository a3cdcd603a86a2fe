"""Levels by names: what a level of a hierarchy is called on the pages, instead of its number."""

from __future__ import annotations

from incrowd.core.hierarchy.hierarchy import Hierarchy, RuleKind

_NAMES = {
    RuleKind.PREFIX: "first {} characters",
    RuleKind.REDACTION: "{} characters hidden",
    RuleKind.INTERVALS: "intervals of {}",
    RuleKind.CUTS: "cut at {}",
    RuleKind.CALENDAR: "{}",
}


def level_name(hierarchy: Hierarchy, level: int) -> str:
    """Return the name of a level, with how many classes it has.

    >>> from incrowd.core.domain import Numbers
    >>> from incrowd.core.hierarchy.intervals import Intervals
    >>> ages = Intervals(Numbers(0, 99), (10, 50))
    >>> [level_name(ages, level) for level in range(4)]
    ['the value itself (100 classes)', 'intervals of 10 (10 classes)', 'intervals of 50 (2 classes)', 'nothing: *']
    """
    if level == hierarchy.height:
        return "nothing: *"
    rule, members = hierarchy.rule, hierarchy.members(level)
    name = "the value itself" if level == 0 else f"groups of level {level}"
    if level and rule.kind in _NAMES and rule.levels is not None and len(rule.levels) >= level:
        name = _NAMES[rule.kind].format(", ".join(rule.levels[level - 1]))
    return name if members is None else f"{name} ({len(members):,} {'class' if len(members) == 1 else 'classes'})"
