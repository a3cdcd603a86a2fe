"""The risk–utility map: several candidates beside each other; routes from public numbers, releases against the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from incrowd.engines.settings import engine_of
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.measures.frontier import placed
from incrowd.web.studio.jobs import Tell
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.web.studio.rows import rows_state
from incrowd.workflows.assess.assess import Assessment, assess
from incrowd.workflows.assess.record import keep_assessment
from incrowd.workflows.assess.released import read_release
from incrowd.workflows.assess.section import LOSS, RISK, candidate, map_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.plan.compare import compare
from incrowd.workflows.policy.ledger import record_look
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.rows import open_rows

_CHOSEN = "is."
_MOST = 12


def show(request: PageRequest) -> PageContent:
    """Show the routes by public numbers, the releases that can be compared, and their map if it was asked for."""
    file = request.policy_file()
    policy = file.policy
    releases = _releases(request, policy)
    chosen = [name for name in _chosen(request) if name in releases]
    job = request.jobs.find(_key(request, file, chosen)) if chosen else None
    content: dict[str, Any] = {
        "name": policy.name,
        **_routes(request, file),
        "releases": releases,
        "chosen": chosen,
        "found": [],
        "frontier": [],
        "risk": RISK,
        "loss": LOSS,
    }
    pictures = {"map": Markup()}
    assessments: list[Assessment] | None = result(job)
    if assessments is not None:
        content["found"] = [_plain(assessment) for assessment in assessments]
        content["frontier"] = [
            place.name for place in placed([candidate(assessment) for assessment in assessments]) if place.best
        ]
        pictures["map"] = map_of(assessments)
    return PageContent(content, pictures, _lines(file.name, chosen), foremost(job))


def _releases(request: PageRequest, policy: Policy) -> dict[str, dict[str, str]]:
    """Return the releases of this folder about the policy's dataset, with what they guarantee."""
    releases = {}
    for name in request.folder.releases():
        try:
            certificate = read_certificate(request.folder.release(name))
        except IncrowdError:  # the verifier says what is wrong with it
            continue
        if certificate.dataset.name == policy.name:
            spent, kind = certificate.accounting.spent, certificate.claims[0].kind if certificate.claims else ""
            releases[name] = {"method": certificate.method.name, "epsilon": spent.epsilon, "claim": kind}
    return releases


def _routes(request: PageRequest, file: PolicyFile) -> dict[str, Any]:
    """Return other methods at the same (ε, δ), by public numbers alone; or why they cannot be compared."""
    if file.policy.graph is not None:
        return {"routes": None, "unrouted": "methods are compared for tables only."}
    try:
        job = request.jobs.wait(
            request.job(f"routes {file.policy.hash}", "Comparing", lambda _tell: compare(file.policy)).id
        )
        return {"routes": request.result(job).to_json(), "unrouted": None}
    except IncrowdError as problem:
        return {"routes": None, "unrouted": str(problem)}


def _chosen(request: PageRequest) -> list[str]:
    """Return the releases that are ticked: fields of a form, or of an address, that start with `is.`."""
    both = {**request.query, **request.form}
    return sorted(name.removeprefix(_CHOSEN) for name, value in both.items() if name.startswith(_CHOSEN) and value)


def _key(request: PageRequest, file: PolicyFile, chosen: Sequence[str]) -> str:
    marks = [read_certificate(request.folder.release(name)).id for name in chosen]
    return f"map {file.path} {file.policy.hash} {rows_state(file.policy)} {list(zip(chosen, marks, strict=True))}"


def look(request: PageRequest) -> Redirect:
    """Compare the ticked releases with the rows; the ledger records the access."""
    file = request.policy_file()
    policy, releases = file.policy, _releases(request, file.policy)
    chosen = [name for name in _chosen(request) if name in releases]
    if not 1 <= len(chosen) <= _MOST:
        raise InvalidParameter(f"tick from one to {_MOST} releases of {policy.name} to put on the map.")
    folders = {name: request.folder.release(name) for name in chosen}

    def work(tell: Tell) -> list[Assessment]:
        released = [replace(read_release(folder), name=name) for name, folder in folders.items()]
        with engine_of(policy.engine) as engine:
            original = open_rows(None, policy, engine=engine)
            record_look(policy, "assess")
            file.seen.add("risk and loss of releases")
            rows = engine.watched(original, tell)
            assessments = [assess(release, rows, policy, engine) for release in released]
        for folder, assessment in zip(folders.values(), assessments, strict=True):
            keep_assessment(policy, folder, assessment)
        return assessments

    request.job(_key(request, file, chosen), "Comparing the releases with the rows", work)
    return request.to("map", **{f"{_CHOSEN}{name}": "1" for name in chosen})


def _plain(assessment: Assessment) -> dict[str, Any]:
    at = candidate(assessment)
    return {
        "name": assessment.name,
        "rows": assessment.rows,
        "kept": assessment.released,
        "risk": at.risk,
        "loss": at.loss,
    }


def _lines(file: str, chosen: Sequence[str]) -> tuple[str, ...]:
    routes = command("incrowd", "plan", "--policy", file, "--compare")
    return (routes, command("incrowd", "assess", *chosen, "--policy", file)) if chosen else (routes,)


PAGE = Page(
    "map",
    "Risk and utility",
    "Compare releases by information loss and disclosure risk. The choice is yours.",
    show,
    {"look": look},
    needs=("policy",),
)
