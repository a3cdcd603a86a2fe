"""Server users: who asked what, what remains, why queries were refused, and tokens to revoke; no row is read."""

from __future__ import annotations

from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessDecision
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command
from incrowd.workflows.policy.ledger_place import ledger_of
from incrowd.workflows.query.usage import usage_of


def show(request: PageRequest) -> PageContent:
    """Show the usage of the server of a policy, or why there is none."""
    file = request.policy_file()
    line = command("incrowd", "serve", "--console", "--policy", file.name)
    try:
        usage = usage_of(ledger_of(file.policy)).to_json()
    except IncrowdError as problem:
        return PageContent({"usage": None, "missing": str(problem)}, commands=(line,))
    return PageContent({"usage": usage, "revoked": request.value("revoked")}, commands=(line,))


def revoke(request: PageRequest) -> Redirect:
    """End a token; who decides and why goes into the access list."""
    token = request.form.get("token", "").strip()
    if not token:
        raise InvalidParameter("choose the token to revoke.")
    access = AccessList.open(ledger_of(request.policy_file().policy))
    grant = access.revoke(token, AccessDecision(request.form.get("who", ""), request.form.get("why", "")))
    return request.to("users", revoked=grant.holder.name)


PAGE = Page(
    "users",
    "Server users",
    "Queries by user, charges, reasons of refusals, remaining budgets, and tokens that work.",
    show,
    {"revoke": revoke},
    needs=("policy",),
)
