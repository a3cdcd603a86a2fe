"""Copies and weak masks show who is in the data; strong masks and tables of other people do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from incrowd.attacks.candidates import match
from incrowd.attacks.finding import AttackVerdict
from incrowd.attacks.knowledge import PublishedTable
from incrowd.attacks.records.nearest import nearest_distances
from incrowd.errors import InvalidParameter
from tests.attacks.households import OUTSIDERS, PEOPLE, STRANGERS, STRONG, WEAK
from tests.attacks.test_masks import publish, run

ATTACKS = ("closest-record", "density-ratio")


@pytest.mark.parametrize("name", ATTACKS)
def test_a_copy_shows_everybody_in_it(name: str) -> None:
    found = run(name, PublishedTable(PEOPLE, masks={}))
    assert found.success.estimate > 0.95
    assert found.verdict is AttackVerdict.LEAK
    assert "concludes that the person is in the data" in found.story[-1]


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("mask", ["noise", "orthogonal", "rank-swap"])
def test_a_weak_mask_shows_who_is_in_the_data_and_a_strong_one_does_not(name: str, mask: str, tmp_path: Path) -> None:
    weak, strong = (run(name, publish(masks[mask], PEOPLE, tmp_path)) for masks in (WEAK, STRONG))
    assert weak.success.estimate > 0.8
    assert weak.verdict is AttackVerdict.LEAK
    assert strong.verdict is not AttackVerdict.LEAK


@pytest.mark.parametrize("name", ATTACKS)
def test_a_table_of_other_people_shows_nobody(name: str) -> None:
    found = run(name, PublishedTable(STRANGERS, masks={}))
    assert found.verdict is AttackVerdict.NOT_FOUND
    assert found.success.estimate < 0.2


@pytest.mark.parametrize("name", ATTACKS)
def test_without_a_control_group_nothing_is_claimed(name: str) -> None:
    for outsiders in (None, OUTSIDERS.slice(0, 59)):
        with pytest.raises(InvalidParameter, match="at least 60 people"):
            run(name, PublishedTable(PEOPLE), outsiders)


def test_distances_are_those_of_every_pair() -> None:
    chance = np.random.default_rng(5)
    rows, people = (
        pa.table({"a": chance.normal(size=size).round(3), "b": chance.choice(["x", "y"], size)}) for size in (40, 9)
    )
    columns = [match(PublishedTable(rows), people, name) for name in ("a", "b")]
    reach = np.ptp(np.concatenate([rows["a"].to_numpy(), people["a"].to_numpy()]))
    for person, near in zip(people.to_pylist(), nearest_distances(columns, 3), strict=True):
        pairs = {(row["a"], row["b"]) for row in rows.to_pylist()}
        far = sorted(abs(a - person["a"]) / reach + (b != person["b"]) for a, b in pairs)
        assert near == pytest.approx(far[:3])
