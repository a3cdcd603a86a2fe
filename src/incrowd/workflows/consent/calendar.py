"""Calendar: the days on which gated releases without an ε are made, fixed before the first of them.

When such a release has to wait for more people to leave or join, whoever expects it sees that it waits.  Were its day
free, the day itself would depend on who withdrew; with a calendar only whether something appears on a day can, and the
certificate says so under what is not protected.
"""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.core.steps.around import gate_of
from incrowd.errors import Refused
from incrowd.workflows.consent.snapshot import ConsentSnapshot
from incrowd.workflows.release.differences import Earlier

_DAY = 10


def require_day(now: ConsentSnapshot | None, earlier: Sequence[Earlier] = ()) -> None:
    """Refuse, uncharged, a release on a day that its calendar does not name, or under a calendar that was changed."""
    if now is None or now.gate.calendar is None:
        return
    today = (now.gate.run or "")[:_DAY]
    if today not in now.gate.calendar:
        after = next((day for day in now.gate.calendar if day > today), None)
        following = "it has no later day" if after is None else f"the next one is {after}"
        raise Refused(
            f"today, {today} in UTC, is not in the calendar of this policy; {following}. Nothing was charged."
        )
    for release in earlier:
        gate = None if release.certificate is None else gate_of(release.certificate.steps)
        if gate is not None and gate.calendar and not _continues(now.gate.calendar, gate.calendar):
            raise Refused(
                f"release {release.release} fixed the calendar, and this one has other days before "
                f"{gate.calendar[-1]}. Nothing was charged. Keep its days; add new ones after the last."
            )


def _continues(days: Sequence[str], earlier: Sequence[str]) -> bool:
    """Whether a calendar has the days of an earlier one until its last, and no others until then.

    >>> _continues(["2027-01-10", "2028-01-10"], ["2027-01-10"]), _continues(["2026-12-10"], ["2027-01-10"])
    (True, False)
    """
    return [day for day in days if day <= earlier[-1]] == list(earlier)
