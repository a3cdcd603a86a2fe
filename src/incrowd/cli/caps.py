"""`incrowd plan --caps`: the caps on rows of a person, printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.cli.output import print_json, print_table

if TYPE_CHECKING:
    from incrowd.workflows.policy.policy import Policy
    from incrowd.workflows.query.caps import Caps


def show_caps(policy: Policy, data: str | None, look: str | None, *, json: bool) -> None:
    """Print what each cap costs in noise and what it keeps, by declarations and for a private price by counts."""
    from incrowd.core.rounding import exact
    from incrowd.workflows.query.caps import caps_of

    caps = caps_of(policy, None if look is None else exact(look, "look"), data)
    if json:
        print_json(caps.to_json())
        return
    header = ["max_rows", f"noise of COUNT(*), ε {caps.epsilon}", "rows kept, by declarations"]
    lines = [[str(cap.rows), f"± {cap.noise:,}", f"{_percent(cap.least)} to {_percent(cap.most)}"] for cap in caps.caps]
    if caps.charged is not None:
        header += ["rows kept", "rows left out"]
        for line, cap in zip(lines, caps.caps, strict=True):
            line += [_percent(cap.retained or 0.0), f"{cap.lost:,}"]
    print_table("Caps", map(tuple, lines), _note(caps), tuple(header))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _note(caps: Caps) -> str:
    """Return what is recommended, and why."""
    free = "From declarations alone: nothing is spent. With --look EPSILON: estimate the rows that each cap keeps."
    if caps.best is None:
        return f"{free} Declare dataset: rows for a recommendation by the worst case."
    if caps.charged is None:
        return (
            f"Recommended: max_rows {caps.best.rows}, the least error of a count of all rows in the worst case: every "
            f"person has as many rows as declared. {free}"
        )
    return (
        f"Recommended: max_rows {caps.best.rows}, the least error of a count of all rows. The shares are noisy; they "
        f"cost epsilon {caps.charged}. People with more rows than declared count with the declared number. A charged "
        "dataset keeps its max_rows: give it another name to change that."
    )
