"""Routes: ways from one table to a release, side by side from the schema and public numbers, one of them recommended.

No row is read: whether rows suit a route is judged by the declared number of rows and the declared classes alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from incrowd.core.rounding import float_up
from incrowd.core.words import listed, short_up
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.workflows.bounds.odds import in_words
from incrowd.workflows.plan.compare import pair_error
from incrowd.workflows.plan.forecast import declared_rows, expectation_of
from incrowd.workflows.plan.forecast import plan as forecast
from incrowd.workflows.plan.published import PublishedColumn, published_by
from incrowd.workflows.policy.document import read_document
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.profile.draft_columns import DraftColumn
from incrowd.workflows.profile.draft_policy import release_text
from incrowd.workflows.profile.draft_text import DraftGoal, DraftRequest, IntendedUse, Readers

_CERTAIN = 1.96
_TOLERABLE, _ROWS_EACH = 0.2, 30
_USEFUL = 0.5


@dataclass(frozen=True)
class RouteNeeds:
    """What matters to those who use a release: columns that must stay, rows or tables, and who they are."""

    keep: tuple[str, ...] = ()
    use: IntendedUse = IntendedUse.ROWS
    readers: Readers | None = None


TITLES = {
    DraftGoal.MICRODATA: "Rows with an epsilon",
    DraftGoal.SYNTHETIC: "Synthetic rows",
    DraftGoal.COUNTS: "Counts with noise",
    DraftGoal.TABLE: "A table with totals",
    DraftGoal.CLASSIC: "Rows under k-anonymity alone",
}
_GUARANTEE = {
    DraftGoal.MICRODATA: "differential privacy and k-anonymity",
    DraftGoal.SYNTHETIC: "differential privacy",
    DraftGoal.COUNTS: "pure differential privacy",
    DraftGoal.TABLE: "no small count can be computed from the table; no epsilon",
    DraftGoal.CLASSIC: "k-anonymity alone; no epsilon",
}
_OPEN_RISK = {
    DraftGoal.TABLE: "no bound: other tables or knowledge about single people can reveal a hidden count",
    DraftGoal.CLASSIC: "no bound: background knowledge, or a second release of the same rows, can reveal a person",
}


@dataclass(frozen=True)
class RouteOffer:
    """One route: its guarantee, what it keeps of each column, the error and the risk that remain, and its cost."""

    goal: DraftGoal
    columns: tuple[PublishedColumn, ...] = ()
    error: str = ""
    risk: str = ""
    cost: str = ""
    private: bool = False
    refusal: str | None = None
    worth: float = 0.0
    release: Mapping[str, Any] | None = None

    @property
    def title(self) -> str:
        """What is released."""
        return TITLES[self.goal]

    @property
    def guarantee(self) -> str:
        """What is guaranteed, in a few words."""
        return _GUARANTEE[self.goal]

    @property
    def retained(self) -> tuple[str, ...]:
        """The columns of which something is told for certain: no level of theirs can be `*`."""
        return tuple(c.name for c in self.columns if not c.constant and c.coarsest < c.top)

    @property
    def possible(self) -> tuple[str, ...]:
        """The columns that may be told or become `*`, as the rows decide."""
        return tuple(c.name for c in self.columns if not c.constant and c.coarsest == c.top)

    @property
    def kept_text(self) -> str:
        """Which columns stay for certain, and which may become `*`."""
        parts = [listed(list(self.retained))] if self.retained else []
        parts += [f"perhaps {listed(list(self.possible))}"] if self.possible else []
        return "; ".join(parts) or "nothing"

    def loses(self, needs: RouteNeeds) -> tuple[str, ...]:
        """Return the columns that must stay and could be lost on this route."""
        return tuple(name for name in needs.keep if name not in self.retained)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "goal": str(self.goal),
            "title": self.title,
            "guarantee": self.guarantee,
            "columns": [column.to_json() | {"label_text": column.label_text} for column in self.columns],
            "kept": self.kept_text,
            "error": self.error,
            "risk": self.risk,
            "cost": self.cost,
            "refusal": self.refusal,
        }


@dataclass(frozen=True)
class RouteTable:
    """All routes, the recommended one and the reason; None where no route keeps what matters."""

    needs: RouteNeeds
    offers: tuple[RouteOffer, ...]
    recommended: DraftGoal | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "keep": list(self.needs.keep),
            "use": str(self.needs.use),
            "readers": None if self.needs.readers is None else str(self.needs.readers),
            "routes": [offer.to_json() for offer in self.offers],
            "recommended": None if self.recommended is None else str(self.recommended),
            "reason": self.reason,
        }


def routes_of(content: Mapping[str, Any], folder: Path, needs: RouteNeeds = RouteNeeds()) -> RouteTable:  # noqa: B008
    """Put the routes for the table of a policy side by side; `content` is the policy's, every scalar as text."""
    unknown = [name for name in needs.keep if name not in (content.get("columns") or {})]
    if unknown:
        raise InvalidParameter(f"there is no column {unknown[0]!r} to keep.")
    offers = tuple(_offer(goal, content, folder, needs) for goal in TITLES)
    goal, reason = _recommended(offers, needs)
    return RouteTable(needs, offers, goal, reason)


