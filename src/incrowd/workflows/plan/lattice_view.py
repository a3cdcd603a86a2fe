"""LatticeView: the combinations of levels that a search weighs, for the eyes of the data holder; a look at the rows.

Up to so many combinations every one is judged; of more, those that the search for the best judged: no other can be
better.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from incrowd.core.table import Engine, Rows
from incrowd.engines.columns import require
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search.lattice import LevelSearch, Point, Task, judge
from incrowd.methods.anonymity.search.optimal import Progress, SearchLimits, minimal, optimal
from incrowd.methods.anonymity.search.rollup import RollupCache
from incrowd.workflows.plan.explore import Choice

if TYPE_CHECKING:
    from incrowd.methods.anonymity.search.lattice import Lattice, Node
    from incrowd.workflows.policy.policy import Policy

MOST = 500
"""Up to so many combinations are all judged and can be drawn as a diagram."""
_LISTED = 20_000
_SECONDS = 30.0


@dataclass(frozen=True)
class LatticeNode:
    """A combination of levels: its rungs, what it would cost if it meets the demands (else None), and what it is."""

    rungs: tuple[int, ...]
    choice: Choice | None
    minimal: bool
    best: bool

    @property
    def height(self) -> int:
        """How many rungs it is above the finest."""
        return sum(self.rungs)


@dataclass(frozen=True)
class LatticeView:
    """What was judged: of all combinations (`whole`), or of those that could be the best."""

    names: tuple[str, ...]
    rows: int
    combinations: int
    whole: bool
    nodes: tuple[LatticeNode, ...]

    @property
    def best(self) -> LatticeNode | None:
        """The combination that loses least among those that meet the demands."""
        return next((node for node in self.nodes if node.best), None)

    def risk(self, choice: Choice) -> float:
        """Return how often somebody who links every released row is right, on average: classes over rows."""
        released = self.rows - choice.suppressed
        return choice.classes / released if released else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        nodes = [{**asdict(node), "height": node.height} for node in self.nodes]
        return {
            "names": list(self.names),
            "rows": self.rows,
            "combinations": self.combinations,
            "whole": self.whole,
            "nodes": nodes,
        }


def lattice_view(
    policy: Policy, rows: Rows, engine: Engine = LOCAL, tell: Callable[[int, int], None] | None = None
) -> LatticeView:
    """Count the table once and judge its combinations of levels, as the method full-domain would.

    >>> import pyarrow as pa
    >>> from incrowd.engines.readers.sources import open_source
    >>> from incrowd.workflows.policy.policy import load_policy
    >>> policy = load_policy(
    ...     {
    ...         "incrowd": 1,
    ...         "dataset": {"name": "visits"},
    ...         "columns": {"sex": {"categories": ["F", "M"]}, "ward": {"categories": ["east", "west"]}},
    ...         "release": {"method": "full-domain", "k": 2},
    ...     }
    ... )
    >>> visits = pa.table({"sex": ["F", "F", "M", "M"], "ward": ["east", "west", "east", "west"]})
    >>> view = lattice_view(policy, open_source(visits))
    >>> [(node.rungs, node.choice is not None, node.minimal) for node in view.nodes]
    [((0, 0), False, False), ((0, 1), True, True), ((1, 0), True, True), ((1, 1), True, False)]
    """
    method, schema = policy.method, policy.schema
    if not isinstance(method, LevelSearch):
        raise InvalidParameter(f"the lattice needs method full-domain, and this policy has method {method.name}.")
    cells = method.cells(schema)
    require(rows.names, cells.names)
    lattice, task = (
        method.lattice(engine.count(rows, cells), schema, method.people(engine, schema)),
        method.task(schema),
    )
    result = optimal(lattice, task, SearchLimits(_SECONDS, report=_teller(lattice.nodes, tell)))
    points: Sequence[tuple[Node, Point | None]] = [(point.node, point) for point in result.points]
    if lattice.nodes <= MOST:
        points = _all(lattice, task)
    least = {point.node for point in minimal(lattice, task, _few(node for node, point in points if point is not None))}
    best = None if result.best is None else result.best.node
    nodes = [LatticeNode(node, _choice(lattice, point), node in least, node == best) for node, point in points]
    nodes.sort(key=lambda node: (node.height, node.rungs))
    return LatticeView(lattice.names, lattice.rows, lattice.nodes, lattice.nodes <= MOST, tuple(nodes))


def _few(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes with few enough finer ones that these can be looked through."""
    return [node for node in nodes if math.prod(rung + 1 for rung in node) <= _LISTED]


def _teller(nodes: int, report: Callable[[int, int], None] | None) -> Callable[[Progress], bool] | None:
    if report is None:
        return None

    def tell(progress: Progress) -> bool:
        report(progress.judged, nodes)
        return False

    return tell


def _all(lattice: Lattice, task: Task) -> list[tuple[Node, Point | None]]:
    measure, roller = task.quality.over(lattice.ladders, lattice.base), RollupCache(lattice, task.criterion.whole)
    nodes = itertools.product(*(range(len(ladder)) for ladder in lattice.ladders))
    return [(node, judge(task, measure, roller(node), node).point) for node in nodes]


def _choice(lattice: Lattice, point: Point | None) -> Choice | None:
    if point is None:
        return None
    levels = dict(zip(lattice.names, point.levels, strict=True))
    score = point.score if math.isfinite(point.score) else 0.0
    return Choice(levels, score, point.suppressed, point.classes, point.smallest)
