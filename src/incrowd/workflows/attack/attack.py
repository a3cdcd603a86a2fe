"""Attack: run adversaries against a publication, held against the data it came from and against outsiders; internal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from incrowd.attacks import attack_names, attack_of
from incrowd.attacks.finding import CONFIDENCE, Finding, Risk, above, check_enough, corrected
from incrowd.attacks.knowledge import ATTACKERS, Knowledge, PublishedTable, sweep
from incrowd.errors import InvalidParameter

_SWEPT = ("linkage", "homogeneity", "skewness")
_DEFAULT_ATTACKER = "prosecutor"
INTERNAL = "made from the original rows: keep it apart from what is published"
Tables = Sequence[tuple[str, PublishedTable]]


@dataclass(frozen=True)
class AttackRun:
    """An attack that was run: by whom, on which table, and what it came to."""

    attacker: str
    table: str
    finding: Finding

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {**self.finding.to_json(), "attacker": self.attacker, "table": self.table}


@dataclass(frozen=True)
class AttackReport:
    """What a run of the attack lab came to: its findings with intervals that hold together, and what did not apply."""

    tried: tuple[AttackRun, ...]
    skipped: Mapping[str, str]
    confidence: float

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the attacks came to."""
        return tuple(each.finding for each in self.tried)

    def exceeding(self, thresholds: Mapping[str, float]) -> tuple[AttackRun, ...]:
        """Return the attacks that are not shown to stay below their threshold.

        A threshold is named after an attack or after one of the three risks, or is `any`; the most particular counts.
        """
        known = {"any", *attack_names(), "singling out", "linkability", "inference"}
        if unknown := [name for name in thresholds if name not in known]:
            raise InvalidParameter(f"there is no attack or risk {unknown[0]!r} to set a threshold for.")
        found = []
        for each in self.tried:
            names = (each.finding.attack, str(each.finding.risk), "any")
            limit = next((thresholds[name] for name in names if name in thresholds), None)
            if limit is not None and above([each.finding], limit):
                found.append(each)
        return tuple(found)

    def by_risk(self, over: Sequence[AttackRun] = ()) -> dict[str, Any]:
        """Return the plain form under the three risks; `over` are those that exceed a threshold."""
        found = {
            str(risk): [{**each.to_json(), "above": each in over} for each in self.tried if each.finding.risk is risk]
            for risk in Risk
        }
        return {"internal": INTERNAL, "confidence": self.confidence, **found, "skipped": dict(self.skipped)}

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, without stories."""
        return {
            "internal": INTERNAL,
            "confidence": self.confidence,
            "findings": [each.to_json() for each in self.tried],
            "skipped": dict(self.skipped),
        }


@dataclass(frozen=True, eq=False)
class AttackOrder:
    """What is to be tried: attacks (all that apply, if none is named), attackers, sweeps, the confidence."""

    attacks: tuple[str, ...] = ()
    attackers: tuple[str, ...] = ()
    sweep: int | None = None
    confidence: float = CONFIDENCE
    changed: pa.Table | None = None
    """People who left or came between two releases, for differencing."""

    def __post_init__(self) -> None:
        for name in self.attacks:
            attack_of(name)
        for name in self.attackers:
            if name not in ATTACKERS:
                raise InvalidParameter(f"there is no attacker {name!r}; there are {', '.join(ATTACKERS)}.")


EVERYTHING = AttackOrder()


def attack(
    tables: Tables, knowledge: Knowledge, outsiders: pa.Table | None, order: AttackOrder = EVERYTHING
) -> AttackReport:
    """Run the attacks that were named, or all that apply, and correct their intervals for their number.

    What does not apply is skipped, with the reason; of an attack that was named it is an error.
    """
    tried: list[AttackRun] = []
    skipped: dict[str, str] = {}
    for name, attacker, table, told in _plan(tables, knowledge, order):
        try:
            finding = attack_of(name)(dict(tables)[table], told, outsiders)
        except InvalidParameter as error:
            if order.attacks and len(tables) == 1:
                raise
            skipped[name] = str(error)
        else:
            tried.append(AttackRun(attacker, table, finding))
    if not tried:
        raise InvalidParameter(f"no attack applies: {next(iter(skipped.values()), 'none was named')}")
    each = 1.0 - (1.0 - order.confidence) / len(tried)
    check_enough(knowledge.people.num_rows, None if outsiders is None else outsiders.num_rows, each)
    fixed = corrected([one.finding for one in tried], order.confidence)
    done = tuple(replace(one, finding=finding) for one, finding in zip(tried, fixed, strict=True))
    names = {one.finding.attack for one in done}
    return AttackReport(done, {name: why for name, why in skipped.items() if name not in names}, order.confidence)


def _plan(tables: Tables, knowledge: Knowledge, order: AttackOrder) -> Iterator[tuple[str, str, str, Knowledge]]:
    """Yield every attack with its attacker, its table and what is known."""
    for attacker in order.attackers or (_DEFAULT_ATTACKER,):
        for table, published in tables:
            told = ATTACKERS[attacker].knows(knowledge, published.columns)
            for name in order.attacks or _applying(published, knowledge, order):
                if name == "differencing" and order.changed is not None:
                    yield name, attacker, table, replace(told, people=order.changed)
                elif order.sweep is not None and name in _SWEPT:
                    for part in sweep(told, order.sweep):
                        yield name, attacker, table, part
                else:
                    yield name, attacker, table, told


def _applying(published: PublishedTable, knowledge: Knowledge, order: AttackOrder) -> tuple[str, ...]:
    """Return the attacks that what was given is enough for."""
    without = set()
    if knowledge.secret is None:
        without |= {"homogeneity", "skewness", "learning", "intersection", "minimality", "inference"}
    if knowledge.item is None:
        without |= {"similarity", "baskets"}
    if not published.earlier:
        without |= {"intersection", "differencing"}
    if order.changed is None:
        without |= {"differencing"}
    return tuple(name for name in attack_names() if name not in without)
