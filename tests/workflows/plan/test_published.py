"""Columns as they will be published: made from the schema alone, and what the release then shows."""

from __future__ import annotations

from typing import Any

import pytest

from incrowd.engines.settings import open_table
from incrowd.workflows.plan.published import PublishedColumn, published_by, unpublished
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.profile.draft_columns import DraftColumn
from incrowd.workflows.profile.draft_policy import release_text
from incrowd.workflows.profile.draft_text import DraftGoal, DraftRequest
from tests.coins import SeededCoins
from tests.contract.examples import POLICIES, rows

COLUMNS: dict[str, Any] = {
    "id": {"role": "identifier"},
    "born": {
        "role": "quasi",
        "type": "date",
        "bounds": ["1920-01-01", "2019-12-31"],
        "hierarchy": {"dates": ["month", "year", "decade"]},
    },
    "cost": {
        "role": "sensitive",
        "type": "decimal",
        "bounds": [0, 1000],
        "hierarchy": {"intervals": [10, 100]},
    },
    "paid": {"role": "quasi", "type": "decimal", "hierarchy": {"intervals": [10, 100]}},
    "sex": {"role": "quasi", "categories": ["F", "M"]},
    "zip": {"role": "quasi", "hierarchy": {"prefix": [3, 2]}},
}


def policy(**release: Any) -> Policy:
    content = {"incrowd": 1, "dataset": {"name": "bills"}, "columns": COLUMNS, "release": release}
    return load_policy(content | {"budget": {"unbounded": "a test"}})


def column(name: str, **release: Any) -> PublishedColumn:
    read = policy(**release)
    return next(column for column in published_by(read) if column.name == name)


def safe(name: str, **levels: int) -> PublishedColumn:
    return column(name, method="safe", k=5, rate=1, levels={"zip": 1} | levels)


def test_each_level_of_a_date_has_three_labels_and_the_share_that_it_tells_apart() -> None:
    month, decade = safe("born", born=1), safe("born", born=3)
    assert month.examples == ("1936-09", "1970-01", "2003-05")
    assert decade.label_text == "1930s, 1970s, 2000s, …"
    assert (month.labels, month.values) == (1200, 36525)
    assert month.detail == "1,200 labels for 36,525 declared values (3.3 %)"
    assert not month.exact


def test_exact_numbers_are_flagged() -> None:
    assert safe("cost").flags == ("EXACT: published value by value", "0 and 1000 stand for all beyond, too")
    assert safe("cost", cost=1).flags == ()
    assert not safe("sex").exact


def test_one_label_is_flagged_as_telling_nothing() -> None:
    assert safe("sex", sex=1).flags == ("TELLS NOTHING: one label for all rows",)
    assert safe("sex", sex=1).share == 0


def test_labels_of_unlisted_levels_are_made_up_by_the_rule() -> None:
    assert safe("paid", paid=2).examples == ("[0, 100)", "[100, 200)", "[200, 300)")
    assert safe("zip").examples == ("123", "678", "ABC")


def test_levels_that_rows_may_raise_say_so_and_a_highest_level_keeps_a_column() -> None:
    chosen = {"method": "scheme", "choosing": "0.1", "delta": "1e-6", "epsilon": 1, "rate": "1/2"}
    assert "may become *" in column("born", **chosen, lowest={"born": 1, "zip": 1}).flags
    highest = {"born": 2}
    assert column("born", **chosen, lowest={"born": 1, "zip": 1}, highest=highest).flags == ()
    searched = column("born", method="full-domain", k=5, lowest={"zip": 1})
    assert searched.label_text.endswith(" or coarser")


def test_synthetic_numbers_are_said_to_be_drawn_within_their_class() -> None:
    cost = column("cost", method="marginals", epsilon=1, delta="1e-6", levels={"cost": 2, "zip": 3, "paid": 3})
    assert cost.label_text == "numbers drawn within [100, 200), [500, 600), [900, 1000), …"
    assert cost.flags == ()


def test_what_is_not_published_is_named() -> None:
    read = policy(method="private-histogram", columns=["sex"], epsilon=1)
    assert unpublished(read) == ("id", "born", "cost", "paid", "zip")


@pytest.mark.parametrize("method", ["safe", "suppressed-histogram", "private-histogram", "full-domain"])
def test_the_release_has_no_label_finer_than_what_was_shown(method: str) -> None:
    read = load_policy(next(iter(POLICIES[method].values())))
    output = read.plan.draw(open_table(rows(), read.schema, read.options), SeededCoins(3)).to_arrow()
    for published in published_by(read):
        hierarchy = read.schema[published.name].hierarchy
        if published.labels is not None and not published.coarser:
            labels = {*(hierarchy.labels(published.level) or ()), "other", None}
            assert {None if value is None else str(value) for value in output[published.name].to_pylist()} <= labels
            assert set(published.examples) <= labels


def test_a_classic_draft_never_publishes_a_sensitive_number_exactly() -> None:
    section = {**COLUMNS["cost"], "bounds": ["0", "1000"], "hierarchy": {"intervals": ["10", "100"]}}
    drafts = [DraftColumn("cost", section, "declared"), DraftColumn("sex", dict(COLUMNS["sex"]), "declared")]
    text, _ = release_text(drafts, DraftRequest(DraftGoal.CLASSIC))
    assert "levels: {cost: 1}" in text
