from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import InvalidParameter, UnsupportedVersion
from incrowd.verifier.check import Verdict, passed, undecided
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.report.page import GENERATOR
from incrowd.workflows.verify.verification import Verification
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, written
from tests.released import Folder, failed, key_pair, rehash, release_into


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("made") / "release")


def outcomes(folder: Folder, **options: Any) -> dict[str, Verdict]:
    return {finding.about: finding.verdict for finding in verify(folder.out, **options).findings}


def test_what_can_be_known_is_checked_and_the_rest_is_said_to_be_unknown(made: Folder) -> None:
    found = outcomes(made)
    unknown = {about for about, outcome in found.items() if outcome is Verdict.UNKNOWN}
    assert unknown == {"ledger", "signature", "assumption"}
    assert verify(made.out).passed
    assert outcomes(made, ledger=Ledger.open(made.ledger))["ledger"] is Verdict.PASSED


def test_the_unknown_is_who_made_it_and_that_the_sample_was_secret(made: Folder) -> None:
    whys = [finding.why for finding in verify(made.out).findings if finding.verdict is Verdict.UNKNOWN]
    assert any("origin not verified" in why for why in whys)
    assert any("nobody knows the sampling randomness" in why for why in whys)
    assert any("not selected from several runs" in why for why in whys)


def test_the_certificate_may_be_named_as_file_or_folder_and_the_data_may_lie_elsewhere(
    made: Folder, tmp_path: Path
) -> None:
    assert verify(made.out / "certificate.json").passed
    alone = made.copied(tmp_path / "copy")
    (alone.out / "data.csv").rename(tmp_path / "elsewhere.csv")
    assert failed(verify(alone.out)) == ["file data.csv"]
    assert verify(alone.out, tmp_path / "elsewhere.csv").passed


