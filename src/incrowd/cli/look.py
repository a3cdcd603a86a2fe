"""`incrowd plan --look`: a private preview, charged to the budget, of what other levels, k and rates would keep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.cli.output import print_json, print_table, print_text

if TYPE_CHECKING:
    from incrowd.workflows.plan.preview.output import KeptEstimate
    from incrowd.workflows.plan.preview.preview import PreviewResult
    from incrowd.workflows.policy.policy import Policy

_HEADER = ("", "kept", "interval", "draw", "detail", "k", "rate", "levels")
_NOTE = (
    "Simultaneous 95 % confidence intervals. kept: expected number of released rows; draw: two standard deviations of "
    "one release, at most; detail: average detail of a released row. All of this is differentially private. useless: "
    "the interval is too wide."
)


def look_at(data: str | None, policy: Policy, file: Path, epsilon: str, write: Path | None) -> PreviewResult:
    """Charge a private preview, and write the policy of the best choice beside the old one if requested."""
    from incrowd.workflows.plan.preview.chosen_policy import ChosenPolicy
    from incrowd.workflows.plan.preview.preview import look

    new = None if write is None else ChosenPolicy(file, write)
    if new is not None:
        new.check()
    looked = look(data, policy, epsilon)
    if new is not None:
        new.write(looked)
    return looked


def show_look(looked: PreviewResult, write: Path | None, *, json: bool) -> None:
    """Print what each choice is expected to keep, and the best one."""
    if json:
        print_json(looked.to_json() | {"written": None if write is None else str(write)})
        return
    best, entry, names = looked.result.place, looked.chosen.entry, ", ".join(looked.result.names)
    rows = [(_mark(place, best, estimate), *_cells(estimate)) for place, estimate in enumerate(looked.result.estimates)]
    print_table(
        f"private preview: epsilon {looked.chosen.epsilon} charged (entry {entry})",
        rows,
        f"Levels: of {names}. {_NOTE}",
        header=_HEADER,
    )
    print_text(looked.sentence[0].upper() + looked.sentence[1:] + ("" if looked.sentence.endswith(".") else "."))
    if write is not None:
        print_text(
            f"Written to {write}, chosen by entry {entry}. Crowd-blending and zero-knowledge are not claimed then."
        )


def _mark(place: int, best: int, estimate: KeptEstimate) -> str:
    marks = (("yours", place == 0), ("best", place == best), ("useless", estimate.useless))
    return " ".join(word for word, meant in marks if meant)


def _cells(estimate: KeptEstimate) -> tuple[str, ...]:
    levels = " ".join(map(str, estimate.levels.values()))
    interval = f"{estimate.low:,.0f} to {estimate.high:,.0f}"
    shares = (f"± {estimate.draw:,.0f}", f"{100 * estimate.detail:.0f} %")
    return (f"{estimate.expected:,.0f}", interval, *shares, str(estimate.k), str(estimate.rate), levels)
