"""`incrowd bounds`: calculators of guarantees; give all but one parameter, get the missing one."""

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


K = Annotated[str | None, typer.Option("--k", metavar="COUNT", help="Minimum rows per combination.")]
Rate = Annotated[str | None, typer.Option("--rate", metavar="SHARE", help="Sampling rate, such as 0.1 or 1/7.")]
Epsilon = Annotated[str | None, typer.Option("--epsilon", metavar="NUMBER", help="ε of the release.")]
Delta = Annotated[
    str | None, typer.Option("--delta", metavar="NUMBER", help="Failure probability δ of the release, such as 1e-8.")
]
Replace = Annotated[bool, typer.Option("--replace", help="Replace-one adjacency, instead of add-remove.")]
Plot = Annotated[str | None, typer.Option("--plot", metavar="FILE", help="Draw the curve, as .svg or .html.")]
Releases = list[str]
bounds = typer.Typer(
    help="Calculate guarantees: give all but one parameter, get the missing one.", no_args_is_help=True
)


@dataclass(frozen=True)
class SafeOptions:
    """The options of `incrowd bounds safe`."""

    k: K = None
    rate: Rate = None
    epsilon: Epsilon = None
    delta: Delta = None
    replace: Replace = False
    rows_per_person: Annotated[
        str, typer.Option(metavar="COUNT", help="Protect people with up to this many rows, sampled independently.")
    ] = "1"
    plot: Plot = None
    as_json: Json = False


@takes(SafeOptions)
def safe(options: SafeOptions) -> None:
    """Say what sampling in secret, recoding, and publishing what occurs at least k times guarantees.

    Give three of k, rate, epsilon and delta; the fourth is solved by the tight bound. The published bound
    (Li, Qardaji & Su 2010, Theorem 1) is shown, too.
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
    bound = solve(question)
    if options.plot:
        from incrowd.workflows.bounds.plot import draw, safe_curve

        draw(safe_curve(bound), options.plot)
    if options.as_json:
        print_json(bound.to_json())
    else:
        _print_safe(bound)


def _print_safe(bound: SafeBound) -> None:
    from incrowd.workflows.bounds.odds import in_words, one_in

    theorem = "does not apply" if bound.delta_theorem1 is None else loss_text(bound.delta_theorem1)
    rows = [
        ("k", str(bound.k), "minimum rows per combination"),
        ("rate", f"{bound.rate:.9g}", "sampling rate of the secret sample"),
        ("epsilon", loss_text(bound.epsilon), ""),
        ("delta", loss_text(bound.delta), one_in(bound.delta)),
        ("delta, Theorem 1", theorem, "published bound"),
        ("protects", bound.unit, ""),
        ("rule", bound.rule, ""),
    ]
    if bound.delta_tight < bound.delta:
        rows.insert(4, ("delta reached", loss_text(bound.delta_tight), "the minimum at these parameters"))
    marked = [(name, value, "← solved" if name == bound.solved else note) for name, value, note in rows]
    print_table("Sampled suppression", marked, in_words(bound.epsilon, bound.delta, bound.adjacency))


@dataclass(frozen=True)
class CrowdOptions:
    """The options of `incrowd bounds crowd`."""

    k: Annotated[str | None, typer.Option("--k", metavar="COUNT", help="Number of people in a crowd.")] = None
    rate: Rate = None
    crowd_epsilon: Annotated[
        str, typer.Option(metavar="NUMBER", help="ε of the crowd-blending itself; 0 for suppression.")
    ] = "0"
    epsilon: Epsilon = None
    delta: Delta = None
    high_rate: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Biased sampling: highest regular sampling rate.")
    ] = None
    irregular: Annotated[
        str | None,
        typer.Option(metavar="COUNT", help="Biased sampling: number of people with any rate up to max-rate."),
    ] = None
    max_rate: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Biased sampling: highest sampling rate of any person.")
    ] = None
    plot: Plot = None
    as_json: Json = False


@takes(CrowdOptions)
def crowd(options: CrowdOptions) -> None:
    """Show the guarantee of a (k, ε)-crowd-blending mechanism on a secret sample.

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
    bound = solve(question)
    if options.plot:
        from incrowd.workflows.bounds.plot import crowd_curve, draw

        draw(crowd_curve(bound), options.plot)
    if options.as_json:
        print_json(bound.to_json())
    else:
        _print_crowd(bound)


