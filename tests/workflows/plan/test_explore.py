from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

import incrowd
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search.optimal import Progress
from incrowd.workflows.plan.explore import SearchRequest, explore
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.policies import PEOPLE, changed, people, with_ledger, written

SEARCHED = {"method": "full-domain", "k": 5, "suppression": "0.1", "lowest": {"zip": 1}}
LEVELS = {"sex": range(2), "age": range(4), "zip": range(1, 3)}


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    given = changed(PEOPLE, release=SEARCHED, budget={"unbounded": "invented rows"})
    return load_policy(written(with_ledger(given, tmp_path), tmp_path))


def suppressed(levels: dict[str, int], k: int) -> int:
    """Count by hand the rows in classes below k."""
    width = {0: 1, 1: 10, 2: 50, 3: 100}[levels["age"]]
    classes = Counter(
        (
            row["sex"] if levels["sex"] == 0 else "*",
            int(row["age"]) // width,
            row["zip"][: {1: 2, 2: 0}[levels["zip"]]],
        )
        for row in people().to_pylist()
    )
    return sum(size for size in classes.values() if size < k)


def test_minimal_levels_are_those_found_by_hand(policy: Policy) -> None:
    found = explore(people(), policy, SearchRequest(frontier=False))
    every = [dict(zip(LEVELS, node, strict=True)) for node in itertools.product(*LEVELS.values())]
    meeting = [levels for levels in every if suppressed(levels, 5) <= 60]
    finest = [
        levels
        for levels in meeting
        if not any(other != levels and all(other[n] <= levels[n] for n in levels) for other in meeting)
    ]
    assert sorted(each.levels.items() for each in found.minimal) == sorted(levels.items() for levels in finest)
    assert (found.rows, found.combinations) == (600, 16)
    assert found.by_k == found.by_suppression == ()


def test_the_best_levels_are_those_that_a_release_takes(policy: Policy) -> None:
    found = explore(people(), policy, SearchRequest(minimal=False, frontier=False)).best
    assert found.choice is not None
    assert found.choice.levels == incrowd.release(people(), policy).certificate.evidence["levels"]
    assert found.choice.suppressed == suppressed(dict(found.choice.levels), 5)
    assert found.gap == 0


def test_a_larger_k_never_loses_less_and_is_reached(policy: Policy) -> None:
    offers = explore(people(), policy, SearchRequest(minimal=False)).by_k
    assert offers[0].k == 5
    for offer in offers:
        assert offer.choice is not None
        assert offer.choice.smallest is not None
        assert offer.choice.smallest >= offer.k
    losses = [offer.choice.loss for offer in offers if offer.choice is not None]
    assert losses == sorted(losses)
    assert offers[-1].choice is not None
    assert offers[-1].choice.smallest == 600  # at the end everybody looks alike


def test_leaving_out_more_rows_never_loses_more(policy: Policy) -> None:
    offers = explore(people(), policy, SearchRequest(minimal=False)).by_suppression
    losses = [offer.choice.loss for offer in offers if offer.choice is not None]
    assert losses == sorted(losses, reverse=True)
    assert Fraction(1, 10) in [offer.suppression for offer in offers]
    for offer in offers:
        assert offer.choice is not None
        assert offer.choice.suppressed <= offer.suppression * 600


def test_a_search_that_is_stopped_says_by_how_much_it_could_be_beaten(policy: Policy) -> None:
    seen: list[Progress] = []

    def stop(progress: Progress) -> bool:
        seen.append(progress)
        return True

    found = explore(people(), policy, SearchRequest(minimal=False, frontier=False, watch=stop)).best
    assert len(seen) == 1
    assert found.choice is None
    assert found.gap == float("inf")


def test_the_ledger_records_the_look(policy: Policy) -> None:
    explore(people(), policy, SearchRequest(minimal=False, frontier=False))
    entries = Ledger.open(policy.ledger_address).entries()
    assert [entry.body["verb"] for entry in entries if entry.kind == "look"] == ["plan"]


def test_a_method_that_searches_no_levels_is_refused(tmp_path: Path) -> None:
    policy = load_policy(written(PEOPLE, tmp_path))
    with pytest.raises(InvalidParameter, match="write method: full-domain"):
        explore(people(), policy)
