"""Scheme: a safe release whose levels the rows themselves choose, under differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import ClassVar

from incrowd.core.cells import Cells
from incrowd.core.claims.privacy import Anonymity, ApproximatePrivacy, Pseudonymity
from incrowd.core.coins import Coins
from incrowd.core.domain import Text
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.choices import RecodingChoice, SuppressChosen
from incrowd.core.steps.rows import KeepRows, Order, Recode, keep_rows, recoded
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import Step, fold
from incrowd.core.table import Table
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.core.unit import Adjacency, Unit
from incrowd.core.words import counted, listed
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.selection import MonotoneNoisyMax, NoisyMax
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.anonymity.shared.classes import MicrodataCheck, MicrodataPicture, least_width
from incrowd.methods.anonymity.shared.scores import DETAIL, ExpectedRows, expected_rows, scores
from incrowd.methods.shared.columns import row_limits
from incrowd.methods.shared.microdata import ChosenMicrodata
from incrowd.methods.shared.sampling import Parameters, Target, priced_plan, solve_behind
from incrowd.verifier.check import Problem, maybe, one


@dataclass(frozen=True)
class ChooseLevels(RecodingChoice):
    """A private selection weighs every combination of levels by what it would keep of all rows."""

    kind: ClassVar[str] = "choose levels"
    title: ClassVar[str] = "Choose levels privately"
    because: ClassVar[Theorem] = Theorem(
        "private-choice-of-levels",
        "levels chosen by an epsilon-private selection, then sampled suppression with fresh randomness"
        " at those levels: adaptive composition",
    )
    blind: ClassVar[Assumption] = Assumption(
        "candidates-chosen-without-rows",
        "the candidate levels, the recoding rules and the parameters were chosen without looking at the rows",
    )
    moved: ClassVar[Condition] = Condition(
        "recoding-sensitivity", "one row moves the worth of every recoding by at most the stated sensitivity"
    )
    fresh: ClassVar[Condition] = Condition(
        "fresh-coins-after-choice", "the released sample has randomness of its own, not that of the choice"
    )
    left_open: ClassVar[Exposure] = Exposure(
        "no-blending-after-choice",
        "crowd-blending is not claimed: who is in which crowd depends on a choice that read the rows",
    )

    candidates: int
    sensitivity: int
    importance: Mapping[str, Fraction] | None = None

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        more = sorted(name for name, weight in (self.importance or {}).items() if weight > 1)
        weighed = f" Details of {listed(more)} count for more than others." if more else ""
        return (
            f"One of {counted(self.candidates, 'combination')} of levels is taken. A private selection with an ε of "
            f"{self.epsilon} chooses it; it reads all rows.{weighed}"
        )


@dataclass(frozen=True)
class OrderChosen(Order):
    """Rows at chosen levels are published in the order of their values."""

    kind: ClassVar[str] = "order by chosen levels"


_MOST = 20_000  # candidates of a private choice: each is counted, and more make the choice noisier
_HEAVIEST = 1000
_DETAIL = 2**12  # how finely the details of a row are counted; written again, so that the check trusts no algorithm


@dataclass(frozen=True)
class Scheme(Method):
    """Safe microdata at levels that were chosen for this table, by a selection that is private itself.

    Guarantee: (ε, δ)-differential privacy, ε being what the private choice of levels and the sampled suppression cost
    together, at most `epsilon` where that is given; k-anonymity of the output.  No crowd-blending: the crowds hang on a
    choice that read the rows.

    Assumes: the coins stay secret; the candidate levels and all parameters were chosen without looking at the rows; one
    row is one person, or the person column says whose it is; all releases about these people go through one ledger.

    Source: Li, Qardaji & Su 2010, §4, with the cost of the choice added; McKenna & Sheldon 2020 for the choice.

    Proof.  For every fixed choice g the second stage is (ε₂, δ)-private, with coins of its own.  Let the choice be
    ε₁-private.  For a set S of pairs (g, output), P[(g, o) ∈ S] = Σ_g P[g]·P[o ∈ S_g] ≤ δ + Σ_g P[g]·min(1, e^ε₂·P′[o ∈
    S_g]) ≤ δ + e^(ε₁+ε₂)·P′[S]; δ is paid once, outside.  The choice reads all rows, not the sample that is released:
    a choice made on that sample would be tied to the counts it exposes.  Its score, the worth of a recoding, is moved
    by one row by at most DETAIL·most and by all rows in the same direction (`score`).  `importance` shares out DETAIL
    among the columns by public weights that sum to one, and changes no bound.  ∎

    >>> scheme = Scheme(Fraction(1, 10), epsilon=Fraction(1), delta=Fraction(1, 10**6), rate=Fraction(1, 10))
    >>> scheme.parameters(Unit()).k
    8
    """

    name: ClassVar[str] = "scheme"

    choosing: Fraction
    delta: Fraction
    epsilon: Fraction | None = None
    rate: Fraction | None = None
    k: int | None = None
    lowest: Mapping[str, int] = field(default_factory=dict)
    highest: Mapping[str, int] = field(default_factory=dict)
    weights: bool = False
    importance: Mapping[str, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.choosing <= 0:
            raise InvalidParameter("choosing: the levels costs an epsilon above 0, such as 0.1.")
        if self.rate == 1:
            raise InvalidParameter("method scheme needs a secret sample: give a rate below 1.")
        if any(not 0 < weight <= _HEAVIEST for weight in self.importance.values()):
            raise InvalidParameter(f"the importance of a column is above 0 and at most {_HEAVIEST}: 1 by default.")
        self._safe({})

    def parameters(self, unit: Unit) -> Parameters:
        """Return k, rate, ε and δ of the release at the chosen levels; with the choice it costs `epsilon` at most."""
        return solve_behind(self.choosing, self.k, self.rate, Target(self.delta, self.epsilon), unit)

    def choices(self, schema: Schema) -> dict[str, range]:
        """Return for each released column the levels that may be chosen, known from the schema alone."""
        released = {column.name: column for column in schema.released}
        for name in (*self.lowest, *self.highest, *self.importance):
            if name not in released:
                raise InvalidParameter(f"there are no levels to choose for {name!r}: it is not a released column.")
        choices = {}
        for name, column in released.items():
            least = 1 if column.pseudonymous or isinstance(column.domain, Text) else 0
            low, high = self.lowest.get(name, least), self.highest.get(name, column.hierarchy.height)
            if not least <= low <= high <= column.hierarchy.height:
                raise InvalidParameter(
                    f"the levels of {name!r} run from {least} to {column.hierarchy.height}, and lowest is not above "
                    "highest."
                )
            choices[name] = range(low, high + 1)
        candidates = math.prod(map(len, choices.values()))
        if candidates > _MOST:
            raise InvalidParameter(
                f"{candidates:,} combinations of levels would have to be weighed, and {_MOST:,} are the most. Narrow "
                "them with lowest: and highest:."
            )
        return choices

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone; what was drafted from rows leaves nothing but k-anonymity."""
        unit, candidates = schema.unit, math.prod(map(len, self.choices(schema).values()))
        parameters, steps = self.parameters(unit), self.steps(schema)
        settings = {"choosing": self.choosing, "candidates": candidates, "k": parameters.k}
        guarantee, cells = fold(steps, unit, parameters.delta), self._finest(schema)
        plan = Plan(self.name, steps, guarantee, {}, self.release, parameters.k, settings, cells=cells)
        return priced_plan(plan, parameters)

    def _finest(self, schema: Schema) -> Cells:
        """Return the cells that are counted: at the lowest levels among which it chooses."""
        return Cells.of(schema, {name: levels[0] for name, levels in self.choices(schema).items()})

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps: the choice, then those of a safe release, whose levels are told by the labels."""
        unit, choices = schema.unit, self.choices(schema)
        parameters = self.parameters(unit)
        cells = self._safe({name: levels[0] for name, levels in choices.items()}).cells(schema)
        return (
            ChooseLevels(
                self.choosing,
                math.prod(map(len, choices.values())),
                self._selection(unit).sensitivity,
                dict(self.importance) or None,
            ),
            *keep_rows(unit),
            SecretSample(parameters.rate),
            Recode(tuple(recoded(recoding, choices[recoding.column.name][-1]) for recoding in cells.recodings)),
            SuppressChosen(parameters.k),
            OrderChosen(self.weights),
        )

    def release(self, table: Table, coins: Coins) -> ChosenMicrodata:
        """Count all rows at the finest levels, choose, and release a fresh sample at the chosen ones."""
        choices, unit = self.choices(table.schema), table.schema.unit
        counts = table.engine.count(table.rows, self._finest(table.schema), *row_limits(table, coins))
        worths = scores(counts, choices, self._expected_rows(unit), self.importance)
        place = self._selection(unit).release(worths, coins)
        levels = dict(zip(choices, list(product(*choices.values()))[place], strict=True))
        released = self._solved(levels, unit).release(table, coins)
        return ChosenMicrodata(released.counts, released.weight)

    def _selection(self, unit: Unit) -> NoisyMax:
        sensitivity = DETAIL * self._expected_rows(unit).most * unit.max_rows
        pick = MonotoneNoisyMax if unit.adjacency is Adjacency.ADD_REMOVE else NoisyMax
        return pick(self.choosing, sensitivity)

    def _expected_rows(self, unit: Unit) -> ExpectedRows:
        parameters = self.parameters(unit)
        return expected_rows(parameters.k, parameters.rate)

    def _safe(self, levels: Mapping[str, int]) -> Safe:
        return Safe(levels, self.epsilon, self.delta, self.rate, self.k, self.weights)

    def _solved(self, levels: Mapping[str, int], unit: Unit) -> Safe:
        """Return the release at these levels, with the k and the rate that were solved behind the choice."""
        parameters = self.parameters(unit)
        return Safe(levels, None, parameters.delta, parameters.rate, parameters.k, self.weights)


@dataclass(frozen=True, kw_only=True)
class SchemeCheck(MicrodataCheck):
    """The check of microdata, and of the sensitivity of the choice."""

    def contradiction(self, statement: Statement) -> Problem | None:
        basis = statement.basis
        k, rate = basis.need(SuppressChosen).k, basis.need(SecretSample).rate
        if basis.need(ChooseLevels).sensitivity < _DETAIL * least_width(k, rate) * basis.unit.max_rows:
            return Problem("one person can move the worth of a recoding by more than the steps say")
        return super().contradiction(statement)


CHECK = SchemeCheck(
    order=(one(ChooseLevels), maybe(KeepRows), one(SecretSample), one(Recode), one(SuppressChosen), one(OrderChosen)),
    claims=(ApproximatePrivacy, Anonymity, Pseudonymity),
)
PICTURE = MicrodataPicture()
METHOD = Scheme
