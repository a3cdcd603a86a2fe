"""The command `scripts/sabotage`: choose sabotages, apply them one by one, print verdicts and survivors."""

from __future__ import annotations

import argparse
import json
import math
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.sabotage.sabotage import Misfit, Sabotage, applied_in
from tests.sabotage.scratch import ENDLESS, ROOT, Unusable, Verdict, scratch
from tests.sabotage.table import SABOTAGES

WITNESSES = Path(__file__).parent / "witnesses.json"
"""The test that noticed each sabotage last, and its seconds: it runs first, and the fastest with every `./test`."""


def main(arguments: Sequence[str]) -> int:
    """Return 1 if a sabotage survives or does not fit the source, else 0."""
    options = _parser().parse_args(arguments)
    chosen = _chosen(options)
    if options.list:
        return list_all(chosen)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the scratch copy is removed
    verdicts = run(chosen)
    survivors = [verdict for verdict in verdicts if verdict.noticed_by is None]
    print(f"\n{len(verdicts)} sabotages, {len(survivors)} survived, {sum(v.seconds for v in verdicts):.0f} s")
    for verdict in survivors:
        print(verdict.sentence)
    return 1 if survivors else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/sabotage")
    parser.add_argument("--area", action="append", choices=sorted({item.area for item in SABOTAGES}))
    parser.add_argument("--matching", action="append", metavar="TEXT")
    parser.add_argument("--changed", nargs="?", const="", metavar="REV")
    parser.add_argument("--fastest", type=int, metavar="NUMBER")
    parser.add_argument("--list", action="store_true")
    return parser


def _chosen(options: argparse.Namespace) -> list[Sabotage]:
    chosen = list(SABOTAGES)
    if options.area:
        chosen = [item for item in chosen if item.area in options.area]
    if options.matching:
        chosen = [item for item in chosen if any(text in item.name for text in options.matching)]
    if options.changed is not None:
        files = changed_files(options.changed or None)
        chosen = [item for item in chosen if f"src/incrowd/{item.file}" in files]
    if options.fastest is not None:
        chosen = fastest(chosen)[: options.fastest]
    return chosen


def run(chosen: Iterable[Sabotage]) -> list[Verdict]:
    """Apply sabotages one after the other in one scratch copy, and print each verdict."""
    verdicts = []
    with scratch() as copy:
        for item in chosen:
            try:
                verdicts.append(copy.verdict(item, witness(item)))
                store(verdicts[-1])
            except (Misfit, Unusable) as error:
                print(error)
                verdicts.append(Verdict(item, None, 0.0))
            print(verdicts[-1].sentence, flush=True)
    return verdicts


def list_all(chosen: Iterable[Sabotage]) -> int:
    """Print sabotages by area, and those that do not fit the source; return 1 if there is one."""
    misfits = []
    for item in chosen:
        print(f"{item.area:14} {item.name}\n{'':14} pytest {' '.join(item.tests)}")
        try:
            applied_in(item, ROOT)
        except Misfit as error:
            misfits.append(str(error))
    print("\n".join(misfits) or f"\nall fit: {dict(Counter(item.area for item in SABOTAGES))}")
    return 1 if misfits else 0


def changed_files(revision: str | None = None) -> frozenset[str]:
    """Return the files that changed since a revision; since the branch left main, or on main since the last commit."""
    base = revision or _git("merge-base", "HEAD", "main")
    if revision is None and base == _git("rev-parse", "HEAD"):
        base = "HEAD~1"
    return frozenset(_git("diff", "--name-only", base).splitlines()) if base else frozenset()


def _git(*words: str) -> str:
    """Return what git says; nothing where there is no git, or no such revision."""
    try:
        result = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


def fastest(chosen: Iterable[Sabotage]) -> list[Sabotage]:
    """Return sabotages by how long their tests took, first one of each area; unmeasured ones come last."""
    stored = _stored()
    ordered = sorted(chosen, key=lambda item: stored[item.name]["seconds"] if item.name in stored else math.inf)
    seen: Counter[str] = Counter()
    rank = {}
    for item in ordered:
        rank[item.name] = seen[item.area]
        seen[item.area] += 1
    return sorted(ordered, key=lambda item: rank[item.name])


def witness(sabotage: Sabotage) -> str | None:
    """Return the test that noticed a sabotage last."""
    return _stored().get(sabotage.name, {}).get("test")


def store(verdict: Verdict) -> None:
    """Write down who noticed a sabotage; nobody is remembered for one that survives or is noticed by no end."""
    stored = {item.name: entry for item in SABOTAGES if (entry := _stored().get(item.name))}
    stored.pop(verdict.sabotage.name, None)
    if verdict.noticed_by is not None and verdict.noticed_by != ENDLESS:
        stored[verdict.sabotage.name] = {"test": verdict.noticed_by, "seconds": round(verdict.seconds, 1)}
    WITNESSES.write_text(json.dumps(stored, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def _stored() -> dict[str, dict[str, Any]]:
    return dict(json.loads(WITNESSES.read_text(encoding="utf-8"))) if WITNESSES.exists() else {}
