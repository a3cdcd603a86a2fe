"""The ledger: what each dataset and analyst has spent; how an entry is decided, and recomputed."""

from incrowd.accounting.ledger.ledger import Ledger

__all__ = ["Ledger"]
