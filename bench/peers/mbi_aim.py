"""mbi: AIM at ε = 1, δ = 1e-9 on a file of codes, pairs only, with this driver's own noise; prints one JSON object.

Rounds, shares and the size of the model are those of incrowd's `marginals`; inference is mbi's.
"""

from __future__ import annotations

import json
import math
import sys
import time
from itertools import combinations
from pathlib import Path

RHO, ROUNDS, FIRST, CHOICES, MEGABYTES, STEPS = 0.014973057673588523, 16, 0.1, 0.1, 2.0, 200


def main() -> None:
    import numpy as np
    import pandas as pd
    from mbi import Domain, LinearMeasurement, estimation, junction_tree

    file, sizes = sys.argv[1], json.loads(sys.argv[2])
    rows = pd.read_csv(file)
    start, chance, names = time.process_time(), np.random.default_rng(), list(rows.columns)
    size, rounds = dict(zip(names, sizes, strict=True)), max(ROUNDS, 3 * len(sizes) // 2)
    domain = Domain(tuple(names), tuple(sizes))

    def counted(columns: tuple[str, ...]) -> np.ndarray:
        place = np.zeros(len(rows), np.int64)
        for name in columns:
            place = place * size[name] + rows[name].to_numpy()
        return np.bincount(place, minlength=math.prod(size[name] for name in columns)).astype(float)

    def measured(columns: tuple[str, ...], scale: float) -> LinearMeasurement:
        counts = counted(columns)
        return LinearMeasurement(counts + chance.normal(0, scale, len(counts)), columns, scale)

    tables = [measured((name,), math.sqrt(len(names) / (2 * FIRST * RHO))) for name in names]
    total = max(1.0, estimation.minimum_variance_unbiased_total(tables))
    model = estimation.MirrorDescent().estimate(domain, tables, known_total=total, iters=STEPS)
    truth = {pair: counted(pair) for pair in combinations(names, 2)}
    left = (1 - FIRST) * RHO
    scale, epsilon = math.sqrt(rounds / (2 * (1 - CHOICES) * left)), math.sqrt(8 * CHOICES * left / rounds)
    for number in range(rounds):
        room = MEGABYTES * (number + 1) / rounds
        chosen = [table.clique for table in tables]
        fits = [pair for pair in truth if junction_tree.hypothetical_model_size(domain, [*chosen, pair]) <= room]
        away = {pair: np.abs(truth[pair] - np.asarray(model.project(pair).datavector())).sum() for pair in fits}
        noise = {pair: math.sqrt(2 / math.pi) * scale * len(truth[pair]) for pair in fits}
        scores = epsilon / 2 * np.array([away[pair] - noise[pair] for pair in fits])
        weights = np.exp(scores - scores.max())
        pick = fits[chance.choice(len(fits), p=weights / weights.sum())]
        tables.append(measured(pick, scale))
        model = estimation.MirrorDescent().estimate(domain, tables, known_total=total, iters=STEPS)
    drawn = model.synthetic_data(rows=round(total)).to_dict()
    spent = time.process_time() - start
    peak = int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmHWM:")[1].split()[0]) // 1024
    pd.DataFrame({name: np.asarray(drawn[name]) for name in names}).to_csv(
        file.removesuffix(".csv") + ".out", index=False
    )
    print(json.dumps({"seconds": spent, "peak": peak}))


if __name__ == "__main__":
    main()
