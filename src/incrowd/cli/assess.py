"""`incrowd assess`: what a release lost, and what risk is left; of several releases, which to choose; internal."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, ReadingOptions, Remote, takes
from incrowd.cli.output import print_json, print_table
from incrowd.cli.progress import progress, watched
from incrowd.errors import InvalidParameter, OutputUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from incrowd.measures.risk.classes import SizeRisk, Sizes
    from incrowd.workflows.assess.assess import Assessment
    from incrowd.workflows.assess.utility import SyntheticQuality
    from incrowd.workflows.attack.attack import AttackReport

_PAGE = ".html"
_SETS, _PAIRS = 3, 10


@dataclass(frozen=True)
class AssessOptions(ReadingOptions):
    """What `incrowd assess` can be told."""

    releases: Annotated[
        list[Path],
        typer.Argument(metavar="RELEASE...", help="The folder of a release, or a released file; several make a map."),
    ]
    policy: Annotated[Path, typer.Option(metavar="FILE", help="The policy it was released under.")]
    against: Annotated[
        str | None, typer.Option(metavar="DATA", help="The data it was made from; by default the policy's source.")
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Survey weights in the data: how many people each row stands for."),
    ] = None
    control: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Attack too, with this control group of people who are not in the data."),
    ] = None
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Attack too, beside those who were held out of the release.")
    ] = False
    write: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write it as JSON, or as a page (.html), anywhere but beside a release."),
    ] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    json: Json = False


@takes(AssessOptions)
def assess(options: AssessOptions) -> None:
    """Compare a release with its data: rows kept, loss per column, risk before and after, and what is left to learn.

    Releases of every method are read at the levels they were released at. Several releases of one table are put on a
    map of risk and loss, with the frontier among them. With --control or --held-out all attacks that apply are run
    too. Of a model it is said how right it is about the rows: accuracy, calibration and curve, or errors of numbers.

    These numbers are made from the original rows. They are for the holder of the data, and never belong beside the
    release.
    """
    from incrowd.workflows.policy.internal import check_apart

    if options.write is not None:
        check_apart(options.write, options.releases)
    if len(options.releases) == 1 and _is_model(options.releases[0]):
        _assess_model(options)
        return
    found = _assessed(options)
    if options.write is not None:
        _write(found, options.write)
    if options.json:
        print_json(_plain(found))
    elif len(found) == 1:
        _show(found[0])
    else:
        _show_map(found)


def _is_model(release: Path) -> bool:
    from incrowd.workflows.assess.model_scores import is_model

    return is_model(release)


def _assess_model(options: AssessOptions) -> None:
    """Show how right a model is about rows whose truth is known."""
    from incrowd.engines.settings import engine_of
    from incrowd.workflows.assess.model_scores import model_scores
    from incrowd.workflows.attack.attack import INTERNAL
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import open_rows, settings_of

    if options.weights or options.control or options.held_out or (options.write and options.write.suffix == _PAGE):
        raise InvalidParameter("of a model scores alone are shown: leave out weights, attacks and a page.")
    policy = load_policy(options.policy)
    with engine_of(settings_of(policy, options.against, options.engine, options.master, options.remote)) as engine:
        rows = open_rows(options.against, policy, options.told, engine)
        record_look(policy, "assess")
        found = model_scores(options.releases[0], rows, policy)
    if options.write is not None:
        _write_text(json.dumps(found.to_json(), indent=1, ensure_ascii=False), options.write)
    if options.json:
        print_json(found.to_json())
        return
    lines = [("rows with a known truth", f"{found.rows:,}"), *((name, f"{x:.4f}") for name, x in found.figures.items())]
    note = f"{INTERNAL[0].upper()}{INTERNAL[1:]}. About rows that it was learned from a model looks a little too good."
    print_table("Internal: made from the original rows", lines, note)
    if found.calibration:
        rows_ = [(f"{number:,}", f"{said:.3f}", f"{right:.3f}") for number, said, right in found.calibration]
        print_table("How sure it is, and how often it is right", rows_, header=("rows", "chance said", "share right"))


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
    released = [replace(read_release(each), name=name) for each, name in _named(options.releases)]
    with engine_of(settings_of(policy, options.against, options.engine, options.master, options.remote)) as engine:
        original = open_rows(options.against, policy, options.told, engine)
        record_look(policy, "assess")
        with progress(not options.json) as tell:
            rows = watched(original, engine, tell)
            found = [assessed(each, rows, policy, engine, weights=options.weights) for each in released]
    control = ControlGroup(options.control, options.held_out)
    found = [
        replace(each, lab=attacked(release, policy, options.against, control))
        for release, each in zip(options.releases, found, strict=True)
    ]
    for release, each in zip(options.releases, found, strict=True):
        keep_assessment(policy, release, each)
    return found


def _named(releases: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return each release with a name that no other has."""
    names = [release.resolve().name for release in releases]
    return [(each, name if names.count(name) == 1 else str(each)) for each, name in zip(releases, names, strict=True)]


