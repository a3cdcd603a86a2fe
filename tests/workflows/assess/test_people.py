"""Where people are the unit of privacy, equivalence classes are counted in people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.engines.readers.sources import open_source
from incrowd.workflows.assess.assess import assess
from incrowd.workflows.assess.section import identity_lines
from incrowd.workflows.plan.explore import explore_rows, lattice_view
from incrowd.workflows.policy.policy import load_policy
from tests.policies import with_ledger

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "visites", "unit": {"column": "patient", "max_rows": 2}},
    "columns": {
        "patient": {"role": "identifier"},
        "sexe": {"role": "quasi", "categories": ["F", "M"]},
        "âge": {"role": "quasi", "type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [50]}},
    },
    "release": {"method": "full-domain", "k": 2},
    "budget": {"unbounded": "essai"},
}


def visits() -> pa.Table:
    """Return 18 visits of 15 women of 30, three of whom came twice; and one man who came twice, of 70."""
    people = [f"f{number}" for number in range(15)] + ["f0", "f1", "f2"] + ["m", "m"]
    sexes = ["F"] * 18 + ["M"] * 2
    return pa.table({"patient": people, "sexe": sexes, "âge": ["30"] * 18 + ["70"] * 2})


@pytest.mark.parametrize("labels", [("30", "70"), ("[0, 49]", "[50, 99]")])
def test_a_class_of_eighteen_rows_is_a_crowd_of_fifteen_people(labels: tuple[str, str], tmp_path: Path) -> None:
    policy = load_policy(with_ledger(POLICY, tmp_path))
    released = pa.table({"sexe": ["F"] * 18 + ["M"] * 2, "âge": [labels[0]] * 18 + [labels[1]] * 2})
    found = assess(open_source(released), open_source(visits()), policy)
    assert (found.rows, found.counted) == (20, "people")
    assert sorted(found.classes_before.counts) == [1, 15]
    assert found.classes_after is not None
    assert sorted(found.classes_after.counts) == [1, 15]
    assert found.smallest_crowd == 1
    for attacker in ("prosecutor", "journalist"):
        before, after = found.risks[attacker]
        assert (before.highest, after.highest) == (1.0, 1.0)
    assert found.risks["marketer"][1].average == pytest.approx((18 / 15 + 2 / 1) / 20)
    assert found.identity.special[0].rows == 1  # the man is unique, although two rows are his
    assert found.example is not None
    assert "2 released rows, of at least 1 people," in found.example.words


def test_of_a_part_of_the_rows_the_fewest_people_count_who_can_have_them(tmp_path: Path) -> None:
    policy = load_policy(with_ledger(POLICY, tmp_path))
    found = assess(open_source(pa.table({"sexe": ["F"] * 7, "âge": ["30"] * 7})), open_source(visits()), policy)
    assert found.classes_after is not None
    assert found.classes_after.counts.tolist() == [4]  # three people with two rows each, and one more
    assert found.smallest_crowd == 15


def test_the_lattice_counts_at_most_the_rows_of_a_person_that_a_release_uses(tmp_path: Path) -> None:
    """With one row a person, the man of two rows is alone, and the finest levels do not meet k = 2."""
    single = {**POLICY, "dataset": {"name": "visites", "unit": {"column": "patient", "max_rows": 1}}}
    policy = load_policy(with_ledger(single, tmp_path))
    view = lattice_view(policy, open_source(visits()))
    assert view.rows == 16
    assert [node.choice for node in view.nodes if node.rungs == (0, 0)] == [None]
    assert explore_rows(open_source(visits()), policy).rows == 16


def test_a_household_is_found_by_any_of_its_members(tmp_path: Path) -> None:
    """Foyer 1 has members in classes of 2 and 1, foyer 2 of 2 and 3, foyer 3 two of 3; nobody knows the last row's."""
    columns = {"foyer": {"role": "household"}, "sexe": POLICY["columns"]["sexe"], "âge": POLICY["columns"]["âge"]}
    policy = load_policy(with_ledger({**POLICY, "dataset": {"name": "foyers"}, "columns": columns}, tmp_path))
    data = pa.table(
        {
            "foyer": ["1", "1", "2", "2", "3", "3", None],
            "sexe": ["F", "M", "F", "M", "M", "M", "F"],
            "âge": ["30", "70", "30", "20", "20", "20", "99"],
        }
    )
    released = pa.table({"sexe": ["M"] * 3, "âge": ["20"] * 3})
    found = assess(open_source(released), open_source(data), policy)
    assert found.identity.households is not None
    risks = [1.0, 1 - 1 / 2 * 2 / 3, 1 - (2 / 3) ** 2]
    assert found.identity.households.value == pytest.approx(sum(risks) / 3)
    assert "household risk" in {name for name, *_ in identity_lines(found)}
