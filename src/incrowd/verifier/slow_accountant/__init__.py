"""Slow accountant: every number of a claim derived a second time, slowly and obviously, from the same loss.

Nothing here comes from `incrowd.accounting`.  Where the accountants use closed forms and proofs about where a maximum
lies, the laws are written out here, and every crowd size is tried.
"""

from incrowd.verifier.slow_accountant.derivation import Derived, concentration, derive

__all__ = ["Derived", "concentration", "derive"]