def _plain(found: Sequence[Assessment]) -> dict[str, object]:
    if len(found) == 1:
        return found[0].to_json()
    from incrowd.measures.frontier import placed
    from incrowd.workflows.assess.section import candidate

    best = [each.name for each in placed([candidate(each) for each in found]) if each.best]
    return {
        "internal": "made from the original rows: keep it apart from what is published",
        "frontier": best,
        "releases": [each.to_json() for each in found],
    }


def _write(found: Sequence[Assessment], target: Path) -> None:
    from incrowd.cli.output import finite

    page = target.suffix == _PAGE
    _write_text(_page(found) if page else json.dumps(finite(_plain(found)), indent=1, ensure_ascii=False), target)


def _write_text(text: str, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputUnavailable(f"{target} could not be written: {error.strerror}.") from None


def _page(found: Sequence[Assessment]) -> str:
    from incrowd.workflows.assess.section import page

    return page(found)


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.4f}"


def _show(found: Assessment) -> None:
    share = found.released / found.rows if found.rows else 0.0
    several = f" in {len(found.tables)} tables" if len(found.tables) > 1 else ""
    meaning = "loss: 0 keeps every value, 1 keeps none; a row that was not released lost everything"
    print_table(
        "Internal: made from the original rows",
        [
            ("rows released", f"{found.released:,} of {found.rows:,} ({share:.1%}){several}"),
            ("loss of released rows", _number(found.loss_released)),
            ("loss, all rows", _number(found.loss)),
        ],
        "\n".join([meaning, *found.notes]),
    )
    columns = [
        (column.name, str(column.level), _number(column.released), _number(column.all)) for column in found.columns
    ]
    print_table("Loss by column", columns, header=("column", "level", "released rows", "all rows"))
    print_table(
        "Rows that look alike to one who knows the quasi-identifiers",
        _class_lines(found.classes_before, found.classes_after, found.rows - found.released),
        header=("", "before", "after"),
    )
    if found.risks:
        _show_risks(found)
    _show_measures(found)
    if found.preserved:
        kept = [(f"{each.sentence} ({', '.join(each.columns)})", each.verdict) for each in found.preserved]
        note = "Held against the rows it was made from. Steps that need rows paired check themselves when they release."
        print_table("What was to be kept", kept, note)
    if found.quality is not None:
        _show_quality(found.quality)
    if found.lab is not None:
        _show_attacks(found.lab)


def _show_measures(found: Assessment) -> None:
    from incrowd.workflows.assess.section import identity_lines, utility_lines

    sets = [f"{', '.join(each.columns)} {each.unique:.1%}" for each in found.identity.ranking[:_SETS]]
    note = f"Of the original rows, alone by: {'; '.join(sets)}." if sets else ""
    print_table("Who can be told apart", identity_lines(found), note, header=("", "before", "after"))
    lines = utility_lines(found)
    if lines:
        note = "Labels are spread evenly over what they stand for, as a reader would. Definitions: reference, Measures."
        print_table("What is left to learn", lines, note, header=("", "value", ""))


