"""People who decide: a policy with a purpose, its registry and its key in three places, and events to go with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from incrowd.core.subjects import Subject
from incrowd.governance.consent.event import ConsentEvent, Decided, moment
from incrowd.governance.consent.registry import Registry
from incrowd.workflows.consent.place import make_registry, person_column, subject_key
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.policies import PEOPLE, changed, people, written

PURPOSE = "research/newborns"
MAY = moment("2026-05-01")
GATED = changed(
    PEOPLE,
    columns__id={"role": "identifier"},
    dataset__unit={"column": "id", "more": "drop"},
    purpose=PURPOSE,
    consent={"registry": "../registry/consent.sqlite", "key": "../key/consent.key"},
    budget={"epsilon": 9, "delta": "1e-3", "unbounded": "a test"},
)
"""The small policy of releases, with people who decide."""
TODAY, TOMORROW = ((datetime.now(UTC) + timedelta(days=ahead)).date().isoformat() for ahead in (0, 1))
FORM = changed(
    GATED,
    release={"method": "full-domain", "k": 10, "lowest": {"age": 2, "zip": 1}},
    consent__calendar=[TODAY, TOMORROW],
)
"""The same, released without an ε, on days that were fixed before; a test may begin before midnight and end after."""
QUESTIONS = changed(GATED, release=None, queries={"table": "people"})


def known_people(rows: int = 600) -> pa.Table:
    """Return people who have ids."""
    return people(rows).append_column("id", pa.array([f"p{number}" for number in range(rows)]))


@dataclass(frozen=True)
class Consented:
    """A policy with its registry, in which somebody decides."""

    policy: Policy
    registry: Registry

    def decide(self, decided: Decided, ids: Iterable[str], **more: Any) -> None:
        """Record decisions of people, taken now unless something else is said."""
        at = more.pop("at", None) or self.registry.now()
        purpose = more.pop("purpose", PURPOSE)
        people = subjects_of(self.policy, list(ids))
        self.registry.record(
            ConsentEvent(each.pseudonym, decided, purpose, at, **more, alike=each.alike) for each in people
        )


def subjects_of(policy: Policy, ids: list[str]) -> list[Subject]:
    """Return the pseudonyms of ids as a person wrote them."""
    key, column = subject_key(policy), person_column(policy)
    return [key.subject(written, column) for written in ids]


def consented(plain: dict[str, Any], folder: Path, ids: Iterable[str] = ()) -> Consented:
    """Write a policy, make its key and its registry, and let people consent since May."""
    for name in ("data", "registry", "key"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "key" / "consent.key").write_bytes(bytes(range(32)))
    policy = load_policy(written(plain, folder / "data"))
    made = Consented(policy, make_registry(policy))
    made.decide(Decided.GIVE, ids, at=MAY)
    return made
