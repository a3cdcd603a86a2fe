"""Blocks of atoms by least squares: as matrices say, disjoint in every part, and near the best that is considered."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.errors import InvalidParameter
from incrowd.queries.workloads.atoms import Atoms, Blocks, Labels, NoiseKind, atoms_of
from tests.queries.workloads.dense import Floats, least_squares


def ranges(seed: int, cells: int, number: int) -> list[Labels]:
    """Return which of a row of cells each of some ranges counts."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, cells, (number, 2)), axis=1)
    return [np.where((np.arange(cells) >= low) & (np.arange(cells) <= high), 0, -1) for low, high in ends]


def atoms(labels: list[Labels]) -> Atoms:
    found = atoms_of(labels, len(labels[0]))
    first = [int(np.argmax(found == atom)) for atom in range(found.max() + 1)]
    groups = tuple(int(each.max()) + 1 for each in labels)
    return Atoms(tuple(each[first] for each in labels), groups, len(first))


def block_matrix(over: Atoms, part: Blocks) -> Floats:
    return np.asarray(np.arange(over.count(part))[:, None] == over.blocks(part)[None, :], dtype=np.float64)


def test_cells_that_no_question_tells_apart_are_one_atom() -> None:
    labels = [np.array([0, 0, 1, 1, -1, -1, 0]), np.array([-1, -1, 0, -1, -1, -1, -1])]
    assert atoms_of(labels, 7).tolist() == [0, 0, 1, 2, -1, -1, 0]


@pytest.mark.parametrize("noise", NoiseKind)
def test_answers_and_variances_are_those_of_matrices(noise: NoiseKind) -> None:
    over, rng = atoms(ranges(1, 40, 12)), np.random.default_rng(2)
    for parts in over.candidates(noise):
        precisions = rng.uniform(0.2, 2.0, len(parts)).tolist()
        solved = over.solution(parts, precisions)
        matrices = [block_matrix(over, part) for part in parts]
        factors, variances = least_squares(over.matrix, matrices, precisions)
        assert np.allclose(solved.variances, variances, rtol=1e-9)
        noisy = [rng.integers(-20, 20, over.count(part)) for part in parts]
        answers = np.concatenate(solved.answers(parts, noisy))
        assert np.allclose(answers, factors @ np.concatenate(noisy), atol=1e-9)
        assert solved.whole(parts) == bool(np.allclose(factors, np.rint(factors), atol=1e-6))


@pytest.mark.parametrize("noise", NoiseKind)
@pytest.mark.parametrize(("cells", "number"), [(30, 3), (30, 40), (200, 8)])
def test_what_is_chosen_is_near_the_best_that_is_considered(cells: int, number: int, noise: NoiseKind) -> None:
    over = atoms(ranges(number, cells, number))
    chosen = over.strategy(noise)
    for parts in over.candidates(noise):
        even = noise.precisions(np.full(len(parts), 1.0 / len(parts))).tolist()
        matrices = [block_matrix(over, part) for part in parts]
        assert chosen.error <= 1.1 * least_squares(over.matrix, matrices, even)[1].sum()
    equal = sum(over.groups) * number**noise.value
    assert chosen.error <= equal * (1.0 + 1e-9)


def test_a_row_counts_once_in_every_part() -> None:
    over = atoms(ranges(5, 60, 25))
    for part in (*over.colors, Blocks(1), Blocks(4)):
        assert block_matrix(over, part).sum(axis=0).max() == 1.0
    assert sorted(question for part in over.colors for question in part.questions) == list(range(25))
    touched = over.matrix.sum(axis=0).max()
    assert len(over.colors) == touched, "ranges take as many parts as a row can touch of them"
    with pytest.raises(InvalidParameter, match="no row twice"):
        over.blocks(Blocks(questions=tuple(range(25))))


def test_ranges_over_months_are_hundreds_of_times_better_than_equal_shares() -> None:
    over = atoms(ranges(7, 1024, 500))
    assert over.number <= 1001
    assert 1000 * over.strategy(NoiseKind.LAPLACE).error < 500 * 500**2
    assert 20 * over.strategy(NoiseKind.GAUSSIAN).error < 500 * 500
