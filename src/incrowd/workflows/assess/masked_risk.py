"""Masked risk: how many people an attacker finds in masked rows by distance, where equivalence classes show nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from incrowd.attacks.finding import Finding, corrected
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.records.linkage import linkage
from incrowd.attacks.records.nearest import inference
from incrowd.core.displacement import Displacement
from incrowd.core.schema import Role, Schema
from incrowd.methods.shared.outcome import ReleasedTuples
from incrowd.workflows.attack.publication import lookup_of

_SECRETS = 4
_ROWS = "number of rows"


@dataclass(frozen=True)
class MaskedRisk:
    """The success of attackers who know the quasi-identifiers and the mask, and take the nearest released rows.

    `linked`: one person's row is sought, and taken if all nearest rows agree (prosecutor).  `guessed`: everybody is
    linked to one of the nearest rows (marketer).  `inferred`: a sensitive value is read off the nearest row.
    """

    linked: Finding
    guessed: Finding
    inferred: Mapping[str, Finding]

    @property
    def lines(self) -> tuple[tuple[str, Finding], ...]:
        """Each attack with its name."""
        inferred = [(f"inference of {name}", finding) for name, finding in self.inferred.items()]
        return (("prosecutor, linked", self.linked), ("marketer, linked", self.guessed), *inferred)

    @property
    def note(self) -> str:
        """What the numbers say, and one worked record if an attack found one."""
        words = (
            "Equivalence classes of masked rows do not show who is who. The attacker takes the nearest rows, in units "
            "of how far the published steps move values. Linked: everything else that they say is true of the person. "
            "Of 2,000 people at most, with simultaneous 95 % intervals; another attack may do better, and only "
            "--control shows whether people outside the data are found as often."
        )
        story = next((finding.story for _, finding in self.lines if finding.story), ())
        return "\n".join([words, *self.linked.notes, *([" ".join(("For example:", *story))] if story else [])])


def masked_risk(
    tables: Sequence[ReleasedTuples], masks: Mapping[str, Displacement], people: pa.Table, schema: Schema
) -> MaskedRisk | None:
    """Attack a table of masked rows without a control group; None if there is no such table or nobody to attack."""
    published = _published(tables, masks, schema)
    if published is None or not people.num_rows:
        return None
    names = [name for name in published.columns if name in people.column_names]
    quasi = tuple(name for name in names if name in schema.quasi)
    secrets = [name for name in names if schema[name].role is Role.SENSITIVE and name not in quasi][:_SECRETS]
    knowledge = Knowledge(people, quasi or tuple(name for name in names if name not in secrets))
    if not knowledge.known_columns:
        return None
    findings = [
        linkage(published, knowledge),
        linkage(published, replace(knowledge, guesses=True)),
        *(inference(published, replace(knowledge, secret=name)) for name in secrets),
    ]
    linked, guessed, *inferred = corrected(findings)
    return MaskedRisk(linked, guessed, dict(zip(secrets, inferred, strict=True)))


def _published(
    tables: Sequence[ReleasedTuples], masks: Mapping[str, Displacement], schema: Schema
) -> PublishedTable | None:
    """Return the one table of masked rows as an attacker has it; None if there is none, or no rows in it."""
    if not masks or len(tables) != 1 or tables[0].rows is None or not len(tables[0].rows):
        return None
    lookups = {column.name: lookup_of(column) for column in schema.columns}
    table = tables[0].labels.append_column(_ROWS, pa.array(tables[0].rows))
    return PublishedTable(table, lookups, _ROWS, masks=masks)
