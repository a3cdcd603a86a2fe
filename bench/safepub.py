"""The same guarantee, fewer rows lost: sampled suppression with our k beside ARX's k (SafePub), on UCI Adult.

    python bench/safepub.py [FOLDER]        # with adult.csv and hierarchies/ in ARX's format

ARX 3.9.2 was measured once (its k per ε and δ, and one complete run: ε = 1, δ = 1e-5, k = 62, 6,666 of 19,108 sampled
rows suppressed, loss 0.454); it needs Java and is not run here.  Both thresholds are applied to the same secret samples
by the real engine.  Loss is ARX's: the share of the domain under each released value, 1 for a suppressed row.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path

from incrowd.accounting.suppression.inverses import smallest_k
from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.hierarchy.tree import parse_arx
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import SourceOptions
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.noise.system import SystemCoins
from incrowd.quality.ladder import class_losses, mean_loss

LEVELS = {
    "age": 2, "education": 1, "marital-status": 1, "native-country": 1,
    "race": 0, "salary-class": 0, "sex": 0, "workclass": 1,
}  # fmt: skip
DELTAS = ("1e-3", "1e-4", "1e-5", "1e-6", "1e-7")
ARX = {
    "0.25": (28, 39, 50, 63, 73),
    "0.5": (28, 40, 52, 64, 76),
    "1": (35, 48, 62, 75, 92),
    "1.5": (45, 63, 81, 100, 118),
    "2": (65, 82, 114, 132, 165),
    "3": (137, 182, 227, 272, 317),
}
SAMPLES = 5


def schema(folder: Path) -> Schema:
    """Return Adult's columns with their hierarchies."""
    files = {name: folder / "hierarchies" / f"adult_hierarchy_{name}.csv" for name in LEVELS}
    return Schema(
        tuple(
            Column(name, Role.QUASI, hierarchy=parse_arx(file.read_text()).hierarchy()) for name, file in files.items()
        )
    )


def loss(sampled: Counts, kept: Counts) -> float:
    """Return ARX's loss of a release over all sampled rows: the mean over the columns."""
    lost = sampled.total - kept.total
    columns = zip(kept.classes, kept.codes(), strict=True)
    return sum(mean_loss(class_losses(classes)[codes], kept.counts, lost) for classes, codes in columns) / len(LEVELS)


def main() -> None:
    """Print k, rows kept and loss for both, per guarantee."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "shared" / "data" / "adult"
    if not folder.is_dir():
        sys.exit(f"{folder} is not there: name the folder of Adult.")
    declared = schema(folder)
    rows, cells = open_source(folder / "adult.csv", SourceOptions(delimiter=";")), Cells.of(declared, LEVELS)
    print("    ε      δ   rate |  k ARX k ours | kept:    ARX   ours | loss:    ARX   ours")
    worse = 0
    for epsilon, theirs in ARX.items():
        rate = Fraction(math.floor((1 - math.exp(-float(epsilon))) * 10**9), 10**9)
        samples = [LocalEngine().count(rows, cells, SystemCoins().sample(rate)) for _ in range(SAMPLES)]
        for delta, k in zip(DELTAS, theirs, strict=True):
            ours = smallest_k(epsilon, delta, rate)
            worse += ours > k
            shown = []
            for threshold in (k, ours):
                pairs = [(sample, sample.at_least(threshold)) for sample in samples]
                kept = sum(few.total / all_.total for all_, few in pairs) / SAMPLES
                shown.append((kept, sum(loss(all_, few) for all_, few in pairs) / SAMPLES))
            (kept_arx, loss_arx), (kept_ours, loss_ours) = shown
            guarantee = f"{epsilon:>5} {delta:>6} {float(rate):6.3f} | {k:6} {ours:6}"
            print(f"{guarantee} |        {kept_arx:5.1%}  {kept_ours:5.1%} |        {loss_arx:5.3f}  {loss_ours:5.3f}")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
