"""`incrowd plan --look`: a private look, paid from the budget, at what other levels, k and rates would keep."""

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
    "All intervals hold together with a chance of 95 %. Kept: rows expected over the coins of a release; draw: one "
    "release strays from that by so many besides, at most; detail: what a kept row keeps. All that is shown is "
    "differentially private. Useless: an interval too wide to say anything."
)


def look_at(data: str | None, policy: Policy, file: Path, epsilon: str, write: Path | None) -> PreviewResult:
    """Pay for a look, and write the policy of the best choice beside the old one if that is wanted."""
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
    """Print what each choice would keep, and which is best."""
    if json:
        print_json(looked.to_json() | {"written": None if write is None else str(write)})
        return
    best, entry, names = looked.result.place, looked.chosen.entry, ", ".join(looked.result.names)
    rows = [(_mark(place, best, each), *_cells(each)) for place, each in enumerate(looked.result.estimates)]
    print_table(
        f"look: epsilon {looked.chosen.epsilon} charged by entry {entry}",
        rows,
        f"Levels: of {names}. {_NOTE}",
        header=_HEADER,
    )
    print_text(looked.sentence[0].upper() + looked.sentence[1:] + ("" if looked.sentence.endswith(".") else "."))
    if write is not None:
        print_text(
            f"Written to {write}, as chosen by entry {entry}: crowd-blending and zero-knowledge are not claimed then."
        )


def _mark(place: int, best: int, each: KeptEstimate) -> str:
    marks = (("yours", place == 0), ("best", place == best), ("useless", each.useless))
    return " ".join(word for word, meant in marks if meant)


def _cells(each: KeptEstimate) -> tuple[str, ...]:
    levels = " ".join(map(str, each.levels.values()))
    interval = f"{each.low:,.0f} to {each.high:,.0f}"
    shares = (f"± {each.draw:,.0f}", f"{100 * each.detail:.0f} %")
    return (f"{each.kept:,.0f}", interval, *shares, str(each.k), str(each.rate), levels)
