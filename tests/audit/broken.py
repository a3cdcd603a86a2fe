"""Deliberately broken copies of the method: each must be caught by the audit that passes the real one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from incrowd.core.coins import Coins, Sample
from incrowd.core.counts import Counts
from incrowd.core.table import Table
from incrowd.methods.anonymity.safe import Safe


@dataclass(frozen=True)
class NoSample:
    """Claims a secret sample and reads every row."""

    claimed: Safe

    def release(self, table: Table, coins: Coins) -> Counts:
        return counted(self.claimed, table).at_least(k_of(self.claimed))


@dataclass(frozen=True)
class OneLess:
    """Claims k and suppresses below k − 1."""

    claimed: Safe

    def release(self, table: Table, coins: Coins) -> Counts:
        return counted(self.claimed, table, coins.sample(rate_of(self.claimed))).at_least(k_of(self.claimed) - 1)


@dataclass(frozen=True)
class TwiceTheRate:
    """Claims a rate and samples at twice that rate."""

    claimed: Safe

    def release(self, table: Table, coins: Coins) -> Counts:
        return counted(self.claimed, table, coins.sample(2 * rate_of(self.claimed))).at_least(k_of(self.claimed))


@dataclass(frozen=True)
class SizeTold:
    """Publishes, beside the release, how many rows are in the sample."""

    claimed: Safe

    def release(self, table: Table, coins: Coins) -> tuple[Counts, int]:
        counts = counted(self.claimed, table, coins.sample(rate_of(self.claimed)))
        return counts.at_least(k_of(self.claimed)), counts.total


@dataclass(frozen=True)
class OneSampleForTwo:
    """Releases two recodings of one sample."""

    coarse: Safe
    fine: Safe

    def release(self, table: Table, coins: Coins) -> tuple[Counts, Counts]:
        sample = coins.sample(rate_of(self.fine))
        one, other = (counted(safe, table, sample).at_least(k_of(safe)) for safe in (self.coarse, self.fine))
        return one, other


@dataclass(frozen=True)
class FreshSamples:
    """The honest one beside it: each recoding has a sample of its own."""

    coarse: Safe
    fine: Safe

    def release(self, table: Table, coins: Coins) -> tuple[Counts, Counts]:
        return self.coarse.release(table, coins).counts, self.fine.release(table, coins).counts


def counted(safe: Safe, table: Table, *samples: Sample) -> Counts:
    """Count the rows of a sample, or all, without suppressing anything."""
    return table.engine.count(table.rows, safe.cells(table.schema), *samples)


def k_of(safe: Safe) -> int:
    assert safe.k is not None
    return safe.k


def rate_of(safe: Safe) -> Fraction:
    assert safe.rate is not None
    return safe.rate
