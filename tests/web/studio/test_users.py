"""The page of server users: it says who asked what and what remains, and revokes tokens; no row is behind it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import AccessDenied
from incrowd.governance.access_list import AccessList
from incrowd.governance.audit import Event, open_stores
from incrowd.governance.grant import AccessDecision, AccessRole, User
from tests.web.studio.visiting import studio

POLICY = """\
incrowd: 1
dataset: {name: births}
source: births.csv
columns: {age: {type: integer, bounds: [0, 100]}}
queries: {table: births}
budget: {epsilon: 1}
"""
P = "?policy=policy.yaml"


def test_the_owner_sees_users_and_reasons_and_revokes_a_token(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    visitor = studio(tmp_path).come_in()
    assert "No server yet" in visitor.get(f"/users{P}").text
    (tmp_path / ".incrowd").mkdir(exist_ok=True)
    address = f"sqlite:///{tmp_path}/.incrowd/ledger.sqlite"
    Ledger.create(address)
    access = AccessList.create(address)
    by = AccessDecision("officer", "project")
    issued = access.grant(User("ann", AccessRole.ANALYST), access.now() + timedelta(days=3), by)
    open_stores(address).audit.write(Event("query", "refused", "<ann>", issued.grant.id, {"kind": "QueryRefused"}))
    usage = visitor.json(f"/users{P}")["usage"]
    assert [(user["name"], user["refused"]) for user in usage["users"]] == [("<ann>", 1), ("ann", 0)]
    assert usage["reasons"] == [{"reason": "QueryRefused", "times": 1}]
    page = visitor.get(f"/users{P}").text
    assert issued.grant.id in page
    assert "<ann>" not in page
    form = {"token": issued.grant.id, "policy": "policy.yaml"}
    assert visitor.post("/users/revoke", form).status_code >= 400, "who decides and why must be written"
    assert access.grant_of(issued.token).holder.name == "ann"
    visitor.post("/users/revoke", form | {"who": "olga", "why": "left"})
    with pytest.raises(AccessDenied):
        access.grant_of(issued.token)
