"""Small multiples: common axes with their ends, bands, and gaps where a period is missing."""

from __future__ import annotations

import re

from incrowd.drawing.multiples import Multiple, multiples

LABELS = ("2025-01", "2025-02", "2025-03", "2025-04")


def test_charts_name_the_ends_of_both_axes() -> None:
    drawn = str(multiples("Wards", [Multiple("Ärzte", [(1, 5.0), (2, 9.0)]), Multiple("B", [(1, 1.0)])], 2.0, LABELS))
    assert drawn.count("2025-01") == drawn.count("2025-04") == 2
    assert drawn.count("up to 11") == 2


def test_a_line_is_not_drawn_across_a_missing_period_and_one_alone_has_an_interval() -> None:
    drawn = str(multiples("Wards", [Multiple("B", [(1, 5.0), (2, 6.0), (4, 7.0)])], 2.0, LABELS))
    assert len(re.findall("<polyline", drawn)) == 1
    (alone,) = re.findall(r'<line [^>]*class="alone"[^>]*>', drawn)
    assert 'x1="220.0"' in alone
    ends = [float(end) for end in re.findall(r'y[12]="([\d.]+)"', alone)]
    assert abs(ends[0] - ends[1] - 84 * 4 / 9) < 0.2  # 4 of the 9 between 0 and 7 + 2


def test_one_period_has_no_axis_of_periods() -> None:
    drawn = str(multiples("Wards", [Multiple("B", [(1, 5.0)])], 2.0, LABELS[:1]))
    assert "2025-01" not in drawn
