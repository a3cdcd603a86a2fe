"""The loss tree: exact, frozen, readable for good."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given

from incrowd.core import loss as module
from incrowd.core.loss import (
    TAGS,
    Approximate,
    Crowd,
    Grouped,
    Laplace,
    Loss,
    Pure,
    RobustlySampled,
    Sampled,
    Sequence,
    from_json,
    to_json,
)
from incrowd.errors import IncrowdError, InvalidParameter, UnknownLoss
from tests.losses import losses

GOLDEN = Path(__file__).parents[1] / "golden" / "losses.json"


@given(losses)
def test_every_loss_survives_json(loss: Loss) -> None:
    assert from_json(json.loads(json.dumps(to_json(loss)))) == loss


def test_every_class_of_loss_has_a_tag() -> None:
    assert set(TAGS.values()) == set(get_args(Loss))


def test_losses_still_mean_what_they_meant() -> None:
    for row in json.loads(GOLDEN.read_text(encoding="utf-8")):
        loss = from_json(row["json"])
        assert to_json(loss) == row["json"]
        assert repr(loss) == row["repr"]


def test_the_golden_file_covers_every_class() -> None:
    rows = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert {row["json"]["loss"] for row in rows} >= set(TAGS)


@pytest.mark.parametrize(
    "plain",
    [
        {"loss": "quantum", "epsilon": "1"},
        {"loss": None},
        {},
        {"loss": "pure"},
        {"loss": "pure", "epsilon": "1", "delta": "0"},
        {"loss": ["pure"], "epsilon": "1"},
    ],
)
def test_what_is_not_known_is_refused(plain: dict[str, object]) -> None:
    with pytest.raises(UnknownLoss):
        from_json(plain)


@pytest.mark.parametrize(
    "plain",
    [
        {"loss": "pure", "epsilon": 1.5},
        {"loss": "pure", "epsilon": "nan"},
        {"loss": "pure", "epsilon": "-1"},
        {"loss": "pure", "epsilon": "1/0"},
        {"loss": "crowd", "k": True, "epsilon": "0"},
        {"loss": "crowd", "k": "5", "epsilon": "0"},
        {"loss": "sampled", "rate": "1", "inner": {"loss": "crowd", "k": 5, "epsilon": "0"}, "sample": None},
        {"loss": "sampled", "rate": "1/2", "inner": "crowd", "sample": None},
        {"loss": "sequence", "parts": 3},
        {"loss": "profile", "points": []},
        {
            "loss": "robustly-sampled",
            "low": "1/10",
            "high": "1/5",
            "irregular": 0,
            "max_rate": "1",
            "sample": None,
            "inner": {"loss": "pure", "epsilon": "0"},
        },
    ],
)
def test_a_field_that_cannot_be_read_is_refused(plain: dict[str, object]) -> None:
    with pytest.raises(IncrowdError):
        from_json(plain)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Pure(Fraction(-1)),
        lambda: Approximate(Fraction(1), Fraction(2)),
        lambda: Crowd(0),
        lambda: Sampled(Fraction(1), Crowd(5)),
        lambda: Sampled(Fraction(0), Crowd(5)),
        lambda: Grouped(0, Pure(Fraction(1))),
        lambda: Laplace(Fraction(0)),
        lambda: Laplace(Fraction(1), 0),
        lambda: RobustlySampled(Fraction(1, 2), Fraction(1, 4), 0, Fraction(1), Crowd(5)),
        lambda: RobustlySampled(Fraction(1, 4), Fraction(1, 2), -1, Fraction(1), Crowd(5)),
    ],
)
def test_impossible_parameters_are_refused_on_construction(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        make()


def test_walking_finds_the_names_of_samples() -> None:
    loss = Sequence((Sampled(Fraction(1, 2), Crowd(5), "a"), Grouped(2, Sampled(Fraction(1, 2), Crowd(5), "b"))))
    assert module.samples_named(loss) == ("a", "b")
