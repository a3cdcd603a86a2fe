"""Opening: a survey is charged once, before anyone is asked; its certificate says what each report costs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from incrowd.accounting.ledger.datasets import Declaration
from incrowd.core.certificate import Certificate, Columns, Dataset
from incrowd.engines.writers.sinks import Folders, staged
from incrowd.errors import LedgerUnavailable
from incrowd.methods.local.survey.definition import UNIT
from incrowd.verifier.files import CERTIFICATE
from incrowd.workflows.local.invitations import consent_place
from incrowd.workflows.local.survey_file import SurveyFile
from incrowd.workflows.policy.ledger import find_book, open_book
from incrowd.workflows.registry import method_version
from incrowd.workflows.release.certify import Stated, certify
from incrowd.workflows.release.perform import ChargeTarget, concluding, perform
from incrowd.workflows.release.publish import Destination, write_files
from incrowd.workflows.verify.verify import read_certificate, verify


@dataclass(frozen=True)
class DeclaredSurvey:
    """The people of a survey as a dataset: nothing else is bound to it, since no rows are held."""

    declaration: Declaration
    bound: bool = True

    def bind(self) -> None:
        """Bind nothing."""


@dataclass(frozen=True)
class OpenSurvey:
    """A survey that was charged: its file, its certificate, and the folder in which both are published."""

    file: SurveyFile
    certificate: Certificate
    folder: Path


def open_survey(file: SurveyFile) -> OpenSurvey:
    """Charge a survey and certify it, unless that was done: then return what was certified.

    The certificate lies beside the survey, in `.incrowd/surveys/`, under the digest of what is published.  Should it be
    lost, opening again charges again.
    """
    folder = file.folder / ".incrowd" / "surveys" / file.survey.id
    if (folder / CERTIFICATE).is_file():
        return OpenSurvey(file, _checked(file, folder), folder)
    place = consent_place(file)
    if place is not None:  # without registry and key nobody could be invited
        place.key()
        place.open()
    plan, ledger = file.survey.plan, open_book(file)
    stated = Stated(method_version(plan.method), file.survey.id, plan.guarantee, plan.claims, plan.steps)
    id_ = stated.fresh_id()
    bond = DeclaredSurvey(Declaration(file.survey.name, UNIT, file.budget))
    payer = ChargeTarget(file.survey.name, id_, bonds=(bond,))
    with concluding(ledger, plan, payer, (folder / CERTIFICATE).exists):
        performed = perform(plan, None, ledger, payer)
        bare = certify(id_, stated, performed, Dataset(file.survey.name), Columns((), ()))
        folder.parent.mkdir(parents=True, exist_ok=True)
        with staged(Folders(folder, None)) as stage:
            certificate = write_files(bare, performed.output, stage.public, Destination(folder, "csv"))
            ledger.conclude(performed.entry, certificate.digest())
    return OpenSurvey(file, certificate, folder)


def publish_survey(opened: OpenSurvey, out: Path) -> None:
    """Copy what was certified into a folder that is not there yet."""
    with staged(Folders(out, None)) as stage:
        for each in opened.folder.iterdir():
            shutil.copyfile(each, stage.public / each.name)


def _checked(file: SurveyFile, folder: Path) -> Certificate:
    """Return the certificate of a survey that was opened, if it is that, and its ledger holds the charge."""
    certificate = read_certificate(folder)
    found = verify(folder, ledger=find_book(file))
    if not found.passed or certificate.policy_hash != file.survey.id:
        wrong = found.failure
        raise LedgerUnavailable(
            "this survey was opened before, but its certificate does not verify "
            f"({wrong.about if wrong else 'it is another survey'}): restore {folder.name} and the ledger from a copy."
        )
    return certificate
