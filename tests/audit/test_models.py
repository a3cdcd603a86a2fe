"""Models with real coins: no output proves more than the claim, and noise that is too small is caught.

Two audits, both through the public interface.  *Neighbors*: every value of a column is a cell of its own in each table
that is measured, with noise of its own; so one release shows thousands of outputs about one person, and another one
those about a table without that person.  *Members*: of thousands of people, each alone in a cell, a coin each says who
is in the data; somebody who has the model, or rows drawn from it, says who.  Alone in a cell a person moves what is
measured as far as anybody can.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import incrowd
from incrowd.attacks.audit import one_run
from incrowd.noise.system import SystemCoins
from incrowd.workflows.release.tables import Synthesized
from tests.audit.auditing import Trials, proved_epsilon, sure_epsilon
from tests.statistics.alarm import FALSE_ALARM

METHODS = ("marginals", "tree")
CELLS, ROWS = {"marginals": 10_000, "tree": 6000}, 3
EPSILON, DELTA = 1, "0.1"
PEOPLE, OTHERS, GUESSES = 4000, 5, 2000
CLAIM, RARELY = 4, "1e-12"
SURE = 1 - FALSE_ALARM / 2
LAW = SystemCoins.gaussian


def made(method: str, target: tuple[int, str], rows: pa.Table, folder: Path, drawn: int = 10) -> Synthesized:
    """Release a model of women in places, of whom as many are drawn as is said.

    A constraint names the places, so that rare ones are not taken together: each stays a cell of its own.
    """
    places = sorted(set(rows["place"].to_pylist()) | {f"{n:05d}" for n in range(PEOPLE)})
    folder.mkdir(parents=True)
    policy: dict[str, Any] = {
        "incrowd": 1,
        "dataset": {"name": "audit"},
        "columns": {
            "place": {"categories": places, "missing": "drop", "outside": "drop"},
            "sex": {"categories": ["F", "M"], "missing": "drop", "outside": "drop"},
        },
        "release": {
            "method": method,
            **dict(zip(("epsilon", "delta"), target, strict=True)),
            "levels": {"place": 0},
            "rounds": 1,
            "rows": drawn,
            "constraints": [{"never": {"place": places[0], "sex": "M"}}],
        },
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    return incrowd.synthesize(rows, policy)


def women(places: list[int]) -> pa.Table:
    return pa.table({"place": [f"{n:05d}" for n in places], "sex": ["F"] * len(places)})


def quieten(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let noise be so many times smaller than it is said to be."""

    def gaussian(self: SystemCoins, scale: Fraction, size: int) -> NDArray[np.int64]:
        return LAW(self, scale / times, size)

    monkeypatch.setattr(SystemCoins, "gaussian", gaussian)


def likelihoods(method: str, rows: int, folder: Path) -> tuple[NDArray[np.float64], tuple[float, ...]]:
    """Return how much what was measured speaks for one more woman in each place, and the scales of the noise in it."""
    found = made(method, (EPSILON, DELTA), women([*range(CELLS[method])] * rows), folder).result.search
    assert found is not None
    tables = [each for each in found.fit.measured if 0 in each.columns and math.isfinite(each.scale)]
    counts = [each.counts if each.columns == (0,) else each.counts[:, 0] for each in tables]
    scores = [(count - ROWS) / each.scale**2 for count, each in zip(counts, tables, strict=True)]
    return np.sum(scores, axis=0), tuple(each.scale for each in tables)


def neighbors(method: str, times: int, folder: Path) -> tuple[float, float]:
    """Return the ε that one event proves, and the one that it surely proves where noise is so many times smaller.

    The event is a score from a threshold on, which is the most telling one by what is public: the scales of the noise.
    """
    (more, scales), (less, _) = (likelihoods(method, rows, folder / str(rows)) for rows in (ROWS + 1, ROWS))
    shift = sum(1 / scale**2 for scale in scales)
    law, cells = score_law(scales, times), len(more)
    surely, threshold = max((_surely(law, shift, each, cells), each) for each in shift * np.linspace(0.5, 2.5, 21))
    seen = [Trials(int((scores >= threshold).sum()), cells) for scores in (more, less)]
    return proved_epsilon(seen[0], seen[1], float(DELTA)), surely


