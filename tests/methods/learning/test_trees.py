"""Trees, additive numbers, grids and samples: the whole road, from a policy to a folder that verifies and predicts."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import incrowd
from incrowd.core.coins import Sample
from incrowd.core.loss import Pure, ZeroConcentrated
from incrowd.engines.settings import open_table
from incrowd.errors import InvalidParameter
from incrowd.learn import Classifier, KMeans, Regressor
from incrowd.methods.learning.shared.growth import dealt
from incrowd.methods.learning.shared.models import LearnedModel
from incrowd.methods.learning.shared.rehearsal import rehearse
from incrowd.methods.learning.shared.steps import CountByTarget, CountGrid, MoveCenters
from incrowd.methods.learning.shared.tree_steps import CountLeaves, GrowTrees, SampleGradients
from incrowd.methods.learning.shared.trees import SplitCandidates, TreeSplits
from incrowd.workflows.export.onnx_model import onnx_of
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.coins import SeededCoins
from tests.methods.learning.records import small

NUMBER = {"type": "decimal", "bounds": [-1, 1], "missing": "drop"}
COLUMNS: dict[str, Any] = {
    "x": NUMBER,
    "side": {"categories": ["left", "right"]},
    "corner": {"categories": ["no", "yes"], "missing": "drop", "outside": "drop"},
    "height": {"type": "decimal", "bounds": [-2, 2], "missing": "drop"},
}
WAYS: dict[str, dict[str, Any]] = {
    "tree": {"method": "classifier", "target_column": "corner", "model": "tree", "depth": 2},
    "forest": {"method": "classifier", "target_column": "corner", "model": "forest", "expected_rows": 3000},
    "random trees": {"method": "classifier", "target_column": "corner", "model": "random-trees"},
    "stream": {
        "method": "classifier",
        "target_column": "side",
        "columns": ["height"],
        "model": "stream",
        "expected_rows": 3000,
        "epsilon": 3,
    },
    "regression tree": {"method": "regressor", "target_column": "height", "model": "tree"},
    "regression forest": {"method": "regressor", "target_column": "height", "model": "forest", "expected_rows": 3000},
    "additive": {"method": "regressor", "target_column": "height", "model": "additive"},
    "grid": {"method": "kmeans", "clusters": 2, "columns": ["x", "height"], "expected_rows": 3000},
}
READ = ["x", "side"]


def rows(number: int = 3000, seed: int = 1) -> pa.Table:
    """Rows of which no straight line tells the corner: x is above 0.2 on the right, and below −0.2 on the left."""
    chance = np.random.default_rng(seed)
    x, right = chance.uniform(-1, 1, number), chance.random(number) < 0.5
    corner = np.where(right, x > 0.2, x < -0.2)
    height = np.abs(x) + np.where(right, 0.5, -0.5)
    return pa.table(
        {
            "x": x,
            "side": np.where(right, "right", "left"),
            "corner": np.where(corner, "yes", "no"),
            "height": height,
        }
    )


def policy(way: str, folder: Path, **change: Any) -> dict[str, Any]:
    release = {"epsilon": 20, "delta": "1e-6", **({} if way == "grid" else {"columns": READ}), **WAYS[way], **change}
    return {
        "incrowd": 1,
        "dataset": {"name": "corners"},
        "columns": COLUMNS,
        "release": {key: value for key, value in release.items() if value is not None},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }


@pytest.mark.parametrize("way", WAYS)
def test_a_model_learns_verifies_and_predicts_from_its_folder(way: str, tmp_path: Path) -> None:
    """At ε = 20 with 3,000 rows noise is a hundredth of what is learned, for samples at ε = 3: chance plays no part."""
    release_to(rows(), policy(way, tmp_path), Destination(tmp_path / "out"))
    assert verify(tmp_path / "out").passed
    fresh = rows(1000, seed=2)
    said = incrowd.predict(tmp_path / "out", fresh).read_all()["prediction"]
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    if way == "grid":
        centers = LearnedModel.load(tmp_path / "out").vectors
        assert centers is not None
        assert np.ptp(centers, axis=0).max() > 0.5
        return
    if WAYS[way]["method"] == "classifier":
        right = np.mean(np.array(said.to_pylist()) == np.array(fresh[WAYS[way]["target_column"]].to_pylist()))
        assert right > 0.85
    else:
        truth = fresh["height"].to_numpy()
        assert 1 - np.mean((said.to_numpy() - truth) ** 2) / truth.var() > (0.9 if way == "additive" else 0.6)
    assert way in {"additive", "stream"} or "leaves of the first tree" in report


@pytest.mark.parametrize("way", ["tree", "random trees"])
@pytest.mark.parametrize("change", ["leaf", "cut", "fewer"])
def test_changed_trees_are_found(way: str, change: str, tmp_path: Path) -> None:
    """Hashes find any change; the check of the method itself finds trees that are not those of the steps."""
    release_to(rows(200), policy(way, tmp_path), Destination(tmp_path / "out"))
    file = tmp_path / "out" / "model.json"
    plain = json.loads(file.read_text(encoding="utf-8"))
    if change == "leaf":
        plain["trees"][0]["leaves"][0][0] += 1.0
    elif change == "cut":
        plain["trees"][0]["columns"][0] = 1 - plain["trees"][0]["columns"][0]
        plain["trees"][0]["codes"][0] = 1
    else:
        plain["trees"] = plain["trees"][:-1] or [{"columns": [0], "codes": [1], "leaves": [[0.0, 0.0]] * 2}]
    file.write_text(json.dumps(plain), encoding="utf-8")
    found = verify(tmp_path / "out")
    assert not found.passed
    wrong = {each.about for each in found.findings if each.verdict == "failed"}
    known = change == "fewer" or (change == "cut" and way == "random trees")
    assert ("model" in wrong) == known


@pytest.mark.parametrize(
    "change",
    [
        {"columns": [0]},
        {"codes": [0, 0, 99]},
        {"columns": [0, 0, -1]},
        {"columns": [0.0, 0.5, 1.0]},
        {"leaves": [[1.0]] * 4},
        {"more": 1},
    ],
    ids=str,
)
def test_a_damaged_tree_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    plain = incrowd.learn_model(rows(100), policy("tree", tmp_path)).model.to_json()
    assert LearnedModel.from_json(plain).to_json() == plain
    plain["trees"][0] |= change
    with pytest.raises(InvalidParameter, match="model"):
        LearnedModel.from_json(plain)


def test_estimators_learn_by_trees_too(tmp_path: Path) -> None:
    table, fresh = rows(), rows(500, seed=3)
    corner, height = (table[name].to_numpy(zero_copy_only=False) for name in ("corner", "height"))
    tree = Classifier(policy("tree", tmp_path / "a")).fit(table.drop_columns("corner"), corner)
    assert tree.score(fresh.select(READ), np.array(fresh["corner"].to_pylist())) > 0.85
    number = Regressor(policy("additive", tmp_path / "b")).fit(table.drop_columns("height"), height)
    assert number.score(fresh.select(READ), fresh["height"].to_numpy()) > 0.9
    assert KMeans(policy("grid", tmp_path / "c")).fit(table).cluster_centers_.shape == (2, 2)


@pytest.mark.parametrize(
    ("change", "step"),
    [
        ({"delta": None, "expected_rows": 5}, CountLeaves),
        ({"expected_rows": 5}, CountLeaves),
        ({"expected_rows": 50}, CountByTarget),
        ({"delta": None, "expected_rows": 5000}, CountByTarget),
        ({"delta": None}, CountByTarget),
        ({"model": "tree"}, GrowTrees),
    ],
)
def test_the_model_is_chosen_by_public_numbers(change: dict[str, Any], step: type) -> None:
    assert small(**change).plan.basis.find(step) is not None


@pytest.mark.parametrize(
    ("change", "step"),
    [
        ({"columns": ["n", "m"]}, MoveCenters),
        ({"columns": ["n", "m"], "expected_rows": 1000}, CountGrid),
        ({"columns": ["a", "n"], "expected_rows": 1000}, MoveCenters),
        ({"columns": ["n"], "expected_rows": 1000, "clusters": 50}, MoveCenters),
        ({"columns": ["n", "m"], "expected_rows": 1000, "model": "lloyd"}, MoveCenters),
        ({"columns": ["n", "m"], "expected_rows": 1000, "delta": None}, CountGrid),
    ],
)
def test_a_grid_is_chosen_by_public_numbers(change: dict[str, Any], step: type) -> None:
    told = {"method": "kmeans", "target_column": None, "clusters": 2, **change}
    assert small(**told).plan.basis.find(step) is not None


def test_what_one_noisy_count_needs_no_delta_guarantees_epsilon_alone() -> None:
    """Also where the policy names a δ: it is not spent."""
    for told in (
        {"model": "random-trees"},
        {"method": "kmeans", "target_column": None, "clusters": 2, "columns": ["n"], "expected_rows": 99},
    ):
        plan = small(**told).plan
        assert plan.guarantee.loss == Pure(Fraction(1))
        assert plan.guarantee.delta == 0
        assert plan.claims[0].kind == "pure differential privacy"


@pytest.mark.parametrize("model", ["tree", "forest"])
@pytest.mark.parametrize("unit", [{}, {"adjacency": "replace-one"}])
def test_what_is_charged_is_never_above_what_was_asked(model: str, unit: dict[str, str]) -> None:
    told = policy("tree", Path("unused"), model=model, epsilon=1)
    plan = load_policy({**told, "dataset": {"name": "d", "unit": unit}}).plan
    assert isinstance(plan.guarantee.loss, ZeroConcentrated)
    assert Fraction(9, 10) < Fraction(plan.settings["epsilon"]) <= 1


@pytest.mark.parametrize(
    ("way", "change", "words"),
    [
        ("tree", {"delta": None}, "needs a delta"),
        ("tree", {"depth": 0}, "1 to 12 levels"),
        ("regression tree", {"depth": 13}, "1 to 12 levels"),
        ("additive", {"expected_rows": 0}, "at least 1"),
        ("stream", {"delta": None}, "needs a delta"),
        ("stream", {"expected_rows": None}, "expected_rows"),
        ("grid", {"model": "grid", "columns": READ}, "all of numbers"),
        ("grid", {"model": "grid", "expected_rows": None}, "expected_rows"),
        ("grid", {"delta": None, "expected_rows": None}, "needs a delta"),
    ],
)
def test_what_cannot_be_learned_is_refused_before_rows(way: str, change: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        _ = load_policy(policy(way, Path("unused"), **change)).plan


@pytest.mark.parametrize("way", WAYS)
def test_an_empty_table_holds_back_nothing(way: str, tmp_path: Path) -> None:
    found = incrowd.learn_model(rows(0), policy(way, tmp_path, epsilon=1)).model
    assert found.predicted(rows(3)).num_rows == 3


def test_rows_of_a_record_are_dealt_one_by_one() -> None:
    times = np.array([0, 3, 10**6, 5, 0])
    shares = dealt(times, 4, SeededCoins(5))
    assert shares.sum(axis=1).tolist() == times.tolist()
    assert np.abs(shares[2] - 250_000).max() < 3000, "seven deviations"


def test_drawn_trees_are_the_same_for_everyone() -> None:
    """Whatever library or machine draws them: certificates of earlier versions are held against them."""
    first = SplitCandidates.of([4, 3, 2], [True, False, False]).random(2, 2)
    assert [each.to_json() for each in first] == [
        {"columns": [1, 0, 0], "codes": [0, 3, 1]},
        {"columns": [1, 1, 2], "codes": [0, 1, 0]},
    ]


def test_paths_say_in_words_who_is_in_a_leaf(tmp_path: Path) -> None:
    model = incrowd.learn_model(rows(50), policy("tree", tmp_path)).model
    cuts = TreeSplits(np.array([1, 0, 0]), np.array([0, 8, 8]))
    assert list(cuts.paths(model.columns)) == [
        f"side is left; x before {model.columns[0].labels[8]}",
        f"side is left; x from {model.columns[0].labels[8]} on",
        f"side is not left; x before {model.columns[0].labels[8]}",
        f"side is not left; x from {model.columns[0].labels[8]} on",
    ]


class CountedCoins(SeededCoins):
    """Coins that remember which samples were drawn from them."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        object.__setattr__(self, "drawn", [])

    def sample(self, rate: Fraction) -> Sample:
        found = super().sample(rate)
        self.drawn.append(found)  # type: ignore[attr-defined]
        return found


