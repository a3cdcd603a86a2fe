"""PipelineDP: the question of bench/queries.py, in an environment with pipeline-dp; prints one JSON object."""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    started = time.perf_counter()
    import pandas as pd
    import pipeline_dp

    path = sys.argv[1]
    frame = pd.read_parquet(path)
    rows = list(zip(range(len(frame)), frame["region"] * 50 + frame["job"], frame["pay"], strict=True))
    metrics = [pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM, pipeline_dp.Metrics.MEAN]

    def asked() -> tuple[float, list]:
        begun = time.perf_counter()
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        bounds = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1, "min_value": 0}
        parameters = pipeline_dp.AggregateParams(
            metrics=metrics, noise_kind=pipeline_dp.NoiseKind.LAPLACE, max_value=200_000, **bounds
        )
        extractors = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        )
        found = engine.aggregate(rows, parameters, extractors, public_partitions=list(range(1000)))
        accountant.compute_budgets()
        return time.perf_counter() - begun, sorted(found)

    _, found = asked()
    elapsed = time.perf_counter() - started
    answer = [[float(getattr(line[1], name)) for line in found] for name in ("count", "sum", "mean")]
    print(json.dumps({"cold": elapsed, "warm": elapsed, "answer": answer}))


if __name__ == "__main__":
    main()
