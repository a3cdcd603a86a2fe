"""Surveys: weights, households and strata in masks; what is left out by risk, and weights that still add up."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.cli.main import main
from incrowd.core.loss import Pure, Syntactic
from incrowd.criteria.individual_risk import individual_risk
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.sources import open_source
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.perturbation.shared.frame import RowFrame
from incrowd.methods.perturbation.shared.masks import MaskInput, PlannedMask
from incrowd.methods.perturbation.shared.steps import KeptStatistic, Preservation
from incrowd.noise.system import SystemCoins
from incrowd.workflows.assess.preservation import preserved_statistics
from incrowd.workflows.assess.released import read_release
from incrowd.workflows.estimate import estimate_frequencies
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.deliver import Released
from incrowd.workflows.release.tables import release
from tests.policies import changed, with_ledger, written
from tests.tables import Batches

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "survey"},
    "columns": {
        "home": {"role": "household"},
        "region": {"role": "strata", "categories": ["A", "B", "C"], "shared": True},
        "sex": {"role": "quasi", "categories": ["F", "M"]},
        "age": {"role": "quasi", "type": "integer", "bounds": [0, 99], "missing": "drop"},
        "income": {"role": "sensitive", "type": "decimal", "missing": "drop"},
        "rent": {"role": "plain", "type": "decimal", "missing": "drop", "shared": True},
        "weight": {"role": "weight", "type": "decimal", "missing": "drop"},
    },
    "release": {"method": "noise", "columns": ["income"]},
    "budget": {"unbounded": "the tests need it"},
}
SUPPRESSED = {"method": "local-suppression", "threshold": "1/3"}
CALIBRATED = [{"method": "local-suppression", "threshold": "1/2", "keep": ["age"]}, {"method": "calibration"}]


def survey(rows: int = 300, seed: int = 5) -> pa.Table:
    """Return rows of households of one to four, with what they share and what they do not."""
    chance = np.random.default_rng(seed)
    home = np.sort(chance.integers(0, rows // 2, rows))
    region, rent = chance.choice(["A", "B", "C"], rows), np.exp(chance.normal(6, 1, rows)).round(2)
    return pa.table(
        {
            "home": [f"h{n}" for n in home],
            "region": region[home],
            "sex": chance.choice(["F", "M"], rows),
            "age": chance.integers(18, 38, rows),
            "income": np.exp(chance.normal(8, 1, rows)).round(2),
            "rent": rent[home],
            "weight": chance.uniform(1, 40, rows).round(3),
        }
    )


def read(step: Any, **changes: Any) -> Policy:
    return load_policy(changed(POLICY, release=None, **changes) | {"release": step})


def masked(tmp_path: Path, step: Any, table: pa.Table | None = None, **changes: Any) -> Released:
    policy = with_ledger(changed(POLICY, release=None, **changes) | {"release": step}, tmp_path)
    return release(survey() if table is None else table, policy)


def last(found: Released) -> pa.Table:
    """Return the rows as the last step left them, in the order in which they were read, with their households."""
    rows: pa.Table = found.result.stages[-1].frame.table
    return rows


def charges(folder: Path) -> int:
    """Return how many charges the ledger of a folder has."""
    ledger = Ledger.open(f"sqlite:///{folder}/ledger.sqlite")
    return sum(entry.kind == "charge" for entry in ledger.entries(0))


def kept(policy: Policy) -> list[tuple[KeptStatistic, tuple[str, ...] | None, bool | None]]:
    claims = [each for each in policy.plan.claims if isinstance(each, Preservation)]
    return [(each.statistic, each.within, each.households) for each in claims]


def test_a_shared_column_is_changed_once_for_each_household(tmp_path: Path) -> None:
    for step in ({"method": "noise", "columns": ["rent"]}, {"method": "shuffle", "columns": ["rent"]}):
        rents = defaultdict(set)
        rows = last(masked(tmp_path, step))
        for home, rent in zip(rows["home"].to_pylist(), rows["rent"].to_pylist(), strict=True):
            rents[home].add(rent)
        assert all(len(each) == 1 for each in rents.values())
        assert len({next(iter(each)) for each in rents.values()}) == len(rents)
    before = {(h, r) for h, r in zip(*(survey()[name].to_pylist() for name in ("home", "rent")), strict=True)}
    assert Counter(rent for _, rent in before) == Counter(next(iter(each)) for each in rents.values())


def test_what_is_kept_of_a_shared_column_is_claimed_of_households() -> None:
    assert kept(read({"method": "shuffle", "columns": ["rent"]}))[0] == (KeptStatistic.VALUES, None, True)
    said = read({"method": "shuffle", "columns": ["rent"]}).plan.claims[0].sentence
    assert said.startswith("Kept of the households as they were read, each counted once, exactly:")


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"method": "noise", "columns": ["income", "rent"]}, "split households"),
        ({"method": "shuffle", "columns": ["rent"], "given": ["age"]}, "split households"),
        ({"method": "microaggregation", "columns": ["rent"], "weighted": True}, "split households"),
        ({"method": "noise", "columns": ["income"], "within": ["home"]}, "or an identifier"),
        ({"method": "pram", "columns": {"sex": {"stay": "1/2"}}, "within": "strata"}, "leave within out"),
        ({"method": "local-suppression", "threshold": 1}, "below 1"),
        ({"method": "local-suppression", "threshold": "1/5", "importance": {"income": 2}}, "no quasi-identifier"),
        ({"method": "local-suppression", "threshold": "1/5", "keep": ["sex", "age"]}, "keep fewer"),
        ({"method": "calibration", "margins": [["home"]]}, "an identifier"),
        ({"method": "calibration", "margins": [["weight"]]}, "other columns"),
        ({"method": "calibration", "tolerance": "1/2"}, "at most 1/100"),
        ([{"method": "calibration"}, {"method": "local-suppression", "threshold": "1/3"}], "calibrate them afterwards"),
        (
            [{"method": "record-swap", "area": "region"}, {"method": "calibration"}],
            "changed by 'swap records'",
        ),
        ([SUPPRESSED, {"method": "rounding", "columns": {"age": 5}}], "put that step first"),
        ([SUPPRESSED, {"method": "shuffle", "columns": ["income"], "given": ["sex"]}], "put that step first"),
    ],
)
def test_what_would_tear_households_or_means_nothing_is_refused_from_the_policy_alone(step: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        read(step).plan  # noqa: B018


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"columns__sex__role": "household"}, "one column at most has the role household"),
        ({"columns__home": {"role": "identifier"}}, "give the household ID column the role household"),
        ({"columns__weight": {"role": "weight", "categories": ["1", "2"]}}, "survey weights, which are numbers"),
    ],
)
def test_roles_that_contradict_each_other_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        read({"method": "noise", "columns": ["income"]}, **changes)


def test_strata_count_as_quasi_identifiers_and_households_are_withheld() -> None:
    schema = read({"method": "noise", "columns": ["income"]}).schema
    assert schema.quasi == ("region", "sex", "age")
    assert [column.name for column in schema.unreleased] == ["home"]
    assert (schema.household, schema.weight) == ("home", "weight")


@pytest.mark.parametrize(
    ("step", "change", "words"),
    [
        ({"method": "noise", "columns": ["rent"]}, {"rent": 0}, "differ in 'rent'"),
        ({"method": "record-swap", "area": "region"}, {"region": "A"}, "several areas"),
        (CALIBRATED, {"weight": -1.0}, "not above 0"),
        (
            {"method": "noise", "columns": ["income"], "within": "strata"},
            {"region": "C"},
            "in 1 of 2 groups of rows alike in region: .* fewer than two rows",
        ),
        ({"method": "microaggregation", "columns": ["age"], "within": "strata"}, {"region": "C"}, "fewer rows than k"),
    ],
)
def test_rows_that_cannot_be_masked_so_are_refused_before_the_charge(
    tmp_path: Path, step: Any, change: dict[str, Any], words: str
) -> None:
    (name, value), table = next(iter(change.items())), survey(40)
    values = ["A" if name == "region" and value == "C" else each for each in table[name].to_pylist()]
    shared = next(place for place in range(39) if table["home"][place] == table["home"][place + 1])
    values[shared] = "B" if name == "region" and values[shared] == value == "A" else value
    home = table["home"].to_pylist()
    if value == "C":
        home[shared] = "alone"
    table = table.set_column(0, "home", pa.array(home))
    table = table.set_column(table.column_names.index(name), name, pa.array(values))
    with pytest.raises(Infeasible, match=words):
        masked(tmp_path, step, table)
    assert charges(tmp_path) == 0


def test_groups_are_masked_each_by_itself(tmp_path: Path) -> None:
    before = _by_region(survey(), "income")
    swapped = _by_region(
        last(masked(tmp_path, {"method": "rank-swap", "columns": ["income"], "within": "strata"})), "income"
    )
    assert all(sorted(before[name]) == sorted(swapped[name]) for name in before)
    turned = _by_region(
        last(masked(tmp_path, {"method": "orthogonal", "columns": ["income"], "within": ["region"]})), "income"
    )
    for name, values in before.items():
        assert np.mean(turned[name]) == pytest.approx(np.mean(values), rel=1e-9)
        assert np.std(turned[name]) == pytest.approx(np.std(values), rel=1e-9)
    said = read({"method": "rank-swap", "columns": ["income"], "within": "strata"})
    assert kept(said)[0] == (KeptStatistic.VALUES, ("region",), None)
    assert "in each group of rows alike in column “region”" in said.plan.claims[0].sentence


def _by_region(table: pa.Table, name: str) -> dict[str, list[Any]]:
    found = defaultdict(list)
    for region, value in zip(table["region"].to_pylist(), table[name].to_pylist(), strict=True):
        found[region].append(value)
    return found


def test_an_invariant_matrix_of_each_stratum_keeps_its_frequencies_on_average() -> None:
    policy = read({"method": "pram", "columns": {"sex": {"stay": "1/2", "invariant": True}}, "within": "strata"})
    assert kept(policy) == [(KeptStatistic.FREQUENCIES, ("region",), None)]
    rows = pa.table({"region": ["A"] * 500 + ["B"] * 500, "sex": ["F"] * 500 + ["M"] * 500})
    step = policy.plan.steps[1]
    mask = PlannedMask(policy.method, step)  # type: ignore[arg-type]
    after = mask.apply(MaskInput(RowFrame(rows), policy.schema, SystemCoins()))
    assert after.table["sex"].to_pylist() == rows["sex"].to_pylist(), "where all are alike, all stay"


def test_weighted_means_of_groups_keep_the_weighted_mean(tmp_path: Path) -> None:
    step = {"method": "microaggregation", "columns": ["income", "age"], "k": 4, "weighted": True}
    rows, table = last(masked(tmp_path, step)), survey()
    for name in ("income", "age"):
        old, new = (np.average(each[name].to_numpy(), weights=each["weight"].to_numpy()) for each in (table, rows))
        assert new == pytest.approx(old, rel=1e-12)
    assert [what for what, *_ in kept(read(step))] == [KeptStatistic.WEIGHTED_MEANS]
    assert kept(read([step, {"method": "noise", "columns": ["weight"]}])) == [(KeptStatistic.MEANS, None, None)] * 1 + [
        (KeptStatistic.COVARIANCES, None, None)
    ]


@pytest.mark.parametrize("threshold", ["1/2", "1/3", "1/8"])
def test_no_row_is_at_risk_by_frequency_and_whole_households_are_left_out(tmp_path: Path, threshold: str) -> None:
    found = masked(tmp_path, {"method": "local-suppression", "threshold": threshold}).result
    rows, k = found.to_arrow(), -(-1 // Fraction(threshold))
    classes = Counter(zip(*(rows[name].to_pylist() for name in ("region", "sex", "age")), strict=True))
    assert min(classes.values()) >= k
    homes = Counter(found.stages[-1].frame.table["home"].to_pylist())
    assert all(number == Counter(survey()["home"].to_pylist())[home] for home, number in homes.items())
    for name in ("sex", "age"):
        shown = [(a, b) for a, b in zip(*_beside(found, name), strict=True) if b is not None]
        assert all(a == b for a, b in shown), "what is shown is true"
    assert None not in rows["region"].to_pylist()


def _beside(found: Any, name: str) -> tuple[list[Any], list[Any]]:
    """Return a column as read and as the last step left it, row by row."""
    first, end = found.stages[0].frame.table, found.stages[-1].frame
    return first[name].take(pa.array(end.places)).to_pylist(), end.table[name].to_pylist()


def test_a_lower_threshold_leaves_less_and_the_least_important_column_goes_first(tmp_path: Path) -> None:
    def empty(threshold: str, **importance: int) -> tuple[int, ...]:
        step = {"method": "local-suppression", "threshold": threshold, "importance": importance}
        rows = masked(tmp_path, step, columns__home={"role": "identifier"}, **_UNSHARED).result.to_arrow()
        left_out = 300 - rows.num_rows
        return tuple(rows[name].null_count + left_out for name in ("sex", "age"))

    assert sum(empty("1/2")) < sum(empty("1/4")) < sum(empty("1/9"))
    assert empty("1/4", sex=2)[0] <= empty("1/4", age=2)[0]
    assert empty("1/4", sex=2)[0] < empty("1/4", sex=2)[1]


_UNSHARED = {"columns__region__shared": False, "columns__rent__shared": False}


def test_no_estimated_risk_is_above_the_threshold_and_a_verifier_computes_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = {"method": "local-suppression", "threshold": "1/20", "risk": "survey"}
    file = written(changed(POLICY, release=None) | {"release": step}, tmp_path)
    pyarrow.csv.write_csv(survey(), tmp_path / "rows.csv")
    out = tmp_path / "out"
    arguments = ["release", str(tmp_path / "rows.csv"), "--policy", str(file), "--out", str(out), "--format", "csv"]
    assert main(arguments) == 0
    rows = pyarrow.csv.read_csv(out / "data.csv")
    classes: dict[Any, list[float]] = defaultdict(list)
    for row in rows.to_pylist():
        classes[row["region"], row["sex"], row["age"]].append(row["weight"])
    risk = individual_risk([len(each) for each in classes.values()], [sum(each) for each in classes.values()])
    assert 0.01 < risk.max() <= 0.05
    capsys.readouterr()
    assert main(["verify", str(out), "--policy", str(file), "--verbose"]) == 0
    assert "individual risk in the file" in capsys.readouterr().out


def test_weights_of_the_rows_that_are_left_add_up_by_stratum(tmp_path: Path) -> None:
    rows, table = masked(tmp_path, CALIBRATED).result.to_arrow(), survey()
    assert 0 < rows.num_rows < table.num_rows
    before, after = (_by_region(each, "weight") for each in (table, rows))
    for name in before:
        assert sum(after[name]) == pytest.approx(sum(before[name]), rel=1e-12)
    policy = read(CALIBRATED)
    assert (KeptStatistic.TOTALS, ("region",), None) in kept(policy)
    assert policy.plan.claims[0].kind == "k-anonymity", "weights are no quasi-identifier"


def test_several_margins_are_raked_to_the_stated_tolerance(tmp_path: Path) -> None:
    changes = {**_UNSHARED, "columns__home": {"role": "identifier"}}
    steps = [CALIBRATED[0], {"method": "calibration", "margins": [["region"], ["age"]], "tolerance": "1e-7"}]
    rows, table = masked(tmp_path, steps, **changes).result.to_arrow(), survey()
    assert rows.num_rows < table.num_rows
    for name in ("region", "age"):
        for value in set(table[name].to_pylist()):
            old, new = (
                sum(w for w, v in zip(each["weight"].to_pylist(), each[name].to_pylist(), strict=True) if v == value)
                for each in (table, rows)
            )
            assert new == pytest.approx(old, rel=1.1e-7)
    claims = [each for each in read(steps, **changes).plan.claims if isinstance(each, Preservation)]
    sums = [each for each in claims if each.statistic is KeptStatistic.TOTALS]
    assert [(each.within, each.share) for each in sums] == [
        (("region",), Fraction(1, 10**7)),
        (("age",), Fraction(1, 10**7)),
    ]


def test_a_stratum_of_which_no_row_is_left_is_refused_before_the_charge(tmp_path: Path) -> None:
    steps = [{"method": "local-suppression", "threshold": "1/290"}, {"method": "calibration"}]
    with pytest.raises(Infeasible, match="all rows of some group"):
        masked(tmp_path, steps)
    assert charges(tmp_path) == 0


def test_no_table_is_claimed_as_kept_where_another_step_changes_it() -> None:
    swap, noise = {"method": "record-swap", "area": "region"}, {"method": "noise", "columns": ["income"]}
    assert KeptStatistic.TABLES in [what for what, *_ in kept(read(swap))]
    assert KeptStatistic.TABLES not in [what for what, *_ in kept(read([swap, noise]))]
    given = {"method": "shuffle", "columns": ["income"], "given": ["age"]}
    later = [what for what, *_ in kept(read([given, {"method": "rounding", "columns": {"age": 5}}]))]
    assert KeptStatistic.VALUES in later
    assert KeptStatistic.RANK_CORRELATIONS not in later


def test_what_reads_more_than_the_changed_table_voids_a_guarantee_to_each_record(tmp_path: Path) -> None:
    columns = {
        "home": {"role": "household"},
        "sex": {"role": "quasi", "categories": ["F", "M"]},
        "area": {"role": "quasi", "categories": ["A", "B"]},
    }
    base = {"incrowd": 1, "dataset": {"name": "d", "unit": {"adjacency": "replace-one"}}, "columns": columns}
    pram = {"method": "pram", "columns": {"sex": {"stay": "1/2"}, "area": {"stay": "1/2"}}}
    made = {"method": "pram", "columns": {"sex": {"stay": "1/2", "invariant": True}}}

    def loss(*steps: Any) -> Any:
        return load_policy(base | {"release": list(steps)}).plan.guarantee.loss

    assert isinstance(loss(pram), Pure)
    assert isinstance(loss(pram, {"method": "record-swap", "area": "area"}), Syntactic), "it reads true households"
    assert isinstance(loss(made, pram), Syntactic), "its matrix is made from all rows"
    assert isinstance(loss(made | {"columns": {"sex": {"stay": "1/2"}}}, pram), Pure)
    weighed = columns | {"weight": {"role": "weight", "type": "decimal", "missing": "1"}}
    other = load_policy(base | {"columns": weighed, "release": pram})
    assert isinstance(other.plan.guarantee.loss, Syntactic), "weights are released as they are"


def test_frequencies_are_not_estimated_where_households_change_as_one(tmp_path: Path) -> None:
    step = {"method": "pram", "columns": {"region": {"stay": "1/2"}}}
    file = written(changed(POLICY, release=None) | {"release": step}, tmp_path)
    pyarrow.csv.write_csv(survey(), tmp_path / "rows.csv")
    assert main(["release", str(tmp_path / "rows.csv"), "--policy", str(file), "--out", str(tmp_path / "out")]) == 0
    with pytest.raises(InvalidParameter, match="households changed as one"):
        estimate_frequencies(tmp_path / "out")


def test_ranks_are_swapped_in_strata_smaller_than_the_window(tmp_path: Path) -> None:
    """A share of less than one row moves ranks by one place: small strata are not left as they were."""
    swap = {"method": "rank-swap", "columns": ["income"], "share": "1/100", "within": "strata"}
    before, after = (stage.frame for stage in masked(tmp_path, swap, survey(40)).result.stages)
    for rows in before.parts(["region"]):
        old, new = before.numbers("income")[rows], after.numbers("income")[rows]
        assert np.count_nonzero(old != new) >= len(rows) - 2  # the first and the last may have no partner
        assert np.abs(np.argsort(np.argsort(old)) - np.argsort(np.argsort(new))).max() <= 1


def test_the_internal_page_says_that_a_mask_changed_nothing(tmp_path: Path) -> None:
    file = written(changed(POLICY, release={"method": "rounding", "columns": {"income": "0.01"}}), tmp_path)
    pyarrow.csv.write_csv(survey(), tmp_path / "rows.csv")
    assert main(["release", str(tmp_path / "rows.csv"), "--policy", str(file), "--out", str(tmp_path / "out")]) == 0
    page = next((tmp_path / ".incrowd" / "internal").glob("*/steps.html")).read_text(encoding="utf-8")
    assert "Column “income”: the masks left 100.0% of the values as they were read." in page
    assert "the masks left" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_each_step_is_shown_before_and_after_in_what_stays_with_the_holder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [{"method": "rounding", "columns": {"age": 3}}, {"method": "noise", "columns": ["income"]}, *CALIBRATED]
    file = written(changed(POLICY, release=None) | {"release": steps}, tmp_path)
    pyarrow.csv.write_csv(survey(), tmp_path / "rows.csv")
    assert main(["release", str(tmp_path / "rows.csv"), "--policy", str(file), "--out", str(tmp_path / "out")]) == 0
    (folder,) = (tmp_path / ".incrowd" / "internal").iterdir()
    told = json.loads((folder / "steps.json").read_text(encoding="utf-8"))["steps"]
    assert [each["title"] for each in told][:3] == ["As read", "Round", "Add noise"]
    assert told[0]["alone"] > told[1]["alone"] >= told[3]["alone"] == 0
    assert told[0]["blind"] > told[1]["blind"] >= told[4]["blind"]
    assert told[0]["near"] > told[2]["near"]
    income = {place: next(c for c in each["columns"] if c["name"] == "income") for place, each in enumerate(told)}
    assert income[1]["changed"] == 0.0
    assert income[2]["changed"] > 0.9
    assert income[1]["correlation"] == pytest.approx(1.0)
    assert 0.5 < income[2]["correlation"] < 1.0
    page = (folder / "steps.html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 2 * len(steps)
    assert (folder / "steps.html").stat().st_mode & 0o077 == 0
    assert not list((tmp_path / "out").glob("steps*"))
    capsys.readouterr()
    assert (
        main(
            [
                "report",
                str(tmp_path / "out"),
                "--internal",
                "--policy",
                str(file),
                "--against",
                str(tmp_path / "rows.csv"),
            ]
        )
        == 0
    )
    assert "What each step did" in (folder / "report.html").read_text(encoding="utf-8")


KEEPING: dict[str, Any] = {
    "swapped within strata": {"method": "rank-swap", "columns": ["income"], "within": "strata"},
    "rotated": {"method": "orthogonal", "columns": ["income"]},
    "grouped by weights": {"method": "microaggregation", "columns": ["income"], "weighted": True},
    "households moved": {"method": "record-swap", "area": "region", "share": "1/2"},
    "calibrated": CALIBRATED,
}


@pytest.mark.parametrize("name", KEEPING)
def test_the_holder_sees_that_what_was_to_be_kept_is(tmp_path: Path, name: str) -> None:
    file = written(changed(POLICY, release=None) | {"release": KEEPING[name]}, tmp_path)
    pyarrow.csv.write_csv(survey(), tmp_path / "rows.csv")
    out = tmp_path / "out"
    assert (
        main(["release", str(tmp_path / "rows.csv"), "--policy", str(file), "--out", str(out), "--format", "csv"]) == 0
    )
    policy = load_policy(file)
    rows, found = open_source(tmp_path / "rows.csv"), read_release(out)
    kept = {each.sentence: each.holds for each in preserved_statistics(found, rows, policy, LOCAL)}
    assert True in kept.values()
    assert False not in kept.values()
    other = survey(seed=6)
    lost = preserved_statistics(found, Batches(other, 100), policy, LOCAL)
    assert all(each.holds is False for each in lost if each.holds is not None), "of other rows nothing is kept"
