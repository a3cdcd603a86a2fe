"""Questions too long to be written down: nested, repeated, and grown by rules."""

from __future__ import annotations


def _nested(outer: str, times: int, inner: str) -> str:
    for _ in range(times):
        inner = outer.replace("?", inner)
    return inner


def _sum(outer: str, times: int, inner: str = "age") -> str:
    return f"SELECT SUM({_nested(outer, times, inner)}) FROM people"


def _where(condition: str) -> str:
    return f"SELECT COUNT(*) FROM people WHERE {condition}"


def _doubled(times: int) -> str:
    steps = ["c0 AS (SELECT age FROM people)"]
    steps += [f"c{n} AS (SELECT age FROM c{n - 1} UNION ALL SELECT age FROM c{n - 1})" for n in range(1, times)]
    return f"WITH {', '.join(steps)} SELECT COUNT(*) FROM c{times - 1}"


GROWING = {
    "brackets": _where(_nested("(?)", 5000, "member")),
    "some brackets": _where(_nested("(?)", 20, "member")),
    "negations": _where("NOT " * 3000 + "member"),
    "signs": _where("age = " + "- " * 3000 + "5"),
    "clamped again and again": _sum("CLAMP(?, 0, 10)", 20),
    "clamped twice": _sum("CLAMP(?, 0, 10)", 2),
    "roots of roots": _sum("SQRT(?)", 20),
    "logarithms of logarithms": _sum("LN(?)", 12),
    "fractions of fractions": _sum("CLAMP(income / (?), 0, 1)", 11, "income"),
    "cases of cases": _sum("CASE ? WHEN 1 THEN 1 WHEN 2 THEN 2 WHEN 3 THEN 3 ELSE 4 END", 11),
    "weeks of weeks": _where(_nested("DATE_TRUNC('week', ?)", 22, "day") + " > '2020-01-01'"),
    "powers of powers": _sum("POWER(?, 8)", 8),
    "sums without end": _where("age > " + " + ".join(["age"] * 1500)),
    "some sums": _where("age > " + " + ".join(["age"] * 30)),
    "conditions without end": _where(" AND ".join(["age > 41"] * 900)),
    "either or without end": _where(" OR ".join(f"age = {n}" for n in range(900))),
    "a list without end": _where(f"age IN ({', '.join(map(str, range(3000)))})"),
    "a long list": _where(f"age IN ({', '.join(map(str, range(400)))})"),
    "subqueries without end": "SELECT COUNT(*) FROM " + _nested("(SELECT * FROM ?)", 60, "people"),
    "clamped in subqueries": "SELECT SUM(x) FROM "
    + _nested("(SELECT CLAMP(x, 0, 10) AS x FROM ?)", 12, "(SELECT age AS x FROM people)"),
    "doubled again and again": _doubled(40),
    "doubled twice": _doubled(3),
    "stacked": "SELECT COUNT(*) FROM (" + " UNION ALL ".join(["SELECT age FROM people"] * 200) + ")",
    "joined": "SELECT COUNT(*) FROM people a " + " ".join(f"JOIN people b{n} ON a.id = b{n}.id" for n in range(30)),
    "joined to words": "SELECT COUNT(*) FROM people a "
    + " ".join(f"JOIN words b{n} ON a.sex = b{n}.sex" for n in range(12)),
    "aggregates without end": f"SELECT {', '.join(f'SUM(age + {n}) AS s{n}' for n in range(600))} FROM people",
    "many aggregates": f"SELECT {', '.join(f'SUM(age + {n}) AS s{n}' for n in range(12))} FROM people",
    "keys without end": f"SELECT COUNT(*) FROM people GROUP BY {', '.join(f'age + {n}' for n in range(100))}",
    "many keys": f"SELECT COUNT(*) FROM people GROUP BY {', '.join(f'age > {n}' for n in range(16))}",
    "more keys": f"SELECT COUNT(*) FROM people GROUP BY {', '.join(f'age > {n}' for n in range(40))}",
    "texts put together": f"SELECT COUNT(*) FROM people WHERE {' || '.join(['zip'] * 60)} = 'x'",
    "one text of many": f"SELECT CONCAT({', '.join(['sex'] * 22)}) AS k, COUNT(*) FROM people GROUP BY k",
    "a long text": _where(f"zip = '{'x' * 5000}'"),
    "a long question": _where(f"zip = 'x' -- {'x' * 30_000}"),
    "a long name": f"SELECT COUNT(*) AS {'n' * 9000} FROM people",
    "a long pattern": _where(f"zip LIKE '{'_' * 900}'"),
    "a long number": _where(f"age < {'9' * 5000}"),
    "a long fraction": _where(f"income < 0.{'3' * 5000}"),
    "nothing at the end of a text": _where("zip = 'x\x00y'"),
    "half a character": _where("zip = '\ud800'"),
    "the other half": _where('"\udfff" = 5'),
    "letters that turn around": _where("zip = '\u202e' AND age \u2066= 41"),
    "spaces of all kinds": "SELECT\u00a0COUNT(*)\u2003FROM\u3000people\ufeff",
    "bells and escapes": _where("zip = '\x07\x1b[31m'"),
}
