"""Choose output: what matters to its users, and the routes to a release side by side, from public numbers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from incrowd.core.schema import Role
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.workflows.plan.compare import compare
from incrowd.workflows.plan.routes import TITLES, RouteNeeds, release_of, routes_of
from incrowd.workflows.policy.edit import Place, Value, edited
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.profile.draft_text import BUDGET, DraftGoal, IntendedUse, Readers

GOALS = {
    "microdata": ("Rows about people", ("scheme", "safe")),
    "synthetic": ("A synthetic table", ("marginals", "tree")),
    "counts": ("Counts", ("private-histogram", "blended-histogram", "suppressed-histogram")),
    "table": ("A table with totals", ("protected-table",)),
    "classic": ("Rows under k-anonymity alone", ("full-domain", "mondrian")),
    "queries": ("Answers to queries", ("queries",)),
    "model": ("A model", ("classifier", "regressor")),
}
"""What can be released, and the methods of each."""
_FORM_ONLY = ("classic", "table")
_OTHERS = {
    "queries": (
        "Nothing is released now. Analysts query in SQL; each answer is charged to the budget.",
        "differential privacy of each answer",
    ),
    "model": ("A file that predicts one column from the others, learned from noisy sums.", "differential privacy"),
}
_LOSS = {"epsilon": "1", "delta": "1e-6"}
_SURVEY = "Respondents can also randomize their answers before they are collected: incrowd collect."


def show(request: PageRequest) -> PageContent:
    """Ask what matters, and show the routes side by side from public numbers, one of them recommended."""
    file = request.policy_file()
    policy, needs = file.policy, _needs(request, file)
    method = "queries" if policy.step is None else policy.step.name
    methods, why = None, None
    try:
        methods = compare(policy).to_json()
    except IncrowdError as error:
        why = str(error)
    routes = routes_of(file.content, file.path.resolve().parent, needs)
    offers = [
        offer.to_json()
        | {"current": method in GOALS[offer.goal][1], "recommended": offer.goal == routes.recommended}
        | {"loses": list(offer.loses(needs)), "form_only": offer.goal in _FORM_ONLY}
        for offer in routes.offers
    ]
    content = {
        "keepable": _keepable(file, needs),
        "use": str(needs.use),
        "readers": "" if needs.readers is None else str(needs.readers),
        "offers": offers,
        "waiting": [_waiting(file, name) for name in needs.keep if file.at("columns", name, "role") == Role.WITHHELD],
        "recommended": None if routes.recommended is None else TITLES[routes.recommended],
        "reason": routes.reason,
        "others": [
            {"name": name, "title": GOALS[name][0], "about": about, "guarantee": guarantee}
            | {"current": method in GOALS[name][1]}
            for name, (about, guarantee) in _OTHERS.items()
        ],
        "rows_declared": file.at("dataset", "rows") or "",
        "population_declared": file.at("dataset", "population") or "",
        "method": method,
        "routes": methods,
        "why_not": why,
        "columns": [column.name for column in policy.schema.released],
        "survey": _SURVEY,
        "charged": find_book(policy) is not None,
    }
    return PageContent(content, commands=(command("incrowd", "plan", "--policy", file.name, "--compare"),))


def _keepable(file: PolicyFile, needs: RouteNeeds) -> list[dict[str, Any]]:
    """Return the columns that a release could keep, and which of them must stay."""
    columns = []
    for place, (name, section) in enumerate((file.at("columns") or {}).items()):
        role = str(section.get("role", "quasi")) if isinstance(section, dict) else "quasi"
        if role not in ("identifier", "household"):
            columns.append({"place": place, "name": name, "withheld": role == "withheld", "keep": name in needs.keep})
    return columns


def _waiting(file: PolicyFile, name: str) -> dict[str, str]:
    """Return a column that must stay and is not released now, with what its data holder has to do first."""
    clean = file.at("columns", name, "clean") or {}
    check = ["check its cleaning"] if clean.get("derived") and not clean.get("confirmed") else []
    parts = [file.at("columns", name), file.at("columns", name, "hierarchy")]
    derived = any(isinstance(part, dict) and part.get("derived") and not part.get("public") for part in parts)
    bare = not check and not derived
    words = [
        *check,
        *(["name the public source of its values"] if derived else []),
        *(["choose its role"] if bare else []),
    ]
    return {"name": name, "words": " and ".join(words)}


def _needs(request: PageRequest, file: PolicyFile) -> RouteNeeds:
    """Return the columns that must stay and what readers need, as the address, a form or the policy says."""
    named = tuple(
        name for place, name in enumerate(file.at("columns") or {}) if request.value(f"keep-{place}") == "yes"
    )
    if not request.value("use"):
        named = tuple(file.at("release", "importance") or ())
    use, readers = request.value("use"), request.value("readers")
    return RouteNeeds(
        named,
        IntendedUse(use) if use in tuple(IntendedUse) else IntendedUse.ROWS,
        Readers(readers) if readers in tuple(Readers) else None,
    )


def numbers(request: PageRequest) -> Redirect:
    """Write what is publicly known about the size of the table, and go back to the routes with what matters."""
    file = request.policy_file()
    changes: dict[Place, Value] = {}
    for key in ("rows", "population"):
        value = request.value(key).replace(",", "")
        if value != (file.at("dataset", key) or ""):
            changes["dataset", key] = value or None
    file.save(changes, request.value("base"))
    flags = {name: "yes" for name in request.form if name.startswith("keep-")}
    flags |= {"readers": request.value("readers")} if request.value("readers") else {}
    return request.to("output", use=request.value("use") or str(IntendedUse.ROWS), **flags)


def choose(request: PageRequest) -> Redirect:
    """Write the sections of a goal in place of those that are there; columns, dataset and comments above stay."""
    file, goal = request.policy_file(), request.value("goal")
    if goal not in GOALS:
        raise InvalidParameter("this output does not exist.")
    sections = _sections(request, file, goal)
    changes: dict[Place, Value] = {(name,): sections.get(name) for name in ("release", "queries")}
    reason, uncharged = request.value("reason"), find_book(file.policy) is None
    if uncharged:  # else the dataset has a unit of privacy for good
        changes |= _counted(file, goal, changes)
    if goal in _FORM_ONLY:
        if not reason:
            raise InvalidParameter("this release has no epsilon, so the budget owner must give a reason.")
        changes["budget",] = {"unbounded": reason}
    elif file.at("budget", "unbounded") is not None or file.at("budget") is None:
        changes["budget",] = {name: _budget(loss) for name, loss in _loss(file).items()}
    if not uncharged:  # the ledger has read the budget: only a grant changes it now
        changes.pop(("budget",), None)
    there = {place: value for place, value in changes.items() if value or file.at(*place) is not None}
    text = edited(file.text, {("budget",): None}) if ("budget",) in there else file.text  # with what was said of it
    file.write(edited(text, there), request.value("base"))
    return request.to("policy" if goal == "queries" else "workbench" if goal == "model" else "plan")


def _counted(file: PolicyFile, goal: str, changes: Mapping[Place, Value]) -> dict[Place, Value]:
    """Return what changes with a table with totals: it counts every row, and merges those of one person in a cell."""
    person, holding = file.at("dataset", "unit", "column"), file.at("release", "holding")
    release = changes.get(("release",))
    if goal == "table" and person and isinstance(release, Mapping):
        return {("dataset", "unit"): None, ("release",): {**release, "holding": str(person)}}
    if goal != "table" and holding and not person:
        return {("dataset", "unit"): {"column": str(holding), "max_rows": "1"}}
    return {}


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
    if goal == "model":
        column = request.value("column")
        if column not in [released.name for released in file.policy.schema.released]:
            raise InvalidParameter("choose the column to predict.")
        return {"release": {"method": "classifier", "target_column": column, **loss}}
    document = release_of(file.content, DraftGoal(goal), Path(file.path.parent), _needs(request, file))
    release = document.get("release") or {}
    release |= {name: value for name, value in loss.items() if name in release}
    return {name: document[name] for name in ("release", "queries") if name in document}


def _budget(loss: str) -> str:
    """Return twice a loss, so that a first release never spends the whole budget."""
    number, _, power = loss.partition("e")
    return f"{Fraction(number) * BUDGET}{'e' if power else ''}{power}"


def _loss(file: PolicyFile) -> dict[str, str]:
    return {name: str(file.at("release", name) or usual) for name, usual in _LOSS.items()}


PAGE = Page(
    "output",
    "Choose output",
    "Say what matters, and compare the routes by public numbers; no row is read.",
    show,
    {"choose": choose, "route": route, "needs": numbers},
    step=4,
    needs=("policy",),
)
