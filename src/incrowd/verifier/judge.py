"""Judge: whether a certificate's parts agree: steps, guarantee, claims, recomputed numbers, amounts and limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from incrowd.core.certificate import Amounts, Certificate, meaning_digest
from incrowd.core.claims import privacy
from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Concentrated, Private
from incrowd.core.domain import Type
from incrowd.core.loss import RobustlySampled, Sequence
from incrowd.core.schema import Role
from incrowd.core.statement import Statement
from incrowd.core.steps.around import Compare, StartFromModel, gate_of, own_steps, period_of, steps_around
from incrowd.core.steps.rows import KeepRows, Recode, keeps_rows_of
from incrowd.core.steps.step import ClaimBasis, claims_of, fold
from incrowd.core.unit import Adjacency, Kind
from incrowd.errors import IncrowdError
from incrowd.verifier.check import Check, CheckOutcome, Problem, in_order
from incrowd.verifier.slow_accountant import concentration, derive
from incrowd.verifier.slow_accountant.crowds import TOLERANCE, smooth_delta, suppression_floor, theorem1_delta, theorem2

DERIVED = (privacy.Private, privacy.SampledCrowd, privacy.Surveyed, privacy.Concentrated)
"""Claims whose numbers follow from the loss of the guarantee; those of other claims a method's own check derives."""
_NOT_DERIVED = Problem("its numbers are not recomputed here", undecided=True)
_TOO_MANY = Problem("there are too many crowds to try each one; the claim was not recomputed", undecided=True)
_REPLACED = Problem("no tried pair of crowds breaks it; the proof that none can was not recomputed", undecided=True)


def check_numbers(claim: Claim, basis: ClaimBasis) -> Problem | None:
    """Return a problem if a claim's number does not follow from the guarantee's loss, or could not be derived.

    What a guarantee costs is not stated below what is derived; a published formula is stated as it is.
    """
    match claim:
        case privacy.PurePrivacy():
            return _below(claim.epsilon, Fraction(0), basis)
        case privacy.ApproximatePrivacy() | privacy.ZeroKnowledge() | privacy.RobustZeroKnowledge():
            return _below(claim.epsilon, claim.delta, basis)
        case privacy.Concentrated():
            return _concentrated(claim.rho, basis)
        case privacy.PublishedTheorem():
            return _published(claim)
        case privacy.Smooth():
            return _unlike(claim.delta, smooth_delta(claim.k, claim.rate, float(claim.epsilon)), "delta")
        case privacy.RobustTheorem():
            return _robust(claim, basis)
    return None


def _below(epsilon: Decimal | Fraction, delta: Fraction, basis: ClaimBasis) -> Problem | None:
    """Return a problem if a stated δ is below the derived one, or if only a part of what can happen could be tried."""
    derived = derive(basis.guarantee.loss, basis.unit, epsilon, delta)
    if derived is None:
        return _NOT_DERIVED
    if derived.delta > float(delta) * TOLERANCE:
        least = "" if derived.whole else "at least "
        return Problem(
            f"at epsilon {float(epsilon):.6g} its delta is {least}{derived.delta:.6g}, but the claim says "
            f"{float(delta):.6g}"
        )
    if derived.whole:
        return None
    return _REPLACED if basis.unit.adjacency is Adjacency.REPLACE else _TOO_MANY


def _concentrated(rho: Fraction, basis: ClaimBasis) -> Problem | None:
    needed = concentration(basis.guarantee.loss)
    if needed is None:
        return _NOT_DERIVED
    return Problem(f"its rho is {float(needed):.6g} at least") if float(rho) * TOLERANCE < float(needed) else None


def _published(claim: privacy.PublishedTheorem) -> Problem | None:
    epsilon = float(claim.epsilon)
    derived = theorem1_delta(claim.k, claim.rate, epsilon)
    if derived is not None:
        return _unlike(claim.delta, derived, "delta")
    least = suppression_floor(claim.k, claim.rate, epsilon)
    return Problem(f"its delta is at least {least:.6g}") if least > claim.delta * TOLERANCE else _TOO_MANY


def _robust(claim: privacy.RobustTheorem, basis: ClaimBasis) -> Problem | None:
    loss = basis.guarantee.loss
    if not isinstance(loss, RobustlySampled):
        return Problem("its theorem assumes a biased sample, but the guarantee has none")
    epsilon, delta = theorem2(loss)
    return _unlike(claim.epsilon, epsilon, "epsilon") or _unlike(claim.delta, delta, "delta")


