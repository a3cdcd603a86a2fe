"""`incrowd plan --caps`: the caps on rows of a person, printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.cli.output import print_json, print_table

if TYPE_CHECKING:
    from incrowd.workflows.policy.policy import Policy


def show_caps(policy: Policy, data: str | None, look: str | None, *, json: bool) -> None:
    """Print what each cap costs in noise and, for a private price, what it keeps."""
    from incrowd.core.rounding import exact
    from incrowd.workflows.query.caps import caps_of

    caps = caps_of(policy, None if look is None else exact(look, "look"), data)
    if json:
        return print_json(caps.to_json())
    lines = [
        (
            str(cap.rows),
            f"± {cap.noise:,}",
            *([] if cap.retained is None else [f"{100 * cap.retained:.1f} %", f"{cap.lost:,}"]),
        )
        for cap in caps.caps
    ]
    header = ("max_rows", f"noise of COUNT(*), ε {caps.epsilon}")
    if caps.best is None:
        note = "From declarations alone: nothing is spent. With --look EPSILON: estimate the rows that each cap keeps."
        print_table("Caps", lines, note, header)
        return None
    note = (
        f"Recommended: max_rows {caps.best.rows}, the least error of a count of all rows. The shares are noisy; they "
        f"cost epsilon {caps.charged}. People with more rows than declared count with the declared number. A charged "
        "dataset keeps its max_rows: give it another name to change that."
    )
    print_table("Caps", lines, note, (*header, "rows kept", "rows left out"))
    return None
