"""`incrowd assess`: information loss and disclosure risk of releases, compared with the original rows; internal."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, NoLimits, ReadingOptions, Remote, takes
from incrowd.cli.output import print_json, print_table
from incrowd.cli.progress import progress, watched
from incrowd.errors import InvalidParameter, OutputUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incrowd.measures.risk.classes import SizeRisk
    from incrowd.workflows.assess.assess import Assessment
    from incrowd.workflows.assess.utility import SyntheticQuality
    from incrowd.workflows.attack.attack import AttackReport

_PAGE = ".html"
_SETS, _PAIRS = 3, 10


@dataclass(frozen=True)
class AssessOptions(ReadingOptions):
    """The options of `incrowd assess`."""

    releases: Annotated[
        list[Path],
        typer.Argument(
            metavar="RELEASE...", help="Folder of a release, or a released file; several are compared on a map."
        ),
    ]
    policy: Annotated[Path, typer.Option(metavar="FILE", help="The policy it was released under.")]
    against: Annotated[
        str | None, typer.Option(metavar="DATA", help="The data it was made from; by default the policy's source.")
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of survey weights: how many people each row represents."),
    ] = None
    control: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also run attacks, with these people as control group."),
    ] = None
    held_out: Annotated[
        bool,
        typer.Option("--held-out", help="Also run attacks, with the holdout group of the release as control group."),
    ] = False
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write JSON, or a page (.html); not into the folder of a release."),
    ] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    no_limits: NoLimits = False
    json: Json = False


@takes(AssessOptions)
def assess(options: AssessOptions) -> None:
    """Compare a release with the original rows: rows released, information loss, disclosure risk, utility.

    Several releases of one table are placed on a map of risk and loss, with their frontier. With --control or
    --held-out, all applicable attacks are run, too. For a model, its accuracy and calibration on the rows are shown.

    The results are computed from the original rows. They are for the data holder only: keep them apart from the
    release.
    """
    from incrowd.workflows.policy.internal import check_apart

    if options.write is not None:
        check_apart(options.write, options.releases)
    if len(options.releases) == 1 and _is_model(options.releases[0]):
        _assess_model(options)
        return
    if any(map(_is_linked, options.releases)):
        _assess_linked(options)
        return
    assessments = _assessed(options)
    if options.write is not None:
        _write(assessments, options.write)
    if options.json:
        print_json(_plain(assessments))
    elif len(assessments) == 1:
        _show(assessments[0])
    else:
        _show_map(assessments)


def _is_model(release: Path) -> bool:
    from incrowd.workflows.assess.model_scores import is_model

    return is_model(release)


def _assess_model(options: AssessOptions) -> None:
    """Show how accurate a model is on rows with known labels."""
    from incrowd.engines.settings import engine_of
    from incrowd.workflows.assess.model_scores import model_scores
    from incrowd.workflows.attack.attack import INTERNAL
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import open_rows, settings_of

    if options.weights or options.control or options.held_out or (options.write and options.write.suffix == _PAGE):
        raise InvalidParameter("a model has scores only: leave out --weights, attacks and a page.")
    policy = load_policy(options.policy)
    with engine_of(settings_of(policy, options.against, options.engine, options.master, options.remote)) as engine:
        rows = open_rows(options.against, policy, options.source_options, engine)
        record_look(policy, "assess")
        scores = model_scores(options.releases[0], rows, policy)
    if options.write is not None:
        _write_text(json.dumps(scores.to_json(), indent=1, ensure_ascii=False), options.write)
    if options.json:
        print_json(scores.to_json())
        return
    lines = [
        ("rows with known labels", f"{scores.rows:,}"),
        *((name, f"{x:.4f}") for name, x in scores.figures.items()),
    ]
    note = f"{INTERNAL[0].upper()}{INTERNAL[1:]}. Scores on training rows are optimistic."
    print_table("Internal: computed from the original rows", lines, note)
    if scores.calibration:
        rows_ = [(f"{number:,}", f"{stated:.3f}", f"{right:.3f}") for number, stated, right in scores.calibration]
        print_table("Calibration", rows_, header=("rows", "predicted", "observed"))


def _is_linked(release: Path) -> bool:
    from incrowd.workflows.assess.linked import is_linked_release

    return is_linked_release(release)


def _assess_linked(options: AssessOptions) -> None:
    """Show how far what joins linked tables is from the original."""
    from incrowd.engines.settings import engine_of
    from incrowd.workflows.assess.linked import assess_linked
    from incrowd.workflows.attack.attack import INTERNAL
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy

    page = options.write is not None and options.write.suffix == _PAGE
    if len(options.releases) > 1 or options.weights or options.control or options.held_out or page:
        raise InvalidParameter("linked tables have distances only: name one release, without attacks and pages.")
    policy = load_policy(options.policy)
    with engine_of(policy.engine) as engine:
        record_look(policy, "assess")
        assessment = assess_linked(options.releases[0], policy, options.against, engine)
    if options.write is not None:
        _write_text(json.dumps(assessment.to_json(), indent=1, ensure_ascii=False), options.write)
    if options.json:
        print_json(assessment.to_json())
        return
    rows = [
        (
            name,
            f"{table.rows:,} of {table.rows_before:,}",
            *(
                "-" if figure is None else f"{figure:.3f}"
                for figure in (table.cardinality, table.by_parent, table.parent_child, table.child_child)
            ),
            f"{table.integrity:.0%}",
        )
        for name, table in assessment.tables.items()
    ]
    print_table(
        f"Internal: {assessment.people:,} people drawn, {assessment.people_before:,} in the data",
        rows,
        "Total variation, 0 to 1: of the number of rows below a row, by itself and with each column above (mean); of "
        "columns with those above; of columns with those of the next row; and the share of foreign keys that name a "
        f"row. {INTERNAL[0].upper()}{INTERNAL[1:]}.",
        header=("table", "rows", "numbers", "by parent", "parent-child", "child-child", "keys"),
    )


def _assessed(options: AssessOptions) -> list[Assessment]:
    from incrowd.engines.settings import engine_of
    from incrowd.workflows.assess.assess import assess as assessed
    from incrowd.workflows.assess.record import keep_assessment
    from incrowd.workflows.assess.released import read_release
    from incrowd.workflows.attack.inputs import ControlGroup, attacked
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import open_rows, settings_of

    policy = load_policy(options.policy)
    released = [replace(read_release(folder), name=name) for folder, name in _named(options.releases)]
    with engine_of(settings_of(policy, options.against, options.engine, options.master, options.remote)) as engine:
        original = open_rows(options.against, policy, options.source_options, engine)
        record_look(policy, "assess")
        with progress(not options.json) as tell:
            rows = watched(original, engine, tell)
            assessments = [assessed(release, rows, policy, engine, weights=options.weights) for release in released]
    control = ControlGroup(options.control, options.held_out)
    assessments = [
        replace(assessment, lab=attacked(release, policy, options.against, control))
        for release, assessment in zip(options.releases, assessments, strict=True)
    ]
    for release, assessment in zip(options.releases, assessments, strict=True):
        keep_assessment(policy, release, assessment)
    return assessments


def _named(releases: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return each release with a unique name."""
    names = [release.resolve().name for release in releases]
    return [
        (release, name if names.count(name) == 1 else str(release))
        for release, name in zip(releases, names, strict=True)
    ]


