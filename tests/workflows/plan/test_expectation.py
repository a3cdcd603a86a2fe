"""What a plan expects, against tables whose release is counted, and what is refused because of it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pyarrow import csv
from typer.testing import CliRunner

import incrowd
from incrowd.cli.main import application
from incrowd.errors import ProbablyEmpty
from incrowd.workflows.plan.expectation import expected
from incrowd.workflows.plan.forecast import expectation_of, require_useful
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import load_policy
from tests.policies import PEOPLE, changed, people, written

Table = list[NDArray[np.int64]]
ADULT = os.environ.get("INCROWD_ADULT")
HOSPITAL = Path(__file__).parents[3] / "examples" / "hospital" / "policy.yaml"


def even(chance: np.random.Generator, sizes: list[int], rows: int) -> Table:
    return [chance.integers(0, size, rows) for size in sizes]


def skewed(chance: np.random.Generator, sizes: list[int], rows: int) -> Table:
    """Each column follows a power law of its own."""
    laws = [np.arange(1, size + 1) ** -chance.uniform(0.3, 1.3) for size in sizes]
    return [chance.choice(len(law), rows, p=law / law.sum()) for law in laws]


def correlated(chance: np.random.Generator, sizes: list[int], rows: int) -> Table:
    """Rows come from a few groups, each with its own law of every column."""
    groups = int(chance.integers(2, 12))
    group = chance.choice(groups, rows, p=chance.dirichlet(np.ones(groups)))
    columns = []
    for size in sizes:
        laws = chance.dirichlet(np.full(size, chance.uniform(0.2, 1)), size=groups).cumsum(axis=1)
        columns.append(np.minimum((chance.random(rows)[:, None] > laws[group]).sum(axis=1), size - 1))
    return columns


def kept(chance: np.random.Generator, table: Table, sizes: list[int], k: int, rate: float) -> float:
    """Return the share of the sampled rows whose tuple is sampled at least k times, by counting."""
    drawn = chance.random(len(table[0])) < rate
    counts = np.bincount(np.ravel_multi_index([column[drawn] for column in table], sizes))
    return float(counts[counts >= k].sum() / max(1, counts.sum()))


@pytest.mark.parametrize("make", [even, skewed, correlated])
def test_the_band_holds_what_is_kept_of_simulated_tables(
    make: Callable[[np.random.Generator, list[int], int], Table],
) -> None:
    chance, inside, rounds = np.random.default_rng(17), 0, 70
    for _ in range(rounds):
        sizes = [int(chance.integers(2, 12)) for _ in range(chance.integers(2, 6))]
        rows, k = int(10 ** chance.uniform(3.5, 4.7)), int(chance.integers(3, 60))
        rate = Fraction(int(chance.integers(1, 11)), 10)
        band = expected(rows, int(np.prod(sizes)), k, rate)
        share = kept(chance, make(chance, sizes, rows), sizes, k, float(rate))
        inside += band.low - 0.01 <= share <= band.high + 0.01
    assert inside >= 0.95 * rounds


@pytest.mark.skipif(ADULT is None, reason="INCROWD_ADULT names no folder with adult.csv")
def test_the_band_holds_what_is_kept_of_adult() -> None:
    """Every two, three or four of its columns, ages in steps of ten years, for several k and rates."""
    raw = csv.read_csv(Path(str(ADULT)) / "adult.csv", parse_options=csv.ParseOptions(delimiter=";"))
    columns = {name: np.unique(raw[name].to_numpy(), return_inverse=True)[1] for name in raw.column_names}
    columns["age"] = raw["age"].to_numpy() // 10
    chance, inside, rounds = np.random.default_rng(29), 0, 0
    for names in (each for size in (2, 3, 4) for each in itertools.combinations(columns, size)):
        table = [columns[name] for name in names]
        sizes = [int(column.max()) + 1 for column in table]
        k, rate = [(8, Fraction(1, 10)), (35, Fraction(1, 2)), (20, Fraction(1, 10))][rounds % 3]
        band = expected(raw.num_rows, int(np.prod(sizes)), k, rate)
        share = kept(chance, table, sizes, k, float(rate))
        inside += band.low - 0.01 <= share <= band.high + 0.01
        rounds += 1
    assert rounds == 36 + 84 + 126
    assert inside >= 0.95 * rounds


def test_an_even_spread_is_met_exactly() -> None:
    chance, sizes, rows, k = np.random.default_rng(5), [10, 10], 6_000, 30
    band = expected(rows, 100, k, Fraction(1, 2))
    shares = [kept(chance, even(chance, sizes, rows), sizes, k, 0.5) for _ in range(40)]
    assert np.mean(shares) == pytest.approx(band.even, abs=0.03)
    assert 0.2 < band.even < 0.9


def test_crowds_far_above_k_are_all_kept_and_far_below_none() -> None:
    assert expected(10**6, 10, 20, Fraction(1)).low > 0.999
    hopeless = expected(1_000, 10**9, 50, Fraction(1, 10))
    assert hopeless.even == 0
    assert hopeless.likely_empty
    assert "likely be empty" in hopeless.sentence
    assert expected(10, 1, 20, Fraction(1)).high == 0


def test_the_bar_has_one_length() -> None:
    for rows in (10, 1_000, 20_000, 10**6):
        assert len(expected(rows, 560, 35, Fraction(1, 2)).bar) == 22


def test_the_hospital_example_keeps_what_is_expected() -> None:
    policy = load_policy(HOSPITAL)
    band = expectation_of(policy)
    assert band is not None
    assert band.rows == 20_000
    assert band.low <= 0.65 <= band.high  # about 6,500 of 10,000 sampled rows are released
    require_useful(policy)


def test_without_a_declared_number_nothing_is_expected(tmp_path: Path) -> None:
    assert expectation_of(load_policy(written(PEOPLE, tmp_path))) is None


def test_a_release_that_will_be_empty_is_refused_before_the_charge(tmp_path: Path) -> None:
    dataset = {**PEOPLE["dataset"], "rows": 60}
    release = {"method": "safe", "levels": {"zip": 1}, "rate": "1/100", "delta": "1e-9", "k": 40}
    path = written(changed(PEOPLE, dataset=dataset, release=release), tmp_path)
    with pytest.raises(ProbablyEmpty, match="Nothing was charged"):
        require_useful(load_policy(path))
    source = tmp_path / "people.csv"
    csv.write_csv(people(), source)
    order = ["release", str(source), "--policy", str(path), "--out", str(tmp_path / "out")]
    refused = CliRunner().invoke(application(), order)
    assert refused.exit_code == 1
    assert not (tmp_path / "out").exists()
    book = find_book(load_policy(path))
    assert book is None or not list(book.entries())
    assert CliRunner().invoke(application(), [*order, "--force"]).exit_code == 0


def test_levels_that_rows_choose_are_expected_too(tmp_path: Path) -> None:
    release = {"method": "scheme", "choosing": "0.1", "rate": "1/2", "epsilon": 1, "delta": "1e-4"}
    few, many = (
        expectation_of(load_policy(written(changed(PEOPLE, dataset__rows=rows, release=release), tmp_path)))
        for rows in (60, 10**6)
    )
    assert few is not None
    assert many is not None
    assert few.among == many.among > 1
    assert 0 < few.useful < many.useful == many.among
    assert few.cells < many.cells
    assert few.sentence.startswith(f"levels are chosen among {few.among} combinations, of which {few.useful} keep")
    assert not few.likely_empty


def test_where_no_levels_leave_anything_a_choice_among_them_is_empty_too(tmp_path: Path) -> None:
    release = {
        "method": "scheme",
        "choosing": "0.1",
        "rate": "1/10",
        "k": 40,
        "delta": "1e-4",
        "highest": {"age": 0},
    }
    policy = load_policy(written(changed(PEOPLE, dataset__rows=60, release=release), tmp_path))
    expected = expectation_of(policy)
    assert expected is not None
    assert (expected.useful, expected.likely_empty) == (0, True)
    assert "none keeps at least half" in expected.sentence
    with pytest.raises(ProbablyEmpty):
        incrowd.release(people(), policy)
    assert find_book(policy) is None


def test_python_releases_what_will_be_empty_only_anyway(tmp_path: Path) -> None:
    release = {"method": "safe", "levels": {"zip": 1}, "rate": "1/100", "delta": "1e-9", "k": 40}
    policy = load_policy(written(changed(PEOPLE, dataset__rows=60, release=release), tmp_path))
    with pytest.raises(ProbablyEmpty, match="Nothing was charged"):
        incrowd.release(people(), policy)
    assert find_book(policy) is None
    assert len(incrowd.release(people(), policy, anyway=True).result) == 0
