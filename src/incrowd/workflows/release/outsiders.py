"""Holdout group: who was held out of a release, stored with the data holder and read again for an attack."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from incrowd.core.certificate import Certificate
from incrowd.core.steps.around import gate_of
from incrowd.core.table import Rows
from incrowd.engines.fingerprints import keyed_digest
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.local.views import DividedRows, HeldOut
from incrowd.engines.readers.sources import Source
from incrowd.errors import InvalidParameter
from incrowd.workflows.consent.snapshot import taking_part
from incrowd.workflows.policy.internal import INTERNAL, internal_folder, write_private
from incrowd.workflows.policy.policy import Policy

_FILE = "held-out.json"


def keep_held_out(held: HeldOut, folder: Path) -> None:
    """Write share and key, which with the rows are the list of those held out, where only its owner can read it."""
    plain = {
        "share": str(held.share),
        "key": held.key.hex(),
        "person": None if held.person is None else held.person.name,
    }
    write_private(folder / _FILE, plain)


def held_out_of(policy: Policy, release: str) -> HeldOut:
    """Return who was held out of a release; refuse a release without a holdout group, or whose list is missing."""
    try:
        plain = json.loads((internal_folder(policy, release) / _FILE).read_text(encoding="utf-8"))
        person = None if plain["person"] is None else policy.schema[plain["person"]]
        return HeldOut(Fraction(plain["share"]), bytes.fromhex(plain["key"]), person)
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidParameter(
            f"release {release} has no stored holdout group: release with --hold-out 10%, and keep .incrowd/internal "
            "beside the policy; or name a control group with --control."
        ) from None


def divided(source: Source, policy: Policy, certificate: Certificate) -> tuple[Rows, Rows]:
    """Return the rows that a release was made from, and those that were held out of it.

    Where rows, not people, are held out, they are identified by their place: another source is refused.
    """
    held = held_out_of(policy, certificate.id)
    if held.person is None and not _is_source(source, policy, certificate):
        raise InvalidParameter(
            "rows were held out by their place, and the data has changed since: name the data of that release."
        )
    rows = taking_part(LOCAL, source, policy, gate_of(certificate.steps))
    return DividedRows(rows, held), DividedRows(rows, held, alone=True)


def _is_source(source: Source, policy: Policy, certificate: Certificate) -> bool:
    try:
        plain = json.loads((internal_folder(policy, certificate.id) / INTERNAL).read_text(encoding="utf-8"))
        return (
            keyed_digest(LOCAL.digest(source), bytes.fromhex(plain["commitment key"])) == certificate.dataset.commitment
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False
