"""Record: an assessment as JSON, and stored with the release under the three risks of Opinion 05/2014."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.attacks.finding import Risk
from incrowd.errors import IncrowdError
from incrowd.measures.risk.classes import DEFINITIONS, Sizes
from incrowd.measures.score import Score
from incrowd.workflows.assess.assess import THRESHOLD, Assessment
from incrowd.workflows.attack.attack import INTERNAL
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.internal import keep_result
from incrowd.workflows.policy.policy import Policy


def plain(assessment: Assessment) -> dict[str, Any]:
    """Return the values of an assessment for JSON, with the definition of every attacker."""
    attackers = {
        name: {"means": DEFINITIONS[name], "before": asdict(before), "after": asdict(after)}
        for name, (before, after) in assessment.risks.items()
    }
    after, propensity = assessment.classes_after, assessment.utility.propensity
    return {
        "internal": INTERNAL,
        "release": assessment.name,
        "notes": list(assessment.notes),
        "rows": {"original": assessment.rows, "released": assessment.released, "tables": list(assessment.tables)},
        "loss": {
            "released": assessment.loss_released,
            "all": assessment.loss,
            "columns": [asdict(item) for item in assessment.columns],
        },
        "classes": {
            "of": assessment.counted,
            "before": _classes(assessment.classes_before, 0),
            "after": None if after is None else _classes(after, assessment.rows - assessment.released),
        },
        "threshold": THRESHOLD,
        "attackers": attackers,
        "smallest crowd": assessment.smallest_crowd,
        "masked": None
        if assessment.masked is None
        else {name: finding.to_json() for name, finding in assessment.masked.lines},
        "identity": _plain(assessment.identity),
        "attributes": _plain(assessment.attributes),
        "utility": _plain(assessment.utility) | {"propensity ratio": propensity and propensity.ratio},
        "preserved": [asdict(item) for item in assessment.preserved],
        "quality": None
        if assessment.quality is None
        else {**_plain(assessment.quality), "mean of pairs": assessment.quality.mean},
        "attacks": None if assessment.lab is None else assessment.lab.by_risk(),
        "example": None if assessment.example is None else asdict(assessment.example),
    }


def _classes(sizes: Sizes, suppressed: int) -> dict[str, Any]:
    return {
        "number": sizes.classes,
        "smallest": sizes.smallest,
        "average": sizes.average,
        "unique_rows": sizes.unique,
        "discernibility": sizes.discernibility(suppressed),
    }


def _plain(value: Any) -> Any:
    """Return a value for JSON."""
    if isinstance(value, Score):
        return value.to_json()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


_UNDER = {"classes": Risk.SINGLING_OUT, "identity": Risk.SINGLING_OUT, "attackers": Risk.LINKABILITY}
_UNDER |= {"smallest crowd": Risk.LINKABILITY, "masked": Risk.LINKABILITY, "attributes": Risk.INFERENCE}


def keep_assessment(policy: Policy, release: Path, assessment: Assessment) -> Path | None:
    """Store an assessment with the internal files of its release; None without its certificate or that folder."""
    try:
        certificate = read_certificate(release if release.is_dir() else release.parent)
    except IncrowdError:  # a file that is not in a release folder
        return None
    return keep_result(policy, certificate.id, "assess", by_risk(assessment.to_json()))


def by_risk(values: dict[str, Any]) -> dict[str, Any]:
    """Return an assessment with each measure of risk under the risk that it measures.

    >>> by_risk({"rows": 9, "identity": 1, "attackers": 2, "attributes": 3})
    {'rows': 9, 'singling out': {'identity': 1}, 'linkability': {'attackers': 2}, 'inference': {'attributes': 3}}
    """
    risks = {str(risk): {name: values[name] for name in values if _UNDER.get(name) is risk} for risk in Risk}
    return {**{name: value for name, value in values.items() if name not in _UNDER}, **risks}
