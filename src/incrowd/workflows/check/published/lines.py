"""Lines: which lines of a published table are totals of which others, by indents, codes, names, and by adding up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from incrowd.methods.tabulation.protected.frame import TableAxis
from incrowd.workflows.check.published.reading import NO_BOUND, Whole, is_total

_EVIDENCE = 2
"""So many sums of visible numbers above zero must agree before a line counts as a total without being named one."""
_ENDLESS = np.iinfo(np.int64).max // 2**20
ALL = "(all lines)"
"""The label of a total that the file does not have."""
REST = "(the rest)"
"""The label of what the lines “of which” leave of the line above them, where they are not all of it."""
_OF_WHICH = re.compile(
    r"\W*(of which|of whom|including|thereof|darunter|davon|dont|di cui|de los cuales|de las cuales|de ellos|dos quais|"
    r"waarvan|heraf|herav|därav|w tym|z toho|z čeho|joista|ebből|din care|od toga|od tega|из них|в том числе)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of one axis: labels, and bounds of their cells, a row for each line (`NO_BOUND`: no upper one)."""

    column: str
    labels: tuple[str, ...]
    low: Whole
    high: Whole

    @cached_property
    def _most(self) -> Whole:
        return np.where(self.high == NO_BOUND, _ENDLESS, self.high)

    def add_up(self, line: int, parts: Sequence[int]) -> int | None:
        """Return how many visible sums above zero agree with a line being the total of others; None if one does not."""
        under = list(parts)
        least, most = self.low[under].sum(0), np.minimum(_ENDLESS, self._most[under].sum(0))
        if np.any(least > self._most[line]) or np.any(most < self.low[line]):
            return None
        exact = (least == most) & (self.low[line] == self._most[line]) & (least > 0)
        return int(np.count_nonzero(exact))

    def axis(self) -> tuple[TableAxis, list[int | None]]:
        """Return the axis with every total above its lines, and for each of its nodes the line of the file, or None."""
        tops = self._tops()
        if len(tops) > 1:
            named = [top for top in tops if is_total(self.labels[top.line or 0]) and not top.parts]
            if len(named) == 1:
                tops = [Node(named[0].line, [top for top in tops if top is not named[0]])]
        root = tops[0] if len(tops) == 1 else Node(None, list(tops))
        labels: list[str | None] = []
        parents: list[int] = []
        places: list[int | None] = []
        for node, parent in root.walk(-1, places):
            parents.append(parent)
            missing = ALL if parent < 0 else REST
            labels.append(missing if node.line is None else self.labels[node.line].strip() or "(blank)")
        return TableAxis(self.column, tuple(_numbered(labels)), tuple(parents)), places

    def _tops(self) -> list[Node]:
        """Return the lines that lie under no other, with those under them."""
        parts = [place for place, label in enumerate(self.labels) if place and _OF_WHICH.match(label)]
        if not parts:
            return _by_depth(self._depths) or self._by_codes() or self._by_sums()
        rest = [place for place in range(len(self.labels)) if place not in parts]
        others = Lines(self.column, tuple(self.labels[place] for place in rest), self.low[rest], self.high[rest])
        tops = [top.renumbered(rest) for top in others._tops()]
        inner = {node.line: node for top in tops for node, _ in top.walk(-1, [])}
        for line, after in pairwise([*rest, len(self.labels)]):
            own = range(line + 1, after)
            if own and not inner[line].parts:  # else they overlap with its other parts
                whole = bool(self.add_up(line, own))
                inner[line].parts.extend([*map(Node, own), *([] if whole else [Node(None)])])
        return tops

    @property
    def _depths(self) -> list[int]:
        return [len(label) - len(label.lstrip()) for label in self.labels]

    def _by_codes(self) -> list[Node] | None:
        """Return the lines by the codes in front of their labels, where each code continues one above it, or None."""
        codes = [(label.split() or [""])[0] for label in self.labels]
        if len(set(codes)) < len(codes) or not all(
            code.isalnum() and any(map(str.isdigit, code)) for code in codes[1:]
        ):
            return None
        nodes = {code: Node(place) for place, code in enumerate(codes)}
        tops: list[Node] = []
        for code, node in nodes.items():
            above = next((code[:end] for end in range(len(code) - 1, 0, -1) if code[:end] in nodes), None)
            (tops if above is None else nodes[above].parts).append(node)
        inner = [node for node in nodes.values() if node.parts]
        fits = all(self.add_up(node.line or 0, [part.line or 0 for part in node.parts]) is not None for node in inner)
        return tops if inner and fits else None

    def _by_sums(self) -> list[Node]:
        """Return the lines by what adds up, with totals below or above their parts, whichever explains more."""
        order = list(range(len(self.labels)))
        return min((self._reduced(order), self._reduced(order[::-1])), key=len)

    def _reduced(self, order: Sequence[int]) -> list[Node]:
        """Go through the lines once; one that is the total of those just before it takes them under it."""
        stack: list[Node] = []
        for line in order:
            size = self._parts_of(line, stack)
            node = Node(line, stack[len(stack) - size :])
            del stack[len(stack) - size :]
            stack.append(node)
        return stack

    def _parts_of(self, line: int, stack: Sequence[Node]) -> int:
        """Return of how many nodes at the end of the stack a line is the total; 0 for a line that is none."""
        named = is_total(self.labels[line])
        for size in range(len(stack), 0 if named else 1, -1):
            evidence = self.add_up(line, [node.line or 0 for node in stack[len(stack) - size :]])
            if evidence is not None and (evidence >= _EVIDENCE or (named and size > 1)):
                return size
        return len(stack) if named and len(stack) > 1 else 0  # a total that does not add up is still one: it is said


@dataclass(frozen=True, eq=False)
class Node:
    """A line with the lines under it; without a number, a total that the file does not have."""

    line: int | None
    parts: list[Node] = field(default_factory=list)

    def renumbered(self, lines: Sequence[int]) -> Node:
        """Return the same with other numbers of lines."""
        return Node(None if self.line is None else lines[self.line], [part.renumbered(lines) for part in self.parts])

    def walk(self, parent: int, places: list[int | None]) -> Iterator[tuple[Node, int]]:
        """Yield every line after the one above it, with the place of that one; `places` collects the lines."""
        own = len(places)
        places.append(self.line)
        yield self, parent
        for part in sorted(self.parts, key=lambda node: -1 if node.line is None else node.line):
            yield from part.walk(own, places)


def _by_depth(depths: Sequence[int]) -> list[Node] | None:
    """Return the lines by their indents; None if no line is indented."""
    if len(set(depths)) < 2:
        return None
    tops: list[Node] = []
    path: list[tuple[int, Node]] = []
    for line, depth in enumerate(depths):
        node = Node(line)
        while path and path[-1][0] >= depth:
            path.pop()
        (path[-1][1].parts if path else tops).append(node)
        path.append((depth, node))
    return tops


def _numbered(labels: Sequence[str | None]) -> Iterator[str | None]:
    """Yield labels, numbered where one occurs again: towns of one name lie in two regions."""
    times: dict[str | None, int] = {}
    for label in labels:
        times[label] = times.get(label, 0) + 1
        yield label if times[label] == 1 else f"{label} ({times[label]})"
