"""pure-ldp: optimal unary encoding of a file of codes, reports and sums; prints one JSON object."""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    import numpy as np
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    values, size, epsilon = np.load(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    client, server = UEClient(epsilon, size, use_oue=True), UEServer(epsilon, size, use_oue=True)
    start = time.process_time()
    for value in values:
        server.aggregate(client.privatise(int(value) + 1))
    print(json.dumps({"seconds": time.process_time() - start}))


if __name__ == "__main__":
    main()
