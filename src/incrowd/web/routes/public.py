"""`/v1/schema`, `/v1/budget`, `/v1/releases`, `/v1/certificates`: what is declared, left and published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Response

from incrowd.web import replies
from incrowd.web.caller import Caller, Reader
from incrowd.web.services import Here, Services
from incrowd.web.shapes import BudgetShape, ReleasesShape, failures

router = APIRouter(tags=["what is known"])


@router.get("/v1/schema", summary="Tables", responses=failures())
def schema(caller: Reader, services: Here) -> dict[str, Any]:
    """Return the tables that may be asked about, as they are declared; no row was read for it."""
    return dict(caller.desk(services).schema())


@router.get("/v1/budget", summary="Budget", responses=failures())
def budget(caller: Reader, services: Here) -> BudgetShape:
    """Return what is left of each dataset, and what the caller has spent of it and may spend."""
    return BudgetShape(datasets=dict(caller.desk(services).budget(caller.analyst)))


@router.get("/v1/releases", summary="Releases", responses=failures())
def releases(caller: Reader, services: Here) -> ReleasesShape:
    """Return what was released of the caller's datasets; their certificates tell what was asked and promised."""
    return ReleasesShape(releases=_visible(caller, services))


@router.get("/v1/certificates/{number}", summary="Certificate", responses=failures(404))
def certificate(number: str, caller: Reader, services: Here) -> Response:
    """Return the certificate of a release, as `incrowd verify` reads it."""
    found = services.desk.certificate(number)
    told = {} if found is None else found.to_json()
    if told and not caller.holder.may_use(_datasets(told["dataset"]["name"], told["dataset"])):
        services.books.audit.write(caller.event("certificate", "denied"))
        told = {}
    if not told:
        return replies.error(404, "InvalidParameter", "there is no such release, or it is not yours to see.")
    return replies.as_json(told)


def _datasets(first: str, told: Mapping[str, Any]) -> list[str]:
    return [first, *told.get("together with", ())]


def _visible(caller: Caller, services: Services) -> list[dict[str, Any]]:
    return [dict(each) for each in services.desk.releases() if caller.holder.may_use(_datasets(each["dataset"], each))]
