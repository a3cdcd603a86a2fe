"""The gate of `incrowd attack` closes on masks that hide nothing, and says how masked values were judged."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pytest

from incrowd.methods import METHODS
from incrowd.methods.shared.outcome import ReleasedTuples
from incrowd.workflows.assess.assess import NOT_JUDGED
from incrowd.workflows.assess.masked_risk import masked_risk
from incrowd.workflows.policy.policy import load_policy
from tests.attacks.households import LEAST, OUTSIDERS, PEOPLE, POLICY, STRONG, WEAK
from tests.attacks.test_masks import publish
from tests.cli.running import Runner
from tests.policies import with_ledger


def written(folder: Path, release: object) -> None:
    policy = {**POLICY, "release": release, "ledger": f"sqlite:///{folder}/ledger.sqlite"}
    (folder / "policy.yaml").write_text(json.dumps(policy), encoding="utf-8")
    for name, table in (("data", PEOPLE), ("others", OUTSIDERS)):
        pyarrow.csv.write_csv(table, folder / f"{name}.csv")


@pytest.mark.parametrize("mask", ["noise", "orthogonal", "rank-swap"])
def test_the_gate_closes_on_a_mask_of_strength_near_zero(mask: str, run: Runner, tmp_path: Path) -> None:
    written(tmp_path, WEAK[mask])
    assert run("release data.csv --policy policy.yaml --out out").code == 0
    attack = "attack out --policy policy.yaml --against data.csv --control others.csv --threshold 0.4"
    for name in ("linkage", "homogeneity", "inference"):
        outcome = run(f"{attack} --attack {name} --json")
        (finding,) = json.loads(outcome.out)["findings"]
        assert (outcome.code, finding["verdict"]) == (1, "leak")
        assert "counts as right if at most 1% of the people" in " ".join(finding["notes"])


@pytest.mark.parametrize("mask", sorted(LEAST.keys() - {"noise", "orthogonal", "rank-swap"}))
def test_the_gate_closes_on_every_other_mask_at_its_weakest(mask: str, run: Runner, tmp_path: Path) -> None:
    release, secret = LEAST[mask]
    written(tmp_path, release)
    assert run("release data.csv --policy policy.yaml --out out").code == 0
    attack = "attack out --policy policy.yaml --against data.csv --control others.csv --threshold 0.4"
    assert run(f"{attack} --attack linkage --attack homogeneity --secret {secret}").code == 1


def test_every_mask_is_among_those_at_their_weakest() -> None:
    masks = {name for name, module in METHODS.items() if ".perturbation." in module}
    assert masks - LEAST.keys() == {"local-suppression", "calibration"}


def test_the_gate_stays_open_on_a_mask_that_hides_people(run: Runner, tmp_path: Path) -> None:
    written(tmp_path, STRONG["noise"])
    assert run("release data.csv --policy policy.yaml --out out").code == 0
    attack = "attack out --policy policy.yaml --against data.csv --control others.csv --threshold 0.4"
    assert run(f"{attack} --attack linkage --attack homogeneity --attack inference").code == 0


def test_a_masked_file_of_an_unknown_method_is_attacked_and_not_refused(run: Runner, tmp_path: Path) -> None:
    written(tmp_path, WEAK["noise"])
    assert run("release data.csv --policy policy.yaml --out out").code == 0
    (file,) = (path for path in (tmp_path / "out").iterdir() if path.stem == "data")
    told = "--known âge,revenu,sexe --secret loyer --control others.csv --attack linkage --threshold 0.4"
    outcome = run(f"attack --original data.csv --published {file} {told}")
    assert outcome.code == 1
    assert "the method is unknown" in " ".join(outcome.out.split())


def test_an_assessment_shows_the_risk_after_a_mask_with_definitions(run: Runner, tmp_path: Path) -> None:
    written(tmp_path, WEAK["noise"])
    policy = json.loads((tmp_path / "policy.yaml").read_text(encoding="utf-8"))
    policy["dataset"]["population"] = 5000
    (tmp_path / "policy.yaml").write_text(json.dumps(policy), encoding="utf-8")
    assert run("release data.csv --policy policy.yaml --out out").code == 0
    words = " ".join(run("assess out --policy policy.yaml --against data.csv").out.split())
    for name in ("prosecutor, linked", "marketer, linked", "inference of loyer", "Special uniques: rows"):
        assert name in words
    for name in ("τ1: expected number", "τ2: expected number", "data intrusion: probability"):
        assert name in words
    assert NOT_JUDGED not in words
    assert "For example: The attacker knows of a person" in words
    assert "at least 95 %, for any population of which this is a random sample" in words
    assert "For example, only one row of the data has" in words


@pytest.mark.parametrize("mask", ["noise", "orthogonal", "rank-swap"])
def test_the_risk_after_a_mask_follows_its_strength(mask: str, tmp_path: Path) -> None:
    policy = load_policy(with_ledger({**POLICY, "release": WEAK[mask]}, tmp_path))
    for strength in (WEAK, STRONG):
        published = publish(strength[mask], PEOPLE, tmp_path)
        tuples = ReleasedTuples.of(published.table, faithful=False)
        risk = masked_risk([tuples], published.masks or {}, PEOPLE, policy.schema)
        assert risk is not None
        rates = (risk.linked.success.estimate, risk.guessed.success.estimate, risk.inferred["loyer"].success.estimate)
        assert min(rates) > 0.5 if strength is WEAK else max(rates) < 0.06


@pytest.mark.parametrize("mask", ["noise", "orthogonal", "rank-swap"])
def test_the_internal_page_says_in_words_that_a_mask_hides_hardly_anybody(
    mask: str, run: Runner, tmp_path: Path
) -> None:
    sentence = "of the released rows: an attacker who knows these numbers finds the row"
    for strength in (WEAK, STRONG):
        folder = tmp_path / str(strength is WEAK)
        folder.mkdir()
        written(folder, strength[mask])
        assert run(f"release {folder}/data.csv --policy {folder}/policy.yaml --out {folder}/out").code == 0
        (page,) = folder.glob(".incrowd/internal/*/steps.html")
        assert (sentence in page.read_text(encoding="utf-8")) == (strength is WEAK)
        for public in (folder / "out").iterdir():
            assert sentence.encode() not in public.read_bytes()


def test_rows_that_a_mask_left_as_they_were_are_counted_in_the_internal_page(run: Runner, tmp_path: Path) -> None:
    written(tmp_path, {"method": "rounding", "columns": {"revenu": 1}})
    assert run("release data.csv --policy policy.yaml --out out").code == 0
    (page,) = tmp_path.glob(".incrowd/internal/*/steps.html")
    text = page.read_text(encoding="utf-8")
    assert "The masks changed no value in 240 of 240 rows." in text
    assert "“revenu”: the masks left 100.0% of the values as they were read." in text


def test_the_risk_of_synthetic_rows_is_called_not_judged() -> None:
    """Rather than a dash, which reads as if there were none."""
    assert "the risk after the release is not judged here. That does not mean that it is low" in NOT_JUDGED
