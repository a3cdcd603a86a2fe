"""DataSynthesizer: its Bayesian network of degree 2 at ε = 1 on a file of codes; prints one JSON object."""

from __future__ import annotations

import json
import sys
import time
from multiprocessing.pool import ThreadPool
from pathlib import Path


def main() -> None:
    import pandas as pd
    from DataSynthesizer.DataDescriber import DataDescriber
    from DataSynthesizer.DataGenerator import DataGenerator
    from DataSynthesizer.lib import PrivBayes

    PrivBayes.Pool = ThreadPool  # one process, so that its CPU seconds are all of them
    file = sys.argv[1]
    rows, names = len(pd.read_csv(file)), list(pd.read_csv(file, nrows=1).columns)
    start = time.process_time()
    describer = DataDescriber(category_threshold=10**6)
    describer.describe_dataset_in_correlated_attribute_mode(
        file, k=2, epsilon=1, attribute_to_is_categorical=dict.fromkeys(names, True), seed=time.time_ns() % 2**31
    )
    description = file + ".described"
    describer.save_dataset_description_to_file(description)
    generator = DataGenerator()
    generator.generate_dataset_in_correlated_attribute_mode(rows, description, seed=time.time_ns() % 2**31)
    generator.save_synthetic_data(file.removesuffix(".csv") + ".out")
    spent = time.process_time() - start
    peak = int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmHWM:")[1].split()[0]) // 1024
    print(json.dumps({"seconds": spent, "peak": peak}))


if __name__ == "__main__":
    main()
