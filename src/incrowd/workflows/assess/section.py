"""Section: an assessment as a page for the data holder: risk and classes before and after, losses, utility."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from incrowd.core.words import counted
from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import joined, table, tag
from incrowd.measures.frontier import MappedRelease, risk_utility_map
from incrowd.measures.score import NORMAL_95
from incrowd.workflows.attack.page import findings

if TYPE_CHECKING:
    from incrowd.attacks.finding import Rate
    from incrowd.measures.risk.population import LogLinearRisk
    from incrowd.measures.score import Score
    from incrowd.measures.utility.distances import TableDistance
    from incrowd.measures.utility.learning import LearnedScore
    from incrowd.workflows.assess.assess import Assessment
    from incrowd.workflows.assess.masked_risk import MaskedRisk

RISK, LOSS = "rows linked correctly, on average", "information loss of all rows"
_NONE = "not judged"


def candidate(assessment: Assessment) -> MappedRelease:
    """Return a release as a candidate on the map: the marketer's risk after it, and the loss of all rows."""
    risk = assessment.risks["marketer"][1].average if assessment.risks else None
    if assessment.masked is not None:
        risk = assessment.masked.guessed.success.estimate
    return MappedRelease(assessment.name, risk, assessment.loss)


def map_of(assessments: Sequence[Assessment]) -> Markup:
    """Return several releases of one table on one map."""
    return risk_utility_map([candidate(assessment) for assessment in assessments], RISK, LOSS)


def page(assessments: Sequence[Assessment]) -> str:
    """Return an internal page for the data holder: the map of several releases, and each of them."""
    style = (files("incrowd.workflows.report") / "style.css").read_text(encoding="utf-8")
    pictures = [map_of(assessments)] if len(assessments) > 1 else []
    parts = [part for assessment in assessments for part in (tag("h2", assessment.name), section(assessment))]
    head = tag("head", tag("meta", charset="utf-8"), tag("title", "Assessment"), tag("style", Markup(style)))  # noqa: S704
    inside = tag("p", tag("strong", "Internal: made from the original rows. Do not publish this page."))
    body = tag("body", tag("main", tag("h1", "Assessment"), inside, *pictures, *parts))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def section(assessment: Assessment) -> Markup:
    """Return an assessment for the internal report."""
    after = assessment.classes_after
    pictures = [
        class_sizes(assessment.classes_before.counts, f"original {assessment.counted}", "in the quasi-identifiers")
    ]
    pictures += (
        []
        if after is None
        else [class_sizes(after.counts, f"released {assessment.counted}", "in the quasi-identifiers")]
    )
    return joined(
        [
            tag("h3", "Information loss and remaining risk"),
            *(tag("p", note) for note in assessment.notes),
            table("Rows and information loss", ["", "Number"], _rows(assessment)),
            table("Information loss by column", ["Column", "Level", "Released rows", "All rows"], _columns(assessment)),
            *([table("Risk", ["Attacker", "Before", "After"], _risks(assessment))] if assessment.risks else []),
            *_masked(assessment),
            tag("div", *(tag("div", picture) for picture in pictures if picture is not None), class_="pair"),
            table("Uniqueness", ["", "Before", "After"], identity_lines(assessment)),
            *(tag("p", note) for note in identity_notes(assessment)),
            table("Utility", ["", "Value"], _utility(assessment)),
            *(
                [table("Statistics claimed to be preserved", ["Claim", "Columns", "Result"], _preserved(assessment))]
                if assessment.preserved
                else []
            ),
            *_quality(assessment),
            *([] if assessment.lab is None else findings(assessment.lab)),
        ]
    )


def _rows(assessment: Assessment) -> list[list[str]]:
    alone = _NONE if assessment.classes_after is None else f"{assessment.classes_after.unique:,}"
    return [
        ["Rows before; after", f"{assessment.rows:,}; {assessment.released:,}"],
        [
            f"{assessment.counted.capitalize()} unique in the quasi-identifiers, before; after",
            f"{assessment.classes_before.unique:,}; {alone}",
        ],
        [
            "Information loss of released rows; of all rows",
            f"{number(assessment.loss_released)}; {number(assessment.loss)}",
        ],
        [
            f"Fewest {assessment.counted} of the data in a released class",
            _NONE if assessment.smallest_crowd is None else f"{assessment.smallest_crowd:,}",
        ],
    ]


def _columns(assessment: Assessment) -> list[list[str]]:
    return [
        [column.name, str(column.level), number(column.released), number(column.all)] for column in assessment.columns
    ]


def _risks(assessment: Assessment) -> list[list[str]]:
    return [
        [f"{name}, {what}", number(vars(before)[what]), number(vars(after)[what])]
        for name, (before, after) in assessment.risks.items()
        for what in (("average",) if name == "marketer" else ("highest", "above"))
    ]


def _masked(assessment: Assessment) -> list[Markup]:
    """Return what attackers find in masked rows by distance."""
    if assessment.masked is None:
        return []
    lines = table(MASKED, ["", "Success", "Baseline"], masked_lines(assessment.masked))
    return [lines, *(tag("p", note) for note in assessment.masked.note.split("\n"))]


MASKED = "Disclosure risk after masks, by distance"


def masked_lines(risk: MaskedRisk) -> list[tuple[str, str, str]]:
    """Return the success of attacks on masked rows with its interval, and their baselines, in lines."""
    return [(name, _rate(finding.success), f"{finding.baseline.estimate:.4f}") for name, finding in risk.lines]


