"""The ledger: who has spent what; what it decides an entry by, and recomputes it from."""

from incrowd.accounting.ledger.ledger import Ledger

__all__ = ["Ledger"]
