"""A coarser table comes from the released file alone, costs nothing, and is computed again by whoever verifies."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.steps.step import fold
from incrowd.errors import InvalidParameter, Refused
from incrowd.verifier.check import Certified, Verdict, in_order
from incrowd.workflows.certificates import certificate_of, read_certificate
from incrowd.workflows.coarsen.check import compare_parent
from incrowd.workflows.coarsen.method import NAME, Coarser, coarsen
from incrowd.workflows.coarsen.steps import Parent
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.contract.forging import fitting, require_all_caught
from tests.policies import PEOPLE, changed, people, tuples, written
from tests.released import Folder, failed, rehash, release_into

TABLE = {"method": "blended-histogram", "columns": ["sex", "age"], "levels": {"age": 1}, "k": 20, "noise_epsilon": 1}

SUPPRESSED = {"method": "suppressed-histogram", "columns": ["sex", "age"], "levels": {"age": 1}, "rate": 1, "k": 20}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = tmp_path_factory.mktemp("rows")
    policy = written(changed(PEOPLE, release__levels={"age": 1, "zip": 1}), folder)
    release_to(people(6000), policy, Destination(folder / "out", "csv"))
    return Folder(folder)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    folder = tmp_path_factory.mktemp("counts")
    policy = written(changed(PEOPLE, release=TABLE, budget={"unbounded": "an old rule"}), folder)
    release_to(people(), policy, Destination(folder / "out", "csv"))
    return Folder(folder)


def make(folder: Folder, out: Path, **wanted: Any) -> dict[str, Any]:
    policy = load_policy(folder.path / "policy.yaml")
    return coarsen(folder.out, policy, Coarser(**wanted), out).certificate.to_json()


def test_rows_rise_to_higher_levels_as_if_they_had_been_released_there(made: Folder, tmp_path: Path) -> None:
    make(made, tmp_path / "c", levels={"age": 2})
    before, after = csv.read_csv(made.out / "data.csv"), csv.read_csv(tmp_path / "c" / "data.csv")
    young = {"< 10", *(f"[{low}, {low + 10})" for low in range(10, 50, 10))}
    ages = ["< 50" if age in young else ">= 50" for age in before["age"].to_pylist()]
    assert tuples(before.set_column(1, "age", pa.array(ages))) == tuples(after)


def test_columns_can_be_left_out_and_open_levels_can_rise_to_the_top(made: Folder, tmp_path: Path) -> None:
    make(made, tmp_path / "c", columns=("sex", "zip"), levels={"zip": 2})
    after = csv.read_csv(tmp_path / "c" / "data.csv")
    assert after.column_names == ["sex", "zip"]
    assert set(after["zip"].to_pylist()) == {"*"}


def test_counts_are_added_up(counted: Folder, tmp_path: Path) -> None:
    make(counted, tmp_path / "c", columns=("sex",))
    before, after = csv.read_csv(counted.out / "data.csv"), csv.read_csv(tmp_path / "c" / "data.csv")
    summed = before.group_by("sex").aggregate([("count", "sum")])
    assert dict(zip(*after.to_pydict().values(), strict=True)) == dict(
        zip(summed["sex"].to_pylist(), summed["count_sum"].to_pylist(), strict=True)
    )


@pytest.mark.parametrize("which", ["made", "counted"])
def test_everything_is_verified_against_the_parent_and_the_ledger(
    which: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder: Folder = request.getfixturevalue(which)
    make(folder, tmp_path / "c", levels={"age": 2})
    found = verify(tmp_path / "c", ledger=Ledger.open(folder.ledger), parent=folder.out)
    assert found.passed
    assert found.complete
    outcomes = {finding.about: finding.verdict for finding in found.findings}
    assert outcomes["parent"] is outcomes["ledger"] is Verdict.PASSED
    assert "Make coarser" in (tmp_path / "c" / "report.html").read_text()


def test_nothing_is_charged_and_no_guarantee_changes(made: Folder, tmp_path: Path) -> None:
    before = list(Ledger.open(made.ledger).entries())
    child = make(made, tmp_path / "c", columns=("sex",))
    assert list(Ledger.open(made.ledger).entries()) == before
    parent = made.certificate
    for name in ("guarantee", "accounting", "ledger", "dataset"):
        assert child[name] == parent[name]
    held = child["steps"][0]
    assert (held["id"], held["method"]) == (parent["id"], "safe")
    assert held["digest"] == certificate_of(parent).digest()
    assert [step["step"] for step in held["steps"]] == [step["step"] for step in parent["steps"]]
    anonymous = next(claim for claim in child["claims"] if claim["kind"] == "k-anonymity")
    assert anonymous["parameters"]["columns"] == ["sex"]


def test_a_coarser_table_of_a_coarser_table_is_one_too(made: Folder, tmp_path: Path) -> None:
    make(made, tmp_path / "one", levels={"age": 2})
    policy = load_policy(made.path / "policy.yaml")
    last = coarsen(tmp_path / "one", policy, Coarser({"age": 3}, ("age", "sex")), tmp_path / "two").certificate
    assert {each["column"]: each["level"] for each in last.to_json()["steps"][-1]["columns"]} == {"sex": 0, "age": 3}
    found = verify(tmp_path / "two", ledger=Ledger.open(made.ledger), parent=tmp_path / "one")
    assert found.passed
    assert failed(verify(tmp_path / "two", parent=made.out))  # that is the grandparent


def test_weights_stay_what_they_are(tmp_path: Path) -> None:
    weighted = release_into(tmp_path / "w", release__weights=True)
    make(weighted, tmp_path / "c", columns=("sex",))
    assert set(csv.read_csv(tmp_path / "c" / "data.csv")["weight"].to_pylist()) == {2.0}
    assert verify(tmp_path / "c", parent=weighted.out).passed


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    policy = written(
        changed(PEOPLE, release={"method": "safe", "rate": 1, "k": 1, "levels": {"zip": 1}}, budget={"unbounded": "x"}),
        tmp_path,
    )
    release_to(people(), policy, Destination(tmp_path / "out"))
    coarsen(tmp_path / "out", load_policy(policy), Coarser(columns=("sex", "age")), tmp_path / "c")
    assert pa.types.is_integer(parquet.read_schema(tmp_path / "c" / "data.parquet").field("age").type)
    assert verify(tmp_path / "c", parent=tmp_path / "out").passed


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Coarser({"age": 0}), "a finer table would need rows"),
        (Coarser({"age": 9}), "can rise to 3"),
        (Coarser({"name": 1}), "was not released"),
        (Coarser({}, ("name",)), "was not released"),
        (Coarser({"age": 2}, ("sex",)), "does not name"),
        (Coarser(), "nothing would change"),
        (Coarser({"age": 1}), "nothing would change"),
    ],
)
def test_what_would_need_rows_is_refused(made: Folder, tmp_path: Path, wanted: Coarser, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        coarsen(made.out, load_policy(made.path / "policy.yaml"), wanted, tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_another_policy_or_another_file_is_refused(made: Folder, tmp_path: Path) -> None:
    other = load_policy(changed(PEOPLE, release__levels={"age": 2, "zip": 1}))
    with pytest.raises(InvalidParameter, match="not the policy"):
        coarsen(made.out, other, Coarser(columns=("sex",)), tmp_path / "c")
    copy = made.copied(tmp_path / "copy")
    with (copy.out / "data.csv").open("a") as file:
        file.write("F,other,02*\n")
    with pytest.raises(Refused, match="SHA-256"):
        make(copy, tmp_path / "c", columns=("sex",))
    (copy.out / "data.csv").unlink()
    with pytest.raises(InvalidParameter, match="is not there"):
        make(copy, tmp_path / "c", columns=("sex",))


@pytest.fixture
def child(made: Folder, tmp_path: Path) -> Folder:
    make(made, tmp_path / "child" / "out", levels={"age": 2})
    return Folder(tmp_path / "child")


def test_a_child_with_other_rows_fails_beside_its_parent(made: Folder, child: Folder) -> None:
    file = child.out / "data.csv"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, lines[-1]]))
    content = file.read_bytes()
    hashed = {"name": "data.csv", "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    child.tamper(("outputs",), lambda _: [hashed])
    assert "parent" in failed(verify(child.out, parent=made.out))
    alone = {finding.about: finding.verdict for finding in verify(child.out).findings}
    assert alone["parent"] is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("guarantee", "delta"), "1/1000000000"),
        (("accounting", "spent", "epsilon"), "0.1"),
        (("steps", 0, "steps", 1, "columns"), []),
        (("steps", 0, "steps", 2, "k"), 1),
        (("steps", 0, "method"), "scheme"),
        (("steps", 0, "method"), "question"),
        (("steps", -1, "columns"), []),
        (("claims", 0, "parameters", "epsilon"), "0.1"),
        (("claims",), []),
        (("steps", 0, "steps", 0, "rate"), "1/3"),
    ],
)
def test_a_child_that_tells_another_story_than_its_parent_fails(
    child: Folder, place: tuple[str | int, ...], value: object
) -> None:
    child.tamper(place, lambda _: value)
    (child.out / "certificate.json").write_text(json.dumps(fitting(child.certificate)))
    try:
        assert failed(verify(child.out))
    except InvalidParameter:
        assert place[0] == "steps"


def test_a_certificate_whose_parent_cannot_be_read_is_no_certificate(child: Folder) -> None:
    child.tamper(("steps", 0, "steps"), lambda _: "those of the parent")
    with pytest.raises(InvalidParameter):
        verify(child.out)


def test_a_parent_that_is_not_the_parent_fails(made: Folder, child: Folder, tmp_path: Path) -> None:
    assert failed(verify(made.out, parent=child.out)) == ["parent"]
    copy = made.copied(tmp_path / "copy")
    shutil.copy(child.out / "data.csv", copy.out / "data.csv")
    assert "parent" in failed(verify(child.out, parent=copy.out))


def forged_parent(folder: Folder, place: Path) -> Folder:
    """Return a copy of released counts in which the first count is 1, below any crowd, with fitting hashes."""
    forged = folder.copied(place)
    file = forged.out / "data.csv"
    header, first, *others = file.read_text().splitlines()
    cells = dict(zip(header.split(","), first.split(","), strict=True)) | {"count": "1"}
    file.write_text("\n".join([header, ",".join(cells.values()), *others, ""]))
    rehash(forged.out, "data.csv")
    return forged


def test_a_parent_is_verified_before_its_child_is(tmp_path: Path) -> None:
    """A child of a forged parent agrees with it to the last count."""
    policy = written(changed(PEOPLE, release=SUPPRESSED, budget={"unbounded": "an old rule"}), tmp_path)
    release_to(people(), policy, Destination(tmp_path / "out", "csv"))
    honest = Folder(tmp_path)
    make(honest, tmp_path / "c", columns=("sex",))
    assert verify(tmp_path / "c", parent=honest.out).passed
    forged = forged_parent(honest, tmp_path.parent / f"{tmp_path.name}-forged")
    parent = read_certificate(forged.out)
    child = Folder(tmp_path / "of-forged")
    shutil.copytree(tmp_path / "c", child.out)
    table = csv.read_csv(forged.out / "data.csv").group_by("sex").aggregate([("count", "sum")]).to_pydict()
    rows = sorted(zip(table["sex"], table["count_sum"], strict=True))
    (child.out / "data.csv").write_text("sex,count\n" + "".join(f"{sex},{count}\n" for sex, count in rows))
    child.tamper(("steps", 0, "digest"), lambda _: parent.digest())
    child.tamper(("steps", 0, "id"), lambda _: parent.id)
    rehash(child.out, "data.csv")
    made = certificate_of(child.certificate)
    files = (child.out / "data.csv",), (forged.out / "data.csv",)
    own, before = files
    assert compare_parent(Certified(made, own), Certified(parent, before)) is None
    found = verify(child.out, parent=forged.out)
    why = next(each.why for each in found.findings if each.about == "parent")
    assert "parent" in failed(found)
    assert why.startswith("the parent does not verify")


def test_a_refusal_to_coarsen_a_forged_release_does_not_blame_the_software(tmp_path: Path) -> None:
    policy = written(changed(PEOPLE, release=SUPPRESSED, budget={"unbounded": "an old rule"}), tmp_path)
    release_to(people(), policy, Destination(tmp_path / "out", "csv"))
    forged = forged_parent(Folder(tmp_path), tmp_path.parent / f"{tmp_path.name}-forged")
    with pytest.raises(Refused, match="does not verify") as refused:
        make(forged, tmp_path / "c", columns=("sex",))
    assert "fault in the software" not in str(refused.value)
    assert "report" not in str(refused.value)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
def test_a_single_column_with_missing_values_can_be_left(form: str, tmp_path: Path) -> None:
    release = {"method": "safe", "rate": 1, "k": 3, "levels": {"zip": 1, "age": 1}}
    policy = written(changed(PEOPLE, release=release, budget={"unbounded": "an old rule"}), tmp_path)
    rows = people(3000)
    gaps = pa.array([None] * 50 + rows["zip"].to_pylist()[50:])
    release_to(
        rows.set_column(rows.column_names.index("zip"), "zip", gaps), policy, Destination(tmp_path / "out", form)
    )
    coarsen(tmp_path / "out", load_policy(policy), Coarser(columns=("zip",)), tmp_path / "c")
    assert verify(tmp_path / "c", parent=tmp_path / "out").passed


def test_labels_of_the_parent_stand_in_the_child_s_certificate(child: Folder) -> None:
    told = json.loads((child.out / "certificate.json").read_text())["steps"][-1]["columns"]
    ages = next(dict(column["labels"]) for column in told if column["column"] == "age")
    assert (ages["< 10"], ages["[80, 90)"]) == ("< 50", ">= 50")
    assert "labels" not in next(column for column in told if column["column"] == "sex")


@pytest.mark.parametrize("which", ["made", "counted"])
def test_what_a_coarser_table_says_cannot_be_changed_anywhere(
    which: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Guarantee, claims and limits leaf by leaf; a change of a step leaves what is guaranteed and claimed as it is."""
    plain = make(request.getfixturevalue(which), tmp_path / "c", levels={"age": 2})
    require_all_caught(plain)


