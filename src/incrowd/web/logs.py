"""Logs: one JSON object a line, with names of routes and kinds of errors, and nothing that anybody wrote."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any

from pythonjsonlogger.json import JsonFormatter

NAME = "incrowd.web"


class AsJson(JsonFormatter):
    """Writes what was logged as one JSON object; an exception is named by its class alone, its text may hold data.

    >>> record = logging.LogRecord(NAME, logging.INFO, "", 0, "request", None, None)
    >>> record.fields = {"status": 200}
    >>> import json
    >>> json.loads(AsJson().format(record))["status"]
    200
    """

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        """Take what a line tells, and nothing else that hangs on a record."""
        del message_dict
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told = {"at": at, "level": record.levelname.lower(), "from": record.name, "event": record.getMessage()}
        log_data.update(told | getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[0] is not None:
            log_data["exception"] = record.exc_info[0].__name__


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "incrowd.web.logs.AsJson"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stderr"}},
    "loggers": {name: {"handlers": ["stderr"], "level": "INFO", "propagate": False} for name in (NAME, "uvicorn")},
}
"""How a server logs, in the words of `logging.config`."""


def note(event: str, **fields: Any) -> None:
    """Log an event; fields are numbers, routes, kinds, holders and sources, never what was asked or answered."""
    logging.getLogger(NAME).info(event, extra={"fields": fields})