def _unlike(claimed: float, derived: float, name: str) -> Problem | None:
    """Return a problem if a number is not the formula's, from above or from below."""
    near = derived <= claimed * TOLERANCE and claimed <= derived * TOLERANCE
    return None if near else Problem(f"its {name} is {derived:.6g} by the formula, but the claim says {claimed:.6g}")


_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, IncrowdError)
"""What code makes of values that have another form than it expects: the certificate is refused, not the check."""


def statement_of(certificate: Certificate) -> Statement:
    """Return what a certificate says of its method's own steps, with the numbers that its claims state."""
    basis = replace(_basis(certificate), steps=own_steps(certificate.steps))
    declared = certificate.schema.columns
    roles, types = ({column.name: getattr(column, name) for column in declared} for name in ("role", "type"))
    released, period = certificate.schema.released, period_of(certificate.steps)
    start = next((step for step in steps_around(certificate.steps) if isinstance(step, StartFromModel)), None)
    cliques = () if start is None else start.cliques
    return Statement(basis, certificate.claims, released, certificate.evidence, roles, types, period, cliques)


def _basis(certificate: Certificate) -> ClaimBasis:
    return ClaimBasis(certificate.guarantee, certificate.steps, numbers_of(certificate.claims))


def numbers_of(claims: tuple[Claim, ...]) -> dict[str, object]:
    """Return the numbers that claims state, under the names by which a plan knows them; the first one counts."""
    numbers: dict[str, object] = {}
    for claim in claims:
        for field, name in claim.numbers.items():
            numbers.setdefault(name, getattr(claim, field))
    return numbers


def judge(certificate: Certificate, check: Check) -> Iterator[CheckOutcome]:
    """Recompute guarantee and claims from the steps and compare them; then recompute each number independently."""
    statement = statement_of(certificate)
    named = "it matches claims, steps, guarantee and policy"
    wrong = None if certificate.names_itself() else Problem("claims, steps, guarantee or policy do not match this ID")
    yield CheckOutcome("id", wrong, named)
    yield CheckOutcome("glossary", _meaning(certificate), "its kinds, keys and fields have the same meaning here")
    yield CheckOutcome("free text", _free_text(certificate), "there is none beside names that the policy declares")
    whole = replace(statement, basis=_basis(certificate))
    yield CheckOutcome("steps", check_steps(whole, check), "they give the guarantee")
    yield CheckOutcome("guarantee", _guarantee(certificate), "recomputed from the steps: identical")
    yield CheckOutcome("claims", _claims(certificate), "recomputed from the steps: identical")
    for claim in certificate.claims:
        derived = f"recomputed from its parameters ({claim.source})"
        yield CheckOutcome(
            f"{'other published bound' if claim.restates else 'claim'}: {claim.kind}",
            _numbers(claim, statement.basis, check),
            derived,
        )
    yield CheckOutcome(
        "accounting", _accounting(certificate), "the charge is the cost of the claim; the total covers it"
    )


def _meaning(certificate: Certificate) -> Problem | None:
    """Return a problem if some word of a certificate means something else here, else None."""
    same = certificate.glossary == meaning_digest(certificate.guarantee, certificate.claims, certificate.steps)
    return None if same else Problem("some kind, key or field is unknown here, or has another meaning")


_TOOL = re.compile(r"incrowd \d+(\.\d+)*([ab]|rc|\.dev|\.post)?\d*(\+[a-z0-9.]+)?")
_HEX = re.compile(r"[0-9a-f]{32,64}")
_COMMITMENT = re.compile(r"(hmac-)?sha256:[0-9a-f]{64}")


def _free_text(certificate: Certificate) -> Problem | None:
    """Return a problem if a certificate has words where incrowd writes numbers, times and names; else None.

    A sentence of its own could praise the release.  What the policy declares in words is compared with the policy.
    """
    commitment, place, columns = certificate.dataset.commitment, certificate.ledger, certificate.schema.columns
    if not _TOOL.fullmatch(certificate.tool) or not _is_time(certificate.created):
        return Problem("incrowd does not write its name or a time like this")
    if commitment is not None and not _COMMITMENT.fullmatch(commitment):
        return Problem("the commitment to the input is not a hash")
    if not all(map(_HEX.fullmatch, (certificate.policy_hash, place.chain, place.hash))):
        return Problem("the policy or the entry of the ledger is not named by a hash")
    if not all(column.role in list(Role) and column.type in list(Type) for column in columns):
        return Problem("a column has a role or a type that there is not")
    if certificate.approvals:
        return Problem("incrowd writes no approvals")
    names = {column.name for column in columns}
    if not {name for step in certificate.steps if isinstance(step, Recode) for name in step.names} <= names:
        return Problem("a column is recoded that is not declared")
    names |= set(certificate.schema.released)
    if not all(_is_fact(value, names) for value in certificate.evidence.values()):
        return Problem("the evidence holds more than numbers and names of columns")
    if not _are_levels(certificate):
        return Problem("the evidence names levels that the steps do not allow, or of columns that are not released")
    return None


