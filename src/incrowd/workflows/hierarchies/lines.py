"""Lines: everything that is wrong with a hierarchy file by itself, not only the first thing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from incrowd.core.domain import listed
from incrowd.workflows.hierarchies.problem import Fault

Line = Sequence[str]


def faults(lines: Sequence[Line]) -> tuple[Fault, ...]:
    """Return every ragged row, value listed twice, label with two parents and empty label, in this order.

    >>> found = faults([("Paris", "France"), ("Lyon", "France"), ("Paris", "Texas"), ("Rome",)])
    >>> [(problem.what, problem.value) for problem in found]
    [('ragged', 'Rome'), ('listed twice', 'Paris')]
    """
    width = max((len(line) for line in lines), default=0)
    whole = [line for line in lines if len(line) == width]
    return (*_ragged(lines, width), *_repeated(lines), *_torn(whole, width), *_empty(lines))


def _ragged(lines: Sequence[Line], width: int) -> Iterator[Fault]:
    for number, line in enumerate(lines, start=1):
        if len(line) < width:
            above = line[-1] if line else ""
            fix = f"row {number} has {len(line)} levels, the longest has {width}: give it a label on every level."
            yield Fault("ragged", line[0] if line else "", fix=fix, paste=_pasted(line, width, above))


def _repeated(lines: Sequence[Line]) -> Iterator[Fault]:
    where: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines, start=1):
        where[line[0]].append(number)
    for value, numbers in where.items():
        if len(numbers) > 1:
            same = len({tuple(lines[number - 1]) for number in numbers}) == 1
            told = "they are the same: keep one" if same else "they differ: keep the right one"
            yield Fault("listed twice", value, fix=f"rows {', '.join(map(str, numbers))}; {told}.")


def _torn(lines: Sequence[Line], width: int) -> Iterator[Fault]:
    for level in range(1, width - 1):
        above: dict[str, set[str]] = defaultdict(set)
        for line in lines:
            above[line[level]].add(line[level + 1])
        for label, parents in above.items():
            if len(parents) > 1:
                fix = f"on level {level} it lies in {listed(sorted(parents))}: give it one place, or two names."
                yield Fault("in two places", label, fix=fix)


def _empty(lines: Sequence[Line]) -> Iterator[Fault]:
    for number, line in enumerate(lines, start=1):
        if any(not label for label in line[1:]):
            yield Fault("no label", line[0], fix=f"row {number} has an empty label: name the class, or write *.")


def _pasted(line: Line, width: int, label: str) -> tuple[str, ...]:
    return (*line, *[label] * (width - len(line)))
