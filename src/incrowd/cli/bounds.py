"""`incrowd bounds`: the calculators; give all but one of the parameters, get the missing one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes, whole, whole_or_none
from incrowd.cli.output import loss_text, print_json, print_table

if TYPE_CHECKING:
    from incrowd.core.guarantee import Guarantee
    from incrowd.core.unit import Unit
    from incrowd.workflows.bounds.composition import Composition
    from incrowd.workflows.bounds.crowd import CrowdBound
    from incrowd.workflows.bounds.safe import SafeBound


K = Annotated[str | None, typer.Option("--k", metavar="COUNT", help="Least number of rows that is published.")]
Rate = Annotated[str | None, typer.Option("--rate", metavar="SHARE", help="Sampling rate, such as 0.1 or 1/7.")]
Epsilon = Annotated[str | None, typer.Option("--epsilon", metavar="NUMBER", help="ε of the whole release.")]
Delta = Annotated[str | None, typer.Option("--delta", metavar="NUMBER", help="δ of the whole release, such as 1e-8.")]
Replace = Annotated[bool, typer.Option("--replace", help="Protect what a row says instead of whether it is there.")]
Plot = Annotated[str | None, typer.Option("--plot", metavar="FILE", help="Draw the curve, as .svg or .html.")]
Releases = list[str]
bounds = typer.Typer(
    help="Calculate guarantees: give all but one of the parameters, get the missing one.", no_args_is_help=True
)


@dataclass(frozen=True)
class SafeOptions:
    """What `incrowd bounds safe` can be told."""

    k: K = None
    rate: Rate = None
    epsilon: Epsilon = None
    delta: Delta = None
    replace: Replace = False
    rows_per_person: Annotated[
        str, typer.Option(metavar="COUNT", help="Protect people with up to so many rows, each with its own coin.")
    ] = "1"
    plot: Plot = None
    as_json: Json = False


@takes(SafeOptions)
def safe(options: SafeOptions) -> None:
    """Say what sampling in secret, recoding, and publishing what occurs at least k times guarantees.

    Give three of k, rate, epsilon and delta; the fourth is solved by the tight curve. The δ of the published theorem
    (Li, Qardaji & Su 2010, Theorem 1) is shown beside it.
    """
    from incrowd.core.unit import Adjacency
    from incrowd.workflows.bounds.safe import SafeQuestion, solve

    question = SafeQuestion(
        whole_or_none(options.k, "k"),
        options.rate,
        options.epsilon,
        options.delta,
        Adjacency.REPLACE if options.replace else Adjacency.ADD_REMOVE,
        whole(options.rows_per_person, "rows-per-person"),
    )
    found = solve(question)
    if options.plot:
        from incrowd.workflows.bounds.plot import draw, safe_curve

        draw(safe_curve(found), options.plot)
    if options.as_json:
        print_json(found.to_json())
    else:
        _print_safe(found)


def _print_safe(found: SafeBound) -> None:
    from incrowd.workflows.bounds.odds import in_words, one_in

    theorem = "says nothing here" if found.delta_theorem1 is None else loss_text(found.delta_theorem1)
    rows = [
        ("k", str(found.k), "rows of one kind, or none is published"),
        ("rate", f"{found.rate:.9g}", "share of the rows in the secret sample"),
        ("epsilon", loss_text(found.epsilon), ""),
        ("delta", loss_text(found.delta), one_in(found.delta)),
        ("delta, Theorem 1", theorem, "the published bound for the same release"),
        ("protects", found.unit, ""),
        ("rule", found.rule, ""),
    ]
    if found.delta_tight < found.delta:
        rows.insert(4, ("delta reached", loss_text(found.delta_tight), "the least one at these parameters"))
    marked = [(name, value, "← solved" if name == found.solved else note) for name, value, note in rows]
    print_table("Sampled suppression", marked, in_words(found.epsilon, found.delta, found.adjacency))


@dataclass(frozen=True)
class CrowdOptions:
    """What `incrowd bounds crowd` can be told."""

    k: Annotated[str | None, typer.Option("--k", metavar="COUNT", help="Number of people in a crowd.")] = None
    rate: Rate = None
    crowd_epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="ε of the crowd-blending itself; 0 for suppression.")
    ] = "0"
    epsilon: Epsilon = None
    delta: Delta = None
    high_rate: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Biased sampling: no regular rate is above this.")
    ] = None
    irregular: Annotated[
        str | None, typer.Option(metavar="COUNT", help="Biased sampling: so many people have any rate up to max-rate.")
    ] = None
    max_rate: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Biased sampling: nobody's rate is above this.")
    ] = None
    plot: Plot = None
    as_json: Json = False


@takes(CrowdOptions)
def crowd(options: CrowdOptions) -> None:
    """Say what a (k, ε)-crowd-blending mechanism guarantees after a secret sample.

    Prints δ at the ε of Gehrke et al. 2012 (Theorem 1), at --epsilon, or the ε that --delta allows. With --high-rate,
    --irregular or --max-rate the sample may be biased (Theorem 2), and --rate is the lowest regular rate.
    """
    from incrowd.workflows.bounds.crowd import CrowdQuestion, solve

    question = CrowdQuestion(
        whole_or_none(options.k, "k"),
        options.rate,
        options.crowd_epsilon,
        options.epsilon,
        options.delta,
        options.high_rate,
        whole_or_none(options.irregular, "irregular"),
        options.max_rate,
    )
    found = solve(question)
    if options.plot:
        from incrowd.workflows.bounds.plot import crowd_curve, draw

        draw(crowd_curve(found), options.plot)
    if options.as_json:
        print_json(found.to_json())
    else:
        _print_crowd(found)


def _print_crowd(found: CrowdBound) -> None:
    from incrowd.workflows.bounds.odds import in_words, one_in

    rows = [
        ("k", str(found.k), "people blend, or the one is ignored"),
        ("rate", f"{found.rate:.9g}", "share of the people in the secret sample"),
        ("crowd epsilon", loss_text(found.crowd_epsilon), "how well the crowd blends"),
        ("epsilon", loss_text(found.epsilon), ""),
        ("delta", loss_text(found.delta), one_in(found.delta)),
        ("paper's epsilon", loss_text(found.epsilon_zk), "at which the paper states its theorem"),
        ("closed form there", loss_text(found.delta_closed), "δ by the closed form with explicit constants"),
        ("rule", found.rule, ""),
    ]
    if found.high_rate is not None:
        bias = f"rates up to {found.high_rate:.9g}, {found.irregular} people up to {found.max_rate:.9g}"
        rows.insert(2, ("bias", bias, ""))
    marked = [(name, value, "← solved" if name == found.solved else note) for name, value, note in rows]
    print_table("Crowd-blending after sampling", marked, in_words(found.epsilon, found.delta))


@dataclass(frozen=True)
class AmplifyOptions:
    """What `incrowd bounds amplify` can be told."""

    rate: Rate = None
    epsilon: Annotated[str | None, typer.Option(metavar="NUMBER", help="ε of the mechanism on its sample.")] = None
    delta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="δ of the mechanism on its sample; 0 if not given.")
    ] = None
    sampled_epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="ε of sampling and mechanism together.")
    ] = None
    sampled_delta: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="δ of sampling and mechanism together; 0 if not given.")
    ] = None
    as_json: Json = False


@takes(AmplifyOptions)
def amplify(options: AmplifyOptions) -> None:
    """Say what a secret Poisson sample saves a differentially private mechanism.

    Give two of rate, epsilon (on the sample) and sampled-epsilon (of the whole); the third is solved.
    """
    from incrowd.workflows.bounds.calculators import AmplifyQuestion, solve_amplification
    from incrowd.workflows.bounds.odds import in_words

    found = solve_amplification(
        AmplifyQuestion(options.rate, options.epsilon, options.sampled_epsilon, options.delta, options.sampled_delta)
    )
    if options.as_json:
        return print_json(found.to_json())
    rows = [
        ("rate", f"{found.rate:.9g}", "rate"),
        ("on the sample", f"epsilon {loss_text(found.epsilon)}, delta {loss_text(found.delta)}", "epsilon"),
        (
            "the whole",
            f"epsilon {loss_text(found.sampled_epsilon)}, delta {loss_text(found.sampled_delta)}",
            "sampled_epsilon",
        ),
        ("rule", found.rule, ""),
    ]
    marked = [(name, value, "← solved" if key == found.solved else "") for name, value, key in rows]
    print_table("Amplification by sampling", marked, in_words(found.sampled_epsilon, found.sampled_delta))
    return None


def _release(metavar: str, help_text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(metavar=metavar, help=help_text)
    return option


@dataclass(frozen=True)
class ComposeOptions:
    """What `incrowd bounds compose` can be told."""

    epsilon: Epsilon = None
    delta: Delta = None
    safe: Annotated[Releases, _release("k=20,rate=0.1", "Sampled suppression with a fresh sample.")] = field(
        default_factory=list
    )
    crowd: Annotated[Releases, _release("k=20,rate=0.1,epsilon=0.1", "Crowd-blending on a fresh sample.")] = field(
        default_factory=list
    )
    pure: Annotated[Releases, _release("0.5", "ε-differential privacy; rate=… for a secret sample.")] = field(
        default_factory=list
    )
    approximate: Annotated[Releases, _release("1,1e-6", "(ε, δ)-differential privacy; rate=… for a secret sample.")] = (
        field(default_factory=list)
    )
    rho: Annotated[Releases, _release("0.1", "ρ-zero-concentrated differential privacy.")] = field(default_factory=list)
    laplace: Annotated[
        Releases, _release("scale=10", "Integer Laplace noise; sensitivity=… and rate=… may follow.")
    ] = field(default_factory=list)
    gaussian: Annotated[
        Releases, _release("scale=10", "Integer Gaussian noise; sensitivity=… and rate=… may follow.")
    ] = field(default_factory=list)
    guarantee: Annotated[
        Releases, _release("FILE", "The guarantee in a certificate, or in the JSON of a guarantee.")
    ] = field(default_factory=list)
    replace: Replace = False
    as_json: Json = False


@takes(ComposeOptions)
def compose(options: ComposeOptions) -> None:
    """Say what several releases about the same rows guarantee together.

    Give delta and get epsilon, or the reverse. Every option for a release can be repeated, and takes "x8" behind it for
    eight such releases. All releases are assumed to be fixed before the first one; a live ledger uses sums.
    """
    from incrowd.workflows.bounds.composition import solve_composition

    guarantees = _guarantees(options)
    found = solve_composition(guarantees, options.epsilon, options.delta)
    if options.as_json:
        print_json(found.to_json())
    else:
        _print_composition(found, guarantees[0].unit)


def _guarantees(options: ComposeOptions) -> tuple[Guarantee, ...]:
    from incrowd.cli.guarantees import KINDS, guarantee_in, guarantees
    from incrowd.core.unit import Adjacency, Unit

    unit = Unit(adjacency=Adjacency.REPLACE if options.replace else Adjacency.ADD_REMOVE)
    stated = [
        guarantee for kind in KINDS for text in getattr(options, kind) for guarantee in guarantees(kind, text, unit)
    ]
    return (*stated, *map(guarantee_in, options.guarantee))


def _print_composition(found: Composition, unit: Unit) -> None:
    from incrowd.core.terms import joined
    from incrowd.workflows.bounds.odds import in_words

    rows = [
        ("releases", str(found.releases), "with independent coins each"),
        ("epsilon", loss_text(found.epsilon), ""),
        ("delta", loss_text(found.delta), ""),
        ("protects", found.unit, ""),
        *(
            (f"by {joined(bound.rule)}", loss_text(bound.value), "the tightest" if bound is found.rules[0] else "")
            for bound in found.rules
        ),
    ]
    marked = [(name, value, "← solved" if name == found.solved else note) for name, value, note in rows]
    print_table("Composition", marked, in_words(found.epsilon, found.delta, unit.adjacency))


bounds.command("safe")(safe)
bounds.command("crowd")(crowd)
bounds.command("amplify")(amplify)
bounds.command("compose")(compose)
