"""What for?  What is to leave decides the method; the routes stand beside each other at one price."""

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
        "Coarse rows of a secret sample, each in a crowd. Levels are chosen for this table, privately.",
        "differential privacy and k-anonymity",
        ("scheme", "safe"),
    ),
    "counts": (
        "Counts",
        "How many there are of each kind, with noise in every count, the empty ones too.",
        "pure differential privacy",
        ("private-histogram", "blended-histogram", "suppressed-histogram"),
    ),
    "synthetic": (
        "A synthetic table",
        "Invented rows, drawn from a model of noisy counts: they look like the data, and none is true.",
        "differential privacy",
        ("marginals", "tree"),
    ),
    "queries": (
        "Answers to questions",
        "Nothing leaves now. Analysts ask in SQL, each answer is paid from the budget.",
        "differential privacy of each answer",
        ("questions",),
    ),
    "model": (
        "A model",
        "A file that predicts one column from the others, learned from noisy sums.",
        "differential privacy",
        ("classifier", "regressor"),
    ),
    "classic": (
        "Rows under k-anonymity alone",
        "The finest levels at which k rows look alike, found by looking at all rows. It has no epsilon.",
        "k-anonymity; no bound on what others with knowledge learn",
        ("full-domain", "mondrian"),
    ),
}
_LOSS = {"epsilon": "1", "delta": "1e-6"}
_SURVEY = "People can also randomize their answers themselves, before anything is collected: incrowd collect."


def show(asked: PageRequest) -> PageContent:
    """Show what can leave, and the routes beside each other where public numbers tell."""
    file = asked.policy_file()
    policy = file.policy
    method = "questions" if policy.step is None else policy.step.name
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


def choose(asked: PageRequest) -> Redirect:
    """Write the sections of a goal in place of those that are there; columns, dataset and comments above stay."""
    file, goal = asked.policy_file(), asked.value("goal")
    if goal not in GOALS:
        raise InvalidParameter("there is no such goal.")
    sections = _sections(asked, file, goal)
    changes: dict[Place, Value] = {(name,): sections.get(name) for name in ("release", "queries")}
    reason = asked.value("reason")
    if goal == "classic":
        if not reason:
            raise InvalidParameter(
                "k-anonymity has no epsilon, and passes only a budget whose owner wrote why: give a reason."
            )
        changes["budget",] = {"unbounded": reason}
    elif file.at("budget", "unbounded") is not None or file.at("budget") is None:
        changes["budget",] = dict(_LOSS)
    if find_book(file.policy) is not None:  # the ledger has read the budget: only a grant changes it now
        changes.pop(("budget",), None)
    file.save(
        {place: value for place, value in changes.items() if value or file.at(*place) is not None}, asked.value("base")
    )
    return asked.to("lattice" if goal == "classic" else "policy" if goal == "queries" else "workbench")


def route(asked: PageRequest) -> Redirect:
    """Write another method at the same ε and δ, where the comparison says that it can be used."""
    file, name = asked.policy_file(), asked.value("method")
    found = next((each for each in compare(file.policy).routes if each.method == name and each.refusal is None), None)
    if found is None:
        raise InvalidParameter("this route cannot be taken for this table.")
    loss = _loss(file)
    section: dict[str, Any] = {"method": name, **loss}
    levels = getattr(file.policy.step, "levels", None)
    match name:
        case "safe":
            section |= {"levels": {each: str(level) for each, level in (levels or {}).items()}, "rate": "1/2"}
        case "scheme" | "points":
            raise InvalidParameter(f"{name} has settings of its own: write them into the policy.")
        case "private-histogram":
            columns = [column.name for column in file.policy.schema.released]
            section = {"method": name, "columns": columns, "epsilon": loss["epsilon"]}
            section["levels"] = {each: str(level) for each, level in (levels or {}).items()}
        case _:
            section |= {} if not levels else {"levels": {each: str(level) for each, level in levels.items()}}
    file.save({("release",): section}, asked.value("base"))
    return asked.to("workbench")


def _sections(asked: PageRequest, file: PolicyFile, goal: str) -> dict[str, Any]:
    """Return release and queries of a goal, with the ε and δ that the policy has already."""
    loss = _loss(file)
    if goal == "synthetic":
        return {"release": {"method": "marginals", **loss}}
    if goal == "model":
        column = asked.value("column")
        if column not in [each.name for each in file.policy.schema.released]:
            raise InvalidParameter("say which column the model predicts.")
        return {"release": {"method": "classifier", "target_column": column, **loss}}
    columns = [
        DraftColumn(name, {"role": "quasi"} | (dict(section) if isinstance(section, dict) else {}), "declared")
        for name, section in (file.at("columns") or {}).items()
    ]
    text, _ = release_text(columns, DraftGoal(goal), Path(file.path.parent))
    found = read_document(text).content
    release = found.get("release") or {}
    release |= {name: value for name, value in loss.items() if name in release}
    return {name: found[name] for name in ("release", "queries") if name in found}


def _loss(file: PolicyFile) -> dict[str, str]:
    return {name: str(file.at("release", name) or usual) for name, usual in _LOSS.items()}


PAGE = Page(
    "purpose",
    "What for?",
    "What is to leave decides how. Routes are compared by public numbers; no row is read.",
    show,
    {"choose": choose, "route": route},
    step=4,
    needs=("policy",),
)
