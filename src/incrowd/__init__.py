"""Hide everyone in a crowd, and prove it: policy in, certified release out.

>>> import incrowd
>>> [name for name in dir(incrowd) if name.islower()][:6]
['assess', 'bounds', 'check', 'explore', 'learn_model', 'load_policy']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.core.certificate import Certificate
    from incrowd.errors import IncrowdError
    from incrowd.workflows.bounds import calculators as bounds
    from incrowd.workflows.plan.explore import explore
    from incrowd.workflows.plan.forecast import plan
    from incrowd.workflows.plan.preview.preview import look
    from incrowd.workflows.policy.policy import Policy, load_policy
    from incrowd.workflows.release.deliver import Destination
    from incrowd.workflows.release.learn import learn_model, predict
    from incrowd.workflows.release.tables import ReleaseTerms, release, release_to, synthesize
    from incrowd.workflows.verbs import assess, check, price, profile, query, verify

__version__ = "0.1.0"
__all__ = [
    "Certificate",
    "Destination",
    "IncrowdError",
    "Ledger",
    "Policy",
    "ReleaseTerms",
    "assess",
    "bounds",
    "check",
    "explore",
    "learn_model",
    "load_policy",
    "look",
    "plan",
    "predict",
    "price",
    "profile",
    "query",
    "release",
    "release_to",
    "synthesize",
    "verify",
]

_HOMES = {
    "Certificate": "core.certificate",
    "Destination": "workflows.release.deliver",
    "IncrowdError": "errors",
    "Ledger": "accounting.ledger",
    "Policy": "workflows.policy.policy",
    "ReleaseTerms": "workflows.release.tables",
    "assess": "workflows.verbs",
    "bounds": "workflows.bounds.calculators",
    "check": "workflows.verbs",
    "explore": "workflows.plan.explore",
    "learn_model": "workflows.release.learn",
    "load_policy": "workflows.policy.policy",
    "look": "workflows.plan.preview.preview",
    "plan": "workflows.plan.forecast",
    "predict": "workflows.release.learn",
    "price": "workflows.verbs",
    "profile": "workflows.verbs",
    "query": "workflows.verbs",
    "release": "workflows.release.tables",
    "release_to": "workflows.release.tables",
    "synthesize": "workflows.release.tables",
    "verify": "workflows.verbs",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: importing incrowd stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'incrowd' has no attribute {name!r}")
    from importlib import import_module

    home = import_module(f"incrowd.{_HOMES[name]}")
    return home if name == "bounds" else getattr(home, name)


def __dir__() -> list[str]:
    """List the public names, and no others."""
    return sorted(__all__)
