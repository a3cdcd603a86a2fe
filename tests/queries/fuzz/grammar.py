"""Questions at random: tables, joins, unions and people's own aggregates, grouped, filtered and aggregated."""

from __future__ import annotations

import random
from dataclasses import dataclass

PATIENTS = {"visits": 2, "tests": 3, "labs": 2, "swapped": 2, "rows": 0}
"""The private tables, and how many rows of a person take part; 0 where each row is a unit of its own."""
VISITED = ("visits", "swapped", "rows")
_WIDE = {"age": "n", "cost": "d", "ward": "c", "day": "t", "smoker": "b", "note": "o", "code": "i"}
_STRICT = {"score": "n", "grade": "n", "rate": "d", "kind": "c", "seen": "u"}


@dataclass(frozen=True)
class Rows:
    """What stands after FROM, and the columns that can be asked about, by the letter of what they hold.

    n and d are numbers with bounds, whole and decimal; c, b and t are categories, truth values and dates that can be
    listed; o, i and u are texts, whole numbers and dates that cannot.
    """

    text: str
    columns: dict[str, str]
    person: str | None

    def of(self, kinds: str) -> list[str]:
        """Return the columns of some kinds."""
        return [name for name, kind in self.columns.items() if kind in kinds]


def columns_of(table: str, name: str = "") -> dict[str, str]:
    """Return the columns of a table, each with the name of its source before it, if there is one."""
    known = _WIDE if table in VISITED else _STRICT
    return {f"{name}.{column}" if name else column: kind for column, kind in known.items()}


def question(chance: random.Random) -> str:
    """Return a question; most are answered, some refused."""
    kinds = [_table, _public, _comma, _people, _union, _own, _owns, _filtered, _different]
    rows = chance.choices(kinds, weights=[4, 2, 1, 4, 3, 4, 2, 2, 1])[0](chance)
    keys = _keys(chance, rows)
    items = [*keys, *(_aggregate(chance, rows) for _ in range(chance.choice((1, 1, 1, 2, 3))))]
    named = [f"{item} AS c{place}" for place, item in enumerate(items)]
    where = f" WHERE {_condition(chance, rows)}" if chance.random() < 0.3 else ""
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    if keys and chance.random() < 0.1:
        places = ", ".join(str(place) for place in range(1, len(keys) + 1))
        group = f" GROUP BY {chance.choice(('ROLLUP', 'CUBE'))} ({places})"
    text = f"SELECT {', '.join(named)} FROM {rows.text}{where}{group}"
    last = f"c{len(items) - 1}"
    outer = (
        f"SELECT *, RANK() OVER (ORDER BY {last}) AS r FROM ({text})",
        f"SELECT COUNT(*), MAX({last}) FROM ({text})",
    )
    return chance.choice(outer) if chance.random() < 0.1 else text


def several(chance: random.Random) -> str:
    """Return a question that is made of several answers: below each other, joined, or inside of an expression."""
    rows = chance.choice((_table, _table, _own, _filtered))(chance)
    one, two = (chance.choice((_aggregate(chance, rows), "COUNT(*)")) for _ in range(2))
    where = f" WHERE {_condition(chance, rows)}" if chance.random() < 0.5 else ""
    keys = _keys(chance, rows)[:1]
    if not keys or chance.random() < 0.3:
        first, second = f"SELECT 'a' AS k, {one} AS n FROM {rows.text}", f"SELECT 'b', {two} FROM {rows.text}{where}"
        return f"{first} UNION ALL {second}{chance.choice(('', ' ORDER BY n LIMIT 1'))}"
    key = keys[0]
    grouped = f"SELECT {key} AS k, {one} AS n FROM {rows.text} GROUP BY {key}"
    other = f"SELECT {key} AS k, {two} AS m FROM {rows.text}{where} GROUP BY {key}"
    whole = f"SELECT {two} FROM {rows.text}{where}"
    shapes = (
        f"SELECT a.k, a.n, b.m FROM ({grouped}) a {chance.choice(('', 'LEFT '))}JOIN ({other}) b ON a.k = b.k",
        f"SELECT {key} AS k, COUNT(*) / ({whole}) AS part FROM {rows.text} GROUP BY {key} ORDER BY part",
        f"WITH a AS ({grouped}) SELECT k, n FROM a UNION ALL SELECT NULL, MAX(n) FROM a",
        f"SELECT * FROM ({grouped}) a CROSS JOIN ({whole}) b",
    )
    return chance.choice(shapes)


