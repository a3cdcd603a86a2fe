"""`incrowd assess`: what a release lost, and what risk is left; internal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, Remote, takes
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter, OutputUnavailable

if TYPE_CHECKING:
    from incrowd.measures.sizes import Risk, Sizes
    from incrowd.workflows.assess.assess import Assessment


@dataclass(frozen=True)
class AssessOptions:
    """What `incrowd assess` can be told."""

    release: Annotated[Path, typer.Argument(help="The folder of a release, or a released file.")]
    policy: Annotated[Path, typer.Option(metavar="FILE", help="The policy it was released under.")]
    against: Annotated[
        str | None, typer.Option(metavar="DATA", help="The data it was made from; by default the policy's source.")
    ] = None
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it as JSON, anywhere but beside the release.")
    ] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    json: Json = False


@takes(AssessOptions)
def assess(options: AssessOptions) -> None:
    """Compare a release with its data: rows kept, loss per column, risk before and after.

    These numbers are made from the original rows. They are for the holder of the data, and never belong beside the
    release.
    """
    from incrowd.engines.choose import engine_of
    from incrowd.workflows.assess.assess import assess as assessed
    from incrowd.workflows.policy.ledger import record_look
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import open_release, open_rows, settings_of

    if options.write is not None:
        _check_apart(options.write, options.release)
    policy = load_policy(options.policy)
    released = open_release(options.release)
    with engine_of(settings_of(policy, options.against, options.engine, options.master, options.remote)) as engine:
        original = open_rows(options.against, policy, engine=engine)
        record_look(policy, "assess")
        found = assessed(released, original, policy, engine)
    if options.write is not None:
        _write(found, options.write)
    if options.json:
        print_json(found.to_json())
    else:
        _show(found)


def _check_apart(target: Path, release: Path) -> None:
    public = release.resolve() if release.is_dir() else release.resolve().parent
    if target.resolve().is_relative_to(public):
        raise InvalidParameter(
            f"{target} lies beside the release, and people pass on whole folders: write it elsewhere, such as "
            ".incrowd/internal/assessment.json."
        )
    if target.exists():
        raise OutputUnavailable(f"{target} exists, and nothing is overwritten. Choose another name.")


def _write(found: Assessment, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(found.to_json(), indent=1, ensure_ascii=False), encoding="utf-8")
    except OSError as error:
        raise OutputUnavailable(f"{target} could not be written: {error.strerror}.") from None


def _show(found: Assessment) -> None:
    share = found.kept / found.rows if found.rows else 0.0
    print_table(
        "Internal: made from the original rows",
        [
            ("rows released", f"{found.kept:,} of {found.rows:,} ({share:.1%})"),
            ("loss of released rows", f"{found.loss_kept:.4f}"),
            ("loss, all rows", f"{found.loss:.4f}"),
        ],
        "loss: 0 keeps every value, 1 keeps none; a row that was not released lost everything",
    )
    columns = [(each.name, str(each.level), f"{each.kept:.4f}", f"{each.all:.4f}") for each in found.columns]
    print_table("Loss by column", columns, header=("column", "level", "released rows", "all rows"))
    print_table(
        "Rows that look alike to one who knows the quasi-identifiers",
        _class_lines(found.classes_before, found.classes_after, found.rows - found.kept),
        header=("", "before", "after"),
    )
    _show_risks(found)


def _class_lines(before: Sizes, after: Sizes, suppressed: int) -> list[tuple[str, ...]]:
    both = (before, 0), (after, suppressed)
    return [
        ("classes", *(f"{sizes.classes:,}" for sizes, _ in both)),
        ("smallest", *(f"{sizes.smallest or 0:,}" for sizes, _ in both)),
        ("average size", *(f"{sizes.average or 0:.2f}" for sizes, _ in both)),
        ("rows alone", *(f"{sizes.unique:,}" for sizes, _ in both)),
        ("discernibility", *(f"{sizes.discernibility(gone):,}" for sizes, gone in both)),
    ]


def _show_risks(found: Assessment) -> None:
    from incrowd.measures.sizes import DEFINITIONS
    from incrowd.workflows.assess.assess import THRESHOLD

    rows = []
    for name, (before, after) in found.risks.items():
        for what, pick in _ASKED[name]:
            rows.append((name, what, f"{pick(before):.4f}", f"{pick(after):.4f}"))
    meanings = "\n".join(f"{name}: {means}." for name, means in DEFINITIONS.items())
    example = "" if found.example is None else f"\n{found.example.words}"
    note = f"above: share of rows about which an attacker is right more often than {THRESHOLD:g}.\n{meanings}{example}"
    print_table("Risk", rows, note, header=("attacker", "", "before", "after"))


def _highest(risk: Risk) -> float:
    return risk.highest


def _above(risk: Risk) -> float:
    return risk.above


def _average(risk: Risk) -> float:
    return risk.average


_ASKED = {
    "prosecutor": (("highest", _highest), ("above", _above)),
    "journalist": (("highest", _highest), ("above", _above)),
    "marketer": (("average", _average),),
}
