"""Ways to protect a table; one file, one method."""

from __future__ import annotations

from incrowd.methods.anonymity.safe import Safe

METHODS = (Safe,)
"""Every method, read top to bottom: being here gives it a policy section, a help page and the contract tests."""
