"""Choose output: what is to be released decides the method; methods are compared at one cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.workflows.plan.compare import compare
from incrowd.workflows.policy.document import read_document
from incrowd.workflows.policy.edit import Place, Value
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.profile.draft_columns import DraftColumn
from incrowd.workflows.profile.draft_policy import release_text
from incrowd.workflows.profile.draft_text import DraftGoal

GOALS = {
    "microdata": (
        "Rows about people",
        "Generalized rows of a secret sample, each in a crowd. Levels are chosen privately for this table.",
        "differential privacy and k-anonymity",
        ("scheme", "safe"),
    ),
    "counts": (
        "Counts",
        "The number of rows per combination, with noise in every count, also in zero counts.",
        "pure differential privacy",
        ("private-histogram", "blended-histogram", "suppressed-histogram"),
    ),
    "synthetic": (
        "A synthetic table",
        "Artificial rows, sampled from a model of noisy counts. None is a real person's row.",
        "differential privacy",
        ("marginals", "tree"),
    ),
    "queries": (
        "Answers to queries",
        "Nothing is released now. Analysts query in SQL; each answer is charged to the budget.",
        "differential privacy of each answer",
        ("queries",),
    ),
    "model": (
        "A model",
        "A file that predicts one column from the others, learned from noisy sums.",
        "differential privacy",
        ("classifier", "regressor"),
    ),
    "classic": (
        "Rows under k-anonymity alone",
        "The finest levels with at least k rows per equivalence class, found by reading all rows. No epsilon.",
        "k-anonymity; no bound for attackers with background knowledge",
        ("full-domain", "mondrian"),
    ),
}
_LOSS = {"epsilon": "1", "delta": "1e-6"}
_SURVEY = "Respondents can also randomize their answers before they are collected: incrowd collect."


def show(request: PageRequest) -> PageContent:
    """Show what can leave, and the routes beside each other where public numbers tell."""
    file = request.policy_file()
    policy = file.policy
    method = "queries" if policy.step is None else policy.step.name
    routes, why = None, None
    try:
        routes = compare(policy).to_json()
    except IncrowdError as error:
        why = str(error)
    goals = [
        {"name": name, "title": title, "about": about, "guarantee": guarantee, "methods": list(methods)}
        | {"current": method in methods}
        for name, (title, about, guarantee, methods) in GOALS.items()
    ]
    content = {
        "goals": goals,
        "method": method,
        "routes": routes,
        "why_not": why,
        "columns": [column.name for column in policy.schema.released],
        "survey": _SURVEY,
        "charged": find_book(policy) is not None,
    }
    return PageContent(content, commands=(command("incrowd", "plan", "--policy", file.name, "--compare"),))


def choose(request: PageRequest) -> Redirect:
    """Write the sections of a goal in place of those that are there; columns, dataset and comments above stay."""
    file, goal = request.policy_file(), request.value("goal")
    if goal not in GOALS:
        raise InvalidParameter("this output does not exist.")
    sections = _sections(request, file, goal)
    changes: dict[Place, Value] = {(name,): sections.get(name) for name in ("release", "queries")}
    reason = request.value("reason")
    if goal == "classic":
        if not reason:
            raise InvalidParameter("k-anonymity has no epsilon, so the budget owner must give a reason.")
        changes["budget",] = {"unbounded": reason}
    elif file.at("budget", "unbounded") is not None or file.at("budget") is None:
        changes["budget",] = dict(_LOSS)
    if find_book(file.policy) is not None:  # the ledger has read the budget: only a grant changes it now
        changes.pop(("budget",), None)
    file.save(
        {place: value for place, value in changes.items() if value or file.at(*place) is not None},
        request.value("base"),
    )
    return request.to("lattice" if goal == "classic" else "policy" if goal == "queries" else "workbench")


def route(request: PageRequest) -> Redirect:
    """Write another method at the same ε and δ, where the comparison says that it can be used."""
    file, name = request.policy_file(), request.value("method")
    match = next(
        (route for route in compare(file.policy).routes if route.method == name and route.refusal is None), None
    )
    if match is None:
        raise InvalidParameter("this method cannot be used for this table.")
    loss = _loss(file)
    section: dict[str, Any] = {"method": name, **loss}
    step = file.policy.step
    levels = {} if step is None else {column: str(level) for column, level in step.levels.items()}
    match name:
        case "safe":
            section |= {"levels": levels, "rate": "1/2"}
        case "scheme" | "points":
            raise InvalidParameter(f"{name} needs more settings: write them into the policy.")
        case "private-histogram":
            columns = [column.name for column in file.policy.schema.released]
            section = {"method": name, "columns": columns, "epsilon": loss["epsilon"]}
            section["levels"] = levels
        case _:
            section |= {"levels": levels} if levels else {}
    file.save({("release",): section}, request.value("base"))
    return request.to("workbench")


def _sections(request: PageRequest, file: PolicyFile, goal: str) -> dict[str, Any]:
    """Return release and queries of a goal, with the ε and δ that the policy has already."""
    loss = _loss(file)
    if goal == "synthetic":
        return {"release": {"method": "marginals", **loss}}
    if goal == "model":
        column = request.value("column")
        if column not in [released.name for released in file.policy.schema.released]:
            raise InvalidParameter("choose the column to predict.")
        return {"release": {"method": "classifier", "target_column": column, **loss}}
    columns = [
        DraftColumn(name, {"role": "quasi"} | (dict(section) if isinstance(section, dict) else {}), "declared")
        for name, section in (file.at("columns") or {}).items()
    ]
    text, _ = release_text(columns, DraftGoal(goal), Path(file.path.parent))
    document = read_document(text).content
    release = document.get("release") or {}
    release |= {name: value for name, value in loss.items() if name in release}
    return {name: document[name] for name in ("release", "queries") if name in document}


def _loss(file: PolicyFile) -> dict[str, str]:
    return {name: str(file.at("release", name) or usual) for name, usual in _LOSS.items()}


PAGE = Page(
    "output",
    "Choose output",
    "Choose what to release. Methods are compared by public numbers; no row is read.",
    show,
    {"choose": choose, "route": route},
    step=4,
    needs=("policy",),
)
