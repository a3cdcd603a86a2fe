"""Local recoding: levels for most rows, others for the rest, so that few rare rows do not coarsen all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

from incrowd.core.cells import Cells
from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.step import Step, fold
from incrowd.core.table import Table
from incrowd.core.terms import Exposure
from incrowd.core.words import counted
from incrowd.criteria.demand import MINIMALITY
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.full_domain import FullDomain
from incrowd.methods.anonymity.search.lattice import LevelLimits
from incrowd.methods.anonymity.search.optimal import SearchLimits
from incrowd.methods.anonymity.search.rounds import Ground, Schedule, label, recode_in_rounds
from incrowd.methods.anonymity.shared.classes import ClassesPicture, check_of_cut
from incrowd.methods.anonymity.shared.demands import Demands, Sensitive, quasi_identifiers
from incrowd.methods.anonymity.shared.steps import Cut, CutWithoutSome, require_share
from incrowd.methods.shared.columns import row_limits
from incrowd.methods.shared.microdata import LocallyGeneralized

ROUNDS = Exposure(
    "rounds",
    "rounds: a row at coarser levels than others tells that its finer class was too small, so"
    " it stands for fewer people than its labels say",
)


@dataclass(frozen=True, kw_only=True)
class CutRounds(CutWithoutSome):
    """Each round shows some rows at its levels and leaves the others to the next; some may be left out at last.

    There are up to so many `rounds`; each takes the levels with the least loss that leave at most a share of `left`.
    """

    rounds: int
    left: Fraction

    @property
    def open_columns(self) -> tuple[str, ...]:
        return self.columns

    def __post_init__(self) -> None:
        super().__post_init__()
        require_share(self.left)
        if self.rounds < 1:
            raise InvalidParameter("there is at least one round.")

    @property
    def where(self) -> str:
        return (
            f"in up to {counted(self.rounds, 'round')} the levels with the least loss that leave at most a share of "
            f"{self.left} to the next"
        )

    @property
    def labels(self) -> str:
        return "hierarchy labels of several levels"

    @property
    def left_open(self) -> tuple[Exposure, ...]:
        """Which attacks the cut leaves open: that of every cut, and what rounds tell."""
        return (MINIMALITY, ROUNDS)


@dataclass(frozen=True)
class LocalRecoding(Method):
    """Generalization in rounds, each on the rows that the round before could not release, under k-anonymity or more.

    Guarantee: every combination of the quasi-identifiers in the output occurs at least k times; every class also meets
    whatever else is demanded of sensitive columns, held against the whole table; at most the share `suppression` of the
    rows is left out; and the loss is at most that of the best generalization of whole columns.  These are properties of
    the output's form.  Nothing else is guaranteed and there is no ε: the levels were found by looking at all rows, and
    sensitive columns stay as they are.

    Assumes: people can be looked up by the quasi-identifiers and by no other column; one row is one person, or the
    person column says whose it is.

    Source: Samarati 2001 for generalization by levels, Iyengar 2002 for the loss; rounds on what is suppressed are
    ARX's way of local recoding.  Rows of several rounds may show the same labels and are then one class.  Each of k,
    l (distinct, entropy or recursive), t, δ-disclosure and β-likeness holds for a union of classes that meet it, since
    shares in a union are means of shares, closeness is convex and entropy concave; all the same, the classes are
    counted again as they are shown.

    >>> LocalRecoding(5, l=3).demands.terms()
    {'k': 5, 'l': 3}
    """

    name: ClassVar[str] = "local-recoding"

    k: int
    l: int | None = None  # noqa: E741 (the name that everyone knows it by)
    entropy_l: Fraction | None = None
    t: Fraction | None = None
    sensitive: Mapping[str, Sensitive] = field(default_factory=dict)
    rounds: int = 100
    left: Fraction = Fraction(4, 5)
    suppression: Fraction = Fraction(0)
    importance: Mapping[str, Fraction] = field(default_factory=dict)
    lowest: Mapping[str, int] = field(default_factory=dict)
    highest: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    seconds: Fraction | None = None

    def __post_init__(self) -> None:
        self._whole_columns.demands.check()
        if self.rounds < 1:
            raise InvalidParameter("local recoding takes at least one round; with one, it generalizes whole columns.")
        if not 0 <= self.left < 1:
            raise InvalidParameter(
                "left is the share of its rows that a round may leave to the next: at least 0, below 1."
            )

    @property
    def demands(self) -> Demands:
        """What every class must meet."""
        return self._whole_columns.demands

    def cells(self, schema: Schema) -> Cells:
        """Return the tuples that are counted: quasi-identifiers at their lowest levels, the others as they stay."""
        return self._whole_columns.cells(schema)

    def plan(self, schema: Schema) -> Plan:
        """Guarantee a form, from the schema alone."""
        whole, steps = self._whole_columns.plan(schema), self.steps(schema)
        settings = {**whole.settings, "rounds": self.rounds, "left": self.left}
        guarantee, cells = fold(steps, schema.unit), self.cells(schema)
        return Plan(self.name, steps, guarantee, {}, self.release, self.k, settings, cells=cells)

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps: whose rows, which finest levels, which rounds, which order."""
        cut = CutRounds(
            **self.demands.demanded(schema), rounds=self.rounds, left=self.left, suppression=self.suppression
        )
        return tuple(cut if isinstance(step, Cut) else step for step in self._whole_columns.steps(schema))

    def release(self, table: Table, coins: Coins) -> LocallyGeneralized:
        """Count the rows of each tuple in one pass, and search the levels of each round on the counts."""
        schema = table.schema
        counts = table.engine.count(table.rows, self.cells(schema), *row_limits(table, coins))
        return self.recoded(counts, schema)

    def recoded(self, counts: Counts, schema: Schema) -> LocallyGeneralized:
        """Return the table at the levels of its rounds; without rows if no combination of levels meets the demands."""
        quasi, criteria = quasi_identifiers(schema), tuple(self.demands.criteria(schema))
        ground = Ground.of(counts, quasi, criteria, LevelLimits(self.lowest, self.highest), self.importance)
        patience = SearchLimits(math.inf if self.seconds is None else float(self.seconds))
        schedule = Schedule(self.rounds, self.left, self.suppression, patience)
        rounds = recode_in_rounds(ground, schedule)
        made = label(ground, rounds)
        if len(rounds) > 1 and not ground.holds(made.classes, made.outside):
            made = label(ground, recode_in_rounds(ground, replace(schedule, most=0)))
        return made.table(ground)

    @property
    def _whole_columns(self) -> FullDomain:
        """Return the generalization of whole columns that demands, and refuses, the same."""
        return FullDomain(
            self.k,
            self.l,
            self.entropy_l,
            self.t,
            sensitive=self.sensitive,
            suppression=self.suppression,
            importance=self.importance,
            lowest=self.lowest,
            highest=self.highest,
            levels=self.levels,
            seconds=self.seconds,
        )


CHECK = check_of_cut(CutRounds)
PICTURE = ClassesPicture()
METHOD = LocalRecoding
