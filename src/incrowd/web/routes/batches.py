"""Several questions at once: planned together, paid for as one, and answered or refused as a whole."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from fastapi import APIRouter, Response

from incrowd.queries.question import QueryTerms
from incrowd.web.caller import Asker, Caller, Reader, count_more
from incrowd.web.routes.questions import Known, QuestionRequest, bound, handled, logged, offered, written
from incrowd.web.services import Here, PlannedQuestion, Services
from incrowd.web.shapes import BatchShape, failures
from incrowd.workflows.query.batches import numbered
from incrowd.workflows.query.request import QueryBatch

router = APIRouter(tags=["questions"])
_A_REQUEST = 16
"""How many questions are planned for what one request counts against the rate."""
_REPLIES: dict[int | str, dict[str, Any]] = {200: {"model": dict[str, Any]}, **failures(422, 504)}


@router.post("/v1/batch", summary="Ask several", responses=_REPLIES)
async def query_batch(asked: BatchShape, caller: Asker, services: Here) -> Response:
    """Charge several questions as one, then answer each with noise; the same ones again get the same answers.

    One that is refused is named by its number, and then none is asked.
    """
    return await _handled("query_batch", asked, caller, services)


@router.post("/v1/batch/price", summary="Price several", responses=_REPLIES)
async def price_batch(asked: BatchShape, caller: Reader, services: Here) -> Response:
    """Say what several questions would cost together, and how exact each answer would be; nothing is charged."""
    return await _handled("price_batch", asked, caller, services)


async def _handled(action: str, asked: BatchShape, caller: Caller, services: Services) -> Response:
    """Return the reply in its time; planning many questions is work, so it takes a turn and counts as requests."""

    def prepare() -> PlannedQuestion:
        terms = QueryTerms(asked.epsilon, Fraction(0) if asked.delta is None else asked.delta)
        asking, desk = QueryBatch(_bound(asked), terms, caller.analyst), caller.desk(services)
        if action == "query_batch":
            return desk.prepare_batch(asking)
        priced = desk.price_batch(asking)
        return Known(lambda: priced)

    count_more(services, caller, (len(asked.questions) - 1) // _A_REQUEST)
    about = offered(asked, "epsilon", "delta") | {"questions": str(len(asked.questions))}
    about |= logged("; ".join(map(written, asked.questions)), services)
    with services.limit.hold(caller.holder.name):
        return await handled(QuestionRequest(action, caller, services, services.pool, prepare, about))


def _bound(asked: BatchShape) -> tuple[str, ...]:
    found = []
    for number, statement in enumerate(asked.questions, start=1):
        with numbered(number):
            found.append(bound(statement))
    return tuple(found)
