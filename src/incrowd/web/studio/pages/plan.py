"""The plan and its price: what will happen, what that guarantees and costs; and the one button that spends."""

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
from incrowd.workflows.plan.drafts import drafted_lines, vouched_words
from incrowd.workflows.plan.forecast import Forecast, undeclared
from incrowd.workflows.plan.forecast import plan as forecast
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


def show(asked: PageRequest) -> PageContent | Redirect:
    """Show the plan, its price and what is left, and the form that pays; or how the work that was paid for goes."""
    file = asked.policy_file()
    job = paid(asked, asked.value("paid")) if asked.value("paid") else None
    done = result(job)
    if done is not None:
        return asked.to("released", release=done["folder"])
    policy = file.policy
    rehearsal = REHEARSAL.known(asked, file)
    found = forecast(policy, result(rehearsal))
    out = asked.value("out") or _free(asked.folder, file)
    content: dict[str, Any] = {
        **_plain(found),
        "checked": rehearsal is not None and rehearsal.state is State.DONE,
        "out": out,
        "formats": FORMATS,
        "keys": _signing_keys(asked.folder),
        "key": payment_key(policy, "release") if found.allowed else "",
    }
    pictures = {"chain": _chain(policy), "budget": _budget(found)}
    signing = [word for key in content["keys"][:1] for word in ("--sign", key)]
    line = command("incrowd", "release", "--policy", file.name, "--out", out, *signing)
    lines = (command("incrowd", "plan", "--policy", file.name), line)
    return PageContent(content, pictures, lines, foremost(job, rehearsal))


def _plain(found: Forecast) -> dict[str, Any]:
    policy, bounded = found.policy, found.epsilon.is_finite()
    expected, words = found.expectation, vouched_words(found.policy)
    refusal = None if found.refusal is None else found.refusal[:1].upper() + found.refusal[1:]
    return {
        "dataset": policy.name,
        "method": policy.method.name,
        "unit": str(found.guarantee.unit),
        "bounded": bounded,
        "epsilon": short_up(found.epsilon) if bounded else None,
        "delta": short_up(found.delta) if bounded else None,
        "because": texts(found.guarantee.because),
        "assumes": list(map(str, sorted(found.guarantee.assumes))),
        "claims": [{"kind": claim.kind, "sentence": claim.sentence} for claim in policy.plan.claims],
        "expected": None if expected is None else expected.sentence,
        "undeclared": undeclared(policy),
        "warnings": list(found.warnings),
        "drafted": [*drafted_lines(policy), *([] if words is None else [words])],
        "consent": None if policy.gate is None else policy.gate.sentence,
        "allowed": found.allowed,
        "refusal": refusal,
    }


def _chain(policy: Policy) -> Markup:
    """Return the steps in order, each as a picture and in words."""
    steps = tuple(walk(policy.plan.steps))
    words = [("The table", "Rows as they were recorded. They stay here.")]
    words += [(step.title, step.sentence) for step in steps]
    drawn = scenes(step.glyph for step in steps)
    items = (
        tag("li", *([] if picture is None else [picture]), tag("div", tag("h3", title), tag("p", sentence)))
        for (title, sentence), picture in zip(words, drawn, strict=True)
    )
    return tag("ol", *items, class_="chain")


def _budget(found: Forecast) -> Markup:
    """Return bars of what was spent, what this would spend, and what would be left."""
    if not found.epsilon.is_finite():
        return Markup()
    cost = Amount(found.epsilon, found.delta)
    limit = found.policy.budget.limit if found.policy.budget is not None else cost
    spent = Amount(Decimal(0), Decimal(0))
    if found.standing is not None and found.standing.terms.budget is not None:
        limit, spent = found.standing.terms.budget.limit, found.standing.totals.spent
    bars = []
    for sign, this, before, whole in (
        ("ε", cost.epsilon, spent.epsilon, limit.epsilon),
        ("δ", cost.delta, spent.delta, limit.delta),
    ):
        left = max(Decimal(0), whole - before - this)
        if this + before + left <= 0:
            continue
        bar = BudgetBar(sign, this, before + this, left)
        drawn = [
            tag("rect", x=f"{part.start:.2f}%", width=f"{part.wide:.2f}%", height=16, class_=part.kind)
            for part in bar.parts
        ]
        svg = tag("svg", *drawn, height=16, role="img", aria_label=bar.title)
        words = f"{short_up(before)} spent, {short_up(this)} now, {short_down(left)} left of {short_down(whole)}"
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
    found = [path for place in places if place.is_dir() for path in sorted(place.glob("*.pem"))]
    return [folder.name(path) for path in found if b"PRIVATE KEY" in path.read_bytes()[:64]]


def check(asked: PageRequest) -> Redirect:
    """Check the rows as a release does before its charge; nothing of them is shown but whether it would be refused."""
    REHEARSAL.begin(asked, asked.policy_file())
    return asked.to("plan")


def make_key(asked: PageRequest) -> Redirect:
    """Make a key for signatures: the private part for its owner alone, the public part beside it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    file = asked.folder.place(f"{_KEYS}/signing.pem")
    if file.exists():
        raise InvalidParameter("there is a key already, and it is not replaced.")
    key = Ed25519PrivateKey.generate()
    file.parent.mkdir(exist_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    file.with_name("signing.pub.pem").write_bytes(public)
    return asked.to("plan")


def release(asked: PageRequest) -> Redirect:
    """Charge and release, once; the work goes on behind the page."""
    file = asked.policy_file()
    policy = file.policy
    out, form = asked.folder.place(asked.value("out")), asked.value("form") or FORMATS[0]
    signed: Path | None = asked.folder.file(asked.value("sign")) if asked.value("sign") else None
    if form not in FORMATS:
        raise InvalidParameter(f"a release is written as {', '.join(FORMATS[:-1])} or {FORMATS[-1]} here.")
    if signed is not None:
        private_key(signed)
    held = share_of(asked.value("hold_out") or None)
    terms = ReleaseTerms(held, bool(asked.value("anyway")))
    name = asked.folder.name(out)

    def work(tell: Tell) -> dict[str, Any]:
        published = release_to(None, policy, Destination(out, form, signed), tell, terms)
        return {"folder": name, "notes": list(published.notes)}

    pay(asked, policy, "release", f"Releasing {policy.name} into {name}", work)
    return asked.to("plan", paid=asked.value("key"), out=name)


PAGE = Page(
    "plan",
    "Plan and price",
    "What will happen, what that guarantees and what it costs. Nothing is spent before you type the dataset's name.",
    show,
    {"check": check, "key": make_key, "release": release},
    step=6,
    needs=("policy",),
)
