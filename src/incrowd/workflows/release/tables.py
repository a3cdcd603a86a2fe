"""Release of a table: a policy and a file or a frame in, a certified release out, in memory or in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.accounting.ledger.periods import PeriodCharge
from incrowd.core.certificate import Certificate
from incrowd.core.plan import Plan
from incrowd.core.rounding import exact
from incrowd.core.steps.around import ChosenByScores, Compare, HoldOut, Rerun, period_of
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.step import Step, walk
from incrowd.core.table import Opened, Progress, Table
from incrowd.core.words import counted
from incrowd.engines.writers.sinks import Folders
from incrowd.errors import InvalidParameter
from incrowd.workflows.consent.participants import Participants, keep_participants
from incrowd.workflows.consent.preconditions import require_lineage
from incrowd.workflows.consent.snapshot import ConsentSnapshot, admit
from incrowd.workflows.plan.forecast import declared_rows, require_useful, warnings_of
from incrowd.workflows.policy.internal import FOR_HOLDER, TOOK_PART, internal_folder, write_private
from incrowd.workflows.policy.ledger import failed_before, find_book, require_state
from incrowd.workflows.policy.policy import Policy, PolicyLike
from incrowd.workflows.registry import MODELS
from incrowd.workflows.release.deliver import (
    IN_MEMORY,
    Destination,
    InFolder,
    PublishedRelease,
    Released,
    check_form,
    write_internal,
)
from incrowd.workflows.release.differences import (
    Earlier,
    Written,
    earlier_releases,
    hold_against,
    is_form,
    other_period,
    require_linked,
    require_none_since,
)
from incrowd.workflows.release.keyed import once
from incrowd.workflows.release.outsiders import keep_held_out
from incrowd.workflows.release.prepare import Background, PolicyOrder, PreparedTable, load_for, prepared_table
from incrowd.workflows.release.prior import earlier_model
from incrowd.workflows.release.recover import require_none_hidden
from incrowd.workflows.release.run import OpenedRows, PendingRelease, run

if TYPE_CHECKING:
    from incrowd.methods.synthesis.marginals.synthetic_model import SyntheticModel
    from incrowd.workflows.release.members import Members


@dataclass(frozen=True)
class ReleaseTerms:
    """What the data holder adds to a policy for one release: a share of people held out, `anyway`, and a key.

    With `anyway`, a release that is probably empty or cannot be compared with an earlier one is made all the same.  A
    release that is tried again with the same `key` is the same release.
    `before_charge` is called with notes on the rows once everything is checked that can be refused: nothing is spent
    yet.  `searched` says
    that a search chose the policy's parameters by scores of the rows.  `period` is the one that is charged, where the
    policy was read for one.
    """

    hold_out: Fraction | None = None
    anyway: bool = False
    key: str | None = None
    before_charge: Callable[[Sequence[str]], None] | None = None
    searched: bool = False
    period: PeriodCharge | None = None


AS_IT_IS = ReleaseTerms()


def share_of(text: str | None) -> Fraction | None:
    """Return a share that is written as a number or in percent.

    >>> share_of("10%"), share_of("0.1")
    (Fraction(1, 10), Fraction(1, 10))
    """
    if text is None:
        return None
    number = exact(text.removesuffix("%"), "the share that is held out")
    return HoldOut(number / 100 if text.endswith("%") else number).share


def release(data: object, policy: PolicyLike, *, anyway: bool = False) -> Released:
    """Release a file or a frame under a policy, in memory: the result and its certificate.

    A release that is probably empty, by public numbers, or by a consent registry that lost entries, is refused before
    the charge unless `anyway` is set.
    """
    read = load_for(policy, data)
    if not anyway:
        require_useful(read)
    if read.linked:
        return Released(*_linked().linked_in_memory(data, read, ReleaseTerms(anyway=anyway)))
    return Released(*release_in_memory(data, read, terms=ReleaseTerms(anyway=anyway)))


def _linked() -> Any:
    from incrowd.workflows.release import linked

    return linked


@dataclass(frozen=True)
class Synthesized(Released):
    """A release of synthetic rows in memory, with its certificate and the model that the rows were drawn from."""

    @property
    def model(self) -> SyntheticModel:
        """The model: `model.sample(n)` draws rows again and again, at no cost."""
        model: SyntheticModel = self.result.model
        return model


def synthesize(data: object, policy: PolicyLike) -> Synthesized:
    """Release a model of a file or a frame under a policy, in memory: charged once, sampled as often as you like."""
    read = load_for(policy, data)
    if read.plan.method not in MODELS:
        raise InvalidParameter(
            f"a model is made by the methods {' and '.join(MODELS)}, and the policy says {read.plan.method!r}. "
            "Nothing was charged."
        )
    return Synthesized(*release_in_memory(data, read))


def release_in_memory(
    data: object,
    policy: Policy,
    plan: Plan | None = None,
    progress: Progress | None = None,
    terms: ReleaseTerms = AS_IT_IS,
) -> tuple[Any, Certificate]:
    """Charge a policy's plan, or another plan for its rows, and carry it out; return the output and its certificate."""
    background = Background(find_book(policy), admit(policy, data), period=terms.period)
    if not terms.anyway:
        require_linked(policy, earlier_releases(policy, background.ledger, anyway=True))
        require_lineage(policy, background.ledger, background.consent)
    chosen = policy.plan.led_by(*selected(policy, background, terms)) if plan is None else plan
    order = PolicyOrder.of(chosen, policy, background)
    return run(order, partial(prepared_table, order, data, progress), IN_MEMORY)


