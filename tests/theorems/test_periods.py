"""The law of periods on a small universe: 3 people, 3 periods, 2 cells; late rows and corrections included.

A history is what the file held at the end of each period.  Every release reads one period of one of these files, by the
real view of the rows, the real limit of rows per person and the real count.  The ledger is charged by the schedule
alone.  Whatever one person's rows do (arrive late, move to another period, change, vanish), the loss of everything
published is at most what the ledger says: for the person over all periods, and for the person in one period.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import pyarrow as pa
import pytest

from incrowd.accounting.budget import Amount, Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.periods import PeriodCharge
from incrowd.core.calendar import UNKNOWN, Every, PeriodCalendar, Undated
from incrowd.core.cells import Cells
from incrowd.core.domain import Categories, Type
from incrowd.core.guarantee import Guarantee
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.loss import Pure
from incrowd.core.rounding import Number, exact
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.local.views import PeriodFilter, PeriodRows
from incrowd.engines.readers.sources import open_source
from incrowd.errors import BudgetExceeded, InvalidParameter, Refused
from incrowd.methods.histograms.continual.running import CountablePeople
from incrowd.workflows.release.running import people_in
from tests.coins import SeededCoins
from tests.ledgers import create, guarantee

MONTHS = ("2025-01", "2025-02", "2025-03")
DAYS = tuple(f"{month}-15" for month in MONTHS)
CELLS = ("a", "b")
BY_EVENT = PeriodCalendar("event", Every.MONTH, MONTHS[0], MONTHS[-1], undated=Undated.UNKNOWN)
BY_ARRIVAL = PeriodCalendar("event", Every.MONTH, MONTHS[0], MONTHS[-1], arrival="arrived")
EPSILON = {"2025-01": Fraction(3, 10), "2025-02": Fraction(1, 10), "2025-03": Fraction(2, 10), UNKNOWN: Fraction(1, 10)}
AGAIN = Fraction(1, 20)
"""What it costs to release January again after it was corrected."""


def cost(epsilon: Number, unit: Unit) -> Guarantee:
    return guarantee(Pure(exact(epsilon)), unit)


@dataclass(frozen=True)
class Row:
    """One version of a row: what the file says of it from `since` on, until `until` (None: for good)."""

    person: str
    event: str | None
    cell: str
    arrived: str
    since: int
    until: int | None = None

    def stands(self, time: int) -> bool:
        return self.since <= time and (self.until is None or time < self.until)


def versions(person: str) -> Iterator[tuple[Row, ...]]:
    """Yield everything that can become of one row: it comes in time or late, stays, is corrected, or is deleted."""
    for time, event, cell in product(range(3), (*DAYS, None), CELLS):
        yield (Row(person, event, cell, DAYS[time], time),)
        for later in range(time + 1, 3):
            first = Row(person, event, cell, DAYS[time], time, later)
            yield (first,)
            for other, there in product((*DAYS, None), CELLS):
                if (other, there) != (event, cell):
                    yield first, Row(person, other, there, DAYS[later], later)


OTHERS = (
    Row("eve", DAYS[0], "a", DAYS[0], 0),
    Row("eve", DAYS[1], "b", DAYS[2], 2),
    Row("bob", DAYS[1], "a", DAYS[1], 1),
    Row("bob", None, "b", DAYS[2], 2),
)
IN_TIME = (*((day, day, time) for time, day in enumerate(DAYS)), (None, DAYS[2], 2))
PAIRS = tuple(
    (Row("ann", one, "a", day, time), Row("ann", other, "b", later, then))
    for (one, day, time), (other, later, then) in product(IN_TIME, IN_TIME)
)
HISTORIES = (*versions("ann"), *PAIRS)


class World:
    """Releases of one calendar: which period is read from which file, and what that costs."""

    def __init__(self, calendar: PeriodCalendar, rows: int = 1) -> None:
        self.calendar = calendar
        joint = calendar.arrival is not None
        columns = [Column("cell", Role.QUASI, hierarchy=Flat(Categories(CELLS)))]
        if joint:  # the triangle: in which period it happened, beside in which it arrived
            columns.append(Column("event", Role.QUASI, hierarchy=Flat(Categories(DAYS))))
        dates = [
            Column(name, Role.WITHHELD, Type.DATE) for name in ("event", "arrived") if not (joint and name == "event")
        ]
        person = Column("person", Role.IDENTIFIER)
        self.schema = Schema((person, *columns, *dates), Unit(Kind.PERSON, column="person", max_rows=rows))
        self.cells = Cells.of(self.schema, {})
        self.rows = rows
        self.schedule = [(label, time, EPSILON[label]) for time, label in enumerate(MONTHS)]
        if not joint:
            self.schedule += [(MONTHS[0], 1, AGAIN), (UNKNOWN, 2, EPSILON[UNKNOWN])]
        self.schedule.sort(key=lambda release: release[1])
        self.seen: dict[tuple[object, ...], Counter[object]] = {}

    def counts(self, rows: tuple[Row, ...], label: str, time: int) -> Counter[object]:
        """Count the cells of a period in the file of a time, by the code of releases."""
        names = ("person", "cell", "event", "arrived")
        standing = tuple(tuple(getattr(row, name) for name in names) for row in rows if row.stands(time))
        key = (standing, label)
        if key not in self.seen:
            self.seen[key] = self._count(standing, label)
        return self.seen[key]

    def _count(self, rows: tuple[tuple[str | None, ...], ...], label: str) -> Counter[object]:
        engine = LocalEngine()
        names = ("person", "cell", "event", "arrived")
        table = pa.table(
            {name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate(names)}
        )
        column = Column(self.calendar.decides, type=Type.DATE)
        view = PeriodRows(open_source(table), PeriodFilter(self.calendar, label, column))
        limit = engine.limit(view, self.schema["person"], self.rows, SeededCoins(7))
        counted = engine.count(view, self.cells, limit).to_table("n")
        return Counter({tuple(list(row.values())[:-1]): row["n"] for row in counted.to_pylist()})

    def losses(self, rows: tuple[Row, ...], without: tuple[Row, ...]) -> dict[int, Fraction]:
        """Return the loss of each release: Laplace noise of scale rows/ε costs ε/rows for each count that moves."""
        result = {}
        for place, (label, time, epsilon) in enumerate(self.schedule):
            one, other = self.counts(rows, label, time), self.counts(without, label, time)
            moved = sum(abs(one[cell] - other[cell]) for cell in one.keys() | other.keys())
            result[place] = epsilon * Fraction(moved, self.rows)
        return result

    def block(self, row: Row) -> str | None:
        """Return the period of a version of a row, by the calendar alone."""
        return self.calendar.period_of(getattr(row, self.calendar.decides))


def charge(ledger: Ledger, world: World, unit: Unit, budget: Budget | None = None) -> None:
    """Charge the schedule of a world, which no row can change."""
    declared = [Declaration("series", unit, budget, calendar=world.calendar)]
    drawn: set[str] = set()
    for number, (label, _, epsilon) in enumerate(world.schedule):
        guarantee = cost(epsilon, unit)
        period = PeriodCharge(label, "s", "policy", again=label in drawn)
        ledger.charge_period({"series": guarantee}, f"release {number}", period, declared)
        drawn.add(label)


PERSON = Unit(Kind.PERSON, column="person")
IN_A_PERIOD = Unit(Kind.PERSON_PERIOD, column="person")
WORLDS = {"by event": World(BY_EVENT), "by arrival": World(BY_ARRIVAL)}


def whole_budget() -> Budget:
    return Budget.of(1)


@pytest.mark.parametrize("name", WORLDS)
def test_the_loss_of_a_person_over_all_periods_is_at_most_the_total(name: str, sqlite: str) -> None:
    world = WORLDS[name]
    ledger = create(sqlite)
    charge(ledger, world, PERSON, whole_budget())
    total = Fraction(ledger.standing("series").totals.spent.epsilon)
    assert total == sum(epsilon for *_, epsilon in world.schedule)
    worst = max(sum(world.losses((*OTHERS, *rows), OTHERS).values()) for rows in HISTORIES)
    assert worst <= total
    # a row that is moved from period to period is read in several, and pays in each
    assert worst == {"by event": Fraction(11, 20), "by arrival": Fraction(5, 10)}[name]


@pytest.mark.parametrize("name", WORLDS)
def test_the_loss_of_a_person_in_a_period_is_at_most_what_that_period_spent(name: str, sqlite: str) -> None:
    world = WORLDS[name]
    ledger = create(sqlite)
    charge(ledger, world, IN_A_PERIOD, whole_budget())
    spent = {label: Fraction(amount.epsilon) for label, amount in ledger.spent_by_period("series").items()}
    worst: dict[str, Fraction] = dict.fromkeys(spent, Fraction(0))
    for rows in HISTORIES:
        whole = (*OTHERS, *rows)
        for label in spent:
            without = tuple(row for row in whole if row.person != "ann" or world.block(row) != label)
            losses = world.losses(whole, without)
            for place, (other, _, _) in enumerate(world.schedule):
                assert other == label or not losses[place]  # other periods have the same law, whatever moved
            worst[label] = max(worst[label], sum(losses.values(), Fraction(0)))
    assert worst == spent  # the bound is attained in every period


def test_somebody_in_every_period_pays_the_sum_and_the_sum_is_attained() -> None:
    world = WORLDS["by event"]
    everywhere = [Row("ann", event, "a", arrived, time) for event, arrived, time in IN_TIME]
    losses = world.losses((*OTHERS, *everywhere), OTHERS)
    assert sum(losses.values()) == sum(epsilon for *_, epsilon in world.schedule)


def test_two_rows_of_a_person_in_a_period_move_no_more_than_the_limit() -> None:
    world = WORLDS["by event"]
    for one, other in product(CELLS, CELLS):
        rows = (Row("ann", DAYS[0], one, DAYS[0], 0), Row("ann", DAYS[0], other, DAYS[0], 0))
        assert world.losses((*OTHERS, *rows), OTHERS)[0] == EPSILON[MONTHS[0]]
    two = World(BY_EVENT, rows=2)
    rows = (Row("ann", DAYS[0], "a", DAYS[0], 0), Row("ann", DAYS[0], "b", DAYS[0], 0))
    assert two.losses((*OTHERS, *rows), OTHERS)[0] == EPSILON[MONTHS[0]]


def test_a_late_row_is_read_in_no_release_of_its_period_or_in_that_of_its_arrival() -> None:
    late = (Row("ann", DAYS[1], "b", DAYS[2], 2),)
    assert not any(WORLDS["by event"].losses((*OTHERS, *late), OTHERS).values())
    triangle = WORLDS["by arrival"].losses((*OTHERS, *late), OTHERS)
    assert triangle == {0: 0, 1: 0, 2: EPSILON[MONTHS[2]]}  # counted once, at the price of March


def test_two_calendars_put_one_row_into_two_periods(sqlite: str) -> None:
    utc = PeriodCalendar("at", Every.MONTH, *("2025-01", "2025-03"), "UTC")
    berlin = PeriodCalendar("at", Every.MONTH, *("2025-01", "2025-03"), "Europe/Berlin")
    moment = "2025-01-31T23:30:00Z"
    assert (utc.period_of(moment), berlin.period_of(moment)) == ("2025-01", "2025-02")
    ledger = create(sqlite)
    ledger.register(Declaration("series", IN_A_PERIOD, Budget.of(1), calendar=utc))
    with pytest.raises(Refused, match="a row can be in two periods"):
        ledger.register(Declaration("series", IN_A_PERIOD, Budget.of(1), calendar=berlin))


def test_rules_of_a_zone_that_change_never_make_periods_overlap(sqlite: str) -> None:
    berlin = PeriodCalendar("at", Every.MONTH, *("2025-01", "2025-03"), "Europe/Berlin")
    ledger = create(sqlite)
    declared = [Declaration("series", IN_A_PERIOD, Budget.of(1), calendar=berlin)]
    january, february = (PeriodCharge(label, "s", "p", berlin.span(label)) for label in MONTHS[:2])
    assert january.span == ("2024-12-31T23:00:00+00:00", "2025-01-31T23:00:00+00:00")
    ledger.charge_period({"series": cost("0.1", IN_A_PERIOD)}, "1", january, declared)
    earlier = PeriodCharge(MONTHS[1], "s", "p", ("2025-01-31T22:00:00+00:00", "2025-02-28T23:00:00+00:00"))
    with pytest.raises(Refused, match="would share moments"):
        ledger.charge_period({"series": cost("0.1", IN_A_PERIOD)}, "2", earlier, declared)
    ledger.charge_period({"series": cost("0.1", IN_A_PERIOD)}, "2", february, declared)


def test_keeping_the_first_w_periods_of_a_person_cascades_for_the_unit_of_a_period() -> None:
    """Why a bound on periods per person is for the unit person: one period's rows decide about another's."""
    periods = (0, 2)
    first = min(periods)
    kept, kept_without = {first}, {min(place for place in periods if place != first)}
    assert kept ^ kept_without == {0, 2}  # removing January lets March in: two periods move, not one


@pytest.mark.parametrize("most", [1, 2])
def test_a_list_of_people_lets_one_person_move_so_many_releases_and_nobody_elses_rows(most: int) -> None:
    """All histories of three people over three periods and two cells, each period released once, in two orders."""
    world, engine = WORLDS["by event"], LocalEngine()
    held = list(product((None, *CELLS), repeat=3))

    def read(history: Mapping[str, tuple[str | None, ...]], order: tuple[int, ...]) -> list[Counter[tuple[str, str]]]:
        lists, counts = list[tuple[str, frozenset[str]]](), list[Counter[tuple[str, str]]]()
        for period in order:
            rows = [(name, cells[period]) for name, cells in history.items() if cells[period] is not None]
            columns = {"person": [row[0] for row in rows], "cell": [row[1] for row in rows]}
            source = open_source(pa.table({name: pa.array(own, pa.string()) for name, own in columns.items()}))
            others = [(label, people) for label, people in lists if label != MONTHS[period]]
            people = CountablePeople(world.schema["person"], bytes(32), people_in(others, most))
            batches = list(engine.admitted(source, people).batches(["person", "cell"]))
            lines = [row for batch in batches for row in batch.to_pylist()]
            counts.append(Counter((row["person"], row["cell"]) for row in lines))
            lists.append((MONTHS[period], frozenset(people.seen)))
        return counts

    others: dict[str, tuple[str | None, ...]] = {"bob": ("a", "b", "a"), "eve": (None, "a", "b")}
    moved = Counter[int]()
    for order in ((0, 1, 2), (2, 0, 1)):
        without = read(others, order)
        for cells in held:
            released = read({**others, "ann": cells}, order)
            changes = [one - other for one, other in zip(released, without, strict=True)]
            assert all(not other - one for one, other in zip(released, without, strict=True))
            assert all(name == "ann" for change in changes for name, _ in change)
            moved[sum(bool(change) for change in changes)] += 1
    assert max(moved) == most  # attained, and never more


def periodic(ledger: Ledger, epsilon: str, label: str | None, unit: Unit = IN_A_PERIOD) -> None:
    guarantees, release = {"series": cost(epsilon, unit)}, f"{label} {epsilon}"
    if label is None:
        ledger.charge_together(guarantees, release)
        return
    name = f"s{epsilon}{ledger.show().head.sequence}"
    ledger.charge_period(guarantees, release, PeriodCharge(label, name, "p"))


def test_periods_are_charged_in_parallel_for_the_unit_of_a_period_and_summed_for_the_person(sqlite: str) -> None:
    ledger = create(sqlite)
    ledger.register(Declaration("series", IN_A_PERIOD, Budget.of(1), calendar=BY_EVENT))
    for label in MONTHS:
        periodic(ledger, "0.9", label)
    with pytest.raises(BudgetExceeded, match=r"0\.1 of the budget of 1 remains"):
        periodic(ledger, "0.2", MONTHS[1])
    standing = ledger.standing("series")
    assert standing.totals.spent == Amount.up("2.7", 0)  # what somebody in all three lost
    assert standing.periods is not None
    assert standing.periods.published == 3
    with pytest.raises(BudgetExceeded):  # a release of all rows meets the period that lost most
        periodic(ledger, "0.2", None)
    periodic(ledger, "0.1", None)
    with pytest.raises(BudgetExceeded):  # and is then part of every period
        periodic(ledger, "0.01", MONTHS[0])
    assert ledger.check().ok


def test_a_total_bounds_somebody_in_all_periods(sqlite: str) -> None:
    ledger = create(sqlite)
    budget = Budget(Amount.down(1, 0), total=Amount.down(2, 0))
    ledger.register(Declaration("series", IN_A_PERIOD, budget, calendar=BY_EVENT))
    periodic(ledger, "0.9", MONTHS[0])
    periodic(ledger, "0.9", MONTHS[1])
    with pytest.raises(BudgetExceeded, match=r"0\.2 of the budget of all periods together of 2 remains"):
        periodic(ledger, "0.9", MONTHS[2])


def test_windows_and_periods_are_bounded_as_filters(sqlite: str) -> None:
    """ε = .3, .1, .1, .2, .3: one period .3; any 3 in a row .6; for ever 1."""
    months = [f"2025-{month:02}" for month in range(1, 7)]
    calendar = PeriodCalendar("event", Every.MONTH, months[0], months[-1])
    costs = ("0.3", "0.1", "0.1", "0.2", "0.3")
    ledger = create(sqlite)
    budget = Budget(Amount.down(1, 0), period=Amount.down("0.3", 0), window=(3, Amount.down("0.6", 0)))
    ledger.register(Declaration("series", PERSON, budget, calendar=calendar))
    for label, cost in zip(months, costs, strict=False):
        periodic(ledger, cost, label, PERSON)
    periods = ledger.standing("series").periods
    assert periods is not None
    assert (periods.worst, periods.window) == (Amount.up("0.3", 0), Amount.up("0.6", 0))
    assert ledger.standing("series").totals.spent == Amount.up(1, 0)
    ledger.grant("series", Budget.of(1), "owner", "a year more")
    with pytest.raises(BudgetExceeded, match="3 periods in a row"):
        periodic(ledger, "0.11", months[5], PERSON)
    with pytest.raises(BudgetExceeded, match="one period"):
        periodic(ledger, "0.01", months[0], PERSON)
    periodic(ledger, "0.1", months[5], PERSON)
    ledger.grant("series", Budget(Amount(), period=Amount.down(1, 0)), "owner", "one table more")
    with pytest.raises(BudgetExceeded, match="3 periods in a row"):  # what reads all rows is in every window
        periodic(ledger, "0.01", None, PERSON)
    assert ledger.check().ok


def test_a_period_is_released_once_unless_it_is_charged_again(sqlite: str) -> None:
    ledger = create(sqlite)
    ledger.register(Declaration("series", PERSON, Budget.of(1), calendar=BY_EVENT))
    once, again = (PeriodCharge(MONTHS[0], "s", "p", again=again) for again in (False, True))
    with pytest.raises(Refused, match="never released"):
        ledger.charge_period({"series": cost("0.1", PERSON)}, "0", again, ())
    ledger.charge_period({"series": cost("0.1", PERSON)}, "1", once, ())
    with pytest.raises(Refused, match="was charged before"):
        ledger.charge_period({"series": cost("0.1", PERSON)}, "2", once, ())
    ledger.charge_period({"series": cost("0.1", PERSON)}, "3", again, ())
    assert ledger.spent_by_period("series") == {MONTHS[0]: Amount.up("0.2", 0)}
    assert [run["release"] for run in ledger.runs("series", "s")[MONTHS[0]]] == ["1", "3"]
    ledger.end("series", "s", "owner", "the survey ended")
    with pytest.raises(Refused, match="is closed"):
        ledger.charge_period({"series": cost("0.1", PERSON)}, "4", PeriodCharge(MONTHS[1], "s", "p"), ())


def test_a_dataset_without_a_calendar_has_no_periods(sqlite: str) -> None:
    ledger = create(sqlite)
    ledger.register(Declaration("series", PERSON, Budget.of(1)))
    with pytest.raises(InvalidParameter, match="has no periods"):
        ledger.charge_period({"series": cost("0.1", PERSON)}, "1", PeriodCharge(MONTHS[0], "s", "p"), ())
    with pytest.raises(InvalidParameter, match="needs a calendar"):
        Declaration("other", IN_A_PERIOD)
