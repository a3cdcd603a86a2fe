"""Every error raised on purpose: what was asked, why not, what to do; never a value from the data."""

from __future__ import annotations

from typing import ClassVar


class IncrowdError(Exception):
    """The root of all errors raised on purpose; `exit_code` is what the command line returns."""

    exit_code: ClassVar[int] = 2


class InvalidParameter(IncrowdError, ValueError):
    """A parameter is outside the range in which it means anything."""


class Infeasible(InvalidParameter):
    """No value of the wanted parameter can keep the guarantee that was asked for."""


class UnknownLoss(IncrowdError):
    """A loss of a class that no accountant here understands; refused rather than guessed."""


class UnsupportedVersion(IncrowdError):
    """A document written by a version whose meaning is not known here."""


class MixedUnits(IncrowdError):
    """Guarantees made to different units of privacy cannot be added up."""


class Refused(IncrowdError):
    """The request was understood and the answer is no."""

    exit_code: ClassVar[int] = 1


class BudgetExceeded(Refused):
    """The charge would exceed what the owner of the data granted."""


class QuestionRefused(Refused):
    """A question was understood, and no noise could make its answer safe; the message names what can be asked."""


class ProbablyEmpty(Refused):
    """By public numbers alone hardly a row would be left; nothing was charged, and `--anyway` releases all the same."""


class DoesNotCompose(Refused):
    """Crowd-blending and syntactic guarantees do not add up; a second one would break the first."""


class SampleReused(DoesNotCompose):
    """Two releases from one secret sample can betray who is in it."""


class AccessDenied(Refused):
    """Whoever asks is not known here, or may not do this."""


class ServerUnavailable(IncrowdError):
    """A server does not answer, is busy, or had a fault; whether something was charged can be seen in its budget."""


class LedgerUnavailable(IncrowdError):
    """The ledger cannot be opened or written; nothing is released without it."""


class LedgerMissing(LedgerUnavailable):
    """There is no ledger at an address; one that cannot be read, is locked or has another version is not missing."""


class LedgerCorrupted(LedgerUnavailable):
    """The ledger's chain is broken: an entry was changed, removed or cut off."""


class SourceUnreadable(IncrowdError):
    """A source is missing, of an unknown format, or not what its format demands."""


class SourceChanged(SourceUnreadable):
    """A source changed while it was in use: positions of rows would no longer mean the same rows."""


class SourceUnavailable(SourceUnreadable):
    """The rows of a dataset cannot be asked about now, whatever the cause; nothing was charged."""


class SourceInvalid(IncrowdError):
    """The rows of a source do not fit what was declared about them; the message names lines, never values."""


class SourceMisspelled(SourceInvalid):
    """Numbers or dates of a source are spelled in another way than was declared; the message names the keys."""


class UnknownColumn(IncrowdError):
    """A column was asked for that the source does not have."""


class PackageMissing(IncrowdError):
    """An optional package is needed for this and not installed."""


class ClusterUnavailable(IncrowdError):
    """No cluster can do the work: nothing to start it with, nobody answers, or the workers have other versions."""


class JobFailed(IncrowdError):
    """A job on the cluster failed, for want of memory, disk or workers; nothing of it is published."""


class QuestionFailed(IncrowdError):
    """A question could not be answered to its end; its cost is not refunded."""


class QuestionStopped(QuestionFailed):
    """A question took longer than it may and was stopped; its cost is not refunded."""


class OutputUnavailable(IncrowdError):
    """The output cannot be written where it was asked for; nothing of it appeared."""


class Interrupted(IncrowdError):
    """A command was stopped by Ctrl-C or a signal; the message says what was charged and is not refunded."""

    exit_code: ClassVar[int] = 130


class GuaranteeBroken(IncrowdError):
    """What was about to be published does not keep its guarantee; nothing appears, and the charge is not refunded."""

    exit_code: ClassVar[int] = 1


class NotRefunded(str):
    """The sentence that an error after a charge carries: nothing was released, and the charge is not refunded.

    As a note of an error that is not ours it is known by its class, so that it alone is shown: other notes may hold
    data.
    """

    __slots__ = ()
