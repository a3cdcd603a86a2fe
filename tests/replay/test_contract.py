"""No private method is left out: each example is replayed, or its law is enumerated, and has golden parts."""

from __future__ import annotations

from fractions import Fraction

import pytest

from incrowd.accounting import accountant
from incrowd.methods import GRAPHS, LINKED, METHODS
from tests.contract.examples import POLICIES
from tests.graphs import EXAMPLES
from tests.replay import answers, crowds, golden, graphs, linked, tables
from tests.replay.examples import EXAMPLES as TABLES
from tests.replay.replaying import TOLERANCE


@pytest.mark.parametrize("method", METHODS)
def test_every_private_example_of_a_method_is_measured(method: str) -> None:
    names = [name for name in POLICIES[method] if tables.private(method, name)]
    measured = {*tables.REPLAYED, *crowds.SAMPLED, *answers.TABLES}
    left = [name for name in names if (method, name) not in measured and not crowds.unbounded(method, name)]
    assert left == []
    assert not names or any((method, name) in measured for name in names)


@pytest.mark.parametrize("method", METHODS)
def test_how_an_example_is_measured_follows_from_its_plan(method: str) -> None:
    for name in TABLES[method]:
        assert tables.replayed(method, name) == ((method, name) in tables.REPLAYED)
        assert crowds.sampled(method, name) == ((method, name) in crowds.SAMPLED)


@pytest.mark.parametrize("method", GRAPHS)
def test_every_private_example_of_a_method_of_graphs_is_measured(method: str) -> None:
    names = [name for name, (_, release) in EXAMPLES.items() if release["method"] == method]
    assert names
    assert all(name in {*graphs.REPLAYED, *answers.GRAPHS} for name in names if graphs.private(name))


@pytest.mark.parametrize("method", LINKED)
def test_every_example_of_a_method_of_linked_tables_is_measured(method: str) -> None:
    assert [name for name in linked.REPLAYED if linked.policy(name).plan.method == method]


ASKED = [item for item in (*tables.REPLAYED, *crowds.SAMPLED) if tables.requested(*item) is not None]


@pytest.mark.parametrize(("method", "name"), ASKED, ids=["-".join(item) for item in ASKED])
def test_a_plan_states_no_more_epsilon_than_its_policy_asks_for(method: str, name: str) -> None:
    requested = tables.requested(method, name)
    assert requested is not None
    assert float(tables.policy(method, name).plan.numbers["epsilon"]) <= float(requested) * (1 + TOLERANCE)


@pytest.mark.parametrize(("method", "name"), ASKED, ids=["-".join(item) for item in ASKED])
def test_a_plan_states_no_less_epsilon_than_its_loss_costs(method: str, name: str) -> None:
    plan = tables.policy(method, name).plan
    guarantee = plan.guarantee
    cost = accountant.charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency).epsilon
    assert float(plan.numbers["epsilon"]) >= float(cost) * (1 - TOLERANCE)


@pytest.mark.parametrize("name", [*graphs.REPLAYED, *answers.GRAPHS])
def test_a_plan_of_a_graph_states_no_more_epsilon_than_its_policy_asks_for(name: str) -> None:
    requested = Fraction(str(EXAMPLES[name][1]["epsilon"]))
    assert float(graphs.policy(name).plan.numbers["epsilon"]) <= float(requested) * (1 + TOLERANCE)


def test_no_golden_part_is_above_its_guarantee() -> None:
    assert all(0 <= part <= 1 for parts in golden.load().values() for part in parts.values())
