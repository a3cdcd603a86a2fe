"""Kept: an assessment under the three risks of Opinion 05/2014, in the internal part of the release it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from incrowd.attacks.finding import Risk
from incrowd.errors import IncrowdError
from incrowd.workflows.assess.assess import Assessment
from incrowd.workflows.policy.internal import keep_result
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.verify.verify import read_certificate

_UNDER = {"classes": Risk.SINGLING_OUT, "identity": Risk.SINGLING_OUT, "attackers": Risk.LINKABILITY}
_UNDER |= {"smallest crowd": Risk.LINKABILITY, "attributes": Risk.INFERENCE}


def keep_assessment(policy: Policy, release: Path, found: Assessment) -> Path | None:
    """Keep an assessment with what is internal of its release, where certificate and internal folder are there."""
    try:
        certificate = read_certificate(release if release.is_dir() else release.parent)
    except IncrowdError:  # a file that lies somewhere else
        return None
    return keep_result(policy, certificate.id, "assess", by_risk(found.to_json()))


def by_risk(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the plain form of an assessment with each measure of risk under the risk that it measures.

    >>> by_risk({"rows": 9, "identity": 1, "attackers": 2, "attributes": 3})
    {'rows': 9, 'singling out': {'identity': 1}, 'linkability': {'attackers': 2}, 'inference': {'attributes': 3}}
    """
    risks = {str(risk): {name: plain[name] for name in plain if _UNDER.get(name) is risk} for risk in Risk}
    return {**{name: value for name, value in plain.items() if name not in _UNDER}, **risks}