def score_law(scales: tuple[float, ...], times: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the scores that integer Gaussian noise of such scales, so many times smaller, makes, and their chances."""
    scores, chances = np.zeros(1), np.ones(1)
    for scale in scales:
        steps = np.arange(-math.ceil(12 * scale / times), math.ceil(12 * scale / times) + 1)
        law = np.exp(-(steps**2) / (2 * (scale / times) ** 2))
        scores = np.add.outer(scores, steps / scale**2).ravel()
        chances = np.multiply.outer(chances, law / law.sum()).ravel()
    return scores, chances


def _surely(law: tuple[NDArray[np.float64], NDArray[np.float64]], shift: float, threshold: float, cells: int) -> float:
    chances = [float(law[1][law[0] + moved >= threshold].sum()) for moved in (shift, 0.0)]
    return sure_epsilon((chances[0], chances[1]), cells, float(DELTA))


@pytest.mark.parametrize("method", METHODS)
def test_neighbors_prove_no_more_than_the_claim(method: str, tmp_path: Path) -> None:
    assert neighbors(method, 1, tmp_path)[0] <= EPSILON


@pytest.mark.parametrize(("method", "times"), [("marginals", 2), ("tree", 3)])
def test_noise_that_is_too_small_is_caught(
    method: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree spends half of its budget on what the event reads, so that half of its noise takes more cells to see."""
    quieten(monkeypatch, times)
    proved, surely = neighbors(method, times, tmp_path)
    assert surely > EPSILON, "the audit could miss it"
    assert proved > EPSILON


def members(method: str, folder: Path) -> dict[str, int]:
    """Return how many of those about whom somebody is most sure are guessed right, from the model and from rows."""
    inside = SystemCoins().below(2, PEOPLE).astype(bool)
    rows = women([*range(PEOPLE)] * OTHERS + np.flatnonzero(inside).tolist())
    found = made(method, (CLAIM, RARELY), rows, folder, drawn=20 * PEOPLE)
    table = found.model.model.table((0, 1))
    assert table is not None
    drawn = found.result.to_arrow()
    women_drawn = drawn.filter(pc.equal(drawn["sex"].cast(pa.string()), "F"))["place"].to_pylist()
    counts = np.bincount([int(place) for place in women_drawn], minlength=PEOPLE)
    right = {}
    for name, score in (("model", table[:, 0]), ("rows", counts)):
        order = np.argsort(score, kind="stable")
        low, high = order[: GUESSES // 2], order[-GUESSES // 2 :]
        right[name] = int(np.count_nonzero(~inside[low]) + np.count_nonzero(inside[high]))
    return right


@pytest.mark.parametrize("method", METHODS)
def test_whoever_has_the_model_or_rows_finds_no_more_members_than_the_claim_allows(method: str, tmp_path: Path) -> None:
    for right in members(method, tmp_path / "audit").values():
        assert one_run(PEOPLE, GUESSES, right, float(RARELY), SURE) <= CLAIM


@pytest.mark.parametrize("method", METHODS)
def test_members_give_noise_away_that_is_far_too_small(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a sixteenth of the noise a member is six standard deviations away: one guess in 10^5 is wrong, at most.

    From 1,993 right guesses on, the claim is refuted.
    """
    assert one_run(PEOPLE, GUESSES, 1993, float(RARELY), SURE) > CLAIM
    assert binom.sf(7, GUESSES, 1e-5) < FALSE_ALARM / 4
    quieten(monkeypatch, 16)
    for right in members(method, tmp_path / "audit").values():
        assert one_run(PEOPLE, GUESSES, right, float(RARELY), SURE) > CLAIM
