"""No number of a policy makes a plan run for long: each has a public limit, and what exceeds it is refused at once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.workflows.policy.file import json_schema
from incrowd.workflows.policy.limits import LIMITS, limit_of
from incrowd.workflows.policy.policy import load_policy
from tests.contract.examples import POLICIES
from tests.policies import PEOPLE, changed

_PERSON = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id"}}


def numbers(section: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the whole numbers that a section of the JSON Schema takes, by their keys."""
    found = {key: list(_integers(about)) for key, about in section.get("properties", {}).items()}
    return {key: each for key, each in found.items() if each}


def _integers(about: Any) -> Any:
    if isinstance(about, dict):
        if about.get("type") == "integer":
            yield about
        for inner in about.values():
            yield from _integers(inner)
    elif isinstance(about, list):
        for inner in about:
            yield from _integers(inner)


def test_every_whole_number_of_a_policy_has_a_limit_that_the_schema_tells() -> None:
    schema = json_schema()
    sections = [schema, *schema["$defs"].values(), *schema["properties"]["release"]["anyOf"]]
    found = [(key, each["maximum"]) for section in sections for key, all_ in numbers(section).items() for each in all_]
    assert len(found) > 30
    assert {key for key, _ in found} >= LIMITS.keys()


@pytest.mark.parametrize("method", POLICIES)
@pytest.mark.parametrize("huge", ["1e22", "1e300"])
def test_a_huge_number_is_refused_at_once(method: str, huge: str) -> None:
    policy = next(iter(POLICIES[method].values()))
    for key in LIMITS:
        place = policy["release"].get(key)
        if (place is None and key not in ("k", "max_rows")) or isinstance(place, list):
            continue
        wrong = dict.fromkeys(place, huge) if isinstance(place, dict) else huge
        with pytest.raises(InvalidParameter, match=f"can be at most {limit_of(key):,}|is not known here"):
            load_policy(changed(policy, **{f"release__{key}": wrong}))


def test_rows_of_a_person_have_a_limit_wherever_they_are_told() -> None:
    for huge in ("1001", "1e30"):
        with pytest.raises(InvalidParameter, match="can be at most 1,000"):
            load_policy(changed(PEOPLE, **_PERSON, dataset__unit__max_rows=huge))


@pytest.mark.parametrize(
    "changes",
    [
        {"release__k": LIMITS["k"], "release__epsilon": None},
        {"release__k": LIMITS["k"], "release__rate": None},
        {"release__epsilon": "1e30"},
        {"release__delta": "1e-300"},
        {"release__rate": "1e-300"},
        {"release__epsilon": "1e-30"},
    ],
)
def test_numbers_at_their_limits_are_planned_or_refused_in_bounded_work(changes: dict[str, Any]) -> None:
    """Some were computed for minutes; they would be again, and this test with them."""
    with suppress(IncrowdError):
        assert load_policy(changed(PEOPLE, **changes)).plan.claims
