"""The graph view: how nodes of a graph stand out, pictures of it, and of what was published of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from markupsafe import Markup

from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.methods.graphs.shared.picture import graph_figure
from incrowd.verifier.files import REPORT
from incrowd.web.studio.jobs import Tell
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.web.studio.rows import rows_state
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.graph.assess import GraphAssessment, assess_graph
from incrowd.workflows.graph.profile import GraphProfile, graph_of, profile_graph
from incrowd.workflows.policy.policy import Policy

Profiled = tuple[GraphProfile, Markup]


def show(request: PageRequest) -> PageContent:
    """Show what the policy says of a graph, its profile if somebody asked for it, and its releases."""
    file = request.policy_file()
    policy = file.policy
    content: dict[str, Any] = {"able": policy.graph is not None, "name": policy.name, "profile": None, "after": None}
    if policy.graph is None:
        return PageContent(content | {"release": None, "releases": [], "report": None})
    release = request.value("release")
    folder = request.release() if release else None
    looked = request.jobs.find(_key(file))
    held = None if folder is None else request.jobs.find(_key(file, folder))
    pictures = {"before": Markup(), "beside": Markup()}
    profiled: Profiled | None = result(looked)
    assessed: GraphAssessment | None = result(held)
    if profiled is not None:
        content["profile"], pictures["before"] = profiled[0].to_json(), profiled[1]
    if assessed is not None:
        content["after"], pictures["beside"] = assessed.to_json(), assessed.pictures
    content |= {
        "release": release or None,
        "releases": _releases(request, policy),
        "report": f"{release}/{REPORT}" if folder is not None and (folder / REPORT).is_file() else None,
        "protects": str(policy.schema.unit),
        "method": policy.method.name,
        "guarantee": [claim.sentence for claim in policy.plan.claims],
    }
    return PageContent(content, pictures, _lines(file.name, release), foremost(looked, held))


def _releases(request: PageRequest, policy: Policy) -> list[str]:
    """Return the releases of this folder that were made under a policy."""
    names = []
    for name in request.folder.releases():
        try:
            if read_certificate(request.folder.release(name)).policy_hash == policy.hash:
                names.append(name)
        except IncrowdError:  # the verifier says what is wrong with it
            continue
    return names


def _key(file: PolicyFile, release: Path | None = None) -> str:
    return f"graph {file.path} {file.policy.hash} {rows_state(file.policy)} {release}"


def look(request: PageRequest) -> Redirect:
    """Read the graph and count who stands out: recorded as a look."""
    file = request.policy_file()
    policy = file.policy

    def work() -> Profiled:
        return profile_graph(policy), graph_figure(graph_of(policy), "Original graph", exact=True)

    _begin(request, file, _key(file), work)
    return request.to("graph", release=request.value("release"))


def assess(request: PageRequest) -> Redirect:
    """Hold a release against the graph it was made from: recorded as a look."""
    file, folder = request.policy_file(), request.release()
    policy = file.policy
    _begin(request, file, _key(file, folder), lambda: assess_graph(folder, policy))
    return request.to("graph", release=request.value("release"))


def _begin(request: PageRequest, file: PolicyFile, key: str, find: Callable[[], Any]) -> None:
    if file.policy.graph is None:
        raise InvalidParameter("this policy has no nodes: and edges:, so it has no graph.")

    def work(_tell: Tell) -> Any:
        file.seen.add("the graph")
        return find()

    request.job(key, "Reading the graph", work)


def _lines(file: str, release: str) -> tuple[str, ...]:
    profile = command("incrowd", "graph", "profile", "--policy", file)
    return (profile, command("incrowd", "graph", "assess", release, "--policy", file)) if release else (profile,)


PAGE = Page(
    "graph",
    "Graph view",
    "Connections of people: which nodes are unique, and what was published of the graph.",
    show,
    {"look": look, "assess": assess},
    needs=("policy",),
)