def _rate(rate: Rate) -> str:
    return f"{rate.estimate:.4f} [{rate.low:.3g}, {rate.high:.3g}]"


def _preserved(assessment: Assessment) -> list[list[str]]:
    return [[statistic.sentence, ", ".join(statistic.columns), statistic.verdict] for statistic in assessment.preserved]


def _quality(assessment: Assessment) -> list[Markup]:
    """Return how far columns and pairs of synthetic rows are from the original."""
    if assessment.quality is None:
        return []
    return [
        table(
            "Error of synthetic rows, by column",
            ["Column", "Total variation"],
            quality_lines(assessment.quality.columns),
        ),
        table("Error of synthetic rows, by pair", ["Pair", "Total variation"], quality_lines(assessment.quality.worst)),
    ]


def quality_lines(distances: Sequence[TableDistance]) -> list[tuple[str, str]]:
    """Return the total variation of tables, in lines."""
    return [(" × ".join(distance.columns), f"{distance.variation:.4f}") for distance in distances]


def _utility(assessment: Assessment) -> list[list[str]]:
    return [[name, value] for name, value, _ in utility_lines(assessment)]


def utility_lines(assessment: Assessment) -> list[tuple[str, str, str]]:
    """Return the utility in a few lines: a name, a number, and its meaning."""
    use, lines = assessment.utility, []
    if use.marginals:
        most = max(use.marginals, key=lambda measure: measure.variation)
        lines.append(("marginals", f"{most.variation:.4f}", f"largest total variation, of {most.name}; 0 is best"))
    if use.dependencies:
        moved = max(use.dependencies, key=lambda measure: abs(measure.cramer[0] - measure.cramer[1]))
        words = f"Cramér's V that moved most, of {' and '.join(moved.columns)}"
        lines.append(("dependencies", f"{moved.cramer[0]:.3f} → {moved.cramer[1]:.3f}", words))
    if use.propensity is not None:
        words = "pMSE over its value for the same distribution; 1 is best"
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
    """Return the accuracy of the best model of a column, trained on the original and on the release.

    A second line has the AUC of the model with the largest.
    """
    best = max(learned.models, key=lambda model: model.released.value)
    words = f"{best.model}, right about {learned.target}; baseline {learned.baseline.value:.3f}"
    lines = [("models", f"{best.original.value:.3f} → {best.released.value:.3f}", words)]
    ranked = [
        (after, before, model.model) for model in learned.models for before, after in [model.auc] if before and after
    ]
    if ranked:
        after, before, model = max(ranked)
        lines.append(("AUC", f"{before:.3f} → {after:.3f}", f"{model}, of {learned.target}; baseline 0.5"))
    return lines


def identity_lines(assessment: Assessment) -> list[tuple[str, str, str]]:
    """Return re-identification risks in a few lines: a name, before, and after."""
    identity = assessment.identity
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
        lines.append(("unique in population (τ1)", scored(identity.log_linear.tau1), _NONE))
        lines.append(("right guesses (τ2)", scored(identity.log_linear.tau2), _NONE))
    if identity.links is not None:
        lines.append(("links by weights", scored(identity.links), _NONE))
    if identity.households is not None:
        lines.append(("household risk", scored(identity.households), _NONE))
    for attribute in assessment.attributes:
        later = _NONE if attribute.after is None else f"l {attribute.after.l}, t {attribute.after.t:.3f}"
        lines.append((attribute.before.column, f"l {attribute.before.l}, t {attribute.before.t:.3f}", later))
    return lines


def identity_notes(assessment: Assessment) -> list[str]:
    """Return the definition of every line of `identity_lines`, with one worked record."""
    identity = assessment.identity
    notes = [_SPECIAL]
    if example := identity.special[0].example:
        values = " and ".join(f"{name} {'missing' if value is None else value}" for name, value in example.items())
        notes.append(f"For example, only one row of the data has {values}.")
    for both in (identity.population, identity.intrusion):
        notes += [] if both is None else [_defined(both[0])]
    if (model := identity.log_linear) is not None:
        notes += [_defined(model.tau1), _defined(model.tau2), _model_note(model)]
    notes += [_defined(score) for score in (identity.links, identity.households) if score is not None]
    if assessment.attributes:
        notes.append("l: fewest different values in a class. t: largest distance of a class from the whole table.")
    return notes


_SPECIAL = "Special uniques: rows that are singled out by some of the quasi-identifiers."


def _model_note(model: LogLinearRisk) -> str:
    """Return which model the estimates come from, and whether it fits."""
    error = model.errors[model.model]
    fits = "it fits" if abs(error) <= NORMAL_95 and not model.refuted else "it does not fit: read the intervals alone"
    return f"τ1 and τ2 are by the model of {model.model}, whose error is {error:.1f} standard deviations: {fits}."


def _defined(score: Score) -> str:
    words = f"{_NAMES.get(score.name, score.name)}: {score.means}"
    return f"{words}. Interval: {score.interval}." if score.interval else f"{words}."


_NAMES = {"tau1": "τ1", "tau2": "τ2", "population uniqueness": "Unique in the population"}


def scored(score: Score) -> str:
    """Return a score as text, with its interval if it has one."""
    return f"{score.value:.4g}" if score.low is None else f"{score.value:.4g} [{score.low:.3g}, {score.high:.3g}]"


def number(value: float | None) -> str:
    """Return a number as text."""
    return "unknown" if value is None else f"{value:.4f}"
