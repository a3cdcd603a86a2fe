"""`incrowd graph`: profile, release, assess and attack a graph."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import IdempotencyKey, Json, Recover, takes
from incrowd.cli.output import cost_text, print_json, print_table

if TYPE_CHECKING:
    from incrowd.attacks.finding import Rate
    from incrowd.measures.score import Score

graph = typer.Typer(help="Profile, release, assess and attack a graph.", no_args_is_help=True)

PolicyFile = Annotated[Path, typer.Option("--policy", metavar="FILE", help="The policy, with nodes: and edges:.")]
_INTERNAL = "Computed from the original graph: keep it apart from the release."


@dataclass(frozen=True)
class GraphProfileOptions:
    """The options of `incrowd graph profile`."""

    policy: PolicyFile
    json: Json = False


@takes(GraphProfileOptions)
def profile(options: GraphProfileOptions) -> None:
    """Count the unique nodes of a graph: by degree, by the degrees of neighbors, and within three hops.

    The result is internal, for the data holder only.
    """
    from incrowd.workflows.graph.profile import profile_graph

    profiled = profile_graph(options.policy)
    if options.json:
        print_json(profiled.to_json())
        return
    sizes = [(name, f"{getattr(profiled, name):,}", "") for name in ("nodes", "edges", "triangles")]
    if profiled.unknown.edges:
        outcome = f"they name a node that is not listed: {profiled.unknown.outcome}"
        sizes.insert(2, ("edges to unlisted nodes", f"{profiled.unknown.edges:,}", outcome))
    print_table("graph", [*sizes, *map(_score, profiled.scores)], f"{profiled.verdict} {_INTERNAL}")
    if profiled.unknown.nearest and _on_terminal():
        rows = [(name, ", ".join(near) or "none") for name, near in profiled.unknown.nearest]
        print_table("nodes that are not listed", rows, header=("in an edge", "nearest listed"))


@dataclass(frozen=True)
class GraphReleaseOptions:
    """The options of `incrowd graph release`."""

    policy: PolicyFile
    out: Annotated[Path, typer.Option("--out", help="A new folder: only what may be published goes there.")]
    form: Annotated[str, typer.Option("--format", help="parquet, csv or tsv.")] = "parquet"
    sign: Annotated[Path | None, typer.Option("--sign", help="Sign with this Ed25519 private key (PEM).")] = None
    force: Annotated[
        bool, typer.Option("--force", help="Release even if the consent registry lost its last known state.")
    ] = False
    key: IdempotencyKey = None
    recover: Recover = None
    json: Json = False


@takes(GraphReleaseOptions)
def release(options: GraphReleaseOptions) -> None:
    """Release a graph, or numbers of it, under a policy.

    incrowd computes the guarantee from the policy alone, charges the ledger, and then reads the graph. Data,
    certificate and report appear together in a new folder, or not at all.
    """
    from incrowd.verifier.files import tables_of
    from incrowd.workflows.graph.release import release_graph
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.release.deliver import Destination

    if options.recover is not None:
        from incrowd.cli.release import recover

        return recover(load_policy(options.policy), str(options.out), options.recover, options.json)
    destination = Destination(options.out, options.form, options.sign)
    published = release_graph(options.policy, destination, anyway=options.force, key=options.key)
    certificate = published.release.certificate
    if options.json:
        facts = {"folder": str(published.folder), "certificate": certificate.to_json()}
        print_json({**facts, "notes": list(published.notes)})
        return None
    lines = [
        *(("data", str(published.folder / file.name)) for file in tables_of(certificate)),
        ("certificate", str(published.folder / "certificate.json")),
        ("report", str(published.folder / "report.html")),
        ("guarantee", certificate.claims[0].kind),
        ("protects", str(certificate.guarantee.unit)),
        ("spent", cost_text(certificate.accounting.spent.epsilon, certificate.accounting.spent.delta)),
        *(("note", note) for note in published.notes),
    ]
    print_table("released", lines, "Read the report first: it says what is protected and what is not.")
    print(f"next\n\n  incrowd verify {shlex.quote(str(published.folder))}")
    return None


@dataclass(frozen=True)
class GraphAssessOptions:
    """The options of `incrowd graph assess`."""

    release: Annotated[Path, typer.Argument(help="The folder of a release.")]
    policy: PolicyFile
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with charts; not into the folder of the release.")
    ] = None
    json: Json = False


@takes(GraphAssessOptions)
def assess(options: GraphAssessOptions) -> None:
    """Compare a released graph with the original: unique nodes and preserved statistics.

    It compares degrees, clustering, path lengths, communities and spectrum. The result is internal.
    """
    from incrowd.workflows.graph.assess import assess_graph

    assessment = assess_graph(options.release, options.policy, options.report)
    if options.json:
        print_json(assessment.to_json())
        return
    for title, scores in (
        ("before", assessment.before),
        ("after", assessment.after),
        ("preserved", assessment.preservation),
    ):
        print_table(title, map(_score, scores))
    print(_INTERNAL)


@dataclass(frozen=True)
class GraphAttackOptions:
    """The options of `incrowd graph attack`."""

    release: Annotated[Path, typer.Argument(help="The folder of a release.")]
    policy: PolicyFile
    attack: Annotated[list[str], typer.Option(metavar="NAME", help="An attack to run; default: all that apply.")] = (
        field(default_factory=list)
    )
    json: Json = False


@takes(GraphAttackOptions)
def attack(options: GraphAttackOptions) -> None:
    """Attack a released graph with background knowledge of almost the whole named graph.

    Each success rate is compared with a baseline and with a control: the same attack with names permuted at random. All
    confidence intervals of one run are simultaneous. An attack that fails proves nothing.
    """
    from incrowd.workflows.graph.attack import attack_graph

    lab = attack_graph(options.release, options.policy, options.attack)
    if options.json:
        print_json(lab.to_json())
        return
    rows = [
        (
            finding.attack,
            _rate(finding.success),
            _rate(finding.baseline),
            _rate(finding.reference),
            str(finding.verdict),
        )
        for finding in lab.findings
    ]
    print_table("attacks", rows, _INTERNAL, ("attack", "success", "baseline", "control", "verdict"))
    for name, why in lab.skipped.items():
        print(f"not run: {name}: {why}")


def _on_terminal() -> bool:
    """Whether values of the rows reach a person and no log."""
    return sys.stdout.isatty()


def _score(score: Score) -> tuple[str, str, str]:
    return score.name, f"{score.value:,.4g}", score.means


def _rate(rate: Rate) -> str:
    return f"{100 * rate.estimate:.1f} % ({100 * rate.low:.1f} to {100 * rate.high:.1f})"


for _name, _command in (("profile", profile), ("release", release), ("assess", assess), ("attack", attack)):
    graph.command(_name)(_command)
