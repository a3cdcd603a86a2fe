"""Plain: an assessment as JSON, every number with its definition where it is an estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.measures.risk.classes import DEFINITIONS, Sizes
from incrowd.measures.score import Score

if TYPE_CHECKING:
    from incrowd.workflows.assess.assess import Assessment


def plain(found: Assessment) -> dict[str, Any]:
    """Return the plain form of an assessment, with the definition of every attacker."""
    from incrowd.workflows.assess.assess import THRESHOLD

    attackers = {
        name: {"means": DEFINITIONS[name], "before": asdict(before), "after": asdict(after)}
        for name, (before, after) in found.risks.items()
    }
    after = found.classes_after
    return {
        "internal": "made from the original rows: keep it apart from what is published",
        "release": found.name,
        "notes": list(found.notes),
        "rows": {"original": found.rows, "released": found.kept, "tables": list(found.tables)},
        "loss": {"kept": found.loss_kept, "all": found.loss, "columns": [asdict(each) for each in found.columns]},
        "classes": {
            "before": _classes(found.classes_before, 0),
            "after": None if after is None else _classes(after, found.rows - found.kept),
        },
        "threshold": THRESHOLD,
        "attackers": attackers,
        "smallest crowd": found.smallest_crowd,
        "identity": _plain(found.identity),
        "attributes": _plain(found.attributes),
        "utility": _plain(found.utility) | _ratio(found),
        "preserved": [asdict(each) for each in found.preserved],
        "quality": None if found.quality is None else {**_plain(found.quality), "mean of pairs": found.quality.mean},
        "attacks": None if found.lab is None else found.lab.by_risk(),
        "example": None if found.example is None else asdict(found.example),
    }


def _ratio(found: Assessment) -> dict[str, Any]:
    ratio = None if found.utility.propensity is None else found.utility.propensity.ratio
    return {"propensity ratio": ratio}


def _classes(sizes: Sizes, suppressed: int) -> dict[str, Any]:
    return {
        "number": sizes.classes,
        "smallest": sizes.smallest,
        "average": sizes.average,
        "unique_rows": sizes.unique,
        "discernibility": sizes.discernibility(suppressed),
    }


def _plain(value: Any) -> Any:
    """Return values as JSON has them."""
    if isinstance(value, Score):
        return value.to_json()
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
