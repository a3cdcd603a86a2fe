"""Section: an assessment in a page for the data holder: risk and classes before and after, losses, what is left."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from incrowd.core.words import counted
from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import joined, table, tag
from incrowd.measures.frontier import MappedRelease, risk_utility_map
from incrowd.workflows.attack.page import findings

if TYPE_CHECKING:
    from incrowd.measures.utility.distances import TableDistance
    from incrowd.measures.utility.learning import LearnedScore
    from incrowd.workflows.assess.assess import Assessment

RISK, LOSS = "rows linked rightly, on average", "loss of all rows"
_NONE = "not judged"


def candidate(found: Assessment) -> MappedRelease:
    """Return a release as a candidate on the map: the marketer's risk after it, and what all rows lost."""
    risk = found.risks["marketer"][1].average if found.risks else None
    return MappedRelease(found.name, risk, found.loss)


def map_of(found: Sequence[Assessment]) -> Markup:
    """Return several releases of one table on one map."""
    return risk_utility_map([candidate(each) for each in found], RISK, LOSS)


def page(found: Sequence[Assessment]) -> str:
    """Return a whole page that stays with the data holder: the map of several releases, and each of them."""
    style = (files("incrowd.workflows.report") / "style.css").read_text(encoding="utf-8")
    drawn = [map_of(found)] if len(found) > 1 else []
    parts = [part for each in found for part in (tag("h2", each.name), section(each))]
    head = tag("head", tag("meta", charset="utf-8"), tag("title", "Assessment"), tag("style", Markup(style)))  # noqa: S704
    inside = tag("p", tag("strong", "Internal: made from the original rows. Nothing here may leave."))
    body = tag("body", tag("main", tag("h1", "Assessment"), inside, *drawn, *parts))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def section(found: Assessment) -> Markup:
    """Return what an assessment found, for the internal report."""
    after = found.classes_after
    pictures = [class_sizes(found.classes_before.counts, "original rows", "in the quasi-identifiers")]
    pictures += [] if after is None else [class_sizes(after.counts, "released rows", "in the quasi-identifiers")]
    return joined(
        [
            tag("h3", "What it lost, and what risk is left"),
            *(tag("p", note) for note in found.notes),
            table("Rows and losses", ["", "Number"], _rows(found)),
            table("Loss by column", ["Column", "Level", "Released rows", "All rows"], _columns(found)),
            *([table("Risk", ["Attacker", "Before", "After"], _risks(found))] if found.risks else []),
            tag("div", *(tag("div", each) for each in pictures if each is not None), class_="pair"),
            table("What is left to learn", ["", "Value"], _utility(found)),
            *(
                [table("What was to be kept", ["Claim", "Columns", "Found"], _preserved(found))]
                if found.preserved
                else []
            ),
            *_quality(found),
            *([] if found.lab is None else findings(found.lab)),
        ]
    )


def _rows(found: Assessment) -> list[list[str]]:
    alone = _NONE if found.classes_after is None else f"{found.classes_after.unique:,}"
    return [
        ["Rows before; after", f"{found.rows:,}; {found.kept:,}"],
        ["Rows alone in the quasi-identifiers, before; after", f"{found.classes_before.unique:,}; {alone}"],
        ["Loss of released rows; of all rows", f"{number(found.loss_kept)}; {number(found.loss)}"],
        [
            "Smallest crowd of the data behind a released class",
            _NONE if found.smallest_crowd is None else f"{found.smallest_crowd:,}",
        ],
    ]


def _columns(found: Assessment) -> list[list[str]]:
    return [[each.name, str(each.level), number(each.kept), number(each.all)] for each in found.columns]


def _risks(found: Assessment) -> list[list[str]]:
    return [
        [f"{name}, {what}", number(getattr(before, what)), number(getattr(after, what))]
        for name, (before, after) in found.risks.items()
        for what in (("average",) if name == "marketer" else ("highest", "above"))
    ]


def _preserved(found: Assessment) -> list[list[str]]:
    return [[each.sentence, ", ".join(each.columns), each.verdict] for each in found.preserved]


