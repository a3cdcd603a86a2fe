"""anonymeter: attack rates on the tables of a folder, beside a control group; prints one JSON object by table.

The folder holds data.csv, control.csv and one CSV file for each published table.  With the arguments FOLDER, the known
columns and the secret, each a JSON value.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path


def main() -> None:
    import pandas as pd
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator

    warnings.simplefilter("ignore")
    folder, known, secret = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
    data, control = (pd.read_csv(folder / f"{name}.csv") for name in ("data", "control"))
    rest = [name for name in data.columns if name not in known]
    rates = {}
    for file in sorted(folder.glob("published-*.csv")):
        table = pd.read_csv(file)[list(data.columns)]
        number = min(len(data), len(control))
        link = LinkabilityEvaluator(data, table, (known, rest), number, 1, control)
        link.evaluate(n_jobs=1)
        infer = InferenceEvaluator(data, table, known, secret, regression=True, n_attacks=number, control=control)
        infer.evaluate(n_jobs=1)
        rates[file.stem.removeprefix("published-")] = {
            name: [float(each.results().attack_rate.value), float(each.results().control_rate.value)]
            for name, each in (("linkability", link), ("inference", infer))
        }
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
