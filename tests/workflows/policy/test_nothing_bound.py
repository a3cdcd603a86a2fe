"""Nothing is bound to the name of a dataset while nothing is charged: no unit, no budget, no rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import BudgetExceeded, Refused
from incrowd.workflows.plan.forecast import plan
from incrowd.workflows.policy.ledger import find_book, record_look
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.policy.sources import FingerprintFile
from incrowd.workflows.release.tables import release
from tests.policies import PEOPLE, people, with_ledger

SMALL: dict[str, Any] = {"epsilon": "0.5", "delta": "1e-4"}
"""Half of what the release costs."""


def policy(folder: Path, **changes: Any) -> Policy:
    return load_policy(with_ledger(PEOPLE, folder, **changes))


def test_a_refused_first_release_binds_neither_unit_nor_budget(tmp_path: Path) -> None:
    with pytest.raises(BudgetExceeded):
        release(people(), policy(tmp_path, budget=SMALL))
    book = find_book(policy(tmp_path))
    assert book is not None
    assert not book.knows("people")
    assert [entry.kind for entry in book.entries()] == ["created", "refused"]
    replaced = policy(tmp_path, budget={"epsilon": 3, "delta": "1e-2"}, dataset__unit={"adjacency": "replace-one"})
    assert plan(replaced).allowed
    release(people(), replaced)
    assert book.check().ok


def test_a_refused_draft_binds_nothing(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="derived: rows"):
        release(people(), policy(tmp_path, columns__sex__derived="rows"))
    assert plan(policy(tmp_path)).allowed
    release(people(), policy(tmp_path))


def test_rows_of_a_refused_release_are_not_remembered_as_the_datasets_own(tmp_path: Path) -> None:
    release(people(), policy(tmp_path))
    others = people(500, seed=99)
    with pytest.raises(BudgetExceeded):
        release(others, policy(tmp_path))
    release(others, policy(tmp_path, dataset__name="others"))


def test_rows_that_were_paid_for_are_remembered(tmp_path: Path) -> None:
    release(people(), policy(tmp_path))
    with pytest.raises(Refused, match="are those of dataset people"):
        release(people(), policy(tmp_path, dataset__name="again"))


@pytest.mark.parametrize("verb", ["profile", "plan", "check", "assess"])
def test_a_look_binds_no_unit_budget_or_source(tmp_path: Path, verb: str) -> None:
    weak = policy(tmp_path, dataset__unit={"adjacency": "replace-one"}, budget=SMALL)
    assert record_look(weak, verb)
    book = Ledger.open(weak.ledger_address)
    assert not book.knows("people")
    assert not FingerprintFile.of(weak).path.exists()
    release(people(), policy(tmp_path, budget={"epsilon": 2, "delta": "1e-3"}))