def _are_levels(certificate: Certificate) -> bool:
    """Whether released columns, and no others, have a level each, or several, among those that their steps allow."""
    levels, released = certificate.evidence.get("levels", {}), set(certificate.schema.released)
    if not isinstance(levels, dict) or not set(levels) <= released:
        return False
    allowed = {
        column.column: range(column.level, column.of + 1)
        for step in certificate.steps
        if isinstance(step, Recode)
        for column in step.columns
    }
    return all(
        type(level) is int and level in allowed.get(name, ())
        for name, several in levels.items()
        for level in (several if isinstance(several, list) else [several])
    )


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _is_fact(value: object, names: set[str], depth: int = 4) -> bool:
    """Whether a value of the evidence is a number, a name of a column, or made of such."""
    match value:
        case bool():
            return False
        case int() | float() | None:
            return True
        case str():
            return value in names or _is_number(value)
        case list():
            return depth > 0 and all(_is_fact(item, names, depth - 1) for item in value)
        case dict():
            own = {"columns", "rows", "classes", "scale", "epsilon", "error"} | names
            return depth > 0 and set(value) <= own and all(_is_fact(v, names, depth - 1) for v in value.values())
    return False


def _is_number(text: str) -> bool:
    try:
        Fraction(text)
    except (ValueError, ZeroDivisionError):
        return text == "Infinity"
    return True


def check_steps(statement: Statement, check: Check) -> Problem | None:
    """Return a problem if steps are out of order, ignore the unit's rows, or contradict each other; else None."""
    unit = statement.basis.unit
    compared = any(isinstance(step, Compare) for step in steps_around(statement.steps))
    if compared and _cost(statement.claims).is_finite():
        return Problem("a release with an epsilon is never refused because of earlier ones")
    gate = gate_of(statement.steps)
    if gate is not None and not gate.settled:
        return Problem("its consent gate has no run and no registry snapshot")
    if gate is not None and not all(step.prices_withdrawals for step in statement.steps):
        return Problem("people may withdraw after they were counted, and its noise was not planned for that")
    period = period_of(statement.steps)
    if unit.kind is Kind.PERSON_PERIOD and period is None:
        return Problem("it protects a person in a period, and its steps name no period")
    named = {*statement.types, None}  # an answer to a query names no columns of its table
    if period is not None and (
        period.label is None or (statement.types and not {period.column, period.arrival} <= named)
    ):
        return Problem("its period is not named, or is read from a column that is not declared")
    own = replace(statement.basis, steps=own_steps(statement.steps))
    statement = replace(statement, basis=own)
    try:
        if not in_order(statement.steps, check.order):
            return Problem("such a release does not have these steps in this order")
        keeps = any(issubclass(step, KeepRows) for step in check.steps)
        if keeps and not keeps_rows_of(statement.basis.find(KeepRows), unit):
            return Problem("the rows per person do not match the guarantee's unit")
        return check.contradiction(statement)
    except _UNREADABLE:
        return Problem("the steps cannot be read")


def _guarantee(certificate: Certificate) -> Problem | None:
    stated = certificate.guarantee
    try:
        folded = fold(certificate.steps, stated.unit, stated.delta)
    except _UNREADABLE:
        return Problem("these steps give no guarantee")
    for part in ("loss", "because", "assumes", "delta"):
        if getattr(folded, part) != getattr(stated, part):
            return Problem(f"these steps give another guarantee: its {part} differs")
    return None


def _claims(certificate: Certificate) -> Problem | None:
    try:
        made = claims_of(_basis(certificate))
    except _UNREADABLE:
        return Problem("these steps and numbers give no claims")
    missing = [claim.kind for claim in made if claim not in certificate.claims]
    extra = [claim.kind for claim in certificate.claims if claim not in made]
    if missing or extra:
        return Problem(f"the claim {(extra or missing)[0]!r} is not what the steps give")
    return None if made == certificate.claims else Problem("they are in the wrong order")


