"""Masks: what each keeps of a table, exactly where that is proved, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.cli.main import main
from incrowd.core.loss import Pure, Syntactic
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.perturbation.rank_swap import RankSwap, expected_correlation
from incrowd.methods.perturbation.shared import grouping
from incrowd.methods.perturbation.shared.frame import covariance
from incrowd.methods.perturbation.shared.grouping import mdav, mdav_kernel, mdav_of, optimal
from incrowd.methods.perturbation.shared.output import MaskedRows
from incrowd.methods.perturbation.shuffle import normal_scores
from incrowd.noise.system import SystemCoins
from incrowd.workflows.assess.step_effects import step_effects
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Released
from incrowd.workflows.release.tables import release
from tests.policies import changed, with_ledger, written

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "incomes"},
    "columns": {
        "household": {"role": "identifier"},
        "sex": {"role": "quasi", "categories": ["F", "M"]},
        "region": {"role": "quasi", "hierarchy": {"tree": {"A": ["A1", "A2"], "B": ["B1", "B2"]}}},
        "age": {"role": "quasi", "type": "integer", "bounds": [0, 120], "missing": "drop"},
        "income": {"role": "sensitive", "type": "decimal", "missing": "drop"},
        "rent": {"role": "plain", "type": "decimal", "missing": "drop"},
    },
    "release": {"method": "noise", "columns": ["income"]},
    "budget": {"unbounded": "the tests need it"},
}
ROWS = 600


def incomes(rows: int = ROWS, seed: int = 3) -> pa.Table:
    chance = np.random.default_rng(seed)
    income = np.exp(chance.normal(10, 1, rows)).round(2)
    return pa.table(
        {
            "household": [f"h{n // 2}" for n in range(rows)],
            "sex": chance.choice(["F", "M"], rows),
            "region": [("A1", "A2", "B1", "B2")[(n // 2) * 7919 % 4] for n in range(rows)],
            "age": chance.integers(18, 90, rows),
            "income": income,
            "rent": (income * 0.2 + chance.normal(0, 500, rows)).round(2),
        }
    )


def masked(tmp_path: Path, step: Any, table: pa.Table | None = None, **changes: Any) -> Released:
    policy = with_ledger(changed(POLICY, release=None, **changes) | {"release": step}, tmp_path)
    return release(incomes() if table is None else table, policy)


def column(released: Released, name: str) -> np.ndarray:
    values: np.ndarray = released.result.to_arrow()[name].to_numpy()
    return values


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("size", "columns", "k"), [(0, 2, 2), (3, 2, 2), (40, 1, 3), (61, 3, 4), (90, 2, 7)])
def test_many_rows_are_grouped_as_few_are(
    compiled: bool, size: int, columns: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiled:
        pytest.importorskip("numba", reason="the kernel is compiled with the extra fast")
    else:
        monkeypatch.setattr(grouping, "_compiled", lambda: mdav_kernel)
    chance = np.random.default_rng(size)
    for rows in (chance.normal(size=(size, columns)), chance.integers(0, 3, (size, columns)).astype(np.float64)):
        many = mdav_of(2**20)(rows, k)
        assert [group.tolist() for group in many] == [group.tolist() for group in mdav(rows, k)]


def test_mdav_is_that_of_the_reference() -> None:
    rows = np.array([[1, 1], [1, 2], [2, 1], [8, 8], [8, 9], [9, 8], [20, 1], [21, 1], [20, 2], [5, 5]], float)
    assert [group.tolist() for group in mdav(rows, 3)] == [[6, 7, 8], [0, 1, 2], [3, 4, 5, 9]]


def test_the_univariate_optimum_is_that_of_the_reference_and_of_every_partition() -> None:
    values = np.array([1, 2, 3, 10, 11, 12, 13, 30], float)
    groups = optimal(values, 3)
    assert [len(group) for group in groups] == [3, 5]
    assert sum(float(((values[g] - values[g].mean()) ** 2).sum()) for g in groups) == pytest.approx(1404 / 5)
    chance = np.random.default_rng(5)
    for _ in range(20):
        drawn = np.sort(chance.integers(0, 30, 9).astype(float))
        found = sum(float(((drawn[g] - drawn[g].mean()) ** 2).sum()) for g in optimal(drawn, 2))
        assert found == pytest.approx(min(_costs(drawn, 2)))


def _costs(values: np.ndarray, k: int) -> list[float]:
    """The cost of every way to cut sorted values into runs of at least k."""
    costs = []
    for cuts in range(2 ** (len(values) - 1)):
        ends = [0, *(n + 1 for n in range(len(values) - 1) if cuts >> n & 1), len(values)]
        if all(b - a >= k for a, b in pairwise(ends)):
            costs.append(sum(float(((values[a:b] - values[a:b].mean()) ** 2).sum()) for a, b in pairwise(ends)))
    return costs


@pytest.mark.parametrize("grouping", ["mdav", "univariate"])
def test_groups_have_at_least_k_rows_and_keep_means(tmp_path: Path, grouping: str) -> None:
    found = masked(
        tmp_path, {"method": "microaggregation", "columns": ["income", "rent"], "k": 5, "grouping": grouping}
    )
    for name in ("income", "rent"):
        assert np.unique(column(found, name), return_counts=True)[1].min() >= 5
        assert column(found, name).mean() == pytest.approx(incomes()[name].to_numpy().mean(), rel=1e-12)


def test_k_anonymity_is_claimed_where_all_quasi_identifiers_are_grouped_together_and_nowhere_else(
    tmp_path: Path,
) -> None:
    together = {"method": "microaggregation", "columns": ["age"], "within": ["sex", "region"], "k": 4}
    found = masked(tmp_path, together)
    assert "k-anonymity" in [claim.kind for claim in found.certificate.claims]
    assert isinstance(found.result, MaskedRows)
    assert found.result.sizes.min() >= 4
    for step in (together | {"within": ["sex"]}, together | {"grouping": "univariate"}, [together, _rounded("age")]):
        policy = load_policy(changed(POLICY, release=None) | {"release": step})
        assert "k-anonymity" not in [claim.kind for claim in policy.plan.claims]


def _rounded(name: str) -> dict[str, Any]:
    return {"method": "rounding", "columns": {name: 5}}


def test_rotation_keeps_means_and_covariances(tmp_path: Path) -> None:
    found = masked(tmp_path, {"method": "orthogonal", "columns": ["income", "rent"]})
    old, new = (
        np.column_stack([t["income"].to_numpy(), t["rent"].to_numpy()]) for t in (incomes(), found.result.to_arrow())
    )
    assert np.allclose(old.mean(axis=0), new.mean(axis=0), rtol=1e-10)
    assert np.allclose(covariance(old), covariance(new), rtol=1e-8)
    assert not np.allclose(np.sort(old[:, 0]), np.sort(new[:, 0]))


@pytest.mark.parametrize("rows", [3, 4, 7, 25, 41])
def test_tables_of_any_size_are_rotated(tmp_path: Path, rows: int) -> None:
    found = masked(tmp_path, {"method": "orthogonal", "columns": ["income"]}, incomes(rows))
    assert column(found, "income").mean() == pytest.approx(incomes(rows)["income"].to_numpy().mean())


@pytest.mark.parametrize("share", ["0.01", "0.2", "1"])
def test_swapped_ranks_move_no_farther_than_they_may(share: str) -> None:
    values = np.random.default_rng(1).normal(size=501)
    source = RankSwap(("x",), Fraction(share)).partners(values, SystemCoins())
    ranks = np.argsort(np.argsort(values))
    assert sorted(source.tolist()) == list(range(501))
    assert (source[source] == np.arange(501)).all(), "two values change places"
    assert np.abs(ranks[source] - ranks).max() <= int(Fraction(share) * 501)


def test_a_correlation_is_kept_on_average() -> None:
    values = np.sort(np.exp(np.random.default_rng(2).normal(size=400)))
    block = 8
    chance = np.random.default_rng(7)
    mean = np.mean([np.corrcoef(values, values[_swapped(values, block, chance)])[0, 1] for _ in range(400)])
    assert mean == pytest.approx(expected_correlation(values, block), abs=0.02)
    swap = RankSwap(("x",), Fraction(1, 2), Fraction(9, 10))
    window = swap.window(values)
    assert 0 < window < 200
    assert expected_correlation(values, window + 1) >= 0.9


def test_the_correlation_that_is_expected_is_that_of_all_coins() -> None:
    """Five values in blocks of three: all three places where the first block may end, and all pairings."""
    values = np.array([0.0, 1.0, 2.0, 3.0, 50.0])
    found = []
    for ends in ((3, 5), (1, 4, 5), (2, 5)):
        layout = [values[start:end] for start, end in pairwise((0, *ends))]
        products = [_mean_product(part - values.mean()) for part in layout]
        found.append(sum(products) / float(((values - values.mean()) ** 2).sum()))
    assert expected_correlation(values, 3) == pytest.approx(np.mean(found))


def _mean_product(part: np.ndarray) -> float:
    """Return the sum of the products of values with their partners, on average over all orders."""
    orders = [list(each) for each in permutations(map(float, part))]
    return sum(
        sum(2 * a * b for a, b in zip(each[::2], each[1::2], strict=False)) + each[-1] ** 2 * (len(each) % 2)
        for each in orders
    ) / len(orders)


def _swapped(values: np.ndarray, block: int, chance: np.random.Generator) -> np.ndarray:
    """Pair values at random in blocks, the first of which is cut off at a random place."""
    order, source = np.arange(len(values)), np.arange(len(values))
    for start in range(-int(chance.integers(block)), len(values), block):
        rows = np.array(order[max(0, start) : start + block])
        chance.shuffle(rows)
        for one, other in zip(rows[::2], rows[1::2], strict=False):
            source[one], source[other] = other, one
    return source


def test_swapped_households_stay_together_and_tables_without_the_area_stay_as_they_are(tmp_path: Path) -> None:
    step = {
        "method": "record-swap",
        "area": "region",
        "household": "household",
        "risk": ["age"],
        "similar": ["sex"],
        "share": "1/4",
    }
    table = incomes()
    found = masked(tmp_path, step, table).result.to_arrow()
    assert sorted(found["region"].to_pylist()) == sorted(table["region"].to_pylist())
    others = [name for name in found.column_names if name != "region"]
    assert _rows(found, others) == _rows(table, others)
    kinds = ["region", "sex"]
    assert _rows(found, kinds) == _rows(table, kinds), "partners are alike in sex, row by row"
    assert _rows(found, [*others, "region"]) != _rows(table, [*others, "region"])


def _rows(table: pa.Table, names: list[str]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in names) for row in table.to_pylist())


def test_a_household_in_two_areas_is_refused_before_the_charge(tmp_path: Path) -> None:
    table = incomes(10).set_column(2, "region", pa.array(["A1", "B1"] * 5))
    with pytest.raises(Infeasible, match="several areas"):
        masked(tmp_path, {"method": "record-swap", "area": "region", "household": "household"}, table)
    assert not (tmp_path / "ledger.sqlite").exists() or not _charges(tmp_path)


def _charges(folder: Path) -> list[Any]:
    from incrowd.accounting.ledger.ledger import Ledger

    return [entry for entry in Ledger.open(f"sqlite:///{folder}/ledger.sqlite").entries(0) if entry.kind == "charge"]


def test_shuffled_values_stay_in_their_column_and_keep_rank_correlations(tmp_path: Path) -> None:
    found = masked(tmp_path, {"method": "shuffle", "columns": ["income"], "given": ["rent", "sex"]}).result.to_arrow()
    table = incomes()
    assert sorted(found["income"].to_pylist()) == sorted(table["income"].to_pylist())
    before, after = (
        np.corrcoef(normal_scores(t["income"].to_numpy()), normal_scores(t["rent"].to_numpy()))[0, 1]
        for t in (table, found)
    )
    # With 600 rows the sampling error of a correlation near .97 is below .01; six of them are .06.
    assert after == pytest.approx(before, abs=0.06)


def test_normal_scores_keep_what_raw_values_lose() -> None:
    """Log-normal x: the rank correlation with s stays where scores are regressed, from .68 to .69."""
    chance = np.random.default_rng(8)
    s = chance.normal(size=20000)
    x = np.exp(s + chance.normal(size=20000))
    scores, known = normal_scores(x), np.column_stack([np.ones_like(s), normal_scores(s)])
    fitted = known @ np.linalg.lstsq(known, scores, rcond=None)[0]
    drawn = fitted + chance.normal(size=20000) * (scores - fitted).std()
    before, after = (np.corrcoef(normal_scores(each), normal_scores(s))[0, 1] for each in (x, drawn))
    assert after == pytest.approx(before, abs=0.05)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, "covariances among different"),
        ({"law": "correlated"}, "correlations"),
        ({"law": "correlated", "restore": True}, "variances and covariances"),
    ],
)
def test_noise_claims_what_it_keeps(options: dict[str, Any], kept: str) -> None:
    step = {"method": "noise", "columns": ["income", "rent"], **options}
    claims = load_policy(changed(POLICY, release=None) | {"release": step}).plan.claims
    assert any(kept in claim.sentence for claim in claims)


def test_noise_has_the_stated_moments(tmp_path: Path) -> None:
    """Relative errors of a variance of n normal terms are √(2/n); 20,000 rows and six of them are 6 %."""
    table = incomes(20000)
    old = np.column_stack([normal_scores(table[name].to_numpy()) for name in ("income", "rent")])
    plain = table.set_column(4, "income", pa.array(old[:, 0])).set_column(5, "rent", pa.array(old[:, 1]))
    both = {"columns": ["income", "rent"], "variance": "1/2", "method": "noise"}
    for options, factor in (({"law": "correlated"}, 1.5), ({"law": "correlated", "restore": True}, 1.0)):
        found = masked(tmp_path, both | options, plain).result.to_arrow()
        new = np.column_stack([found["income"].to_numpy(), found["rent"].to_numpy()])
        assert np.allclose(covariance(new), factor * covariance(old), rtol=0.06)
    found = masked(tmp_path, both, plain).result.to_arrow()
    new = np.column_stack([found["income"].to_numpy(), found["rent"].to_numpy()])
    assert np.allclose(np.diag(covariance(new)), 1.5 * np.diag(covariance(old)), rtol=0.06)
    assert covariance(new)[0, 1] == pytest.approx(covariance(old)[0, 1], rel=0.06)


def test_noise_can_stay_inside_declared_bounds(tmp_path: Path) -> None:
    found = masked(tmp_path, {"method": "noise", "columns": ["age"], "variance": 9, "inside": True})
    assert column(found, "age").min() >= 0
    assert column(found, "age").max() <= 120
    with pytest.raises(InvalidParameter, match="declare bounds"):
        load_policy(changed(POLICY, release={"method": "noise", "columns": ["income"], "inside": True})).plan  # noqa: B018


def test_ends_are_cut_off_and_numbers_are_rounded(tmp_path: Path) -> None:
    steps = [{"method": "coding", "columns": {"income": {"bottom": 5000, "top": 50000}}}, _rounded("age")]
    found = masked(tmp_path, steps)
    old = np.clip(incomes()["income"].to_numpy(), 5000, 50000)
    assert np.array_equal(np.sort(column(found, "income")), np.sort(old))
    assert found.result.to_arrow()["age"].type == pa.int64()
    assert (column(found, "age") % 5 == 0).all()
    near = masked(tmp_path, {"method": "rounding", "columns": {"income": 100}, "direction": "random"})
    assert np.abs(np.sort(column(near, "income")) - np.sort(incomes()["income"].to_numpy())).max() <= 100


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"method": "noise", "columns": []}, "name the columns"),
        ({"method": "noise", "columns": ["sex"]}, "not released as numbers"),
        ({"method": "noise", "columns": ["household"]}, "identifier"),
        ({"method": "microaggregation", "columns": ["sex", "age"]}, "grouping be gower"),
        ({"method": "coding", "columns": {"income": {}}}, "a bottom, a top"),
        ({"method": "rounding", "columns": {"income": 0}}, "above 0"),
        ({"method": "rank-swap", "columns": ["income"], "share": 2}, "at most 1"),
        ({"method": "record-swap", "area": "region", "household": "sex"}, "must be household or identifier"),
        ({"method": "noise", "columns": ["age"], "levels": {"age": 1}}, "labels and no numbers"),
        ([_rounded("age"), {"method": "record-swap", "area": "region", "levels": {"age": 1}}], "labels and no numbers"),
        ([{"method": "safe", "k": 5, "rate": 1}], "cannot be one of several"),
        ([], "at least one"),
    ],
)
def test_bad_parameters_are_refused_from_the_policy_alone(step: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        load_policy(changed(POLICY, release=None) | {"release": step}).plan  # noqa: B018


@pytest.mark.parametrize(
    ("step", "rows", "words"),
    [
        ({"method": "microaggregation", "columns": ["income"], "k": 9}, 8, "fewer rows than k"),
        ({"method": "noise", "columns": ["income", "rent"], "law": "correlated"}, 2, "no more rows than columns"),
        ({"method": "shuffle", "columns": ["income"]}, 1, "fewer than two rows"),
        ({"method": "orthogonal", "columns": ["income"]}, 2, "three rows"),
    ],
)
def test_rows_that_cannot_be_masked_are_refused_before_the_charge(
    tmp_path: Path, step: Any, rows: int, words: str
) -> None:
    with pytest.raises(Infeasible, match=words):
        masked(tmp_path, step, incomes(rows))
    assert not (tmp_path / "ledger.sqlite").exists() or not _charges(tmp_path)


def test_singular_covariances_are_refused(tmp_path: Path) -> None:
    table = incomes(50)
    twice = table.set_column(5, "rent", pa.array(table["income"].to_numpy() * 2))
    with pytest.raises(Infeasible, match="singular"):
        masked(tmp_path, {"method": "noise", "columns": ["income", "rent"], "law": "correlated"}, twice)


def test_a_list_of_masks_is_released_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [
        {"method": "noise", "columns": ["income"]},
        {"method": "rounding", "columns": {"income": 10}},
        _rounded("age"),
    ]
    file = written(changed(POLICY, release=None) | {"release": steps}, tmp_path)
    import pyarrow.csv

    pyarrow.csv.write_csv(incomes(), tmp_path / "rows.csv")
    assert main(["release", str(tmp_path / "rows.csv"), "--policy", str(file), "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "out"), "--policy", str(file)]) == 0
    said = capsys.readouterr().out
    assert "only the holder" in said or "cannot be known here" in said


def test_no_claim_is_made_of_a_column_that_two_steps_change() -> None:
    steps = [{"method": "noise", "columns": ["income"]}, {"method": "rounding", "columns": {"income": 10}}]
    plan = load_policy(changed(POLICY, release=None) | {"release": steps}).plan
    assert [claim.kind for claim in plan.claims] == ["masked values"]
    assert isinstance(plan.guarantee.loss, Syntactic)
    assert [name for name, _ in plan.guarantee.loss.parameters] == ["add noise", "round values"]


def test_a_guarantee_to_each_record_survives_what_follows_and_not_what_reads_other_rows_before() -> None:
    columns = {
        "sex": {"role": "quasi", "categories": ["F", "M"], "outside": "other"},
        "age": {"role": "quasi", "type": "integer", "bounds": [0, 9]},
    }
    base = changed(POLICY, dataset__unit={"adjacency": "replace-one"}, release=None) | {"columns": columns}
    pram = {"method": "pram", "columns": {"sex": {"stay": "1/2"}, "age": {"stay": "1/2"}}}
    coded = {"method": "coding", "columns": {"age": {"top": 8}}}
    swapped = {"method": "rank-swap", "columns": ["age"]}

    def loss(*steps: Any) -> Any:
        return load_policy(base | {"release": list(steps)}).plan.guarantee.loss

    alone = loss(pram)
    assert isinstance(alone, Pure)
    # 4 categories of sex (other and missing included): 3; 11 of age: 10. Independent changes multiply.
    assert float(alone.epsilon) == pytest.approx(np.log(3 * 10))
    assert loss(coded, pram) == alone
    assert loss(pram, swapped) == alone
    assert isinstance(loss(swapped, pram), Syntactic)


def test_groups_are_counted_among_the_rows_that_take_part(tmp_path: Path) -> None:
    """Eight rows of two people: of each person one row is kept, and two rows are no group of three."""
    table = incomes(8).set_column(0, "household", pa.array(["h0", "h1"] * 4))
    step = {"method": "microaggregation", "columns": ["income"], "k": 3}
    with pytest.raises(Infeasible, match="fewer rows than k"):
        masked(tmp_path, step, table, dataset__unit={"column": "household"})


@pytest.mark.parametrize(
    ("gentle", "strong"),
    [
        ({"method": "noise", "columns": ["income"], "variance": "1/1000"}, {"variance": 9}),
        ({"method": "noise", "columns": ["income"], "variance": "1/1000", "law": "correlated"}, {"variance": 9}),
        ({"method": "orthogonal", "columns": ["income"], "strength": "1/100"}, {"strength": 100}),
        ({"method": "rank-swap", "columns": ["income"], "share": "1/100"}, {"share": 1}),
        ({"method": "microaggregation", "columns": ["income"], "k": 2}, {"k": 200}),
        ({"method": "rounding", "columns": {"income": 1}}, {"columns": {"income": 40000}}),
        ({"method": "coding", "columns": {"income": {"top": 300000}}}, {"columns": {"income": {"top": 9000}}}),
        ({"method": "shuffle", "columns": ["income"], "given": ["rent"]}, {"given": ["age"]}),
        ({"method": "pram", "columns": {"sex": {"stay": "99/100"}}}, {"columns": {"sex": {"stay": "1/2"}}}),
        ({"method": "record-swap", "area": "region", "share": "1/100"}, {"share": 1}),
        ({"method": "local-suppression", "threshold": "1/2"}, {"threshold": "1/40"}),
    ],
)
def test_the_stronger_the_parameter_the_less_is_risked_and_the_less_is_kept(
    tmp_path: Path, gentle: dict[str, Any], strong: dict[str, Any]
) -> None:
    """The parameters are far apart; of the rows of a shuffle hardly any are linked, whatever it was given."""
    little, much = (_effect(tmp_path, step) for step in (gentle, gentle | strong))
    assert little["same"] > much["same"]
    assert little["near"] is None or little["near"] > much["near"] or gentle["method"] == "shuffle"
    assert little["related"] is None or little["related"] > much["related"]


def _effect(tmp_path: Path, step: Any) -> dict[str, Any]:
    """Return the share of cells near their own, of rows linked rightly, and how a column still follows itself."""
    found = masked(tmp_path, step).result
    last = step_effects(found.stages, found.quasi)[-1]
    (first, *_) = last.columns
    own, new = (each.frame.table[first.name] for each in (found.stages[0], found.stages[-1]))
    if first.mean is None or gone(found):
        return {"same": 1 - first.changed - gone(found), "near": None, "related": None}
    near = np.abs(own.to_numpy() - new.to_numpy()) < 1000
    return {"same": near.mean(), "near": last.near, "related": first.correlation}


def gone(found: Any) -> float:
    """Return the share of rows that were left out."""
    return 1 - len(found) / len(found.stages[0].frame)
