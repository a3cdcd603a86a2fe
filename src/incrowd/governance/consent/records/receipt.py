"""Receipt: what a person decided, handed to that person: as JSON after ISO/IEC TS 27560, and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from incrowd.governance.consent.records.iso27560 import SCHEMA, write_27560
from incrowd.governance.consent.records.record import ConsentRecord

_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}td,th{padding:.3rem;text-align:left}"
)
_HEADER = ("decision", "purpose", "taken", "holds from", "until", "basis", "notice", "recorded")


@dataclass(frozen=True)
class ConsentReceipt:
    """All decisions of one person, each with the time at which the registry learned of it."""

    subject: str
    made: str
    decisions: Sequence[tuple[str, ConsentRecord]]

    def to_json(self) -> dict[str, Any]:
        """Return the receipt as JSON."""
        records = write_27560(record for _, record in self.decisions)
        recorded = [at for at, _ in self.decisions]
        header = {"schema_version": SCHEMA, "pii_principal_id": self.subject, "receipt_time": self.made}
        return {"receipt_metadata": header, "consent_records": records, "recorded": recorded}

    def to_html(self) -> str:
        """Return the receipt as a page that loads nothing."""
        head = "".join(f'<th scope="col">{name}</th>' for name in _HEADER)
        body = "".join(_row(at, record) for at, record in self.decisions)
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Receipt of consent</title>'
            f"<style>{_STYLE}</style></head><body><main><h1>Receipt of consent</h1>"
            f"<p>Of {escape(self.subject)}, made {escape(self.made)}.</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></main></body></html>"
        )


def _row(at: str, record: ConsentRecord) -> str:
    event = record.event
    cells = (str(event.decided), event.purpose, event.at, event.valid_from, event.valid_to or "")
    told = (*cells, event.basis, event.notice, at)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in told) + "</tr>"
