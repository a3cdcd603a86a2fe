"""The guarantee workbench: sliders, and what they would guarantee, keep and cost, by public numbers alone.

What can be seen of the rows here is a private look, whose price stands on its button.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from incrowd.core.rounding import exact, float_up
from incrowd.core.schema import Schema
from incrowd.core.words import short_down, short_up
from incrowd.drawing.markup import figure, table, tag
from incrowd.errors import IncrowdError, InvalidParameter, Refused
from incrowd.web.studio.choices import (
    PROTECTIONS,
    criteria,
    criteria_changes,
    level_name,
    levels_text,
    protection,
    protection_changes,
    table_columns,
    tabled,
    tabled_changes,
)
from incrowd.web.studio.jobs import Job, Tell
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.payments import pay, payment_key
from incrowd.web.studio.policy_file import PolicyFile, provenance
from incrowd.workflows.bounds.odds import PRIORS, Odds, in_words
from incrowd.workflows.plan.expectation import Expectation, expectation
from incrowd.workflows.plan.forecast import Forecast, declared_rows
from incrowd.workflows.plan.forecast import plan as forecast
from incrowd.workflows.plan.preview.chosen_policy import chosen_section, replaced
from incrowd.workflows.plan.preview.method import look_of
from incrowd.workflows.plan.preview.preview import PreviewResult, look, require_narrow, require_room
from incrowd.workflows.policy.edit import Place, Value
from incrowd.workflows.policy.policy import Policy

SLIDERS: dict[str, tuple[str, str]] = {
    "epsilon": ("ε, privacy loss per unit", "0.1 0.2 0.3 0.5 0.7 0.8 1 1.2 1.5 2 3 5"),
    "delta": ("δ, failure probability", "1e-12 1e-11 1e-10 1e-9 1e-8 1e-7 1e-6 1e-5"),
    "rate": ("sampling rate", "1/20 1/10 1/5 1/4 1/3 2/5 1/2 3/5 2/3 3/4 4/5 9/10"),
    "k": ("k, minimum size of a class", "2 3 5 7 10 15 20 25 30 40 50 75 100 150 200"),
    "minimum": ("the smallest count that is published", "2 3 4 5 6 8 10 11 15 20 30 50"),
    "base": ("the base of rounded numbers", "3 5 7 10 11 20 50"),
    "noise_epsilon": ("ε of the noise on small counts", "0.1 0.2 0.5 1 1.5 2 3 5"),
    "choosing": ("ε for choosing levels, part of ε", "0.01 0.02 0.05 0.1 0.15 0.2 0.3 0.5"),
}
"""Every number of a release that can be moved here, with the values of its slider."""
_SUGGESTED = ("1/5", "1/2", "1", "2", "5")
_LOOK = "0.05"
_NO_OFFER = {"epsilon": _LOOK, "why_not": "", "key": "", "choices": 0}


def show(request: PageRequest) -> PageContent:
    """Show the numbers of the release and what they would guarantee, as they are or as a form would have them."""
    file = request.policy_file()
    changes, problem, planned = _changes(request, file), None, None
    try:
        planned = forecast(file.trial(changes) if changes else file.policy)
    except IncrowdError as error:
        problem = str(error)
    policy = file.policy if planned is None else planned.policy
    live = bool(request.value("live"))  # a form that asks for what it changes alone
    look_job = request.jobs.find(_look_key(file))
    content = {
        "method": file.policy.method.name,
        "sliders": _sliders(request, file),
        "levels": _levels(request, file),
        "lowest": file.at("release", "levels") is None and file.at("release", "lowest") is not None,
        "criteria": criteria(request, file),
        "tabled": tabled(request, file),
        "protection": protection(request, file),
        "protections": PROTECTIONS,
        "outcome": None if planned is None else _outcome(planned),
        "problem": problem,
        "changed": bool(changes),
        "seen": list(file.seen.what),
        "suggestions": [] if live else _suggestions(policy),
        "look": _NO_OFFER if live else _offer(file, request),
        "looked": None if live else _looked(look_job),
    }
    pictures = {"band": Markup()}
    if planned is not None and planned.expectation is not None:
        pictures["band"] = _band(planned.expectation)
    line = command("incrowd", "plan", "--policy", file.name)
    return PageContent(content, pictures, (line,), foremost(look_job))


def _sliders(request: PageRequest, file: PolicyFile) -> list[dict[str, str]]:
    release = file.at("release")
    sliders = []
    for name, (label, values) in SLIDERS.items():
        now = file.at("release", name) if isinstance(release, dict) else None
        if now is not None:
            sliders.append({"name": name, "label": label, "values": values, "value": request.value(name, str(now))})
    return sliders


def _levels(request: PageRequest, file: PolicyFile) -> list[dict[str, Any]]:
    """Return the levels that can be moved: those of the release, or the lowest that may be chosen."""
    key = _levels_key(file)
    if key is None:
        return []
    levels = file.at("release", key) or {}
    listed = table_columns(file)
    lines = []
    for place, column in enumerate(file.policy.schema.released):
        if listed is not None and column.name not in listed:
            continue
        hierarchy = column.hierarchy
        now = request.value(f"level-{place}") or str(levels.get(column.name, "0"))
        level = min(int(now), hierarchy.height) if now.isdigit() else 0
        members = hierarchy.members(level)
        labels = [] if members is None else hierarchy.names(members.slice(0, 3), level).to_pylist()
        lines.append(
            {"name": f"level-{place}", "column": column.name, "height": hierarchy.height, "value": level}
            | {"classes": None if members is None else len(members), "labels": [str(label) for label in labels]}
            | {"names": [level_name(hierarchy, step) for step in range(hierarchy.height + 1)]}
        )
    return lines


def _levels_key(file: PolicyFile) -> str | None:
    return next((key for key in ("levels", "lowest") if isinstance(file.at("release", key), dict)), None)


def _changes(request: PageRequest, file: PolicyFile) -> dict[Place, Value]:
    """Return what the form would write; levels chosen after a look at the rows are marked at their columns."""
    changes: dict[Place, Value] = {}
    for name in SLIDERS:
        value, now = request.value(name), file.at("release", name)
        if now is not None and value and value != str(now):
            changes["release", name] = value
    key = _levels_key(file)
    levels = {} if key is None else dict(file.at("release", key))
    moved = {}
    for number, column in enumerate(file.policy.schema.released):
        value = request.value(f"level-{number}")
        if key is not None and value and value != str(levels.get(column.name, "0")):
            moved[column.name] = value
    for name, level in moved.items():
        changes["release", str(key), name] = level
        changes |= provenance(name, file.at("columns", name), request.value("source"), file.seen)
    if moved and file.at("release", "chosen") is not None:
        changes["release", "chosen"] = None  # these are no longer the levels that the look chose
    return changes | criteria_changes(request, file) | tabled_changes(request, file) | protection_changes(request, file)


def _outcome(planned: Forecast) -> dict[str, Any]:
    """Return what the numbers would guarantee and cost, in words; spent is rounded up, left is rounded down."""
    odds = Odds(planned.epsilon, planned.delta)
    expected = planned.expectation
    left = planned.standing.left if planned.standing is not None else None
    budget = left if left is not None else planned.policy.budget.limit if planned.policy.budget is not None else None
    bounded = odds.bounded
    return {
        "epsilon": short_up(planned.epsilon) if bounded else "none",
        "delta": short_up(planned.delta) if bounded else "none",
        "k": None if planned.policy.plan.smallest_class is None else int(planned.policy.plan.smallest_class),
        "solved": planned.parameters.get("solved"),
        "rate": str(planned.parameters["rate"]) if planned.parameters.get("rate") is not None else None,
        "words": in_words(
            float_up(Fraction(planned.epsilon)), float_up(Fraction(planned.delta)), planned.guarantee.unit.adjacency
        )
        if bounded
        else None,
        "beliefs": [[f"{100 * float(prior):g} %", odds.belief(prior)] for prior in PRIORS] if bounded else [],
        "expected": None if expected is None else expected.to_json(),
        "left": None
        if budget is None or not bounded
        else short_down(max(Decimal(0), budget.epsilon - planned.epsilon)),
        "budget": None if budget is None else short_down(budget.epsilon),
        "allowed": planned.allowed,
        "refusal": None if planned.refusal is None else planned.refusal[:1].upper() + planned.refusal[1:],
        "warnings": list(planned.warnings),
        "claim": planned.policy.plan.claims[0].kind if planned.policy.plan.claims else "nothing",
    }


def _band(expected: Expectation) -> Markup:
    """Return the band of rows that will probably be kept, from nothing to everything."""
    low, high = 100 * expected.low, 100 * max(expected.high, expected.low + 0.01)
    marks = [("evenly spread", expected.even), ("concentrated", expected.skewed)]
    shapes = [
        tag("rect", x="0", y=22, width="100%", height=16, class_="area", rx=8),
        tag("rect", x=f"{low:.1f}%", y=22, width=f"{high - low:.1f}%", height=16, class_="band", rx=8),
    ]
    for place, (name, share) in enumerate(marks):
        at = f"{min(99.4, 100 * share):.1f}%"
        side = "end" if share > 0.6 else ""
        shapes.append(tag("line", x1=at, x2=at, y1=18, y2=42, class_="tick"))
        shapes.append(tag("text", f"{name} {100 * share:.0f} %", x=at, y=14 if place else 56, class_=side or None))
    title = f"Of the sampled rows {100 * expected.low:.0f} to {100 * expected.high:.0f} % are expected to be released"
    picture = tag("svg", *shapes, height=62, class_="chart", role="img", aria_label=title)
    rows = [
        [name, f"{100 * share:.1f} %"] for name, share in (*marks, ("least", expected.low), ("most", expected.high))
    ]
    return figure(
        picture,
        f"{title}; {expected.crowd:,.3g} rows per cell on average.",
        table("Rows released", ["If", "Released"], rows),
    )


def _suggestions(policy: Policy) -> list[dict[str, Any]]:
    """Return what other losses would keep by public numbers, for a method whose k is solved: accuracy first."""
    step, rows, release = policy.step, declared_rows(policy), policy.section.release
    if step is None or rows is None or not isinstance(release, Mapping) or "delta" not in release:
        return []
    delta, suggestions = exact(release["delta"], "delta"), []
    for text in _SUGGESTED:
        try:
            method = step.at_epsilon(Fraction(text))
            if method is None:
                return []
            plan = method.plan(policy.schema)
        except IncrowdError:
            continue
        expected = expectation(plan, policy.schema, rows)
        if expected is None:
            return []
        odds = Odds(Decimal(str(float(Fraction(text)))), Decimal(str(float(delta))))
        suggestions.append(
            {"epsilon": f"{float(Fraction(text)):g}", "k": expected.k, "guess": odds.guess}
            | {name: getattr(expected, name) for name in ("even", "skewed", "low", "high")}
        )
    return suggestions


def save(request: PageRequest) -> Redirect:
    """Write the numbers into the policy."""
    file = request.policy_file()
    file.save(_changes(request, file), request.value("base"))
    return request.saved("workbench")


def _look_key(file: PolicyFile) -> str:
    return f"private look {file.path}"


def _offer(file: PolicyFile, request: PageRequest) -> dict[str, Any]:
    """Return what a private look would cost, or why there is none."""
    epsilon = request.value("look") or _LOOK
    try:
        planned = look_of(file.policy, exact(epsilon, "epsilon"))
        require_room(file.policy, planned.plan.guarantee)
        require_narrow(file.policy, planned)
    except (InvalidParameter, Refused) as error:
        return {"epsilon": epsilon, "why_not": str(error), "key": "", "choices": 0}
    key = payment_key(file.policy, "look")
    return {"epsilon": epsilon, "why_not": None, "key": key, "choices": len(planned.choices)}


def pay_look(request: PageRequest) -> Redirect:
    """Pay for a private look; what it shows is private, and free to be chosen by."""
    file = request.policy_file()
    policy, epsilon = file.policy, request.value("look") or _LOOK

    def work(tell: Tell) -> PreviewResult:
        looked = look(None, policy, epsilon, tell)
        with suppress(OSError):  # it is paid: what it showed is shown, also where it cannot be kept
            name = f"{file.path.name}.look-{looked.chosen.entry}.json"
            file.path.with_name(name).write_text(looked.certificate.to_text(), encoding="utf-8")
        return looked

    job = pay(request, policy, "look", "Private preview", work)
    request.jobs.alias(_look_key(file), job)
    return request.to("workbench")


def _looked(job: Job | None) -> dict[str, Any] | None:
    looked: PreviewResult | None = result(job)
    if looked is None:
        return None
    return {
        "sentence": looked.sentence,
        "useless": looked.result.useless,
        "epsilon": str(looked.chosen.epsilon),
        "entry": looked.chosen.entry,
        "best": looked.result.place,
        "choices": [_choice(estimate, looked.policy.schema) for estimate in looked.result.estimates],
    }


def _choice(estimate: Any, schema: Schema) -> dict[str, Any]:
    plain: Mapping[str, Any] = {name: getattr(estimate, name) for name in ("low", "high", "draw", "detail", "k")}
    return {
        **plain,
        "kept": estimate.expected,
        "rate": str(estimate.rate),
        "levels": dict(estimate.levels),
        "words": levels_text(schema, estimate.levels),
        "useless": estimate.useless,
    }


def take(request: PageRequest) -> Redirect:
    """Write the levels, k and rate of a choice that the private look showed, with the entry that paid for it."""
    file = request.policy_file()
    looked: PreviewResult | None = result(request.jobs.find(_look_key(file)))
    if looked is None:
        raise InvalidParameter("no private preview was run here.")
    place = request.value("choice")
    if not place.isdigit() or int(place) >= len(looked.result.estimates):
        raise InvalidParameter("this choice does not exist.")
    release = looked.policy.section.release
    if not isinstance(release, Mapping):
        raise InvalidParameter("a private preview needs one method, not a list.")
    section = chosen_section(release, looked.result.estimates[int(place)], looked.chosen)
    note = f"  # chosen by a private preview: entry {looked.chosen.entry} of the ledger"
    file.write(replaced(file.text, section, note), request.value("base"))
    return request.to("workbench")


PAGE = Page(
    "workbench",
    "Set guarantee",
    "Set the parameters and see guarantee, expected output and cost. No row is read, nothing is spent.",
    show,
    {"save": save, "look": pay_look, "take": take},
    step=5,
    needs=("policy",),
)
