"""The calculators: one tight delta, the inverses, and cold starts, each beside its goal; exit 1 if one is missed.

The peer is the same delta written down with `scipy.stats.binom` (two survival functions), in the same run. It loses
digits to cancellation, and all of them below 1e-308.
"""

from __future__ import annotations

import math
import resource
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from incrowd.accounting.suppression.inverses import largest_rate, smallest_epsilon, smallest_k
from incrowd.accounting.suppression.loss_distribution import composed_delta
from incrowd.accounting.suppression.theorems import theorem1_delta
from incrowd.accounting.suppression.tight_delta import delta, worst_size_remove

MICROSECOND, MILLISECOND = 1e-6, 1e-3
KS, RATES, EPSILONS = (10, 100, 1000), (0.001, 0.1, 0.5, 0.9, 0.99), (0.01, 0.1, 0.5, 1.0, 5.0)


@dataclass(frozen=True)
class Line:
    """One measurement: seconds taken, seconds allowed (none: for information), seconds the peer took."""

    what: str
    seconds: float
    goal: float | None = None
    peer: float | None = None

    @property
    def missed(self) -> bool:
        """Tell whether the goal was missed."""
        return self.goal is not None and self.seconds > self.goal

    def __str__(self) -> str:
        goal = f"{_readable(self.goal):>10}" if self.goal is not None else f"{'':>10}"
        ratio = f"{self.peer / self.seconds:>9.0f}x" if self.peer is not None else f"{'':>10}"
        return f"{self.what:<56}{_readable(self.seconds):>10}{goal}{ratio}{'  MISSED' if self.missed else ''}"


def best(
    work: Callable[[], object], number: int, repeat: int = 7, clock: Callable[[], float] = time.process_time
) -> float:
    """Return the fastest of several runs, in processor time: what the code takes when the machine is not busy."""
    runs = []
    for _ in range(repeat):
        start = clock()
        for _ in range(number):
            work()
        runs.append((clock() - start) / number)
    return min(runs)


def by_scipy(k: int, rate: float, epsilon: float) -> float:
    """Return the tight delta of a removal as a difference of two tails, at the size that is worst."""
    from scipy.stats import binom

    n = worst_size_remove(k, rate, epsilon)
    return float(binom.sf(k - 1, n, rate) - math.exp(epsilon) * binom.sf(k - 1, n - 1, rate))


def one_delta() -> list[Line]:
    lines = []
    for k in KS:
        grid = [(k, rate, epsilon) for rate in RATES for epsilon in EPSILONS]
        times = {setting: best(partial(delta, *setting), 20, 25) for setting in grid}
        slowest = max(times, key=lambda setting: times[setting])
        peer = best(partial(by_scipy, *slowest), 10, 10)
        what = f"delta, k={k}, rate={slowest[1]}, epsilon={slowest[2]}"
        lines.append(Line(f"{what} (slowest)", times[slowest], 50 * MICROSECOND, peer))
        middle = sorted(times.values())[len(times) // 2]
        lines.append(Line(f"delta, k={k} (median of {len(times)})", middle, 50 * MICROSECOND))
    return [*lines, Line("Theorem 1, k=20, rate=0.1, epsilon=0.5", best(lambda: theorem1_delta(20, 0.1, 0.5), 40))]


def inverses() -> list[Line]:
    work: dict[str, Callable[[], object]] = {
        "smallest k (1, 1e-9, 0.1)": lambda: smallest_k(1, 1e-9, 0.1),
        "smallest k (0.1, 1e-12, 0.5) = 2288": lambda: smallest_k(0.1, 1e-12, 0.5),
        "smallest epsilon (1e-9, 20, 0.1)": lambda: smallest_epsilon(1e-9, 20, 0.1),
        "smallest epsilon (1e-9, 1000, 0.5)": lambda: smallest_epsilon(1e-9, 1000, 0.5),
        "largest rate (0.5, 1e-9, 20)": lambda: largest_rate(0.5, 1e-9, 20),
        "largest rate (0.1, 1e-9, 1000)": lambda: largest_rate(0.1, 1e-9, 1000),
    }
    return [Line(what, best(each, 5), 5 * MILLISECOND) for what, each in work.items()]


def composition() -> list[Line]:
    return [
        Line(
            f"{times} releases (20, 0.1) composed", best(partial(composed_delta, [(20, "0.1")] * times, 1), 1, 3), goal
        )
        for times, goal in ((8, 1.0), (100, 5.0))
    ]


def cold_starts() -> list[Line]:
    lines = [Line("import incrowd, cold", _process([sys.executable, "-c", "import incrowd"]), 0.3)]
    command = shutil.which("incrowd", path=str(Path(sysconfig.get_path("scripts"))))
    asked = ["bounds", "safe", "--k", "20", "--rate", "0.1", "--epsilon", "0.5"]
    if command is None or subprocess.run([command, *asked], capture_output=True, check=False).returncode:
        print("incrowd bounds: not installed here, skipped")
        return lines
    return [*lines, Line("incrowd bounds safe, cold", _process([command, *asked]), 0.5)]


def _process(command: list[str]) -> float:
    return best(lambda: subprocess.run(command, capture_output=True, check=True), 1, 7, _children)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _readable(seconds: float) -> str:
    if seconds < MILLISECOND:
        return f"{seconds / MICROSECOND:.1f} µs"
    return f"{seconds / MILLISECOND:.2f} ms" if seconds < 1.0 else f"{seconds:.2f} s"


def main() -> int:
    print(f"{'':<56}{'time':>10}{'goal':>10}{'vs SciPy':>10}")
    missed = False
    for lines in (one_delta, inverses, composition, cold_starts):
        for line in lines():
            print(line)
            missed |= line.missed
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
