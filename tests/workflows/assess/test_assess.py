from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, UnknownColumn
from incrowd.workflows.assess.assess import THRESHOLD, Assessment, assess
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.policies import PEOPLE, changed, people, with_ledger, written
from tests.statistics.alarm import FALSE_ALARM, stray
from tests.tables import Batches

AGE = load_policy(PEOPLE).schema["age"].hierarchy


def recoded(row: dict[str, str | None]) -> tuple[str | None, ...]:
    """A person at the levels of PEOPLE, the slow way."""
    age, zip_ = row["age"], row["zip"]
    half = None if age is None else AGE.generalize(age, 2)
    return row["sex"], half, None if zip_ is None else zip_[:2]


def released(table: pa.Table, kept: list[int]) -> pa.Table:
    tuples = [recoded(row) for row in table.take(pa.array(kept, pa.int64())).to_pylist()]
    return pa.table(
        {name: pa.array([each[i] for each in tuples], pa.string()) for i, name in enumerate(("sex", "age", "zip"))}
    )


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return load_policy(with_ledger(PEOPLE, tmp_path_factory.mktemp("ledger")))


person = st.fixed_dictionaries(
    {
        "sex": st.sampled_from(("F", "M", None)),
        "age": st.sampled_from(("1", "2", "51", "98", None)),
        "zip": st.sampled_from(("0213", "0214", "9430", None)),
    }
)


@settings(deadline=None, max_examples=20)
@given(st.lists(person, min_size=1, max_size=30), st.data())
def test_risks_are_what_guessing_row_by_row_gives(policy: Policy, table: list[Any], data: st.DataObject) -> None:
    original = pa.Table.from_pylist(table, pa.schema([(name, pa.string()) for name in ("sex", "age", "zip")]))
    kept = data.draw(st.lists(st.integers(0, len(table) - 1), unique=True))
    found = assess(open_source(released(original, kept)), Batches(original, 7), policy)
    assert (found.rows, found.released) == (len(table), len(kept))
    plain = [(row["sex"], row["age"], row["zip"]) for row in table]
    _same(found, "prosecutor", 0, plain, plain)
    out = [recoded(table[place]) for place in kept]
    _same(found, "prosecutor", 1, out, out)
    _same(found, "journalist", 1, out, [recoded(row) for row in table])


def _same(found: Assessment, name: str, place: int, rows: list[Any], crowd: list[Any]) -> None:
    sizes = Counter(crowd)
    each = [1 / sizes[row] for row in rows] or [0.0]
    risk = found.risks[name][place]
    assert risk.highest == max(each)
    assert risk.average == pytest.approx(sum(each) / len(each))
    assert risk.above == pytest.approx(sum(one > THRESHOLD for one in each) / len(each))


def test_loss_is_the_share_of_values_a_label_stands_for(policy: Policy) -> None:
    original = pa.table({"sex": ["F", "M", "F", "M"], "age": ["1", "2", "60", None], "zip": ["021", "022", "02", "94"]})
    found = assess(open_source(released(original, [0, 1, 3])), open_source(original), policy)
    sex, age, zips = found.columns
    assert (sex.released, sex.all) == (0.0, 0.25)
    assert age.released == pytest.approx(2 / 3 * 49 / 99)  # of 100 ages a half each; the missing one stays missing
    assert age.all == pytest.approx((2 * 49 / 99 + 1) / 4)
    # Of four zips that occur, three begin with 02: (3 - 1) / (4 - 1); 94 stands for itself.
    assert zips.released == pytest.approx((2 / 3 + 2 / 3) / 3)
    assert found.loss == pytest.approx(sum(each.all or 0.0 for each in (sex, age, zips)) / 3)


def test_classes_before_are_those_of_the_rows_as_they_are(policy: Policy) -> None:
    original = pa.table({"sex": ["F", "F"], "age": ["5", "05"], "zip": ["021", "021"]})
    found = assess(open_source(released(original, [0, 1])), open_source(original), policy)
    assert found.classes_before.smallest == 1
    assert found.classes_after is not None
    assert found.classes_after.smallest == 2
    assert found.to_json()["classes"]["after"]["discernibility"] == 4


