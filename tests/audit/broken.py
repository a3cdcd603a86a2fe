"""Deliberately broken copies of the method: each must be caught by the audit that passes the real one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from incrowd.core.counts import Counts
from incrowd.core.mechanism import Coins
from incrowd.core.table import Table
from incrowd.methods.anonymity.safe import Safe


@dataclass(frozen=True)
class NoSample:
    """Claims a secret sample and reads every row."""

    claimed: Safe

    def release(self, table: Table, coins: Coins) -> Counts:
        return Safe(self.claimed.levels, k=self.claimed.k, rate=Fraction(1)).release(table, coins)


@dataclass(frozen=True)
class OneLess:
    """Claims k and suppresses below k − 1."""

    claimed: Safe

    def release(self, table: Table, coins: Coins) -> Counts:
        return replace(self.claimed, k=(self.claimed.k or 0) - 1).release(table, coins)


@dataclass(frozen=True)
class TwiceTheRate:
    """Claims a rate and samples at twice that rate."""

    claimed: Safe

    def release(self, table: Table, coins: Coins) -> Counts:
        return replace(self.claimed, rate=2 * (self.claimed.rate or Fraction(1))).release(table, coins)


@dataclass(frozen=True)
class SizeTold:
    """Publishes, beside the release, how many rows are in the sample."""

    claimed: Safe

    def release(self, table: Table, coins: Coins) -> tuple[Counts, int]:
        sample, k = coins.sample(self.claimed.rate or Fraction(1)), self.claimed.smallest_class(table.schema)
        counts = table.engine.count(table.rows, self.claimed.cells(table.schema), sample)
        return counts.at_least(k), counts.total


@dataclass(frozen=True)
class OneSampleForTwo:
    """Releases two recodings of one sample."""

    coarse: Safe
    fine: Safe

    def release(self, table: Table, coins: Coins) -> tuple[Counts, Counts]:
        sample = coins.sample(self.fine.rate or Fraction(1))

        def one(safe: Safe) -> Counts:
            counts = table.engine.count(table.rows, safe.cells(table.schema), sample)
            return counts.at_least(safe.smallest_class(table.schema))

        return one(self.coarse), one(self.fine)


@dataclass(frozen=True)
class FreshSamples:
    """The honest one beside it: each recoding has a sample of its own."""

    coarse: Safe
    fine: Safe

    def release(self, table: Table, coins: Coins) -> tuple[Counts, Counts]:
        return self.coarse.release(table, coins), self.fine.release(table, coins)
