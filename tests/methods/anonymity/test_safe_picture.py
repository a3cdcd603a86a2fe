"""Microdata beside the original rows: shares before and after, and how far they are apart."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.drawing.charts import Share, distance, share_bars
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.safe import BeforeAndAfter, shares_of
from tests.certificates import POLICY, counted, original, policy


@pytest.fixture(scope="module")
def counts() -> tuple[Counts, Counts]:
    everyone = counted(policy())
    return everyone.at_least(50), everyone


def test_shares_before_and_after_are_those_of_the_rows(counts: tuple[Counts, Counts]) -> None:
    released, everyone = counts
    shares = {share.label: share for share in shares_of(released, everyone, "sex")}
    women = sum(1 for sex in original()["sex"].to_pylist() if sex == "F")
    assert shares["F"].before == pytest.approx(women / 4000)
    after = [row["sex"] for row in released.expand().to_pylist()]
    assert shares["F"].after == pytest.approx(after.count("F") / len(after))


def test_shares_add_up_also_where_many_classes_are_taken_together() -> None:
    fine = policy(release=dict(POLICY["release"], levels={"diagnosis": 1, "age": 0}))
    everyone = counted(fine)
    shares = shares_of(everyone.at_least(8), everyone, "age")
    assert len(shares) == 24
    assert shares[-1].label == "(all others)"
    assert sum(share.before for share in shares) == pytest.approx(1.0)
    assert sum(share.after for share in shares) == pytest.approx(1.0)


def test_a_table_compared_with_itself_has_not_moved(counts: tuple[Counts, Counts]) -> None:
    assert distance(shares_of(counts[1], counts[1], "diagnosis")) == 0.0
    assert 0.0 < distance(shares_of(*counts, "age")) < 1.0


def test_other_columns_cannot_be_compared(counts: tuple[Counts, Counts]) -> None:
    released, everyone = counts
    with pytest.raises(InvalidParameter):
        BeforeAndAfter(released.marginal(["age"]), Cells.of(policy().schema, everyone.levels), Fraction(1, 10)).section(
            everyone
        )


def test_the_chart_shows_each_class_before_and_after(counts: tuple[Counts, Counts]) -> None:
    shares = shares_of(*counts, "sex")
    drawn = str(share_bars("sex", shares))
    assert drawn.count('class="before"') == drawn.count('class="bar"') == 3  # two classes and the legend
    for share in shares:
        assert f">{share.label}</text>" in drawn
        assert f">{100 * share.before:.1f} → {100 * share.after:.1f}\u00a0%</text>" in drawn


def test_a_bar_is_as_long_as_its_share() -> None:
    drawn = str(share_bars("sex", (Share("F", 0.5, 0.25), Share("M", 0.5, 0.75))))
    widths = [float(wide) for wide in re.findall(r'width="([\d.]+)%" height="9"', drawn)]
    assert widths == pytest.approx([widths[3] * share for share in (2 / 3, 1 / 3, 2 / 3, 1)], abs=0.02)


def test_a_chart_escapes_labels_and_shortens_long_ones() -> None:
    drawn = str(share_bars("<b>", (Share("<script>", 0.0, 0.0), Share("Straßenverkehrsunfall", 1.0, 1.0))))
    assert "<script>" not in drawn
    assert "<b>" not in drawn
    assert ">Straßenverkehrsu…</text>" in drawn
    assert ">Straßenverkehrsunfall</th>" in drawn
