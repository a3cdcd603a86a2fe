"""A client of a server, with frames out; it needs the standard library and Arrow."""

from incrowd.client.client import Client
from incrowd.client.history import BudgetCard, QueryHistory
from incrowd.client.reply import Replies, Reply

__all__ = ["BudgetCard", "Client", "QueryHistory", "Replies", "Reply"]
