"""Questions by which an analyst could let one person decide how long they take."""

from __future__ import annotations

from collections.abc import Iterator


def joined(times: int, condition: str, select: str = "COUNT(*)") -> str:
    """Return a question that joins a table with itself on the person, so many times."""
    others = " ".join(f"JOIN visits AS v{place} ON v1.patient = v{place}.patient" for place in range(2, times + 1))
    return f"SELECT {select} FROM visits AS v1 {others} WHERE {condition}"


def replaced(text: str, deep: int, new: str = "bb") -> str:
    """Return a text in which a letter is replaced by several, again and again."""
    for _ in range(deep):
        text = f"REPLACE({text}, 'a', '{new}a')"
    return text


def kin() -> Iterator[str]:
    """Yield the question that took seconds with one person and none without, and others of its kind."""
    for times in range(2, 6):
        for deep in range(1, 4):
            yield joined(times, f"LENGTH({replaced('v1.note', deep)}) > 5")
        yield joined(times, "v1.note LIKE '%a%b%c%d%'")
        yield joined(times, f"CONTAINS({replaced('v1.note', 1)}, 'aaab')")
    yield joined(5, "v1.age > 1", "MEDIAN(v1.cost), QUANTILE(v2.cost, 0.9)")
    yield joined(4, "UPPER(v1.note) <> LOWER(v2.note)", "v1.ward, COUNT(*)") + " GROUP BY v1.ward"
    yield joined(3, "v1.age > 1", "v1.age, v2.age, COUNT(*)") + " GROUP BY v1.age, v2.age"
    yield "SELECT age, ward, COUNT(*), AVG(cost) FROM visits GROUP BY age, ward"
    yield "SELECT AVG(n) FROM (SELECT patient, SUM(LENGTH(note)) AS n FROM visits GROUP BY patient)"
    yield "SELECT COUNT(*) FROM visits WHERE LENGTH(note || note || note || note) > 700"
    yield "SELECT COUNT(*) FROM visits WHERE note LIKE '%" + "a" * 50 + "%b%'"
    yield "SELECT MEDIAN(LENGTH(note)), MODE(ward), COUNT(*) FROM visits"
    twice = "SELECT note AS x, patient FROM visits UNION ALL SELECT note, patient FROM visits"
    yield f"SELECT SUM(LENGTH(x)) FROM ({twice})"
    yield f"SELECT COUNT(*) FROM visits WHERE STARTS_WITH({replaced('note', 3)}, 'bbbb')"
    yield "SELECT COUNT(DISTINCT patient) FROM visits WHERE RIGHT(TRIM(note), 5) = 'aaaaa'"
    yield from written()


def written() -> Iterator[str]:
    """Yield what analysts write: quantiles, many groups, memberships, shares, unions, moments."""
    yield joined(2, "v1.age < v2.age", "QUANTILE(v1.age, 0.1), QUANTILE(v1.age, 0.5), MEDIAN(v2.cost)")
    yield "SELECT ward, MEDIAN(cost), QUANTILE(age, 0.9) FROM visits GROUP BY ward"
    yield joined(2, "v1.ward = v2.ward", "v1.age, v2.age, v1.ward, COUNT(*)") + " GROUP BY v1.age, v2.age, v1.ward"
    yield "SELECT age, ward, age % 7 AS k, COUNT(*), SUM(cost) FROM visits GROUP BY age, ward, k"
    yield "SELECT ward, age, COUNT(*) FROM visits GROUP BY ROLLUP (ward, age)"
    sums = "SUM(COUNT(*)) OVER (ORDER BY age), RANK() OVER (ORDER BY COUNT(*))"
    yield f"SELECT age, COUNT(*), {sums} FROM visits GROUP BY age"
    members = "SELECT patient FROM visits WHERE LENGTH(note) > 100"
    yield f"SELECT COUNT(*) FROM visits WHERE patient IN ({members})"
    yield f"SELECT ward, COUNT(*) FROM visits WHERE NOT patient IN ({members}) AND patient IN ({members}) GROUP BY ward"
    yield joined(3, "EXISTS (SELECT 1 FROM visits AS w WHERE w.patient = v1.patient AND w.note LIKE '%ab%')")
    yield f"SELECT COUNT(*) FROM visits WHERE patient IN (SELECT patient FROM visits WHERE {replaced('note', 2)} = 'b')"
    once = "SELECT patient, ward, COUNT(*) AS n, MAX(age) AS old FROM visits GROUP BY patient, ward"
    yield f"SELECT ward, AVG(n), MAX(old) FROM ({once}) GROUP BY ward"
    yield f"SELECT COUNT(*) FROM ({once}) AS a JOIN visits AS b ON a.patient = b.patient WHERE a.n > b.age"
    three = " UNION ALL ".join(f"SELECT patient, age + {n} AS a, LEFT(note, 9) AS x FROM visits" for n in range(3))
    yield f"SELECT a % 5 AS k, COUNT(*), MAX(LENGTH(x)) FROM ({three}) GROUP BY k"
    yield "SELECT CORR(age, cost), VAR_POP(cost), COUNT(DISTINCT age) FROM visits"
    yield "SELECT COUNT(*) FROM visits WHERE SPLIT_PART(note, 'a', 9) = 'b' OR POSITION('aab' IN note) > 3"
    yield joined(2, "REGEXP_MATCHES(v1.note, '^[ab]{9}') AND v2.note ILIKE '%aab%'")
    yield joined(4, "v1.age + v2.age + v3.age > v4.age", "SUM(v1.cost * v2.cost), VAR_POP(v3.age)")


KIN, WRITTEN = tuple(kin()), tuple(written())
ATTACK = joined(5, f"LENGTH({replaced('v1.note', 3)}) > 5")
"""Five tables and nested texts: with long texts and one person with six rows it took two seconds."""
