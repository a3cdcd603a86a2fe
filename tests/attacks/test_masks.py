"""Masked values are matched by distance: a mask that hides nothing never reads as safe, a strong one alarms nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import incrowd
from incrowd.attacks import attack_of
from incrowd.attacks.candidates import match
from incrowd.attacks.finding import AttackVerdict, Finding
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.masked import NearestSearch
from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.workflows.attack.publication import lookup_of, masks_of
from tests.attacks.crowds import table_of
from tests.attacks.households import NUMBERS, OUTSIDERS, PEOPLE, POLICY, STRANGERS, STRONG, WEAK
from tests.policies import with_ledger

ATTACKS = ("linkage", "homogeneity", "skewness", "learning", "inference")


def publish(release: dict[str, Any], rows: pa.Table, folder: Path, *, unknown: bool = False) -> PublishedTable:
    """Return what a mask publishes of people; the method is known by its steps, or unknown."""
    policy = incrowd.load_policy(with_ledger({**POLICY, "release": release}, folder))
    lookups = {column.name: lookup_of(column) for column in policy.schema.columns}
    return PublishedTable(table_of(policy, rows, 6), lookups, masks=None if unknown else masks_of(policy.plan.steps))


def run(name: str, published: PublishedTable, outsiders: pa.Table | None = OUTSIDERS) -> Finding:
    """Attack by age, income and sex; the secret is the rent."""
    return attack_of(name)(published, Knowledge(PEOPLE, ("âge", "revenu", "sexe"), "loyer"), outsiders)


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("mask", WEAK)
def test_linkage_finds_people_behind_every_weak_mask(mask: str, unknown: bool, tmp_path: Path) -> None:
    found = run("linkage", publish(WEAK[mask], PEOPLE, tmp_path, unknown=unknown))
    # Among 240 rows, ranks move by one place at least, which is further than the share of 1/400.
    assert found.success.estimate > (0.5 if mask == "rank-swap" else 0.85)
    assert found.verdict is AttackVerdict.LEAK


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_that_matches_sees_through_noise_near_zero(name: str, tmp_path: Path) -> None:
    found = run(name, publish(WEAK["noise"], PEOPLE, tmp_path))
    assert found.verdict is AttackVerdict.LEAK
    assert found.success.estimate > 0.5


def test_a_mask_that_changed_nothing_reads_as_the_table_itself() -> None:
    moved = dict.fromkeys(NUMBERS, Displacement(DistanceKind.DEVIATION, 1.0))
    for name in ("linkage", "homogeneity"):
        plain = run(name, PublishedTable(PEOPLE, masks={}))
        assert run(name, PublishedTable(PEOPLE, masks=moved)).success.hits >= plain.success.hits > 230


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("mask", STRONG)
def test_a_strong_mask_raises_no_alarm(mask: str, unknown: bool, tmp_path: Path) -> None:
    published = publish(STRONG[mask], PEOPLE, tmp_path, unknown=unknown)
    for name in ("linkage", "homogeneity", "inference"):
        found = run(name, published)
        assert found.verdict is AttackVerdict.NOT_FOUND
        assert found.gain.estimate < 0.05


@pytest.mark.parametrize("mask", ["noise", "orthogonal", "rank-swap", "rounding"])
def test_a_mask_of_other_people_betrays_nobody(mask: str, tmp_path: Path) -> None:
    for unknown in (False, True):
        published = publish(WEAK[mask], STRANGERS, tmp_path, unknown=unknown)
        for name in ("linkage", "homogeneity", "inference"):
            found = run(name, published)
            assert found.verdict is not AttackVerdict.LEAK
            assert abs(found.gain.estimate) < 0.06


def test_the_journalist_takes_the_person_of_the_list_who_is_nearest(tmp_path: Path) -> None:
    listed = Knowledge(PEOPLE, ("âge", "revenu", "sexe"), listed=True)
    found = attack_of("linkage")(publish(WEAK["noise"], PEOPLE, tmp_path), listed, OUTSIDERS)
    assert found.success.estimate > 0.85
    assert found.verdict is AttackVerdict.LEAK


def test_where_nothing_else_was_published_the_nearest_row_must_be_near(tmp_path: Path) -> None:
    published = publish(WEAK["noise"], PEOPLE, tmp_path)
    alone = PublishedTable(published.table.select(["âge", "revenu", "sexe"]), published.lookups, masks=published.masks)
    found = run("linkage", alone)
    assert found.success.estimate > 0.85
    assert found.control is not None
    assert found.control.estimate < 0.3


def test_the_nearest_rows_are_those_that_looking_at_every_pair_finds() -> None:
    chance = np.random.default_rng(4)
    rows = pa.table({"a": chance.normal(size=60), "b": chance.normal(size=60), "c": chance.choice(["x", "y"], 60)})
    people = pa.table({"a": chance.normal(size=25), "b": chance.normal(size=25), "c": chance.choice(["x", "y"], 25)})
    moved = {"a": Displacement(DistanceKind.NUMBER, 0.5), "b": Displacement(DistanceKind.NUMBER, 2.0)}
    search = NearestSearch.of(
        PublishedTable(rows, masks=moved), people, ("a", "b", "c"), Knowledge(people, ("a", "b", "c"))
    )
    places = {(row["a"], row["b"]): place for place, row in enumerate(rows.to_pylist())}
    chosen = search.agreement(np.arange(60))
    for person, row in zip(people.to_pylist(), chosen.tolist(), strict=True):
        near = min(
            (each for each in rows.to_pylist() if each["c"] == person["c"]),
            key=lambda each: ((each["a"] - person["a"]) / 0.5) ** 2 + ((each["b"] - person["b"]) / 2.0) ** 2,
        )
        assert row == places[near["a"], near["b"]]


def test_a_number_is_right_if_at_most_one_percent_of_the_people_are_nearer() -> None:
    people = pa.table({"a": [str(n) for n in range(1000)] + [""]})
    column = match(PublishedTable(pa.table({"a": [0.5, 2.5]})), people, "a")
    for guess, right in ((500.0, range(495, 506)), (500.02, range(495, 506)), (0.0, range(11)), (np.nan, ())):
        assert np.flatnonzero(column.fits_number(np.full(1001, guess))).tolist() == list(right)


def test_coarse_numbers_must_be_right_exactly() -> None:
    people = pa.table({"a": np.repeat(np.arange(10), 10)})
    column = match(PublishedTable(people), people, "a")
    for guess, right in ((5.0, 5), (5.02, 5), (5.9, 6)):
        assert set(np.flatnonzero(column.fits_number(np.full(100, guess))) // 10) == {right}


def test_attacks_that_cannot_judge_masked_values_say_so(tmp_path: Path) -> None:
    found = run("singling-out", publish(WEAK["noise"], PEOPLE, tmp_path))
    assert "does not show that the mask protects them" in " ".join(found.notes)


def test_a_secret_that_nobody_shares_is_learned_without_a_warning_of_the_library() -> None:
    """Warnings are errors in tests: scikit-learn warns of labels that are nearly all different."""
    assert run("learning", PublishedTable(PEOPLE.slice(0, 60), masks={})).success.of == 240


def test_membership_reads_masked_numbers_in_parts_and_tells_members_from_others() -> None:
    """Forty numbers of sixty people, moved a little: members pass the threshold of 5 % far more often than others."""
    chance = np.random.default_rng(3)
    names = [f"mesure {place}" for place in range(40)]

    def people(number: int) -> pa.Table:
        return pa.table({name: [f"{value:.4f}" for value in chance.normal(size=number)] for name in names})

    inside, outside, strangers = people(60), people(300), people(60)
    moved = dict.fromkeys(names, Displacement(DistanceKind.DEVIATION, 0.01))
    rates = []
    for rows in (inside, strangers):
        values = [np.asarray(rows.column(name).to_numpy(zero_copy_only=False), np.float64) for name in names]
        noisy = [[f"{value:.6f}" for value in column + chance.normal(0, 0.01, len(column))] for column in values]
        published = PublishedTable(pa.table(dict(zip(names, noisy, strict=True))), masks=moved)
        rates.append(attack_of("membership")(published, Knowledge(inside, tuple(names[:2]), names[-1]), outside))
    assert rates[0].success.estimate > 0.5
    assert rates[0].verdict is AttackVerdict.LEAK
    assert not rates[0].notes  # no masked value was compared as it stands
    assert rates[1].success.estimate < 0.2
    assert rates[1].verdict is AttackVerdict.NOT_FOUND
