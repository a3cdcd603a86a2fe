"""The road from a file to a release, where the system is not POSIX: what Windows lacks is hidden."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pyarrow import csv

from tests.policies import PEOPLE, changed, people, written

HIDDEN = """\
import json, os, shlex, signal, sys, tempfile
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None  # importing it fails
os._exit = sys.exit  # several commands in one process
del signal.SIGHUP, os.fork, os.pread, os.pwrite, os.geteuid, os.getuid, os.O_NOFOLLOW, os.O_DIRECTORY
tempfile._O_TMPFILE_WORKS = False
from incrowd.cli.entry import start
codes = []
for line in json.load(sys.stdin):
    sys.argv = ["incrowd", *shlex.split(line)]
    try:
        start()
    except SystemExit as end:
        codes.append(end.code)
print(json.dumps(codes))
"""


def test_every_hop_works_where_posix_is_missing(tmp_path: Path) -> None:
    csv.write_csv(people(), tmp_path / "people.csv")
    written(PEOPLE, tmp_path)
    (tmp_path / "asked").mkdir()
    written(changed(PEOPLE, release=None, queries={}, budget={"epsilon": 9, "delta": "1e-3"}), tmp_path / "asked")
    lines = [
        "profile people.csv",
        "plan people.csv --policy policy.yaml",
        "release people.csv --policy policy.yaml --out out",
        "verify out/certificate.json",
        "ledger check",
        "query 'SELECT COUNT(*) FROM people' --data people.csv --policy asked/policy.yaml --epsilon 1 --delta 1e-6",
    ]
    done = subprocess.run(
        [sys.executable, "-W", "ignore:only soft file lock", "-c", HIDDEN],
        cwd=tmp_path,
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [0] * len(lines), done.stderr
    assert (tmp_path / "out" / "report.html").exists()
    assert not [path.name for path in tmp_path.iterdir() if ".incrowd-" in path.name]
