"""sdmetrics: the overall quality of synthetic codes beside true ones, both as files; prints one JSON object."""

from __future__ import annotations

import json
import sys
import warnings

warnings.simplefilter("ignore")


def main() -> None:
    import pandas as pd
    from sdmetrics.reports.single_table import QualityReport

    truth, made = (pd.read_csv(file).astype(str) for file in sys.argv[1:3])
    report = QualityReport()
    metadata = {"columns": {name: {"sdtype": "categorical"} for name in truth.columns}}
    report.generate(truth, made[truth.columns], metadata, verbose=False)
    print(json.dumps({"score": report.get_score()}))


if __name__ == "__main__":
    main()