def _quality(found: Assessment) -> list[Markup]:
    """Return how far columns and pairs of rows that were drawn from a model are from the original."""
    if found.quality is None:
        return []
    return [
        table(
            "Error of synthetic rows, by column", ["Column", "Total variation"], quality_lines(found.quality.columns)
        ),
        table("Error of synthetic rows, by pair", ["Pair", "Total variation"], quality_lines(found.quality.worst)),
    ]


def quality_lines(distances: Sequence[TableDistance]) -> list[tuple[str, str]]:
    """Return the total variation of tables, in lines."""
    return [(" × ".join(each.columns), f"{each.variation:.4f}") for each in distances]


def _utility(found: Assessment) -> list[list[str]]:
    return [[name, value] for name, value, _ in utility_lines(found)]


def utility_lines(found: Assessment) -> list[tuple[str, str, str]]:
    """Return what is left for those who want to learn, in a few lines: a name, a number, and what it means."""
    use, lines = found.utility, []
    if use.marginals:
        most = max(use.marginals, key=lambda each: each.variation)
        lines.append(("marginals", f"{most.variation:.4f}", f"largest total variation, of {most.name}; 0 is best"))
    if use.dependencies:
        moved = max(use.dependencies, key=lambda each: abs(each.cramer[0] - each.cramer[1]))
        words = f"Cramér's V that moved most, of {' and '.join(moved.columns)}"
        lines.append(("dependencies", f"{moved.cramer[0]:.3f} → {moved.cramer[1]:.3f}", words))
    if use.propensity is not None:
        words = "pMSE over what the same law would give; 1 is best"
        lines.append(("propensity", f"{use.propensity.ratio:,.1f}", words))
    lines += [
        ("regression", f"{overlap:.3f}", f"overlap of intervals, target {name}; 1 is best")
        for name, overlap in use.overlap.items()
    ]
    lines += [line for learned in use.models for line in _model_lines(learned)]
    if use.workload is not None:
        lines.append(("counts", f"{use.workload.value:.4f}", "mean error of a share of rows; 0 is best"))
    return lines


def _model_lines(learned: LearnedScore) -> list[tuple[str, str, str]]:
    """Return how often the best model is right about a column, after training on the original and on the release.

    Beside it stands the AUC of the model with the largest.
    """
    best = max(learned.models, key=lambda each: each.released.value)
    words = f"{best.model}, right about {learned.target}; baseline {learned.baseline.value:.3f}"
    lines = [("models", f"{best.original.value:.3f} → {best.released.value:.3f}", words)]
    ranked = [
        (after, before, each.model) for each in learned.models for before, after in [each.auc] if before and after
    ]
    if ranked:
        after, before, model = max(ranked)
        lines.append(("AUC", f"{before:.3f} → {after:.3f}", f"{model}, of {learned.target}; blind 0.5"))
    return lines


def identity_lines(found: Assessment) -> list[tuple[str, str, str]]:
    """Return who can be told apart, in a few lines: a name, before, and after."""
    identity = found.identity
    special = identity.special
    lines = [
        (
            "special uniques",
            counted(special[0].rows, "row"),
            _NONE if special[1] is None else counted(special[1].rows, "row"),
        )
    ]
    for name, both in (("unique in the population", identity.population), ("data intrusion", identity.intrusion)):
        if both is not None:
            lines.append((name, scored(both[0]), _NONE if both[1] is None else scored(both[1])))
    if identity.log_linear is not None:
        lines.append(("alone in population (τ1)", scored(identity.log_linear.tau1), _NONE))
        lines.append(("right guesses (τ2)", scored(identity.log_linear.tau2), _NONE))
    if identity.links is not None:
        lines.append(("links by weights", scored(identity.links), _NONE))
    for each in found.attributes:
        later = _NONE if each.after is None else f"l {each.after.l}, t {each.after.t:.3f}"
        lines.append((each.before.column, f"l {each.before.l}, t {each.before.t:.3f}", later))
    return lines


def scored(score: object) -> str:
    """Return a score for people, with its interval if it has one."""
    value, low, high = (getattr(score, name) for name in ("value", "low", "high"))
    return f"{value:.4g}" if low is None else f"{value:.4g} [{low:.3g}, {high:.3g}]"


def number(value: float | None) -> str:
    """Return a number for people; a dash where it is not known."""
    return "not known" if value is None else f"{value:.4f}"
