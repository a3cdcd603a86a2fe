"""Verify: recompute guarantee, claims and numbers of a certificate independently, and inspect its files.

`incrowd.verifier` shares no code with the accountants, and a method's CHECK none with its algorithm.  With the policy,
the whole plan is recomputed and compared; with the ledger, the charge is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from incrowd.core.certificate import Certificate
from incrowd.core.codec import encode
from incrowd.core.steps.around import OutsideCode, StartFromModel, gate_of, own_steps, period_of, steps_around
from incrowd.core.steps.choices import LevelsByLook
from incrowd.core.steps.periods import ReadPeriod
from incrowd.core.steps.step import walk
from incrowd.engines.regular_file import identity_of, is_regular, open_regular
from incrowd.errors import IncrowdError
from incrowd.store.chain_entry import Anchor
from incrowd.verifier.check import Certified, CheckOutcome, Problem, failed, passed, undecided
from incrowd.verifier.files import REPORT, check_files, check_folder, is_present, placed, tables_of
from incrowd.verifier.judge import judge, statement_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.coarsen.steps import Parent
from incrowd.workflows.registry import admit, admitted, check_of
from incrowd.workflows.verify.signing import TrustedKeys, check_signature, files_of, public_key
from incrowd.workflows.verify.verification import ABOUT_ASSUMPTION, ABOUT_CODE, ABOUT_REPORT, Verification

if TYPE_CHECKING:
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.workflows.local.survey_file import SurveyFile
    from incrowd.workflows.policy.policy import Policy


class References(TypedDict, total=False):
    """What a certificate can be compared with besides its own files.

    `trusted` is the signer's public key, or several, `parent` the folder of the release that a coarser table was made
    from, `distribution` the package whose code may run, where a method is not one of incrowd's own.
    """

    ledger: Ledger | None
    trusted: TrustedKeys
    parent: Path | None
    policy: Policy | SurveyFile | None
    distribution: str | None


def verify(path: Path, data: Path | None = None, **held: Unpack[References]) -> Verification:
    """Check a certificate; the data is looked for beside it unless named, `held` is what it is compared with."""
    if (distribution := held.get("distribution")) is not None:
        admit(distribution)
    certificate, folder = read_certificate(path), path if path.is_dir() else path.parent
    files = (*placed(certificate, folder, data), folder / REPORT)
    before = list(map(identity_of, files))
    findings = [
        *check_files(certificate, folder, data),
        *_folder(certificate, path, (data, *files_of(held.get("trusted")))),
        *judge(certificate, check_of(certificate.method.name)),
        *_contents(certificate, folder, data),
        *_descent(certificate, placed(certificate, folder, data), held),
        *_outside(certificate),
    ]
    if Verification(certificate, tuple(findings)).passed:
        findings += _appearance(certificate, folder, data)
    findings += [
        *_policy(certificate, held.get("policy"), placed(certificate, folder, data)),
        *_ledger(certificate, held.get("ledger")),
        *_signature(certificate, held.get("trusted")),
        *(undecided(ABOUT_ASSUMPTION, text) for text in _assumed(certificate)),
    ]
    if list(map(identity_of, files)) != before:
        findings.append(failed("files", "a file was exchanged or changed while it was verified"))
    return Verification(certificate, tuple(findings))


def verify_named(folder: Path, policy: Path | None, ledger: str | None, trusted: Path | None) -> Verification:
    """Check a release against a policy by its file and a ledger by its address, as another process can be told."""
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.workflows.policy.policy import load_policy

    book = None if ledger is None else Ledger.open(ledger)
    same = None if policy is None else load_policy(policy)
    return verify(folder, ledger=book, policy=same, trusted=trusted)


def _outside(certificate: Certificate) -> Iterator[CheckOutcome]:
    """Compare the code of another distribution with the code that is installed here; nobody checked what it does."""
    steps = [step for step in certificate.steps if isinstance(step, OutsideCode)]
    outside = admitted(certificate.method.name)
    if outside is None and not steps:
        return
    if outside is None or steps != [outside.code]:
        yield failed(ABOUT_CODE, "the installed code is not the code that the certificate names")
    else:
        code = outside.code
        why = f"it depends on {code.distribution} {code.version}, the same code as here; incrowd did not check it"
        yield undecided(ABOUT_CODE, why)


def _folder(certificate: Certificate, path: Path, named: tuple[Path | None, ...]) -> Iterator[CheckOutcome]:
    if path.is_dir():
        files = [file for file in named if file is not None]
        yield check_folder(certificate, path, [file.name for file in files if file.resolve().parent == path.resolve()])


def _contents(certificate: Certificate, folder: Path, data: Path | None) -> Iterator[CheckOutcome]:
    """Look into the files, as the method says: which columns there are, and whether they keep what was guaranteed."""
    files = placed(certificate, folder, data)
    if not files or not all(is_present(file, data) for file in files):
        return
    try:
        yield from check_of(certificate.method.name).inspect(statement_of(certificate), files)
    except Exception as error:  # noqa: BLE001 - whatever a reader makes of a damaged file, the check has failed
        yield failed("contents of the file", f"the file cannot be counted ({type(error).__name__})")


def _appearance(certificate: Certificate, folder: Path, data: Path | None) -> Iterator[CheckOutcome]:
    """Where all else holds, look at what the files show beside their counts, and at the report."""
    from incrowd.workflows.verify.check_output import check_output

    files = placed(certificate, folder, data)
    if not files:
        return
    try:
        check = check_of(certificate.method.name)
        output = check.reopen(statement_of(certificate), files)
        yield from check_output(certificate, output, files, check.stated)
        yield from _report(certificate, output, folder)
    except Exception as error:  # noqa: BLE001 - whatever a reader makes of a damaged file, the check has failed
        yield failed("evidence", f"the file cannot be counted ({type(error).__name__})")


def _report(certificate: Certificate, output: object, folder: Path) -> Iterator[CheckOutcome]:
    """Render the report again; one that another version wrote may differ, and is not vouched for."""
    from incrowd.workflows.report.page import GENERATOR, public_report

    file = folder / REPORT
    if not is_regular(file):
        return
    bare = replace(certificate, outputs=tables_of(certificate), signature=None)
    with open_regular(file) as opened:
        page = opened.read().decode("utf-8")
    if page == public_report(bare, output):
        yield CheckOutcome(ABOUT_REPORT, None, "regenerated: identical")
    elif GENERATOR in page:
        yield CheckOutcome(ABOUT_REPORT, Problem("it is not the page of this certificate"), "")
    else:
        other = Problem("the enclosed report is not vouched for: another version wrote it", undecided=True)
        yield CheckOutcome(ABOUT_REPORT, other, "")


def _descent(certificate: Certificate, files: tuple[Path, ...], held: References) -> Iterator[CheckOutcome]:
    """Verify the parent release of a coarser table, and compare the table with it."""
    check, folder = check_of(certificate.method.name), held.get("parent")
    if not check.has_parent:
        if folder is not None:
            yield failed("parent", "this release has no parent: its steps name none")
        return
    if folder is None:
        yield undecided("parent", "its folder was not given: the table was not recomputed from it")
        return
    own = verify(folder, ledger=held.get("ledger"), trusted=held.get("trusted"))
    wrong, where = own.failure, folder if folder.is_dir() else folder.parent
    if wrong is not None:
        yield failed("parent", f"the parent does not verify ({wrong.about}: {wrong.why})")
        return
    try:
        parent = Certified(own.certificate, placed(own.certificate, where, None))
        problem = check.compare_parent(Certified(certificate, files), parent)
    except Exception as error:  # noqa: BLE001 - whatever a reader makes of a damaged file, the check has failed
        problem = Problem(f"the files cannot be compared ({type(error).__name__})")
    right = f"verified first ({own.verdict}); recomputed from its file, the table is identical"
    yield CheckOutcome("parent", problem, right)


def _policy(
    certificate: Certificate, policy: Policy | SurveyFile | None, files: tuple[Path, ...]
) -> Iterator[CheckOutcome]:
    """Recompute the whole plan and compare every leaf of it, and levels in the evidence with the hierarchies."""
    from incrowd.workflows.local.survey_file import SurveyFile
    from incrowd.workflows.verify.check_output import check_levels

    if policy is None:
        return
    survey = isinstance(policy, SurveyFile)
    if certificate.policy_hash != (policy.survey.id if isinstance(policy, SurveyFile) else policy.hash):
        yield failed("policy", f"this is not the {'survey' if survey else 'policy'} of the release")
        return
    if isinstance(policy, SurveyFile):
        problem = _unlike_survey(certificate, policy)
    else:
        problem = _unlike(certificate, policy)
        if problem is None and files and all(map(is_regular, files)):
            problem = check_levels(certificate, policy.schema, files)
    yield CheckOutcome("policy", problem, "the recomputed plan is identical")


def _unlike_survey(certificate: Certificate, file: SurveyFile) -> Problem | None:
    """Return a problem if a survey file does not give the plan of the certificate, else None."""
    plan, stated = file.survey.plan, (certificate.steps, certificate.guarantee, certificate.claims)
    same = (plan.steps, plan.guarantee, plan.claims) == stated and certificate.dataset.name == file.survey.name
    return None if same else Problem("the recomputed plan has other steps, guarantees or claims, or another name")


def _unlike(certificate: Certificate, policy: Policy) -> Problem | None:
    """Return a problem if a policy does not give the plan of the certificate, or cannot be planned here."""
    from incrowd.workflows.plan.preview.method import look_again
    from incrowd.workflows.query.recompute import recomputed_plan

    stated = (certificate.method.name, certificate.steps, certificate.guarantee, certificate.claims)
    columns = [{"name": c.name, "role": str(c.role), "type": str(c.type)} for c in policy.schema.everywhere]
    try:
        match certificate.method.name:
            case "question":
                made, columns = recomputed_plan(certificate, policy), []
            case "private look":
                made = look_again(certificate, policy)
            case "coarser table":
                made = Problem("a coarser table comes from a release: give it with --parent", undecided=True)
            case _:
                made = policy.plan
    except (IncrowdError, ValueError, TypeError):
        return Problem("it gives no plan")
    if isinstance(made, Problem):
        return made
    gate, planned = gate_of(certificate.steps), policy.gate
    if (gate is None) != (planned is None) or (planned and gate and not gate.follows(planned)):
        return Problem("the policy checks another consent, or none")
    if not _same_period(certificate, policy):
        return Problem("the policy has other periods, or none")
    made = replace(made, steps=own_steps(made.steps)).led_by(*steps_around(certificate.steps))
    same = (made.method, made.steps, made.guarantee, made.claims) == stated
    if not same or columns != encode(certificate.schema.columns):
        return Problem("the recomputed plan has other steps, guarantees, claims or columns")
    return _declared_otherwise(certificate, policy)


def _same_period(certificate: Certificate, policy: Policy) -> bool:
    """Whether a certificate reads a period of the policy's calendar, exactly where the policy has one."""
    step = period_of(certificate.steps)
    if step is None or policy.calendar is None:
        return step is None and (policy.calendar is None or certificate.method.name in ("question", "private look"))
    if certificate.method.name == "question":
        return step.periods is not None and step == ReadPeriod.among(policy.calendar, step.periods)
    planned = ReadPeriod.of(policy.calendar, step.label, policy.releases, policy.participations)
    return step == planned and step.label is not None


