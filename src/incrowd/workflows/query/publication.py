"""Publication: answers as files that anyone may have."""

from __future__ import annotations

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.certificate import Certificate
from incrowd.engines.writers.sinks import Folders, staged
from incrowd.queries.answer import AnswerTables
from incrowd.workflows.query.request import Answered, AnsweredTogether
from incrowd.workflows.release.deliver import Destination, write_files


def publish_answer(answered: Answered | AnsweredTogether, ledger: Ledger, destination: Destination) -> Certificate:
    """Write what was answered into a folder that anyone may have; return its certificate with the hashes of the files.

    Answers that were paid for as one have a file each.  The ledger learns that this certificate, too, came of the
    charge.
    """
    answers = answered.different if isinstance(answered, AnsweredTogether) else (answered.answer,)
    place = answered.certificate.ledger
    with staged(Folders(destination.folder)) as stage:
        certificate = write_files(answered.certificate, AnswerTables(answers), stage.public, destination)
        charge = next(ledger.entries(place.sequence - 1))
        ledger.conclude(charge, certificate.digest())
    return certificate
