"""pure-ldp: its frequency oracles on a file of codes; prints one JSON object."""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    import numpy as np
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    values, size, epsilon = np.load(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    truth = np.bincount(values, minlength=size) / len(values)
    hadamard = HadamardResponseServer(epsilon, size)
    kinds = {
        "response": (DEClient(epsilon, size), DEServer(epsilon, size)),
        "optimal-unary": (UEClient(epsilon, size, use_oue=True), UEServer(epsilon, size, use_oue=True)),
        "local-hashing": (LHClient(epsilon, size, use_olh=True), LHServer(epsilon, size, use_olh=True)),
        "hadamard": (HadamardResponseClient(epsilon, size, hadamard.get_hash_funcs()), hadamard),
    }
    found: dict[str, dict[str, float]] = {}
    for name, (client, server) in kinds.items():
        start = time.process_time()
        reports = [client.privatise(int(value) + 1) for value in values]
        sent = time.process_time()
        for report in reports:
            server.aggregate(report)
        shares = np.asarray(server.estimate_all(range(1, size + 1))) / len(values)
        done = time.process_time()
        error = float(np.mean((shares - truth) ** 2))
        found[name] = {"client": sent - start, "inversion seconds": done - sent, "inversion": error}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