def release_to(
    data: object,
    policy: PolicyLike,
    destination: Destination,
    progress: Progress | None = None,
    terms: ReleaseTerms = AS_IT_IS,
) -> PublishedRelease:
    """Release a file or a frame into a folder: data, report and certificate appear together, or not at all.

    Where `destination` names a table of a database, it holds the same rows and appears right after the folder.  A
    release without an ε is compared with earlier ones of the same people first.  With a key in `terms`, a release that
    was made before is returned as it is.
    """
    read = load_for(policy, data)
    if destination.address is not None:
        return _uploaded(data, read, destination, progress, terms)

    def make(digest: str | None) -> PublishedRelease:
        return _release_to(data, read, destination, progress, replace(terms, key=digest))

    return once(read, destination, terms.key, make)


def _uploaded(
    data: object, read: Policy, destination: Destination, progress: Progress | None, terms: ReleaseTerms
) -> PublishedRelease:
    from incrowd.workflows.release.upload import uploaded

    if destination.table is not None:
        raise InvalidParameter("a release goes to an address or into a table of a database: name one of them.")

    def make(folder: Path) -> PublishedRelease:
        return release_to(data, read, replace(destination, folder=folder), progress, terms)

    return uploaded(read, destination.address or "", terms.key, make)


def _release_to(
    data: object, read: Policy, destination: Destination, progress: Progress | None, terms: ReleaseTerms
) -> PublishedRelease:
    if not terms.anyway:
        require_useful(read)
    if read.linked:
        published: PublishedRelease = _linked().release_linked(data, read, destination, progress, terms)
        return published
    order = _order(read, data, terms)
    order = replace(order, target=replace(order.target, key=terms.key))
    hidden = require_none_hidden(read, order.background.ledger, destination.place)
    delivery = _delivery(order, destination)
    warnings = warnings_of(read, order.facts.claims)
    published = run(order, partial(_checked, order, data, progress, terms), delivery)
    return replace(published, notes=(*published.notes, *warnings, *hidden))


_FEW = Fraction(1, 20)
"""The share of the rows below which a release says how few it holds."""


def _few_retained(policy: Policy, certificate: Certificate, output: Any, source: Opened) -> Iterator[str]:
    """Say that almost all rows were suppressed, by public numbers: the rows that were released and that are declared.

    How many rows the source has is private where there is an ε, and the data holder's to know where there is none.
    """
    private = Decimal(certificate.accounting.spent.epsilon).is_finite()
    rows = declared_rows(policy) or (None if private else getattr(source, "rows", None))
    if rows is None or policy.plan.smallest_class is None or len(output.parts) > 1:
        return
    rates = [step.rate for step in walk(policy.plan.steps) if isinstance(step, SecretSample)]
    expected = round(rows * min(rates, default=Fraction(1)))
    if len(output) < _FEW * expected:
        yield (
            f"almost nothing is left: {counted(len(output), 'row')} of about {expected:,}"
            f"{' that are sampled' if rates else ''}. Most combinations are too rare, or the table has fewer rows "
            "than the policy declares: choose coarser levels, fewer columns or a smaller k."
        )


@contextmanager
def _checked(
    order: PolicyOrder, data: object, progress: Progress | None, terms: ReleaseTerms
) -> Iterator[PreparedTable]:
    """Check all that can be refused, the charge included, and say so before it is made."""
    with prepared_table(order, data, progress, terms.hold_out) as prepared:
        before_charge(order, prepared, terms, prepared.notes)
        yield prepared


def before_charge(order: PolicyOrder, prepared: OpenedRows, terms: ReleaseTerms, notes: Sequence[str]) -> None:
    """Refuse what the ledger would refuse, and then do what the caller wants done before anything is spent."""
    if terms.before_charge is None:
        return
    declarations = [bond.declaration for bond in prepared.bonds]
    guarantees = {order.target.dataset: order.plan.guarantee}
    prepared.ledger.preview(guarantees, order.target.analyst, declarations, order.target.period)
    terms.before_charge(notes)


