"""Series: what is published once stays, what is lost is missing, and nothing is drawn or charged twice."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.accounting.budget import Amount
from incrowd.core.steps.around import period_of
from incrowd.errors import BudgetExceeded, InvalidParameter, Refused, SourceInvalid
from incrowd.methods.histograms.continual.method import Continual
from incrowd.methods.histograms.private import PrivateHistogram
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.members import Members
from incrowd.workflows.release.recover import discard_hidden
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.series.outlook import outlook_of
from incrowd.workflows.series.page import series_page
from incrowd.workflows.series.series import (
    PeriodState,
    PeriodStatus,
    RunTerms,
    Series,
    SeriesPlaces,
    SeriesRun,
    close_series,
    run_period,
    run_series,
)
from incrowd.workflows.verify.verify import verify
from tests.contract.forging import caught, placed, refolded, require_all_caught
from tests.policies import changed

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "stays", "unit": {"column": "patient", "max_rows": 2}},
    "columns": {
        "patient": {"role": "identifier"},
        "ward": {"categories": ["Ärzte", "B"]},
        "discharged": {"role": "withheld", "type": "date"},
    },
    "period": {"column": "discharged", "every": "month", "first": "2025-01", "last": "2025-04"},
    "release": {"method": "private-histogram", "columns": ["ward"], "epsilon": "1/10"},
    "budget": {"epsilon": 1},
}
MONTHS = ("2025-01", "2025-02", "2025-03", "2025-04")
RUNNING = {"method": "continual", "columns": ["ward"], "epsilon": 1, "delta": "1e-6", "participations": 1}
SAFE = {"method": "safe", "levels": {"ward": 0}, "rate": "1/10", "epsilon": 1, "delta": "1e-6"}


def rows(months: tuple[str, ...] = MONTHS[:3], each: int = 40) -> pa.Table:
    """Return rows of some months, and a few without a date; the last month has none."""
    people: list[tuple[str, str, str | None]] = [
        (f"p{n % 29}", "Ärzte" if n % 3 else "B", f"{month}-{1 + n % 28:02}") for month in months for n in range(each)
    ]
    people += [("p1", "B", None), ("p2", "B", "")]
    names = ("patient", "ward", "discharged")
    return pa.table({name: pa.array([row[place] for row in people], pa.string()) for place, name in enumerate(names)})


def policy_in(folder: Path, **changes: Any) -> Policy:
    return load_policy(changed(POLICY, ledger=f"sqlite:///{folder}/ledger.sqlite", **changes), folder=folder)


def place(folder: Path, label: str) -> Destination:
    return Destination(folder / "out" / label, "csv")


def counts(run: SeriesRun) -> dict[Any, int]:
    assert run.folder is not None
    (file,) = run.folder.glob("*.csv")
    lines = [line.split(",") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    return {line[0]: int(line[1]) for line in lines}


def test_a_period_again_returns_what_was_published(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    first = run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    again = run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    elsewhere = run_period(rows(), policy, MONTHS[0], place(tmp_path / "other", MONTHS[0]))
    assert (first.new, again.new, elsewhere.new) == (True, False, False)
    assert counts(first) == counts(again) == counts(elsewhere)
    ledger = Series.of(policy).ledger
    assert ledger is not None
    assert ledger.standing("stays").totals.spent == Amount.up("0.1", 0)
    (tmp_path / "out" / MONTHS[0] / "data.csv").write_text("ward,count\n", encoding="utf-8")
    with pytest.raises(Refused, match="no longer what they were"):
        run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    (tmp_path / "out" / MONTHS[0]).rename(tmp_path / "gone")
    with pytest.raises(Refused, match="nothing is drawn again"):
        run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))


def test_a_release_reads_the_rows_of_its_period_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    original = PrivateHistogram.release

    def watched(self: PrivateHistogram, table: Any, coins: Any) -> Any:
        batches = table.rows.batches(["discharged"])
        counted.append(sum(batch.num_rows for batch in batches))
        return original(self, table, coins)

    monkeypatch.setattr(PrivateHistogram, "release", watched)
    policy = policy_in(tmp_path)
    made = list(run_series(rows(each=31), policy, SeriesPlaces(tmp_path / "out")))
    assert counted == [31, 31, 31, 0]  # the month without rows is released, too
    assert all(isinstance(run, SeriesRun) and run.new for run in made)
    outcome = verify(tmp_path / "out" / MONTHS[3])
    assert outcome.passed, outcome.failure


def test_the_certificate_says_what_adds_up_for_somebody_in_all_periods(tmp_path: Path) -> None:
    unit = {"column": "patient", "max_rows": 2, "per": "period"}
    policy = policy_in(tmp_path, dataset__unit=unit, budget={"epsilon": "1/10", "total": {"epsilon": "3/10"}})
    for label in MONTHS[:3]:
        run = run_period(rows(), policy, label, place(tmp_path, label))
    accounting = run.certificate.accounting
    assert accounting.period is not None
    assert (accounting.period.label, accounting.period.published) == (MONTHS[2], 3)
    assert (accounting.period.spent.epsilon, accounting.total.epsilon) == ("0.1", "0.3")
    page = (tmp_path / "out" / MONTHS[2] / "report.html").read_text(encoding="utf-8")
    assert "For somebody in all 3 periods charged so far" in page
    assert "in every version of the file" in page
    assert verify(tmp_path / "out" / MONTHS[2], policy=policy).passed
    with pytest.raises(BudgetExceeded, match="all periods together"):
        run_period(rows(), policy, MONTHS[3], place(tmp_path, MONTHS[3]))


def test_a_lost_period_is_missing_until_it_is_charged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_in(tmp_path)

    def fail(*_: Any) -> Any:
        raise Refused("the disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(PrivateHistogram, "release", fail)
        with pytest.raises(Refused, match="not refunded"):
            run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    with pytest.raises(Refused, match="is missing"):
        run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    later = list(run_series(rows(), policy, SeriesPlaces(tmp_path / "out", MONTHS[1])))
    assert isinstance(later[0], PeriodStatus)
    assert [period.state for period in Series.of(policy).status()][:2] == [PeriodState.MISSING, PeriodState.PUBLISHED]
    again = run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]), RunTerms(again=True))
    assert again.certificate.accounting.period is not None
    assert again.certificate.accounting.period.spent.epsilon == "0.2"  # in sequence with the lost one


def test_a_changed_policy_is_refused_or_charged_in_sequence(tmp_path: Path) -> None:
    run_period(rows(), policy_in(tmp_path), MONTHS[0], place(tmp_path, MONTHS[0]))
    other = policy_in(tmp_path, release__epsilon="1/5")
    with pytest.raises(Refused, match="another version of the policy"):
        run_period(rows(), other, MONTHS[0], place(tmp_path, MONTHS[0]))
    made = run_period(rows(), other, MONTHS[0], place(tmp_path / "second", MONTHS[0]), RunTerms(again=True))
    assert made.certificate.accounting.total.epsilon == "0.3"
    quarters = {"every": "quarter", "first": "2025-Q1", "last": "2025-Q4"}
    zoned = policy_in(tmp_path, **{f"period__{name}": value for name, value in quarters.items()})
    with pytest.raises(Refused, match="a row can be in two periods"):
        run_period(rows(), zoned, "2025-Q2", place(tmp_path, "2025-Q2"))


FORM = {
    "release": {"method": "full-domain", "k": 5},
    "budget": {"epsilon": 1, "unbounded": "a law orders it"},
}


def test_a_period_whose_release_has_no_epsilon_is_never_said_to_cost_nothing(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, **FORM)
    run = run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    account = run.certificate.accounting.period
    assert account is not None
    assert account.spent.epsilon == "Infinity"
    (published, *_) = Series.of(policy).status()
    assert published.to_json()["spent"]["epsilon"] == "Infinity"
    chart = str(series_page(Series.of(policy)))
    assert "Published rows by ward, as they are" in chart
    assert all(f">{ward}</text>" in chart for ward in ("Ärzte", "B"))
    page = (tmp_path / "out" / MONTHS[0] / "report.html").read_text(encoding="utf-8")
    assert "What was charged for 2025-01 and for all periods: no bound." in page
    outcome = verify(tmp_path / "out" / MONTHS[0], policy=policy, ledger=Series.of(policy).ledger)
    assert outcome.passed, outcome.failure
    plain = run.certificate.to_json()
    assert caught(placed(plain, ("accounting", "period", "spent", "epsilon"), "0")) == "accounting"


def visits(months: dict[str, list[str]]) -> pa.Table:
    """Return one visit of each of these people to one ward in each month."""
    lines = [(name, "B", f"{month}-07") for month, names in months.items() for name in names]
    names = ("patient", "ward", "discharged")
    return pa.table({name: pa.array([line[at] for line in lines], pa.string()) for at, name in enumerate(names)})


PANEL = [f"p{number}" for number in range(12)]


@pytest.mark.parametrize(
    ("february", "refusal"),
    [
        (PANEL, None),
        (PANEL[6:] + [f"q{number}" for number in range(7)], None),  # other counts: no row is shared
        (PANEL[1:], "1 left and 0 joined"),
        ([*PANEL, "new"], "0 left and 1 joined"),
        (PANEL[4:] + [f"q{number}" for number in range(4)], "4 left and 4 joined"),  # the counts are equal
    ],
)
def test_people_of_tables_without_an_epsilon_are_compared_over_periods(
    february: list[str], refusal: str | None, tmp_path: Path
) -> None:
    policy, data = policy_in(tmp_path, **FORM), visits({MONTHS[0]: PANEL, MONTHS[1]: february})
    run_period(data, policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    if refusal is not None:
        with pytest.raises(Refused, match=rf"isolate fewer than 5 people: of the cell ward B, {refusal}"):
            run_period(data, policy, MONTHS[1], place(tmp_path, MONTHS[1]))
        assert not (tmp_path / "out" / MONTHS[1]).exists()
        return
    made = run_period(data, policy, MONTHS[1], place(tmp_path, MONTHS[1]))
    assert any("people left a cell that both show" in step.sentence for step in made.certificate.steps)
    outcome = verify(tmp_path / "out" / MONTHS[1], policy=policy)
    assert outcome.passed, outcome.failure


def test_a_period_again_without_an_epsilon_is_compared_row_by_row_and_a_lost_list_is_said(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, **FORM)
    data = visits({MONTHS[0]: PANEL, MONTHS[1]: PANEL})
    run = run_period(data, policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    fewer = visits({MONTHS[0]: PANEL[1:]})
    with pytest.raises(Refused, match="the two differ by 1"):
        run_period(fewer, policy, MONTHS[0], place(tmp_path / "again", MONTHS[0]), RunTerms(again=True))
    (tmp_path / ".incrowd" / "internal" / run.certificate.id / "members.json").unlink()
    made = run_period(data, policy, MONTHS[1], place(tmp_path, MONTHS[1]))
    assert made.release is not None
    assert any("not compared with the people of release" in note for note in made.release.notes)


def test_people_are_compared_at_the_coarser_of_two_levels(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, **FORM)
    fine = Members({"ward": 0}, {("B",): frozenset("ab"), ("Ärzte",): frozenset("c")}, "key")
    top = policy.schema["ward"].hierarchy.height
    raised = fine.raised({"ward": top}, policy)
    assert list(raised.cells.values()) == [frozenset("abc")]


@pytest.mark.parametrize(
    ("dates", "changes", "message"),
    [
        (["31.01.2025", "2025-01-02"], {}, "column discharged: 1 cell is not a date"),
        (
            ["31.01.2025 12:00", "2025-01-02T00:00:00"],
            {"columns__discharged__type": "text", "period__zone": "Europe/Berlin"},
            "column discharged: 1 cell is not a moment in ISO 8601",
        ),
    ],
)
def test_dates_that_cannot_be_read_are_refused_before_the_charge(
    dates: list[str], changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    policy = policy_in(tmp_path, **changes)
    data = pa.table({"patient": ["p1", "p2"], "ward": ["B", "B"], "discharged": dates})
    with pytest.raises(SourceInvalid, match=message):
        run_period(data, policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    assert Series.of(policy).price() is None
    assert [period.state for period in Series.of(policy).status()] == [PeriodState.OPEN] * 4


@pytest.mark.parametrize("price", [{}, {"release": RUNNING}])
def test_two_datasets_of_the_same_people_have_series_of_different_names(tmp_path: Path, price: dict[str, Any]) -> None:
    first = policy_in(tmp_path, budget={"epsilon": 2, "delta": "1e-4"}, **price)
    other = {"dataset__name": "visits", "dataset__same_people_as": "stays", "budget": None, **price}
    run_period(rows(), first, MONTHS[0], place(tmp_path, MONTHS[0]))
    with pytest.raises(InvalidParameter, match=r"series periods is one of dataset stays, .* Nothing was charged"):
        run_period(rows(), policy_in(tmp_path, **other), MONTHS[0], place(tmp_path, "other"))
    named = policy_in(tmp_path, **other, period__series="monthly")
    assert run_period(rows(), named, MONTHS[0], place(tmp_path, "other")).new
    with pytest.raises(InvalidParameter, match="series periods is one of dataset stays"):
        Series.of(policy_in(tmp_path, **other))
    assert run_period(rows(), first, MONTHS[1], place(tmp_path, MONTHS[1])).new


def test_moments_of_a_zone_are_no_days(tmp_path: Path) -> None:
    """The last evening of January in Berlin would be in February by one file and in January by another."""
    evening = [datetime(2025, 1, 31, 23, 30, tzinfo=UTC)] * 3
    data = pa.table({"patient": ["p1", "p2", "p3"], "ward": ["B"] * 3, "discharged": evening})
    policy = policy_in(tmp_path)
    for zone in ("UTC", "Europe/Berlin"):
        stated = data.set_column(2, "discharged", data["discharged"].cast(pa.timestamp("us", zone)))
        with pytest.raises(SourceInvalid, match=f"depends on the zone {zone} of this file"):
            run_period(stated, policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    plain = data.set_column(2, "discharged", data["discharged"].cast(pa.timestamp("us")))
    (tmp_path / "parts").mkdir()
    for number, part in enumerate((plain, stated)):
        pq.write_table(part, tmp_path / "parts" / f"{number}.parquet")
    with pytest.raises(SourceInvalid, match="depends on the zone Europe/Berlin of this file"):
        run_period(tmp_path / "parts", policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    declared = policy_in(tmp_path, columns__discharged__type="text", period__zone="Europe/Berlin")
    assert run_period(data, declared, MONTHS[1], place(tmp_path, MONTHS[1])).new


def test_a_plan_says_for_how_many_periods_the_budget_is_enough(tmp_path: Path) -> None:
    lines = dict(outlook_of(policy_in(tmp_path, budget={"epsilon": "1/4"})).lines)
    assert lines["remaining now"] == "epsilon 0.25, delta 0: enough for 2 of 4 open periods"
    assert outlook_of(policy_in(tmp_path)).covered == 10
    assert "enough" not in dict(outlook_of(policy_in(tmp_path)).lines)["remaining now"]


def test_a_plan_counts_the_bound_on_all_periods_for_a_person_in_a_period(tmp_path: Path) -> None:
    unit = {"column": "patient", "max_rows": 2, "per": "period"}
    policy = policy_in(tmp_path, dataset__unit=unit, budget={"epsilon": "1/5", "total": {"epsilon": "3/10"}})
    outlook = outlook_of(policy)
    assert outlook.covered == 3
    assert dict(outlook.lines)["remaining now"].endswith("enough for 3 of 4 open periods")
    run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    assert outlook_of(policy).covered == 2
    wide = policy_in(tmp_path / "wide", dataset__unit=unit, budget={"epsilon": "1/5", "total": {"epsilon": 3}})
    left = dict(outlook_of(wide).lines)["left for other things"]
    assert left == "epsilon 0.1, delta 0 in each open period, once all periods are released"


def test_a_plan_says_what_all_periods_leave_and_where_a_window_has_no_room(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, budget={"epsilon": 1, "window": {"periods": 3, "epsilon": "1/4"}})
    lines = dict(outlook_of(policy).lines)
    assert lines["left for other things"] == "epsilon 0.6, delta 0, once all periods are released"
    assert lines["window"].startswith("room for 2 of any 3 periods in a row")
    run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    assert dict(outlook_of(policy).lines)["left for other things"].startswith("epsilon 0.6")
    assert outlook_of(policy_in(tmp_path / "other", budget={"epsilon": "1/4"})).after is None


def test_a_plan_expects_what_one_period_holds(tmp_path: Path) -> None:
    many = {
        "dataset__unit": {"column": "patient"},
        "budget": {"epsilon": 1, "delta": "1e-6"},
        "period__charge": "series",
    }
    plain = dict(outlook_of(policy_in(tmp_path, release=SAFE, **many)).lines)["expected output"]
    assert "add rows: N under dataset:" in plain
    told = dict(outlook_of(policy_in(tmp_path, release=SAFE, dataset__rows=4000, **many)).lines)["expected output"]
    assert told.startswith("of about 1,000 rows a period: 2 cells of 50 sampled rows each")
    models = {"method": "marginals", "epsilon": "1/10", "delta": "1e-7"}
    budget = {"epsilon": 1, "delta": "1e-6"}
    model = dict(outlook_of(policy_in(tmp_path, release=models, dataset__rows=4000, budget=budget)).lines)
    assert model["expected error"].startswith("of about 1,000 rows a period, noise misplaces about")


def test_a_series_goes_on_wherever_its_published_periods_are_and_refuses_an_empty_one_unless_forced(
    tmp_path: Path,
) -> None:
    run_period(rows(), policy_in(tmp_path), MONTHS[0], place(tmp_path, MONTHS[0]))
    (tmp_path / "out" / MONTHS[0]).rename(tmp_path / "archive")
    longer = policy_in(tmp_path, period__last="2025-05")
    made = list(run_series(rows(), longer, SeriesPlaces(tmp_path / "out", MONTHS[1])))
    assert [type(run) for run in made] == [PeriodStatus, SeriesRun]
    assert made[0] == next(period for period in Series.of(longer).status() if period.label == MONTHS[0])
    empty = {"dataset__unit": {"column": "patient"}, "release": SAFE, "dataset__rows": 40, "period__charge": "series"}
    other = policy_in(tmp_path / "other", budget={"epsilon": 1, "delta": "1e-6"}, **empty)
    few = rows(each=9)
    with pytest.raises(Refused, match="--force"):
        run_period(few, other, MONTHS[0], place(tmp_path / "other", MONTHS[0]))
    assert run_period(few, other, MONTHS[0], place(tmp_path / "other", MONTHS[0]), RunTerms(anyway=True)).new


def test_releases_priced_together_cost_what_the_whole_series_costs(tmp_path: Path) -> None:
    policy = policy_in(
        tmp_path,
        dataset__unit={"column": "patient", "max_rows": 1},
        period__charge="series",
        period__last="2025-12",
        release=SAFE,
        dataset__rows=4000,
        budget={"epsilon": 1, "delta": "1e-6"},
    )
    assert policy.method.k == 10  # type: ignore[attr-defined]  # month by month it would be 62
    made = [run_period(rows(each=800), policy, label, place(tmp_path, label)) for label in MONTHS[:2]]
    for run in made:
        assert run.certificate.accounting.total == run.certificate.accounting.spent
        assert Fraction(run.certificate.accounting.spent.epsilon) <= 1
        assert run.certificate.accounting.period is not None
        assert run.certificate.accounting.period.releases == 12
    outcome = verify(tmp_path / "out" / MONTHS[1], policy=policy)
    assert outcome.passed, outcome.failure
    lines = dict(outlook_of(policy).lines)
    assert "charged at the first period" in lines["somebody in all periods"]
    assert [period.alone for period in Series.of(policy).status()] == [None] * 12
    longer = replace(policy, hash="another version")
    assert outlook_of(longer).refusal is not None  # and not that the ledger allows the next release
    with pytest.raises(Refused, match="policy changed since series periods was charged"):
        run_period(rows(each=800), longer, MONTHS[2], place(tmp_path, MONTHS[2]))


BOUNDED = {
    "dataset__unit": {"column": "patient"},
    "dataset__rows": 4000,
    "period__charge": "series",
    "period__participations": 2,
    "release": SAFE,
    "budget": {"epsilon": 1, "delta": "1e-6"},
}


def read_by(monkeypatch: pytest.MonkeyPatch, policy: Policy) -> list[list[str]]:
    """Return the people whose rows each release reads, in the order of the releases."""
    read, original = list[list[str]](), type(policy.method).release  # type: ignore[attr-defined]

    def watched(self: Any, table: Any, coins: Any) -> Any:
        names = {name for batch in table.rows.batches(["patient"]) for name in batch["patient"].to_pylist()}
        read.append(sorted(names))
        return original(self, table, coins)

    monkeypatch.setattr(type(policy.method), "release", watched)
    return read


def test_somebody_takes_part_in_the_first_periods_that_were_priced_and_in_spare_runs_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = policy_in(tmp_path, period__spare=1, **BOUNDED)
    single = policy.method.k  # type: ignore[attr-defined]
    assert single < policy_in(tmp_path, **{**BOUNDED, "period__participations": 4}).method.k  # type: ignore[attr-defined]
    step = period_of(policy.plan.steps)
    assert step is not None
    assert step.composed == 3  # two periods, and the spare run
    read, always = read_by(monkeypatch, policy), [f"p{number}" for number in range(6)]
    data = visits({label: [*always, f"once {label}"] for label in MONTHS})
    for label in MONTHS[:3]:
        run_period(data, policy, label, place(tmp_path, label))
    assert read == [[f"once {label}", *always] for label in MONTHS[:2]] + [[f"once {MONTHS[2]}"]]
    run_period(data, policy, MONTHS[1], place(tmp_path / "again", MONTHS[1]), RunTerms(again=True))
    assert read[3] == read[1]  # the same period once more, which the spare run covers
    run = run_period(data, policy, MONTHS[3], place(tmp_path, MONTHS[3]))
    assert read[4] == [f"once {MONTHS[3]}"]
    outcome = verify(tmp_path / "out" / MONTHS[3], policy=policy, ledger=Series.of(policy).ledger)
    assert outcome.passed, outcome.failure
    page = (tmp_path / "out" / MONTHS[3] / "report.html").read_text(encoding="utf-8")
    assert "for somebody in 2 periods, the most that a person takes part in" in page
    assert "Somebody in 2 periods, the most that a person takes part in" in str(series_page(Series.of(policy)))
    assert "stays as secret as the rows" in page
    plain = run.certificate.to_json()
    (at,) = (at for at, one in enumerate(plain["steps"]) if one["step"] == "read one period")
    assert caught(refolded(placed(plain, ("steps", at, "participations"), 3))) == "accounting"


def test_periods_of_a_person_are_bounded_only_where_the_list_of_people_is_whole(tmp_path: Path) -> None:
    policy, data = policy_in(tmp_path, **BOUNDED), visits(dict.fromkeys(MONTHS, PANEL))
    first = run_period(data, policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    kept = tmp_path / ".incrowd" / "internal" / first.certificate.id / "cells.json"
    text = kept.read_text(encoding="utf-8")
    kept.write_text(text.replace(MONTHS[0], MONTHS[1]), encoding="utf-8")
    with pytest.raises(Refused, match="holds another period"):
        run_period(data, policy, MONTHS[1], place(tmp_path, MONTHS[1]))
    kept.unlink()
    with pytest.raises(Refused, match="later periods depend on them"):
        run_period(data, policy, MONTHS[1], place(tmp_path, MONTHS[1]))
    kept.write_text(text, encoding="utf-8")
    (tmp_path / "sources.json").unlink()
    with pytest.raises(Refused, match="under another key"):
        run_period(data, policy, MONTHS[1], place(tmp_path, MONTHS[1]))
    assert [len(period.releases) for period in Series.of(policy).status()] == [1, 0, 0, 0]
    for changes, message in (
        ({"period__charge": "period", "release": {**SAFE, "k": 10, "epsilon": None}}, "charge: series only"),
        ({"period__participations": 0}, "at least 1"),
        ({"release": RUNNING}, "below release"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            policy_in(tmp_path / "other", **{**BOUNDED, **changes}).plan  # noqa: B018 - making the plan refuses it


def test_running_counts_go_on_from_what_was_kept_and_refuse_what_is_gone(tmp_path: Path) -> None:
    policy = policy_in(
        tmp_path, dataset__unit={"column": "patient"}, release=RUNNING, budget={"epsilon": 1, "delta": "1e-6"}
    )
    runs = [run_period(rows(), policy, label, place(tmp_path, label)) for label in MONTHS[:2]]
    outcome = verify(tmp_path / "out" / MONTHS[1], policy=policy)
    assert outcome.passed, outcome.failure
    text = (tmp_path / "out" / MONTHS[1] / "data.csv").read_text(encoding="utf-8").splitlines()
    before = (tmp_path / "out" / MONTHS[0] / "data.csv").read_text(encoding="utf-8").splitlines()
    assert text[: len(before)] == before  # numbers that were published never change
    page = (tmp_path / "out" / MONTHS[1] / "report.html").read_text(encoding="utf-8")
    assert "identifies people; in each period, one row of each is used" in page
    kept = tmp_path / ".incrowd" / "internal" / runs[0].certificate.id / "cells.json"
    assert set(json.loads(kept.read_text())["running"]) == {
        "number",
        "label",
        "counts",
        "measured",
        "people",
        "mark",
    }
    kept.unlink()
    with pytest.raises(Refused, match="later periods depend on them"):
        run_period(rows(), policy, MONTHS[2], place(tmp_path, MONTHS[2]))
    ledger = Series.of(policy).ledger
    assert ledger is not None
    assert ledger.check().ok


def test_running_counts_go_forward_only(tmp_path: Path) -> None:
    policy = policy_in(
        tmp_path, dataset__unit={"column": "patient"}, release=RUNNING, budget={"epsilon": 1, "delta": "1e-6"}
    )
    run_period(rows(), policy, MONTHS[1], place(tmp_path, MONTHS[1]))
    with pytest.raises(Refused, match="go forward"):
        run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))


def test_nobody_is_counted_twice_by_periods_that_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_in(
        tmp_path, dataset__unit={"column": "patient"}, release=RUNNING, budget={"epsilon": 1, "delta": "1e-6"}
    )
    original, met = Continual.release, list[Any]()

    def release_during(self: Continual, running: Any, coins: Any) -> Any:
        if running.number == 1:
            with pytest.raises(Refused, match="is running now"):
                met.append(run_period(rows(), policy, MONTHS[1], place(tmp_path, MONTHS[1])))
        return original(self, running, coins)

    with monkeypatch.context() as patch:
        patch.setattr(Continual, "release", release_during)
        run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    assert met == []
    run_period(rows(), policy, MONTHS[1], place(tmp_path, MONTHS[1]))
    people = [
        set(json.loads(file.read_text())["running"]["people"])
        for file in (tmp_path / ".incrowd" / "internal").glob("*/cells.json")
    ]
    assert len(people) == 2
    assert not people[0] & people[1]  # everybody comes in both months, and participations is 1


def test_running_counts_refuse_a_new_key_under_which_nobody_is_known_again(tmp_path: Path) -> None:
    policy = policy_in(
        tmp_path, dataset__unit={"column": "patient"}, release=RUNNING, budget={"epsilon": 1, "delta": "1e-6"}
    )
    run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    (tmp_path / "sources.json").unlink()
    with pytest.raises(Refused, match="under another key"):
        run_period(rows(), policy, MONTHS[1], place(tmp_path, MONTHS[1]))


def test_running_counts_wait_until_a_finished_period_is_delivered_or_discarded(tmp_path: Path) -> None:
    """Discarded later, it would be missing: its people, counted in the next period already, could be counted again."""
    policy = policy_in(
        tmp_path, dataset__unit={"column": "patient"}, release=RUNNING, budget={"epsilon": 1, "delta": "1e-6"}
    )
    run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    hidden = tmp_path / "out" / f".{MONTHS[0]}.incrowd-0"  # as a kill between both renames leaves it
    hidden.mkdir()
    (tmp_path / "out" / MONTHS[0]).rename(hidden / "public")
    (hidden / "whole").touch()
    with pytest.raises(Refused, match=f"period {MONTHS[0]} is finished, and not in its place"):
        run_period(rows(), policy, MONTHS[1], place(tmp_path, MONTHS[1]))
    discard_hidden(policy, tmp_path / "out" / MONTHS[0])
    second = run_period(rows(), policy, MONTHS[1], place(tmp_path, MONTHS[1]))
    assert [period.state for period in Series.of(policy).status()][:2] == [PeriodState.MISSING, PeriodState.PUBLISHED]
    assert second.certificate.evidence["periods"] == 1


def test_a_forged_number_of_a_running_count_is_noticed(tmp_path: Path) -> None:
    from incrowd.methods.histograms.continual.method import CHECK
    from incrowd.methods.histograms.continual.running import RunningCounts
    from incrowd.verifier.judge import statement_of
    from incrowd.workflows.certificates import read_certificate

    policy = policy_in(
        tmp_path, dataset__unit={"column": "patient"}, release=RUNNING, budget={"epsilon": 1, "delta": "1e-6"}
    )
    for label in MONTHS[:2]:
        run_period(rows(), policy, label, place(tmp_path, label))
    statement = statement_of(read_certificate(tmp_path / "out" / MONTHS[1]))
    table = CHECK.reopen(statement, (tmp_path / "out" / MONTHS[1] / "data.csv",)).table
    assert CHECK.recount(statement, RunningCounts(table)) is None
    for name in ("measured", "count", "total", "window", "number", "count_within", "total_within", "window_within"):
        column = table[name].to_numpy().copy()
        column[-1] += 9 * 4096 if name == "measured" else 9
        forged = table.set_column(table.column_names.index(name), name, pa.array(column))
        assert CHECK.recount(statement, RunningCounts(forged)) is not None, name
    assert CHECK.recount(statement, RunningCounts(table.slice(1))) is not None


def test_a_certificate_of_a_series_cannot_praise_itself(tmp_path: Path) -> None:
    from incrowd.methods.histograms.continual.method import CHECK
    from incrowd.verifier.judge import statement_of
    from incrowd.workflows.certificates import certificate_of

    policy = policy_in(
        tmp_path, dataset__unit={"column": "patient"}, release=RUNNING, budget={"epsilon": 1, "delta": "1e-6"}
    )
    run = run_period(rows(), policy, MONTHS[1], place(tmp_path, MONTHS[1]))
    plain = run.certificate.to_json()
    require_all_caught(plain)
    noise = next(place for place, step in enumerate(plain["steps"]) if step["step"] == "noise over periods")
    for number in (("alone",), ("totals",), ("windows",), ("together", 0), ("together", 2)):
        assert caught(refolded(placed(plain, ("steps", noise, *number), 2))) == "steps", number
        stated = reduce(lambda part, key: part[key], number, plain["steps"][noise])
        assert caught(refolded(placed(plain, ("steps", noise, *number), stated - 1))) == "steps", number
    for amount in ("-Infinity", "-1", "Infinity"):
        endless = placed(plain, ("accounting", "spent", "delta"), amount)
        assert caught(placed(endless, ("accounting", "total", "delta"), amount)) == "accounting", amount
    with pytest.raises(InvalidParameter, match="added or removed"):
        refolded(placed(plain, ("guarantee", "unit", "adjacency"), "replace-one"))
    other = placed(plain, ("steps", 0, "label"), MONTHS[2])
    statement = statement_of(certificate_of(refolded(placed(other, ("accounting", "period", "label"), MONTHS[2]))))
    outcomes = CHECK.inspect(statement, (tmp_path / "out" / MONTHS[1] / "data.csv",))
    assert [outcome.about for outcome in outcomes if outcome.problem is not None] == ["cells in the file"]


def test_a_closed_series_releases_nothing_more(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    with pytest.raises(InvalidParameter, match="nothing to close"):
        close_series(policy, "owner", "the survey ended")
    run_period(rows(), policy, MONTHS[0], place(tmp_path, MONTHS[0]))
    close_series(policy, "owner", "the survey ended")
    with pytest.raises(Refused, match="is closed"):
        run_period(rows(), policy, MONTHS[1], place(tmp_path, MONTHS[1]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"period__zone": "Europe/Berlin"}, "have no time zone"),
        ({"period__zone": "Europe/Atlantis", "columns__discharged__type": "text"}, "no time zone"),
        ({"columns__discharged__type": "text"}, "write zone:"),
        ({"period__first": "2025-13"}, "written like 2025-03"),
        ({"period__first": "2025-05"}, "swap them"),
        ({"period__column": "admitted"}, "no column 'admitted'"),
        ({"dataset__unit": {}}, "name the person ID column"),
        ({"budget__total": {"epsilon": 1}}, "leave total out"),
        ({"period": None, "budget__window": {"periods": 3, "epsilon": 1}}, "for a table with period:"),
        ({"period": None, "release": RUNNING}, "add period:"),
        ({"dataset__unit__per": "period", "period__charge": "series"}, "takes part in one release"),
        ({"period__spare": 1}, "leave spare out"),
        ({"release": {**RUNNING, "periods": 7}}, "but there are 4"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_with_the_way_out(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        policy_in(tmp_path, **changes)


def test_other_roads_refuse_a_policy_with_periods(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    with pytest.raises(InvalidParameter, match="series run --period 2025-01"):
        release(rows(), policy)
    with pytest.raises(InvalidParameter, match="series run"):
        release_to(rows(), policy, place(tmp_path, "x"))
    with pytest.raises(InvalidParameter, match="outside the policy's periods"):
        run_period(rows(), policy, "2026-01", place(tmp_path, "2026-01"))
    assert not (tmp_path / "ledger.sqlite").exists()