def _show_quality(found: SyntheticQuality) -> None:
    from incrowd.workflows.assess.section import quality_lines

    header, first = ("columns", "total variation"), found.worst[:_PAIRS]
    print_table("Error of synthetic rows, by column", quality_lines(found.columns), header=header)
    note = (
        "The share of rows that would have to move, in the classes of the model; the mean of all pairs is "
        f"{found.mean:.4f}. --json has all."
    )
    print_table(f"The {len(first)} pairs with the largest error", quality_lines(first), note, header=header)


def _show_attacks(lab: AttackReport) -> None:
    from incrowd.cli.attack import rates_shown

    header = ("attack", "success", "baseline", "control group", "verdict")
    rows = [(each.finding.attack, *rates_shown(each.finding), str(each.finding.verdict)) for each in lab.runs]
    told = dict.fromkeys(note for each in lab.runs for note in each.finding.notes)
    words = f"Intervals are simultaneous, with confidence {lab.confidence:g}. An attack that fails proves nothing."
    note = "\n".join([*told, words])
    print_table("Attacks, beside people who are not in the data", rows, note, header=header)


def _show_map(found: Sequence[Assessment]) -> None:
    from incrowd.measures.frontier import placed
    from incrowd.workflows.assess.section import LOSS, RISK, candidate

    candidates = [candidate(each) for each in found]
    best = {each.name: "yes" if each.best else "no" for each in placed(candidates)}
    rows = [
        (
            each.name,
            f"{each.released:,}",
            "not counted" if spot.risk is None else f"{spot.risk:.4f}",
            _number(spot.loss),
            "-" if each.utility.workload is None else f"{each.utility.workload.value:.4f}",
            best.get(each.name, "not on the map"),
        )
        for each, spot in zip(found, candidates, strict=True)
    ]
    note = (
        f"risk: {RISK}; loss: {LOSS}; counts: error of a share of rows, on average. A release is on the frontier if no "
        "other has less of risk or loss and no more of the other. --write map.html draws the map."
    )
    header = ("release", "rows", "risk", "loss", "counts", "frontier")
    print_table("Internal: releases on a map of risk and loss", rows, note, header=header)


def _class_lines(before: Sizes, after: Sizes | None, suppressed: int) -> list[tuple[str, ...]]:
    both = [(before, 0), *([] if after is None else [(after, suppressed)])]
    lines = [
        ("classes", *(f"{sizes.classes:,}" for sizes, _ in both)),
        ("smallest", *(f"{sizes.smallest or 0:,}" for sizes, _ in both)),
        ("average size", *(f"{sizes.average or 0:.2f}" for sizes, _ in both)),
        ("rows alone", *(f"{sizes.unique:,}" for sizes, _ in both)),
        ("discernibility", *(f"{sizes.discernibility(gone):,}" for sizes, gone in both)),
    ]
    return [line if after is not None else (*line, "not judged") for line in lines]


def _show_risks(found: Assessment) -> None:
    from incrowd.measures.risk.classes import DEFINITIONS
    from incrowd.workflows.assess.assess import THRESHOLD

    rows = []
    for name, (before, after) in found.risks.items():
        for what, pick in _ASKED[name]:
            rows.append((name, what, f"{pick(before):.4f}", f"{pick(after):.4f}"))
    meanings = "\n".join(f"{name}: {means}." for name, means in DEFINITIONS.items())
    example = "" if found.example is None else f"\n{found.example.words}"
    note = f"above: share of rows about which an attacker is right more often than {THRESHOLD:g}.\n{meanings}{example}"
    print_table("Risk", rows, note, header=("attacker", "", "before", "after"))


def _highest(risk: SizeRisk) -> float:
    return risk.highest


def _above(risk: SizeRisk) -> float:
    return risk.above


def _average(risk: SizeRisk) -> float:
    return risk.average


_ASKED = {
    "prosecutor": (("highest", _highest), ("above", _above)),
    "journalist": (("highest", _highest), ("above", _above)),
    "marketer": (("average", _average),),
}
