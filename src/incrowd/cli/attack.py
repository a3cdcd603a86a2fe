"""`incrowd attack`: the attack lab on a release, or on any published table beside its original; internal."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.attacks.finding import Finding, Rate
    from incrowd.workflows.attack.attack import AttackOrder, AttackReport, AttackRun
    from incrowd.workflows.attack.inputs import AttackInput

_ABOVE = 1


@dataclass(frozen=True)
class AttackOptions:
    """What `incrowd attack` can be told."""

    release: Annotated[Path | None, typer.Argument(help="The folder of a release, or a released file.")] = None
    against: Annotated[
        str | None, typer.Option(metavar="DATA", help="The data it was made from; by default the policy's source.")
    ] = None
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The policy of the release: roles, and how labels are read.")
    ] = None
    original: Annotated[
        str | None, typer.Option(metavar="DATA", help="Instead of a release: the data, whoever published from it.")
    ] = None
    published: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --original: what was published from it.")
    ] = None
    also: Annotated[
        list[Path], typer.Option(metavar="RELEASE", help="Another release about the same people, which is out too.")
    ] = field(default_factory=list)
    control: Annotated[
        str | None, typer.Option(metavar="FILE", help="Control group: people of the same kind who are not in the data.")
    ] = None
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Control group: the holdout group of release --hold-out; needs --policy.")
    ] = False
    changed: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --also: people who are in one of the two releases only.")
    ] = None
    attack: Annotated[list[str], typer.Option(metavar="NAME", help="An attack to try; by default all that apply.")] = (
        field(default_factory=list)
    )
    attacker: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="prosecutor (default), journalist, marketer, insider or neighbor."),
    ] = field(default_factory=list)
    known: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="The columns that are known; by default the quasi-identifiers.")
    ] = None
    secret: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that is looked for; by default a sensitive one.")
    ] = None
    slack: Annotated[
        str | None, typer.Option(metavar="A=2,B=14", help="Known columns of numbers or days that are known only about.")
    ] = None
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Where people have several rows: whose row it is.")
    ] = None
    item: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="For similarity and baskets: films, goods, search words.")
    ] = None
    separator: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What stands between items if a row holds several.")
    ] = None
    events: Annotated[int, typer.Option(metavar="COUNT", help="How many events or items of a person are known.")] = 8
    diversity: Annotated[
        int | None, typer.Option(metavar="L", help="For minimality: the l-diversity that was demanded, if known.")
    ] = None
    count: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The published column that says how many rows a line is.")
    ] = None
    sweep: Annotated[
        int | None, typer.Option(metavar="COUNT", help="Try every combination of at most so many known columns.")
    ] = None
    trials: Annotated[int, typer.Option(metavar="COUNT", help="At most so many people are attacked.")] = 2000
    confidence: Annotated[
        float, typer.Option(metavar="SHARE", help="Confidence of all intervals of a run, simultaneously.")
    ] = 0.95
    threshold: Annotated[
        list[str],
        typer.Option(
            metavar="SHARE", help="Exit 1 unless shown to gain less; or NAME=SHARE. Besides the policy's risk:."
        ),
    ] = field(default_factory=list)
    replay: Annotated[bool, typer.Option("--replay", help="Tell one victim's story for each attack that hits.")] = False
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with pictures, anywhere but beside the release.")
    ] = None
    json: Json = False


@takes(AttackOptions)
def attack(options: AttackOptions) -> None:
    """Attack a release as others would, and compare with people who are not in the data.

    Every success rate is reported with a baseline and, with --control, with the rate on people of the same kind who
    are not in the data. Confidence intervals are simultaneous for all attacks of one run. Results come from the
    original rows: they are for the data holder and must not be published. An attack that fails proves nothing.

    With --attack audit and a policy instead of a release, its method is run --trials times with the rarest row and
    without: exit 1 if that proves more epsilon than is claimed.
    """
    from incrowd.workflows.attack.attack import attack as attacked
    from incrowd.workflows.attack.inputs import thresholds_of
    from incrowd.workflows.attack.page import write_page
    from incrowd.workflows.policy.internal import check_apart

    if options.attack == ["audit"]:
        _audit(options)
        return
    given, order = _given(options), _order(options)
    thresholds = given.thresholds(thresholds_of(options.threshold))
    if options.report is not None:
        check_apart(options.report, [] if options.original else [given.release])
    tables, knowledge, control = given.opened()
    order = replace(order, changed=given.table(options.changed))
    lab = attacked(tables, knowledge, control, order)
    over = lab.exceeding(thresholds)
    given.keep(lab, over)
    if options.report is not None:
        write_page(lab, options.report, given.title)
    if options.json:
        stories = {"stories": [list(each.finding.story) for each in lab.runs]} if options.replay else {}
        places = [lab.runs.index(each) for each in over]
        print_json({**lab.to_json(), **stories, "above": places, "look": given.look})
    else:
        _show(lab, over, given)
        if options.replay:
            _tell(lab)
    if over:
        raise typer.Exit(_ABOVE)


def _audit(options: AttackOptions) -> None:
    from incrowd.workflows.attack.audit import audit_rarest
    from incrowd.workflows.policy.policy import load_policy

    if options.policy is None or options.release is not None:
        raise InvalidParameter(
            "an audit runs a method and needs no release: give --policy, and --against for the data."
        )
    found, claim = audit_rarest(load_policy(options.policy), options.against, options.trials, options.confidence)
    if options.json:
        print_json({"findings": [], "audit": {**vars(found), "claim": claim, "sentence": found.sentence(claim)}})
    else:
        rows = [("epsilon is at least", f"{found.epsilon:.4g}"), ("could have shown at most", f"{found.ceiling:.4g}")]
        rows.append(("claimed", "nothing" if claim is None else f"{claim:.4g}"))
        print_table("Internal: audit", rows, found.sentence(claim))
    if claim is not None and found.epsilon > claim:
        raise typer.Exit(_ABOVE)


def _given(options: AttackOptions) -> AttackInput:
    from incrowd.workflows.attack.inputs import AttackInput, numbers_of

    foreign = options.original is not None or options.published is not None
    if foreign == (options.release is not None):
        raise InvalidParameter("name a release with --against, or --original and --published: one of the two.")
    release = options.published if foreign else options.release
    if release is None or (foreign and options.original is None):
        raise InvalidParameter("--original and --published belong together: the data, and what was made from it.")
    return AttackInput(
        release,
        options.original if foreign else options.against,
        options.policy,
        tuple(options.also),
        options.control,
        None if options.known is None else tuple(name.strip() for name in options.known.split(",")),
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


def _show(lab: AttackReport, over: tuple[AttackRun, ...], given: AttackInput) -> None:
    header = ("attack", "success", "baseline", "control group", "verdict")
    for risk in dict.fromkeys(each.finding.risk for each in lab.runs):
        rows = [_row(n, each, over) for n, each in enumerate(lab.runs, 1) if each.finding.risk is risk]
        print_table(f"Internal: {risk}", rows, header=header)
    notes = [
        f"{n} {each.finding.attack} on {each.table}, by a {each.attacker} who knows {each.finding.knows}."
        for n, each in enumerate(lab.runs, 1)
    ]
    notes += [f"{name} was not tried: {why}" for name, why in lab.skipped.items()]
    notes += ["✗: not shown to stay at or below its threshold."] if over else []
    notes += [note for each in lab.runs for note in each.finding.notes]
    notes += [each.finding.sentence for each in lab.runs]
    notes.append(f"Confidence intervals are simultaneous, with confidence {lab.confidence:g}. {given.look_sentence}")
    print_table("What this means", [(note,) for note in dict.fromkeys(notes)])


def _row(number: int, each: AttackRun, over: tuple[AttackRun, ...]) -> tuple[str, ...]:
    found = each.finding
    return f"{number} {found.attack}", *rates_shown(found), f"{found.verdict}{' ✗' if each in over else ''}"


def rates_shown(found: Finding) -> tuple[str, ...]:
    """Return success rate, baseline and success rate on the control group, with confidence intervals."""
    rates = (found.success, found.baseline, found.control)
    return tuple("–" if rate is None else _shown(rate) for rate in rates)


def _shown(rate: Rate) -> str:
    return f"{100 * rate.estimate:.0f}% ({100 * rate.low:.0f}–{100 * rate.high:.0f})"


def _tell(lab: AttackReport) -> None:
    for each in lab.runs:
        if each.finding.story:
            lines = [(f"{place}.", line) for place, line in enumerate(each.finding.story, 1)]
            print_table(f"One victim of {each.finding.attack}", lines)
