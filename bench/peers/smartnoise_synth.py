"""smartnoise-synth: its MST or AIM at ε = 1, δ = 1e-9 on a file of codes; prints one JSON object."""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

warnings.simplefilter("ignore")


def main() -> None:
    import pandas as pd
    from snsynth import Synthesizer

    file, name = sys.argv[1], sys.argv[3]
    rows = pd.read_csv(file)
    start = time.process_time()
    maker = Synthesizer.create(name, epsilon=1.0, delta=1e-9)
    made = maker.fit_sample(rows, categorical_columns=list(rows.columns), preprocessor_eps=0.0)
    spent = time.process_time() - start
    peak = int(Path("/proc/self/status").read_text(encoding="utf-8").split("VmHWM:")[1].split()[0]) // 1024
    made.astype(int).to_csv(file.removesuffix(".csv") + ".out", index=False)
    print(json.dumps({"seconds": spent, "peak": peak}))


if __name__ == "__main__":
    main()
