"""`incrowd graph`: profile, release, assess and attack a graph."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import Json, takes
from incrowd.cli.output import print_json, print_table

if TYPE_CHECKING:
    from incrowd.attacks.finding import Rate
    from incrowd.measures.score import Score

graph = typer.Typer(
    help="Profile, release, assess and attack a graph: who is connected with whom.", no_args_is_help=True
)

PolicyFile = Annotated[Path, typer.Option("--policy", metavar="FILE", help="The policy, with nodes: and edges:.")]
_INTERNAL = "Made from the original graph: keep it apart from what is published."


@dataclass(frozen=True)
class GraphProfileOptions:
    """What `incrowd graph profile` takes."""

    policy: PolicyFile
    json: Json = False


@takes(GraphProfileOptions)
def profile(options: GraphProfileOptions) -> None:
    """Count how many nodes of a graph are alone with what others may know of them.

    By degree, by the degrees of neighbors, and within three hops. It is for the holder of the data.
    """
    from incrowd.workflows.graph.profile import profile_graph

    found = profile_graph(options.policy)
    if options.json:
        print_json(found.to_json())
        return
    sizes = [(name, f"{getattr(found, name):,}", "") for name in ("nodes", "edges", "triangles")]
    print_table("graph", [*sizes, *map(_score, found.scores)], f"{found.verdict} {_INTERNAL}")


@dataclass(frozen=True)
class GraphReleaseOptions:
    """What `incrowd graph release` takes."""

    policy: PolicyFile
    out: Annotated[Path, typer.Option("--out", help="A new folder: only what may be published goes there.")]
    form: Annotated[str, typer.Option("--format", help="parquet, csv or tsv.")] = "parquet"
    sign: Annotated[Path | None, typer.Option("--sign", help="Sign with this Ed25519 private key (PEM).")] = None
    json: Json = False


@takes(GraphReleaseOptions)
def release(options: GraphReleaseOptions) -> None:
    """Release a graph, or numbers of it, under a policy.

    The guarantee is made from the policy alone and charged to the ledger before anything is drawn. Data, certificate
    and report appear together in a new folder, or not at all.
    """
    from incrowd.verifier.files import tables_of
    from incrowd.workflows.graph.release import release_graph
    from incrowd.workflows.release.deliver import Destination

    published = release_graph(options.policy, Destination(options.out, options.form, options.sign))
    certificate = published.release.certificate
    if options.json:
        print_json({"folder": str(published.folder), "certificate": certificate.to_json()})
        return
    lines = [
        *(("data", str(published.folder / file.name)) for file in tables_of(certificate)),
        ("certificate", str(published.folder / "certificate.json")),
        ("report", str(published.folder / "report.html")),
        ("guarantee", certificate.claims[0].kind),
        ("protects", str(certificate.guarantee.unit)),
        ("spent", f"epsilon {certificate.accounting.spent.epsilon}"),
    ]
    print_table("released", lines, "Open the report first: it says who could learn what, and what is not protected.")
    print(f"next\n\n  incrowd verify {shlex.quote(str(published.folder))}")


@dataclass(frozen=True)
class GraphAssessOptions:
    """What `incrowd graph assess` takes."""

    release: Annotated[Path, typer.Argument(help="The folder of a release.")]
    policy: PolicyFile
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with pictures, anywhere but beside the release.")
    ] = None
    json: Json = False


@takes(GraphAssessOptions)
def assess(options: GraphAssessOptions) -> None:
    """Hold a released graph against its original: who stands out, and what was kept.

    Degrees, clustering, path lengths, communities and spectrum, before and after. It is for the holder of the data.
    """
    from incrowd.workflows.graph.assess import assess_graph

    found = assess_graph(options.release, options.policy, options.report)
    if options.json:
        print_json(found.to_json())
        return
    for title, scores in (("before", found.before), ("after", found.after), ("kept", found.preservation)):
        print_table(title, map(_score, scores))
    print(_INTERNAL)


@dataclass(frozen=True)
class GraphAttackOptions:
    """What `incrowd graph attack` takes."""

    release: Annotated[Path, typer.Argument(help="The folder of a release.")]
    policy: PolicyFile
    attack: Annotated[list[str], typer.Option(metavar="NAME", help="An attack to try; by default all that apply.")] = (
        field(default_factory=list)
    )
    json: Json = False


@takes(GraphAttackOptions)
def attack(options: GraphAttackOptions) -> None:
    """Attack a released graph as somebody would who knows it with names, nearly as it is.

    Every success rate is reported with a baseline and with the same attack with names exchanged at random. Confidence
    intervals are simultaneous for all attacks of one run. An attack that fails proves nothing.
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
        print(f"not tried: {name}: {why}")


def _score(score: Score) -> tuple[str, str, str]:
    return score.name, f"{score.value:,.4g}", score.means


def _rate(rate: Rate) -> str:
    return f"{100 * rate.estimate:.1f} % ({100 * rate.low:.1f} to {100 * rate.high:.1f})"


for _name, _command in (("profile", profile), ("release", release), ("assess", assess), ("attack", attack)):
    graph.command(_name)(_command)