def test_steps_and_claims_of_a_coarser_table_are_read_back_as_they_were_written(made: Folder, tmp_path: Path) -> None:
    make(made, tmp_path / "one", levels={"age": 2})
    policy = load_policy(made.path / "policy.yaml")
    last = coarsen(tmp_path / "one", policy, Coarser({"age": 3}, ("age", "sex")), tmp_path / "two").certificate
    assert certificate_of(last.to_json()) == last
    assert in_order(last.steps, check_of(NAME).order)
    (parent, _), grandparent = last.steps, certificate_of(made.certificate)
    assert isinstance(parent, Parent)
    assert (parent.charged.id, parent.charged.digest) == (grandparent.id, grandparent.digest())
    assert fold(last.steps, last.guarantee.unit, last.guarantee.delta) == grandparent.guarantee


def test_a_policy_plans_the_parent_and_leaves_a_coarser_table_undecided(made: Folder, child: Folder) -> None:
    policy = load_policy(made.path / "policy.yaml")
    found = verify(child.out, policy=policy)
    assert found.passed
    assert found.complete
    assert {each.about: each.verdict for each in found.findings}["policy"] is Verdict.UNKNOWN
    assert {each.about: each.verdict for each in verify(made.out, policy=policy).findings}["policy"] is Verdict.PASSED
