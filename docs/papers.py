"""Redraw Table 1 and Figures 2 to 7 of Li, Qardaji & Su 2010 from the library: `python docs/papers.py`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from incrowd.accounting.amplification import amplify
from incrowd.accounting.suppression import tight_delta
from incrowd.accounting.suppression.theorems import SmoothGuarantee, log_theorem1_delta, theorem1_delta
from incrowd.drawing.plot import Curve, Plot
from incrowd.workflows.bounds.plot import curve, draw

HERE = Path(__file__).parent / "_static"
TABLE_RATES = ("0.05", "0.1", "0.2")
TABLE_EPSILONS = ("0.25", "0.5", "0.75", "1", "1.5", "2")
PUBLISHED = "Theorem 1"
TIGHT = "tight"

Grid = tuple[Fraction, ...]


def table1() -> list[dict[str, Any]]:
    """Return Table 1 (k = 20): the δ of Theorem 1, and the tight one beside it."""
    return [
        {
            "rate": rate,
            "epsilon": epsilon,
            "theorem1": theorem1_delta(20, rate, epsilon),
            "tight": tight_delta.delta(20, rate, epsilon),
        }
        for rate in TABLE_RATES
        for epsilon in TABLE_EPSILONS
    ]


def figures() -> dict[str, Plot]:
    """Return every figure by the name of its file."""
    return {
        "figure2": _trade_off(
            "Figure 2: k = 20, sampling rates β", [(20, b) for b in ("0.05", "0.1", "0.2", "0.4")], "β = {1}"
        ),
        "figure3": _trade_off("Figure 3: β = 0.1, thresholds k", [(k, "0.1") for k in (5, 10, 20, 30, 50)], "k = {0}"),
        "figure4": _trade_off(
            "Figure 4: pairs (k, β) said to be similar",
            [(15, "0.05"), (22, "0.1"), (35, "0.2"), (60, "0.4")],
            "k = {0}, β = {1}",
        ),
        "figure5": _trade_off("Figure 5: β = 0.025, small k", [(k, "0.025") for k in (1, 2, 3, 5)], "k = {0}"),
        "figure6": _smooth(),
        "figure7": _amplified(),
    }


def data() -> dict[str, Any]:
    """Return every number that the page shows, for the test that regenerates them."""
    return {"table1": table1()} | {
        name: {line.title: [[round(x, 6), round(y, 6)] for x, y in line.points] for line in plot.curves}
        for name, plot in figures().items()
    }


def _trade_off(title: str, pairs: list[tuple[int, str]], name: str) -> Plot:
    grid = _grid(0, 2, 80)
    curves = [
        line
        for k, rate in pairs
        for line in (
            _of_kind(curve(name.format(k, rate), _theorem1(k, rate), grid), PUBLISHED),
            _of_kind(curve(name.format(k, rate), _tight(k, rate), grid), TIGHT),
        )
    ]
    return Plot(title, "ε", "δ", tuple(curves))


def _smooth() -> Plot:
    grid = _grid(1, 8, 70)
    curves = []
    for k, rate, epsilon in ((20, "0.1", "0.25"), (20, "0.2", "0.25"), (20, "0.4", "0.75"), (50, "0.2", "0.25")):
        guarantee = SmoothGuarantee.of(k, rate, epsilon)
        points = tuple((float(z), math.log10(guarantee.f(z))) for z in grid)
        curves.append(Curve(f"k = {k}, β = {rate}, ε = {epsilon}", points))
    return Plot("Figure 6: how δ falls when ε is multiplied by z (Theorem 6)", "z", "f(z)", tuple(curves))


def _amplified() -> Plot:
    grid = _grid(0, 4, 80)
    rates = ("1", "0.5", "0.2", "0.1", "0.05")
    curves = tuple(
        Curve(f"β = {rate}", tuple((float(epsilon), amplify(epsilon, 0, rate)[0]) for epsilon in grid))
        for rate in rates
    )
    title = "Figure 7: what sampling does to ε (Theorem 3)"
    return Plot(title, "ε on the sample", "ε of the whole", curves, powers_of_ten=False)


def _theorem1(k: int, rate: str) -> Callable[[Fraction], float]:
    return lambda epsilon: log_theorem1_delta(k, rate, epsilon)


def _tight(k: int, rate: str) -> Callable[[Fraction], float]:
    return lambda epsilon: tight_delta.log_delta(k, rate, epsilon)


def _of_kind(line: Curve, kind: str) -> Curve:
    return Curve(line.name, line.points, kind)


def _grid(start: int, stop: int, steps: int) -> Grid:
    return tuple(start + Fraction((stop - start) * step, steps) for step in range(steps + 1))


def main() -> None:
    """Write the figures, and the numbers in them."""
    for name, plot in figures().items():
        draw(plot, str(HERE / f"{name}.svg"))
    (HERE / "papers.json").write_text(json.dumps(data(), indent=None) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
