"""Payments: spending needs a typed name and happens once, despite double clicks, reloads and second tabs.

The key of a payment says what is paid for and how the ledger stood when the page was made.  It holds as long as the
ledger stands there, so that the ledger itself remembers: after the charge every old page holds a key that is worth
nothing, also if the studio was stopped in between.  The check of the key and the charge happen under one lock of the
dataset, which all studios share: two of them cannot pay with one key.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from threading import Lock
from typing import Any

from incrowd.errors import InvalidParameter, Refused
from incrowd.store.disk import lock_at
from incrowd.web.studio.jobs import Job, State, Work
from incrowd.web.studio.page import PageRequest
from incrowd.workflows.plan.forecast import payer_of
from incrowd.workflows.policy.ledger_place import state_folder
from incrowd.workflows.policy.policy import Policy

_PAYING = Lock()  # the price is compared with the ledger and charged in one act, so that two tabs cannot pay twice
_CHANGED = "the policy or the ledger changed since this page was loaded: check the plan again. Nothing was spent."


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
            raise Refused(f"{_CHANGED}{before}")
        return request.jobs.begin(f"pay {key}", title, lambda tell: _alone(policy, what, key, lambda: work(tell)))


def _alone(policy: Policy, what: str, key: str, work: Callable[[], Any]) -> Any:
    """Pay while no other studio pays from the same dataset, and only if the key holds then."""
    with _lock(policy) as alone:
        if not alone:
            raise Refused(
                f"something else is being paid from the budget of {policy.name}, here or in another studio. Nothing "
                "was spent. Wait until it is done, and check the plan again."
            )
        if not hmac.compare_digest(key.encode(), payment_key(policy, what).encode()):
            raise Refused(_CHANGED)
        return work()


@contextmanager
def _lock(policy: Policy) -> Iterator[bool]:
    """Lock a dataset's payments on this machine, and in the database of a ledger that several machines share."""
    name = sha256(json.dumps([policy.ledger_address, policy.name]).encode()).hexdigest()[:16]
    folder = state_folder(policy.folder)
    folder.mkdir(parents=True, exist_ok=True)
    payer = payer_of(policy)
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_at(folder / f".paying-{name}.lock").acquire(timeout=0))
        except OSError:  # Timeout is one
            yield False
            return
        if payer is None:
            yield True
            return
        locks = payer[0].chain.database.locks(payer[0].id)
        stack.callback(locks.close)
        yield stack.enter_context(locks.alone(f"paying {policy.name}"))


def paid(request: PageRequest, key: str) -> Job | None:
    """Return the work that was started with a key."""
    return request.jobs.find(f"pay {key}")
