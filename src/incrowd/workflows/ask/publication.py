"""Publication: an answer as files that anyone may have."""

from __future__ import annotations

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.certificate import Certificate
from incrowd.engines.writers.sinks import Folders, staged
from incrowd.queries.answer import AnswerTable
from incrowd.workflows.ask.asking import Answered
from incrowd.workflows.release.publish import Destination, write_files


def publish_answer(answered: Answered, ledger: Ledger, destination: Destination) -> Certificate:
    """Write an answer into a folder that anyone may have; return its certificate with the hashes of the files.

    The ledger learns that this certificate, too, came of the charge.
    """
    table, place = AnswerTable(answered.answer.to_arrow()), answered.certificate.ledger
    with staged(Folders(destination.folder)) as stage:
        certificate = write_files(answered.certificate, table, stage.public, destination)
        charge = next(ledger.entries(place.sequence - 1))
        ledger.conclude(charge, certificate.digest())
    return certificate