def release_of(content: Mapping[str, Any], goal: DraftGoal, folder: Path, needs: RouteNeeds) -> dict[str, Any]:
    """Return the sections `release`, `queries` and `budget` that a goal gets, for the columns of a policy."""
    columns = [
        DraftColumn(name, {"role": "quasi"} | (dict(section) if isinstance(section, dict) else {}), "declared")
        for name, section in (content.get("columns") or {}).items()
    ]
    people = str((content.get("dataset") or {}).get("population") or "")
    population = int(people) if people.isdigit() else None
    wish = DraftRequest(goal, keep=needs.keep, population=population, readers=needs.readers)
    text, _ = release_text(columns, wish, folder)
    sections: dict[str, Any] = read_document(text).content
    return sections


def _offer(goal: DraftGoal, content: Mapping[str, Any], folder: Path, needs: RouteNeeds) -> RouteOffer:
    """Return a route, or why it cannot be taken."""
    try:
        sections = release_of(content, goal, folder, needs)
        bare = {name: part for name, part in content.items() if name not in ("release", "queries", "budget")}
        policy = load_policy(bare | sections, folder=folder)
        return replace(_judged(goal, policy, needs.readers), release=sections)
    except IncrowdError as error:
        return RouteOffer(goal, refusal=str(error).partition("\n")[0])


def _judged(goal: DraftGoal, policy: Policy, readers: Readers | None) -> RouteOffer:
    """Return what public numbers tell about a route."""
    planned, rows = forecast(policy), declared_rows(policy)
    columns = published_by(policy)
    cost, risk, private = "no epsilon", _OPEN_RISK.get(goal, ""), planned.epsilon.is_finite()
    if readers is Readers.PUBLIC and risk:
        risk += "; once published, it cannot be taken back"
    if private:
        spent = f"epsilon {short_up(planned.epsilon)}, delta {short_up(planned.delta)}"
        cost = f"{spent}: about half of the drafted budget"
        amounts = (float_up(Fraction(planned.epsilon)), float_up(Fraction(planned.delta)))
        risk = in_words(*amounts, planned.guarantee.unit.adjacency)
    elif goal not in _OPEN_RISK:
        risk = "no bound: some declared values come from the data; name their public source"
    error, worth = _error(goal, policy, columns, rows)
    return RouteOffer(goal, columns, error, risk, cost, private, worth=worth)


def _error(goal: DraftGoal, policy: Policy, columns: Sequence[PublishedColumn], rows: int | None) -> tuple[str, float]:
    """Return the error to expect in words, and what is left of the data's worth: 1/2 or more is useful."""
    if goal in _OPEN_RISK:
        return "known only from the rows", 0.0
    if rows is None:
        return "unknown: declare an approximate number of rows", 0.0
    if goal is DraftGoal.MICRODATA:
        expected = expectation_of(policy)
        if expected is None:
            return "unknown from public numbers", 0.0
        share = f"{100 * (1 - expected.even):.0f} %"
        return f"about {share} of the sampled rows are suppressed if rows spread evenly", expected.even
    if goal is DraftGoal.SYNTHETIC:
        error = pair_error(policy, rows)
        return (
            f"noise misplaces about {min(100, 100 * error):.0f} % of the rows in a table of two columns",
            1 - _USEFUL * error / _TOLERABLE,
        )
    cells = math.prod(column.labels or 1 for column in columns)
    width = _CERTAIN * math.sqrt(2) / float(policy.plan.settings.get("epsilon") or 1)
    mean = rows / cells
    words = f"each count within {width:.0f} (95 %); {cells:,} counts of about {mean:,.0f} rows each"
    return words, mean / (mean + _ROWS_EACH)


def _recommended(offers: Sequence[RouteOffer], needs: RouteNeeds) -> tuple[DraftGoal | None, str]:
    """Return the route to take first, and why; one without an epsilon is never recommended."""
    order = [DraftGoal.MICRODATA, DraftGoal.SYNTHETIC, DraftGoal.COUNTS]
    if needs.use is IntendedUse.TABLES:
        order = [DraftGoal.COUNTS, DraftGoal.SYNTHETIC, DraftGoal.MICRODATA]
    by_goal = {offer.goal: offer for offer in offers}
    possible = [
        offer for goal in order if (offer := by_goal[goal]).refusal is None and not offer.loses(needs) and offer.private
    ]
    keeping = f"keeps {listed(list(needs.keep))} and " if needs.keep else ""
    useful = next((offer for offer in possible if offer.retained and offer.worth >= _USEFUL), None)
    if useful is not None:
        return useful.goal, f"it {keeping}has an epsilon; {useful.error}"
    if possible:
        best = max(possible, key=lambda offer: (bool(offer.retained), offer.worth))  # rows of `*` are worth nothing
        return best.goal, f"it {keeping}has an epsilon; expected error: {best.error}"
    why = next((offer.refusal for offer in offers if offer.refusal is not None), None)
    if needs.keep:
        lost = by_goal[order[0]]
        why = lost.refusal or f"no route with an epsilon keeps {listed(list(lost.loses(needs) or needs.keep))}"
    return None, why or "no route has an epsilon: name public sources of values that come from the data"
