"""Explore: what other levels would lose and leave out, before one of them is released; internal, and recorded."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from incrowd.core.table import Engine, Rows, Table
from incrowd.engines.columns import require
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search.lattice import LevelSearch, Point, Task, judge
from incrowd.methods.anonymity.search.optimal import Progress, SearchLimits, minimal, optimal
from incrowd.methods.anonymity.search.rollup import RollupCache
from incrowd.methods.shared.columns import row_limits
from incrowd.noise.system import SystemCoins
from incrowd.workflows.consent.snapshot import taking_part
from incrowd.workflows.policy.ledger import record_look

if TYPE_CHECKING:
    from incrowd.core.cells import Cells
    from incrowd.core.counts import Counts
    from incrowd.core.schema import Schema
    from incrowd.methods.anonymity.search.lattice import Lattice, Node
    from incrowd.workflows.policy.policy import Policy


LOOK = "plan"
"""What the ledger calls it."""

_SHARES = tuple(Fraction(share, 100) for share in (0, 1, 2, 5, 10, 20, 50, 100))
_STEPS = 24


@dataclass(frozen=True)
class Choice:
    """One combination of levels: what it loses, how many rows it leaves out, and its classes.

    `smallest` is the number of rows in the smallest class, None if nothing is released.
    """

    levels: Mapping[str, int]
    loss: float
    suppressed: int
    classes: int
    smallest: int | None


@dataclass(frozen=True)
class Offer:
    """The best combination under one k and one suppression limit; `gap` is by how much it could be beaten at most.

    Without a choice nothing meets the demands, unless the search was stopped: then nothing was found so far.
    """

    k: int
    suppression: Fraction
    choice: Choice | None
    gap: float

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        chosen = None if self.choice is None else asdict(self.choice)
        return {"k": self.k, "suppression": str(self.suppression), "choice": chosen, "gap": self.gap}


@dataclass(frozen=True)
class Explored:
    """What was found among all combinations of levels: the best one, the minimal ones, and what others would cost.

    `by_k` is the frontier of loss and risk: an offer for each k that its predecessor does not reach already.
    `by_suppression` is the same for the share of rows that may be left out.  What was not asked for is empty.
    """

    rows: int
    combinations: int
    best: Offer
    minimal: tuple[Choice, ...]
    by_k: tuple[Offer, ...]
    by_suppression: tuple[Offer, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {
            "internal": "computed from the original rows: keep it apart from the release",
            "rows": self.rows,
            "combinations": self.combinations,
            "best": self.best.to_json(),
            "minimal": [asdict(choice) for choice in self.minimal],
            "by k": [offer.to_json() for offer in self.by_k],
            "by suppression": [offer.to_json() for offer in self.by_suppression],
        }


@dataclass(frozen=True)
class SearchRequest:
    """What is looked for beside the best levels, and who is told how far it is and may stop it by returning true."""

    minimal: bool = True
    frontier: bool = True
    watch: Callable[[Progress], bool] | None = None


EVERYTHING = SearchRequest()
"""Minimal levels and the frontier."""


def explore(data: object, policy: Policy, wish: SearchRequest = EVERYTHING) -> Explored:
    """Look at a file or a frame, or else at the policy's source; see `explore_rows`.

    >>> import pyarrow as pa
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
    >>> [dict(each.levels) for each in explore(visits, policy).minimal]
    [{'sex': 0, 'ward': 1}, {'sex': 1, 'ward': 0}]
    """
    from incrowd.engines.settings import engine_of, settings_for
    from incrowd.workflows.release.prepare import open_data

    with engine_of(settings_for(data, policy.engine), data) as engine:
        return explore_rows(open_data(data, policy, engine), policy, wish, engine)


def explore_rows(rows: Rows, policy: Policy, wish: SearchRequest = EVERYTHING, engine: Engine = LOCAL) -> Explored:
    """Count the table once, and search its levels as the method full-domain would; the look is written in the ledger.

    Of each person at most `max_rows` rows count, as in a release; where a purpose is named, only those of people who
    consent to it.

    Source: Samarati 2001 for minimal generalizations; Machanavajjhala et al. 2006 and others for what a class must
    meet, see the method.
    """
    method, schema = policy.method, policy.schema
    if not isinstance(method, LevelSearch):
        raise InvalidParameter(
            f"--minimal and --frontier need a method that searches levels, and {method.name} does not: write method: "
            "full-domain."
        )
    cells = method.cells(schema)
    require(rows.names, cells.names)
    record_look(policy, LOOK)
    rows = taking_part(engine, rows, policy)
    lattice = method.lattice(_counts(rows, cells, schema, engine), schema, method.people(engine, schema))
    return _Exploring(method, schema, lattice, wish).run()


def _counts(rows: Rows, cells: Cells, schema: Schema, engine: Engine) -> Counts:
    """Count the rows that a release would use, at most `max_rows` of each person: more make classes look larger."""
    return engine.count(rows, cells, *row_limits(Table(schema, rows, engine), SystemCoins()))


@dataclass(frozen=True)
class _Exploring:
    method: LevelSearch
    schema: Schema
    lattice: Lattice
    wish: SearchRequest

    def run(self) -> Explored:
        best = self._offer(self.method)
        listed = minimal(self.lattice, self.method.task(self.schema)) if self.wish.minimal else ()
        return Explored(
            self.lattice.rows,
            self.lattice.nodes,
            best,
            tuple(self._choice(point) for point in listed),
            tuple(self._by_k(best)) if self.wish.frontier else (),
            tuple(self._by_suppression()) if self.wish.frontier else (),
        )

    def _by_k(self, best: Offer) -> list[Offer]:
        """Return offers for ever larger k: one more than was reached already, or half as much again."""
        offers = [best]
        while (last := offers[-1].choice) is not None and last.smallest is not None and len(offers) < _STEPS:
            k = max(last.smallest + 1, offers[-1].k * 3 // 2)
            offer = self._offer(self.method.varied(k=k))
            if offer.choice is None:
                break
            offers.append(offer)
        return offers

    def _by_suppression(self) -> list[Offer]:
        shares = sorted({*_SHARES, self.method.suppression})
        return [self._offer(self.method.varied(suppression=share)) for share in shares]

    def _offer(self, method: LevelSearch) -> Offer:
        seconds = math.inf if method.seconds is None else float(method.seconds)
        result = optimal(self.lattice, method.task(self.schema), SearchLimits(seconds, report=self.wish.watch))
        chosen = None if result.best is None else self._choice(result.best)
        return Offer(method.k, method.suppression, chosen, result.gap)

    def _choice(self, point: Point) -> Choice:
        levels = dict(zip(self.lattice.names, point.levels, strict=True))
        return Choice(levels, point.score, point.suppressed, point.classes, point.smallest)


MOST = 500
"""Up to so many combinations are all judged and can be drawn as a diagram."""
_LISTED = 20_000  # nodes of a lattice that are drawn or listed
_SECONDS = 30.0  # of a search, then the best so far is shown


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
        method.lattice(_counts(rows, cells, schema, engine), schema, method.people(engine, schema)),
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
