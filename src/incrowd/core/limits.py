"""Limits: how large, long and deep a document of others may be, and what a file of others may cost to read.

They are public and the same everywhere: what exceeds one is refused, whoever sent it.  The limits of whole numbers in
a policy are in `incrowd.workflows.policy.limits`.
"""

from __future__ import annotations

from typing import Any

from incrowd.errors import InvalidParameter

FOREIGN_BYTES = 64 * 2**20
"""Files of this size together are limited to what follows; for larger ones, the limits grow in proportion."""
PROCESSOR_SECONDS = 18
"""Seconds of processor time in which files are read and judged."""
WAITING_SECONDS = 600
"""Seconds on the clock, so that nothing waits for ever: work is ended by the processor's time, which a busy machine
does not stretch.  Sixty stopped a workbook of 3,000 rows on two cores with thirty busy programs."""
MEMORY_BYTES = 10**9
"""Bytes of memory at which reading is stopped; what is allocated between two looks at it comes on top."""
FREE_FACTOR = 10
"""How much more a comparison with the data holder's own rows may cost, in time and memory."""

CERTIFICATE_BYTES = 16 * 2**20
"""The largest certificate."""
DOCUMENT_BYTES = 4 * 2**20
"""The largest policy, survey or other document that a person writes."""
DOCUMENT_VALUES = 500_000
"""The most values, keys included, of a certificate."""
DOCUMENT_DEPTH = 64
"""The deepest nesting of a certificate."""
CERTIFICATE_STEPS = 2_000
"""The most steps and claims of a certificate, nested ones included."""


def check_size(text: bytes, what: str) -> None:
    """Refuse the text of a JSON document that would fill the memory; commas within texts count as well.

    >>> check_size(b"[" + b"{}," * 1_000_000, "a certificate")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: this is not a certificate: it has more than 500,000 values.
    """
    if sum(map(text.count, (b",", b"[", b"{", b":"))) > DOCUMENT_VALUES:
        raise InvalidParameter(f"this is not {what}: it has more than {DOCUMENT_VALUES:,} values.")
    if text.count(b'"step"') + text.count(b'"claim"') > CERTIFICATE_STEPS:
        raise InvalidParameter(f"this is not {what}: it has more than {CERTIFICATE_STEPS:,} steps and claims.")


def check_depth(plain: Any, what: str) -> None:
    """Refuse a plain value that is nested too deeply.

    >>> check_depth([[{}]], "a certificate")
    """
    layer, depth = [plain], 0
    while layer:
        if depth > DOCUMENT_DEPTH:
            raise InvalidParameter(f"this is not {what}: it is nested more than {DOCUMENT_DEPTH} deep.")
        layer = [part for value in layer for part in _parts(value)]
        depth += 1


def _parts(value: Any) -> list[Any]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in parts if isinstance(part, dict | list)]
