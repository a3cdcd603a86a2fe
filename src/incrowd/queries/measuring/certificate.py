"""Certificate: the promise of an answer, its claims, and its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from incrowd.accounting import accountant
from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Sampled, Sequence, ZeroConcentrated
from incrowd.core.unit import Kind, Unit
from incrowd.mechanisms.cube import AddCube
from incrowd.queries.measuring.noise import Settled
from incrowd.queries.measuring.picks import Pick
from incrowd.queries.measuring.statistics import Statistics
from incrowd.queries.question import Question

_UNKNOWN = "Korolova, Kenthapadi, Mishra & Ntoulas 2009 (unknown groups from a threshold on)"
_GROUPS = "what holds for a whole group: people like you can be described, with or without you"
_ROW = "one row is one person, and nobody has two"
_PERSON = "the person column tells people apart: nobody has two identifiers"
_LEDGER = "all releases about these people go through one ledger"
_BEFORE = "bounds, categories and the terms of the question were chosen without looking at the rows"


def promise_of(settled: Settled, picks: tuple[Pick, ...], unit: Unit) -> Guarantee:
    """Return the promise of a measurement."""
    reasons = [] if settled.noise is None else [settled.noise.because]
    reasons += dict.fromkeys(pick.mechanism.because for pick in picks)
    reasons += [] if settled.threshold is None else [_UNKNOWN]
    reasons += ["amplified by a secret sample"] if isinstance(settled.loss, Sampled) else []
    assumed = frozenset({_PERSON if unit.kind is Kind.PERSON else _ROW, _LEDGER, _BEFORE})
    return Guarantee(settled.loss, unit, "; ".join(reasons), assumed, settled.delta)


def claims_of(settled: Settled, promise: Guarantee) -> tuple[Claim, ...]:
    """Return the one claim of an answer."""
    unit = promise.unit
    proved = (
        "every number of every group has noise of its own, and nothing else depends on rows",
        "one unit of privacy moves the statistics by the stated widths and rows at most, whatever the rows hold",
    )
    return (
        Claim(
            _kind(settled),
            _numbers(settled, unit) | {"adjacency": str(unit.adjacency), "max_rows": unit.max_rows},
            str(unit),
            promise.because,
            (
                *(Precondition(text, Status.PROVED) for text in proved),
                *(Precondition(text, Status.ASSUMED) for text in sorted(promise.assumes)),
            ),
            (_GROUPS,),
        ),
    )


def steps_of(
    question: Question, sums: Statistics, settled: Settled, picks: tuple[Pick, ...]
) -> tuple[Mapping[str, Any], ...]:
    """Return the steps: the question, whose rows, which groups, which sums, which noise, which picks, the answer."""
    reach = {"rows": question.contribution.rows, "groups": question.contribution.groups}
    steps: list[Mapping[str, Any]] = [
        {"step": "understand", "question": question.text, "tables": list(question.tables)},
        {"step": "bound what one unit contributes", **reach},
        {"step": "group", "by": [key.name for key in question.keys], "groups": _groups(question)},
    ]
    if isinstance(settled.loss, Sampled):
        design = "Poisson, one secret coin per row"
        steps.insert(1, {"step": "sample", "rate": str(settled.loss.rate), "design": design})
    if settled.noise is not None:
        steps.append({"step": "add up", "statistics": [_statistic(each) for each in sums.all], "rows": sums.rows})
        steps.append(_noise(settled))
    if settled.threshold is not None:
        least, hidden = settled.threshold.least, str(settled.threshold.delta)
        steps.append({"step": "threshold", "least": least, "on": sums.counting, "delta": hidden})
    steps += [_pick(pick) for pick in picks]
    return (*steps, {"step": "answer", "columns": [output.name for output in question.outputs], "confidence": "0.95"})


def _kind(settled: Settled) -> str:
    if _concentrated(settled) and not settled.delta:
        return "zero-concentrated differential privacy"
    return "approximate differential privacy" if settled.delta else "pure differential privacy"


def _concentrated(settled: Settled) -> bool:
    first = settled.loss.parts[0] if isinstance(settled.loss, Sequence) and settled.loss.parts else settled.loss
    return isinstance(first, ZeroConcentrated)


def _numbers(settled: Settled, unit: Unit) -> dict[str, Any]:
    if _concentrated(settled):
        first = settled.loss.parts[0] if isinstance(settled.loss, Sequence) else settled.loss
        numbers = {"rho": str(first.rho)} if isinstance(first, ZeroConcentrated) else {}
        if not settled.delta:
            return numbers
        numbers |= {"delta": str(settled.delta)}
        return numbers | {"epsilon": str(accountant.charge_of(settled.loss, settled.delta, unit.adjacency).epsilon)}
    spend = accountant.charge_of(settled.loss, settled.delta, unit.adjacency)
    numbers = {"epsilon": str(spend.epsilon)}
    return numbers | ({"delta": str(settled.delta)} if settled.delta else {})


def _groups(question: Question) -> int | str:
    if not question.public_keys:
        return "not known before rows are read"
    size = 1
    for key in question.keys:
        size *= len(key.values or ())
    return size


def _statistic(each: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {"of": str(each.of), "width": each.width}
    plain |= {} if each.value is None else {"value": each.value.name}
    if each.grid is not None:
        plain |= {"center": str(each.grid.center), "step": str(each.grid.step)}
    return plain


def _noise(settled: Settled) -> Mapping[str, Any]:
    if isinstance(settled.noise, AddCube):
        law = settled.noise.law
        return {
            "step": "noise",
            "noise": "integer cube" if len(law.widths) > 1 else "integer Laplace",
            "epsilon": str(settled.noise.epsilon),
            "widths": list(law.widths),
            "fine": law.fine,
            "scale": str(law.scale),
        }
    scales = [] if settled.noise is None else [str(scale) for scale in settled.noise.law.scales]
    return {"step": "noise", "noise": "integer Gaussian", "scales": scales}


def _pick(pick: Pick) -> Mapping[str, Any]:
    return {
        "step": "pick",
        "aggregate": pick.aggregate.name,
        "kind": str(pick.aggregate.kind),
        "candidates": pick.candidates.number,
        "epsilon": str(pick.epsilon),
        "sensitivity": pick.mechanism.sensitivity,
        "scale": str(pick.mechanism.scale),
        **({} if pick.aggregate.at is None else {"at": str(pick.aggregate.at)}),
    }
