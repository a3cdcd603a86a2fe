from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import text

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.suppression import tight_delta
from incrowd.core.loss import Crowd, Loss, Pure, Syntactic
from incrowd.core.unit import Kind, Unit
from incrowd.errors import InvalidParameter, LedgerUnavailable, MixedUnits
from incrowd.workflows.plan.forecast import nearest_safe, plan
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.tables import release
from tests.ledgers import tampering
from tests.policies import PEOPLE, changed, people, with_ledger


def policy(folder: Path, **changes: object) -> Policy:
    return load_policy(with_ledger(PEOPLE, folder, **changes))


def test_a_plan_says_what_a_release_then_costs_and_spends_nothing(tmp_path: Path) -> None:
    found = plan(policy(tmp_path))
    assert found.allowed
    assert list(tmp_path.iterdir()) == []
    certificate = release(people(), policy(tmp_path)).certificate
    assert certificate.guarantee == found.guarantee
    assert Decimal(certificate.accounting.spent.epsilon) == found.epsilon
    assert found.parameters["k"] == certificate.claims[0].parameters["k"] == 21
    assert found.parameters["solved"] == "k"


def test_a_plan_needs_no_data() -> None:
    assert plan(load_policy(changed(PEOPLE, ledger="sqlite:////nowhere/at/all.sqlite"))).allowed