def _plain(assessments: Sequence[Assessment]) -> dict[str, object]:
    if len(assessments) == 1:
        return assessments[0].to_json()
    from incrowd.measures.frontier import placed
    from incrowd.workflows.assess.section import candidate

    best = [place.name for place in placed([candidate(assessment) for assessment in assessments]) if place.best]
    return {
        "internal": "computed from the original rows: keep it apart from the release",
        "frontier": best,
        "releases": [assessment.to_json() for assessment in assessments],
    }


def _write(assessments: Sequence[Assessment], target: Path) -> None:
    from incrowd.cli.output import finite

    page = target.suffix == _PAGE
    _write_text(
        _page(assessments) if page else json.dumps(finite(_plain(assessments)), indent=1, ensure_ascii=False), target
    )


def _write_text(text: str, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputUnavailable(f"{target} could not be written: {error.strerror}.") from None


def _page(assessments: Sequence[Assessment]) -> str:
    from incrowd.workflows.assess.section import page

    return page(assessments)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"


def _show(assessment: Assessment) -> None:
    from incrowd.workflows.assess.section import MASKED, masked_lines

    share = assessment.released / assessment.rows if assessment.rows else 0.0
    several = f" in {len(assessment.tables)} tables" if len(assessment.tables) > 1 else ""
    meaning = "information loss: 0 keeps every value, 1 keeps none; a suppressed row counts as 1"
    print_table(
        "Internal: computed from the original rows",
        [
            ("rows released", f"{assessment.released:,} of {assessment.rows:,} ({share:.1%}){several}"),
            ("loss, released rows", _number(assessment.loss_released)),
            ("loss, all rows", _number(assessment.loss)),
        ],
        "\n".join([meaning, *assessment.notes]),
    )
    columns = [
        (column.name, str(column.level), _number(column.released), _number(column.all)) for column in assessment.columns
    ]
    print_table("Information loss by column", columns, header=("column", "level", "released rows", "all rows"))
    print_table(
        "Equivalence classes of the quasi-identifiers",
        _class_lines(assessment),
        "" if assessment.counted == "rows" else _OF_PEOPLE,
        header=("", "before", "after"),
    )
    if assessment.risks:
        _show_risks(assessment)
    if assessment.masked is not None:
        print_table(MASKED, masked_lines(assessment.masked), assessment.masked.note, header=("", "success", "baseline"))
    _show_measures(assessment)
    if assessment.preserved:
        facts = [(f"{fact.sentence} ({', '.join(fact.columns)})", fact.verdict) for fact in assessment.preserved]
        note = "Compared with the original rows. Steps that need paired rows were checked at release."
        print_table("Preserved statistics", facts, note)
    if assessment.quality is not None:
        _show_quality(assessment.quality)
    if assessment.lab is not None:
        _show_attacks(assessment.lab)


def _show_measures(assessment: Assessment) -> None:
    from incrowd.workflows.assess.section import identity_lines, identity_notes, utility_lines

    sets = [f"{', '.join(ranked.columns)} {ranked.unique:.1%}" for ranked in assessment.identity.ranking[:_SETS]]
    notes = [f"Unique in the original rows: {'; '.join(sets)}."] if sets else []
    note = "\n".join([*notes, *identity_notes(assessment)])
    print_table("Uniqueness", identity_lines(assessment), note, header=("", "before", "after"))
    lines = utility_lines(assessment)
    if lines:
        note = "Each label counts as an even mix of its values. Definitions: reference, Measures."
        print_table("Utility", lines, note, header=("", "value", ""))


def _show_quality(quality: SyntheticQuality) -> None:
    from incrowd.workflows.assess.section import quality_lines

    header, first = ("columns", "total variation"), quality.worst[:_PAIRS]
    print_table("Error of synthetic rows, by column", quality_lines(quality.columns), header=header)
    note = (
        "Share of rows in a wrong cell, by the classes of the model; mean over all pairs: "
        f"{quality.mean:.4f}. --json has all."
    )
    print_table(f"The {len(first)} pairs with the largest error", quality_lines(first), note, header=header)


def _show_attacks(lab: AttackReport) -> None:
    from incrowd.cli.attack import rate_texts

    header = ("attack", "success", "baseline", "control group", "verdict")
    rows = [(run.finding.attack, *rate_texts(run.finding), str(run.finding.verdict)) for run in lab.runs]
    notes = dict.fromkeys(note for run in lab.runs for note in run.finding.notes)
    words = f"Simultaneous {lab.confidence:g} confidence intervals. An attack that fails proves nothing."
    note = "\n".join([*notes, words])
    print_table("Attacks, with control group", rows, note, header=header)


def _show_map(assessments: Sequence[Assessment]) -> None:
    from incrowd.measures.frontier import placed
    from incrowd.workflows.assess.section import LOSS, RISK, candidate

    candidates = [candidate(assessment) for assessment in assessments]
    best = {place.name: "yes" if place.best else "no" for place in placed(candidates)}
    rows = [
        (
            assessment.name,
            f"{assessment.released:,}",
            "not counted" if spot.risk is None else f"{spot.risk:.4f}",
            _number(spot.loss),
            "-" if assessment.utility.workload is None else f"{assessment.utility.workload.value:.4f}",
            best.get(assessment.name, "not on the map"),
        )
        for assessment, spot in zip(assessments, candidates, strict=True)
    ]
    note = (
        f"risk: {RISK}; loss: {LOSS}; counts: mean error of a share of rows. A release is on the frontier if no other "
        "release has a lower risk at no higher loss, or a lower loss at no higher risk. --write map.html draws the map."
    )
    header = ("release", "rows", "risk", "loss", "counts", "frontier")
    print_table("Internal: releases on a map of risk and loss", rows, note, header=header)


_OF_PEOPLE = (
    "Classes are counted in people, since people are the unit of privacy; after the release, in the least number of "
    "people who can have the rows of a class."
)


def _class_lines(assessment: Assessment) -> list[tuple[str, ...]]:
    after, suppressed = assessment.classes_after, assessment.rows - assessment.released
    both = [(assessment.classes_before, 0), *([] if after is None else [(after, suppressed)])]
    lines = [
        ("classes", *(f"{sizes.classes:,}" for sizes, _ in both)),
        ("smallest", *(f"{sizes.smallest or 0:,}" for sizes, _ in both)),
        ("average size", *(f"{sizes.average or 0:.2f}" for sizes, _ in both)),
        (f"unique {assessment.counted}", *(f"{sizes.unique:,}" for sizes, _ in both)),
        ("discernibility", *(f"{sizes.discernibility(gone):,}" for sizes, gone in both)),
    ]
    return [line if after is not None else (*line, "not judged") for line in lines]


def _show_risks(assessment: Assessment) -> None:
    from incrowd.measures.risk.classes import DEFINITIONS
    from incrowd.workflows.assess.assess import THRESHOLD

    rows = []
    for name, (before, after) in assessment.risks.items():
        for what, pick in _RISK_LINES[name]:
            rows.append((name, what, f"{pick(before):.4f}", f"{pick(after):.4f}"))
    meanings = "\n".join(f"{name}: {means}." for name, means in DEFINITIONS.items())
    example = "" if assessment.example is None else f"\n{assessment.example.words}"
    note = f"above: share of rows with a risk above {THRESHOLD:g}.\n{meanings}{example}"
    print_table("Disclosure risk", rows, note, header=("attacker", "", "before", "after"))


def _highest(risk: SizeRisk) -> float:
    return risk.highest


def _above(risk: SizeRisk) -> float:
    return risk.above


def _average(risk: SizeRisk) -> float:
    return risk.average


_RISK_LINES = {
    "prosecutor": (("highest", _highest), ("above", _above)),
    "journalist": (("highest", _highest), ("above", _above)),
    "marketer": (("average", _average),),
}
