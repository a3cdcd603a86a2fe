"""Workload: a set of counting queries that is answered from fewer noisy tables of counts, by least squares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from incrowd.core.steps.step import Step, StepGuarantee, inside, steps_of
from incrowd.core.terms import Assumption, Theorem
from incrowd.core.unit import Unit
from incrowd.core.words import counted, listed
from incrowd.errors import InvalidParameter
from incrowd.queries.measuring.statistics import Of
from incrowd.queries.steps.noise import AddUp, GaussianNoise, LaplaceNoise, NumberInGroup
from incrowd.queries.steps.query import BoundContribution, OneGroup, Understand, together

LEAST_SQUARES = Theorem(
    "least-squares", "post-processing (least squares solutions are computed from the noisy counts alone)"
)
_COUNT = (NumberInGroup(Of.ROWS, 1),)


@dataclass(frozen=True)
class CountBlocks(Step):
    """The cells of a declared domain are counted in disjoint blocks.

    `atoms` is the number of sets of cells that no query tells apart.  A block is `size` of them, one after the
    other; or, where there is no size, what one group of one of these `questions` counts, of which no two count the same
    cell.  A cell is in one block at most: so one row counts once.
    """

    kind: ClassVar[str] = "count blocks"
    title: ClassVar[str] = "Count blocks"

    cells: int
    atoms: int
    blocks: int
    size: int | None = None
    questions: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if (self.size is None) == (self.questions is None) or not self.blocks >= 1 or not 1 <= self.atoms <= self.cells:
            raise InvalidParameter("blocks are so many neighbors each, or what disjoint queries count.")
        if self.size is not None and not (1 <= self.size <= self.atoms and self.blocks == -(-self.atoms // self.size)):
            raise InvalidParameter("there is another number of blocks of this size.")
        own = self.questions
        if own is not None and (len(set(own)) < max(1, len(own)) or min(own) < 0):
            raise InvalidParameter("blocks are those of some queries, each once.")

    @property
    def sentence(self) -> str:
        if self.size is None:
            how = f"as {counted(len(self.questions or ()), 'query')} of the set that count no cell twice do"
        else:
            apart = f"the {self.atoms:,} parts of the domain that the queries tell apart"
            how = f"by {apart}" if self.size == 1 else f"by {self.size:,} at a time of {apart}"
        return f"Rows are counted in {counted(self.blocks, 'block')}, {how}; each row in one block at most."


@dataclass(frozen=True)
class CountGroups(Step):
    """All groups that the declarations allow are counted; a row is in one of them at most."""

    kind: ClassVar[str] = "count groups"
    title: ClassVar[str] = "Count groups"

    by: tuple[str, ...]
    groups: int

    @property
    def sentence(self) -> str:
        return f"Rows are counted in all {self.groups:,} groups that the declarations allow, empty ones too."


@dataclass(frozen=True)
class AnswerSet(Step):
    """Counting queries, by their places in the batch, and the noisy tables of counts that answer all of them."""

    kind: ClassVar[str] = "workload"
    title: ClassVar[str] = "A set of queries"

    places: tuple[int, ...]
    questions: tuple[tuple[Step, ...], ...]
    parts: tuple[tuple[Step, ...], ...]

    @property
    def sentence(self) -> str:
        queries, tables = counted(len(self.questions), "counting query"), counted(len(self.parts), "noisy table")
        which = f"answer{'s' if len(self.places) > 1 else ''} {listed(_runs(self.places))}"
        how = "these are least squares solutions, computed from the noisy counts alone"
        return f"{queries} ({which}) are answered together from {tables} of counts; {how}."

    @property
    def held(self) -> tuple[Step, ...]:
        return tuple(step for steps in (*self.parts, *self.questions) for step in steps)

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Add up what the tables cost: a row counts once in each of them; the answers cost nothing more."""
        alike = len(self.places) == len(self.questions) > 0 and list(self.places) == sorted(set(self.places))
        if inner.loss is not None or not alike or not self.parts or not all(map(_is_table, self.parts)):
            raise InvalidParameter("a set of queries is answered from noisy tables of counts, and stands alone.")
        guarantees = [inside(steps, unit) for steps in self.parts]
        losses = tuple(part.loss for part in guarantees if part.loss is not None)
        if len(losses) < len(guarantees) or any(inside(steps, unit).loss is not None for steps in self.questions):
            raise InvalidParameter("noise is added to the tables of a set of queries, and nowhere else.")
        reasons = dict.fromkeys(theorem for part in guarantees for theorem in part.because)
        assumes = frozenset[Assumption]().union(*(part.assumes for part in guarantees))
        return StepGuarantee(together(losses), (*reasons, LEAST_SQUARES), assumes)

    def to_json(self) -> dict[str, Any]:
        held = {name: [[step.to_json() for step in steps] for steps in getattr(self, name)] for name in _HELD}
        return {"step": self.kind, "places": list(self.places), **held}

    @classmethod
    def read(cls, plain: Mapping[str, Any], classes: Iterable[type[Step]]) -> AnswerSet | None:
        lists = [plain.get(name) for name in ("places", *_HELD)]
        if set(plain) != {"step", "places", *_HELD} or not all(isinstance(plain_list, list) for plain_list in lists):
            return None
        if not all(type(place) is int and place >= 0 for place in plain["places"]):
            return None
        step_classes = tuple(classes)
        held = {name: tuple(steps_of(steps, step_classes) for steps in plain[name]) for name in _HELD}
        return cls(tuple(plain["places"]), **held)


_HELD = ("questions", "parts")


def _runs(places: tuple[int, ...]) -> list[str]:
    """Return the numbers of places, counted from 1, those that follow each other as a range.

    >>> _runs((0, 1, 2, 5))
    ['1 to 3', '6']
    """
    runs: list[list[int]] = []
    for place in sorted(places):
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return [f"{run[0] + 1} to {run[-1] + 1}" if len(run) > 1 else f"{run[0] + 1}" for run in runs]


def _is_table(steps: tuple[Step, ...]) -> bool:
    """Return whether steps count rows in disjoint groups, each row once, and add noise to the counts."""
    match steps:
        case (Understand(), BoundContribution(), CountGroups() | OneGroup() | CountBlocks(), AddUp() as sums, last):
            return type(last) in (LaplaceNoise, GaussianNoise) and sums.statistics == _COUNT
    return False


def each_query(queries: Sequence[tuple[Step, ...]]) -> tuple[tuple[Step, ...], ...]:
    """Return the steps of each query in the order in which they were asked: sets know their places."""
    sets = [steps[0] for steps in queries if isinstance(steps[0], AnswerSet)]
    alone = [steps for steps in queries if not isinstance(steps[0], AnswerSet)]
    by_place = {place: steps for group in sets for place, steps in zip(group.places, group.questions, strict=True)}
    free = (place for place in range(len(by_place) + len(alone)) if place not in by_place)
    by_place |= dict(zip(free, alone, strict=False))
    return tuple(by_place[place] for place in sorted(by_place))
