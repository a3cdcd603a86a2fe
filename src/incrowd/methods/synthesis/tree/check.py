"""The file of rows drawn from a tree, looked at again as that of every model is."""

from __future__ import annotations

from incrowd.methods.synthesis.marginals.check import (
    CLAIMS,
    ORDER,
    STEPS,
    contradiction,
    looks,
    recount,
    reopen,
)

__all__ = ["CLAIMS", "ORDER", "STEPS", "contradiction", "looks", "recount", "reopen"]
