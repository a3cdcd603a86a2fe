"""The lattice explorer: every combination of levels under k-anonymity, what it loses and leaves out; made from rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search.lattice import LevelSearch
from incrowd.web.studio.drawing import hasse, loss_risk_map
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.web.studio.row_access import provenance
from incrowd.web.studio.rows import RowAccess
from incrowd.workflows.plan.lattice_view import LatticeNode, LatticeView, lattice_view
from incrowd.workflows.policy.edit import Place, Value

LATTICE = RowAccess(
    "plan",
    "the lattice of levels",
    "Counting the table at all combinations of levels",
    lattice_view,
)
"""What combinations of levels would lose."""
_MOST_PINS = 8


def show(request: PageRequest) -> PageContent:
    """Show the diagram or the map, the node that was clicked, and those that were pinned."""
    file = request.policy_file()
    method = file.policy.method
    search = method if isinstance(method, LevelSearch) else None
    job = None if search is None else LATTICE.job(request, file)
    view: LatticeView | None = result(job)
    pins = [pin for pin in request.value("pins").split(",") if pin][:_MOST_PINS]
    content: dict[str, Any] = {
        "able": search is not None,
        "method": method.name,
        "k": None if search is None else search.k,
        "suppression": "" if search is None else str(search.suppression),
        "view": None,
        "node": None,
        "pins": [],
        "pinned": ",".join(pins),
        "seen": list(file.seen.what),
    }
    pictures = {}
    if view is not None:
        by_name = {_name(node): node for node in view.nodes}
        content["view"] = {"rows": view.rows, "combinations": view.combinations, "whole": view.whole}
        content["view"] |= {"judged": len(view.nodes), "minimal": sum(node.minimal for node in view.nodes)}
        chosen = by_name.get(request.value("node")) or view.best
        content["node"] = None if chosen is None else _plain(chosen, view)
        content["pins"] = [_plain(by_name[pin], view) for pin in pins if pin in by_name]

        def address(node: LatticeNode) -> str:
            words = {"policy": file.name, "node": _name(node), "pins": ",".join(pins)}
            return f"/lattice?{urlencode({name: value for name, value in words.items() if value})}#node"

        pictures["picture"] = hasse(view, address) if view.whole else loss_risk_map(view, address)
    lines = (command("incrowd", "plan", "--policy", file.name, "--minimal", "--frontier"),)
    return PageContent(content, pictures, lines, foremost(job))


def _name(node: LatticeNode) -> str:
    return ".".join(map(str, node.rungs))


def _plain(node: LatticeNode, view: LatticeView) -> dict[str, Any]:
    choice = None if node.choice is None else {**asdict(node.choice), "risk": view.risk(node.choice)}
    levels = dict(zip(view.names, node.rungs, strict=True)) if node.choice is None else dict(node.choice.levels)
    return {"name": _name(node), "levels": levels, "choice": choice, "minimal": node.minimal, "best": node.best}


def look(request: PageRequest) -> Redirect:
    """Weigh the combinations, which is recorded as a look."""
    LATTICE.begin(request, request.policy_file())
    return request.to("lattice")


def demand(request: PageRequest) -> Redirect:
    """Write another k and suppression limit."""
    file = request.policy_file()
    demands = {name: request.value(name) for name in ("k", "suppression") if request.value(name)}
    changes: dict[Place, Value] = {
        ("release", name): value for name, value in demands.items() if value != str(file.at("release", name) or "")
    }
    file.save(changes, request.value("base"))
    return request.to("lattice")


def use(request: PageRequest) -> Redirect:
    """Hold the release to the levels of a node: chosen after a look, and marked as such."""
    file = request.policy_file()
    view = _view(request, file)
    node = next((node for node in view.nodes if _name(node) == request.value("node")), None)
    if node is None or node.choice is None:
        raise InvalidParameter("this combination of levels does not meet the criteria.")
    levels = {name: str(level) for name, level in node.choice.levels.items()}
    changes: dict[Place, Value] = {("release", "lowest"): levels, ("release", "highest"): levels}
    for name in levels:
        changes |= provenance(name, file.at("columns", name), request.value("source"), file.seen)
    file.save(changes, request.value("base"))
    return request.to("plan")


def _view(request: PageRequest, file: PolicyFile) -> LatticeView:
    view: LatticeView | None = result(LATTICE.job(request, file))
    if view is None:
        raise InvalidParameter("the combinations of levels were not computed yet.")
    return view


PAGE = Page(
    "lattice",
    "Lattice explorer",
    "Under k-anonymity alone: every combination of levels, its information loss and suppressed rows.",
    show,
    {"look": look, "demand": demand, "use": use},
    needs=("policy",),
)
