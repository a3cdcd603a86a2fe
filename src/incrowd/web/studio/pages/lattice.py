"""The lattice explorer: every combination of levels under k-anonymity, its information loss and suppressed rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from incrowd.core.schema import Schema
from incrowd.drawing.charts import Area, picture, rounded_up, ticks, titles
from incrowd.drawing.markup import figure, table, tag
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search.lattice import LevelSearch
from incrowd.web.studio.choices import levels_text
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.policy_file import PolicyFile, provenance
from incrowd.web.studio.rows import RowAccess
from incrowd.workflows.plan.explore import LatticeNode, LatticeView, lattice_view
from incrowd.workflows.policy.edit import Place, Value

_LAYER, _RADIUS, _WIDE = 46, 7, 1000
_SHOWN = 12


def hasse(view: LatticeView, schema: Schema, address: Callable[[LatticeNode], str]) -> Markup:
    """Return the diagram of all combinations: the finest at the bottom, an edge where one column rises by one level."""
    layers: dict[int, list[LatticeNode]] = defaultdict(list)
    for node in view.nodes:
        layers[node.height].append(node)
    top = max(layers)
    at = {
        node.rungs: (_WIDE * (place + 1) / (len(layer) + 1), 16 + _LAYER * (top - height))
        for height, layer in layers.items()
        for place, node in enumerate(layer)
    }
    shapes = []
    for rungs, (x, y) in at.items():
        for place in range(len(rungs)):
            above = (*rungs[:place], rungs[place] + 1, *rungs[place + 1 :])
            if above in at:
                shapes.append(
                    tag("line", x1=f"{x:.1f}", y1=y, x2=f"{at[above][0]:.1f}", y2=at[above][1], class_="edge")
                )
    for node in view.nodes:
        x, y = at[node.rungs]
        shapes.append(_dot(node, f"{x:.1f}", y, _words(node, view, schema), address(node)))
    tall = 32 + _LAYER * top
    title = f"All {view.combinations:,} combinations of levels, the finest at the bottom"
    svg = tag(
        "svg",
        *shapes,
        viewBox=f"0 0 {_WIDE} {tall}",
        class_="chart hasse",
        role="img",
        aria_label=title,
        data_details="",
    )
    return figure(svg, f"{title}. {_KEY}", _numbers(view, schema))


def loss_risk_map(view: LatticeView, schema: Schema, address: Callable[[LatticeNode], str]) -> Markup:
    """Return the combinations that meet the demands on a map: what they lose, and how often links are right."""
    nodes = [node for node in view.nodes if node.choice is not None]
    if not nodes:
        return tag("p", "No combination of levels meets the criteria.")
    losses = [node.choice.loss for node in nodes if node.choice is not None]
    risks = [view.risk(node.choice) for node in nodes if node.choice is not None]
    low, high = min(losses), max(*losses, min(losses) + 1e-9)
    area = Area(low, high, 0.0, rounded_up(max(*risks, 1e-9)))
    across = [low + (high - low) * part / 4 for part in range(5)]
    upward = ticks(area.top, 4)
    shapes = [
        *area.across(across, [f"{tick:.3g}" for tick in across]),
        *area.upward(upward, [f"{tick:.3g}" for tick in upward]),
        *titles("information loss", "average risk"),
    ]
    for node, loss, risk in sorted(zip(nodes, losses, risks, strict=True), key=lambda item: item[0].best):
        shapes.append(_dot(node, area.x(loss), area.y(risk), _words(node, view, schema), address(node)))
    title = f"{len(nodes):,} combinations by information loss and average risk"
    kind = picture(title, *shapes)
    svg = Markup(str(kind).replace("<svg ", '<svg data-details="" ', 1))  # noqa: S704 - escaped by construction
    return figure(svg, f"{title}. {_KEY}", _numbers(view, schema))


_KEY = "Filled: meets the criteria; ringed: minimal; largest: least loss. Click a combination for details."


def _dot(node: LatticeNode, x: str, y: float, words: str, address: str) -> Markup:
    return tag("circle", tag("title", words), cx=x, cy=y, r=_size(node), class_=_class(node), data_node=address)


def _size(node: LatticeNode) -> int:
    return _RADIUS + 3 if node.best else _RADIUS if node.minimal else _RADIUS - 2


def _class(node: LatticeNode) -> str:
    marks = [("met", node.choice is not None), ("minimal", node.minimal), ("best", node.best)]
    return " ".join(["node", *(name for name, there in marks if there)])


def _levels(node: LatticeNode, view: LatticeView, schema: Schema) -> str:
    levels = dict(zip(view.names, node.rungs, strict=True)) if node.choice is None else node.choice.levels
    return levels_text(schema, levels)


def _words(node: LatticeNode, view: LatticeView, schema: Schema) -> str:
    levels = _levels(node, view, schema)
    if node.choice is None:
        return f"{levels}: does not meet the criteria"
    return f"{levels}: loss {node.choice.loss:.4g}, {node.choice.suppressed:,} rows suppressed"


def _numbers(view: LatticeView, schema: Schema) -> Markup:
    """Return the minimal combinations and the best, in numbers."""
    nodes = [node for node in view.nodes if node.choice is not None and (node.minimal or node.best)]
    nodes.sort(key=lambda node: math.inf if node.choice is None else node.choice.loss)
    rows = [
        [
            levels_text(schema, node.choice.levels),
            f"{node.choice.loss:.4g}",
            f"{node.choice.suppressed:,}",
            f"{node.choice.smallest or 0:,}",
        ]
        for node in nodes[:_SHOWN]
        if node.choice is not None
    ]
    return table("Minimal combinations with least loss", ["Levels", "Loss", "Suppressed", "Smallest class"], rows)


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
        schema, by_name = file.policy.schema, {_name(node): node for node in view.nodes}
        content["view"] = {"rows": view.rows, "combinations": view.combinations, "whole": view.whole}
        content["view"] |= {"judged": len(view.nodes), "minimal": sum(node.minimal for node in view.nodes)}
        chosen = by_name.get(request.value("node")) or view.best
        content["node"] = None if chosen is None else _plain(chosen, view, schema)
        content["pins"] = [_plain(by_name[pin], view, schema) for pin in pins if pin in by_name]

        def address(node: LatticeNode) -> str:
            words = {"policy": file.name, "node": _name(node), "pins": ",".join(pins)}
            return f"/lattice?{urlencode({name: value for name, value in words.items() if value})}#node"

        pictures["picture"] = hasse(view, schema, address) if view.whole else loss_risk_map(view, schema, address)
    lines = (command("incrowd", "plan", "--policy", file.name, "--minimal", "--frontier"),)
    return PageContent(content, pictures, lines, foremost(job))


def _name(node: LatticeNode) -> str:
    return ".".join(map(str, node.rungs))


def _plain(node: LatticeNode, view: LatticeView, schema: Schema) -> dict[str, Any]:
    choice = None if node.choice is None else {**asdict(node.choice), "risk": view.risk(node.choice)}
    levels = dict(zip(view.names, node.rungs, strict=True)) if node.choice is None else dict(node.choice.levels)
    words = {"name": _name(node), "words": _levels(node, view, schema)}
    return words | {"levels": levels, "choice": choice, "minimal": node.minimal, "best": node.best}


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
