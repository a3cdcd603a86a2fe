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
from incrowd.web.studio.sources import rows_state
from incrowd.workflows.assess.assess import Assessment, assess
from incrowd.workflows.assess.record import keep_assessment
from incrowd.workflows.assess.released import read_release
from incrowd.workflows.assess.section import LOSS, RISK, candidate, map_of
from incrowd.workflows.plan.compare import compare
from incrowd.workflows.policy.ledger import record_look
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.rows import open_rows
from incrowd.workflows.verify.verify import read_certificate

_CHOSEN = "is."
_MOST = 12


def show(asked: PageRequest) -> PageContent:
    """Show the routes by public numbers, the releases that can be compared, and their map if it was asked for."""
    file = asked.policy_file()
    policy = file.policy
    releases = _releases(asked, policy)
    chosen = [name for name in _chosen(asked) if name in releases]
    job = asked.jobs.known(_key(asked, file, chosen)) if chosen else None
    content: dict[str, Any] = {
        "name": policy.name,
        **_routes(asked, file),
        "releases": releases,
        "chosen": chosen,
        "found": [],
        "frontier": [],
        "risk": RISK,
        "loss": LOSS,
    }
    pictures = {"map": Markup()}
    found: list[Assessment] | None = result(job)
    if found is not None:
        content["found"] = [_plain(each) for each in found]
        content["frontier"] = [each.name for each in placed([candidate(each) for each in found]) if each.best]
        pictures["map"] = map_of(found)
    return PageContent(content, pictures, _lines(file.name, chosen), foremost(job))


def _releases(asked: PageRequest, policy: Policy) -> dict[str, dict[str, str]]:
    """Return the releases of this folder about the policy's dataset, with what they guarantee."""
    found = {}
    for name in asked.folder.releases():
        try:
            certificate = read_certificate(asked.folder.release(name))
        except IncrowdError:  # the verifier says what is wrong with it
            continue
        if certificate.dataset.name == policy.name:
            spent, kind = certificate.accounting.spent, certificate.claims[0].kind if certificate.claims else ""
            found[name] = {"method": certificate.method.name, "epsilon": spent.epsilon, "claim": kind}
    return found


def _routes(asked: PageRequest, file: PolicyFile) -> dict[str, Any]:
    """Return other methods at the same (ε, δ), by public numbers alone; or why they cannot be compared."""
    if file.policy.graph is not None:
        return {"routes": None, "unrouted": "routes are compared for tables."}
    try:
        job = asked.jobs.wait(
            asked.job(f"routes {file.policy.hash}", "Comparing", lambda _tell: compare(file.policy)).id
        )
        return {"routes": asked.result(job).to_json(), "unrouted": None}
    except IncrowdError as problem:
        return {"routes": None, "unrouted": str(problem)}


def _chosen(asked: PageRequest) -> list[str]:
    """Return the releases that are ticked: fields of a form, or of an address, that start with `is.`."""
    both = {**asked.given, **asked.form}
    return sorted(name.removeprefix(_CHOSEN) for name, value in both.items() if name.startswith(_CHOSEN) and value)


def _key(asked: PageRequest, file: PolicyFile, chosen: Sequence[str]) -> str:
    marks = [read_certificate(asked.folder.release(name)).id for name in chosen]
    return f"map {file.path} {file.policy.hash} {rows_state(file.policy)} {list(zip(chosen, marks, strict=True))}"


def look(asked: PageRequest) -> Redirect:
    """Hold the ticked releases against the rows: recorded as a look."""
    file = asked.policy_file()
    policy, known = file.policy, _releases(asked, file.policy)
    chosen = [name for name in _chosen(asked) if name in known]
    if not 1 <= len(chosen) <= _MOST:
        raise InvalidParameter(f"tick from one to {_MOST} releases of {policy.name} to put on the map.")
    folders = {name: asked.folder.release(name) for name in chosen}

    def work(tell: Tell) -> list[Assessment]:
        released = [replace(read_release(folder), name=name) for name, folder in folders.items()]
        with engine_of(policy.engine) as engine:
            original = open_rows(None, policy, engine=engine)
            record_look(policy, "assess")
            file.seen.add("risk and loss of releases")
            rows = engine.watched(original, tell)
            found = [assess(each, rows, policy, engine) for each in released]
        for folder, each in zip(folders.values(), found, strict=True):
            keep_assessment(policy, folder, each)
        return found

    asked.job(_key(asked, file, chosen), "Holding the releases against the rows", work)
    return asked.to("map", **{f"{_CHOSEN}{name}": "1" for name in chosen})


def _plain(found: Assessment) -> dict[str, Any]:
    at = candidate(found)
    return {"name": found.name, "rows": found.rows, "kept": found.released, "risk": at.risk, "loss": at.loss}


def _lines(file: str, chosen: Sequence[str]) -> tuple[str, ...]:
    routes = command("incrowd", "plan", "--policy", file, "--compare")
    return (routes, command("incrowd", "assess", *chosen, "--policy", file)) if chosen else (routes,)


PAGE = Page(
    "map",
    "Risk and utility",
    "Candidates on one map: what each would lose, and what risk it would leave. Which to take is a choice of people.",
    show,
    {"look": look},
    needs=("policy",),
)
