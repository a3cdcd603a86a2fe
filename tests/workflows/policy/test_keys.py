"""One key has one meaning in every method of a policy, and what was left out is solved alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import (
    graph_method_names,
    linked_method_names,
    method_class,
    method_names,
    series_method_names,
)

KINDS: dict[str, Any] = {"epsilon": Fraction, "delta": Fraction, "rate": Fraction, "k": int, "rows": int}
TABLE: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "people"},
    "columns": {
        "age": {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [20]}},
        "sex": {"categories": ["F", "M"]},
    },
}
SAMPLED: dict[str, dict[str, Any]] = {
    "safe": {},
    "scheme": {"choosing": "1/10"},
    "partition": {"choosing": "1/10"},
    "slicing": {"groups": [["age"], ["sex"]]},
    "suppressed-histogram": {},
    "blended-histogram": {"noise_epsilon": 1},
    "points": {"columns": ["age"], "s": 5},
}
"""Every method with a crowd and a secret sample, with the keys of its own that it needs."""
GIVEN = {"epsilon": "2", "delta": "1e-6", "k": "30", "rate": "1/10"}


def hints(name: str) -> dict[str, Any]:
    cls = method_class(name)
    return {field.name: get_type_hints(cls)[field.name] for field in fields(cls)}


@pytest.mark.parametrize(
    "name", [*method_names(), *linked_method_names(), *series_method_names(), *graph_method_names()]
)
def test_a_key_holds_the_same_kind_of_value_in_every_method(name: str) -> None:
    keys = hints(name)
    assert not {"target", "level"} & set(keys)
    assert "rate" not in keys or "epsilon" in keys, "a rate is that of a secret sample"
    for key, kind in KINDS.items():
        assert keys.get(key, kind) in (kind, kind | None)
    assert keys.get("levels", Mapping[str, int]) == Mapping[str, int]
    columns = keys.get("columns", tuple[str, ...])
    assert get_args(columns)[0] is str
    assert get_origin(columns) in (tuple, Mapping)


def test_every_method_with_a_secret_sample_and_a_crowd_is_listed_here() -> None:
    crowds = {name for name in method_names() if {"epsilon", "delta", "k", "rate"} <= set(hints(name))}
    assert crowds == set(SAMPLED)


@pytest.mark.parametrize("method", SAMPLED)
@pytest.mark.parametrize("solved", ["epsilon", "k", "rate"])
def test_of_epsilon_k_and_rate_the_one_left_out_is_solved(method: str, solved: str) -> None:
    keys = {key: value for key, value in GIVEN.items() if key != solved}
    settings = load_policy({**TABLE, "release": {"method": method, **SAMPLED[method], **keys}}).plan.settings
    assert all(settings[key] is not None for key in GIVEN)
    for key in keys.keys() - {"epsilon"}:
        assert settings[key] == Fraction(keys[key])


@pytest.mark.parametrize("method", SAMPLED)
@pytest.mark.parametrize("left_out", [{"delta"}, {"epsilon", "k"}, {"k", "rate"}, set()])
def test_too_few_and_too_many_keys_are_refused_by_name(method: str, left_out: set[str]) -> None:
    keys = {key: value for key, value in GIVEN.items() if key not in left_out}
    policy = {**TABLE, "release": {"method": method, **SAMPLED[method], **keys}}
    with pytest.raises(InvalidParameter, match="delta"):
        load_policy(policy).plan.settings  # noqa: B018 - the plan is made here


@pytest.mark.parametrize("method", SAMPLED)
def test_a_target_is_refused_and_the_flat_keys_are_named(method: str) -> None:
    keys = {"target": {"epsilon": 1, "delta": "1e-6"}, "rate": "1/10"}
    with pytest.raises(InvalidParameter, match="Write epsilon and delta"):
        load_policy({**TABLE, "release": {"method": method, **SAMPLED[method], **keys}})
