"""Write or check the facts: what each example plans, costs, claims and releases, and how each command ends.

    scripts/facts                   compute all records and write them to tests/facts/committed
    scripts/facts --check           compute them and print what differs from there; exit code 1 if anything does
    scripts/facts --check NAME…     only records of a family (methods), of a group (safe) or with a name that begins so
    scripts/facts NAME…             write only these

A refactoring leaves all of them as they are.  A change that is meant is written with `scripts/facts`, and its
difference is read, line by line, before it is committed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tests.facts import compare, records

Families = dict[str, dict[str, Any]]
_TOGETHER = 8
"""So many records are computed by one process before it takes others."""


def main(words: Sequence[str] | None = None, folder: Path = compare.FOLDER) -> int:
    """Write or check records, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="scripts/facts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a family, a group, or how a record's name begins")
    parser.add_argument("--check", action="store_true", help="write nothing, and print what differs")
    parser.add_argument("--processes", type=int, default=2, help="how many processes compute (default: 2)")
    options = parser.parse_args(words)
    names = [name for name in all_names() if not options.names or selected(name, options.names)]
    if not names:
        sys.exit("no record has such a name: name a family, a group, or how a record's name begins.")
    fresh = computed(names, options.processes)
    committed = {family: compare.read(family, folder) for family in fresh}
    if options.names:  # records that were not computed are neither compared nor changed
        others = {
            family: {name: each for name, each in old.items() if name not in fresh[family]}
            for family, old in committed.items()
        }
        fresh = {family: {**others[family], **made} for family, made in fresh.items()}
    return check(committed, fresh) if options.check else write(fresh, folder)


def all_names() -> list[records.Name]:
    """Return the family and the name of every record."""
    return [(family, name) for family, examples in records.catalog().items() for name in examples]


def selected(name: records.Name, wished: Iterable[str]) -> bool:
    """Whether a record is one of those asked for.

    >>> selected(("methods", "safe / people"), ["safe"]), selected(("methods", "safe / people"), ["saf / people"])
    (True, False)
    """
    family, own = name
    group = own.partition(" / ")[0]
    return any(wish in (family, group, f"{family} / {group}") or own.startswith(wish) for wish in wished)


def computed(names: Sequence[records.Name], processes: int = 2) -> Families:
    """Compute records in several processes, and return them by family and name."""
    if processes < 2 or len(names) < _TOGETHER:
        made = list(map(records.compute, names))
    else:
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
            made = list(pool.map(records.compute, names, chunksize=_TOGETHER))
    families: Families = {}
    for (family, name), record in zip(names, made, strict=True):
        families.setdefault(family, {})[name] = record
    return families


def check(committed: Families, fresh: Families) -> int:
    """Print what differs from the committed records, and return the exit code."""
    lines = [
        f"{family} › {line}" for family, made in fresh.items() for line in compare.differences(committed[family], made)
    ]
    print(*lines, f"{len(lines)} differences", sep="\n")
    return 1 if lines else 0


def failure(record: Any) -> bool:
    """Whether a record says that it could not be computed."""
    return isinstance(record, dict) and records.FAILED in record


def write(fresh: Families, folder: Path) -> int:
    """Write records, unless one could not be computed."""
    failed = [
        f"{family} / {name}: {made[name]}" for family, made in fresh.items() for name in made if failure(made[name])
    ]
    if failed:
        print("nothing was written, because records could not be computed:", *failed, sep="\n")
        return 1
    for family, made in fresh.items():
        compare.write(family, made, folder)
    print(f"written to {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