def _declared_otherwise(certificate: Certificate, policy: Policy) -> Problem | None:
    """Return a problem if dataset, people or period differ between certificate and policy, else None."""
    from incrowd.workflows.release.certify import dataset_of

    stated = certificate.dataset
    if stated != dataset_of(policy, stated.commitment, stated.together_with or ()):
        return Problem("the policy declares another name, version, period or people of the dataset")
    return None


def _ledger(certificate: Certificate, ledger: Ledger | None) -> Iterator[CheckOutcome]:
    if ledger is None:
        yield undecided("ledger", "no ledger was given: charge and later entries not checked")
        return
    try:
        problem = _charge(certificate, ledger)
    except IncrowdError as error:
        problem = str(error)
    place = certificate.ledger.sequence
    right = f"entry {place} is the charge of this release; the chain is whole"
    yield failed("ledger", problem) if problem else passed("ledger", right)


def _charge(certificate: Certificate, ledger: Ledger) -> str | None:
    """Return what is wrong with the charge of a release in its ledger, or None."""
    from incrowd.workflows.policy.ledger import look_problem, standing_at
    from incrowd.workflows.release.certify import accounting_of

    anchor = Anchor.from_json(encode(certificate.ledger))
    report = ledger.check(anchor)
    if not report.ok:
        return report.finding or "the chain is broken"
    id_, digest = _came_of(certificate)
    entry = next(ledger.entries(anchor.sequence - 1), None)
    paid = (
        [charge for charge in entry.charged if charge.guarantee == certificate.guarantee] if entry is not None else []
    )
    if entry is None or not paid or entry.body.get("release") != id_:
        return f"entry {anchor.sequence} is not the charge of this release"
    standing = standing_at(ledger, paid[0].dataset, anchor.sequence, entry.period)
    accounting = accounting_of(paid[0], standing, entry.period)
    if paid[0].dataset != certificate.dataset.name or accounting != certificate.accounting:
        return f"entry {anchor.sequence} has other amounts, or another dataset"
    for look in (step for step in walk(certificate.steps) if isinstance(step, LevelsByLook)):
        problem = look_problem(look, certificate.dataset.name, ledger)
        if problem is not None or look.entry >= anchor.sequence:
            return f"the levels are claimed to come from a private preview: {problem or 'its entry is later'}"
    for start in (step for step in certificate.steps if isinstance(step, StartFromModel)):
        if start.digest not in ledger.conclusions(start.release):
            return f"the model of {start.period} that it started from is not one of a release in this ledger"
    concluded = ledger.conclusions(id_)
    if digest not in concluded:
        return "the ledger does not record this certificate for the charge" if concluded else _OPEN
    return None


def _came_of(certificate: Certificate) -> tuple[str, str]:
    """Return the name and the digest of what was charged: a coarser table came of another release."""
    first = certificate.steps[0]
    if isinstance(first, Parent):
        return first.charged.id, first.charged.digest
    return certificate.id, certificate.digest()


_OPEN = "the ledger records no outcome of the charge: the release was interrupted, or not made here"


def _signature(certificate: Certificate, trusted: TrustedKeys) -> Iterator[CheckOutcome]:
    if certificate.signature is None:
        if not files_of(trusted):
            yield undecided("signature", "the certificate is not signed: origin not verified")
        else:
            for file in files_of(trusted):
                public_key(file)  # which refuses a file that holds none
            yield failed("signature", "a key was given, and the certificate is not signed")
        return
    problem = check_signature(certificate, trusted)
    if problem is not None:
        yield failed("signature", problem)
    elif not files_of(trusted):
        yield undecided("signature", "it is intact; verify elsewhere whose key it is")
    else:
        yield passed("signature", "signed by the given key")


def _assumed(certificate: Certificate) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for claim in certificate.claims for text in claim.assumed))
