"""Publishing an answer: data, report and certificate appear together in a new folder, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.core.certificate import Certificate
from incrowd.engines.writers.sinks import Folders, staged
from incrowd.queries.answer import AnswerTable
from incrowd.workflows.ask.asking import Answered
from incrowd.workflows.release.publish import Destination, written

if TYPE_CHECKING:
    from incrowd.accounting.ledger.ledger import Ledger


def publish_answer(answered: Answered, ledger: Ledger, destination: Destination) -> Certificate:
    """Write an answer into a folder that anyone may have; return its certificate with the hashes of the files.

    The ledger learns that this certificate, too, came of the charge.
    """
    table, place = AnswerTable(answered.answer.to_arrow()), answered.certificate.ledger
    with staged(Folders(destination.folder)) as stage:
        certificate = written(answered.certificate, table, stage.public, destination)
        charge = next(ledger.entries(place.sequence - 1))
        ledger.conclude(charge, certificate.digest())
    return certificate
