"""Randomized answers: the law of every answer, enumerated, for all pairs of values.

Here the coins are the mechanism.  Each coin of a real release comes up in every way, one coin after the other.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.graph import Graph
from incrowd.core.loss import Pure
from incrowd.core.plan import Plan
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.methods.local.choice import numeric, options, randomizers
from incrowd.methods.local.mechanisms.randomizer import Categorical, Family
from incrowd.methods.local.mechanisms.ratio import Weights
from incrowd.workflows.policy.policy import Policy
from tests.coins import Branching, law
from tests.contract.examples import POLICIES
from tests.graphs import EXAMPLES, all_graphs
from tests.replay import graphs, tables
from tests.replay.golden import Parts
from tests.replay.replaying import TOLERANCE
from tests.surveys import MANY, TOGETHER, survey_file
from tests.tables import Batches

GRAPHS = [name for name in EXAMPLES if graphs.private(name) and EXAMPLES[name][1]["method"] in graphs.ANSWERS]
TABLES = [
    (method, name) for method in sorted(tables.ANSWERS) for name in POLICIES[method] if tables.private(method, name)
]
FAMILIES = [(family, epsilon) for family in Family for epsilon in ("0.1", "1", "4")]
Masses = Mapping[Any, Fraction | float]


def largest(laws: Iterable[Masses]) -> float:
    """Return the largest log ratio of the probability of an outcome under two laws."""
    several = list(laws)
    if len({frozenset(item) for item in several}) > 1:
        return math.inf
    return max(math.log(max(own) / min(own)) for own in ([one[item] for one in several] for item in several[0]))


def part(lost: float, epsilon: Fraction) -> float:
    """Return a loss as a part of ε; it is at most 1."""
    assert lost <= float(epsilon) * (1 + TOLERANCE), f"an answer loses {lost}, and {float(epsilon)} is allowed"
    return lost / float(epsilon)


def pure(plan: Plan) -> Fraction:
    """Return the ε of a plan whose guarantee is pure."""
    assert isinstance(plan.guarantee.loss, Pure)
    return plan.guarantee.loss.epsilon


@dataclass
class PairCoins:
    """Coins of pairs of nodes that come up in every way; nodes keep their order."""

    branching: Branching

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        chances = [1 - float(probability), float(probability)]
        return np.array([self.branching.choose(chances) for _ in range(size)], np.bool_)

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        return np.arange(size)


def graph_parts(name: str) -> Parts:
    """Return the largest part of its ε that answers about a graph lose: all graphs of three nodes."""
    plan = graphs.policy(name).plan
    laws = {frozenset(map(tuple, graph.ends.tolist())): _graph_law(plan, graph) for graph in all_graphs(3)}
    several = [pair for pair in itertools.combinations(laws, 2) if len(pair[0] ^ pair[1]) == 1]
    worst = max(largest(laws[item] for item in pair) for pair in several)
    return {"edge added or removed": part(worst, pure(plan))}


def _graph_law(plan: Any, graph: Graph) -> Masses:
    def run(branching: Branching) -> str:
        output = plan.release(graph, PairCoins(branching))
        return str([item.to_pydict() for side in output.parts for item in side.batches()])

    return law(run)


@dataclass
class OneCoin:
    """Coins of which one call comes up as told, and all others as 0; `bounds` are those of all calls."""

    call: int
    value: int

    def __post_init__(self) -> None:
        self.bounds: list[int] = []

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        self.bounds.append(bound)
        return np.full(size, self.value if len(self.bounds) == self.call + 1 else 0, np.int64)


VALUES: dict[str, tuple[str | None, ...]] = {
    "sex": ("F", "M", "X", None),
    "age": ("0", "49", "50", "99", "150", None),
    "zip": ("10001", "10002", "10003", "none", None),
}


def table_parts(method: str, name: str) -> Parts:
    """Return the largest part of its ε that the masked values of one row lose: those of its columns add up."""
    example = tables.policy(method, name)
    lost = math.fsum(
        largest(_column_law(example, call, column, value) for value in VALUES[column])
        for call, column in enumerate(POLICIES[method][name]["release"]["columns"])
    )
    return {"replaced": part(lost, pure(example.plan))}


def _column_law(example: Policy, call: int, column: str, value: str | None) -> Masses:
    """Return the law of one column of a row, by every value of the coin that decides it."""
    first = OneCoin(call, 0)
    _masked(example, column, value, first)
    bound = first.bounds[call]
    results = Counter(_masked(example, column, value, OneCoin(call, value_of_coin)) for value_of_coin in range(bound))
    return {outcome: Fraction(times, bound) for outcome, times in results.items()}


def _masked(example: Policy, column: str, value: str | None, coins: OneCoin) -> Any:
    row = {name: pa.array([value if name == column else values[0]], pa.string()) for name, values in VALUES.items()}
    output = example.plan.draw(Table(example.schema, Batches(pa.table(row)), LocalEngine()), coins)  # type: ignore[arg-type]
    return output.to_arrow()[column][0].as_py()


@cache
def families(epsilon: str) -> dict[str, Any]:
    """Return a randomizer of each family with the weights that surveys use."""
    requested = Fraction(epsilon)
    results: list[Any] = list(randomizers(5, Weights.below(requested), Weights.below(requested / 2)))
    results += [
        numeric(family, 4, Weights.below(requested)) for family in (Family.DUCHI, Family.WINDOW, Family.MIXTURE)
    ]
    results.append(options(4, 2, requested))
    return {str(item.randomness.family): item for item in results}


def family_parts(family: Family, epsilon: str) -> Parts:
    """Return the part of ε that the reports of a family lose, for all pairs of answers."""
    made = families(epsilon)[str(family)]
    inputs = range(made.values) if isinstance(made, Categorical) else range(-made.size, made.size + 1)
    return {"answer replaced": part(largest(_possible(made.law(value)) for value in inputs), Fraction(epsilon))}


def _possible(masses: Masses) -> Masses:
    return {outcome: mass for outcome, mass in masses.items() if mass}


def survey_parts() -> Parts:
    """Return the part of its ε that the dearest question of a survey of all kinds of questions loses."""
    survey, together = survey_file(MANY).survey, survey_file(TOGETHER).survey
    worst = max(math.log(item.ratio) for question in survey.questions for item in question.randomizers)
    added = sum(max(math.log(item.ratio) for item in question.randomizers) for question in together.questions)
    return {
        "answer replaced": part(worst, pure(survey.plan)),
        "all answers replaced": part(added, pure(together.plan)),
    }
