"""Examples of private methods: those of the contract, and each method with people of seven rows in both adjacencies."""

from __future__ import annotations

from typing import Any

from tests.contract.examples import POLICIES
from tests.policies import changed

ROWS = 7
_PEOPLE: dict[str, Any] = {"columns__id": {"role": "identifier"}}
_UNITS: dict[str, dict[str, Any]] = {
    "seven rows": {"column": "id", "max_rows": ROWS},
    "seven rows, replaced": {"column": "id", "max_rows": ROWS, "adjacency": "replace-one"},
}
_OF_SEVEN: dict[str, tuple[str, ...]] = {
    "private-histogram": ("Laplace", "Gaussian", "unknown bins"),
    "most-common": ("with counts", "without counts"),
    "marginals": ("each table",),
    "tree": ("pairs",),
    "classifier": ("moments, replaced", "pure", "random trees"),
    "regressor": ("moments", "additive", "forest"),
    "kmeans": ("rows",),
    "pca": ("rows",),
    "tuning": ("pure",),
}
_UNKNOWN = POLICIES["private-histogram"]["unknown bins"]
_TUNING = POLICIES["tuning"]["folds, people with two rows"]


def _of_seven() -> dict[str, dict[str, dict[str, Any]]]:
    return {
        method: {
            f"{name}, {unit}": changed(POLICIES[method][name], **_PEOPLE, dataset__unit=fields)
            for name in names
            for unit, fields in _UNITS.items()
        }
        for method, names in _OF_SEVEN.items()
    }


_ROUND: dict[str, Any] = {"type": "integer", "bounds": [0, 9999], "hierarchy": {"intervals": [2500]}}
_ALONE: dict[str, dict[str, dict[str, Any]]] = {
    "marginals": {
        "round numbers, seven rows": changed(
            POLICIES["marginals"]["adaptive"],
            **_PEOPLE,
            dataset__unit=_UNITS["seven rows"],
            columns__age=_ROUND,
            release__rounds=1,
        ),
    },
    "private-histogram": {
        "unknown bins, Gaussian": changed(_UNKNOWN, release__noise="gaussian"),
        "unknown bins, seven rows at a large epsilon": changed(
            _UNKNOWN, **_PEOPLE, dataset__unit=_UNITS["seven rows"], release__epsilon=8
        ),
        "unknown bins, replaced": changed(_UNKNOWN, dataset__unit={"adjacency": "replace-one"}),
        "sampled, seven rows": changed(
            POLICIES["private-histogram"]["sampled"], **_PEOPLE, dataset__unit=_UNITS["seven rows"]
        ),
    },
    "tuning": {
        "folds, pure": changed(_TUNING, release__delta=None),
        "folds, replaced": changed(_TUNING, dataset__unit={"adjacency": "replace-one"}),
    },
    "classifier": {
        "tree, replaced": changed(
            POLICIES["classifier"]["tree, people with two rows"], dataset__unit={"adjacency": "replace-one"}
        ),
    },
}
EXAMPLES: dict[str, dict[str, dict[str, Any]]] = {
    method: {**ways, **_of_seven().get(method, {}), **_ALONE.get(method, {})} for method, ways in POLICIES.items()
}
