"""`/v1/history` and `/v1/answers`: what the caller asked, what it cost, and its answers again, for nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from incrowd.web.caller import Asker, Caller, Reader
from incrowd.web.replies import NotFound
from incrowd.web.routes.questions import Known, QuestionRequest, handled
from incrowd.web.services import Here, JsonDocument, Services
from incrowd.web.shapes import HistoryShape, PlainInt, failures
from incrowd.workflows.query.history import HistoryRange

router = APIRouter(tags=["what is known"])


@router.get("/v1/history", summary="History", responses={200: {"model": HistoryShape}, **failures(504)})
async def history(
    caller: Reader,
    services: Here,
    before: Annotated[PlainInt | None, Query(ge=1, le=2**53)] = None,
    limit: Annotated[PlainInt, Query(ge=1, le=200)] = 50,
    others: bool = False,
) -> Response:
    """Return a page of what the caller asked, the latest first, with texts, costs and what is left.

    With `others` it also tells what others asked, to those whom the policy names, and to auditors, curators and owners.
    """
    page, reads_all = HistoryRange(limit, before, others), caller.reader is None

    def found() -> JsonDocument:
        return caller.desk(services).history(caller.analyst, page, reads_all=reads_all)

    return await _handled("history", found, caller, services, others=str(others).lower())


@router.get(
    "/v1/answers/{number}",
    summary="Answer",
    responses={200: {"model": dict[str, Any]}, **failures(404, 504)},
)
async def answer(number: str, caller: Asker, services: Here) -> Response:
    """Return an answer that the caller was given before, or that everyone was; nothing is charged and no row read."""

    def found() -> JsonDocument:
        kept = caller.desk(services).answer(number, caller.analyst)
        if kept is None:
            raise NotFound
        return kept

    return await _handled("answer", found, caller, services)


async def _handled(
    action: str, find: Callable[[], JsonDocument], caller: Caller, services: Services, **about: str
) -> Response:
    """Find it while the caller's questions go on, and reply after the pace of one; the audit log tells of it."""

    def prepare() -> Known:
        document = find()
        return Known(lambda: document)

    with services.limit.hold(caller.holder.name):
        return await handled(QuestionRequest(action, caller, services, services.quick, prepare, about))