def _order(policy: Policy, data: object, terms: ReleaseTerms) -> PolicyOrder:
    """Return the release, with the steps that it has besides those of its method."""
    ledger = find_book(policy)
    earlier = earlier_releases(policy, ledger, anyway=terms.anyway)
    if not terms.anyway:
        require_linked(policy, earlier)
    model = earlier_model(policy, ledger)
    background = Background(ledger, admit(policy, data), earlier, terms.period, model, terms.anyway)
    start = () if background.model is None else (background.model.step,)
    steps = (*held_out_steps(terms), *selected(policy, background, terms), *start, *_compared(policy, earlier))
    order = PolicyOrder.of(policy.plan.led_by(*steps), policy, background)
    if not terms.anyway:
        require_lineage(policy, ledger, background.consent)
    return order


def _compared(policy: Policy, earlier: Sequence[Earlier]) -> Iterator[Step]:
    """Yield the step that compares a release with earlier ones, where there are some."""
    own = period_of(policy.plan.steps)
    before = [period_of(release.certificate.steps) for release in earlier if release.certificate is not None]
    if earlier:
        yield Compare(True if any(other_period(one, own) for one in before) else None)


def _delivery(order: PolicyOrder, destination: Destination) -> InFolder[PreparedTable]:
    """Refuse, before anything is charged, a folder or a format that the release cannot have."""
    require_state(order.policy)
    schema = order.policy.schema
    titles = {column.name: column.label for column in schema.released if column.label is not None}
    delivery = InFolder(
        replace(destination, titles=titles),
        internal_folder(order.policy, order.id),
        partial(_accompany, order, destination.place),
    )
    destination.check(delivery.folders, schema)
    check_form(destination.form, order.plan.method)
    return delivery


def held_out_steps(terms: ReleaseTerms) -> Iterator[Step]:
    """Yield the step that holds people out, if any are."""
    if terms.hold_out is not None:
        yield HoldOut(terms.hold_out)


def selected(policy: Policy, background: Background, terms: ReleaseTerms) -> Iterator[Step]:
    """Yield the steps that say that a release may have been selected from several runs."""
    if failed_before(policy, background.ledger):
        yield Rerun()
    if terms.searched:
        yield ChosenByScores()


def _accompany(
    order: PolicyOrder, folder: Path, made: PendingRelease[PreparedTable], certificate: Certificate, stage: Folders
) -> tuple[str, ...]:
    """Compare what was written with earlier releases, and write what only the data holder may know."""
    policy, background, prepared = order.policy, order.background, made.opened
    table = Table(policy.schema, prepared.reading, prepared.engine)
    members = _members(policy, certificate, stage.public, table)
    written = Written(certificate, stage.public, order.plan.smallest_class, members, background.anyway)
    if not background.anyway:
        require_none_since(policy, prepared.ledger, background.earlier)
    notes = hold_against(written, background.earlier, policy)
    people = _participants(policy, certificate, table, background.consent)
    source = {"source": prepared.source.address, "read as": dict(prepared.source.settings)}
    internal = write_internal(stage, order, folder, prepared.key, source)
    keep_participants(internal, people)
    if members is not None:
        from incrowd.workflows.release.members import keep_members

        keep_members(internal, members)
    if prepared.held_out is not None:
        keep_held_out(prepared.held_out, internal)
    holder = getattr(made.output, "holder", None) or {}
    if prepared.people is not None:
        holder = {**holder, TOOK_PART: {"label": policy.period, **prepared.people.to_json()}}
    if holder:
        write_private(internal / FOR_HOLDER, holder)
    stages = getattr(made.output, "stages", ())
    if stages:
        from incrowd.workflows.report.steps_page import keep_steps

        keep_steps(internal, stages, made.output.quasi)
    return (*prepared.notes, *notes, *_few_retained(policy, certificate, made.output, prepared.source))


def _members(policy: Policy, certificate: Certificate, folder: Path, table: Table) -> Members | None:
    """Return who is in which cell of a release without an ε of one period; the module was loaded before the charge."""
    if policy.period is None or not is_form(policy.plan.guarantee):
        return None
    from incrowd.workflows.release.members import members_in

    return members_in(policy, certificate, folder, table)


def _participants(
    policy: Policy, certificate: Certificate, table: Table, consent: ConsentSnapshot | None
) -> Participants | None:
    """Return who takes part, where people decide: the module was loaded before the charge, for `require_crowds`."""
    if consent is None:
        return None
    from incrowd.workflows.consent.changes import participants

    return participants(policy, certificate, table, consent)
