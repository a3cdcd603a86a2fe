"""Population models: parameters recomputed with 25 digits from the equations, the sums written out term by term.

Pitman's model (Hoshino 2001): the two scores were solved by a two-dimensional Newton iteration from a shifted start.
The slide negative binomial model (Chen & Keller-McNulty 1998): likewise, and the probabilities of one and two rows were
also summed over all sizes of a class.
"""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.criteria.uniqueness.models import classes_of_population, fit_pitman, snb_uniques

FEW = ([1, 2, 3, 9, 30], [12, 4, 2, 1, 1], 1000)
MANY = ([1, 2, 3, 4, 5, 6, 10, 20, 50], [120, 40, 20, 12, 8, 5, 3, 2, 1], 20_000)
DENSE = ([1, 2, 3, 4], [50, 30, 15, 5], 400)
LONELY = ([1, 2, 3, 5, 8], [300, 60, 20, 6, 2], 1500)
Case = tuple[list[int], list[int], int]


@pytest.mark.parametrize(
    ("case", "theta", "alpha", "expected"),
    [
        (FEW, 1.47583083854284, 0.556131116620206, 60.055841620854),
        (MANY, 63.7178618978108, 0.360521411932334, 506.190537750355),
        (LONELY, 412.311970471687, 0.319692453005319, 528.474962546024),
    ],
)
def test_pitmans_model(case: Case, theta: float, alpha: float, expected: float) -> None:
    each, times, people = case
    found = fit_pitman(np.repeat(each, times))
    assert found is not None
    assert found.theta == pytest.approx(theta, rel=1e-11)
    assert found.alpha == pytest.approx(alpha, rel=1e-11)
    assert found.uniques(people) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("case", "classes", "expected"),
    [
        (FEW, 87.115800201, 47.4293921046),
        (MANY, 1392.26410039, 854.007607825),
        (DENSE, 138.10084648, 28.6762756919),
        (LONELY, 823.117154957, 532.615981103),
    ],
)
def test_the_slide_negative_binomial_model(case: Case, classes: float, expected: float) -> None:
    each, times, people = case
    sizes = np.repeat(each, times)
    assert classes_of_population(sizes, float(sizes.sum()) / people) == pytest.approx(classes, rel=1e-10)
    assert snb_uniques(sizes, people) == pytest.approx(expected, rel=1e-10)


def test_a_class_of_millions_leaves_the_number_of_classes_a_number() -> None:
    found = classes_of_population(np.array([1, 1, 2, 3, 5_000_000]), 0.05)
    assert 5 < found < 100
