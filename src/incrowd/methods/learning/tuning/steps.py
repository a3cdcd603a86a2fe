"""Step of tuning: candidates are tried a random number of times, and only the best try is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.codec import encode
from incrowd.core.loss import BestRun, Pure, ZeroConcentrated
from incrowd.core.rounding import short
from incrowd.core.steps.counts import Law
from incrowd.core.steps.step import Step, StepGuarantee, inside, steps_of
from incrowd.core.terms import Assumption, Theorem
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.moves import gaussian_rho, squared_move, summed_move

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

BEST = Theorem(
    "best-of-random-runs",
    "Papernot & Steinke 2022, Theorem 2 and Corollary 3: the best of a random number of runs, of the logarithmic law",
)
SECRET = Assumption("runs-stay-secret", "how many runs there were, and how long they took, stays with the data holder")


@dataclass(frozen=True)
class TryModels(Step):
    """K times a candidate is drawn, learned and scored with noise; only the run with the best noisy score is kept.

    K is secret: P[K = k] = (1 − γ)^k / (k · ln(1/γ)).  The score is the number of rows whose class is predicted.  With
    `folds`, an own coin puts each row into one of them, rows are scored by a model of the other folds, and the model
    that is kept is learned from all rows.
    """

    kind: ClassVar[str] = "try models"
    title: ClassVar[str] = "Try models"

    gamma: Fraction
    noise: Law
    scale: Fraction
    candidates: tuple[tuple[Step, ...], ...]
    folds: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.gamma < 1 or self.scale <= 0 or not self.candidates:
            raise InvalidParameter(
                "a candidate at least is tried, with a gamma between 0 and 1 and noise on its score."
            )
        if self.folds is not None and self.folds < 2:
            raise InvalidParameter("rows are put into two folds at least.")

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        how = "by how many rows it gets right"
        if self.folds is not None:
            how = f"by how many rows models of the other folds get right, in {self.folds} folds"
        return (
            f"A secret random number of times, one of {counted(len(self.candidates), 'candidate')} is drawn, learned, "
            f"and scored {how}, with {self.noise} noise of scale {float(self.scale):.4g}; only the run with the best "
            "noisy score is kept, and of the others nothing."
        )

    @property
    def held(self) -> tuple[Step, ...]:
        """The steps of all candidates, one after the other."""
        return tuple(step for steps in self.candidates for step in steps)

    def fits(self, unit: Unit) -> int:
        """Return how many models of one run a unit has a part in, at most.

        A single row is in one fold, and has no part in the model that is learned from the others.
        """
        return 1 if self.folds is None else self.folds + (unit.max_rows > 1)

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what the best of a random number of runs costs, where each costs its models and its score."""
        if inner.loss is not None:
            raise InvalidParameter("nothing else is summed beside candidates that are tried.")
        each = [inside(steps, unit) for steps in self.candidates]
        reasons = dict.fromkeys((*(reason for part in each for reason in part.because), self.noise.source, BEST))
        assumes = frozenset({SECRET}).union(*(part.assumes for part in each))
        return StepGuarantee(
            BestRun(self.gamma, self._run([part.loss for part in each], unit)), tuple(reasons), assumes
        )

    def _run(self, losses: list[Any], unit: Unit) -> Pure | ZeroConcentrated:
        """Return what one run costs: the dearest candidate as often as a unit meets it, and the score."""
        fits = self.fits(unit)
        if self.noise is Law.LAPLACE and all(isinstance(loss, Pure) for loss in losses):
            return Pure(fits * max(loss.epsilon for loss in losses) + summed_move(unit, 1) / self.scale)
        if self.noise is Law.GAUSSIAN and all(isinstance(loss, ZeroConcentrated) for loss in losses):
            score = gaussian_rho(self.scale, squared_move(unit, 1, aligned=True))
            return ZeroConcentrated(fits * max(loss.rho for loss in losses) + score)
        raise InvalidParameter("candidates and their score have noise of one kind.")

    def to_json(self) -> dict[str, Any]:
        """Return the plain form: the steps of each candidate."""
        told = {"gamma": str(self.gamma), "noise": encode(self.noise), "scale": str(self.scale)}
        steps = [[step.to_json() for step in steps] for steps in self.candidates]
        return {"step": self.kind, **told, "candidates": steps, **({} if self.folds is None else {"folds": self.folds})}

    @classmethod
    def read(cls, plain: Mapping[str, Any], classes: Iterable[type[Step]]) -> TryModels | None:
        """Read what `to_json` wrote, with the steps that it holds."""
        known = tuple(each for each in classes if each is not cls)
        try:
            found = cls(
                Fraction(short(plain["gamma"])),
                Law(plain["noise"]),
                Fraction(short(plain["scale"])),
                tuple(steps_of(steps, known) for steps in plain["candidates"]),
                plain.get("folds"),
            )
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
            return None
        return found if found.to_json() == plain and type(plain.get("folds", 2)) is int else None