CHANGES: dict[str, dict[str, Any]] = {
    "people": {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id"}},
    "several rows": {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "max_rows": 2}},
    "replaced": {"dataset__unit": {"adjacency": "replace-one"}},
    "k given": {"release__rate": "1/10", "release__k": 9, "release__epsilon": None, "release__delta": "1e-4"},
    "rate solved": {"release__rate": None, "release__k": 30},
    "at the floor": {"release__rate": "1/10", "release__epsilon": 5, "release__delta": "1e-4"},
    "without a sample": {"release__rate": 1, "release__k": 5, "budget": {"unbounded": "a reason"}},
    "drafted": {"columns__sex__derived": "rows", "budget": {"unbounded": "a reason"}},
    "weights": {"release__weights": True},
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_kind_of_release_passes(tmp_path: Path, name: str) -> None:
    table = people().append_column("id", [[f"p{n}" for n in range(600)]])
    release_to(table, written(changed(PEOPLE, **CHANGES[name]), tmp_path), Destination(tmp_path / "out"))
    folder = Folder(tmp_path)
    found = verify(folder.out, ledger=Ledger.open(folder.ledger))
    assert failed(found) == []
    claims = [finding for finding in found.findings if finding.about.startswith("claim")]
    undecided = [finding.about for finding in claims if finding.verdict is Verdict.UNKNOWN]
    assert undecided == (["claim: approximate differential privacy"] if name == "replaced" else [])


def test_later_releases_and_grants_change_nothing_for_an_earlier_certificate(tmp_path: Path) -> None:
    folder = release_into(tmp_path / "release")
    ledger = Ledger.open(folder.ledger)
    ledger.grant("people", Budget.of(1, "1e-4"), "the board", "a second table")
    release_to(people(), folder.path / "policy.yaml", Destination(folder.path / "second"))
    assert verify(folder.out, ledger=ledger).passed
    assert verify(folder.path / "second", ledger=ledger).passed


@pytest.mark.parametrize("form", ["parquet", "csv", "tsv"])
def test_an_empty_release_passes(tmp_path: Path, form: str) -> None:
    release_to(people(3), written(PEOPLE, tmp_path), Destination(tmp_path / "out", form))
    found = verify(tmp_path / "out")
    assert found.passed
    assert "there are no rows, k is 21" in [finding.why for finding in found.findings]


def test_a_claim_of_an_unknown_kind_is_not_read(made: Folder, tmp_path: Path) -> None:
    copy = made.copied(tmp_path / "copy")
    copy.forge(("claims", 5, "kind"), lambda _: "perfect secrecy")
    with pytest.raises(InvalidParameter):
        verify(copy.out)


def test_the_policy_says_whether_the_plan_is_the_one_it_asks_for(made: Folder, tmp_path: Path) -> None:
    assert outcomes(made, policy=load_policy(made.path / "policy.yaml"))["policy"] is Verdict.PASSED
    stranger = load_policy(written(changed(PEOPLE, release__rate="1/3"), tmp_path))
    assert failed(verify(made.out, policy=stranger)) == ["policy"]


def test_the_verdict_says_how_much_was_shown(made: Folder, tmp_path: Path) -> None:
    assert verify(made.out).verdict == "consistent; origin not verified"
    assert verify(made.out, ledger=Ledger.open(made.ledger)).verdict == "verified"
    copy = made.copied(tmp_path / "copy")
    (copy.out / "data.csv").write_text("")
    assert verify(copy.out).verdict == "NOT verified"


def test_the_verdict_tells_what_could_not_be_derived_again(made: Folder) -> None:
    derived, open_ = passed("claim: k-anonymity", ""), undecided("claim: k-anonymity", "")
    certificate = verify(made.out).certificate
    assert Verification(certificate, (derived,)).complete
    partial = Verification(certificate, (derived, open_, passed("ledger", "")))
    assert not partial.complete
    assert "could not be recomputed" in partial.verdict


def test_a_report_that_was_changed_fails_even_with_a_hash_to_fit(made: Folder, tmp_path: Path) -> None:
    copy = made.copied(tmp_path / "copy")
    with (copy.out / "report.html").open("a", encoding="utf-8") as page:
        page.write("<p>approved</p>")
    assert failed(verify(copy.out)) == ["file report.html"]
    rehash(copy.out, "report.html")
    assert failed(verify(copy.out)) == ["report"]
    text = (copy.out / "report.html").read_text(encoding="utf-8")
    (copy.out / "report.html").write_text(text.replace(GENERATOR, "incrowd 99"), encoding="utf-8")
    rehash(copy.out, "report.html")
    other = verify(copy.out)
    assert other.passed
    assert other.verdict.endswith("the enclosed report is not vouched for")


def test_a_charge_of_which_nothing_came_vouches_for_no_certificate(made: Folder, tmp_path: Path) -> None:
    """Everything else holds, the files too: but the ledger says that another certificate came of the charge."""
    copy = made.copied(tmp_path / "copy")
    copy.tamper(("created",), lambda _: "2031-01-01T00:00:00+00:00")
    assert failed(verify(copy.out, ledger=Ledger.open(copy.ledger))) == ["report", "ledger"]


@pytest.mark.parametrize("text", ["", "[1]", "no json", '"text"', "12"])
def test_what_is_no_certificate_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "certificate.json").write_text(text)
    with pytest.raises(InvalidParameter, match="is not a certificate"):
        verify(tmp_path)


def test_a_certificate_that_cannot_be_read_is_refused(made: Folder, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="cannot be read: No such file"):
        verify(tmp_path / "certificate.json")
    later = made.certificate | {"certificate": 4}
    (tmp_path / "certificate.json").write_text(json.dumps(later))
    with pytest.raises(UnsupportedVersion, match="version 4"):
        verify(tmp_path)
    for broken in ({**made.certificate, "more": 1}, {**made.certificate, "claims": [{}]}):
        (tmp_path / "certificate.json").write_text(json.dumps(broken))
        with pytest.raises(InvalidParameter):
            verify(tmp_path)


def test_an_unsigned_certificate_fails_where_a_key_is_given(made: Folder, tmp_path: Path) -> None:
    keys = key_pair(tmp_path)
    assert failed(verify(made.out, trusted=keys.public)) == ["signature"]
    (tmp_path / "none").write_text("no key")
    with pytest.raises(InvalidParameter):
        verify(made.out, trusted=tmp_path / "none")


def test_a_signed_certificate_names_its_key(tmp_path: Path) -> None:
    keys, stranger = key_pair(tmp_path), key_pair(tmp_path, "stranger")
    folder = release_into(tmp_path / "release", key=keys.private)
    assert outcomes(folder, trusted=keys.public)["signature"] is Verdict.PASSED
    assert outcomes(folder)["signature"] is Verdict.UNKNOWN
    assert failed(verify(folder.out, trusted=stranger.public)) == ["signature"]
