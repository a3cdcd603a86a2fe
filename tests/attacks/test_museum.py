"""Every algorithm of the museum is broken by its attack, and the safe release of the same table is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from incrowd.attacks import attack_of
from incrowd.attacks.finding import AttackVerdict, Finding
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from tests.attacks.crowds import KNOWN, crowd, released
from tests.statistics.alarm import FALSE_ALARM

PEOPLE, OUTSIDERS = crowd(1500, 1), crowd(1500, 2)
INSIDER = Knowledge(PEOPLE, (*KNOWN, "worth"), "ill")
RICHEST = Knowledge(PEOPLE, KNOWN, "worth")


def duplicated(table: pa.Table, k: int) -> pa.Table:
    """k-duplication: publish every row k times."""
    return table.take(np.repeat(np.arange(table.num_rows), k))


def clustered(table: pa.Table, k: int) -> pa.Table:
    """Clustering with local recoding: put k neighbors together, publish the range that their numbers span."""
    worth = np.array(table.column("worth").to_pylist(), int)
    order, labels = np.lexsort([worth, np.array(table.column("zip").to_pylist())]), np.empty(len(worth), object)
    for start in range(0, len(order), k):
        group = order[start : start + k]
        labels[group] = f"[{worth[group].min()}, {worth[group].max()}]"
    return table.set_column(table.column_names.index("worth"), "worth", pa.array(labels.tolist()))


def sampled(table: pa.Table, rate: float) -> pa.Table:
    """δ-sampling: publish each row as it is, with a small chance."""
    return table.filter(pa.array(np.random.default_rng(3).random(table.num_rows) < rate))


BROKEN = {
    "k-duplication": ("linkage", INSIDER, duplicated(PEOPLE, 5)),
    "clustering": ("extremes", RICHEST, clustered(PEOPLE, 5)),
    "sampling": ("linkage", INSIDER, sampled(PEOPLE, 0.1)),
}


def sure(finding: Finding) -> Finding:
    return finding.at(1 - FALSE_ALARM)


@pytest.mark.parametrize("name", BROKEN)
def test_the_museum_is_broken(name: str) -> None:
    attack, knowledge, table = BROKEN[name]
    found = sure(attack_of(attack)(PublishedTable(table), knowledge, OUTSIDERS))
    assert found.verdict is AttackVerdict.LEAK
    assert found.success.low > found.control.high  # type: ignore[union-attr]
    assert found.story


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> PublishedTable:
    return released(PEOPLE, tmp_path_factory.mktemp("safe"))


@pytest.mark.parametrize(
    "attack",
    ["linkage", "homogeneity", "skewness", "learning", "inference", "linkability", "singling-out", "membership"],
)
@pytest.mark.parametrize("knowledge", [INSIDER], ids=["insider"])
def test_the_safe_release_is_not(safe: PublishedTable, attack: str, knowledge: Knowledge) -> None:
    found = sure(attack_of(attack)(safe, knowledge, OUTSIDERS))
    assert found.verdict is AttackVerdict.NOT_FOUND


def test_the_safe_release_shows_no_ends(safe: PublishedTable, tmp_path: Path) -> None:
    from incrowd.errors import InvalidParameter

    with pytest.raises(InvalidParameter, match="include their upper end"):
        attack_of("extremes")(safe, RICHEST, OUTSIDERS)


def test_mondrian_shows_ends_and_its_certificate_says_so(tmp_path: Path) -> None:
    published = released(
        PEOPLE,
        tmp_path,
        release={"method": "mondrian", "k": 5, "levels": {"zip": 1}},
        budget={"unbounded": "compared with other tools"},
    )
    assert sure(attack_of("extremes")(published, RICHEST, OUTSIDERS)).verdict is AttackVerdict.LEAK
