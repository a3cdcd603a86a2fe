"""A private look from the policy to the release whose levels it chose: charged, certified, verified, forged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import incrowd
from incrowd.core.certificate import meaning_digest
from incrowd.core.claims.privacy import ApproximatePrivacy, Blending, SampledCrowd
from incrowd.core.loss import Pure
from incrowd.core.steps.choices import BY_LOOK, LevelsByLook, SuppressAfterLook
from incrowd.core.steps.suppression import Suppress
from incrowd.errors import InvalidParameter, OutputUnavailable, Refused, SourceUnreadable
from incrowd.verifier.check import Verdict
from incrowd.verifier.files import CERTIFICATE
from incrowd.workflows.certificates import certificate_of, read_certificate
from incrowd.workflows.plan.forecast import plan
from incrowd.workflows.plan.preview.chosen_policy import ChosenPolicy, replaced
from incrowd.workflows.plan.preview.preview import PreviewResult, look
from incrowd.workflows.policy.document import read_document
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.verify.verify import verify
from tests.contract.forging import caught, fitting, forgeries, require_all_caught
from tests.policies import changed, with_ledger, written
from tests.workflows.plan.preview.weighing import SURVEY, skewed

ROWS = skewed(np.random.default_rng(4), 6000)
POLICY = changed(SURVEY, dataset__rows=6000)


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PreviewResult, Policy]:
    """A folder with a look, the policy that it wrote, and the release under that policy."""
    folder = tmp_path_factory.mktemp("looked")
    written(POLICY, folder)
    files = ChosenPolicy(folder / "policy.yaml", folder / "chosen.yaml")
    files.check()
    looked = look(ROWS, load_policy(files.source), "0.05")
    files.write(looked)
    chosen = load_policy(files.target)
    assert plan(chosen).allowed
    release_to(ROWS, chosen, Destination(folder / "out", "csv"))
    return folder, looked, chosen


def test_a_look_is_charged_before_rows_are_read_and_concluded_with_its_certificate(
    road: tuple[Path, PreviewResult, Policy],
) -> None:
    _, looked, chosen = road
    book = find_book(chosen)
    assert book is not None
    entries = list(book.entries())
    assert [entry.kind for entry in entries] == ["created", "register", "charge", "conclude", "charge", "conclude"]
    charge = entries[2]
    assert charge.sequence == looked.chosen.entry
    assert charge.charged[0].guarantee.loss == Pure(looked.chosen.epsilon)
    assert entries[3].body["certificate"] == looked.certificate.digest()
    assert book.check().ok


def test_the_public_name_is_the_same_function() -> None:
    assert incrowd.look is look


def test_the_certificate_of_a_look_verifies_with_ledger_and_policy(road: tuple[Path, PreviewResult, Policy]) -> None:
    folder, looked, chosen = road
    file = folder / "chosen.yaml.look.json"
    found = verify(file, ledger=find_book(chosen), policy=load_policy(folder / "policy.yaml"))
    assert found.passed
    assert found.vouched
    assert {each.about: each.verdict for each in found.findings}["policy"] is Verdict.PASSED
    assert read_certificate(file).evidence["sums"] == list(looked.result.sums)


def test_a_release_at_levels_by_a_look_claims_privacy_and_neither_crowds_nor_zero_knowledge(
    road: tuple[Path, PreviewResult, Policy],
) -> None:
    folder, looked, chosen = road
    certificate = read_certificate(folder / "out")
    kinds = [type(claim) for claim in certificate.claims]
    assert ApproximatePrivacy in kinds
    assert not any(issubclass(kind, Blending | SampledCrowd) for kind in kinds)
    assert certificate.steps[0] == looked.chosen
    assert BY_LOOK in certificate.guarantee.assumes
    assert not any("chosen without access to the rows" in text for text in map(str, certificate.guarantee.assumes))
    total, spent = certificate.accounting.total.epsilon, certificate.accounting.spent.epsilon
    assert float(total) == pytest.approx(float(spent) + 0.05)
    blind = load_policy(changed(json.loads((folder / "policy.yaml").read_text()), release=chosen.section.release))
    unmarked = replace(blind.method, chosen=None).plan(blind.schema)  # type: ignore[type-var]
    assert any(isinstance(claim, Blending) for claim in unmarked.claims)
    assert unmarked.guarantee.loss == certificate.guarantee.loss


def test_it_verifies_with_policy_and_ledger(road: tuple[Path, PreviewResult, Policy]) -> None:
    folder, _, chosen = road
    found = verify(folder / "out", ledger=find_book(chosen), policy=chosen)
    assert found.verdict == "verified"
    other = verify(folder / "out", policy=load_policy(folder / "policy.yaml"))
    assert not other.passed, "it was not made under the policy before the look"


def test_every_change_of_either_certificate_is_found(road: tuple[Path, PreviewResult, Policy]) -> None:
    folder, looked, _ = road
    require_all_caught(json.loads((folder / "out" / CERTIFICATE).read_text(encoding="utf-8")))
    plain = looked.certificate.to_json()
    assert caught(plain) is None
    for forgery in forgeries(plain):
        if forgery.top in ("guarantee", "claims", "limits"):
            assert caught(forgery.plain), forgery.name


def test_a_certificate_without_the_step_of_the_look_is_found(
    road: tuple[Path, PreviewResult, Policy], tmp_path: Path
) -> None:
    """Without its step alone the certificate contradicts itself; rewritten whole, policy and ledger show it."""
    folder, _, chosen = road
    plain = json.loads((folder / "out" / CERTIFICATE).read_text(encoding="utf-8"))
    for left in ([0], [0, 4], [4]):
        steps = [step for place, step in enumerate(plain["steps"]) if place not in left]
        assert caught(fitting({**plain, "steps": steps}))
    honest = certificate_of(plain)
    blind = replace(load_policy(changed(POLICY, release=chosen.section.release)).method, chosen=None)  # type: ignore[type-var]
    made = blind.plan(chosen.schema)
    assert any(isinstance(step, Suppress) and not isinstance(step, SuppressAfterLook) for step in made.steps)
    whole = replace(honest, steps=made.steps, guarantee=made.guarantee, claims=made.claims)
    whole = replace(whole, glossary=meaning_digest(made.guarantee, made.claims, made.steps))
    forged = fitting(whole.to_json())
    assert caught(forged) is None, "by itself it is as good as any"
    file = tmp_path / CERTIFICATE
    file.write_text(json.dumps(forged), encoding="utf-8")
    data = folder / "out" / "data.csv"
    assert {each.about for each in verify(file, data, policy=chosen).findings if each.verdict is Verdict.FAILED} >= {
        "policy"
    }
    assert {
        each.about for each in verify(file, data, ledger=find_book(chosen)).findings if each.verdict is Verdict.FAILED
    } >= {"ledger"}


def _chosen(looked: PreviewResult, **changes: Any) -> dict[str, Any]:
    section = looked.section
    return changed(POLICY, release={**section, "chosen": {**section["chosen"], **changes}})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"entry": "4"}, "is not the one named in the policy"),
        ({"entry": "99"}, "is not the one named in the policy"),
        ({"hash": "0" * 64}, "is not the one named in the policy"),
        ({"ledger": "0" * 32}, "is not the one named in the policy"),
        ({"epsilon": "1/100"}, "is not the charge of such a preview"),
    ],
)
def test_a_look_that_the_ledger_does_not_hold_is_refused_by_plan_and_release(
    road: tuple[Path, PreviewResult, Policy], changes: dict[str, str], said: str
) -> None:
    folder, looked, _ = road
    policy = load_policy(written(_chosen(looked, **changes), folder, "other.yaml"))
    assert said in str(plan(policy).refusal)
    with pytest.raises(Refused, match=said):
        release(ROWS, policy)


def test_a_look_at_other_people_chooses_nothing(road: tuple[Path, PreviewResult, Policy]) -> None:
    folder, looked, _ = road
    others = changed(_chosen(looked), dataset__name="others")
    with pytest.raises(Refused, match="not the charge of such a preview of this dataset"):
        release(skewed(np.random.default_rng(99), 900), load_policy(written(others, folder, "other.yaml")))


def test_another_charge_of_the_same_epsilon_is_no_look(tmp_path: Path) -> None:
    counts = {"method": "private-histogram", "columns": ["work"], "epsilon": "0.05"}
    made = release(ROWS, with_ledger(POLICY, tmp_path, release=counts)).certificate
    place = made.ledger
    step = {"epsilon": "1/20", "ledger": place.chain, "entry": place.sequence, "hash": place.hash}
    with pytest.raises(Refused, match="not the charge of such a preview"):
        release(ROWS, with_ledger(POLICY, tmp_path, release__chosen=step))


def test_a_look_that_fails_stays_spent_is_concluded_and_chooses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from incrowd.workflows.plan.preview.method import PrivatePreview

    def fail(*_: object) -> None:
        raise SourceUnreadable("the disk is gone.")

    monkeypatch.setattr(PrivatePreview, "sums", fail)
    policy = load_policy(with_ledger(POLICY, tmp_path))
    with pytest.raises(SourceUnreadable, match=r"not refunded: epsilon 0\.05"):
        look(ROWS, policy, "0.05")
    book = find_book(policy)
    assert book is not None
    charge, conclusion = list(book.entries())[-2:]
    assert (charge.kind, conclusion.body["certificate"]) == ("charge", None)
    place = charge.anchor
    step = {"epsilon": "1/20", "ledger": place.chain, "entry": place.sequence, "hash": place.hash}
    with pytest.raises(Refused, match="did not finish"):
        release(ROWS, with_ledger(POLICY, tmp_path, release__chosen=step))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"budget": None}, r"Add to the policy: budget: \{epsilon: 1\.05, delta: 0\.000001\}"),
        ({"budget": {"epsilon": 1, "delta": "1e-6"}}, "together cost up to epsilon 1.05"),
        ({"dataset__rows": 300}, "useless"),
        ({"columns__work__derived": "rows"}, r"work are data-dependent \(derived: rows\)"),
        ({"release": {"method": "safe", "k": 5, "rate": 1}, "budget": {"unbounded": "public"}}, "rate below 1"),
        ({"release": {"method": "private-histogram", "columns": ["work"], "epsilon": 1}}, "private-histogram"),
    ],
)
def test_a_look_that_leads_nowhere_is_refused_before_the_charge(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    policy = load_policy(with_ledger(POLICY, tmp_path, **changes))
    with pytest.raises((Refused, InvalidParameter), match=said):
        look(ROWS, policy, "0.05")
    assert find_book(policy) is None


@pytest.mark.parametrize("epsilon", ["0", "-1", "much"])
def test_a_look_costs_something(tmp_path: Path, epsilon: str) -> None:
    with pytest.raises(InvalidParameter):
        look(ROWS, with_ledger(POLICY, tmp_path), epsilon)


def test_a_look_at_too_few_rows_says_that_it_was_useless(tmp_path: Path) -> None:
    """Noise that is twice the half-width of some interval would hide it: the tails of all twelve sum up to 6e-7."""
    shown = look(ROWS.slice(0, 5), with_ledger(POLICY, tmp_path, dataset__rows=None), "0.05")
    assert shown.result.useless
    assert shown.sentence.startswith("useless")
    assert shown.to_json()["useless"] is True


def test_people_with_two_rows_are_looked_at_and_released(tmp_path: Path) -> None:
    people = pa.array([f"p{n // 2}" for n in range(ROWS.num_rows)])
    unit = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "max_rows": 2}}
    target = {"release__epsilon": 3, "release__delta": "1e-5", "budget": {"epsilon": 4, "delta": "1e-4"}}
    policy = with_ledger(POLICY, tmp_path, **unit, **target, dataset__population=3000)
    rows = ROWS.append_column("id", people)
    shown = look(rows, policy, "0.5")
    assert shown.certificate.steps[0].rows == 2  # type: ignore[attr-defined]
    made = release(rows, {**policy, "release": shown.section})
    assert isinstance(made.certificate.steps[0], LevelsByLook)
    assert len(made.result) > 1500  # 2,828 are expected; noise of 400 rows has a chance of 1e-14


def test_a_chosen_policy_lies_beside_the_old_one_and_overwrites_nothing(tmp_path: Path) -> None:
    source = written(POLICY, tmp_path)
    (tmp_path / "below").mkdir()
    with pytest.raises(InvalidParameter, match="must be in the folder of"):
        ChosenPolicy(source, tmp_path / "below" / "chosen.yaml").check()
    for taken in ("chosen.yaml", "other.yaml.look.json"):
        (tmp_path / taken).touch()
    for name in ("chosen.yaml", "other.yaml"):
        with pytest.raises(OutputUnavailable, match="already exists"):
            ChosenPolicy(source, tmp_path / name).check()


@pytest.mark.parametrize(
    "text",
    [
        "release: {k: 5}\nzip: 02131\n",
        "# head\nzip: 02131   # kept\nrelease:\n  k: 5\n  # of the release\n\n# of the next\nlast: NO\n",
        '{"zip": "02131", "release": {"k": 5}, "last": "NO"}',
        "zip: 02131\nrelease:\n  k: 5",
        "release:\r\n  k: 5\r\nzip: 02131\r\n",
    ],
)
def test_another_release_section_leaves_all_else_as_it_was_written(text: str) -> None:
    section = {"k": "7", "levels": {"a b": "1", "null": "2"}, "hash": "0123"}
    made = replaced(text, section, "  # chosen")
    assert read_document(made).content == {**read_document(text).content, "release": section}
    for kept in ("# head", "# kept", "# of the next"):
        assert (kept in made) == (kept in text)
