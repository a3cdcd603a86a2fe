"""Columns drawn from a junction tree, given others: their law is the model's own."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.methods.synthesis.linked.conditional import ConditionalModel
from incrowd.methods.synthesis.marginals.junction import JunctionTree
from incrowd.methods.synthesis.marginals.model import TableModel
from tests.statistics.alarm import FALSE_ALARM

SIZES = (2, 3, 2, 2, 3)
TREES: dict[str, list[tuple[int, ...]]] = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "wide": [(0, 1, 2), (2, 3), (3, 4)],
    "apart": [(0, 1), (2, 3)],
}


def model(name: str) -> tuple[TableModel, np.ndarray]:
    """Return a model with weights of its own, and its joint distribution by multiplication."""
    tree, chance = JunctionTree.of(SIZES, TREES[name]), np.random.default_rng(5)
    potentials = [chance.normal(0, 1.5, [SIZES[column] for column in clique]) for clique in tree.cliques]
    joint = np.zeros(SIZES)
    for potential, clique in zip(potentials, tree.cliques, strict=True):
        shape = [SIZES[column] if column in clique else 1 for column in range(len(SIZES))]
        joint = joint + potential.reshape(shape)
    joint = np.exp(joint)
    return TableModel(tree, tuple(tree.marginals(potentials)), 1.0), joint / joint.sum()


@pytest.mark.parametrize("given", [(), (0,), (2,), (0, 4), (1, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("name", TREES)
def test_every_combination_comes_as_often_as_the_model_says(name: str, given: tuple[int, ...]) -> None:
    """Of 4,000 rows with the same given values; each share is off by 6 standard deviations at most, and 1e-4."""
    whole, joint = model(name)
    rows, values = 4000, np.array([[1]] * len(given)).reshape(len(given), 1)
    drawn = ConditionalModel(whole, given).draw(np.repeat(values, rows, axis=1), np.random.default_rng(1))
    assert all((drawn[column] == 1).all() for column in given)
    index = tuple(1 if column in given else slice(None) for column in range(len(SIZES)))
    law = joint[index] / joint[index].sum()
    free = [column for column in range(len(SIZES)) if column not in given]
    shares = np.zeros([SIZES[column] for column in free])
    np.add.at(shares, tuple(drawn[column] for column in free), 1 / rows)
    assert FALSE_ALARM >= 1e-8
    assert (np.abs(shares - law) <= 6 * np.sqrt(law * (1 - law) / rows) + 1e-3).all()


def test_rows_are_drawn_given_their_own_values_and_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incrowd.methods.synthesis.linked.conditional._ROOM", 64)
    whole, joint = model("chain")
    values = np.random.default_rng(3).integers(0, 2, (1, 6000))
    drawn = ConditionalModel(whole, (0,)).draw(values, np.random.default_rng(2))
    assert (drawn[0] == values[0]).all()
    for value in (0, 1):
        law = joint[value].sum(axis=(1, 2, 3)) / joint[value].sum()
        shares = np.bincount(drawn[1][values[0] == value], minlength=3) / (values[0] == value).sum()
        assert np.abs(shares - law).max() < 0.06


def test_values_that_the_model_never_saw_get_any_row() -> None:
    tree = JunctionTree.of((2, 2), [(0, 1)])
    impossible = TableModel(tree, (np.array([[0.5, 0.5], [0.0, 0.0]]),), 1.0)
    drawn = ConditionalModel(impossible, (0,)).draw(np.array([[1] * 50]), np.random.default_rng(1))
    assert set(drawn[1].tolist()) == {0, 1}


def test_no_rows_are_drawn_for_none() -> None:
    whole, _ = model("wide")
    assert ConditionalModel(whole, (0,)).draw(np.zeros((1, 0), np.int64), np.random.default_rng(1)).shape == (5, 0)
