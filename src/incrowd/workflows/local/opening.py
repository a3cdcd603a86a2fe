"""Opening: a survey is charged once, before anyone is asked; its certificate states the cost of each report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from incrowd.accounting.ledger.datasets import Declaration
from incrowd.core.certificate import Certificate, Columns, Dataset
from incrowd.engines.writers.sinks import Folders, staged
from incrowd.errors import LedgerUnavailable, Refused
from incrowd.verifier.files import CERTIFICATE
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.local.invitations import consent_place
from incrowd.workflows.local.survey_file import SurveyFile
from incrowd.workflows.policy.ledger import find_book, open_book
from incrowd.workflows.policy.ledger_place import state_folder
from incrowd.workflows.release.certify import PlanFacts
from incrowd.workflows.release.deliver import Destination, InFolder
from incrowd.workflows.release.perform import ChargeTarget
from incrowd.workflows.release.run import OpenedRows, ReleaseOrder, run
from incrowd.workflows.verify.verify import verify


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
    """Charge a survey and certify it; a survey that was opened before is checked and returned.

    The certificate lies beside the survey, in `.incrowd/surveys/`, under the digest of the published survey.  If it is
    lost, opening again charges again.
    """
    folder = state_folder(file.folder) / "surveys" / file.survey.id
    if (folder / CERTIFICATE).is_file():
        return OpenSurvey(file, _checked(file, folder), folder)
    place = consent_place(file)
    if place is not None:  # without registry and key nobody could be invited
        place.key()
        place.open()
    order = _order(file)
    folder.parent.mkdir(parents=True, exist_ok=True)
    delivery = InFolder[OpenedRows](Destination(folder, "csv"))
    published = run(order, partial(_without_rows, file), delivery)
    return OpenSurvey(file, published.release.certificate, folder)


def opened_survey(file: SurveyFile) -> OpenSurvey:
    """Return a survey that was opened before; one that was not is refused, and nothing is charged."""
    find_book(file)  # refuses a ledger that contradicts the survey's own
    folder = state_folder(file.folder) / "surveys" / file.survey.id
    if not (folder / CERTIFICATE).is_file():
        raise Refused(
            "this survey is not open, so nothing was collected. Open it with `incrowd local open`, or restore the file "
            "that was opened: another text, or another version of incrowd, makes another survey."
        )
    return OpenSurvey(file, _checked(file, folder), folder)


def _order(file: SurveyFile) -> ReleaseOrder:
    survey = file.survey
    facts = PlanFacts.of(survey.plan, survey.id)
    dataset = survey.people or survey.name
    target = ChargeTarget(dataset, facts.new_id())
    return ReleaseOrder(survey.plan, facts, target, Dataset(dataset), lambda _output: Columns((), ()))


@contextmanager
def _without_rows(file: SurveyFile) -> Iterator[OpenedRows]:
    """Open the ledger: nobody was asked yet, so there are no rows."""
    bond = DeclaredSurvey(Declaration(file.survey.people or file.survey.name, file.survey.unit, file.budget))
    yield OpenedRows(None, open_book(file), (bond,), None)


def publish_survey(opened: OpenSurvey, out: Path) -> None:
    """Copy survey and certificate into a new folder."""
    with staged(Folders(out, None)) as stage:
        for file in opened.folder.iterdir():
            shutil.copyfile(file, stage.public / file.name)


def _checked(file: SurveyFile, folder: Path) -> Certificate:
    """Return the certificate of an opened survey, if it verifies and the ledger holds its charge."""
    certificate = read_certificate(folder)
    verification = verify(folder, ledger=find_book(file))
    if not verification.passed or certificate.policy_hash != file.survey.id:
        wrong = verification.failure
        raise LedgerUnavailable(
            "this survey was opened before, but its certificate does not verify "
            f"({wrong.about if wrong else 'it is another survey'}): restore {folder.name} and the ledger from a copy."
        )
    return certificate