def test_one_record_is_worked_through(policy: Policy) -> None:
    original = pa.table({"sex": ["F", "F", "M"], "age": ["1", "2", "3"], "zip": ["021", "021", None]})
    example = assess(open_source(released(original, [0, 2])), open_source(original), policy).example
    assert example is not None
    assert (example.released, example.original) in ((1, 2), (1, 1))
    assert f"1/{example.original}" in example.words


def test_an_empty_release_has_no_risk_and_lost_everything(policy: Policy) -> None:
    original = people(50)
    found = assess(open_source(released(original, [])), open_source(original), policy)
    assert (found.released, found.loss, found.example) == (0, 1.0, None)
    assert found.risks["prosecutor"][1].highest == 0.0
    assert found.to_json()["classes"]["after"]["smallest"] is None


@pytest.mark.parametrize("form", ["parquet", "csv", "tsv"])
def test_a_real_release_can_be_assessed_in_every_format(tmp_path: Path, form: str) -> None:
    plain = changed(
        PEOPLE,
        columns__paid={
            "role": "sensitive",
            "type": "decimal",
            "bounds": [0, 4],
            "outside": "bound",
            "hierarchy": {"intervals": [2]},
        },
        columns__born={"type": "date", "bounds": ["2000-01-01", "2000-12-31"], "hierarchy": {"dates": ["month"]}},
        columns__well={"type": "boolean"},
        release__levels={"age": 3, "zip": 1, "paid": 0, "born": 2},
    )
    table = people(4000)
    table = table.append_column("paid", pa.array([str(number % 3 * 0.5) for number in range(4000)]))
    table = table.append_column("born", pa.array([f"2000-{number % 12 + 1:02d}-05" for number in range(4000)]))
    table = table.append_column("well", pa.array(["yes" if number % 2 else "no" for number in range(4000)]))
    policy = load_policy(written(with_ledger(plain, tmp_path), tmp_path))
    release_to(table, policy, Destination(tmp_path / "out", form))
    found = assess(open_source(tmp_path / "out" / f"data.{form}"), open_source(table), policy)
    assert 1300 < found.released < 2500
    assert stray([(4000, 0.5)], 1301 + 24 * 20, 2499) < FALSE_ALARM  # of 24 tuples at most 20 rows each are lost
    losses = {column.name: column.released for column in found.columns}
    assert losses["paid"] == losses["well"] == losses["sex"] == 0.0
    assert losses["age"] == losses["born"] == 1.0
    assert found.risks["journalist"][1].highest <= found.risks["prosecutor"][1].highest < 0.05


def test_a_release_of_something_else_is_refused(policy: Policy) -> None:
    original = people(100)
    other = pa.table({"sex": ["F"], "age": [AGE.generalize("1", 2)], "zip": ["77"]})
    with pytest.raises(InvalidParameter, match="made from other data"):
        assess(open_source(other), open_source(original), policy)
    twice = released(pa.concat_tables([original.slice(0, 1)] * 90), list(range(90)))
    with pytest.raises(InvalidParameter, match="made from other data"):
        assess(open_source(twice), open_source(original), policy)


def test_a_column_that_the_release_lacks_is_named(policy: Policy) -> None:
    with pytest.raises(UnknownColumn, match="zip"):
        assess(open_source(people(9).drop_columns(["zip"])), open_source(people(9)), policy)


def test_the_plain_form_defines_every_attacker(policy: Policy) -> None:
    plain = assess(open_source(released(people(60), list(range(30)))), open_source(people(60)), policy).to_json()
    assert set(plain["attackers"]) == {"prosecutor", "journalist", "marketer"}
    assert all(attacker["means"] for attacker in plain["attackers"].values())
    assert "keep it apart" in plain["internal"]
