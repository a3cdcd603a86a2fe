"""A client of a server, with frames out; it needs the standard library and Arrow."""

from incrowd.client.client import Client
from incrowd.client.history import Budget, History
from incrowd.client.reply import Replies, Reply

__all__ = ["Budget", "Client", "History", "Replies", "Reply"]
