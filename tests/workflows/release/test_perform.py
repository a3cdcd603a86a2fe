from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa
import pytest

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.coins import Coins
from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.plan import Plan
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import BudgetExceeded, NotRefunded, SourceUnreadable
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.shared.microdata import Microdata
from incrowd.noise.system import SystemCoins
from incrowd.workflows.release.perform import ChargeTarget, ExecutedPlan, performing

SCHEMA = Schema((Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M")))),))
SAFE = Safe({}, epsilon=Fraction(1), delta=Fraction(1, 10**4), rate=Fraction(1, 2))


@dataclass(frozen=True)
class Told:
    """Rows that tell when they are read."""

    when_read: Callable[[], None]
    names: tuple[str, ...] = ("sex",)
    rows: int | None = 200

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self.when_read()
        yield pa.record_batch({"sex": ["F", "M"] * 100})


@pytest.fixture
def ledger(sqlite: str) -> Ledger:
    made = Ledger.create(sqlite)
    made.register(Declaration("people", SCHEMA.unit, Budget.of(1, "1e-4")))
    return made


def perform(plan: Plan, rows: Table, ledger: Ledger, target: ChargeTarget) -> ExecutedPlan:
    with performing(plan, rows, ledger, target) as executed:
        return executed


def charges(ledger: Ledger) -> list[str]:
    return [str(entry.body["release"]) for entry in ledger.entries() if entry.kind == "charge"]


def table(when_read: Callable[[], None]) -> Table:
    return Table(SCHEMA, Told(when_read), LocalEngine())


def test_the_charge_is_on_disk_when_the_first_row_is_read(ledger: Ledger, sqlite: str) -> None:
    seen = list[list[str]]()
    rows = table(lambda: seen.append(charges(Ledger.open(sqlite))))
    performed = perform(SAFE.plan(SCHEMA), rows, ledger, ChargeTarget("people", "one"))
    assert seen == [["one"]]
    assert performed.entry.charged[0].guarantee == SAFE.plan(SCHEMA).guarantee
    assert isinstance(performed.output, Microdata)
    assert set(performed.output.counts.counts >= SAFE.smallest_class(SCHEMA)) == {True}


def test_a_charge_that_is_refused_leaves_the_rows_unread(ledger: Ledger) -> None:
    perform(SAFE.plan(SCHEMA), table(lambda: None), ledger, ChargeTarget("people", "one"))

    def read() -> None:
        pytest.fail("the rows were read")

    with pytest.raises(BudgetExceeded):
        perform(SAFE.plan(SCHEMA), table(read), ledger, ChargeTarget("people", "two"))
    assert charges(ledger) == ["one"]


def test_a_crash_while_reading_loses_budget(ledger: Ledger) -> None:
    def crash() -> None:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        perform(SAFE.plan(SCHEMA), table(crash), ledger, ChargeTarget("people", "one"))
    assert charges(ledger) == ["one"]
    assert ledger.conclusions("one") == (None,), "nothing came of it, and the ledger says so"
    with pytest.raises(BudgetExceeded):
        perform(SAFE.plan(SCHEMA), table(lambda: None), ledger, ChargeTarget("people", "two"))


def test_nobody_can_bring_coins(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "coins" not in inspect.signature(performing).parameters
    given, released = list[object](), Safe.release

    def watched(self: Safe, table: Table, coins: Coins) -> Microdata:
        given.append(coins)
        return released(self, table, coins)

    monkeypatch.setattr(Safe, "release", watched)
    perform(SAFE.plan(SCHEMA), table(lambda: None), ledger, ChargeTarget("people", "one"))
    assert [type(coins) for coins in given] == [SystemCoins]


def test_whatever_fails_in_the_block_is_concluded_once_and_said_once(ledger: Ledger) -> None:
    target = ChargeTarget("people", "one")
    with (
        pytest.raises(SourceUnreadable, match=r"^no rows") as caught,
        performing(SAFE.plan(SCHEMA), table(lambda: None), ledger, target),
    ):
        raise SourceUnreadable("no rows.")
    assert str(caught.value).count("not refunded") == 1
    assert ledger.conclusions("one") == (None,)


def test_a_failure_after_everything_appeared_is_not_concluded_as_lost(ledger: Ledger) -> None:
    plan, target = SAFE.plan(SCHEMA), ChargeTarget("people", "one")

    def publish() -> None:
        with performing(plan, table(lambda: None), ledger, target, lambda: True) as executed:
            ledger.conclude(executed.entry, "a digest")
            raise SourceUnreadable("no rows.")

    with pytest.raises(SourceUnreadable, match=r"^no rows\.$"):
        publish()
    assert ledger.conclusions("one") == ("a digest",)


def test_a_foreign_error_carries_the_sentence_as_a_note_of_its_own_class(ledger: Ledger) -> None:
    with (
        pytest.raises(ZeroDivisionError) as caught,
        performing(SAFE.plan(SCHEMA), table(lambda: None), ledger, ChargeTarget("people", "one")),
    ):
        raise ZeroDivisionError
    (note,) = caught.value.__notes__
    assert isinstance(note, NotRefunded)
    assert note.startswith("Nothing was released; the charge is not refunded: epsilon")
