"""The tables of a few trades, as their owners declare them, and what their analysts ask."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.queries.language.reading import split_queries
from incrowd.queries.query import Catalog, Relation

STATEMENTS = split_queries((Path(__file__).parent / "statements.sql").read_text(encoding="utf-8"))
"""What analysts ask, written down before any of it was added to the language."""


def _number(name: str, low: int, high: int) -> Column:
    return Column(name, type=Type.INTEGER, hierarchy=Flat(Numbers(low, high)), missing=Missing.DROP)


def _decimal(name: str, low: int, high: int) -> Column:
    return Column(name, type=Type.DECIMAL, hierarchy=Flat(Numbers(low, high, Type.DECIMAL)))


def _list(name: str, *values: str) -> Column:
    return Column(name, hierarchy=Flat(Categories(values)), missing=Missing.DROP, outside=Outside.DROP)


def _date(name: str, first: str = "2024-01-01", last: str = "2025-12-31") -> Column:
    return Column(name, type=Type.DATE, hierarchy=Flat(Dates(first, last)), missing=Missing.DROP)


def _truth(name: str) -> Column:
    return Column(name, type=Type.BOOLEAN)


def _private(name: str, dataset: str, person: str, most: int, *columns: Column) -> Relation:
    who = Column(person, Role.IDENTIFIER, Type.INTEGER)
    unit = Unit(Kind.PERSON, column=person, max_rows=most)
    return Relation(name, Schema((who, *columns), unit), dataset=dataset, today=date(2025, 12, 31))


def _public(name: str, key: str, *columns: Column) -> Relation:
    return Relation(name, Schema(columns), most={frozenset({key}): 1})


_WARD = _list("ward", "heart", "lung", "eye")
_COUNTRY = _list("country", "DE", "FR", "JP", "US")
_STATIONS = ("north", "east", "south", "west")

TRADES = Catalog(
    (
        _private(
            "visits", "hospital", "patient", 4, _number("age", 0, 99), _list("sex", "F", "M"), _WARD, _date("day"),
            _number("stay", 0, 60), _decimal("cost", 0, 5000), _truth("readmitted"),
            _list("insurance", "public", "own"),
            Column("diagnosis"),
        ),
        _private(
            "tests", "hospital", "patient", 4, _list("kind", "hba1c", "troponin"), _decimal("value", 0, 50),
            _date("taken"),
        ),
        _public("wards", "ward", _WARD, _number("floor", 0, 5), _list("building", "A", "B")),
        _private(
            "orders", "shop", "customer", 5, _date("order_day"), _decimal("amount", 0, 1000),
            _number("quantity", 0, 20), _list("channel", "web", "shop"), _COUNTRY,
            _list("category", "toys", "books", "tools"), Column("coupon"), _truth("returned"),
        ),
        _private(
            "customers", "shop", "customer", 1, _date("joined", "2015-01-01"), _list("segment", "new", "loyal"),
            _number("age", 18, 99),
        ),
        _public("countries", "country", _COUNTRY, _list("region", "EU", "Asia", "America")),
        _private(
            "employees", "staff", "employee", 1, _list("department", "sales", "lab", "office"),
            _number("salary", 10_000, 200_000), _date("hired", "1985-01-01"), _list("gender", "F", "M"),
            _number("level", 1, 9), _truth("remote"), Column("title"),
        ),
        _private(
            "absences", "staff", "employee", 6, _list("kind", "sick", "leave"), _date("start_day"),
            _number("days", 0, 30),
        ),
        _private(
            "trips", "metro", "rider", 4, _list("station_from", *_STATIONS), _list("station_to", *_STATIONS),
            _date("day"), _number("hour", 0, 23), _number("minutes", 0, 180), _decimal("km", 0, 80),
            _list("ticket", "day", "month"),
        ),
        _public("stations", "station", _list("station", *_STATIONS), _list("zone", "1", "2")),
        _private(
            "events", "site", "visitor", 10, _date("day"), Column("page"), _list("event", "view", "cart", "buy"),
            _list("device", "phone", "desk"), _number("seconds", 0, 3600), _decimal("revenue", 0, 500),
        ),
        _private(
            "grades", "schools", "student", 5, _list("school", "s1", "s2", "s3"),
            _list("subject", "maths", "physics", "art"), _number("year", 2020, 2025), _number("score", 0, 100),
            _truth("passed"),
        ),
        _private(
            "claims", "insurer", "insured", 3, _list("kind", "car", "home"), _decimal("amount", 0, 50_000),
            _decimal("paid", 0, 50_000), _date("day"), _list("region", "n", "s"),
        ),
    )
)  # fmt: skip
