"""The plan and its cost: what will happen, what that guarantees and costs; and the one button that spends."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

from markupsafe import Markup

from incrowd.accounting.budget import Amount
from incrowd.core.spreadsheet import MARK
from incrowd.core.steps.step import walk
from incrowd.core.terms import joined as texts
from incrowd.core.words import short_down, short_up
from incrowd.drawing.glyphs import scenes
from incrowd.drawing.markup import joined, tag
from incrowd.errors import InvalidParameter, Refused
from incrowd.web.studio.folder import Folder
from incrowd.web.studio.jobs import State, Tell
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.payments import paid, pay, payment_key
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.web.studio.rows import RowAccess
from incrowd.workflows.plan.forecast import Forecast, undeclared
from incrowd.workflows.plan.forecast import plan as forecast
from incrowd.workflows.plan.published import unpublished
from incrowd.workflows.plan.warnings import vouched_words
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.prepare import rehearse
from incrowd.workflows.release.tables import ReleaseTerms, release_to, share_of
from incrowd.workflows.report.page import BudgetBar
from incrowd.workflows.verify.signing import private_key

FORMATS = ("parquet", "csv", "tsv", f"{MARK}.csv")
_KEYS = "keys"
_PRIVATE = 0o600


def _rehearsed(policy: Policy, rows: Any, engine: Any) -> str | None:
    """Return why a release of these rows would be refused, as all that is checked before its charge says."""
    del rows  # they are opened again, as a release opens them
    try:
        rehearse(None, policy, engine)
    except Refused as error:
        return str(error)
    return None


REHEARSAL = RowAccess(
    "plan", "whether a release of the rows would be refused", "Checking every row, as a release does", _rehearsed
)
"""Everything that is checked before a charge."""


def show(request: PageRequest) -> PageContent | Redirect:
    """Show the plan, its price and what is left, and the form that pays; or how the work that was paid for goes."""
    file = request.policy_file()
    job = paid(request, request.value("paid")) if request.value("paid") else None
    done = result(job)
    if done is not None:
        return request.to("released", release=done["folder"])
    policy = file.policy
    rehearsal = REHEARSAL.job(request, file)
    planned = forecast(policy, result(rehearsal))
    out = request.value("out") or _free(request.folder, file)
    content: dict[str, Any] = {
        **_plain(planned),
        "checked": rehearsal is not None and rehearsal.state is State.DONE,
        "out": out,
        "formats": FORMATS,
        "keys": _signing_keys(request.folder),
        "key": payment_key(policy, "release") if planned.allowed else "",
    }
    pictures = {"chain": _chain(policy), "budget": _budget(planned)}
    signing = [word for key in content["keys"][:1] for word in ("--sign", key)]
    line = command("incrowd", "release", "--policy", file.name, "--out", out, *signing)
    lines = (command("incrowd", "plan", "--policy", file.name), line)
    return PageContent(content, pictures, lines, foremost(job, rehearsal))


def _plain(planned: Forecast) -> dict[str, Any]:
    policy, bounded = planned.policy, planned.epsilon.is_finite()
    expected, words = planned.expectation, vouched_words(planned.policy)
    refusal = None if planned.refusal is None else planned.refusal[:1].upper() + planned.refusal[1:]
    return {
        "dataset": policy.name,
        "method": policy.method.name,
        "unit": str(planned.guarantee.unit),
        "bounded": bounded,
        "epsilon": short_up(planned.epsilon) if bounded else None,
        "delta": short_up(planned.delta) if bounded else None,
        "because": texts(planned.guarantee.because),
        "assumes": list(map(str, sorted(planned.guarantee.assumes))),
        "claims": [
            {"kind": claim.kind, "sentence": claim.sentence, "restates": claim.restates} for claim in policy.plan.claims
        ],
        "expected": [] if expected is None else [expected.spread, *expected.lines],
        "published": [
            column.to_json() | {"label_text": column.label_text, "detail": column.detail, "flags": list(column.flags)}
            for column in planned.published
        ],
        "unpublished": list(unpublished(policy)),
        "undeclared": undeclared(policy),
        "warnings": list(planned.warnings),
        "drafted": [*map(_drafted, policy.schema.drafted), *([] if words is None else [words])],
        "consent": None if policy.gate is None else policy.gate.sentence,
        "allowed": planned.allowed,
        "refusal": refusal,
    }


def _drafted(name: str) -> str:
    """Return what to do about a released column whose values, rule or cleaning come from the rows."""
    do = "name a public source, and confirm its cleaning, on the page Columns and roles"
    return f"{name} is data-dependent, which voids every guarantee but k-anonymity: {do}"


def _chain(policy: Policy) -> Markup:
    """Return the steps in order, each as a picture and in words."""
    steps = tuple(walk(policy.plan.steps))
    words = [("The table", "The original rows. They are not published.")]
    words += [(step.title, step.sentence) for step in steps]
    pictures = scenes(step.glyph for step in steps)
    items = (
        tag("li", *([] if picture is None else [picture]), tag("div", tag("h3", title), tag("p", sentence)))
        for (title, sentence), picture in zip(words, pictures, strict=True)
    )
    return tag("ol", *items, class_="chain")


def _budget(planned: Forecast) -> Markup:
    """Return bars of what was spent, what this would spend, and what would be left."""
    if not planned.epsilon.is_finite():
        return Markup()
    cost = Amount(planned.epsilon, planned.delta)
    limit = planned.policy.budget.limit if planned.policy.budget is not None else cost
    spent = Amount(Decimal(0), Decimal(0))
    if planned.standing is not None and planned.standing.terms.budget is not None:
        limit, spent = planned.standing.terms.budget.limit, planned.standing.totals.spent
    bars = []
    for sign, this, before, whole in (
        ("ε", cost.epsilon, spent.epsilon, limit.epsilon),
        ("δ", cost.delta, spent.delta, limit.delta),
    ):
        left = max(Decimal(0), whole - before - this)
        if this + before + left <= 0:
            continue
        bar = BudgetBar(sign, this, before + this, left)
        shapes = [
            tag("rect", x=f"{part.start:.2f}%", width=f"{part.wide:.2f}%", height=16, class_=part.kind)
            for part in bar.parts
        ]
        svg = tag("svg", *shapes, height=16, role="img", aria_label=bar.title)
        words = f"{short_up(before)} spent, {short_up(this)} now, {short_down(left)} of {short_down(whole)} remaining"
        bars.append(tag("div", tag("b", sign), svg, tag("span", words, class_="about"), class_="one"))
    return tag("div", joined(bars), class_="budget")


def _free(folder: Folder, file: PolicyFile) -> str:
    """Return a name for a folder that is not there yet, beside the policy."""
    place, number = file.path.with_name("out"), 2
    while place.exists():
        place = file.path.with_name(f"out-{number}")
        number += 1
    return folder.name(place)


def _signing_keys(folder: Folder) -> list[str]:
    """Return the private keys of the folder, by their names."""
    places = [folder.root, folder.root / _KEYS]
    paths = [path for place in places if place.is_dir() for path in sorted(place.glob("*.pem"))]
    return [folder.name(path) for path in paths if b"PRIVATE KEY" in path.read_bytes()[:64]]


def check(request: PageRequest) -> Redirect:
    """Check the rows as a release does before its charge; nothing of them is shown but whether it would be refused."""
    REHEARSAL.begin(request, request.policy_file())
    return request.to("plan")


def make_key(request: PageRequest) -> Redirect:
    """Make a key for signatures: the private part for its owner alone, the public part beside it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    file = request.folder.place(f"{_KEYS}/signing.pem")
    if file.exists():
        raise InvalidParameter("a key exists already and is not replaced.")
    key = Ed25519PrivateKey.generate()
    file.parent.mkdir(exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    file.with_name("signing.pub.pem").write_bytes(public)
    return request.to("plan")


def release(request: PageRequest) -> Redirect:
    """Charge and release, once; the work goes on behind the page."""
    file = request.policy_file()
    policy = file.policy
    out, form = request.folder.place(request.value("out")), request.value("form") or FORMATS[0]
    signed: Path | None = request.folder.file(request.value("sign")) if request.value("sign") else None
    if form not in FORMATS:
        raise InvalidParameter(f"a release is written as {', '.join(FORMATS[:-1])} or {FORMATS[-1]} here.")
    if signed is not None:
        private_key(signed)
    held = share_of(request.value("hold_out") or None)
    terms = ReleaseTerms(held, bool(request.value("force")))
    name = request.folder.name(out)

    def work(tell: Tell) -> dict[str, Any]:
        published = release_to(None, policy, Destination(out, form, signed), tell, terms)
        return {"folder": name, "notes": list(published.notes)}

    pay(request, policy, "release", f"Releasing {policy.name} into {name}", work)
    return request.to("plan", paid=request.value("key"), out=name)


PAGE = Page(
    "plan",
    "Plan and cost",
    "Steps, guarantee and cost of the release. Nothing is spent until you type the dataset's name.",
    show,
    {"check": check, "key": make_key, "release": release},
    step=6,
    needs=("policy",),
)