def _print_crowd(bound: CrowdBound) -> None:
    from incrowd.workflows.bounds.odds import in_words, one_in

    rows = [
        ("k", str(bound.k), "people in a crowd; others are suppressed"),
        ("rate", f"{bound.rate:.9g}", "sampling rate of the secret sample"),
        ("crowd epsilon", loss_text(bound.crowd_epsilon), "ε of the crowd-blending mechanism"),
        ("epsilon", loss_text(bound.epsilon), ""),
        ("delta", loss_text(bound.delta), one_in(bound.delta)),
        ("paper's epsilon", loss_text(bound.epsilon_zk), "the ε of the published theorem"),
        ("closed form there", loss_text(bound.delta_closed), "δ by the closed form with explicit constants"),
        ("rule", bound.rule, ""),
    ]
    if bound.high_rate is not None:
        bias = f"rates up to {bound.high_rate:.9g}, {bound.irregular} people up to {bound.max_rate:.9g}"
        rows.insert(2, ("bias", bias, ""))
    marked = [(name, value, "← solved" if name == bound.solved else note) for name, value, note in rows]
    print_table("Crowd-blending after sampling", marked, in_words(bound.epsilon, bound.delta))


@dataclass(frozen=True)
class AmplifyOptions:
    """The options of `incrowd bounds amplify`."""

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
    """Show how a secret Poisson sample lowers the ε of a differentially private mechanism.

    Give two of rate, epsilon (on the sample) and sampled-epsilon (of the whole); the third is solved.
    """
    from incrowd.workflows.bounds.calculators import AmplifyQuestion, solve_amplification
    from incrowd.workflows.bounds.odds import in_words

    bound = solve_amplification(
        AmplifyQuestion(options.rate, options.epsilon, options.sampled_epsilon, options.delta, options.sampled_delta)
    )
    if options.as_json:
        return print_json(bound.to_json())
    rows = [
        ("rate", f"{bound.rate:.9g}", "rate"),
        ("on the sample", f"epsilon {loss_text(bound.epsilon)}, delta {loss_text(bound.delta)}", "epsilon"),
        (
            "the whole",
            f"epsilon {loss_text(bound.sampled_epsilon)}, delta {loss_text(bound.sampled_delta)}",
            "sampled_epsilon",
        ),
        ("rule", bound.rule, ""),
    ]
    marked = [(name, value, "← solved" if key == bound.solved else "") for name, value, key in rows]
    print_table("Amplification by sampling", marked, in_words(bound.sampled_epsilon, bound.sampled_delta))
    return None


def _release(metavar: str, help_text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(metavar=metavar, help=help_text)
    return option


@dataclass(frozen=True)
class ComposeOptions:
    """The options of `incrowd bounds compose`."""

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
    """Show the joint guarantee of several releases about the same rows.

    Give delta and get epsilon, or the reverse. Every option for a release can be repeated, and takes "x8" behind it for
    eight such releases. All releases are assumed to be fixed in advance; a ledger in use adds up ε and δ.
    """
    from incrowd.workflows.bounds.composition import solve_composition

    guarantees = _guarantees(options)
    composition = solve_composition(guarantees, options.epsilon, options.delta)
    if options.as_json:
        print_json(composition.to_json())
    else:
        _print_composition(composition, guarantees[0].unit)


def _guarantees(options: ComposeOptions) -> tuple[Guarantee, ...]:
    from incrowd.cli.guarantees import KINDS, guarantee_in, guarantees
    from incrowd.core.unit import Adjacency, Unit

    unit = Unit(adjacency=Adjacency.REPLACE if options.replace else Adjacency.ADD_REMOVE)
    stated = [
        guarantee for kind in KINDS for text in getattr(options, kind) for guarantee in guarantees(kind, text, unit)
    ]
    return (*stated, *map(guarantee_in, options.guarantee))


def _print_composition(composition: Composition, unit: Unit) -> None:
    from incrowd.core.terms import joined
    from incrowd.workflows.bounds.odds import in_words

    rows = [
        ("releases", str(composition.releases), "with independent randomness"),
        ("epsilon", loss_text(composition.epsilon), ""),
        ("delta", loss_text(composition.delta), ""),
        ("protects", composition.unit, ""),
        *(
            (f"by {joined(bound.rule)}", loss_text(bound.value), "tightest" if bound is composition.rules[0] else "")
            for bound in composition.rules
        ),
    ]
    marked = [(name, value, "← solved" if name == composition.solved else note) for name, value, note in rows]
    print_table("Composition", marked, in_words(composition.epsilon, composition.delta, unit.adjacency))


bounds.command("safe")(safe)
bounds.command("crowd")(crowd)
bounds.command("amplify")(amplify)
bounds.command("compose")(compose)
