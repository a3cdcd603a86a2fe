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


KIN = tuple(kin())
ATTACK = joined(5, f"LENGTH({replaced('v1.note', 3)}) > 5")
"""Five tables and nested texts: with long texts and one person with six rows it took two seconds."""
