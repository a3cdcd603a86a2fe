"""Every error raised on purpose: what happened, why, what to do; never a value from the data."""

from __future__ import annotations

from typing import ClassVar


class IncrowdError(Exception):
    """The root of all errors raised on purpose; `exit_code` is what the command line returns."""

    exit_code: ClassVar[int] = 2


class InvalidParameter(IncrowdError, ValueError):
    """A parameter is outside the range in which it means anything."""


class Infeasible(InvalidParameter):
    """No value of the parameter to solve for gives the required guarantee."""


class UnknownLoss(IncrowdError):
    """A loss of a class that the accountant does not know; refused rather than guessed."""


class UnsupportedVersion(IncrowdError):
    """A document of a version that this incrowd does not read."""


class MixedUnits(IncrowdError):
    """Guarantees made to different units of privacy cannot be added up."""


class Refused(IncrowdError):
    """The request is valid but refused."""

    exit_code: ClassVar[int] = 1


class BudgetExceeded(Refused):
    """The charge would exceed the privacy budget."""


class QueryRefused(Refused):
    """The query is valid, but no noise could protect its answer; the message names what can be queried."""


class ProbablyEmpty(Refused):
    """By public numbers alone the output would be nearly empty; nothing was charged, and `--force` releases it."""


class DoesNotCompose(Refused):
    """Crowd-blending and syntactic guarantees do not add up; a second one would break the first."""


class SampleReused(DoesNotCompose):
    """Two releases from one secret sample can reveal who is in it."""


class LimitExceeded(Refused):
    """Reading a file took more time or memory than a file of its size may; `--no-limits` lifts that for own data."""


class ReaderCrashed(Refused):
    """The process that read a file ended in a crash: the file is damaged, or made to do this."""


class AccessDenied(Refused):
    """The user is unknown, or has no permission for this."""


class ServerUnavailable(IncrowdError):
    """A server does not answer, is busy, or had a fault; whether something was charged can be seen in its budget."""


class LedgerUnavailable(IncrowdError):
    """The ledger cannot be opened or written; nothing is released without it."""


class LedgerMissing(LedgerUnavailable):
    """There is no ledger at an address; one that cannot be read, is locked or has another version is not missing."""


class LedgerMoved(LedgerUnavailable):
    """The ledger was moved to another place: what remains of a budget is there, and nothing is charged here."""


class LedgerLocked(LedgerUnavailable):
    """Another process held the ledger for too long; nothing is wrong with it."""


class LedgerCorrupted(LedgerUnavailable):
    """The ledger's chain is broken: an entry was changed or removed, or the chain was truncated."""


class SourceUnreadable(IncrowdError):
    """A source is missing, has an unknown format, or violates its format."""


class SourceChanged(SourceUnreadable):
    """A source changed while it was in use: row positions no longer identify the same rows."""


class SourceUnavailable(SourceUnreadable):
    """The rows of a dataset cannot be queried now; nothing was charged."""


class SourceInvalid(IncrowdError):
    """The rows of a source violate their declaration; the message names lines, never values."""


class SourceMisspelled(SourceInvalid):
    """Numbers or dates of a source are not written as declared; the message names the keys."""


class UnknownColumn(InvalidParameter):
    """The source does not have a requested column."""


class UnknownTable(InvalidParameter):
    """A query names a table that is not there, or not for this user."""


class PackageMissing(IncrowdError):
    """An optional package is needed for this and not installed."""


class ClusterUnavailable(IncrowdError):
    """No cluster can do the work: it cannot be started, does not answer, or its workers have other versions."""


class JobFailed(IncrowdError):
    """A job on the cluster failed for lack of memory, disk or workers; nothing was published."""


class QueryFailed(IncrowdError):
    """A query failed before its answer was complete; its cost is not refunded."""


class QueryStopped(QueryFailed):
    """A query exceeded its time limit and was stopped; its cost is not refunded."""


class OutputUnavailable(IncrowdError):
    """The output cannot be written to its target; nothing was published."""


class PrintingFailed(IncrowdError):
    """Standard output cannot be written, such as a file on a full disk; what was released or charged stands."""


class Interrupted(IncrowdError):
    """A command was stopped by Ctrl-C or a signal; the message names what was charged and is not refunded."""

    exit_code: ClassVar[int] = 130


class GuaranteeBroken(IncrowdError):
    """The output does not keep its guarantee; nothing is published, and the charge is not refunded."""

    exit_code: ClassVar[int] = 1


class NotRefunded(str):
    """The sentence that an error after a charge carries: nothing was released, and the charge is not refunded.

    As a note of an error that is not ours it is known by its class, so that it alone is shown: other notes may hold
    data.
    """

    __slots__ = ()


class RowsLeftOut(UserWarning):
    """Rows that take no part in a release, or keys that lead to two rows; said to the data holder before the charge."""