def _numbers(claim: Claim, basis: ClaimBasis, check: Check) -> Problem | None:
    if not claim.numbers and not isinstance(claim, Concentrated):
        return check.undecidable(claim)
    try:
        return check_numbers(claim, basis) if isinstance(claim, DERIVED) else check.recompute(claim, basis)
    except _UNREADABLE:
        return Problem("its numbers cannot be read")


def _accounting(certificate: Certificate) -> Problem | None:
    """Return why the amounts cannot be what this release cost, or None."""
    accounting = certificate.accounting
    try:
        spent, total = _both(accounting.spent), _both(accounting.total)
        claimed = _cost(certificate.claims)
        own = () if accounting.period is None else _both(accounting.period.spent)
        amounts = (*spent, *total, *own)
        if claimed.is_nan() or any(amount.is_nan() or amount < 0 for amount in amounts):
            return Problem("an amount is not a number, or is below zero")
    except InvalidOperation:
        return Problem("the amounts cannot be read")
    private = any(isinstance(claim, Private) for claim in certificate.claims)
    problem = _period(certificate)
    if problem is not None or (accounting.period and accounting.period.releases):
        return problem or _series(certificate, spent, total)
    if not claimed.is_finite() and (certificate.guarantee.delta or spent[1]):
        return Problem("a release without an epsilon has no delta")
    if spent[0] != claimed or (private and spent[1] < certificate.guarantee.delta):
        return Problem("the charge is not the cost of the claim")
    if any(whole < part for whole, part in zip(total, spent, strict=True)):
        return Problem("the total is smaller than the cost of this release")
    if accounting.releases < 1 or (accounting.releases == 1 and total != spent):
        return Problem("the total does not match the number of releases")
    return None


def _both(amounts: Amounts) -> tuple[Decimal, Decimal]:
    return Decimal(amounts.epsilon), Decimal(amounts.delta)


def _period(certificate: Certificate) -> Problem | None:
    """Return a problem if the accounting is about another period than the steps, or counts too little; else None."""
    step, account = period_of(certificate.steps), certificate.accounting.period
    if (step is None or step.until is not None) != (account is None):
        return Problem("steps and accounting do not agree about a period")
    if step is None or account is None:
        return None
    if (step.label, step.releases) != (account.label, account.releases):
        return Problem("the accounting is about another period, or another number of releases, than the steps")
    here, least = _both(account.spent), _both(certificate.accounting.spent)
    if account.published < 1 or any(part < whole for part, whole in zip(here, least, strict=True)):
        return Problem("the period has spent less than this release cost")
    return None


def _series(certificate: Certificate, spent: tuple[Decimal, Decimal], total: tuple[Decimal, Decimal]) -> Problem | None:
    """Return a problem if the price of a whole series is below what its releases cost together; else None."""
    account, guarantee, step = certificate.accounting.period, certificate.guarantee, period_of(certificate.steps)
    if account is None or account.releases is None or step is None or step.composed is None:
        return None
    if not all(amount.is_finite() for amount in spent):
        return Problem("a series that is charged at once has a price")
    if any(sum_ < cost for sum_, cost in zip(total, spent, strict=True)):
        return Problem("the total is smaller than the cost of this series")
    if _runs(certificate) and spent[0] != _cost(certificate.claims):
        return Problem("the charge is not the cost of the claim")
    whole = guarantee.loss if _runs(certificate) else Sequence((guarantee.loss,) * step.composed)
    derived = derive(whole, guarantee.unit, Fraction(spent[0]), Fraction(spent[1]))
    if derived is None:
        return _NOT_DERIVED
    if derived.delta > float(spent[1]) * TOLERANCE:
        return Problem(f"{step.composed} releases have a delta of {derived.delta:.6g} at the epsilon of the series")
    return None if derived.whole else _TOO_MANY


def _runs(certificate: Certificate) -> bool:
    """Whether the guarantee of one release is that of its whole series already."""
    return any(step.whole_series for step in certificate.steps)


def _cost(claims: tuple[Claim, ...]) -> Decimal:
    """Return the ε that claims cost: nothing more where an account paid that was carved out before."""
    private = [claim.epsilon for claim in claims if isinstance(claim, Private)]
    if private:
        return Decimal(str(private[0]))
    return Decimal(0 if any(isinstance(claim, Concentrated) for claim in claims) else "Infinity")
