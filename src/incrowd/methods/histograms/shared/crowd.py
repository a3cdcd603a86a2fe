"""What the two crowd-blending histograms share: bins, a secret sample, and a guarantee about counts below k."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.bins import ListedBins, counted
from incrowd.core.steps.rows import keep_rows
from incrowd.core.steps.samples import EveryRow, SecretSample
from incrowd.core.steps.step import Step, fold
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.histograms.shared.partition import BinPartition
from incrowd.methods.shared.sampling import Parameters, Target, require_crowds_of_people, solve_small_counts

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.table import Table
    from incrowd.methods.shared.outcome import Histogram


@dataclass(frozen=True, kw_only=True)
class CrowdHistogram(Method):
    """Bins of which counts from k on are exact; with `delta`, of a secret sample."""

    name: ClassVar[str]

    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rate: Fraction | None = None
    k: int | None = None
    round: int = 1

    def __post_init__(self) -> None:
        if self.k is not None and self.k < 1:
            raise InvalidParameter("a crowd needs k of at least 1.")
        if self.rate is not None and not 0 < self.rate <= 1:
            raise InvalidParameter("the rate lies above 0 and at most at 1; below 1 there is a secret sample.")
        if self.round < 1:
            raise InvalidParameter("counts are rounded to multiples of a whole number of at least 1.")
        if self.target is None and self.rate not in (None, 1):
            raise InvalidParameter("a secret sample needs delta and two of epsilon, k and rate.")
        if self.unsampled and self.k is None:
            raise InvalidParameter(
                "without a secret sample, which delta asks for, k must be given; then there is no epsilon."
            )

    @property
    @abstractmethod
    def noise(self) -> Fraction | None:
        """The ε of the noise on counts below k; None where they are suppressed."""

    @property
    def target(self) -> Target | None:
        """ε and δ as one value; None without δ."""
        return Target.of(self.epsilon, self.delta)

    @property
    def unsampled(self) -> bool:
        """Whether every row is read: then crowds are exact, and there is no ε."""
        return self.rate == 1 or self.target is None

    def parameters(self, unit: Unit) -> Parameters:
        """Return k, rate, ε and δ for a unit, the missing one solved."""
        if self.target is None or self.unsampled:
            raise InvalidParameter("without a secret sample there is no epsilon: give delta and a rate below 1.")
        return solve_small_counts(self.k, self.rate, self.target, unit, self.noise)

    def crowd(self, unit: Unit) -> int:
        """Return k, solved where it must be."""
        return self.k if self.k is not None else self.parameters(unit).k

    def at_epsilon(self, epsilon: Fraction) -> Self | None:
        return replace(self, epsilon=epsilon) if self.k is None and self.delta is not None else None

    def plan(self, schema: Schema) -> Plan:
        """Guarantee from the schema alone."""
        partition, unit = self.partition(schema), schema.unit
        k = self.crowd(unit)
        if self.unsampled and unit.max_rows > 1:
            raise InvalidParameter(
                "without a secret sample crowds of rows say nothing about people with several rows: keep max_rows at 1."
            )
        if self.unsampled:
            require_crowds_of_people(unit)
        parameters = None if self.unsampled else self.parameters(unit)
        steps = (
            *keep_rows(unit),
            self.sample(schema),
            *counted(partition.cells, partition.columns(), self.listed(partition)),
            *self.protected(k),
        )
        return Plan(
            self.name,
            steps,
            fold(steps, unit, Fraction(0) if parameters is None else parameters.delta),
            {} if parameters is None else self.numbers(parameters),
            self.release,
            settings=({"k": k} if parameters is None else asdict(parameters))
            | ({} if self.noise is None else {"noise": self.noise}),
            cells=partition.cells,
        )

    @abstractmethod
    def partition(self, schema: Schema) -> BinPartition:
        """Return the bins, or refuse those whose counts this method cannot protect."""

    @abstractmethod
    def listed(self, partition: BinPartition) -> ListedBins:
        """Return which bins are listed in what is released."""

    @abstractmethod
    def protected(self, k: int) -> tuple[Step, ...]:
        """Return the steps that protect counts below k and publish them."""

    @abstractmethod
    def release(self, table: Table, coins: Coins) -> Histogram:
        """Count the bins and release what was guaranteed."""

    def sample(self, schema: Schema) -> Step:
        """Return the step that says which rows are read."""
        rate = self.sampled_at(schema.unit)
        return EveryRow() if rate is None else SecretSample(rate)

    def numbers(self, parameters: Parameters) -> Mapping[str, Any]:
        """Return what the accountants computed for the claims."""
        return {"epsilon": parameters.epsilon}

    def sampled_at(self, unit: Unit) -> Fraction | None:
        """Return the rate of the secret sample, or None where every row is read."""
        return None if self.unsampled else self.parameters(unit).rate