def _table(chance: random.Random) -> Rows:
    table = chance.choice(list(PATIENTS))
    return Rows(table, columns_of(table), "patient" if PATIENTS[table] else None)


def _public(chance: random.Random) -> Rows:
    table, public = chance.choice(VISITED), chance.choice(("wards", "doctors"))
    side = chance.choice(("", "LEFT "))
    own = {"b.floor": "n"} if public == "wards" else {"b.doctor": "o"}
    text = f"{table} AS a {side}JOIN {public} AS b ON a.ward = b.ward"
    return Rows(text, columns_of(table, "a") | own, "a.patient" if PATIENTS[table] else None)


def _comma(chance: random.Random) -> Rows:
    text = "visits AS a, tests AS b WHERE a.patient = b.patient AND a.age > b.score"
    if chance.random() < 0.5:
        return Rows(f"(SELECT a.patient, a.age AS x, b.score AS y FROM {text}) AS c", {"x": "n", "y": "n"}, "patient")
    public = "(SELECT a.patient, a.age AS x, b.floor AS y FROM visits AS a, wards AS b WHERE a.ward = b.ward) AS c"
    return Rows(public, {"x": "n", "y": "n"}, "patient")


def _different(chance: random.Random) -> Rows:
    table = chance.choice([name for name, most in PATIENTS.items() if most])
    kept = chance.choice([name for name, kind in columns_of(table).items() if kind in "ncb"])
    return Rows(f"(SELECT DISTINCT patient, {kept} FROM {table}) AS u", {kept: columns_of(table)[kept]}, "patient")


def _people(chance: random.Random) -> Rows:
    """Two private tables beside each other: of one dataset, of two, or one table twice."""
    first, second = chance.choice((("visits", "tests"), ("visits", "labs"), ("tests", "labs"), ("swapped",) * 2))
    if chance.random() < 0.3:
        first, second = second, first
    side = chance.choice(("", "", "LEFT "))
    more = " AND a.age > b.score" if (first, second) == ("visits", "tests") and chance.random() < 0.3 else ""
    text = f"{first} AS a {side}JOIN {second} AS b ON a.patient = b.patient{more}"
    return Rows(text, columns_of(first, "a") | columns_of(second, "b"), "a.patient")


def _union(chance: random.Random) -> Rows:
    sides = [
        (table, chance.choice([n for n, kind in columns_of(table).items() if kind == "n"]))
        for table in chance.choice((("visits", "tests"), ("visits", "labs"), ("labs", "labs"), ("rows", "rows")))
    ]
    person = "patient" if PATIENTS[sides[0][0]] else None
    parts = [f"SELECT {'patient, ' if person else ''}{number} AS x FROM {table}" for table, number in sides]
    return Rows(f"({' UNION ALL '.join(parts)}) AS u", {"x": "n"}, person)


def _own(chance: random.Random) -> Rows:
    text, columns = _of_each(chance, chance.choice([name for name, most in PATIENTS.items() if most]))
    return Rows(f"{text} AS p", columns, "patient")


def _owns(chance: random.Random) -> Rows:
    tables = chance.choice((("visits", "tests"), ("visits", "labs"), ("swapped", "swapped")))
    (first, left), (second, right) = (_of_each(chance, table) for table in tables)
    columns = {f"a.{name}": kind for name, kind in left.items()} | {f"b.{name}": kind for name, kind in right.items()}
    side = chance.choice(("", "", "LEFT "))
    return Rows(f"{first} AS a {side}JOIN {second} AS b ON a.patient = b.patient", columns, "a.patient")


def _of_each(chance: random.Random, table: str) -> tuple[str, dict[str, str]]:
    """Return a subquery that aggregates the rows of each person, and its columns."""
    known = columns_of(table)
    number = chance.choice([name for name, kind in known.items() if kind in "nd"])
    kept = chance.choice([name for name, kind in known.items() if kind in "cb"])
    key = f", {kept}" if chance.random() < 0.4 else ""
    what = chance.choice(("SUM", "MAX", "MIN", "AVG"))
    where = f" WHERE {number} > 0" if chance.random() < 0.3 else ""
    having = f" HAVING COUNT(*) > 1 OR {what}({number}) > 0.5" if chance.random() < 0.2 else ""
    group = f"GROUP BY patient{key}{having}"
    text = f"(SELECT patient{key}, COUNT(*) AS m, {what}({number}) AS x FROM {table}{where} {group})"
    return text, {"m": "n", "x": "d"} | ({kept: known[kept]} if key else {})


