"""Small tables with small lattices, and every node of them judged row by row."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from hypothesis import strategies as st

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.tree import TreeHierarchy, tree
from incrowd.core.schema import Column, Role, Schema
from incrowd.engines.local.engine import LocalEngine
from incrowd.quality.additive import Height, Loss, Precision
from incrowd.quality.information import Divergence, NonUniformEntropy
from incrowd.quality.quality import AverageSize, Discernibility, Factors, Quality
from tests.criteria.slow_criteria import ILLNESSES, SENSITIVE, VALUES, Histogram, Holds
from tests.tables import Batches, text_table

Row = tuple[str | None, ...]
Node = tuple[int, ...]

QUASI = ("place", "sex", "age")
HIERARCHIES = (
    tree({"Europe": ["Paris", "Rome", "Oslo"], "Asia": ["Kyoto"]}),
    Flat(Categories(("F", "M"))),
    TreeHierarchy((("1", "1-2", "1-3"), ("2", "1-2", "1-3"), ("3", "3", "1-3"), ("4", "4", "4-5"), ("5", "5", "4-5"))),
)
COLUMNS = tuple(
    Column(name, Role.QUASI, hierarchy=hierarchy) for name, hierarchy in zip(QUASI, HIERARCHIES, strict=True)
)
SCHEMA = Schema((*COLUMNS, Column(SENSITIVE, Role.SENSITIVE, hierarchy=ILLNESSES)))
HEIGHTS = tuple(hierarchy.height for hierarchy in HIERARCHIES)
NODES: tuple[Node, ...] = tuple(itertools.product(*(range(height + 1) for height in HEIGHTS)))

rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(
        st.sampled_from(("Paris", "Rome", "Oslo", "Kyoto")),
        st.sampled_from(("F", "M", None)),
        st.sampled_from(("1", "2", "3", "4", "5")),
        st.sampled_from(VALUES),
    ),
    min_size=1,
    max_size=24,
)


def counted(table: Sequence[Row]) -> Counts:
    columns = {name: [row[place] for row in table] for place, name in enumerate((*QUASI, SENSITIVE))}
    return LocalEngine().count(Batches(text_table(columns)), Cells.of(SCHEMA, {}))


@cache
def label(place: int, value: str | None, level: int) -> str | None:
    """What one value is released as."""
    if level == HEIGHTS[place]:
        return "*"
    return None if value is None else HIERARCHIES[place].generalize(value, level)


@cache
def values_of(place: int, name: str | None, level: int) -> int:
    """How many declared values a label stands for; a missing value stands for itself."""
    values = HIERARCHIES[place].domain.members().to_pylist()  # type: ignore[union-attr]
    return 1 if name is None else sum(label(place, value, level) == name for value in values)


@dataclass(frozen=True)
class Released:
    """The classes of a node, the sensitive values of each, and which of them are released."""

    node: Node
    table: Sequence[Row]
    classes: dict[Row, Histogram]
    kept: dict[Row, bool]

    @property
    def rows(self) -> int:
        return len(self.table)

    @property
    def suppressed(self) -> int:
        return sum(values.total() for name, values in self.classes.items() if not self.kept[name])


def cut(table: Sequence[Row], node: Node) -> dict[Row, Histogram]:
    found: dict[Row, Histogram] = defaultdict(Counter)
    for *quasi, ill in table:
        found[tuple(label(place, value, node[place]) for place, value in enumerate(quasi))][str(ill)] += 1
    return dict(found)


def released(table: Sequence[Row], node: Node, holds: Holds) -> Released:
    classes, everywhere = cut(table, node), Counter(str(row[-1]) for row in table)
    return Released(node, table, classes, {name: holds(values, everywhere) for name, values in classes.items()})


Score = Callable[[Released], float]


def additive(price: Callable[[int, str | None, int], float], gone: Callable[[float], float]) -> Score:
    """The mean over rows and columns of a price, or of what becomes of it where the row is suppressed."""

    def score(release: Released) -> float:
        total = 0.0
        for name, values in release.classes.items():
            for place, part in enumerate(name):
                paid = price(place, part, release.node[place])
                total += values.total() * (paid if release.kept[name] else gone(paid))
        return total / len(QUASI) / release.rows

    return score


def loss(factor: str) -> Score:
    factors = Factors.of(factor)
    g, s = factors.generalized, factors.suppressed

    def price(place: int, name: str | None, level: int) -> float:
        size = values_of(place, "*", HEIGHTS[place])
        number = values_of(place, name, level)
        return g * (number - 1) / (size - g)

    return additive(price, lambda paid: 1.0 if s == 1 else paid + s * (1 - paid))


def precision(factor: str) -> Score:
    factors = Factors.of(factor)
    return additive(lambda place, _, level: factors.generalized * level / HEIGHTS[place], lambda _: factors.suppressed)


def height(release: Released) -> float:
    return float(sum(release.node))


def discernibility(release: Released) -> float:
    return float(
        sum(n.total() * (n.total() if release.kept[name] else release.rows) for name, n in release.classes.items())
    )


def average_size(release: Released) -> float:
    return release.rows / max(1, sum(release.kept.values()) + (release.suppressed > 0))


def entropy(release: Released) -> float:
    bits = 0.0
    for place in range(len(QUASI)):
        values = Counter(row[place] for row in release.table)
        labels = Counter(label(place, row[place], release.node[place]) for row in release.table)
        bits += sum(
            math.log2(labels[label(place, r[place], release.node[place])] / values[r[place]]) for r in release.table
        )
        lost: Counter[str | None] = Counter()
        for name, each in release.classes.items():
            lost[name[place]] += 0 if release.kept[name] else each.total()
        bits += sum(n * math.log2(lost.total() / n) for n in lost.values() if n)
    return bits / len(QUASI)


def boxes(release: Released, name: Row | None) -> int:
    """How many tuples a class could stand for; all of them if it is None."""
    found = 1
    for place in range(len(QUASI)):
        missing = any(row[place] is None for row in release.table)
        everything = values_of(place, "*", HEIGHTS[place]) + missing
        part = "*" if name is None else name[place]
        found *= everything if part == "*" else values_of(place, part, release.node[place])
    return found


def divergence(release: Released) -> float:
    """Row by row: the log of how much likelier the tuple is in the table than in what a reader makes of the release."""
    tuples = Counter(row[:-1] for row in release.table)
    found = 0.0
    for quasi, times in tuples.items():
        name = tuple(label(place, value, release.node[place]) for place, value in enumerate(quasi))
        if release.kept[name]:
            read = release.classes[name].total() / release.rows / boxes(release, name)
        else:
            read = release.suppressed / release.rows / boxes(release, None)
        found += times / release.rows * math.log2(times / release.rows / read)
    return found


QUALITIES: dict[str, tuple[Quality, Score]] = {
    "loss": (Loss(), loss("0.5")),
    "loss, suppression favored": (Loss("0.2"), loss("0.2")),
    "loss, generalization favored": (Loss("0.8"), loss("0.8")),
    "precision": (Precision(), precision("0.5")),
    "precision, suppression favored": (Precision("0.1"), precision("0.1")),
    "precision, generalization favored": (Precision("0.9"), precision("0.9")),
    "height": (Height(), height),
    "discernibility": (Discernibility(), discernibility),
    "average size": (AverageSize(), average_size),
    "entropy": (NonUniformEntropy(), entropy),
    "divergence": (Divergence(), divergence),
}


def feasible(table: Sequence[Row], holds: Holds, limit: str) -> dict[Node, Released]:
    """Every node that meets the task."""
    found = {node: released(table, node, holds) for node in NODES}
    return {node: each for node, each in found.items() if each.suppressed <= Fraction(limit) * len(table)}


def minimal_nodes(nodes: Sequence[Node]) -> list[Node]:
    """The nodes below which there is no other, in order."""
    finer = [n for n in nodes if not any(m != n and all(a <= b for a, b in zip(m, n, strict=True)) for m in nodes)]
    return sorted(finer, key=lambda node: (sum(node), node))


def best_node(scores: dict[Node, float]) -> Node:
    """The node with the least score; of equal ones the lowest, then the first."""
    least = min(scores.values())
    equal = [node for node, score in scores.items() if score <= least + 1e-11 * max(1.0, abs(least))]
    return min(equal, key=lambda node: (sum(node), node))
