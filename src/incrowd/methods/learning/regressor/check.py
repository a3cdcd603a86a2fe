"""The files of a learned model, looked at again as those of every model are."""

from __future__ import annotations

from incrowd.methods.learning.check import CLAIMS, ORDER, STEPS, contradiction, looks, recount, reopen

__all__ = ["CLAIMS", "ORDER", "STEPS", "contradiction", "looks", "recount", "reopen"]
