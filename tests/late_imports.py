"""A process that runs commands, each in a fresh fork, and tells which modules each imported after its charge.

    python -m tests.late_imports < JOBS

JOBS is JSON: a list of [folder, words of a command].  One line of JSON answers each: the exit code, and the modules
that appeared between the charge and the moment in which the ledger learned what came of it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any


def main() -> None:
    from incrowd.engines.hidden_pandas import hide_pandas

    hide_pandas()  # as the command line does
    import incrowd.cli.main
    import incrowd.workflows.policy.policy
    import incrowd.workflows.query.service
    import incrowd.workflows.release.tables  # noqa: F401 - what a file that charges imports at its top, it has then

    gc.disable()  # each fork ends soon
    for folder, words in json.load(sys.stdin):
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            _answer(words)
            os._exit(0)
        os.waitpid(child, 0)


def _answer(words: list[str]) -> None:
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.cli.main import main as run

    before, late = set[str](), set[str]()
    charge, conclude = Ledger._enter, Ledger.conclude  # every charge passes there

    def charged(self: Ledger, request: Any) -> Any:
        entry = charge(self, request)
        if request.kind == "charge":
            before.update(sys.modules)
        return entry

    def concluded(self: Ledger, *arguments: Any) -> Any:
        entry = conclude(self, *arguments)
        late.update(sys.modules.keys() - before)
        return entry

    setattr(Ledger, "_enter", charged)  # noqa: B010 - a method of a class is replaced on purpose
    setattr(Ledger, "conclude", concluded)  # noqa: B010
    told = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    code = run(words)
    sys.stdout.flush()
    os.write(told, (json.dumps({"code": code, "charged": bool(before), "late": sorted(late)}) + "\n").encode())


if __name__ == "__main__":
    main()
