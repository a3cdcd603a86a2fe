"""multi-freq-ldpy: its frequency oracles on a file of codes, by matrix inversion and by IBU; prints one JSON object."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any


def main() -> None:
    import numpy as np
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE

    values, size, epsilon = np.load(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    truth = np.bincount(values, minlength=size) / len(values)
    kinds: dict[str, tuple[Callable[..., Any], dict[str, Callable[..., Any]]]] = {
        "response": (
            lambda value: GRR.GRR_Client(value, size, epsilon),
            {
                "inversion": lambda reports: GRR.GRR_Aggregator_MI(reports, size, epsilon),
                "likelihood": lambda reports: GRR.GRR_Aggregator_IBU(reports, size, epsilon),
            },
        ),
        "optimal-unary": (
            lambda value: UE.UE_Client(value, size, epsilon, True),
            {
                "inversion": lambda reports: UE.UE_Aggregator_MI(reports, epsilon, True),
                "likelihood": lambda reports: UE.UE_Aggregator_IBU(reports, size, epsilon, True),
            },
        ),
        "subset": (
            lambda value: SS.SS_Client(value, size, epsilon),
            {
                "inversion": lambda reports: SS.SS_Aggregator_MI(reports, size, epsilon),
                "likelihood": lambda reports: SS.SS_Aggregator_IBU(reports, size, epsilon),
            },
        ),
        "local-hashing": (
            lambda value: LH.LH_Client(value, size, epsilon, True),
            {
                "inversion": lambda reports: LH.LH_Aggregator_MI(reports, size, epsilon, True),
                "likelihood": lambda reports: LH.LH_Aggregator_IBU(reports, size, epsilon, True),
            },
        ),
    }
    found: dict[str, dict[str, float]] = {}
    for name, (client, servers) in kinds.items():
        client(int(values[0]))  # what is compiled once
        start = time.process_time()
        reports = [client(int(value)) for value in values]
        row = {"client": time.process_time() - start}
        for way, server in servers.items():
            start = time.process_time()
            shares = np.asarray(server(reports))
            row[f"{way} seconds"] = time.process_time() - start
            row[way] = float(np.mean((shares - truth) ** 2))
        found[name] = row
    print(json.dumps(found))


if __name__ == "__main__":
    main()
