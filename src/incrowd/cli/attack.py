"""`incrowd attack`: attacks on a release, or on any published table and its original; internal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table
from incrowd.cli.progress import progress
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.attacks.finding import Finding, Rate
    from incrowd.workflows.attack.attack import AttackOrder, AttackReport, AttackRun
    from incrowd.workflows.attack.inputs import AttackInput

_ABOVE = 1
_NOT_HELD_BACK = (
    "This release has an epsilon. Attack results depend on the rows of many people: holding it back by them would not "
    "be covered by its guarantee, so the exit code stays 0. The ledger records the result."
)


@dataclass(frozen=True)
class AttackOptions:
    """The options of `incrowd attack`."""

    release: Annotated[Path | None, typer.Argument(help="The folder of a release, or a released file.")] = None
    against: Annotated[
        str | None, typer.Option(metavar="DATA", help="The data it was made from; by default the policy's source.")
    ] = None
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The policy of the release: roles, and how labels are read.")
    ] = None
    original: Annotated[
        str | None, typer.Option(metavar="DATA", help="Instead of a release: the original data of any published table.")
    ] = None
    published: Annotated[Path | None, typer.Option(metavar="FILE", help="With --original: the published table.")] = None
    also: Annotated[
        list[Path], typer.Option(metavar="RELEASE", help="Another published release about the same people.")
    ] = field(default_factory=list)
    control: Annotated[
        str | None, typer.Option(metavar="FILE", help="Control group: similar people who are not in the data.")
    ] = None
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Use the holdout group of the release as control group; needs --policy.")
    ] = False
    changed: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --also: people in only one of the two releases.")
    ] = None
    attack: Annotated[list[str], typer.Option(metavar="NAME", help="An attack to run; default: all that apply.")] = (
        field(default_factory=list)
    )
    attacker: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="prosecutor (default), journalist, marketer, insider or neighbor."),
    ] = field(default_factory=list)
    known_columns: Annotated[
        str | None,
        typer.Option("--known", metavar="A,B,C", help="Columns the attacker knows; default: quasi-identifiers."),
    ] = None
    secret: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column to infer; default: a sensitive one.")
    ] = None
    slack: Annotated[str | None, typer.Option(metavar="A=2,B=14", help="Tolerance of known numbers or dates.")] = None
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Person ID column, where people have several rows.")
    ] = None
    item: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Item column, for similarity and baskets: films, goods, search terms."),
    ] = None
    separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Separator of items, if a row holds several.")
    ] = None
    events: Annotated[
        int, typer.Option(metavar="COUNT", help="Events or items of a person that the attacker knows.")
    ] = 8
    diversity: Annotated[
        int | None, typer.Option(metavar="L", help="For minimality: the required l-diversity, if known.")
    ] = None
    count: Annotated[str | None, typer.Option(metavar="COLUMN", help="Published column of row counts.")] = None
    sweep: Annotated[
        int | None, typer.Option(metavar="COUNT", help="Try every combination of up to this many known columns.")
    ] = None
    trials: Annotated[int, typer.Option(metavar="COUNT", help="Maximum number of people to attack.")] = 2000
    confidence: Annotated[
        float, typer.Option(metavar="SHARE", help="Simultaneous confidence of all intervals of a run.")
    ] = 0.95
    threshold: Annotated[
        list[str],
        typer.Option(
            metavar="SHARE",
            help="Exit 1 unless the gain is shown to be lower; or NAME=SHARE. Adds to the policy's risk:.",
        ),
    ] = field(default_factory=list)
    replay: Annotated[bool, typer.Option("--replay", help="Show one example victim for each attack that succeeds.")] = (
        False
    )
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts; not into the folder of the release.")
    ] = None
    json: Json = False


@takes(AttackOptions)
def attack(options: AttackOptions) -> None:
    """Attack a release and compare the success rate with a baseline and a control group.

    The control group (--control) holds similar people who are not in the data. All confidence intervals of one run are
    simultaneous. The results are computed from the original rows: they are for the data holder only. An attack that
    fails proves nothing.

    Exit 1 above a threshold, for releases without an epsilon only: a release with one may not be held back by its rows.

    With --attack audit and a policy instead of a release, the method runs --trials times with and without the rarest
    row. Exit 1 if this proves a larger epsilon than claimed.
    """
    from incrowd.workflows.attack.attack import attack_all
    from incrowd.workflows.attack.inputs import thresholds_of
    from incrowd.workflows.attack.page import write_page
    from incrowd.workflows.policy.internal import check_apart

    if options.attack == ["audit"]:
        _audit(options)
        return
    inputs, order = _inputs(options), _order(options)
    thresholds = inputs.thresholds(thresholds_of(options.threshold))
    if options.report is not None:
        check_apart(options.report, [] if options.original else [inputs.release])
    targets = inputs.targets()
    order = replace(order, changed=inputs.table(options.changed))
    with progress(not options.json, "attacks") as tell:
        lab = attack_all(targets, order, tell)
    over = lab.exceeding(thresholds)
    inputs.keep(lab, over)
    if options.report is not None:
        write_page(lab, options.report, inputs.title)
    if options.json:
        stories = {"stories": [list(run.finding.story) for run in lab.runs]} if options.replay else {}
        places = [lab.runs.index(run) for run in over]
        print_json({**lab.to_json(), **stories, "above": places, "epsilon": inputs.private, "look": inputs.look})
    else:
        _show(lab, over, inputs)
        if options.replay:
            _tell(lab)
    if over and not inputs.private:
        raise typer.Exit(_ABOVE)


def _audit(options: AttackOptions) -> None:
    from incrowd.workflows.attack.audit import audit_rarest
    from incrowd.workflows.policy.policy import load_policy

    if options.policy is None or options.release is not None:
        raise InvalidParameter("an audit runs a method, not a release: give --policy, and --against for the data.")
    audit, claim = audit_rarest(load_policy(options.policy), options.against, options.trials, options.confidence)
    if options.json:
        print_json({"findings": [], "audit": {**vars(audit), "claim": claim, "sentence": audit.sentence(claim)}})
    else:
        rows = [("proved: epsilon at least", f"{audit.epsilon:.4g}"), ("could prove at most", f"{audit.ceiling:.4g}")]
        rows.append(("claimed", "nothing" if claim is None else f"{claim:.4g}"))
        print_table("Internal: audit", rows, audit.sentence(claim))
    if claim is not None and audit.epsilon > claim:
        raise typer.Exit(_ABOVE)


def _inputs(options: AttackOptions) -> AttackInput:
    from incrowd.workflows.attack.inputs import AttackInput, numbers_of

    foreign = options.original is not None or options.published is not None
    if foreign == (options.release is not None):
        raise InvalidParameter("give a release with --against, or --original and --published, not both.")
    release = options.published if foreign else options.release
    if release is None or (foreign and options.original is None):
        raise InvalidParameter("--original and --published go together: the data, and the table published from it.")
    return AttackInput(
        release,
        options.original if foreign else options.against,
        options.policy,
        tuple(options.also),
        options.control,
        None if options.known_columns is None else tuple(name.strip() for name in options.known_columns.split(",")),
        options.secret,
        numbers_of(options.slack),
        (options.person, options.item, options.separator),
        options.count,
        (options.events, options.trials, options.diversity),
        options.held_out,
    )


def _order(options: AttackOptions) -> AttackOrder:
    from incrowd.workflows.attack.attack import AttackOrder

    return AttackOrder(tuple(options.attack), tuple(options.attacker), options.sweep, options.confidence)


def _show(lab: AttackReport, over: tuple[AttackRun, ...], inputs: AttackInput) -> None:
    header = ("attack", "success", "baseline", "control group", "verdict")
    for risk in dict.fromkeys(run.finding.risk for run in lab.runs):
        rows = [_row(n, run, over) for n, run in enumerate(lab.runs, 1) if run.finding.risk is risk]
        print_table(f"Internal: {risk}", rows, header=header)
    notes = [
        f"{n} {run.finding.attack} on {run.table}, by a {run.attacker} who knows {run.finding.knows}."
        for n, run in enumerate(lab.runs, 1)
    ]
    notes += [f"{name} was not run: {why}" for name, why in lab.skipped.items()]
    notes += ["✗: not shown to be at or below its threshold."] if over else []
    notes += [_NOT_HELD_BACK] if over and inputs.private else []
    notes += [note for run in lab.runs for note in run.finding.notes]
    notes += [run.finding.sentence for run in lab.runs]
    notes.append(f"Simultaneous {lab.confidence:g} confidence intervals. {inputs.look_sentence}")
    print_table("What this means", [(note,) for note in dict.fromkeys(notes)])


def _row(number: int, run: AttackRun, over: tuple[AttackRun, ...]) -> tuple[str, ...]:
    finding = run.finding
    return f"{number} {finding.attack}", *rate_texts(finding), f"{finding.verdict}{' ✗' if run in over else ''}"


def rate_texts(finding: Finding) -> tuple[str, ...]:
    """Return the success rates of an attack, of the baseline and on the control group, with confidence intervals."""
    rates = (finding.success, finding.baseline, finding.control)
    return tuple("–" if rate is None else _rate_text(rate) for rate in rates)


def _rate_text(rate: Rate) -> str:
    return f"{100 * rate.estimate:.0f}% ({100 * rate.low:.0f}–{100 * rate.high:.0f})"


def _tell(lab: AttackReport) -> None:
    for run in lab.runs:
        if run.finding.story:
            lines = [(f"{place}.", line) for place, line in enumerate(run.finding.story, 1)]
            print_table(f"One victim of {run.finding.attack}", lines)
