"""Before and after, and the attack lab: what a release lost, what risk is left, and what adversaries get out of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from markupsafe import Markup

from incrowd.attacks import attack_names
from incrowd.attacks.knowledge import ATTACKERS
from incrowd.core.steps.around import HoldOut
from incrowd.core.steps.step import walk
from incrowd.drawing.markup import joined
from incrowd.engines.settings import engine_of
from incrowd.errors import InvalidParameter
from incrowd.verifier.files import CERTIFICATE
from incrowd.web.studio.jobs import Job, Tell
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.workflows.assess.assess import Assessment
from incrowd.workflows.assess.assess import assess as assessed
from incrowd.workflows.assess.record import keep_assessment
from incrowd.workflows.assess.released import read_release
from incrowd.workflows.assess.section import section
from incrowd.workflows.attack.attack import AttackOrder, AttackReport, attack
from incrowd.workflows.attack.inputs import AttackInput
from incrowd.workflows.attack.page import findings
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.ledger import record_look
from incrowd.workflows.policy.rows import open_rows

_TRIALS = 500


def show(request: PageRequest) -> PageContent:
    """Show what was found out about a release from the original rows, and the forms that start it."""
    file, folder, name = request.policy_file(), request.release(), request.value("release")
    certificate = read_certificate(folder)
    before, lab = _job(request, "assess"), _job(request, "attack")
    assessment: Assessment | None = result(before)
    tried: AttackReport | None = result(lab)
    held = any(isinstance(step, HoldOut) for step in walk(certificate.steps))
    content: dict[str, Any] = {
        "release": name,
        "dataset": certificate.dataset.name,
        "assessment": None if assessment is None else assessment.to_json(),
        "rows": None
        if assessment is None
        else {"kept": assessment.released, "all": assessment.rows, "loss": assessment.loss},
        "lab": None if tried is None else tried.to_json(),
        "stories": [] if tried is None else [_story(run) for run in tried.runs if run.finding.story],
        "attackers": list(ATTACKERS),
        "attacks": list(attack_names()),
        "held_out": held,
        "trials": _TRIALS,
        "same_policy": file.policy.hash == certificate.policy_hash,
    }
    pictures = {
        "section": Markup() if assessment is None else section(replace(assessment, lab=None)),
        "findings": Markup() if tried is None else joined(findings(tried)),
    }
    more = ("--held-out",) if held else ()
    lines = (
        command("incrowd", "assess", name, "--policy", file.name),
        command("incrowd", "attack", name, "--policy", file.name, "--replay", *more),
    )
    return PageContent(content, pictures, lines, foremost(before, lab))


def _story(run: Any) -> dict[str, Any]:
    return {"attack": run.finding.attack, "attacker": run.attacker, "lines": list(run.finding.story)}


def _key(request: PageRequest, verb: str) -> str:
    folder = request.release()
    return f"{verb} {folder} {(folder / CERTIFICATE).stat().st_mtime_ns}"


def _job(request: PageRequest, verb: str) -> Job | None:
    return request.jobs.find(_key(request, verb))


def compare(request: PageRequest) -> Redirect:
    """Compare the release with the original rows; the ledger records the access."""
    file, folder = request.policy_file(), request.release()
    policy, name = file.policy, request.value("release")

    def work(tell: Tell) -> Assessment:
        released = replace(read_release(folder), name=name)
        with engine_of(policy.engine) as engine:
            original = open_rows(None, policy, engine=engine)
            record_look(policy, "assess")
            file.seen.add("before and after")
            assessment = assessed(released, engine.watched(original, tell), policy, engine)
        keep_assessment(policy, folder, assessment)
        return assessment

    request.job(_key(request, "assess"), "Comparing the release with the rows", work)
    return request.to("proof", release=name)


def run(request: PageRequest) -> Redirect:
    """Attack the release as others would: a look, recorded."""
    file, folder = request.policy_file(), request.release()
    policy, name = file.policy, request.value("release")
    attacker, chosen, trials = (
        request.value("attacker"),
        request.value("attack"),
        request.value("trials") or str(_TRIALS),
    )
    if not trials.isdigit() or not 0 < int(trials[:6]) <= 20_000:
        raise InvalidParameter("the number of people is a whole number up to 20,000.")
    order = AttackOrder((chosen,) if chosen else (), (attacker,) if attacker else ())
    held = any(isinstance(step, HoldOut) for step in walk(read_certificate(folder).steps))

    def work(_tell: Tell) -> AttackReport:
        inputs = AttackInput(folder, None, policy, sizes=(8, int(trials), None), held_out=held)
        file.seen.add("the attack lab")
        lab = attack(*inputs.opened(), order)
        inputs.keep(lab, lab.exceeding(inputs.thresholds({})))
        return lab

    request.jobs.forget(_key(request, "attack"))
    request.job(_key(request, "attack"), "Attacking the release", work)
    return request.to("proof", release=name)


PAGE = Page(
    "proof",
    "Before and after",
    "Information loss, disclosure risk and attacks on the release. Internal: computed from the rows.",
    show,
    {"compare": compare, "attack": run},
    step=8,
    needs=("policy", "release"),
)