def test_a_plan_knows_what_was_spent(tmp_path: Path) -> None:
    release(people(), policy(tmp_path))
    again = plan(policy(tmp_path))
    assert not again.allowed
    assert "remains" in str(again.refusal)
    assert again.standing is not None
    assert again.standing.totals.charges == 1
    entries = list(Ledger.open(policy(tmp_path).ledger_address).entries())
    assert [entry.kind for entry in entries] == ["created", "register", "charge", "conclude"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"budget": {"epsilon": "0.5", "delta": "1e-4"}}, "costs more than the budget"),
        ({"budget": {"epsilon": 1, "delta": "1e-5"}}, "costs more than the budget"),
        ({"columns__sex__derived": "rows"}, "this guarantee has no epsilon"),
        ({"release": {"method": "safe", "levels": {"zip": 1}, "k": 5, "rate": 1}}, "this guarantee has no epsilon"),
    ],
)
def test_a_plan_foresees_that_a_first_release_is_refused(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    found = plan(policy(tmp_path, **changes))
    assert not found.allowed
    assert said in str(found.refusal)
    with pytest.raises(Exception, match=r"epsilon|delta"):
        release(people(), policy(tmp_path, **changes))


def test_a_plan_foresees_that_another_budget_than_the_ledgers_is_refused(tmp_path: Path) -> None:
    release(people(), policy(tmp_path, budget={"epsilon": 5, "delta": "1e-2"}))
    assert plan(policy(tmp_path, budget={"epsilon": 5, "delta": "1e-2"})).allowed
    found = plan(policy(tmp_path, budget={"epsilon": 50, "delta": "1e-2"}))
    assert not found.allowed
    assert "differs from the one in the ledger" in str(found.refusal)


def test_a_plan_for_the_same_people_looks_at_their_budget(tmp_path: Path) -> None:
    release(people(), policy(tmp_path))
    found = plan(policy(tmp_path, dataset__name="again", dataset__same_people_as="people"))
    assert "remains" in str(found.refusal)
    assert plan(policy(tmp_path, dataset__name="others")).allowed
    with pytest.raises(InvalidParameter, match="has no dataset called 'nobody'"):
        plan(policy(tmp_path, dataset__name="again", dataset__same_people_as="nobody"))


def test_a_plan_for_another_unit_than_the_ledgers_is_refused(tmp_path: Path) -> None:
    release(people(), policy(tmp_path))
    with pytest.raises(MixedUnits):
        plan(policy(tmp_path, dataset__unit={"adjacency": "replace-one"}))


def test_with_the_owners_reason_a_release_without_epsilon_is_allowed(tmp_path: Path) -> None:
    exact = {"method": "safe", "levels": {"zip": 1}, "k": 5, "rate": 1}
    found = plan(policy(tmp_path, release=exact, budget={"unbounded": "public since 2020"}))
    assert found.allowed
    assert not found.epsilon.is_finite()
    assert found.parameters == {"k": 5}


def test_a_plan_warns(tmp_path: Path) -> None:
    def warnings(**changes: object) -> str:
        return " ".join(plan(policy(tmp_path, **changes)).warnings)

    assert "no population is declared" in warnings()
    assert "no budget is declared" in warnings()
    assert "delta times the declared population is 10" in warnings(dataset__population=100_000)
    assert "population" not in warnings(dataset__population=9_999)
    assert "delta times the declared population is 1" in warnings(dataset__population=10_000)
    assert "data-dependent: sex" in warnings(columns__sex__derived="rows")


def test_a_release_without_epsilon_is_not_warned_about_delta(tmp_path: Path) -> None:
    exact = {"method": "safe", "levels": {"zip": 1}, "k": 5, "rate": 1}
    for population in (None, 10**12):
        declared = policy(
            tmp_path, release=exact, budget={"unbounded": "public since 2020"}, dataset__population=population
        )
        assert plan(declared).warnings == ()


def test_a_lost_or_exchanged_ledger_is_said(tmp_path: Path) -> None:
    release(people(), policy(tmp_path))
    file = tmp_path / "ledger.sqlite"
    file.rename(tmp_path / "lost.sqlite")
    with pytest.raises(LedgerUnavailable, match="restore it from a copy"):
        plan(policy(tmp_path))
    Ledger.create(policy(tmp_path).ledger_address)
    with pytest.raises(LedgerUnavailable, match="this is not the ledger that"):
        plan(policy(tmp_path))
    (tmp_path / "lost.sqlite").rename(file)
    assert "remains" in str(plan(policy(tmp_path)).refusal)


def test_a_damaged_ledger_is_said_and_not_taken_for_an_absent_one(tmp_path: Path) -> None:
    release(people(), policy(tmp_path))
    ledger = Ledger.open(policy(tmp_path).ledger_address)
    with tampering(ledger.chain) as connection:
        connection.execute(text(f"DELETE FROM {ledger.chain.database.tables.head}"))
    with pytest.raises(LedgerUnavailable):
        plan(policy(tmp_path))


@pytest.mark.parametrize("k", [1, 3, 10, 100])
@pytest.mark.parametrize("loss", [Syntactic("k-anonymity"), Crowd(5)], ids=["a form", "a crowd"])
def test_every_proposal_keeps_its_own_delta_and_no_smaller_crowd(k: int, loss: Loss) -> None:
    for each in nearest_safe(loss, k, Unit(), population=10**9):
        assert each.k >= k
        assert each.epsilon <= 2
        assert each.delta * 10**9 < 1
        assert Fraction(tight_delta.delta(each.k, each.rate, str(each.epsilon))) <= each.delta


def test_where_there_is_an_epsilon_or_nothing_is_near_nothing_is_proposed() -> None:
    several = Unit(Kind.PERSON, column="id", max_rows=2)
    assert nearest_safe(Pure(Fraction(1)), 5, Unit(), None) == ()
    assert nearest_safe(Crowd(5), None, Unit(), None) == ()
    assert nearest_safe(Syntactic("k-anonymity"), 5, several, None) == ()


def kept(folder: Path, **columns: object) -> list[str]:
    release = {"method": "full-domain", "k": 5, "lowest": {"zip": 1}}
    plain = changed(PEOPLE, release=release, budget={"unbounded": "compared"}, **columns)
    return [text for text in plan(load_policy(with_ledger(plain, folder))).warnings if "released unchanged" in text]


def test_columns_that_may_make_rows_unique_are_warned_about(tmp_path: Path) -> None:
    number = {"role": "plain", "type": "integer", "bounds": [0, 99999]}
    assert "pay. Equivalence classes do not use them" in kept(tmp_path, columns__pay=number)[0]
    few = {"role": "plain", "categories": ["yes", "no"]}
    assert "outside the equivalence classes: well" in kept(tmp_path, columns__well=few)[0]
    assert kept(tmp_path) == []
    assert kept(tmp_path, columns__pay=number | {"role": "quasi"}) == []


def test_crowds_over_all_columns_need_no_warning(tmp_path: Path) -> None:
    number = {"role": "plain", "type": "integer", "bounds": [0, 99999]}
    found = plan(policy(tmp_path, columns__pay=number)).warnings
    assert not any("as they are" in text for text in found)
