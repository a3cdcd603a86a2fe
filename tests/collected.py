"""Reports of many people sent over HTTP to a collector that is killed in between, and what was counted in the end.

    python -m tests.collected [--people 10000] [--kills 12] [--shuffled 500] [--seed 7]

Everyone sends one report, and sends the same bytes again until the collector acknowledges it.  The collector is killed
with SIGKILL at random moments and started again.  What must hold holds at every moment, so the verdict does not depend
on the machine or its load.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from incrowd.methods.local.survey.definition import report_text
from incrowd.noise.system import SystemCoins
from incrowd.workflows.collect.collector import Collector
from incrowd.workflows.local.opening import open_survey
from incrowd.workflows.local.survey_file import load_survey
from tests.ports import free_port

LABELS = ["walk", "bike", "bus", "car"]
SENDERS = 8


@dataclass
class KilledCollector:
    """A collector as a process, which is killed and started again while people send."""

    survey: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "incrowd", "collect", "serve", "--survey", str(self.survey)]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen([*command, "--port", str(self.port)], stdout=quiet, stderr=quiet)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


@dataclass
class Senders:
    """People who send: what is left to do, and what was acknowledged."""

    port: int
    left: list[dict[str, Any]]
    receipts: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        while True:
            with self.turn:
                if not self.left:
                    return
                item = self.left.pop()
            body = json.dumps({"reports": [item]})
            while (receipt := self._sent(body)) is None:
                time.sleep(0.05)
            with self.turn:
                self.receipts.append((item, receipt))

    def _sent(self, body: str) -> str | None:
        with suppress(OSError, HTTPException):
            connection = HTTPConnection("127.0.0.1", self.port)
            try:
                connection.request("POST", "/reports", body, {"content-type": "application/json"})
                reply = connection.getresponse()
                content = reply.read()
            finally:
                connection.close()
            assert reply.status == 200, content
            return str(json.loads(content)["receipts"][0])
        return None


@contextmanager
def killing(collector: KilledCollector, senders: Senders, kills: int, seed: int) -> Iterator[None]:
    """Kill the collector as often as said, each time after a random part of the reports, while people send."""
    people, chance = len(senders.left), random.Random(seed)
    moments = sorted(chance.randrange(people) for _ in range(kills))
    threads = [threading.Thread(target=senders.run) for _ in range(SENDERS)]
    collector.start()
    for thread in threads:
        thread.start()
    for moment in moments:
        while len(senders.receipts) < moment:
            time.sleep(0.001)
        collector.kill()
        collector.start()
    for thread in threads:
        thread.join()
    yield
    collector.kill()


def collected(folder: Path, people: int, kills: int, batch: int | None = None, seed: int = 7) -> str:
    """Collect reports, and return a sentence on what was counted; fail where an acknowledged report is missing."""
    survey = folder / "survey.yaml"
    shuffled = "" if batch is None else f"shuffled: {{batch: {batch}, delta: 1/100}}\n"
    survey.write_text(
        f"survey: 1\nname: people\nepsilon: 1\nquestions: {{travel: {{categories: {json.dumps(LABELS)}}}}}\n{shuffled}",
        encoding="utf-8",
    )
    at = Collector.beside(open_survey(load_survey(survey)))
    answers = {"travel": [LABELS[number % 4] for number in range(people)]}
    reports, tokens = at.survey.randomize(answers, SystemCoins()), at.tokens
    items = [{"token": tokens.issue(), "report": report} for report in reports]
    senders = Senders(free_port(), list(items))
    with killing(KilledCollector(survey, senders.port), senders, kills, seed):
        assert len(senders.receipts) == people
    return _judged(Collector.beside(open_survey(load_survey(survey))), senders.receipts, batch)


def _judged(at: Collector, receipts: list[tuple[dict[str, Any], str]], batch: int | None) -> str:
    stored = Counter(report_text(report) for report in at.reports())
    sent, kinds = Counter(report_text(item["report"]) for item, _ in receipts), Counter(kind for _, kind in receipts)
    again = {str(receipt) for receipt in at.receive([item for item, _ in receipts][:100])}
    if batch is None:
        assert set(kinds) <= {"counted", "already counted"}, kinds
        assert stored == sent, "an acknowledged report is not counted once"
        assert again == {"already counted"}
    else:
        assert set(kinds) <= {"received", "already received"}, kinds
        assert at.count % batch == 0
        assert stored <= sent, "a report was counted twice, or nobody sent it"
        assert again == {"already received"}
    return f"{sum(sent.values()):,} people, {dict(kinds)}, {at.count:,} reports stored"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--shuffled", type=int, default=500, metavar="BATCH")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    for batch in (None, options.shuffled):
        with tempfile.TemporaryDirectory() as folder:
            said = collected(Path(folder), options.people, options.kills, batch, options.seed)
        print(f"{'local' if batch is None else f'shuffled in batches of {batch:,}'}: {said}", flush=True)


if __name__ == "__main__":
    main()
