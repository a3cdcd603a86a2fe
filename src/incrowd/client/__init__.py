"""A client of a server, with frames out; it needs the standard library and Arrow."""

from incrowd.client.client import Client
from incrowd.client.reply import Reply

__all__ = ["Client", "Reply"]
