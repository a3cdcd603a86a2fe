"""Hide everyone in a crowd, and prove it: policy in, certified release out.

>>> import incrowd
>>> sorted(incrowd.__all__)[:3]
['Certificate', 'Destination', 'IncrowdError']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.core.certificate import Certificate
    from incrowd.errors import IncrowdError
    from incrowd.workflows.plan.explore import explore
    from incrowd.workflows.plan.forecast import plan
    from incrowd.workflows.policy.policy import Policy, load_policy
    from incrowd.workflows.release.publish import Destination, release, release_to
    from incrowd.workflows.verify.verify import verify

__version__ = "0.1.0"
__all__ = [
    "Certificate",
    "Destination",
    "IncrowdError",
    "Ledger",
    "Policy",
    "explore",
    "load_policy",
    "plan",
    "release",
    "release_to",
    "verify",
]

_HOMES = {
    "Certificate": "core.certificate",
    "Destination": "workflows.release.publish",
    "IncrowdError": "errors",
    "Ledger": "accounting.ledger",
    "Policy": "workflows.policy.policy",
    "explore": "workflows.plan.explore",
    "load_policy": "workflows.policy.policy",
    "plan": "workflows.plan.forecast",
    "release": "workflows.release.publish",
    "release_to": "workflows.release.publish",
    "verify": "workflows.verify.verify",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: importing incrowd stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'incrowd' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"incrowd.{_HOMES[name]}"), name)