def test_each_round_has_a_sample_of_its_own(tmp_path: Path) -> None:
    """One for each round, under a key of its own, and each of about the stated rate."""
    read, coins = load_policy(policy("stream", tmp_path)), CountedCoins(3)
    read.plan.release(open_table(rows(400), read.schema, read.options), coins)
    step = read.plan.basis.need(SampleGradients)
    drawn = [each.at(0, 4000) for each in coins.drawn]  # type: ignore[attr-defined]
    assert len(drawn) == step.rounds == 11
    assert len({each.tobytes() for each in drawn}) == step.rounds
    assert all(abs(each.mean() - float(step.rate)) < 0.06 for each in drawn), "eight deviations"


def test_people_are_drawn_and_people_with_several_rows_are_refused(tmp_path: Path) -> None:
    told = policy("stream", tmp_path)
    told["columns"] = {**COLUMNS, "id": {"role": "identifier"}}
    one = {**told, "dataset": {"name": "d", "unit": {"column": "id", "max_rows": 1}}}
    assert load_policy(one).plan.basis.find(SampleGradients) is not None
    with pytest.raises(InvalidParameter, match="everybody has one"):
        _ = load_policy({**told, "dataset": {"name": "d", "unit": {"column": "id", "max_rows": 2}}}).plan


def test_trees_are_not_tuned_nor_written_as_onnx_and_samples_not_rehearsed(tmp_path: Path) -> None:
    few = small(method="tuning", models=["auto", "additive"], expected_rows=5)
    assert few.plan.basis.find(CountLeaves) is None
    model = incrowd.learn_model(rows(20), policy("tree", tmp_path)).model
    with pytest.raises(InvalidParameter, match="not written as ONNX"):
        onnx_of(model)
    read = load_policy(policy("stream", tmp_path, columns=["x"]))
    assert rehearse(read.method, read.schema, 500) is None


@pytest.mark.parametrize("way", ["tree", "random trees", "regression tree"])
def test_trees_are_rehearsed_on_made_up_rows(way: str, tmp_path: Path) -> None:
    """With 3,000 rows at ε = 20 nearly all is kept of what can be learned; the chance in it is public, and fixed."""
    read = load_policy(policy(way, tmp_path))
    band = rehearse(read.method, read.schema, 3000)
    assert band is not None
    assert band.all > 0.8
