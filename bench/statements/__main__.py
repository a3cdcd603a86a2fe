"""Ask every statement of a shop, plan it, and write the table: answered, refused with a way out, refused rightly.

    python -m bench.statements            prints the table, and the refusals with their texts

No row is read: whether a statement is answered depends on it and on declarations alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cache
from pathlib import Path

from incrowd.core.domain import Categories, Dates, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.errors import IncrowdError
from incrowd.queries.combined_measurement import measure
from incrowd.queries.declarations import rowless_query
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.query import Catalog, QueryTerms, Relation

_FOLDER = Path(__file__).parent
_REGIONS = ("Köln", "São Paulo", "Łódź", "東京")
_UNIT = Unit(Kind.PERSON, column="customer", max_rows=4)
_TERMS = QueryTerms(epsilon=Fraction(1), delta=Fraction(1, 10**6))


def _column(name: str, kind: Type, domain: Categories | Numbers | Dates) -> Column:
    return Column(name, type=kind, hierarchy=Flat(domain))


_REGION = _column("region", Type.TEXT, Categories(_REGIONS))
_STADT = _column("Stadt", Type.TEXT, Categories(("München", "Köln", "Zürich", "Saint-Étienne", "L'Aquila")))
_CUSTOMER = Column("customer", role=Role.IDENTIFIER)
SHOP = Catalog(
    (
        Relation(
            "orders",
            Schema(
                (
                    _CUSTOMER,
                    _column("channel", Type.TEXT, Categories(("web", "app", "Geschäft", "電話"))),
                    _REGION,
                    _column("day", Type.DATE, Dates(date(2025, 1, 1), date(2025, 12, 31))),
                    _column("amount", Type.DECIMAL, Numbers(0, 500, Type.DECIMAL)),
                    _column("pieces", Type.INTEGER, Numbers(0, 20)),
                    Column("express", type=Type.BOOLEAN),
                ),
                unit=_UNIT,
            ),
            dataset="shop",
            today=date(2025, 12, 31),
        ),
        Relation(
            "returns",
            Schema((_CUSTOMER, _column("reason", Type.TEXT, Categories(("late", "broken")))), unit=_UNIT),
            dataset="shop",
        ),
        Relation(
            "Bestellungen",
            Schema(
                (
                    Column("Kunden-Nr.", role=Role.IDENTIFIER),
                    _column("Größe", Type.TEXT, Categories(("S", "M", "L", "XL"))),
                    _STADT,
                    _column("Bestelldatum", Type.DATE, Dates(date(2025, 1, 1), date(2025, 12, 31))),
                    _column("Preis in €", Type.DECIMAL, Numbers(0, 500, Type.DECIMAL)),
                    _column("Stück", Type.INTEGER, Numbers(0, 20)),
                    _column("order", Type.INTEGER, Numbers(1, 9)),
                    _column("année", Type.INTEGER, Numbers(2015, 2025)),
                    Column("bezahlt?", type=Type.BOOLEAN),
                ),
                unit=Unit(Kind.PERSON, column="Kunden-Nr.", max_rows=4),
            ),
            dataset="Laden",
            today=date(2025, 12, 31),
        ),
        Relation(
            "Städte",
            Schema(
                (
                    _STADT,
                    _column("Land", Type.TEXT, Categories(("DE", "CH", "FR", "IT"))),
                    _column("Einwohner", Type.INTEGER, Numbers(0, 2_000_000)),
                )
            ),
            most={frozenset({"Stadt"}): 1},
        ),
        Relation(
            "regions",
            Schema(
                (
                    _REGION,
                    _column("land", Type.TEXT, Categories(("DE", "BR", "PL", "JP"))),
                    _column("inhabitants", Type.INTEGER, Numbers(0, 20_000)),
                )
            ),
            most={frozenset({"region"}): 1},
        ),
    )
)


@dataclass
class Asked:
    """A statement, what its style is, and statements to ask instead where it is refused; rightly or not."""

    style: str
    sql: str
    instead: list[str] = field(default_factory=list)
    rightly: bool = False


def statements() -> list[Asked]:
    """Return the statements of the file; what follows one after `-- instead:` is asked in its place."""
    style, asked = "", list[Asked]()
    for line in (_FOLDER / "shop.sql").read_text(encoding="utf-8").splitlines():
        mark, _, sql = line.removesuffix(";").partition("instead: ")
        if line.startswith("-- style: "):
            style = line.removeprefix("-- style: ")
        elif line.startswith("-- "):
            asked[-1].instead.append(sql)
            asked[-1].rightly = mark == "-- rightly, "
        elif line:
            asked.append(Asked(style, line.removesuffix(";")))
    return asked


@cache
def outcome(sql: str) -> str:
    """Return nothing where a statement is answered, or the text of its refusal; any other exception is a fault."""
    try:
        if rowless_query(sql) is None:
            measure(interpret(sql, SHOP), _UNIT, _TERMS)
    except IncrowdError as refusal:
        return str(refusal)
    return ""


def main() -> int:
    """Print the table and return 1 if fewer than 95 % of what can be answered is."""
    answered, refused, rightly = Counter[str](), Counter[str](), Counter[str]()
    listed = statements()
    for statement in listed:
        refusal = outcome(statement.sql)
        if not refusal:
            answered[statement.style] += 1
        else:
            (rightly if statement.rightly else refused)[statement.style] += 1
            print(f"{statement.style}: {statement.sql}\n    {refusal}\n    instead: {'; '.join(statement.instead)}")
    print("\n| style | statements | answered | refused with a way out | refused rightly |\n|---|---|---|---|---|")
    for style in dict.fromkeys(statement.style for statement in listed):
        numbers = (answered[style], refused[style], rightly[style])
        print(f"| {style} | {sum(numbers)} | {' | '.join(map(str, numbers))} |")
    numbers = (answered.total(), refused.total(), rightly.total())
    print(f"| all | {sum(numbers)} | {' | '.join(map(str, numbers))} |")
    return 0 if answered.total() >= Fraction(95, 100) * (answered.total() + refused.total()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
