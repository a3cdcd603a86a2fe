"""Make the golden ledger of the current version; until the format is frozen, anew with each change of the format.

    python -m tests.golden.ledgers.make

writes version-N.sqlite and what it says, version-N.json, beside this file.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import date
from fractions import Fraction
from pathlib import Path

from incrowd.accounting.budget import Allowance, Amount, Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.periods import PeriodCharge
from incrowd.accounting.ledger.request import SeriesTerms
from incrowd.core.calendar import Every, PeriodCalendar
from incrowd.core.loss import Gaussian
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import Refused
from incrowd.store.chain_entry import VERSION
from tests.ledgers import anonymous, approximate, create, guarantee, pure, sampled_crowd

FOLDER = Path(__file__).parent
OWNER = ("the owner", "the board agreed")


def fill(ledger: Ledger) -> None:
    """Write an entry of every kind."""
    people = Unit(Kind.PERSON, Adjacency.REPLACE, "mother_id", 3)
    ledger.look("births", "profile")
    ledger.register(Declaration("births", Unit(), Budget.of(3, "1e-6")))
    ledger.register(Declaration("mothers", Unit(), None, same_people_as="births"))
    ledger.register(Declaration("visits", people, Budget.of(1, separate_analysts="under contract")))
    ledger.register(Declaration("register", Unit(), Budget.of(0, unbounded="public since 1990")))
    ledger.register(Declaration("first", Unit()))
    ledger.conclude(ledger.charge(approximate("0.25", "1e-8"), "births", release="table 1"), "a1" * 32)
    ledger.conclude(ledger.charge(sampled_crowd("2025"), "mothers", release="table 2"), None)
    ledger.allow("births", Allowance.of("ann", "0.5", until=date(2999, 12, 31)), *OWNER)
    ledger.charge(pure("1/3"), "births", release="question", analyst="ann")
    asked = ledger.charge(guarantee(pure("0.5").loss, people), "visits", release="question", analyst="bob")
    ledger.repeat(asked.sequence, "ann")
    ledger.charge_together({"births": pure("0.001"), "first": pure("0.002")}, release="join")
    ledger.charge(anonymous(), "register", release="table 3")
    with suppress(Refused):
        ledger.charge(pure(9), "births", release="too much")
    ledger.grant("births", Budget.of("0.5"), *OWNER)
    ledger.carve("births", "means", "0.01", "1e-7")
    ledger.charge(guarantee(Gaussian(Fraction(20))), "births", release="mean", account="means")
    _fill_periods(ledger)
    ledger.close("first", *OWNER)
    ledger.retire("register", *OWNER)


def _fill_periods(ledger: Ledger) -> None:
    """Write entries of a dataset with periods: one period alone, and a series that is charged at once."""
    unit = Unit(Kind.PERSON, column="patient", max_rows=2)
    calendar = PeriodCalendar("discharged", Every.MONTH, "2025-01", "2025-12", arrival="received")
    budget = Budget(Amount.down(3, "1e-6"), period=Amount.down(1, 0), window=(3, Amount.down(2, "1e-6")))
    ledger.register(Declaration("stays", unit, budget, calendar=calendar))
    each, whole = guarantee(pure("0.01").loss, unit), guarantee(pure("0.12").loss, unit)
    january = PeriodCharge("2025-01", "tables", "b2" * 32)
    ledger.charge_period({"stays": guarantee(pure("0.5").loss, unit)}, "january", january)
    series = ledger.open_series("stays", SeriesTerms("counts", "b2" * 32, 12, 0, each, whole))
    ledger.draw(each, "stays", "count 1", series.price, PeriodCharge("2025-01", "counts", "b2" * 32))
    ledger.end("stays", "tables", *OWNER)


if __name__ == "__main__":
    name = f"version-{VERSION}"
    (FOLDER / f"{name}.sqlite").unlink(missing_ok=True)
    ledger = create(f"sqlite:///{FOLDER}/{name}.sqlite")
    fill(ledger)
    told = json.dumps(ledger.show().to_json(), indent=2, sort_keys=True)
    (FOLDER / f"{name}.json").write_text(told + "\n")
