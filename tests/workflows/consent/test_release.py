"""A purpose gates rows by consent before everything else, and the certificate says so without telling who."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.steps.around import CONSENTERS, IN_THE_TABLE, MOVED, OWN_DECISION, ConsentGate, gate_of
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, LedgerUnavailable, Refused
from incrowd.governance.consent.event import Decided
from incrowd.governance.consent.registry import Registry, RegistrySnapshot
from incrowd.verifier.check import Verdict
from incrowd.workflows.coarsen.method import Coarser, coarsen
from incrowd.workflows.consent.snapshot import admit
from incrowd.workflows.plan.forecast import plan
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination, PublishedRelease
from incrowd.workflows.release.outsiders import divided
from incrowd.workflows.release.perform import ChargeTarget, performing
from incrowd.workflows.release.tables import ReleaseTerms, release, release_to
from incrowd.workflows.verify.verify import verify
from tests.consents import FORM, GATED, PURPOSE, Consented, consented, known_people
from tests.policies import PEOPLE, changed, tuples
from tests.postgres_tables import load

ROWS = known_people()
HALF = [f"p{number}" for number in range(0, 600, 2)]


def out(made: Consented, name: str = "out", rows: pa.Table = ROWS, **terms: Any) -> PublishedRelease:
    folder = made.policy.folder.parent / "out"
    folder.mkdir(exist_ok=True)
    return release_to(rows, made.policy, Destination(folder / name, "csv"), None, ReleaseTerms(**terms))


def released(published: PublishedRelease) -> pa.Table:
    return published.release.result.to_arrow()


def only(ids: list[str]) -> pa.Table:
    wanted = set(ids)
    return ROWS.filter(pa.array([each in wanted for each in ROWS["id"].to_pylist()]))


def ungated(tmp_path: Path, rows: pa.Table) -> pa.Table:
    plain = changed(FORM, purpose=None, consent=None, ledger=f"sqlite:///{tmp_path}/other.sqlite")
    found: pa.Table = release(rows, plain).result.to_arrow()
    return found


def test_what_is_released_is_what_a_table_of_those_who_consented_releases(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, HALF)
    assert tuples(released(out(made))) == tuples(ungated(tmp_path, only(HALF)))


def test_the_certificate_tells_purpose_time_and_mark_and_verifies(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, HALF)
    published = out(made)
    certificate = published.release.certificate
    gate = gate_of(certificate.steps)
    assert gate is not None
    assert gate.settled
    assert (gate.purpose, gate.as_of) == (PURPOSE, None)
    assert made.registry.holds(RegistrySnapshot(gate.nonce or "", gate.mark or ""))
    text = (published.folder / "certificate.json").read_text()
    head = made.registry.chain.head()
    assert head.hash not in text
    assert head.chain not in text
    assert "is not a secret sample and reduces no privacy loss" in gate.sentence
    assert str(len(HALF)) not in gate.sentence
    found = verify(published.folder, policy=made.policy, ledger=Ledger.open(made.policy.ledger_address))
    assert [each for each in found.findings if each.verdict is Verdict.FAILED] == []


def test_claims_say_what_consent_needs_and_leaves_open(tmp_path: Path) -> None:
    private = load_policy(changed(GATED, consent__key="k", consent__registry="r")).plan.claims
    form = load_policy(changed(FORM, consent__key="k", consent__registry="r")).plan.claims
    assert all(CONSENTERS in claim.not_protected for claim in (*private, *form))
    assert OWN_DECISION in [each.term for each in private[0].preconditions]
    assert all({IN_THE_TABLE, MOVED} <= set(claim.not_protected) for claim in form)
    assert MOVED not in private[0].not_protected


def test_opting_in_earns_nothing(tmp_path: Path) -> None:
    bare = load_policy(changed(GATED, purpose=None, consent=None)).plan
    gated = load_policy(GATED).plan
    assert gated.guarantee == bare.guarantee
    assert gated.numbers == bare.numbers


def test_replacing_people_or_protecting_rows_is_refused_with_a_gate() -> None:
    with pytest.raises(InvalidParameter, match="number of those who consent would have to be public"):
        load_policy(changed(GATED, dataset__unit__adjacency="replace-one"))
    with pytest.raises(InvalidParameter, match="name the person ID column"):
        load_policy(changed(GATED, dataset__unit=None))


def test_a_purpose_needs_a_registry_and_a_registry_a_purpose() -> None:
    with pytest.raises(Refused, match="does not say where consent is recorded"):
        load_policy(changed(PEOPLE, purpose="research"))
    with pytest.raises(InvalidParameter, match="consent: needs purpose:"):
        load_policy(changed(GATED, purpose=None))
    with pytest.raises(InvalidParameter, match="separated by slashes"):
        load_policy(changed(GATED, purpose="//"))


def test_nothing_is_released_or_charged_without_the_registry_or_its_key(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, HALF)
    (tmp_path / "key" / "consent.key").rename(tmp_path / "key" / "gone")
    with pytest.raises(InvalidParameter, match="key of the consent registry"):
        out(made)
    (tmp_path / "key" / "gone").rename(tmp_path / "key" / "consent.key")
    (tmp_path / "registry" / "consent.sqlite").unlink()
    with pytest.raises(LedgerUnavailable, match="no consent is in force"):
        out(made)
    assert not (tmp_path / "data" / ".incrowd" / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    "place",
    [{"registry": "consent.sqlite"}, {"key": "key"}, {"key": "../registry/key"}, {"registry": "../key/x.sqlite"}],
)
def test_data_registry_and_key_lie_in_three_places(tmp_path: Path, place: dict[str, str]) -> None:
    made = consented(GATED, tmp_path, HALF)
    told = changed(GATED, **{f"consent__{name}": value for name, value in place.items()})
    policy = replace(load_policy(told), folder=made.policy.folder, source=str(made.policy.folder / "people.csv"))
    for name in ("data", "registry", "key"):
        (tmp_path / name / "key").write_bytes(bytes(32))
    with pytest.raises(Refused, match="in the same folder"):
        release(None, policy)


def test_a_plan_whose_gate_was_never_read_is_not_performed(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, HALF)
    ledger = Ledger.create(f"sqlite:///{tmp_path}/ledger.sqlite")
    with (
        pytest.raises(Refused, match="consent registry was not read"),
        performing(made.policy.plan, None, ledger, ChargeTarget("people", "x")),
    ):
        pytest.fail("it was performed")


def test_a_withdrawal_changes_the_next_release_and_never_the_past_one(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, HALF)
    first = out(made, "first")
    before = {file.name: file.read_bytes() for file in first.folder.iterdir()}
    leaving = next(HALF[:size] for size in range(90, 300) if _crowds(HALF[:size]))
    made.decide(Decided.WITHDRAW, leaving)
    second = out(made, "second")
    assert tuples(released(second)) == tuples(ungated(tmp_path, only(HALF[len(leaving) :])))
    assert {file.name: file.read_bytes() for file in first.folder.iterdir()} == before


def _crowds(ids: list[str]) -> bool:
    cells = only(ids)
    pairs = zip(cells["sex"].to_pylist(), cells["age"].to_pylist(), cells["zip"].to_pylist(), strict=True)
    counts: dict[Any, int] = {}
    for sex, age, zipped in pairs:
        cell = (sex, int(age) < 50, zipped[:2])
        counts[cell] = counts.get(cell, 0) + 1
    return min(counts.values()) >= 10


def test_k_is_counted_after_the_gate(tmp_path: Path) -> None:
    # five people of a class consent, which has hundreds of rows: fewer than k, so none of them is released
    women = [row["id"] for row in ROWS.to_pylist() if row["sex"] == "F" and int(row["age"]) < 50][:5]
    men = [row["id"] for row in ROWS.to_pylist() if row["sex"] == "M"]
    made = consented(changed(FORM, release__suppression="1/10"), tmp_path, [*women, *men])
    assert {row["sex"] for row in released(out(made)).to_pylist()} == {"M"}


def test_what_people_who_did_not_consent_wrote_stops_nothing(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, HALF)
    ages = ROWS["age"].to_pylist()
    spoiled = [age if number % 2 == 0 else "none" for number, age in enumerate(ages)]
    rows = ROWS.set_column(ROWS.column_names.index("age"), "age", pa.array(spoiled))
    assert tuples(released(out(made, rows=rows))) == tuples(ungated(tmp_path, only(HALF)))


def test_as_of_a_declared_time_only_those_take_part_who_consented_then_and_still_do(tmp_path: Path) -> None:
    plain = changed(FORM, consent__as_of="2026-06-01")
    made = consented(plain, tmp_path, HALF)
    made.decide(Decided.GIVE, [f"p{number}" for number in range(1, 600, 2)], at="2026-07-01T00:00:00.000000Z")
    first = out(made, "first")
    assert tuples(released(first)) == tuples(ungated(tmp_path, only(HALF)))
    gate = gate_of(first.release.certificate.steps)
    assert gate is not None
    assert gate.as_of == "2026-06-01T00:00:00.000000Z"
    made.decide(Decided.WITHDRAW, HALF)
    assert released(out(made, "second")).num_rows == 0
    with pytest.raises(InvalidParameter, match="is in the future"):
        release(ROWS, replace(made.policy, section=load_policy(changed(plain, consent__as_of="2999-01-01")).section))


def test_people_are_held_out_of_those_who_consented(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, HALF)
    published = out(made, hold_out=Fraction(1, 10))
    made.decide(Decided.WITHDRAW, HALF)
    parts = divided(open_source(ROWS), made.policy, published.release.certificate)
    assert sum(batch.num_rows for part in parts for batch in part.batches(["id"])) == len(HALF)
    assert [step.kind for step in published.release.certificate.steps[:2]] == ["consent", "hold out"]
    found = verify(published.folder, policy=made.policy)
    assert [each for each in found.findings if each.verdict is Verdict.FAILED] == []


def test_a_plan_tells_of_the_gate_and_a_forged_gate_is_found(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, HALF)
    assert isinstance(plan(made.policy).policy.plan.steps[0], ConsentGate)
    assert "was not in force at the run" in plan(made.policy)._repr_html_()
    published = out(made)
    file = published.folder / "certificate.json"
    whole = json.loads(file.read_text())
    for change in ({"purpose": "sales"}, {"run": "2020-01-01T00:00:00.000000Z"}, {"mark": "0" * 64}):
        step = whole["steps"][0] | change
        file.write_text(json.dumps(whole | {"steps": [step, *whole["steps"][1:]]}))
        try:
            found = verify(published.folder, policy=made.policy)
        except InvalidParameter:
            continue
        assert found.failure is not None
    bare = whole | {"steps": whole["steps"][1:]}
    file.write_text(json.dumps(bare))
    assert verify(published.folder, policy=made.policy).failure is not None


def test_a_decision_that_begins_or_ends_later_counts_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = consented(GATED, tmp_path, ["p0", "p1"])
    made.decide(Decided.GIVE, ["p2"], valid_from="2099-01-01T00:00:00.000000Z")
    made.decide(Decided.GIVE, ["p3"], valid_to="2098-01-01T00:00:00.000000Z")
    found = []
    for year in (2097, 2098, 2099, 2097):
        monkeypatch.setattr(Registry, "clock", lambda _, year=year: f"{year}-06-01T00:00:00.000000Z")
        admission = admit(made.policy)
        assert admission is not None
        found.append(len(admission.subjects))
    assert found == [3, 2, 3, 3]


def test_a_restored_registry_is_found_against_the_last_certificate_before_a_charge(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, HALF)
    out(made, "first")
    file = tmp_path / "registry" / "consent.sqlite"
    old = file.read_bytes()
    made.decide(Decided.WITHDRAW, HALF[:1])
    out(made, "second")
    file.write_bytes(old)  # it is whole, and has lost the withdrawal
    restored = load_policy(tmp_path / "data" / "policy.yaml")
    charged = Ledger.open(made.policy.ledger_address).standing("people").totals.charges
    with pytest.raises(Refused, match="an old copy was restored"):
        release_to(ROWS, restored, Destination(tmp_path / "out" / "third", "csv"))
    with pytest.raises(Refused, match="an old copy was restored"):
        release(ROWS, restored)
    assert Ledger.open(made.policy.ledger_address).standing("people").totals.charges == charged == 2
    release_to(ROWS, restored, Destination(tmp_path / "out" / "third", "csv"), None, ReleaseTerms(anyway=True))


def test_a_clock_that_went_back_lets_nobody_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = consented(GATED, tmp_path, ["p0"])
    past = datetime(2020, 1, 1, tzinfo=UTC)
    behind = Registry(replace(made.registry.chain, clock=lambda: past))
    monkeypatch.setattr("incrowd.workflows.consent.place.ConsentPlace.open", lambda _: behind)
    with pytest.raises(LedgerUnavailable, match="clock of this machine is behind"):
        admit(made.policy)


@pytest.mark.postgres
def test_a_table_and_a_registry_in_postgresql_are_gated_like_a_frame_and_a_file(tmp_path: Path, postgres: str) -> None:
    made = consented(changed(FORM, consent__registry=postgres), tmp_path, HALF)
    table = load(postgres, "people", ROWS)
    (tmp_path / "out").mkdir()
    published = release_to(table, made.policy, Destination(tmp_path / "out" / "pg", "csv"))
    assert tuples(released(published)) == tuples(ungated(tmp_path, only(HALF)))
    made.decide(Decided.WITHDRAW, HALF[:1])
    with pytest.raises(Refused, match="1 left and 0 joined"):
        release_to(table, made.policy, Destination(tmp_path / "out" / "again", "csv"))


def test_a_coarser_table_of_a_gated_release_verifies_and_keeps_what_consent_leaves_open(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, HALF)
    published = out(made)
    coarse = coarsen(published.folder, made.policy, Coarser(levels={"age": 3}), tmp_path / "out" / "coarse")
    assert all(CONSENTERS in claim.not_protected for claim in coarse.certificate.claims)
    found = verify(tmp_path / "out" / "coarse", parent=published.folder)
    assert [each for each in found.findings if each.verdict is Verdict.FAILED] == []
