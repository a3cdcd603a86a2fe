"""Growth of every verb that reads rows: CPU seconds and memory at 1, 2, 4 and 8 million rows; a release of 100 million.

    python -m bench.growth [MILLIONS…]

The last size may take at most 1.15 times as long for each row as the first.  Memory is bounded by 600 MB for verbs that
pass over the rows; models, masks and answers of surveys, which hold a part of each row, may take 200 bytes for each.
The release of 100 million rows reads ten names of the table of ten million, and may take at most 500 MB.  A first size
of few rows says little: what every process takes to start is in it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from bench.rows import HEAD, Row, finish, show
from bench.safe_release import DATA, GOAL_MEMORY, measured, policy, table
from bench.verbs import PUBLISH, incrowd

LINEAR, HUNDRED_MEMORY = 1.15, 500.0
BYTES = 200
"""Of each row, for verbs that hold a part of every row."""
SECTIONS = {
    "query": "queries: {open: true}\nbudget: {epsilon: 10}\n",
    "marginals": "release: {method: marginals, epsilon: 1, delta: 1e-9, levels: {charge: 2, discharged: 1}}\n",
    "learn": "release: {method: classifier, target_column: sex, columns: [age, ethnicity, procedure], epsilon: 1, "
    "delta: 1e-9}\n",
    "pram": "release: {method: pram, columns: {sex: {stay: 4/5}, ethnicity: {stay: 4/5}}}\n"
    "budget: {unbounded: a benchmark}\n",
}
SURVEY = "survey: 1\nname: answers\nepsilon: 1\nquestions: {ethnicity: {categories: [%s]}}\n"
ETHNICITIES = "white, black, asian, hispanic, native, mixed"


@dataclass(frozen=True)
class Verb:
    """A command that reads rows, and whether it holds a part of each."""

    name: str
    words: tuple[str, ...]
    holds: bool = False


def policies(folder: Path) -> dict[str, str]:
    """Write a policy for each kind of work on the same columns; return where they are."""
    safe = policy(folder, "0.1")
    head = safe.read_text(encoding="utf-8").partition("release:\n")[0]
    for name, section in SECTIONS.items():
        columns = (
            head.replace("{hierarchy: {prefix", "{role: identifier, hierarchy: {prefix") if name == "pram" else head
        )
        text = columns.replace("name: bench", f"name: {name}") + section
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    (folder / "survey.yaml").write_text(SURVEY % ETHNICITIES, encoding="utf-8")
    return {"safe": safe.name, **{name: f"{name}.yaml" for name in SECTIONS}}


def verbs(source: str, control: str, files: dict[str, str]) -> Iterator[Verb]:
    """Yield the commands that read the rows of one table."""
    safe = ("--policy", files["safe"])
    yield Verb("release", ("release", source, *safe, "--out", "out"))
    yield Verb("plan", ("plan", source, *safe))
    yield Verb("check", ("check", source, "--quasi", "age,sex,ethnicity", "--k", "5"))
    yield Verb("profile", ("profile", source))
    yield Verb("hierarchy check", ("hierarchy", "check", source, *safe))
    yield Verb("assess", ("assess", "out", "--against", source, *safe))
    question = ("query", "SELECT sex, COUNT(*) AS n, AVG(age) AS mean FROM query GROUP BY sex", "--epsilon", "1")
    yield Verb("query", (*question, "--policy", files["query"], "--data", source))
    yield Verb("release of marginals", ("release", source, "--policy", files["marginals"], "--out", "rows"), True)
    yield Verb("release of pram", ("release", source, "--policy", files["pram"], "--out", "mask"), True)
    yield Verb("learn", ("learn", source, "--policy", files["learn"], "--out", "model"), True)
    yield Verb("predict", ("predict", "model", source, "--out", "predictions.parquet"))
    yield Verb("local randomize", ("local", "randomize", source, "--survey", "survey.yaml", "--out", "r.jsonl"), True)
    known = ("--known", "sex,ethnicity,zip", "--secret", "diagnosis")
    yield Verb("attack", ("attack", "published.parquet", "--against", source, "--control", control, *known))


def hundred() -> Row:
    """Release 100 million rows: ten names of one table of ten million, beside the release of one of them."""
    ten = table(10**7, "parquet")
    with tempfile.TemporaryDirectory(dir=DATA) as name:
        folder = Path(name)
        (folder / "parts").mkdir()
        for number in range(10):
            os.link(ten, folder / "parts" / f"{number}.parquet")
        words = ("--policy", policy(folder, "0.1").name, "--out")
        one = incrowd(folder, "release", str(ten), *words, "one")
        run = incrowd(folder, "release", str(folder / "parts"), *words, "all")
        published = pq.read_metadata(next((folder / "all").glob("*.parquet"))).num_rows
        assert published > 10**6, "a tenth of a hundred million rows is drawn, and most of them are published"
    work = "release of 100,000,000 rows"
    return show(
        Row(work, run.cpu, 10 * one.cpu, "ten of 10 million", LINEAR, 0.0, run.megabytes, most_megabytes=HUNDRED_MEMORY)
    )


def main() -> None:
    """Measure every verb at every size; exit 1 where one grows faster than the rows."""
    sizes = [int(float(word) * 1e6) for word in sys.argv[1:]] or [10**6, 2 * 10**6, 4 * 10**6, 8 * 10**6]
    first, rows = dict[str, float](), list[Row]()
    print(HEAD)
    for size in sizes:
        source, control = str(table(size, "parquet")), str(table(size // 10, "parquet"))
        with tempfile.TemporaryDirectory(dir=DATA) as name:
            folder = Path(name)
            measured([sys.executable, "-c", PUBLISH, source], folder)
            for verb in verbs(source, control, policies(folder)):
                run = incrowd(folder, *verb.words)
                base = first.setdefault(verb.name, run.cpu / size) * size
                most = max(GOAL_MEMORY, BYTES * size / 1e6) if verb.holds else GOAL_MEMORY
                work = f"{verb.name}, growth to {size:,} rows"
                rows.append(show(Row(work, run.cpu, base, "in proportion", LINEAR, 0.0, run.megabytes, most)))
    if len(sys.argv) == 1:
        rows.append(hundred())
    finish(rows)


if __name__ == "__main__":
    main()
