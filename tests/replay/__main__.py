"""Print the largest part of its guarantee that each example lost; `--write` makes it the golden one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

from tests.queries.language.hospital import opened
from tests.replay import answers, batches, consent, crowds, golden, graphs, groups, linked, questions, series, tables


def examples() -> Iterator[tuple[str, Callable[[], golden.Parts]]]:
    """Return every example by its name, with what measures it."""
    for method, name in tables.REPLAYED:
        yield f"{method}, {name}", partial(tables.parts, method, name)
    for method, name in crowds.SAMPLED:
        yield f"{method}, {name}", partial(crowds.parts, method, name)
    for method, name in answers.TABLES:
        yield f"{method}, {name}", partial(answers.table_parts, method, name)
    for name in graphs.REPLAYED:
        yield f"graph, {name}", partial(graphs.parts, name)
    for name in linked.REPLAYED:
        yield f"linked, {name}", partial(linked.parts, name)
    for name in answers.GRAPHS:
        yield f"graph, {name}", partial(answers.graph_parts, name)
    for family, epsilon in answers.FAMILIES:
        yield f"survey, {family} at {epsilon}", partial(answers.family_parts, family, epsilon)
    yield "survey, all kinds of questions", answers.survey_parts
    connection = opened({})
    for sql in questions.STATEMENTS:
        yield f"question, {sql}", partial(questions.parts, sql, connection)
    for name in batches.BATCHES:
        yield f"batch, {name}", partial(batches.parts, name, connection)
    for sql in groups.OPEN:
        yield f"unknown groups, {sql}", partial(groups.parts, sql, connection)
    for strategy, limit in series.REPLAYED:
        yield f"continual, {strategy}, {limit}", partial(series.parts, strategy, limit, step=9)
    for method, name in (*consent.GATED, *consent.LINKED):
        yield f"consent, {method}, {name}", partial(consent.parts, method, name)


def measured(words: list[str]) -> dict[str, golden.Parts]:
    """Measure the examples whose names have one of the words; all, if there are none."""
    results: dict[str, golden.Parts] = {}
    for name, measure in examples():
        if not words or any(word in name for word in words):
            start = time.process_time()
            results[name] = measure()
            for kind, part in results[name].items():
                seconds = time.process_time() - start
                print(f"{name:60} {kind:18} {part:.4f}  {seconds:5.1f} s", flush=True)
    return results


if __name__ == "__main__":
    everything = measured([word for word in sys.argv[1:] if word != "--write"])
    if "--write" in sys.argv:
        golden.store(golden.load() | everything)