def _filtered(chance: random.Random) -> Rows:
    inner = _table(chance)
    condition = _condition(chance, inner)
    return Rows(f"(SELECT * FROM {inner.text} WHERE {condition}) AS f", inner.columns, inner.person)


def _keys(chance: random.Random, rows: Rows) -> list[str]:
    found = []
    for _ in range(chance.choice((0, 1, 1, 1, 2))):
        column = chance.choice(list(rows.columns))
        match rows.columns[column]:
            case "n" | "d":
                found.append(chance.choice((f"FLOOR({column} / 10)", f"{column} > 3")))
            case "t":
                unit = chance.choice(("month", "quarter", "year"))
                made = (f"STRFTIME({column}, '%Y-%m')", f"WEEK({column})", f"DAYNAME({column} + INTERVAL 1 MONTH)")
                found.append(chance.choice((f"DATE_TRUNC('{unit}', {column})", *made)))
            case "o":
                parts = (f"LEFT({column}, 1)", f"{column} = 'x'", f"SPLIT_PART({column}, 'a', 2)")
                found.append(chance.choice((column, *parts)))
            case _:
                found.append(column)
    return list(dict.fromkeys(found))


def _aggregate(chance: random.Random, rows: Rows) -> str:
    numbers, kinds = rows.of("nd"), rows.of("ncb")
    told = [
        "COUNT(*)",
        f"COUNT({chance.choice(list(rows.columns))})",
        f"COUNT(*) FILTER (WHERE {_condition(chance, rows)})",
    ]
    told += [f"COUNT(DISTINCT {chance.choice(list(rows.columns))})"]
    if rows.person:
        condition = _condition(chance, rows)
        told += [f"COUNT(DISTINCT {rows.person})"] * 2 + [f"COUNT({rows.person})"]
        told += [f"COUNT(DISTINCT CASE WHEN {condition} THEN {rows.person} END)"]
        told += [f"COUNT(DISTINCT {rows.person}) FILTER (WHERE {condition})"]
    if numbers:
        number = chance.choice(numbers)
        told += [f"{name}({number})" for name in ("SUM", "AVG", "VARIANCE", "STDDEV", "MEDIAN", "MIN", "MAX")]
        told += [f"QUANTILE({number}, 0.9)", f"SUM({number} * 2 - 1)", f"SUM(ABS({number}))"]
        told += [f"VAR_POP({number})", f"CORR({number}, {chance.choice(numbers)})", f"SKEWNESS({number})"]
    told += [f"MODE({chance.choice(kinds)})"] if kinds else []
    return chance.choice(told)


def _condition(chance: random.Random, rows: Rows) -> str:
    if rows.person and chance.random() < 0.2:
        return _membership(chance, rows.person)
    column = chance.choice(list(rows.columns))
    told = {
        "n": (f"{column} > 3", f"{column} BETWEEN 1 AND 42"),
        "d": (f"{column} <= 0.5", f"{column} * 2 > 1"),
        "c": (f"{column} = 'heart'", f"{column} IN ('x', 'lung')"),
        "b": (column, f"NOT {column}"),
        "t": (f"{column} >= '2024-02-29'", f"YEAR({column}) = 2024"),
        "o": (f"{column} LIKE '%a%'", f"LENGTH({column}) > 1"),
        "i": (f"{column} < 7", f"{column} = 42"),
        "u": (f"{column} < '2025-01-01'", f"MONTH({column}) = 2"),
    }[rows.columns[column]]
    return chance.choice((*told, f"{column} IS NULL", f"{column} IS NOT NULL"))


def _membership(chance: random.Random, person: str) -> str:
    table = chance.choice([name for name, most in PATIENTS.items() if most])
    number = next(name for name, kind in columns_of(table).items() if kind == "n")
    inner = f"SELECT e.patient FROM {table} AS e WHERE e.{number} > {chance.choice((0, 1, 3))}"
    if "." in person and chance.random() < 0.4:
        found = f"EXISTS ({inner} AND e.patient = {person})"
    else:
        many = " GROUP BY e.patient HAVING COUNT(*) > 1" if chance.random() < 0.3 else ""
        found = f"{person} IN ({inner}{many})"
    return f"NOT {found}" if chance.random() < 0.3 else found
