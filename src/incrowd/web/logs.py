"""Logs: one JSON object a line, with names of routes and kinds of errors, and nothing that anybody wrote."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

NAME = "incrowd.web"


class AsJson(logging.Formatter):
    """Writes what was logged as one JSON object; an exception is named by its class alone, its text may hold data.

    >>> record = logging.LogRecord(NAME, logging.INFO, "", 0, "request", None, None)
    >>> record.fields = {"status": 200}
    >>> json.loads(AsJson().format(record))["status"]
    200
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, Any] = {
            "at": at,
            "level": record.levelname.lower(),
            "from": record.name,
            "event": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
        return json.dumps(line)


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "incrowd.web.logs.AsJson"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
    "loggers": {name: {"handlers": ["stderr"], "level": "INFO", "propagate": False} for name in (NAME, "uvicorn")},
}
"""How a server logs, in the words of `logging.config`."""


def note(event: str, **fields: Any) -> None:
    """Log an event; fields are numbers, routes, kinds and names of holders, never what was asked or answered."""
    logging.getLogger(NAME).info(event, extra={"fields": fields})
