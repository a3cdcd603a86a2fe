"""mbi: MST at ε = 1, δ = 1e-9 on a file of codes, with this driver's own noise; prints one JSON object."""

from __future__ import annotations

import json
import math
import sys
import time
from itertools import combinations
from pathlib import Path

RHO = 0.014973057673588523


def main() -> None:
    import numpy as np
    import pandas as pd
    from mbi import Domain, LinearMeasurement, estimation

    file, sizes = sys.argv[1], json.loads(sys.argv[2])
    rows = pd.read_csv(file)
    start, chance, names = time.process_time(), np.random.default_rng(), list(rows.columns)
    size = dict(zip(names, sizes, strict=True))
    domain = Domain(tuple(names), tuple(sizes))

    def counted(columns: tuple[str, ...]) -> np.ndarray:
        place = np.zeros(len(rows), np.int64)
        for name in columns:
            place = place * size[name] + rows[name].to_numpy()
        return np.bincount(place, minlength=math.prod(size[name] for name in columns)).astype(float)

    def measured(columns: tuple[str, ...], scale: float) -> LinearMeasurement:
        counts = counted(columns)
        return LinearMeasurement(counts + chance.normal(0, scale, len(counts)), columns, scale)

    third, number = RHO / 3, len(names)
    singles = [measured((name,), math.sqrt(number / (2 * third))) for name in names]
    total = max(1.0, estimation.minimum_variance_unbiased_total(singles))
    shares = {each.clique[0]: np.clip(np.asarray(each.noisy_measurement) / total, 0, None) for each in singles}
    away = {
        pair: np.abs(counted(pair) - total * np.outer(*(shares[name] for name in pair)).ravel()).sum()
        for pair in combinations(names, 2)
    }
    epsilon, part, chosen = math.sqrt(8 * third / (number - 1)), {name: name for name in names}, []
    while len(chosen) < number - 1:
        apart = [pair for pair in away if part[pair[0]] != part[pair[1]]]
        scores = epsilon / 2 * np.array([away[pair] for pair in apart])
        weights = np.exp(scores - scores.max())
        pick = apart[chance.choice(len(apart), p=weights / weights.sum())]
        chosen.append(pick)
        part = {name: part[pick[0]] if each == part[pick[1]] else each for name, each in part.items()}
    scale = math.sqrt((number - 1) / (2 * third))
    model = estimation.MirrorDescent().estimate(
        domain, [*singles, *(measured(pair, scale) for pair in chosen)], known_total=total, iters=1000
    )
    drawn = model.synthetic_data(rows=round(total)).to_dict()
    spent = time.process_time() - start
    peak = int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmHWM:")[1].split()[0]) // 1024
    pd.DataFrame({name: np.asarray(drawn[name]) for name in names}).to_csv(
        file.removesuffix(".csv") + ".out", index=False
    )
    print(json.dumps({"seconds": spent, "peak": peak}))


if __name__ == "__main__":
    main()
