"""`/v1/tokens`: owners make, rotate and revoke tokens."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter

from incrowd.errors import AccessDenied, InvalidParameter
from incrowd.governance.access.book import Issued
from incrowd.governance.access.grant import Decision, Grant, Holder
from incrowd.web.caller import Admitter, Caller
from incrowd.web.routes.failures import failures
from incrowd.web.services import Here, Services
from incrowd.web.shapes import AdmittedShape, IssuedShape, RotatedShape, TokenShape

router = APIRouter(tags=["access"])


@router.get("/v1/tokens", summary="Tokens", responses=failures())
def tokens(caller: Admitter, services: Here) -> list[TokenShape]:
    """Return all tokens that were ever given out, within the caller's datasets, without the tokens themselves."""
    return [_shape(each) for each in services.books.access.grants() if caller.holder.covers(each.holder)]


@router.post("/v1/tokens", summary="Grant", status_code=201, responses=failures())
def grant(admitted: AdmittedShape, caller: Admitter, services: Here) -> IssuedShape:
    """Make a token; it is shown in this reply and never again."""
    datasets = None if admitted.datasets is None else tuple(admitted.datasets)
    holder = Holder(admitted.holder, admitted.role, datasets)
    if not caller.holder.may_admit(holder):
        services.books.audit.write(caller.event("grant", "denied"))
        raise AccessDenied(
            "this token is not yours to give: name datasets of your own; auditors are admitted by incrowd access grant."
        )
    access = services.books.access
    issued = access.grant(holder, access.now() + timedelta(days=admitted.days), _signed(caller, admitted.why))
    return _issued(issued, "grant", caller, services)


@router.post("/v1/tokens/{number}/rotate", summary="Rotate", responses=failures(404))
def rotate(number: str, rotated: RotatedShape, caller: Admitter, services: Here) -> IssuedShape:
    """Replace a token by a new one; the old one stops working at once."""
    access = services.books.access
    _check_his(number, caller, services)
    issued = access.rotate(number, access.now() + timedelta(days=rotated.days), _signed(caller, rotated.why))
    return _issued(issued, "rotate", caller, services)


@router.delete("/v1/tokens/{number}", summary="Revoke", responses=failures(404))
def revoke(number: str, caller: Admitter, services: Here) -> TokenShape:
    """End a token for good."""
    _check_his(number, caller, services)
    ended = services.books.access.revoke(number, _signed(caller, "revoked by HTTP"))
    services.books.audit.write(caller.event("revoke", "done", id=ended.id))
    return _shape(ended)


def _check_his(number: str, caller: Caller, services: Services) -> None:
    for each in services.books.access.grants():
        if each.id == number and caller.holder.may_admit(each.holder):
            return
    services.books.audit.write(caller.event("access", "denied"))
    raise InvalidParameter("there is no token with this id, or it is not yours to change.")


def _issued(issued: Issued, action: str, caller: Caller, services: Services) -> IssuedShape:
    services.books.audit.write(caller.event(action, "done", id=issued.grant.id, to=issued.grant.holder.name))
    return IssuedShape(token=issued.token, grant=_shape(issued.grant))


def _signed(caller: Caller, why: str) -> Decision:
    return Decision(caller.holder.name, why)


def _shape(grant: Grant) -> TokenShape:
    return TokenShape(**grant.shown())
