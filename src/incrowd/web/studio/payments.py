"""Payments: spending needs a typed name and happens once, despite double clicks, reloads and second tabs.

The key of a payment says what is paid for and how the ledger stood when the page was made.  It holds as long as the
ledger stands there, so that the ledger itself remembers: after the charge every old page holds a key that is worth
nothing, also if the studio was stopped in between.
"""

from __future__ import annotations

import hmac
import json
from hashlib import sha256
from threading import Lock

from incrowd.errors import InvalidParameter, Refused
from incrowd.web.studio.jobs import Job, State, Work
from incrowd.web.studio.page import PageRequest
from incrowd.workflows.plan.forecast import payer_of
from incrowd.workflows.policy.policy import Policy

_PAYING = Lock()


def payment_key(policy: Policy, what: str) -> str:
    """Return the key of paying once for something under a policy, as its ledger stands now."""
    payer = payer_of(policy)
    stands = None if payer is None else [payer[0].id, payer[0].standing(payer[1]).to_json()]
    return sha256(json.dumps([policy.hash, policy.ledger_address, what, stands]).encode()).hexdigest()


def pay(request: PageRequest, policy: Policy, what: str, title: str, work: Work) -> Job:
    """Start work that spends, once: the form holds `name`, the dataset's, and `key`, that of the page.

    A key that was used gives the work that was started with it.  One of an older state of ledger or policy is refused.
    """
    key = request.value("key")
    if request.value("name") != policy.name:
        raise InvalidParameter(
            f"type the name of the dataset, {policy.name}, to spend from its budget. Nothing was spent."
        )
    with _PAYING:
        job = request.jobs.find(f"pay {key}")
        if job is not None and job.state in (State.RUNNING, State.DONE):
            return job
        if not hmac.compare_digest(key.encode(), payment_key(policy, what).encode()):
            before = "" if job is None or job.problem is None else f" The earlier attempt failed: {job.problem}"
            raise Refused(
                "the policy or the ledger changed since this page was loaded: check the plan again. Nothing was spent."
                f"{before}"
            )
        return request.jobs.begin(f"pay {key}", title, work)


def paid(request: PageRequest, key: str) -> Job | None:
    """Return the work that was started with a key."""
    return request.jobs.find(f"pay {key}")
